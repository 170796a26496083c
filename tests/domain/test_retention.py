"""When unread records will be deleted. Each row says why its answer is right."""

import pytest

from lagwise.domain.retention import seconds_to_deletion, seconds_to_truncation, soonest

# age of the oldest unread record, retention, growth of the age → seconds to its deletion
DELETIONS = (
    (1, "a group that reads nothing: a second per second", 120.0, 600.0, 1.0, 480.0),
    (2, "one that reads three of four records gets 0.25 s older per second", 120.0, 600.0, 0.25, 1920.0),
    (3, "one that keeps its distance loses nothing", 120.0, 600.0, 0.0, None),
    (4, "one that catches up loses nothing", 120.0, 600.0, -0.5, None),
    (5, "kept forever", 1e9, None, 1.0, None),
    (6, "exactly as old as is kept: at any moment", 600.0, 600.0, 0.0, 0.0),
    (7, "older than is kept (its segment is not closed yet): at any moment", 700.0, 600.0, 0.0, 0.0),
    (8, "a retention of 0 keeps nothing", 0.0, 0.0, 0.0, 0.0),
)


@pytest.mark.parametrize(
    ("age", "retention", "growth", "seconds"), [r[2:] for r in DELETIONS], ids=[f"{r[0]} {r[1]}" for r in DELETIONS]
)
def test_deletion(age: float, retention: float | None, growth: float, seconds: float | None) -> None:
    assert seconds_to_deletion(age, retention, growth) == seconds


# records between log start and group, records deleted per second, records read per second → seconds
TRUNCATIONS = (
    (1, "20 per second are deleted, none read", 1000, 20.0, 0.0, 50.0),
    (2, "20 are deleted, 15 read: the distance melts by 5", 1000, 20.0, 15.0, 200.0),
    (3, "as fast as what is deleted", 1000, 20.0, 20.0, None),
    (4, "faster", 1000, 20.0, 30.0, None),
    (5, "nothing is deleted", 1000, 0.0, 0.0, None),
    (6, "at the edge", 0, 20.0, 0.0, 0.0),
    (7, "beyond the edge is not sooner than now", -50, 20.0, 0.0, 0.0),
)


@pytest.mark.parametrize(
    ("margin", "deleted", "read", "seconds"), [r[2:] for r in TRUNCATIONS], ids=[f"{r[0]} {r[1]}" for r in TRUNCATIONS]
)
def test_truncation(margin: int, deleted: float, read: float, seconds: float | None) -> None:
    assert seconds_to_truncation(margin, deleted, read) == seconds


def test_soonest_leaves_out_what_never_comes() -> None:
    assert soonest(None, 5.0, 3.0) == 3.0
    assert soonest(0.0, 5.0) == 0.0
    assert soonest(None, None) is None
    assert soonest() is None
