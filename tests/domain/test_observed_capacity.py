"""Capacity seen under saturation: right where the truth is known, and silent where nothing was to be seen."""

import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lagwise.domain.capacity.observed import Floor, Undecided, observed_capacity
from lagwise.domain.capacity.observed_text import capacity_sentence, load_test
from lagwise.domain.capacity.saturation import Block
from tests.domain.consumers import World, daily

pytestmark = pytest.mark.thorough

SEEDS = range(5)

SATURATED: dict[str, dict[str, Any]] = {
    "one long outage": {"arrivals": daily(60), "outages": [(2000, 2900)], "hours": 2},
    "eight deployments": {
        "arrivals": daily(60),
        "outages": [(1000 + 2200 * i, 1200 + 2200 * i) for i in range(8)],
        "hours": 5,
    },
    "more arrives than it can do": {"arrivals": daily(130), "hours": 2},
    "checkpoints once a minute": {"arrivals": daily(60), "commit_every": 60.0, "outages": [(2000, 3500)]},
    "few records": {"arrivals": daily(1.2), "capacity": 1.0, "batch": 20, "outages": [(2000, 3500)]},
    "one partition after the other, for a minute or two each": {
        "arrivals": daily(130),
        "batch": 4000,
        "partitions": 8,
        "hours": 2,
    },
    "one partition after the other, for a quarter of an hour each": {
        "arrivals": daily(130),
        "batch": 45_000,
        "partitions": 6,
        "hours": 5,
    },
    "one partition": {
        "arrivals": daily(600),
        "capacity": 1000.0,
        "members": 1,
        "partitions": 1,
        "batch": 5000,
        "commit_every": 20.0,
        "outages": [(2000, 3800)],
    },
}

UNSATURATED: dict[str, dict[str, Any]] = {
    "it keeps up": {"arrivals": daily(60)},
    "nearly all it can do": {"arrivals": daily(70, 0.3), "hours": 5},
    "commits that come with every batch": {"arrivals": daily(60), "commit_every": 1.0, "batch": 2000},
    "checkpoints once a minute": {"arrivals": daily(60), "commit_every": 60.0},
    "checkpoints every five minutes": {"arrivals": daily(60), "commit_every": 300.0},
    "commits twice an hour": {"arrivals": daily(60), "commit_every": 1800.0},
    "records are held back for 100 s": {"arrivals": daily(60), "delay_seconds": 100.0},
    "few records, held back": {"arrivals": daily(2), "delay_seconds": 100.0},
    "short bursts": {"arrivals": lambda t: 150.0 if t % 900 < 60 else 30.0},
    "nothing ever comes": {"arrivals": lambda _: 0.0},
}


def world(case: dict[str, Any], seed: int) -> World:
    return World(**({"capacity": 50.0, "hours": 3.0, "seed": seed} | case))


@pytest.mark.parametrize("case", SATURATED)
def test_it_is_within_a_tenth_of_the_truth_and_the_interval_covers_it(case: str) -> None:
    covered = 0
    for seed in SEEDS:
        made = world(SATURATED[case], seed)
        found = observed_capacity(made.blocks(), made.floors(), members=made.members)
        assert found.rate_per_second == pytest.approx(made.truth, rel=0.1), (case, seed, found)
        assert found.low is not None and found.high is not None
        covered += found.low <= made.truth <= found.high
        assert found.seconds_per_message == pytest.approx(made.members / made.truth, rel=0.12)
        assert found.at_least_per_second is not None
        assert found.at_least_per_second < 1.12 * made.truth
    assert covered >= len(SEEDS) - 1


@pytest.mark.parametrize("case", UNSATURATED)
def test_without_saturation_there_is_none_but_a_lower_bound(case: str) -> None:
    for seed in SEEDS:
        made = world(UNSATURATED[case], seed)
        assert made.blocks() == [], (case, seed)
        found = observed_capacity([], made.floors(), members=made.members)
        assert (found.rate_per_second, found.low, found.high) == (None, None, None)
        assert found.seconds_per_message is None
        assert found.reason is Undecided.NEVER_SATURATED
        assert found.at_least_per_second is None or found.at_least_per_second < 1.05 * made.truth


def test_a_hot_partition_bounds_its_member_and_not_the_group() -> None:
    for seed in SEEDS:
        made = World(
            arrivals=daily(90), capacity=50.0, partitions=2, shares=[0.75, 0.25], hours=2, seed=seed, commit_every=5.0
        )
        assert made.blocks() == []
        hot = observed_capacity(made.blocks([0], 1), members=1)
        assert hot.rate_per_second == pytest.approx(50.0, rel=0.1)
        assert made.blocks([1], 1) == []


def test_what_it_can_do_now_counts_where_it_has_changed() -> None:
    for seed in SEEDS:
        made = World(
            arrivals=daily(60),
            capacity=50.0,
            pace=lambda t: 1.0 if t < 9000 else 0.7,
            outages=[(4000, 4900), (9500, 10400)],
            hours=5,
            seed=seed,
        )
        found = observed_capacity(made.blocks(), made.floors(), members=2)
        assert found.rate_per_second == pytest.approx(70.0, rel=0.1)
        assert found.changed_from_per_second == pytest.approx(100.0, rel=0.1)
        assert found.changed_at is not None and 8900 < found.changed_at < 12_000
        assert "It has changed: before, it was" in capacity_sentence(found)


def blocks(*rates: float, members: int | None = 2, start: float = 0.0, length: float = 120.0) -> list[Block]:
    return [Block(start + i * length, start + (i + 1) * length, rate * length, members) for i, rate in enumerate(rates)]


