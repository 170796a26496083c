"""Capacity verdicts from the tables of the lake: the driver's part, which needs no JVM."""

from datetime import timedelta
from itertools import chain
from typing import Any

import pytest

from lagwise.config import CapacitySettings
from lagwise.domain.capacity.scaling import ScalingPolicy, Why
from lagwise.tables.analysis import GROUP_HISTORY, GROUP_STATUS, PARTITION_STATUS
from lagwise.tables.capacity import DEMAND, TOPIC_HOURS
from lagwise.tables.raw import GROUPS
from lagwise.tables.service_times import SERVICE_TIMES
from lagwise.tables.store import Lake
from lagwise_app.scaling.lake_cache import LakeCache
from lagwise_app.scaling.signal import signal
from lagwise_spark.jobs.capacity import AGAIN_AFTER, AGAIN_WHILE_BEHIND, plan
from tests.app.judged import append, group, partition
from tests.spark.capacity_rows import (
    EIGHT_CORES,
    NOW,
    burst,
    demand,
    five_minutes,
    judged_again,
    probed,
    reads,
    rows,
    seen,
    some,
)

pytestmark = pytest.mark.thorough


def test_everything_that_is_known(lake: Lake) -> None:
    reads(lake, "billing")
    demand(lake, 600.0, 900.0)
    seen(lake, 1_500.0)
    assert plan(lake, CapacitySettings(), NOW, objective_of=five_minutes) == 1
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
    plan(lake, CapacitySettings(), NOW, objective_of=five_minutes)
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
    plan(lake, CapacitySettings(), NOW, objective_of=five_minutes)
    found = rows(lake)["billing"]
    assert found["hottest_share"] == pytest.approx(3 / 27)
    [reported] = [i for i in found["inputs"] if i["name"] == "hottest_share"]
    assert (reported["samples"], reported["measured_at"]) == (48 * 27_000, NOW)


def test_when_it_ends(lake: Lake) -> None:
    """What is forecast are hours; the peak of minutes is as far above them on the way as at the horizon."""
    reads(lake, "billing")
    demand(lake, 600.0, 900.0)
    seen(lake, 1_128.0)
    plan(lake, CapacitySettings(), NOW, objective_of=five_minutes)
    found = rows(lake)["billing"]
    # 750/s are half-way between the two peaks, and 70 % of the low end, 1,071.6/s.
    assert found["verdict"] == "tight"
    assert found["enough_until"] == pytest.approx(NOW + timedelta(days=46), abs=timedelta(days=1))
    assert (found["is_exceeded"], found["demand_per_second"]) == (False, 600.0)
    assert found["forecast_demand_per_second"] == pytest.approx(900.0, rel=0.01)
    assert found["forecast_demand_high_per_second"] > found["forecast_demand_per_second"]


def test_a_probe_with_cores(lake: Lake) -> None:
    """The hour before the newest measurement counts, each by its messages; two tellers of the same are one."""
    reads(lake, "billing", members=2)
    demand(lake)
    probed(lake, 5, 0.010, 0.003, 30_000)
    probed(lake, 5, 0.010, 0.003, 30_000)
    probed(lake, 20, 0.020, 0.003, 10_000)
    probed(lake, 70, 9.0, 9.0, 10_000)
    plan(lake, EIGHT_CORES, NOW, objective_of=five_minutes)
    found = rows(lake)["billing"]
    assert (found["capacity_source"], found["cores"], found["threads_per_node"]) == ("probe", 8.0, 20)
    assert found["t1_seconds"] == pytest.approx(0.0125)
    assert found["concurrency"] == "pool"
    judged_again(lake)
    plan(lake, CapacitySettings(), NOW + AGAIN_AFTER, objective_of=five_minutes)
    assert rows(lake)["billing"]["verdict"] == "undecided"  # whose nodes nobody knows


