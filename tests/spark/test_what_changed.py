"""The cause of a backlog from the raw tables: the driver's part of a round, which needs no JVM."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from lagwise.domain.group_record import row_of
from lagwise.domain.groups import GroupVerdict, record_of_verdict, verdict_of
from lagwise.domain.vocabulary import ROCKETMQ, Status
from lagwise.domain.what_changed.backlog import Backlog, already_behind
from lagwise.domain.what_changed.change import Change, ChangeKind
from lagwise.domain.what_changed.happenings import Leaderless
from lagwise.tables.analysis import GROUP_STATUS, STATUS_CHANGES
from lagwise.tables.minutes import MINUTES, WATERMARK_MINUTES
from lagwise.tables.raw import COMMITS, EVENTS, WATERMARKS
from lagwise.tables.schema import Table
from lagwise.tables.service_times import JOBS, SERVICE_TIMES
from lagwise.tables.store import Lake
from lagwise_spark.jobs.behind import Behind
from lagwise_spark.jobs.leaders import leaderless_topics
from lagwise_spark.jobs.what_changed import MOST_GROUPS, _within_bounds, backlogs_of
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


def test_leaders_that_moved_are_named_as_an_occasion(lake: Lake) -> None:
    shop = Shop(lake)
    for minutes, after in moments():
        shop.sample(minutes, t1=None, read=400 if after else 1500)
    shop.write()
    moved = {"before": "broker 1", "after": "broker 2", "cause": "1 of 2 partitions", "partition": 1}
    append(lake, EVENTS, [row(EVENTS, **moved, cluster="shop", topic="orders", at=at(FAULT - 1), kind="leaders_moved")])
    cause = backlogs_of(lake, verdicts(), news(NOW))[KEY].cause
    assert cause is not None
    assert cause.kind == "consume_rate_fell"
    assert cause.sentence.endswith(
        "1 of 2 partitions of the topic orders changed leader at 03:57:00 UTC, from broker 1 to broker 2."
    )


def test_a_group_that_cannot_be_read_for_want_of_a_leader_says_so_while_there_is_none_and_while_it_catches_up(
    lake: Lake,
) -> None:
    """Only groups that read the topic and could not be read themselves."""
    own = {"sample_id": "s1", "cluster": "shop", "sampled_at": at(NOW), "topic": "orders", "replicas": [1, 2]}
    marks = [row(WATERMARKS, **own, partition=p, leader=None if p else 2) for p in range(3)]
    before = {**own, "sample_id": "s0", "sampled_at": at(NOW - EVERY)}
    append(lake, WATERMARKS, [*marks, row(WATERMARKS, **before, partition=0, leader=None)])
    lost = {"before": "broker 1", "after": "no leader", "cause": "2 of 3 partitions"}
    append(lake, EVENTS, [row(EVENTS, **lost, cluster="shop", topic="orders", at=at(FAULT), kind="leaders_lost")])
    unread = verdict_of([part("unknown:unreadable"), part(Status.OK)], members=2, idle_members=0)
    of_group = {KEY: ({}, replace(unread, topics=("orders",))), ("shop", "other"): ({}, replace(unread, topics=("x",)))}
    found = backlogs_of(lake, of_group, news(NOW))
    assert set(found) == {KEY}
    cause = found[KEY].cause
    assert cause is not None
    assert (cause.kind, cause.at) == ("leaders_lost", at(FAULT))
    assert cause.sentence.startswith("2 of 3 partitions of the topic orders have had no leader since 03:58:00 UTC")
    overwrite(lake, GROUP_STATUS, [stored(of_group[KEY][1], found[KEY])])
    [its] = news(NOW)
    assert backlogs_of(lake, of_group, [its])[KEY] == found[KEY]
    assert backlogs_of(lake, of_group, [replace(its, new_samples=0)])[KEY] == found[KEY], "a round for another cluster"
    led = {**own, "sample_id": "s2", "sampled_at": at(NOW + EVERY), "leader": 2}
    append(lake, WATERMARKS, [row(WATERMARKS, **led, partition=p) for p in range(3)])
    behind = verdict_of([part(Status.CATCHING_UP, lag_seconds=90.0)], members=2, idle_members=0)
    behind, later = replace(behind, topics=("orders",)), replace(its, latest_id="s2", as_of=at(NOW + EVERY))
    back = backlogs_of(lake, {KEY: ({}, behind)}, [later])[KEY]
    assert back.since == at(NOW)
    assert stored(behind, back)["sentence"].endswith(
        "Until 04:00:15 UTC, partitions that it reads had no leader, and nobody could read or write them."
    )
    overwrite(lake, GROUP_STATUS, [stored(behind, back)])
    assert backlogs_of(lake, {KEY: ({}, behind)}, [replace(later, as_of=at(NOW + 2 * EVERY))])[KEY] == back


def test_a_broker_that_fails_is_named_to_every_group_and_costs_those_that_fell_behind_nothing(lake: Lake) -> None:
    """More groups than a round looks at otherwise."""
    shop = Shop(lake)
    for minutes, after in moments():
        shop.sample(minutes, t1=0.048 if after else 0.012, read=400 if after else 1500)
    shop.write()
    own = {"sample_id": "s1", "cluster": "shop", "sampled_at": at(NOW), "topic": "payments", "replicas": [1]}
    append(lake, WATERMARKS, [row(WATERMARKS, **own, partition=0, leader=None)])
    unread = replace(verdict_of([part("unknown:unreadable")], members=1, idle_members=0), topics=("payments",))
    others = {("shop", f"g{number}"): ({}, unread) for number in range(MOST_GROUPS + 10)}
    found = backlogs_of(lake, others | verdicts(), news(NOW))
    causes = {group: backlog.cause.kind for group, backlog in found.items() if backlog.cause}
    assert causes == dict.fromkeys(others, "leaders_lost") | {KEY: "waiting_rose"}


def test_a_group_that_has_been_behind_for_long_says_so_when_its_partitions_lose_their_leader(lake: Lake) -> None:
    slower = Change(kind=ChangeKind.CPU_ROSE, at=at(NOW - 20), sentence="T2 rose.")
    overwrite(lake, GROUP_STATUS, [stored(verdicts()[KEY][1], Backlog(at(NOW - 20), slower))])
    own = {"sample_id": "s1", "cluster": "shop", "sampled_at": at(NOW), "topic": "orders", "replicas": [1]}
    append(lake, WATERMARKS, [row(WATERMARKS, **own, partition=0, leader=None)])
    unread = replace(verdict_of([part("unknown:unreadable")], members=2, idle_members=0), topics=("orders",))
    found = backlogs_of(lake, {KEY: ({}, unread)}, news(NOW))[KEY]
    assert found.since == at(NOW)
    assert found.cause is not None
    assert stored(unread, found)["sentence"].endswith("has no leader: nobody can read or write it.")


def test_leaders_are_looked_for_as_far_back_as_the_latest_sample_reaches_and_no_further(lake: Lake) -> None:
    """A sample of a large cluster takes minutes; files of earlier ones are not read."""
    own = {"cluster": "shop", "sample_id": "s1", "replicas": [1, 2], "leader": None}
    for topic, minutes in (("earlier", NOW - 7), ("orders", NOW - 5)):
        append(lake, WATERMARKS, [row(WATERMARKS, **own, topic=topic, partition=0, sampled_at=at(minutes))])
    [its] = news(NOW)
    assert leaderless_topics(lake, replace(its, latest_from=at(NOW - 6))) == [Leaderless("orders", 1, 1)]


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


class FirstSight:
    """A group that is new in a lake, sampled every quarter of a minute from two minutes ago on, with a backlog from the
    first sample on or without one."""

    def __init__(self, lake: Lake, *, lag: int = 900, since: float = NOW - 2) -> None:
        self.lake = lake
        own = {"cluster": "shop", "topic": "orders", "partition": 0}
        times = [since + EVERY * number for number in range(int((NOW - since) / EVERY) + 1)]
        moments = [{**own, "sample_id": f"s{time}", "sampled_at": at(time)} for time in times]
        append(lake, WATERMARKS, [row(WATERMARKS, **one, high_watermark=1_000) for one in moments])
        append(lake, COMMITS, [row(COMMITS, **one, group="checkout", committed=1_000 - lag) for one in moments])

    def was(self, status: str, since: float, *, before: str | None = None) -> None:
        """The verdict of the round before, and when it became that."""
        verdict = verdict_of([part(status)], members=2, idle_members=0)
        overwrite(self.lake, GROUP_STATUS, [stored(verdict, None) | {"since": at(since)}])
        change = {"cluster": "shop", "group": "checkout", "before": before, "after": verdict.status, "at": at(since)}
        append(self.lake, STATUS_CHANGES, [row(STATUS_CHANGES, **change)])

    def told(self, status: Status = Status.LAGGING) -> str:
        """What the sentence says besides the verdict."""
        verdict = verdicts(status)
        backlog = backlogs_of(self.lake, verdict, news(NOW))[KEY]
        return str(stored(verdict[KEY][1], backlog)["sentence"]).removeprefix(verdict[KEY][1].sentence).strip()


ALREADY = "The cause cannot be told: it already lagged when Lagwise first saw it at 03:58:00 UTC."


def test_a_group_that_lagged_when_it_was_first_seen_says_so(lake: Lake) -> None:
    assert FirstSight(lake).told() == ALREADY


def test_a_group_that_was_unknown_from_the_first_sample_on_says_so_and_goes_on_saying_it(lake: Lake) -> None:
    seen = FirstSight(lake)
    seen.was("unknown:too_few_samples", NOW - 1.75)
    assert seen.told() == ALREADY
    begun = backlogs_of(lake, verdicts(), news(NOW))[KEY]
    overwrite(lake, GROUP_STATUS, [stored(verdicts()[KEY][1], begun)])
    assert backlogs_of(lake, verdicts(), news(NOW))[KEY] == begun


@pytest.mark.parametrize("status", [Status.STOPPED, Status.STALLED, Status.CATCHING_UP])
def test_what_is_not_read_or_catches_up_needs_no_such_word(lake: Lake, status: Status) -> None:
    assert FirstSight(lake).told(status) == ""


def test_what_had_nothing_unread_in_its_first_sample_began_to_lag_later(lake: Lake) -> None:
    assert FirstSight(lake, lag=0).told() == ""


def test_what_was_known_to_keep_up_began_to_lag_later(lake: Lake) -> None:
    seen = FirstSight(lake)
    seen.was("ok", NOW - 1.75)
    assert seen.told() == ""


def test_what_became_unknown_was_seen_before(lake: Lake) -> None:
    """As after a gap of the collector: all samples that are left of it are new."""
    seen = FirstSight(lake)
    seen.was("unknown:too_few_samples", NOW - 1.75, before="ok")
    assert seen.told() == ""


def test_what_was_sampled_long_before_the_first_verdict_may_have_kept_up(lake: Lake) -> None:
    assert FirstSight(lake, since=NOW - 20).told() == ""


def test_what_is_measured_later_takes_its_place_and_what_happened_later_does_not(lake: Lake) -> None:
    shop = Shop(lake)
    for minutes, after in moments():
        shop.sample(minutes, t1=0.048 if after else 0.012, read=400 if after else 1500)
    seen = already_behind(at(NOW - 5), at(NOW))
    overwrite(lake, GROUP_STATUS, [stored(verdicts()[KEY][1], Backlog(at(NOW - 1), seen))])
    change = {"cluster": "shop", "topic": "orders", "before": "segment.ms=1", "after": "segment.ms=2"}
    append(lake, EVENTS, [row(EVENTS, **change, at=at(FAULT), kind="config_changed")])
    assert backlogs_of(lake, verdicts(), news(NOW))[KEY].cause == seen
    shop.write()
    found = backlogs_of(lake, verdicts(), news(NOW))[KEY].cause
    assert found is not None
    assert found.kind is ChangeKind.WAITING_ROSE


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


def stored(verdict: GroupVerdict, backlog: Backlog | None) -> Mapping[str, Any]:
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
    return row_of(record)
