"""The cause of a backlog from the raw tables: the driver's part of a round, which needs no JVM."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from lagwise.domain.group_record import row_of
from lagwise.domain.groups import GroupVerdict, record_of_verdict, verdict_of
from lagwise.domain.vocabulary import ROCKETMQ, Status
from lagwise.domain.what_changed.backlog import Backlog
from lagwise.tables.analysis import GROUP_STATUS
from lagwise.tables.minutes import MINUTES, WATERMARK_MINUTES
from lagwise.tables.raw import COMMITS, EVENTS, WATERMARKS
from lagwise.tables.schema import Table
from lagwise.tables.service_times import JOBS, SERVICE_TIMES
from lagwise.tables.store import Lake
from lagwise_spark.jobs.what_changed import Behind, _within_bounds, backlogs_of
from tests.domain.test_groups import part
from tests.lake_rows import append, overwrite, row
from tests.spark.test_rebalance_stats import at, news

NOW = 60.0
FAULT = 58.0
KEY = ("shop", "checkout")
EVERY = 0.25


def verdicts(status: Status = Status.LAGGING, lag_seconds: float = 90.0, **more: float) -> dict[tuple[str, str], Any]:
    made = verdict_of([part(status, lag_seconds=lag_seconds, **more)], members=2, idle_members=0)
    return {KEY: ({}, replace(made, topics=("orders",)))}


class Shop:
    """Samples of a group that reads a topic of two partitions, one member each, every quarter of a minute. What is
    older than three minutes is only there as minutes."""

    def __init__(self, lake: Lake) -> None:
        self.rows: dict[Table, list[dict[str, Any]]] = {
            table: [] for table in (SERVICE_TIMES, WATERMARKS, COMMITS, WATERMARK_MINUTES, MINUTES)
        }
        self.lake = lake
        self.ends, self.reads = [0, 0], [0, 0]

    def sample(
        self, minutes: float, *, t1: float | None = 0.012, written: tuple[int, int] = (1500, 1500), read: int = 1500
    ) -> None:
        own = {"sample_id": f"s{minutes}", "cluster": "shop", "sampled_at": at(minutes), "topic": "orders"}
        for partition in (0, 1):
            its = {**own, "partition": partition}
            minute = {"cluster": "shop", "topic": "orders", "partition": partition, "minute": at(int(minutes))}
            self.ends[partition] += written[partition]
            self.reads[partition] += read
            end, done = self.ends[partition], self.reads[partition]
            if minutes >= NOW - 3:
                self.rows[WATERMARKS].append(row(WATERMARKS, **its, high_watermark=end))
                self.rows[COMMITS].append(row(COMMITS, **its, group="checkout", committed=done))
            if minutes % 1 == 1 - EVERY:
                last = {**minute, "last_at": at(minutes)}
                self.rows[WATERMARK_MINUTES].append(row(WATERMARK_MINUTES, **last, last_high_watermark=end))
                self.rows[MINUTES].append(row(MINUTES, **last, group="checkout", last_committed=done))
            if t1 is not None:
                times = {"t1_seconds": t1, "t2_seconds": 0.003, "messages": read, "threads": 2, "cores": 2.0}
                member = {"group": "checkout", "member_id": f"m{partition}", "measured_at": at(minutes)}
                service = row(SERVICE_TIMES, **its, **times, **member, window_seconds=15.0)
                # A restarted collector writes the last ones again.
                self.rows[SERVICE_TIMES] += [service, service]

    def write(self) -> None:
        for table, rows in self.rows.items():
            append(self.lake, table, rows)


def moments(end: float = NOW) -> Iterator[tuple[float, bool]]:
    for number in range(int((end - 40.0) / EVERY) + 1):
        minutes = 40.0 + number * EVERY
        yield minutes, minutes > FAULT


def test_t1_that_rose_is_the_cause_and_comes_from_distinct_measurements(lake: Lake) -> None:
    shop = Shop(lake)
    for minutes, after in moments():
        shop.sample(minutes, t1=0.048 if after else 0.012, read=400 if after else 1500)
    shop.write()
    backlog = backlogs_of(lake, verdicts(), news(NOW))[KEY]
    assert backlog.since == at(NOW)
    assert backlog.cause is not None
    assert backlog.cause.kind == "waiting_rose"
    assert "T1 on orders rose from 12 ms to 48 ms" in backlog.cause.sentence
    assert abs(backlog.cause.at - at(FAULT)) <= timedelta(seconds=15)


def test_a_hot_partition_is_named(lake: Lake) -> None:
    shop = Shop(lake)
    for minutes, after in moments():
        shop.sample(minutes, written=(1500, 9000) if after else (1500, 1500))
    shop.write()
    cause = backlogs_of(lake, verdicts(), news(NOW))[KEY].cause
    assert cause is not None
    assert cause.sentence.startswith("orders-1 has received 86% of what is written to orders since")


def test_without_a_probe_and_with_a_changed_setting(lake: Lake) -> None:
    shop = Shop(lake)
    for minutes, after in moments():
        shop.sample(minutes, t1=None, read=400 if after else 1500)
    shop.write()
    change = {"cluster": "shop", "topic": "orders", "before": "segment.ms=1", "after": "segment.ms=2"}
    append(lake, EVENTS, [row(EVENTS, **change, at=at(FAULT - 1), kind="config_changed")])
    cause = backlogs_of(lake, verdicts(), news(NOW))[KEY].cause
    assert cause is not None
    assert cause.kind == "consume_rate_fell"
    assert "segment.ms=1 became segment.ms=2" in cause.sentence


def test_a_flink_job_whose_records_take_longer(lake: Lake) -> None:
    for number in range(60):
        minutes = NOW - 0.25 * (59 - number)
        slow = minutes > FAULT
        price = {"name": "price", "parallelism": 2, "slots_held": 2, "busy_share": 1.0 if slow else 0.6}
        price |= {"backpressured_share": 0.0, "idle_share": 0.0, "records_out_per_second": 1.0}
        source = price | {"name": "source", "busy_share": 0.1, "records_in_per_second": 300.0}
        vertices = [source, price | {"records_in_per_second": 100.0 if slow else 300.0}]
        own = {"cluster": "shop", "group": "checkout", "sampled_at": at(minutes), "sample_id": f"s{number}"}
        append(lake, JOBS, [row(JOBS, **own, vertices=vertices)])
    cause = backlogs_of(lake, verdicts(), news(NOW))[KEY].cause
    assert cause is not None
    assert cause.sentence.startswith("The time per message on the vertex price rose from 4 ms to 20 ms at")


def test_a_group_that_keeps_up_has_no_backlog_and_is_not_looked_at(lake: Lake) -> None:
    assert backlogs_of(lake, verdicts(Status.OK, 1.0), news(NOW)) == {}
    waits = backlogs_of(lake, verdicts(Status.OK, 60.0), news(NOW))
    assert waits[KEY].since == at(NOW), "records wait: there are no tables yet, and so no cause"
    assert waits[KEY].cause is None


@pytest.mark.parametrize(("age_minutes", "is_kept"), [(5.0, False), (11.0, True)])
def test_a_cause_is_carried_from_round_to_round_and_is_final_after_a_while(
    lake: Lake, age_minutes: float, is_kept: bool
) -> None:
    shop = Shop(lake)
    for minutes, after in moments():
        shop.sample(minutes, t1=0.048 if after else 0.012, read=400 if after else 1500)
    shop.write()
    began = backlogs_of(lake, verdicts(), news(NOW))[KEY]
    assert began.cause is not None
    earlier = replace(began, since=at(NOW - age_minutes), cause=replace(began.cause, sentence="Told before."))
    overwrite(lake, GROUP_STATUS, [stored(verdicts()[KEY][1], earlier)])
    now = backlogs_of(lake, verdicts(), news(NOW))[KEY]
    assert now.since == at(NOW - age_minutes)
    assert now.cause is not None
    assert (now.cause.sentence == "Told before.") == is_kept


def test_a_group_that_commits_rarely_is_not_behind_between_commits(lake: Lake) -> None:
    """Its oldest record is 45 s old, and so is its last commit."""
    assert backlogs_of(lake, verdicts(Status.OK, 45.0, unmoved_seconds=45.0), news(NOW)) == {}


def test_a_cluster_that_is_not_collected_any_more_is_not_looked_at(lake: Lake) -> None:
    shop = Shop(lake)
    for minutes, after in moments():
        shop.sample(minutes, t1=0.048 if after else 0.012, read=400 if after else 1500)
    shop.write()
    [its] = news(NOW)
    assert backlogs_of(lake, verdicts(), [its])[KEY].cause is not None
    assert backlogs_of(lake, verdicts(), [replace(its, new_samples=0)])[KEY].cause is None


def test_other_clusters_change_nothing(lake: Lake) -> None:
    """One that is sampled every five minutes, and whose clock is ahead."""
    shop = Shop(lake)
    for minutes, after in moments():
        shop.sample(minutes, written=(1500, 9000) if after else (1500, 1500))
    shop.write()
    [its] = news(NOW)
    slow = replace(its, cluster="slow", interval_seconds=300.0, as_of=at(NOW + 10))
    other = {("slow", "checkout"): next(iter(verdicts().values()))}
    alone, both = backlogs_of(lake, verdicts(), [its]), backlogs_of(lake, verdicts() | other, [its, slow])
    assert alone[KEY].cause is not None
    assert both[KEY] == alone[KEY]


def test_a_huge_group_costs_others_nothing_and_is_looked_at_by_itself() -> None:
    def behind(name: str, partitions: int, since: float, status: Status = Status.LAGGING) -> Behind:
        return Behind(("shop", name), ("orders",), partitions, status, Backlog(at(since)), at(NOW))

    huge, small, quiet = behind("huge", 12_000, 3), behind("small", 8, 2), behind("quiet", 8, 4, Status.OK)
    assert _within_bounds([small, huge]) == [huge]
    assert _within_bounds([behind("newer", 8, 5), huge, small]) == [behind("newer", 8, 5), small]
    assert _within_bounds([quiet, small]) == [small, quiet]


def test_queues_have_the_names_that_people_know(lake: Lake) -> None:
    shop = Shop(lake)
    for minutes, after in moments():
        shop.sample(minutes, written=(1500, 9000) if after else (1500, 1500))
    labelled = [
        row_ | {"sample_id": "s1", "label": "broker-a 1"} if row_["sampled_at"] == at(NOW) else row_
        for row_ in shop.rows[WATERMARKS]
    ]
    shop.rows[WATERMARKS] = labelled
    shop.write()
    [its] = news(NOW)
    cause = backlogs_of(lake, verdicts(), [replace(its, system=ROCKETMQ)])[KEY].cause
    assert cause is not None
    assert cause.sentence.startswith("orders broker-a 1 has received 86%")


def test_each_round_at_first_and_then_once_a_minute() -> None:
    ages = range(0, 720, 15)
    looked = [
        age
        for age in ages
        if Behind(KEY, ("orders",), 2, Status.LAGGING, Backlog(at(0)), at(0) + timedelta(seconds=age)).is_due(15.0)
    ]
    assert looked == [*range(0, 151, 15), *range(180, 601, 60)]


def stored(verdict: GroupVerdict, backlog: Any) -> Mapping[str, Any]:
    record = record_of_verdict(
        verdict,
        cluster="shop",
        group="checkout",
        as_of=at(NOW),
        since=at(NOW),
        state=None,
        group_type=None,
        idle_members=None,
        findings=(),
        backlog=backlog,
    )
    assert record.sentence.endswith(f" {backlog.cause.sentence}")
    return row_of(record)