def test_the_probe_reports_the_cores_and_the_threads_of_all_processes_of_a_host(lake: Lake) -> None:
    """Two processes on one host, of which one has told twice, and earlier under another member's name; one on another
    host, with more cores. A setting counts more."""
    reads(lake, "billing", members=3)
    demand(lake)
    probed(lake, 30, 0.012, 0.003, 9_000, threads=8, cores=4.0, member_id="before a rebalance")
    probed(lake, 5.4, 0.012, 0.003, 9_000, threads=8, cores=4.0, member_id="a")
    probed(lake, 5.2, 0.012, 0.003, 9_000, threads=10, cores=4.0, member_id="a")
    probed(lake, 5.1, 0.012, 0.003, 9_000, threads=10, cores=4.0, member_id="b")
    probed(lake, 9, 0.012, 0.003, 9_000, threads=30, cores=6.0, member_id="c", host="10.0.0.1")
    plan(lake, CapacitySettings(), NOW, objective_of=five_minutes)
    found = rows(lake)["billing"]
    assert (found["cores"], found["threads_per_node"]) == (5.0, 25)
    (cores,) = [i for i in found["inputs"] if i["name"] == "cores"]
    assert cores["source"] == "probe"
    judged_again(lake)
    plan(lake, EIGHT_CORES, NOW, objective_of=five_minutes)
    assert rows(lake)["billing"]["cores"] == 8.0


def test_a_downstream_that_is_full(lake: Lake) -> None:
    """Measured behind a stub that serves four calls at a time: 5, 10, 30 and 40 workers of one process, half an hour
    each, a measurement each 10 s. Once there are two processes for two minutes: that is no number of threads."""
    reads(lake, "billing", members=1, partitions=48)
    demand(lake, 150.0)
    shown = ((5, 0.049, 117), (10, 0.068, 118), (30, 0.234, 108), (40, 0.322, 123))

    def measured(minutes_ago: range, threads: int, t1: float, rate: float, member: str) -> list[dict[str, Any]]:
        of_each = {"t1_seconds": t1, "t2_seconds": 0.001, "run_queue_seconds": 0.0, "messages": rate * 10}
        of_each |= {"threads": threads, "window_seconds": 10.0, "cores": 2.0, "member_id": member, "host": "10.0.0.0"}
        moments = [NOW - timedelta(minutes=m, seconds=s) for m in minutes_ago for s in range(0, 60, 10)]
        shared = {"source": "probe", "partition": 0, **of_each}
        return [some(SERVICE_TIMES, sampled_at=at, measured_at=at, **shared) for at in moments]

    histories = [
        measured(range(begins, begins - 18, -1), threads, t1, rate, f"of {threads} threads")
        for begins, (threads, t1, rate) in zip((140, 110, 80, 30), shown, strict=True)
    ]
    append(lake, SERVICE_TIMES, *chain(*histories), *measured(range(30, 28, -1), 40, 0.7, 60, "stops"))
    plan(lake, CapacitySettings(), NOW, objective_of=five_minutes)
    found = rows(lake)["billing"]
    said = "Downstream is full at about 116/s: more threads, nodes or partitions would not help."
    assert found["advice"].startswith(f"{said} 5 threads did 117/s with a T1 of 49 ms; 40 threads did 123/s with")
    assert said in found["sentence"]
    assert (found["binds"], found["advised_nodes"], found["advised_partitions"]) == ("downstream", None, None)
    assert found["change"] is None
    assert found["capacity_high_per_second"] == pytest.approx(116.5)
    inputs = {one["name"]: one for one in found["inputs"]}
    assert inputs["downstream_rate_per_second"]["source"].startswith("5 threads did 117/s")
    assert inputs["downstream_members"]["value"] == 1.0

    # An autoscaler asks, with a lag that would take many replicas: it keeps what runs.
    append(lake, GROUP_STATUS, group("billing", "falling_behind", as_of=NOW, members=1, state="Stable"))
    minutes = [NOW - timedelta(minutes=n) for n in range(60)]
    append(lake, GROUPS, *[some(GROUPS, group="billing", member_count=1, sampled_at=at) for at in minutes])
    append(
        lake,
        GROUP_HISTORY,
        *[
            some(GROUP_HISTORY, group="billing", status="ok", lag=500_000, produce_rate_per_second=150.0, as_of=at)
            for at in minutes
        ],
    )
    policy = ScalingPolicy(max_replicas=24)
    answer = signal(LakeCache(lake), found["cluster"], "billing", policy, NOW, stale_after_seconds=900.0)
    assert (answer.desired.replicas, answer.desired.why) == (1, Why.DOWNSTREAM_FULL)
    assert answer.desired.needed > 1


