"""How many replicas to have: what is needed at a moment, and when that is acted on."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lagwise.domain.capacity.scaling import (
    Desired,
    Load,
    Members,
    Need,
    ScalingPolicy,
    Why,
    deciding_loads,
    desired_replicas,
    most_members,
    need_at,
    replicas_needed,
)
from lagwise.domain.sizing.ranges import OutOfRange

NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
#: Half of the capacity may be used and the lag be gone in a hundred seconds: sums that can be done in the head.
EASY = ScalingPolicy(target_utilisation=0.5, slack=0.1, catch_up_seconds=100.0)

# why: rate, lag, a replica's rate, partitions, hottest share → replicas
NEEDED = (
    (1, "one is enough", 40.0, 0.0, 100.0, 12, None, 1),
    (2, "exactly full still is", 50.0, 0.0, 100.0, 12, None, 1),
    (3, "a little more takes two", 51.0, 0.0, 100.0, 12, None, 2),
    (4, "the lag is part of the demand", 40.0, 1_000.0, 100.0, 12, None, 1),
    (5, "so that a large one takes more", 40.0, 6_000.0, 100.0, 12, None, 2),
    (6, "six do what seven to eleven would", 330.0, 0.0, 100.0, 12, None, 12),
    (7, "up to what six do", 300.0, 0.0, 100.0, 12, None, 6),
    (8, "never more than partitions (KEDA asks for 5 at a lag of 49 and 4 partitions)", 1e6, 49.0, 10.0, 4, None, 4),
    (9, "and at the cap no more than take something off the busiest", 1e6, 0.0, 1.0, 3, None, 3),
    (10, "nothing arrives and nothing waits: the least", 0.0, 0.0, 100.0, 12, None, 1),
    (11, "one partition, one replica", 1e6, 1e9, 1.0, 1, None, 1),
    (12, "a hot partition takes others off its reader", 100.0, 0.0, 100.0, 4, 0.4, 4),
    (13, "which helps only so far", 500.0, 0.0, 100.0, 4, 0.9, 4),
    (14, "a share below the even one is the even one", 50.0, 0.0, 100.0, 4, 0.01, 1),
)


@pytest.mark.parametrize(
    ("rate", "lag", "replica", "partitions", "hottest", "replicas"),
    [row[2:] for row in NEEDED],
    ids=[f"{row[0]} {row[1]}" for row in NEEDED],
)
def test_needed(rate: float, lag: float, replica: float, partitions: int, hottest: float | None, replicas: int) -> None:
    assert (
        replicas_needed(
            EASY,
            produce_rate_per_second=rate,
            lag=lag,
            replica_rate_per_second=replica,
            partitions=partitions,
            hottest_share=hottest,
        )
        == replicas
    )


def test_the_limits_of_the_policy() -> None:
    few = ScalingPolicy(target_utilisation=0.5, min_replicas=2, max_replicas=3)
    much: dict[str, Any] = {
        "produce_rate_per_second": 1e4,
        "lag": 0.0,
        "replica_rate_per_second": 10.0,
        "partitions": 64,
    }
    assert replicas_needed(few, **much) == 3
    assert replicas_needed(few, **much | {"produce_rate_per_second": 1.0}) == 2
    off = ScalingPolicy(min_replicas=0)
    assert replicas_needed(off, **much | {"produce_rate_per_second": 0.0}) == 0


def test_capped_by_the_policy_only_as_many_as_help() -> None:
    """Of twelve partitions eleven replicas leave two to one of them, as six do."""
    eleven = ScalingPolicy(max_replicas=11)
    assert (
        replicas_needed(eleven, produce_rate_per_second=1e6, lag=0.0, replica_rate_per_second=1.0, partitions=12) == 6
    )


@given(
    st.floats(0, 1e6), st.floats(0, 1e9), st.floats(0.1, 1e5), st.integers(1, 500), st.none() | st.floats(0, 1),
)  # fmt: skip
@settings(max_examples=300)
def test_never_more_than_partitions_and_never_fewer_for_more(
    rate: float, lag: float, replica: float, partitions: int, hottest: float | None
) -> None:
    def needed(rate: float, lag: float, utilisation: float) -> int:
        return replicas_needed(
            EASY,
            produce_rate_per_second=rate,
            lag=lag,
            replica_rate_per_second=replica,
            partitions=partitions,
            hottest_share=hottest,
            utilisation=utilisation,
        )

    here = needed(rate, lag, 0.5)
    assert 1 <= here <= partitions
    assert needed(rate * 2, lag, 0.5) >= here
    assert needed(rate, lag * 2, 0.5) >= here
    assert needed(rate, lag, 0.4) >= here


@pytest.mark.parametrize(
    ("values", "argument"),
    [
        ({"replica_rate_per_second": 0.0}, "replica_rate_per_second"),
        ({"replica_rate_per_second": float("nan")}, "replica_rate_per_second"),
        ({"produce_rate_per_second": -1.0}, "peak_rate_per_second"),
        ({"lag": float("inf")}, "lag"),
        ({"partitions": 0}, "partitions"),
    ],
    ids=lambda value: str(value),
)
def test_bad_numbers(values: dict[str, float], argument: str) -> None:
    good: dict[str, Any] = {"produce_rate_per_second": 1.0, "lag": 0.0, "replica_rate_per_second": 1.0, "partitions": 1}
    with pytest.raises(OutOfRange) as caught:
        replicas_needed(EASY, **good | values)
    assert caught.value.argument == argument


def test_a_bad_policy() -> None:
    with pytest.raises(OutOfRange, match="down_after_seconds"):
        ScalingPolicy(up_after_seconds=100.0, down_after_seconds=10.0)


def test_both_counts_of_a_moment() -> None:
    """At half use 100/s take two of 100/s; with slack, at four tenths, three."""
    found = need_at(EASY, Load(NOW, 100.0, 0.0), replica_rate_per_second=100.0, partitions=3)
    assert found == Need(NOW, up=3, down=3)
    found = need_at(EASY, Load(NOW, 90.0, 0.0), replica_rate_per_second=100.0, partitions=8)
    assert found == Need(NOW, up=2, down=3)


WAITS = ScalingPolicy(up_after_seconds=60.0, down_after_seconds=300.0)


def over(*needs: tuple[float, int, int]) -> list[Need]:
    """(seconds ago, up, down)."""
    return [Need(NOW - timedelta(seconds=ago), up, down) for ago, up, down in needs]


# why: needs, held → replicas, why
DESIRED: tuple[tuple[int, str, list[Need], int, int, Why, int], ...] = (
    (2, "as many as needed", over((400, 3, 3), (0, 3, 3)), 3, 3, Why.STEADY, 3),
    (3, "more, but only just now", over((400, 3, 3), (30, 3, 3), (0, 9, 9)), 3, 3, Why.WAITING, 9),
    (4, "more all along: the least of them", over((70, 5, 5), (30, 6, 7), (0, 9, 9)), 3, 5, Why.MORE_NEEDED, 9),
    (5, "what held at the beginning of the window counts", over((70, 3, 3), (30, 9, 9)), 3, 3, Why.WAITING, 9),
    (6, "fewer, but not for long", over((310, 8, 8), (250, 2, 2), (0, 2, 2)), 8, 8, Why.WAITING, 2),
    (7, "fewer all along: the most of them", over((310, 4, 5), (200, 2, 2), (0, 2, 2)), 8, 5, Why.FEWER_NEEDED, 2),
    (8, "between the two counts nothing changes", over((400, 2, 4), (0, 2, 4)), 3, 3, Why.STEADY, 2),
    (9, "just started: no window is whole", over((20, 9, 9), (0, 9, 9)), 3, 3, Why.WAITING, 9),
    (10, "all gone, and needed", over((70, 2, 2), (0, 2, 2)), 0, 2, Why.MORE_NEEDED, 2),
    (11, "switched off", over((400, 0, 0), (0, 0, 0)), 1, 0, Why.FEWER_NEEDED, 0),
    (12, "the future does not count", over((70, 2, 2), (-10, 9, 9)), 2, 2, Why.STEADY, 2),
)
#: As EASY and WAITS, and a replica may be switched off.
WAITS_FROM_0 = ScalingPolicy(up_after_seconds=60.0, down_after_seconds=300.0, min_replicas=0)


@pytest.mark.parametrize(
    ("needs", "held", "replicas", "why", "needed"),
    [row[2:] for row in DESIRED],
    ids=[f"{row[0]} {row[1]}" for row in DESIRED],
)
def test_desired(needs: list[Need], held: int, replicas: int, why: Why, needed: int) -> None:
    assert desired_replicas(WAITS_FROM_0, needs, held, 24, NOW) == Desired(replicas, why, needed)
    assert desired_replicas(WAITS_FROM_0, needs[::-1], held, 24, NOW) == Desired(replicas, why, needed)


def test_nothing_is_added_behind_a_full_downstream() -> None:
    more = over((70, 9, 9), (0, 9, 9))
    full = Why.DOWNSTREAM_FULL

    def desired(needs: list[Need], held: int, with_replicas: int) -> Desired | None:
        return desired_replicas(WAITS_FROM_0, needs, held, 24, NOW, downstream_full_with=with_replicas)

    assert desired(more, 3, 3) == Desired(3, full, 9), "as many as filled it"
    assert desired(more, 6, 3) == Desired(6, full, 9), "as many as run: what is taken away is another question"
    assert desired(more, 0, 3) == Desired(3, full, 9), "all gone: back to what fills it"
    assert desired(more, 3, 12) == Desired(9, Why.MORE_NEEDED, 9), "below what fills it more do help"
    assert desired(over((30, 3, 3), (0, 9, 9)), 3, 3) == Desired(3, Why.WAITING, 9), "nor at once"
    fewer = over((310, 2, 2), (0, 2, 2))
    assert desired(fewer, 8, 3) == Desired(2, Why.FEWER_NEEDED, 2), "fewer are no question of the downstream"


def test_without_any_need_there_is_no_answer() -> None:
    assert desired_replicas(WAITS, [], 3, 24, NOW) is None
    assert desired_replicas(WAITS, over((-10, 9, 9)), 3, 24, NOW) is None


# why: least, most, partitions, held → replicas, while nothing is to change
LIMITS = (
    ("more members than partitions", 1, 24, 24, 30, 24),
    ("more than the most", 1, 6, 24, 9, 6),
    ("fewer than the least", 2, 24, 24, 0, 2),
    ("the least is kept even beyond the partitions", 4, 24, 2, 3, 4),
    ("between them", 2, 24, 24, 8, 8),
)


@pytest.mark.parametrize(
    ("least", "most", "partitions", "held", "replicas"), [r[1:] for r in LIMITS], ids=[r[0] for r in LIMITS]
)
def test_every_answer_is_within_the_limits(least: int, most: int, partitions: int, held: int, replicas: int) -> None:
    policy = ScalingPolicy(min_replicas=least, max_replicas=most)
    found = desired_replicas(policy, over((20, held, held), (0, held, held)), held, partitions, NOW)
    assert found is not None
    assert found.replicas == replicas


# why: (seconds ago, members), seconds → the most of them
MOST = (
    ("a deployment: fewer for a while", [(310, 8), (200, 5), (100, 3), (0, 5)], 300.0, 8),
    ("it is over for longer than that", [(400, 8), (310, 5), (0, 5)], 300.0, 5),
    ("none all along", [(310, 0), (0, 0)], 300.0, 0),
    ("not watched for long enough", [(290, 8), (0, 5)], 300.0, None),
    ("never watched", [], 300.0, None),
    ("the future does not count", [(310, 5), (-10, 9)], 300.0, 5),
)


@pytest.mark.parametrize(("seen", "seconds", "most"), [r[1:] for r in MOST], ids=[r[0] for r in MOST])
def test_the_most_members(seen: list[tuple[float, int]], seconds: float, most: int | None) -> None:
    rows = [Members(NOW - timedelta(seconds=ago), count) for ago, count in seen]
    assert most_members(rows, NOW, seconds) == most
    assert most_members(rows[::-1], NOW, seconds) == most


@given(
    st.lists(st.tuples(st.floats(0, 900), st.integers(0, 20), st.integers(0, 5)), min_size=1, max_size=30),
    st.integers(0, 25),
)
def test_it_settles(rows: list[tuple[float, int, int]], held: int) -> None:
    """Once what was advised is held, and the needs stay as they are, nothing more is advised in the other direction."""
    needs = over(*[(ago, up, up + more) for ago, up, more in rows])
    first = desired_replicas(WAITS, needs, held, 24, NOW)
    assert first is not None
    again = desired_replicas(WAITS, needs, first.replicas, 24, NOW)
    assert again is not None
    assert again.replicas == first.replicas


@given(
    st.lists(
        st.tuples(st.integers(-30, 1200), st.sampled_from([0.0, 10.0, 90.0]) | st.floats(0, 5_000), st.floats(0, 1e6)),
        max_size=40,
        unique_by=lambda row: row[0],
    ),
    st.integers(0, 30),
    st.integers(1, 60),
    st.none() | st.floats(0, 1),
    st.sampled_from([0.0, 60.0, 300.0]),
)
def test_few_loads_decide_as_all_of_them_would(
    rows: list[tuple[int, float, float]], held: int, partitions: int, hottest: float | None, up_after_seconds: float
) -> None:
    policy = ScalingPolicy(up_after_seconds=up_after_seconds, down_after_seconds=300.0, min_replicas=0)
    loads = [Load(NOW - timedelta(seconds=ago), rate, lag) for ago, rate, lag in rows]

    def desired(chosen: list[Load]) -> Desired | None:
        needs = [
            need_at(policy, load, replica_rate_per_second=100.0, partitions=partitions, hottest_share=hottest)
            for load in chosen
        ]
        return desired_replicas(policy, needs, held, partitions, NOW)

    few = deciding_loads(policy, loads, NOW)
    assert len(few) <= 5
    assert desired(few) == desired(loads)
