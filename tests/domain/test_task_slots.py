"""Whether a Flink cluster has the task slots for what is advised."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lagwise.domain.sizing.advice import advise
from lagwise.domain.sizing.task_slots import TaskSlots, free_of, task_slots_for
from lagwise.domain.sizing.workload import Unit, Workload

ON_DEMAND = "; where TaskManagers are started on demand this does not bind."


@pytest.mark.parametrize(
    ("subtasks", "held", "free", "missing", "sentence"),
    [
        (2, 2, 0, 0, "For 2 subtasks the 2 task slots that the job holds are enough."),
        (1, 1, None, 0, "For 1 subtask the 1 task slot that the job holds is enough."),
        (3, 4, 0, 0, "For 3 subtasks the 4 task slots that the job holds are enough."),
        (6, 2, 4, 0, "The task slots for 6 subtasks are there: the job holds 2, and 4 are free."),
        (3, 2, 1, 0, "The task slots for 3 subtasks are there: the job holds 2, and 1 is free."),
        (6, 2, 1, 3, "For 6 subtasks 3 more task slots are needed (the job holds 2, and 1 is free)" + ON_DEMAND),
        (3, 2, 0, 1, "For 3 subtasks 1 more task slot is needed (the job holds 2, and 0 are free)" + ON_DEMAND),
        (6, 2, None, None, "For 6 subtasks the job takes 4 more task slots than the 2 that it holds; how many are "
         "free is not known."),
    ],
)  # fmt: skip
def test_cases(subtasks: int, held: int, free: int | None, missing: int | None, sentence: str) -> None:
    slots = TaskSlots(subtasks, held, free)
    assert (slots.missing, slots.sentence) == (missing, sentence)
    assert slots.as_document() == {"held": held, "free": free, "missing": missing, "sentence": sentence}


@given(st.integers(1, 1000), st.integers(1, 1000), st.integers(0, 1000))
def test_with_the_missing_ones_it_just_fits(subtasks: int, held: int, free: int) -> None:
    missing = TaskSlots(subtasks, held, free).missing
    assert missing is not None
    assert TaskSlots(subtasks, held, free + missing).missing == 0
    assert missing == 0 or TaskSlots(subtasks, held, free + missing - 1).missing == 1


@pytest.mark.parametrize(("total", "free", "told"), [(None, None, None), (0, 0, None), (4, 0, 0), (4, 3, 3)])
def test_a_cluster_without_any_slots_starts_them_on_demand(
    total: int | None, free: int | None, told: int | None
) -> None:
    assert free_of(total, free) == told


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