STEADY = (100.0, 102.0, 98.0, 101.0, 99.0, 100.0)


def test_minutes_with_as_many_members_as_now_come_first() -> None:
    other = blocks(*[50.0] * 20, members=1, start=10_000)
    found = observed_capacity([*blocks(*STEADY), *other], members=2)
    assert (found.rate_per_second, found.is_scaled) == (pytest.approx(100.0), False)
    # Of three there is nothing: in proportion.
    found = observed_capacity(blocks(*STEADY), members=3)
    assert (found.rate_per_second, found.is_scaled, found.members) == (pytest.approx(150.0), True, 3)
    assert "taken in proportion" in capacity_sentence(found)
    # Nobody is there now: of as many as there were last.
    assert observed_capacity(blocks(*STEADY), members=0).members == 2


def test_each_member_is_taken_as_one_thread() -> None:
    assert observed_capacity(blocks(*STEADY), members=2).seconds_per_message == pytest.approx(0.02)
    assert observed_capacity(blocks(*STEADY, members=None)).seconds_per_message is None
    assert observed_capacity(blocks(*STEADY, members=None)).rate_per_second == pytest.approx(100.0)


@pytest.mark.parametrize(
    ("why", "given_blocks", "floors", "reason"),
    [
        ("no history", [], [], Undecided.NEVER_SATURATED),
        ("nine minutes", blocks(*STEADY[:4], length=135.0), [], Undecided.TOO_LITTLE),
        ("two blocks", blocks(100, 100, length=3000.0), [], Undecided.TOO_LITTLE),
        ("it changed a moment ago", [*blocks(*STEADY * 3), *blocks(50, 50, start=9000)], [], Undecided.TOO_LITTLE),
        ("up and down", blocks(100, 20, 150, 30, 100, 170), [], Undecided.UNSTEADY),
        ("too unlike", blocks(100, 60, 130, 80, 100, 120), [], Undecided.IMPRECISE),
        ("more without a backlog", blocks(*STEADY), [Floor(0, 140, 2)], Undecided.EXCEEDED),
    ],
)
def test_it_is_undecided_where(why: str, given_blocks: list[Block], floors: list[Floor], reason: Undecided) -> None:
    found = observed_capacity(given_blocks, floors, members=2)
    assert (found.rate_per_second, found.reason) == (None, reason), why
    assert capacity_sentence(found).startswith("Undecided: ")
    assert load_test(found, 40.0) is not None


def test_those_who_read_other_topics_too_are_not_judged_by_one() -> None:
    found = observed_capacity(blocks(*STEADY), [Floor(0, 70, 2)], members=2, is_shared=True)
    assert (found.rate_per_second, found.reason, found.at_least_per_second) == (None, Undecided.SHARED, 70)
    assert load_test(found, 40.0) is None


def test_a_lower_bound_is_of_as_many_members_and_not_older_than_the_change() -> None:
    assert observed_capacity([], [Floor(0, 90, 3)], members=2).at_least_per_second == pytest.approx(60)
    assert observed_capacity([], [Floor(0, 90, 1)], members=2).at_least_per_second == pytest.approx(90)
    changed = [*blocks(*STEADY), *blocks(*[50.0, 51.0, 49.0, 50.0, 50.0, 50.0], start=9000)]
    found = observed_capacity(changed, [Floor(0, 99, 2), Floor(9600, 48, 2)], members=2)
    assert (found.rate_per_second, found.at_least_per_second) == (pytest.approx(50), 48)


def test_the_load_test_would_decide_it() -> None:
    never = observed_capacity([], [Floor(0, 70, 2)], members=2)
    assert load_test(never, 60.0) == (
        "Stop the group for 12 min while 60.0 records/s arrive, which leaves 43,200 records unread, start it again and "
        "let it catch up for 11 min without a rebalance. If it has caught up sooner, it does more than 120 records/s."
    )
    assert load_test(never, None) == ("Let records arrive faster than it reads them, on every partition, for 11 min.")
    for seed in SEEDS:
        tested = World(arrivals=lambda _: 60.0, capacity=50.0, outages=[(1000, 1720)], hours=2, seed=seed)
        found = observed_capacity(tested.blocks(), members=2)
        assert found.rate_per_second == pytest.approx(100, rel=0.1), found


def test_it_says_what_it_rests_on(golden_sentence: Callable[..., None]) -> None:
    golden_sentence(capacity_sentence(observed_capacity(blocks(*STEADY), members=2)), case="(decided)")
    golden_sentence(capacity_sentence(observed_capacity([], [Floor(0, 70, 2)])), case="(undecided)")


ANY = st.floats(allow_nan=True, allow_infinity=True)
MEMBERS = st.one_of(st.none(), st.integers(-1, 5))


@given(
    given_blocks=st.lists(st.builds(Block, ANY, ANY, ANY, MEMBERS), max_size=8),
    floors=st.lists(st.builds(Floor, ANY, ANY, MEMBERS), max_size=4),
    members=MEMBERS,
    arriving=st.one_of(st.none(), ANY),
)
def test_whatever_comes_in_a_clear_answer_goes_out(
    given_blocks: list[Block], floors: list[Floor], members: int | None, arriving: float | None
) -> None:
    found = observed_capacity(given_blocks, floors, members=members)
    if found.is_decided:
        assert found.low is not None and found.rate_per_second is not None and found.high is not None
        assert 0 < found.low <= found.rate_per_second <= found.high < math.inf
    else:
        assert found.reason is not None
    assert capacity_sentence(found)
    assert (load_test(found, arriving) is None) == (found.is_decided or found.reason is Undecided.SHARED)
