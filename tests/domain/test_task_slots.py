"""Whether a Flink cluster has the task slots for what is advised."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lagwise.domain.sizing.advice import advise
from lagwise.domain.sizing.task_slots import TaskSlots, free_of, task_slots_for
from lagwise.domain.sizing.workload import Unit, Workload


@pytest.mark.parametrize(
    ("subtasks", "held", "free", "missing"),
    [
        (2, 2, 0, 0),
        (1, 1, None, 0),
        (3, 4, 0, 0),
        (6, 2, 4, 0),
        (3, 2, 1, 0),
        (6, 2, 1, 3),
        (3, 2, 0, 1),
        (6, 2, None, None),
    ],
)
def test_cases(
    subtasks: int, held: int, free: int | None, missing: int | None, golden_sentence: Callable[..., None]
) -> None:
    slots = TaskSlots(subtasks, held, free)
    assert slots.missing == missing
    assert slots.as_document() == {"held": held, "free": free, "missing": missing, "sentence": slots.sentence}
    golden_sentence(slots.sentence)


@given(st.integers(1, 1000), st.integers(1, 1000), st.integers(0, 1000))
def test_with_the_missing_ones_it_just_fits(subtasks: int, held: int, free: int) -> None:
    missing = TaskSlots(subtasks, held, free).missing
    assert missing is not None
    assert TaskSlots(subtasks, held, free + missing).missing == 0
    assert missing == 0 or TaskSlots(subtasks, held, free + missing - 1).missing == 1


@pytest.mark.parametrize(("total", "free", "expected"), [(None, None, None), (0, 0, None), (4, 0, 0), (4, 3, 3)])
def test_a_cluster_without_any_slots_starts_them_on_demand(
    total: int | None, free: int | None, expected: int | None
) -> None:
    assert free_of(total, free) == expected


def test_only_subtasks_take_slots() -> None:
    asked = {"peak_rate_per_second": 1_000.0, "partitions": 12}
    subtasks = advise(Workload.of_members(0.002, Unit.SUBTASK, **asked))
    assert task_slots_for(subtasks, 2, 1) == TaskSlots(3, 2, 1)
    assert task_slots_for(subtasks, None, 1) is None
    assert task_slots_for(advise(Workload.of_members(0.002, Unit.MEMBER, **asked)), 2, 1) is None
    impossible = advise(Workload.of_members(10.0, Unit.SUBTASK, **asked))
    assert impossible.triple is None
    assert task_slots_for(impossible, 2, 1) is None
    assert task_slots_for(None, 2, 1) is None
