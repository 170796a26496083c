"""When the benchmark of causes counts a group as right."""

from benchmarks.causes.__main__ import GOAL_SECONDS, Named
from lagwise.domain.what_changed.change import ChangeKind

WAITING, STORM = ChangeKind.WAITING_ROSE, ChangeKind.REBALANCES


def test_the_right_kind_in_time_and_for_good() -> None:
    named = Named("slow", WAITING)
    assert not named.is_right
    named.see(STORM, "It rebalances.", 20.0)
    assert not named.is_right
    named.see(WAITING, "T1 rose.", 60.0)
    named.see(WAITING, "T1 rose more.", 300.0)
    assert named.is_right
    assert (named.kinds, named.after_seconds, named.sentence) == ([STORM, WAITING], 60.0, "T1 rose more.")
    named.see(STORM, "It rebalances.", 310.0)
    assert not named.is_right


def test_too_late_is_wrong() -> None:
    named = Named("slow", WAITING)
    named.see(WAITING, "T1 rose.", GOAL_SECONDS + 1)
    assert not named.is_right


def test_whatever_is_named_of_a_healthy_group_is_wrong() -> None:
    named = Named("healthy", None)
    assert named.is_right
    named.see(WAITING, "T1 rose.", -1.0)
    assert not named.is_right
