"""When the committed offsets of a group without members will be forgotten, by the rules of KIP-211."""

from collections.abc import Sequence

import numpy as np

from lagwise.domain.verdicts.evidence import seconds_to_expiry
from lagwise.domain.verdicts.ownership import Names, described_by
from tests.domain.observed import times
from tests.traces.judged import plain

KEPT = 1000.0
NOW = 5000.0

# state, type, empty since, committed since (as samples show it), committed at (exactly) → seconds
CASES = (
    ("a group with members keeps its offsets", "Stable", "classic", None, 100.0, None, None),
    ("nor is a group that rebalances without members", "PreparingRebalance", "classic", None, 100.0, None, None),
    ("from when it became empty", "Empty", "classic", 4600.0, 4100.0, None, 600.0),
    ("from the last commit where that came later", "Empty", "classic", 4100.0, 4600.0, None, 600.0),
    ("empty before anyone looked: since it last committed", "Empty", "consumer", None, 4600.0, None, 600.0),
    ("committed again unchanged, which only the exact time shows", "Empty", "classic", 4100.0, 4200.0, 4900.0, 900.0),
    ("it became empty after that", "Empty", "classic", 4950.0, 4200.0, 4900.0, 950.0),
    ("long overdue is now", "Empty", "classic", 100.0, 50.0, None, 0.0),
    ("one that was never a group may commit unchanged unseen", "Empty", "simple", 4600.0, 4600.0, None, None),
    ("unless the time of its commits is known", "Empty", "simple", 4600.0, 4100.0, 4700.0, 700.0),
    ("it never was a group, so when it was seen empty does not count", "Empty", "simple", 4990.0, 0.0, 4100.0, 100.0),
    ("the same when overdue", "Empty", "simple", None, 100.0, 200.0, 0.0),
    ("what a share group has read never expires", "Empty", "share", 4100.0, 4100.0, None, None),
    ("what a streams group has committed does", "Empty", "streams", 4100.0, 4600.0, None, 600.0),
)


def expiries(cases: Sequence[tuple[str, str, float | None, float, float | None]], kept: float) -> list[float | None]:
    states, types, empty_since, committed_since, committed_at = zip(*cases, strict=True)
    names = Names(sorted({*states}), sorted({*types}), ())
    numbers = (np.array([of.index(one) for one in its]) for of, its in ((names.states, states), (names.types, types)))
    rows = described_by(names, *numbers) | {
        "empty_since": times(empty_since),
        "committed_since": times(committed_since),
        "committed_at": times(committed_at),
        "as_of": times([NOW] * len(cases)),
        "offsets_retention_seconds": np.full(len(cases), kept),
    }
    return plain(seconds_to_expiry(rows))


def test_seconds_to_expiry() -> None:
    found = expiries([case[1:6] for case in CASES], KEPT)
    assert dict(zip([case[0] for case in CASES], found, strict=True)) == {case[0]: case[6] for case in CASES}


def test_without_a_known_retention_there_is_no_expiry_time() -> None:
    assert expiries([("Empty", "classic", 100.0, 100.0, 100.0)], np.nan) == [None]
