"""Findings about the job that reads for a group."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from lagwise.domain.job_findings import JobLoad, VertexLoad, job_findings

SOURCE = VertexLoad("Source: kafka-orders", 2, 0.1, 0.8, 0.0)
PRICE = VertexLoad("price", 2, 0.97, 0.0, 412.0)
SINK = VertexLoad("Sink: Writer", 2, 0.05, 0.0, 412.0)
JOB = JobLoad("orders-job", (SOURCE, PRICE, SINK), 10.0, 0.2, 300, 1)


def sentences(job: JobLoad) -> list[str]:
    return [finding.sentence for finding in job_findings(job)]


def test_the_vertex_that_bounds_the_job_is_named_with_what_it_does_and_who_waits(
    golden_sentence: Callable[..., None],
) -> None:
    golden_sentence(*sentences(JOB))


@pytest.mark.parametrize(
    ("free", "end"),
    [(None, ""), (0, " 0 task slots of its cluster are free."), (1, " 1 task slot of its cluster is free.")],
)
def test_the_advice_states_whether_there_are_slots_for_more_subtasks(free: int | None, end: str) -> None:
    (finding,) = job_findings(replace(JOB, slots_free=free))
    assert (finding.remedy or "").endswith(f"Sources can use no more subtasks than their topics have partitions.{end}")


def test_a_job_whose_vertices_have_time_left_has_none_that_bounds_it() -> None:
    assert sentences(replace(JOB, vertices=(SOURCE, replace(PRICE, busy_share=0.89), SINK))) == []


@pytest.mark.parametrize("vertices", [(), (replace(PRICE, busy_share=None),)])
def test_unknown_figures_are_left_out(vertices: tuple[VertexLoad, ...]) -> None:
    assert sentences(replace(JOB, vertices=vertices)) == []


def test_of_a_vertex_alone_nothing_else_is_said(golden_sentence: Callable[..., None]) -> None:
    golden_sentence(*sentences(replace(JOB, vertices=(replace(PRICE, parallelism=1, records_per_second=None),))))


@pytest.mark.parametrize(
    ("completed", "failed"),
    [
        (300, 2),  # some fail at every start: no finding
        (0, 6),
        (1, 2),
        (0, 0),
    ],
)
def test_checkpoints_that_fail(completed: int, failed: int, golden_sentence: Callable[..., None]) -> None:
    job = replace(JOB, vertices=(), checkpoints_completed=completed, checkpoints_failed=failed)
    assert bool(sentences(job)) == (failed > completed)
    golden_sentence(*sentences(job))


def test_a_checkpoint_that_takes_longer_than_they_are_apart(golden_sentence: Callable[..., None]) -> None:
    slow = replace(JOB, vertices=(), checkpoint_duration_seconds=95.0)
    golden_sentence(*sentences(slow))
    assert sentences(replace(slow, checkpoint_duration_seconds=10.0)) == []
    assert sentences(replace(slow, checkpoint_interval_seconds=None)) == []
