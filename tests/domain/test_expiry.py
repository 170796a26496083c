"""When the committed offsets of a group without members will be forgotten, by the rules of KIP-211."""

import pytest

from lagwise.domain.ownership import GroupFacts, seconds_to_expiry

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
)


@pytest.mark.parametrize(
    ("state", "kind", "empty_since", "committed_since", "committed_at", "seconds"),
    [case[1:] for case in CASES],
    ids=[case[0] for case in CASES],
)
def test_seconds_to_expiry(
    state: str,
    kind: str,
    empty_since: float | None,
    committed_since: float,
    committed_at: float | None,
    seconds: float | None,
) -> None:
    facts = GroupFacts(state=state, type=kind, empty_since=empty_since)
    assert seconds_to_expiry(facts, committed_since, NOW, KEPT, committed_at=committed_at) == seconds


def test_without_a_known_retention_there_is_no_expiry_time() -> None:
    facts = GroupFacts(state="Empty", type="classic", empty_since=100.0)
    assert seconds_to_expiry(facts, 100.0, NOW, None, committed_at=100.0) is None