def test_nothing_is_known(lake: Lake) -> None:
    reads(lake, "billing")
    assert plan(lake, CapacitySettings(), NOW, objective_of=five_minutes) == 1
    found = rows(lake)["billing"]
    assert (found["verdict"], found["capacity_source"], found["confidence"]) == ("undecided", "none", "none")
    assert found["advice"] is None
    assert found["sentence"].endswith(".")


def test_undecided_comes_with_a_load_test_for_what_is_needed(lake: Lake) -> None:
    reads(lake, "billing")
    demand(lake, 600.0, 900.0)
    seen(lake, None)
    assert plan(lake, CapacitySettings(), NOW, objective_of=five_minutes) == 1
    found = rows(lake)["billing"]
    assert found["verdict"] == "undecided"
    assert "Stop the group for " in found["sentence"]
    assert found["sentence"].endswith("If it has caught up sooner, it does more than 1,286 records/s.")


def test_the_stalest_first_and_each_in_its_turn(lake: Lake) -> None:
    for name in ("a", "b", "c"):
        reads(lake, name)
    assert plan(lake, CapacitySettings(), NOW, objective_of=five_minutes, at_most=2) == 2
    assert set(rows(lake)) == {"a", "b"}
    assert plan(lake, CapacitySettings(), NOW, objective_of=five_minutes, at_most=2) == 1
    assert set(rows(lake)) == {"a", "b", "c"}
    assert plan(lake, CapacitySettings(), NOW, objective_of=five_minutes, at_most=2) == 0
    judged_again(lake)
    assert plan(lake, CapacitySettings(), NOW + AGAIN_AFTER, objective_of=five_minutes, at_most=2) == 2


def test_a_group_that_is_behind_is_judged_again_after_a_minute(lake: Lake) -> None:
    for name in ("late", "well"):
        reads(lake, name)
    append(lake, GROUP_STATUS, group("late", "lagging", behind_since=NOW), group("well", "ok"))
    assert plan(lake, CapacitySettings(), NOW, objective_of=five_minutes) == 2
    judged_again(lake, AGAIN_WHILE_BEHIND)
    assert plan(lake, CapacitySettings(), NOW, objective_of=five_minutes) == 1


def test_where_nothing_is_collected_nothing_is_judged_again(lake: Lake) -> None:
    reads(lake, "billing")
    assert plan(lake, CapacitySettings(), NOW, objective_of=five_minutes) == 1
    assert plan(lake, CapacitySettings(), NOW + 3 * AGAIN_AFTER, objective_of=five_minutes) == 0


def test_an_empty_lake(lake: Lake) -> None:
    assert plan(lake, CapacitySettings(), NOW, objective_of=five_minutes) == 0


