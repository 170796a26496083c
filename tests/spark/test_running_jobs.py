"""Findings about jobs from the collector's table: the driver's part of a round, which needs no JVM."""

from typing import Any

from lagwise.tables.raw import GROUPS
from lagwise.tables.service_times import JOBS
from lagwise.tables.store import Lake
from lagwise_spark.jobs.findings import findings_of
from lagwise_spark.jobs.running_jobs import of_jobs
from tests.spark.test_rebalance_stats import append, at, news

NOW = 70.0
KEY = ("shop", "flink-orders")


def sampled(
    lake: Lake, minutes: float, busy: float | None, *, sample: str = "s0", job: str = "j1", **more: Any
) -> None:
    own = {"sample_id": sample, "cluster": "shop", "sampled_at": at(minutes), "group": "flink-orders"}
    price = {
        "name": "price",
        "parallelism": 2,
        "slots_held": 2,
        "busy_share": busy,
        "backpressured_share": 0.0,
        "idle_share": 0.0,
    }
    rates = {"records_in_per_second": 412.0, "records_out_per_second": 412.0}
    counted = {"checkpoint_duration_seconds": 0.2, "checkpoints_completed": 1, "checkpoints_failed": 0}
    append(lake, GROUPS, {**own, "type": "flink", "state": "RUNNING", "checkpoint_interval_seconds": 10.0})
    row = {**own, "source": "jobs", "job_id": job, "job": "orders-job", "vertices": [price | rates], **counted}
    append(lake, JOBS, row | more)


def sentences(lake: Lake) -> list[str]:
    return [finding.sentence for finding in of_jobs(lake, news(NOW)).get(KEY, [])]


def test_a_vertex_is_described_by_its_last_minutes(lake: Lake) -> None:
    sampled(lake, NOW - 6, 0.1, sample="s-6")  # before the last five minutes
    sampled(lake, NOW - 4, None, sample="s-4")  # the first look after the collector was started anew
    sampled(lake, NOW - 2, 0.9, sample="s-2")
    sampled(lake, NOW, 1.0, sample="s1")
    (sentence,) = sentences(lake)
    assert "The vertex price of the job orders-job (2 subtasks) is busy 95 % of the time" in sentence
    (finding,) = findings_of(lake, news(NOW))[KEY]
    assert (finding.kind, finding.sentence) == ("job", sentence)


def test_a_bottleneck_vertex_comes_with_its_free_slots(lake: Lake) -> None:
    sampled(lake, NOW - 1, 1.0, slots_total=4, slots_free=2)
    sampled(lake, NOW, 1.0, sample="s1", slots_total=4, slots_free=1)
    ((finding,),) = of_jobs(lake, news(NOW)).values()
    assert (finding.remedy or "").endswith("partitions. 1 task slot of its cluster is free.")


def test_a_stopped_job_is_left_out(lake: Lake) -> None:
    sampled(lake, NOW - 1, 1.0, sample="s0")
    assert sentences(lake) == []


def test_checkpoints_are_counted_within_the_hour_and_from_each_start_on(lake: Lake) -> None:
    sampled(lake, NOW - 65, 0.0, sample="s-65", checkpoints_completed=0, checkpoints_failed=0)
    sampled(lake, NOW - 50, 0.0, sample="s-50", checkpoints_completed=100, checkpoints_failed=90)
    sampled(lake, NOW - 20, 0.0, sample="s-20", checkpoints_completed=101, checkpoints_failed=94)
    sampled(lake, NOW, 0.0, sample="s1", checkpoints_completed=1, checkpoints_failed=3)  # it began to count anew
    assert sentences(lake) == ["7 checkpoints of the job orders-job failed within the hour, 2 completed."]


def test_another_job_of_the_same_group_does_not_count(lake: Lake) -> None:
    sampled(lake, NOW - 1, 1.0, sample="s0", job="before", checkpoints_failed=50)
    sampled(lake, NOW, 0.1, sample="s1")
    assert sentences(lake) == []
