"""Capacity from the times that engines tell: Flink's busy time, RocketMQ's consume RT."""

from datetime import timedelta
from typing import Any

import pytest

from lagwise.config import CapacitySettings
from lagwise.tables.analysis import PARTITION_STATUS
from lagwise.tables.raw import GROUPS
from lagwise.tables.service_times import JOBS, SERVICE_TIMES
from lagwise.tables.store import Lake
from lagwise_spark.jobs.capacity import plan
from tests.app.judged import append, partition
from tests.spark.capacity_rows import EIGHT_CORES, NOW, demand, five_minutes, probed, reads, rows, some

pytestmark = pytest.mark.thorough


def of_job(
    lake: Lake,
    seconds_ago: float,
    busy: float | None,
    *,
    job: str = "j1",
    group: str = "billing",
    slots: tuple[int, int] | None = (8, 2),
) -> None:
    """A look at a job of two vertices, of which the second bounds it; ``slots`` of its cluster are all and the free."""
    idle = {"backpressured_share": 0.0, "idle_share": 0.5, "records_in_per_second": 1.0, "records_out_per_second": 1.0}
    source = {"name": "Source: orders", "parallelism": 1, "slots_held": 4, "busy_share": 0.05} | idle
    price = {"name": "price", "parallelism": 4, "slots_held": 4, "busy_share": busy} | idle
    total, free = slots or (None, None)
    append(
        lake,
        JOBS,
        some(JOBS, sampled_at=NOW - timedelta(seconds=seconds_ago), group=group, job_id=job, job="orders-job",
             source="flink", slots_total=total, slots_free=free, vertices=[source, price]),
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
    plan(lake, CapacitySettings(), NOW, objective_of=five_minutes)
    found = rows(lake)["billing"]
    assert (found["capacity_source"], found["members"]) == ("busy_time", 4)
    assert found["capacity_high_per_second"] == pytest.approx(2_400.0)
    assert found["member_rate_per_second"] == pytest.approx(500.0)
    inputs = {i["name"]: (i["value"], i["source"], i["samples"]) for i in found["inputs"]}
    assert inputs["busy_share"] == (pytest.approx(0.6), "busy time of the vertex price", 2)


@pytest.mark.parametrize(
    ("slots", "free", "sentence"),
    [
        ((8, 4), 4, "The task slots for 6 subtasks are there: the job holds 4, and 4 are free."),
        ((8, 1), 1, "For 6 subtasks 1 more task slot is needed (the job holds 4, and 1 is free); where TaskManagers"),
        (
            (0, 0),
            None,
            "For 6 subtasks the job takes 2 more task slots than the 4 that it holds; how many are free is not",
        ),
    ],
)
def test_the_verdict_of_a_job_states_whether_there_are_slots_for_more_subtasks(
    lake: Lake, slots: tuple[int, int], free: int | None, sentence: str
) -> None:
    """Of 500 records a second each, 2,000 at peak need six subtasks with slack."""
    append(
        lake,
        PARTITION_STATUS,
        *[partition("billing", n, as_of=NOW, produce_rate_per_second=100.0, consume_rate_per_second=100.0, owner="j1")
          for n in range(12)],
    )  # fmt: skip
    demand(lake, peak=2_000.0)
    of_job(lake, 15, 0.6, slots=slots)
    of_job(lake, 0, 0.6, slots=None)  # Flink did not tell them this time
    plan(lake, CapacitySettings(), NOW, objective_of=five_minutes)
    found = rows(lake)["billing"]
    assert (found["advised_nodes"], found["slots_held"], found["slots_free"]) == (6, 4, free)
    assert sentence in found["advice"]
    assert ("slots_free" in {i["name"] for i in found["inputs"]}) == (free is not None)


def test_a_job_without_recent_samples_has_no_measured_capacity(lake: Lake) -> None:
    reads(lake, "billing")
    demand(lake)
    of_job(lake, 601, 0.5)
    of_job(lake, 0, 0.5, group="another")
    plan(lake, CapacitySettings(), NOW, objective_of=five_minutes)
    assert rows(lake)["billing"]["capacity_source"] == "none"
    assert rows(lake)["billing"]["members"] == 4
    assert rows(lake)["billing"]["slots_held"] is None


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
    plan(lake, CapacitySettings(), NOW, objective_of=five_minutes)
    found = rows(lake)["billing"]
    assert found["capacity_source"] == "consume_rt"
    assert found["member_rate_per_second"] == pytest.approx(threads / 0.075 / 2)
    inputs = {i["name"]: (i["value"], i["samples"]) for i in found["inputs"]}
    assert inputs["seconds_per_message"] == (pytest.approx(0.075), 6_000)


def test_probe_and_engine_measurements_are_not_mixed(lake: Lake) -> None:
    reads(lake, "billing", members=2)
    demand(lake, 200.0)
    probed(lake, 1, 0.012, 0.003, 5_000)
    took(lake, 0, "m0", 0.05, 1_000)
    plan(lake, EIGHT_CORES, NOW, objective_of=five_minutes)
    found = rows(lake)["billing"]
    assert (found["t1_seconds"], found["t2_seconds"]) == (0.012, 0.003)


def test_members_of_a_broadcasting_group_do_not_add_up(lake: Lake) -> None:
    """Each of them handles every message: two do no more than one."""
    reads(lake, "billing", members=2)
    demand(lake, 200.0)
    append(lake, GROUPS, some(GROUPS, sampled_at=NOW, type="broadcasting"))
    took(lake, 0, "m0", 0.05, 1_000)
    took(lake, 0, "m1", 0.05, 1_000)
    plan(lake, CapacitySettings(), NOW, objective_of=five_minutes)
    assert rows(lake)["billing"]["capacity_source"] == "none"