def test_the_scaling_signal_uses_it(lake: Lake) -> None:
    reads(lake, "billing")
    demand(lake)
    seen(lake, 1_500.0)
    plan(lake, CapacitySettings(), NOW, objective_of=five_minutes)
    append(lake, GROUP_STATUS, group("billing", "ok", as_of=NOW, members=4))
    past = [NOW - timedelta(minutes=n) for n in range(30)]
    append(
        lake,
        GROUP_HISTORY,
        *[some(GROUP_HISTORY, as_of=at, status="ok", lag=0, produce_rate_per_second=150.0) for at in past],
    )
    members = [some(GROUPS, sampled_at=at, member_count=4) for at in past]
    append(lake, GROUPS, *members)
    found = signal(LakeCache(lake), "shop", "billing", ScalingPolicy(), NOW, stale_after_seconds=60.0)
    assert (found.desired.replicas, found.desired.why) == (1, Why.FEWER_NEEDED)
    assert found.replica_rate_per_second == 375.0


@pytest.mark.parametrize(
    ("more", "t2", "source"),
    [
        # 10 s of 1,000 messages a second: 1 ms in the handler and 0.3 ms beside it.
        ({"process_cpu_seconds": 0.0013}, 0.0013, "probe: 1 ms in the handler and 300 µs elsewhere in the process"),
        ({}, 0.001, "probe"),
        # What a process computes while it waits for a message a second is no message's cost.
        ({"process_cpu_seconds": 0.02, "messages": 10}, 0.001, "probe"),
    ],
)
def test_fetching_and_committing_are_sized_with_the_handler(
    lake: Lake, more: dict[str, Any], t2: float, source: str
) -> None:
    reads(lake, "billing")
    demand(lake, 600.0, 900.0)
    values = {"cores": 8.0, "window_seconds": 10.0, "messages": 10_000} | more
    probed(lake, 1, 0.009, 0.001, **values)
    plan(lake, CapacitySettings(), NOW, objective_of=five_minutes)
    found = rows(lake)["billing"]
    assert found["t2_seconds"] == pytest.approx(t2)
    assert {i["name"]: i["source"] for i in found["inputs"]}["t2_seconds"] == source


def test_it_is_told_by_where_there_were_many_messages(lake: Lake) -> None:
    """The night's idle hours do not make a message dearer."""
    reads(lake, "billing")
    demand(lake, 600.0, 900.0)
    busy = {"cores": 8.0, "window_seconds": 10.0}
    probed(lake, 1, 0.009, 0.001, 10_000, process_cpu_seconds=0.0013, **busy)
    probed(lake, 2, 0.009, 0.001, 400, process_cpu_seconds=0.005, **busy)
    plan(lake, CapacitySettings(), NOW, objective_of=five_minutes)
    assert rows(lake)["billing"]["t2_seconds"] == pytest.approx(0.0013)


def test_what_got_slower_is_sized_with_as_it_is_now(lake: Lake) -> None:
    reads(lake, "billing")
    demand(lake, 600.0, 900.0)
    for minute in range(55):
        probed(lake, 58 - minute, 0.012 if minute < 52 else 0.048, 0.003, 3_000, cores=8.0)
    plan(lake, CapacitySettings(), NOW, objective_of=five_minutes)
    found = rows(lake)["billing"]
    assert found["t1_seconds"] == pytest.approx(0.048)
    source = {i["name"]: i["source"] for i in found["inputs"]}["t1_seconds"]
    assert source == f"probe (12 ms until {NOW - timedelta(minutes=6):%H:%M} UTC)"


