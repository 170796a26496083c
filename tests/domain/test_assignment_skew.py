"""Figures, the bound, and how near to it an assignment comes."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lagwise.domain.assignment.bound import BoundCause, lower_bound, spread_evenly, useful_members
from lagwise.domain.assignment.model import Partition
from lagwise.domain.assignment.skew import figures, hottest, known_rates

T = "t"


def rated(*rates: float) -> dict[Partition, float]:
    return {(T, number): rate for number, rate in enumerate(rates)}


def owned(**numbers: tuple[int, ...]) -> dict[str, frozenset[Partition]]:
    return {member: frozenset((T, number) for number in mine) for member, mine in numbers.items()}


class TestFigures:
    def test_by_hand(self) -> None:
        found = figures(owned(a=(0, 1, 2), b=(3,), c=()), rated(10, 20, 30, 40))
        assert (found.members, found.idle_members, found.most_partitions) == (3, 1, 3)
        assert found.skew_by_count == pytest.approx(3 / (4 / 3))
        assert (found.busiest, found.busiest_share) == ("a", 0.6)
        assert found.skew_by_rate == pytest.approx(60 / (100 / 3))

    def test_shares_are_of_all_traffic_including_unowned_partitions(self) -> None:
        found = figures(owned(a=(0,), b=(1,)), rated(10, 10, 20))
        assert found.busiest_share == 0.25
        assert found.skew_by_rate == 1.0

    def test_of_equally_busy_members_the_first_is_named(self) -> None:
        assert figures(owned(b=(0,), a=(1,)), rated(5, 5)).busiest == "a"

    @pytest.mark.parametrize("rates", [None, rated(0, 0)], ids=["unknown", "no traffic"])
    def test_without_traffic_there_are_no_shares(self, rates: dict[Partition, float] | None) -> None:
        found = figures(owned(a=(0, 1), b=()), rates)
        assert (found.busiest, found.busiest_share, found.skew_by_rate) == (None, None, None)
        assert (found.skew_by_count, found.idle_members) == (2.0, 1)
        assert hottest(rates) is None

    def test_who_owns_nothing_is_not_skewed(self) -> None:
        found = figures(owned(a=(), b=()), rated(1))
        assert (found.skew_by_count, found.busiest_share, found.idle_members) == (None, None, 2)
        assert figures({}, rated(1)).members == 0

    def test_one_unknown_rate_makes_the_shares_unknown(self) -> None:
        partitions = [(T, 0), (T, 1)]
        assert known_rates(partitions, {(T, 0): 1.0, (T, 1): None}) is None
        assert known_rates(partitions, {(T, 0): 1.0}) is None
        assert known_rates(partitions, {(T, 0): 1.0, (T, 1): 0.0, (T, 2): None}) == {(T, 0): 1.0, (T, 1): 0.0}

    def test_the_hottest_partition(self) -> None:
        assert hottest(rated(10, 30, 30, 10)) == ((T, 1), 0.375)


#: Rates, members, the bound, why.
BOUNDS = [
    ((55, 15, 15, 15), 4, 55, BoundCause.HOTTEST_PARTITION),
    ((25, 25, 25, 25), 2, 50, BoundCause.EVEN_SHARE),
    ((10, 10, 10, 1), 4, 10, BoundCause.HOTTEST_PARTITION),
    # Four like partitions on three members: somebody has two of them.
    ((10, 10, 10, 10), 3, 20, BoundCause.TOGETHER),
    # Seven on three: somebody has three, and the least that three of the first seven can be is 8 + 7 + 6.
    ((9, 9, 9, 9, 8, 7, 6), 3, 21, BoundCause.TOGETHER),
    ((5,), 1, 5, BoundCause.HOTTEST_PARTITION),
    ((3, 2), 1, 5, BoundCause.EVEN_SHARE),
]  # fmt: skip


@pytest.mark.parametrize(("rates", "members", "bound", "cause"), BOUNDS)
def test_the_bound_by_hand(rates: tuple[float, ...], members: int, bound: float, cause: BoundCause) -> None:
    found = lower_bound(rates, members)
    assert (found.rate, found.cause) == (pytest.approx(bound), cause)


def test_a_bound_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="members"):
        lower_bound([1.0], 0)
    with pytest.raises(ValueError, match="rates"):
        lower_bound([], 1)


rates = st.lists(st.integers(0, 100).map(float), min_size=1, max_size=7)


@given(rates, st.integers(1, 4))
def test_no_assignment_beats_the_bound_and_the_spread_keeps_its_guarantee(values: list[float], members: int) -> None:
    names = [f"m{number}" for number in range(members)]
    best = min(
        max(sum(rate for rate, owner in zip(values, choice, strict=True) if owner == name) for name in names)
        for choice in itertools.product(names, repeat=len(values))
    )
    bound = lower_bound(values, members)
    assert bound.rate <= best + 1e-9
    spread = spread_evenly(rated(*values), names)
    assert sorted(p for mine in spread.values() for p in mine) == sorted(rated(*values))
    busiest = max(sum(rated(*values)[p] for p in mine) for mine in spread.values())
    assert best <= busiest <= best * (4 / 3 - 1 / (3 * members)) + 1e-9


@given(rates)
def test_more_than_the_useful_members_do_not_help(values: list[float]) -> None:
    members = useful_members(values)
    assert 1 <= members <= len(values)
    spread = spread_evenly(rated(*values), [f"m{number}" for number in range(members)])
    busiest = max(sum(rated(*values)[p] for p in mine) for mine in spread.values())
    assert busiest == max(values) or sum(values) == 0


@pytest.mark.parametrize(
    ("values", "members"), [((55, 15, 15, 15), 2), ((10, 10, 10), 3), ((3, 2, 2, 2), 4), ((7, 0, 0), 1), ((0, 0), 1)]
)
def test_useful_members_by_hand(values: tuple[float, ...], members: int) -> None:
    assert useful_members(values) == members


def test_the_spread_is_the_same_whatever_the_order_of_members() -> None:
    values = rated(5, 4, 3, 3, 1)
    assert spread_evenly(values, ["a", "b"]) == spread_evenly(values, ["b", "a"])
    assert spread_evenly(values, ["a", "b"]) == owned(a=(0, 3), b=(1, 2, 4))
