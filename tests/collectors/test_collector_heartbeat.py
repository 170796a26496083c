"""The heartbeat of a collector: each cluster by name where there are few, those with trouble where there are many."""

import os
from pathlib import Path

import pytest

from lagwise.platform import health
from lagwise_collectors.collector_heartbeat import CollectorHeart


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path


def heart_of(state: Path, count: int) -> CollectorHeart:
    return CollectorHeart(health.Heart(state, health.COLLECTOR), [f"c{number}" for number in range(count)])


def line(state: Path) -> str:
    return health.read(state)[health.COLLECTOR].line


def test_few_clusters_are_reported_one_by_one(state: Path) -> None:
    heart = heart_of(state, 2)
    heart.beat("c1", "c1: 3 groups in 0.1 s, no errors", is_well=True)
    assert line(state) == "c0: first sample under way · c1: 3 groups in 0.1 s, no errors"


def test_of_many_clusters_only_those_with_trouble_are_named(state: Path) -> None:
    heart = heart_of(state, 50)
    for number in range(48):
        heart.beat(f"c{number}", f"c{number}: 3 groups in 0.1 s, no errors", is_well=True)
    assert line(state) == "48 of 50 clusters are read without errors · 2: first sample under way"
    heart.beat("c48", "c48: 3 groups in 0.1 s, no errors", is_well=True)
    heart.beat("c49", "c49: cannot be read (unreachable)", is_well=False)
    assert line(state) == "49 of 50 clusters are read without errors · c49: cannot be read (unreachable)"


def test_a_collector_that_only_waits_leaves_the_heartbeat_of_the_other_alone(state: Path) -> None:
    heart_of(state, 1).beat("c0", "c0: 3 groups in 0.1 s, no errors", is_well=True)
    waiting = heart_of(state, 2)
    for name in ("c0", "c1"):
        waiting.beat(name, f"{name}: waits", is_well=False, waiting_for=os.getpid())
    # After the first report one of its clusters may still be this process's own; after both, none is.
    waiting.beat("c0", "c0: still waits", is_well=False, waiting_for=os.getpid())
    assert "still waits" not in line(state)