def test_advice_goes_by_the_objective_and_the_peak_stays_beside_it(lake: Lake) -> None:
    reads(lake, "billing", partitions=48)
    demand(lake, 3_000.0, later=3_300.0, objective_rates=burst(3_000.0))
    seen(lake, 1_500.0)
    plan(lake, CapacitySettings(), NOW, objective_of=five_minutes)
    row = rows(lake)["billing"]
    assert (row["size_by"], row["objective_seconds"]) == ("objective", 300.0)
    needed = 3_000 * 120 / 420
    assert row["objective_rate_per_second"] == pytest.approx(needed)
    # The forecast's busiest hour is 10 % above the recorded ones, and its interval ends another 10 % above.
    assert row["planned_objective_rate_per_second"] == pytest.approx(1.1 * 1.1 * needed)
    assert row["peak_rate_per_second"] == 3_000.0
    # Demand is what the objective takes, today and ahead.
    assert row["demand_per_second"] == pytest.approx(needed)
    assert row["forecast_demand_per_second"] == pytest.approx(1.1 * needed)
    assert row["forecast_demand_high_per_second"] == pytest.approx(1.1 * 1.1 * needed)
    assert row["sentence"].startswith("857 messages/s keep the objective of 5 min; it can do 1,425 to 1,575")
    assert row["verdict"] == "enough"
    assert "the objective of 5 min takes 1,037 messages/s, the highest minute 3,300" in row["advice"]
    inputs = {i["name"]: i for i in row["inputs"]}
    evidence = "the busiest 2 minutes from 2026-11-19 12:00 UTC decide, of 20 d 20 h recorded"
    assert inputs["objective_rate_per_second"]["source"] == evidence
    assert inputs["objective_rate_per_second"]["samples"] == 30_000
    assert inputs["planned_objective_per_second"]["source"] == (
        f"{evidence}; raised by a factor of 1.21 to the upper end of the forecast for 2027-02-20"
    )

    judged_again(lake)
    by_peak = CapacitySettings.model_validate({"size_by": "peak"})
    plan(lake, by_peak, NOW + AGAIN_AFTER, objective_of=five_minutes)
    peak = rows(lake)["billing"]
    assert (peak["size_by"], peak["verdict"], peak["is_exceeded"]) == ("peak", "short", True)
    assert peak["demand_per_second"] == 3_000.0
    assert peak["advised_nodes"] > 2 * row["advised_nodes"]
    assert peak["objective_rate_per_second"] == row["objective_rate_per_second"]


def test_a_longer_objective_takes_less(lake: Lake) -> None:
    reads(lake, "billing")
    demand(lake, 3_000.0, objective_rates=burst(3_000.0))
    seen(lake, 1_500.0)
    plan(lake, CapacitySettings(), NOW, objective_of=lambda cluster, group: 1_800.0)
    row = rows(lake)["billing"]
    assert row["objective_rate_per_second"] == row["planned_objective_rate_per_second"]
    assert row["objective_rate_per_second"] == pytest.approx(3_000 * 120 / 1_920)


def test_a_longer_burst_than_any_so_far_is_planned_for_up_to_the_highest_minute(lake: Lake) -> None:
    reads(lake, "billing")
    demand(lake, 3_000.0, objective_rates=burst(3_000.0, high=1.5))
    seen(lake, 1_500.0)
    plan(lake, CapacitySettings(), NOW, objective_of=five_minutes)
    row = rows(lake)["billing"]
    assert row["planned_objective_rate_per_second"] == pytest.approx(1.5 * 3_000 * 120 / 420)
    inputs = {i["name"]: i["source"] for i in row["inputs"]}
    assert inputs["planned_objective_per_second"].endswith(
        "recorded; raised by a factor of 1.5 to the upper end of what a week takes"
    )
    judged_again(lake)
    lake.replace(DEMAND, DEMAND.from_rows([]))
    demand(lake, 3_000.0, objective_rates=burst(3_000.0, high=50.0))
    plan(lake, CapacitySettings(), NOW + AGAIN_AFTER, objective_of=five_minutes)
    assert rows(lake)["billing"]["planned_objective_rate_per_second"] == 3_000.0


def test_without_two_days_of_minutes_the_peak_decides(lake: Lake) -> None:
    reads(lake, "billing")
    demand(lake, 600.0)
    seen(lake, 1_500.0)
    plan(lake, CapacitySettings(), NOW, objective_of=five_minutes)
    row = rows(lake)["billing"]
    assert (row["size_by"], row["objective_rate_per_second"]) == ("peak", None)
    assert row["sentence"].startswith("600 messages/s arrive at peak")
