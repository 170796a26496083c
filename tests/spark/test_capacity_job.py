"""Capacity verdicts from the tables of the lake: the driver's part, which needs no JVM."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from lagwise.config import Capacity
from lagwise.domain.capacity.scaling import ScalingPolicy, Why
from lagwise.scaling_signal import signal
from lagwise.tables import ALL_TABLES
from lagwise.tables.analysis import GROUP_HISTORY, GROUP_STATUS, PARTITION_STATUS
from lagwise.tables.capacity import CAPACITY
from lagwise.tables.observed import OBSERVED_CAPACITY
from lagwise.tables.planning import DEMAND, FORECASTS, TOPIC_HOURS
from lagwise.tables.raw import GROUPS, JOBS, SERVICE_TIMES
from lagwise.tables.schema import Table
from lagwise.tables.store import Lake
from lagwise_spark.jobs import write
from lagwise_spark.jobs.capacity import AGAIN_AFTER, plan
from tests.platform.judged import append, group, partition, row

NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
EIGHT_CORES = Capacity.model_validate({"nodes": [{"groups": ["bill.*"], "cores": 8}]})


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    made = Lake(str(tmp_path / "lake"))
    made.create(*ALL_TABLES)
    return made


def reads(lake: Lake, name: str, *, members: int = 4, partitions: int = 12, rate: float = 50.0) -> None:
    """A group on `orders` whose members run two to a host."""
    append(
        lake,
        PARTITION_STATUS,
        *[
            partition(
                name, n, as_of=NOW, lag=5, produce_rate_per_second=rate, owner=f"m{n % members}",
                host=f"10.0.0.{n % members // 2}",
            )
            for n in range(partitions)
        ],
        partition(name, 0, as_of=NOW, topic="left", status="ghost"),
    )  # fmt: skip


def judged_again(lake: Lake) -> None:
    """The statuses of a round so much later that the capacity verdicts are due."""
    again = [{**r, "as_of": r["as_of"] + AGAIN_AFTER} for r in lake.read(PARTITION_STATUS).to_pylist()]
    write.replace_small(lake, PARTITION_STATUS, write.table_of(PARTITION_STATUS, again))


def some(table: Table, **values: Any) -> dict[str, Any]:
    keys = {"cluster": "shop", "group": "billing", "topic": "orders"}
    names = {column.name for column in table.columns}
    return row(table, **{k: v for k, v in keys.items() if k in names} | values)


def demand(lake: Lake, peak: float = 600.0, later: float | None = None) -> None:
    ahead = {} if later is None else {"forecast_peak_per_second": later, "model": "theta"}
    append(
        lake,
        DEMAND,
        some(DEMAND, as_of=NOW, peak_per_second=peak, peak_at=NOW - timedelta(days=1), minutes=30_000,
             history_hours=500, horizon_days=90, **ahead),
    )  # fmt: skip
    if later is not None:
        # A busy hour's mean is half of its busiest minute.
        days = [NOW + timedelta(days=d) for d in range(1, 91)]
        means = [(peak + (later - peak) * n / 89) / 2 for n in range(90)]
        for made, factor in ((NOW - timedelta(days=1), 7.0), (NOW, 1.0)):  # the newer one counts
            append(
                lake,
                FORECASTS,
                *[
                    some(FORECASTS, made_at=made, at=at, hours=24, produce_rate_per_second=mean * factor,
                         busiest_per_second=mean * factor, busiest_high_per_second=mean * 1.1 * factor)
                    for at, mean in zip(days, means, strict=True)
                ],
            )  # fmt: skip


def seen(lake: Lake, rate: float | None, *, margin: float = 0.05) -> None:
    values = {"rate_per_second": rate, "rate_low_per_second": rate and rate * (1 - margin),
              "rate_high_per_second": rate and rate * (1 + margin), "at_least_per_second": 300.0}  # fmt: skip
    if rate:
        values |= {"seconds_per_message": 4 / rate, "blocks": 30, "measured_until": NOW - timedelta(hours=1)}
    append(
        lake,
        OBSERVED_CAPACITY,
        some(OBSERVED_CAPACITY, as_of=NOW, **values),
        some(OBSERVED_CAPACITY, as_of=NOW, member="m0 (10.0.0.0)", rate_per_second=1.0),
    )


def probed(lake: Lake, minutes_ago: float, t1: float, t2: float, messages: int, **more: Any) -> None:
    at = NOW - timedelta(minutes=minutes_ago)
    append(
        lake,
        SERVICE_TIMES,
        some(SERVICE_TIMES, sampled_at=at, measured_at=at, source="probe", t1_seconds=t1, t2_seconds=t2,
             messages=messages, partition=0, **{"threads": 20, "host": "10.0.0.0"} | more),
    )  # fmt: skip


def rows(lake: Lake) -> dict[str, dict[str, Any]]:
    return {r["group"]: r for r in lake.read(CAPACITY).to_pylist()}


def test_everything_that_is_known(lake: Lake) -> None:
    reads(lake, "billing")
    demand(lake, 600.0, 900.0)
    seen(lake, 1_500.0)
    assert plan(lake, Capacity(), NOW) == 1
    found = rows(lake)["billing"]
    assert (found["verdict"], found["capacity_source"], found["confidence"]) == ("enough", "saturation", "high")
    assert (found["partitions"], found["members"], found["nodes"], found["lag"]) == (12, 4, 2, 60)
    assert (found["peak_rate_per_second"], found["forecast_peak_rate_per_second"]) == (600.0, 900.0)
    assert found["member_rate_per_second"] == 375.0
    assert found["capacity_low_per_second"] == pytest.approx(1_425.0)
    # At 70 %: 900/s · 1.03 need 1,329/s, four members of 375/s; and one spare.
    assert (found["advised_nodes"], found["advised_threads_per_node"]) == (5, 1)
    # What of that time is CPU is not known, which is not 0; and the lag of now is not planned with.
    assert (found["t1_seconds"], found["t2_seconds"], found["binds"]) == (0.002667, None, "time")
    assert found["advice"].startswith("4 members, and 1 spare member, carry")
    assert {i["name"] for i in found["inputs"]} >= {"peak_rate_per_second", "observed_rate_per_second", "partitions"}


def test_the_hottest_partition_is_of_the_week_and_not_of_the_last_minutes(lake: Lake) -> None:
    """A quiet night: the only records of the last minutes are on one partition."""
    reads(lake, "billing", rate=0.0)
    append(lake, PARTITION_STATUS, partition("billing", 12, as_of=NOW, lag=0, produce_rate_per_second=0.1, owner="m0"))
    demand(lake)
    seen(lake, 1_500.0)
    plan(lake, Capacity(), NOW)
    unknown = rows(lake)["billing"]
    assert (unknown["verdict"], unknown["hottest_share"]) == ("enough", None)
    records = [{"partition": p, "records": 2_000 if p else 3_000} for p in range(13)]
    append(
        lake,
        TOPIC_HOURS,
        *[
            some(TOPIC_HOURS, hour=NOW - timedelta(hours=h), partitions=13, records=27_000, seconds=3600.0,
                 partition_records=records)
            for h in range(1, 49)
        ],
    )  # fmt: skip
    judged_again(lake)
    plan(lake, Capacity(), NOW)
    found = rows(lake)["billing"]
    assert found["hottest_share"] == pytest.approx(3 / 27)
    [told] = [i for i in found["inputs"] if i["name"] == "hottest_share"]
    assert (told["samples"], told["measured_at"]) == (48 * 27_000, NOW)


def test_when_it_ends(lake: Lake) -> None:
    """What is forecast are hours; the peak of minutes is as far above them on the way as at the horizon."""
    reads(lake, "billing")
    demand(lake, 600.0, 900.0)
    seen(lake, 1_128.0)
    plan(lake, Capacity(), NOW)
    found = rows(lake)["billing"]
    # 750/s are half-way between the two peaks, and 70 % of the low end, 1,071.6/s.
    assert found["verdict"] == "tight"
    assert found["enough_until"] == pytest.approx(NOW + timedelta(days=46), abs=timedelta(days=1))


def test_a_probe_with_cores(lake: Lake) -> None:
    """The hour before the newest measurement counts, each by its messages; two tellers of the same are one."""
    reads(lake, "billing", members=2)
    demand(lake)
    probed(lake, 5, 0.010, 0.003, 30_000)
    probed(lake, 5, 0.010, 0.003, 30_000)
    probed(lake, 20, 0.020, 0.003, 10_000)
    probed(lake, 70, 9.0, 9.0, 10_000)
    plan(lake, EIGHT_CORES, NOW)
    found = rows(lake)["billing"]
    assert (found["capacity_source"], found["cores"], found["threads_per_node"]) == ("probe", 8.0, 20)
    assert found["t1_seconds"] == pytest.approx(0.0125)
    assert found["concurrency"] == "pool"
    judged_again(lake)
    plan(lake, Capacity(), NOW + AGAIN_AFTER)
    assert rows(lake)["billing"]["verdict"] == "undecided"  # whose nodes nobody knows


def test_the_probe_tells_the_cores_and_the_threads_of_all_processes_of_a_host(lake: Lake) -> None:
    """Two processes on one host, of which one has told twice, and earlier under another member's name; one on another
    host, with more cores. A setting counts more."""
    reads(lake, "billing", members=3)
    demand(lake)
    probed(lake, 30, 0.012, 0.003, 9_000, threads=8, cores=4.0, member_id="before a rebalance")
    probed(lake, 5.4, 0.012, 0.003, 9_000, threads=8, cores=4.0, member_id="a")
    probed(lake, 5.2, 0.012, 0.003, 9_000, threads=10, cores=4.0, member_id="a")
    probed(lake, 5.1, 0.012, 0.003, 9_000, threads=10, cores=4.0, member_id="b")
    probed(lake, 9, 0.012, 0.003, 9_000, threads=30, cores=6.0, member_id="c", host="10.0.0.1")
    plan(lake, Capacity(), NOW)
    found = rows(lake)["billing"]
    assert (found["cores"], found["threads_per_node"]) == (5.0, 25)
    (cores,) = [i for i in found["inputs"] if i["name"] == "cores"]
    assert cores["source"] == "probe"
    judged_again(lake)
    plan(lake, EIGHT_CORES, NOW)
    assert rows(lake)["billing"]["cores"] == 8.0


def test_nothing_is_known(lake: Lake) -> None:
    reads(lake, "billing")
    assert plan(lake, Capacity(), NOW) == 1
    found = rows(lake)["billing"]
    assert (found["verdict"], found["capacity_source"], found["confidence"]) == ("undecided", "none", "none")
    assert found["advice"] is None
    assert found["sentence"].endswith(".")


def test_undecided_comes_with_a_load_test_for_what_is_needed(lake: Lake) -> None:
    reads(lake, "billing")
    demand(lake, 600.0, 900.0)
    seen(lake, None)
    assert plan(lake, Capacity(), NOW) == 1
    found = rows(lake)["billing"]
    assert found["verdict"] == "undecided"
    assert "Stop the group for " in found["sentence"]
    assert found["sentence"].endswith("If it has caught up sooner, it does more than 1,286 records/s.")


def test_the_stalest_first_and_each_in_its_turn(lake: Lake) -> None:
    for name in ("a", "b", "c"):
        reads(lake, name)
    assert plan(lake, Capacity(), NOW, at_most=2) == 2
    assert set(rows(lake)) == {"a", "b"}
    assert plan(lake, Capacity(), NOW, at_most=2) == 1
    assert set(rows(lake)) == {"a", "b", "c"}
    assert plan(lake, Capacity(), NOW, at_most=2) == 0
    judged_again(lake)
    assert plan(lake, Capacity(), NOW + AGAIN_AFTER, at_most=2) == 2


def test_where_nothing_is_collected_nothing_is_judged_again(lake: Lake) -> None:
    reads(lake, "billing")
    assert plan(lake, Capacity(), NOW) == 1
    assert plan(lake, Capacity(), NOW + 3 * AGAIN_AFTER) == 0


def test_an_empty_lake(lake: Lake) -> None:
    assert plan(lake, Capacity(), NOW) == 0


def test_autoscalers_are_told_by_it(lake: Lake) -> None:
    reads(lake, "billing")
    demand(lake)
    seen(lake, 1_500.0)
    plan(lake, Capacity(), NOW)
    append(lake, GROUP_STATUS, group("billing", "ok", as_of=NOW, members=4))
    past = [NOW - timedelta(minutes=n) for n in range(30)]
    append(
        lake,
        GROUP_HISTORY,
        *[some(GROUP_HISTORY, as_of=at, status="ok", lag=0, produce_rate_per_second=150.0) for at in past],
    )
    members = [some(GROUPS, sampled_at=at, member_count=4) for at in past]
    append(lake, GROUPS, *members)
    found = signal(lake, "shop", "billing", ScalingPolicy(), NOW, stale_after_seconds=60.0)
    assert (found.desired.replicas, found.desired.why) == (1, Why.FEWER_NEEDED)
    assert found.replica_rate_per_second == 375.0


def of_job(lake: Lake, seconds_ago: float, busy: float | None, *, job: str = "j1", group: str = "billing") -> None:
    """A look at a job of two vertices, of which the second bounds it."""
    idle = {"backpressured_share": 0.0, "idle_share": 0.5, "records_in_per_second": 1.0, "records_out_per_second": 1.0}
    source = {"name": "Source: orders", "parallelism": 1, "busy_share": 0.05} | idle
    price = {"name": "price", "parallelism": 4, "busy_share": busy} | idle
    append(
        lake,
        JOBS,
        some(JOBS, sampled_at=NOW - timedelta(seconds=seconds_ago), group=group, job_id=job, job="orders-job",
             source="flink", vertices=[source, price]),
    )  # fmt: skip


def test_a_flink_job_is_known_by_its_busy_time(lake: Lake) -> None:
    """Twelve partitions of 100 records a second each, read while the busiest vertex is busy for 60 % of the time."""
    append(
        lake,
        PARTITION_STATUS,
        *[partition("billing", n, as_of=NOW, produce_rate_per_second=100.0, consume_rate_per_second=100.0, owner="j1")
          for n in range(12)],
    )  # fmt: skip
    demand(lake, peak=1_200.0)
    of_job(lake, 500, 0.1)  # before the last five minutes
    of_job(lake, 30, 0.1, job="the one before")
    of_job(lake, 20, None)  # the first look has nothing to compare with
    of_job(lake, 15, 0.5)
    of_job(lake, 0, 0.7)
    plan(lake, Capacity(), NOW)
    found = rows(lake)["billing"]
    assert (found["capacity_source"], found["members"]) == ("busy_time", 4)
    assert found["capacity_high_per_second"] == pytest.approx(2_000.0)
    assert found["member_rate_per_second"] == pytest.approx(500.0)
    told = {i["name"]: (i["value"], i["source"], i["samples"]) for i in found["inputs"]}
    assert told["busy_share"] == (pytest.approx(0.6), "busy time of the vertex price", 2)


def test_a_job_that_was_not_seen_lately_tells_nothing(lake: Lake) -> None:
    reads(lake, "billing")
    demand(lake)
    of_job(lake, 601, 0.5)
    of_job(lake, 0, 0.5, group="another")
    plan(lake, Capacity(), NOW)
    assert rows(lake)["billing"]["capacity_source"] == "none"
    assert rows(lake)["billing"]["members"] == 4


def took(lake: Lake, minutes_ago: float, member: str, seconds: float, messages: int, **more: Any) -> None:
    at = NOW - timedelta(minutes=minutes_ago)
    values = {"threads": 20, "partition": 0, "source": "consume_rt", "t1_seconds": None, "t2_seconds": None} | more
    append(
        lake,
        SERVICE_TIMES,
        some(SERVICE_TIMES, sampled_at=at, measured_at=at, member_id=member, seconds_per_message=seconds,
             messages=messages, **values),
    )  # fmt: skip


@pytest.mark.parametrize(("kind", "threads"), [("concurrent", 40), ("orderly", 12)])
def test_a_group_of_rocketmq_is_known_by_its_consume_rt(lake: Lake, kind: str, threads: int) -> None:
    reads(lake, "billing", members=2)
    demand(lake, 200.0)
    append(lake, GROUPS, some(GROUPS, sampled_at=NOW, type=kind))
    took(lake, 70, "m0", 9.0, 9_000)  # longer than an hour ago
    took(lake, 30, "gone", 0.05, 1_000)  # its time counts, its threads do not: it is not there any more
    took(lake, 1, "m0", 0.05, 1_000)
    took(lake, 0, "m0", 0.05, 1_000)
    took(lake, 0, "m1", 0.1, 3_000)
    plan(lake, Capacity(), NOW)
    found = rows(lake)["billing"]
    assert found["capacity_source"] == "consume_rt"
    assert found["capacity_high_per_second"] == pytest.approx(threads / 0.075)
    told = {i["name"]: (i["value"], i["samples"]) for i in found["inputs"]}
    assert told["seconds_per_message"] == (pytest.approx(0.075), 6_000)


def test_a_probe_beside_it_is_not_mixed_with_it(lake: Lake) -> None:
    reads(lake, "billing", members=2)
    demand(lake, 200.0)
    probed(lake, 1, 0.012, 0.003, 5_000)
    took(lake, 0, "m0", 0.05, 1_000)
    plan(lake, EIGHT_CORES, NOW)
    found = rows(lake)["billing"]
    assert (found["t1_seconds"], found["t2_seconds"]) == (0.012, 0.003)
