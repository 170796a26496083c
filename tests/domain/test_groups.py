"""From partitions to their group. Each row says why its answer is right."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lagwise.domain.explain import explain
from lagwise.domain.groups import GroupVerdict, status_of, verdict_of
from lagwise.domain.lag_forecast import Forecast
from lagwise.domain.partition_rollup import PartitionsInStatus, total
from lagwise.domain.vocabulary import KNOWN_STATUSES, LossCause, Status, UnknownReason, is_quiet

reproducible = settings(max_examples=200)


def part(word: str, partitions: int = 1, **numbers: Any) -> PartitionsInStatus:
    """Partitions of a status, or ``unknown:reason``."""
    status, _, reason = word.partition(":")
    named: dict[str, Any] = {"worst_topic": "orders", "worst_partition": 0, "topics": frozenset({"orders"})} | numbers
    return PartitionsInStatus(Status(status), UnknownReason(reason) if reason else None, partitions, **named)


def judged(*parts: PartitionsInStatus) -> GroupVerdict:
    return verdict_of(parts, members=3, idle_members=0)


# partitions → status of the group
STATUSES: tuple[tuple[int, str, list[PartitionsInStatus], str], ...] = (
    (1, "all keep pace", [part("ok", 12)], "ok"),
    (2, "one stands among twelve", [part("ok", 11), part("stalled")], "stalled"),
    (
        3,
        "the worst wins, wherever it stands",
        [part("lagging", 9), part("losing_data"), part("stopped", 9)],
        "losing_data",
    ),
    (4, "some catch up, the others are there", [part("ok", 5), part("catching_up")], "catching_up"),
    (5, "not knowing one is never well-being", [part("ok", 11), part("unknown:unreadable")], "unknown:unreadable"),
    (6, "nor is it getting better", [part("catching_up", 11), part("unknown:expired")], "unknown:expired"),
    (7, "trouble that is known is told", [part("lagging"), part("unknown:unreadable", 11)], "lagging"),
    (8, "a rewind is trouble", [part("rewound"), part("unknown:expired", 11)], "rewound"),
    (9, "nothing is known", [part("unknown:too_few_samples", 12)], "unknown:too_few_samples"),
    (
        10,
        "the commonest reason, by partitions",
        [part("unknown:unreadable", 2), part("unknown:recreated", 3), part("ok", 50)],
        "unknown:recreated",
    ),
    (
        11,
        "among equally common reasons the one that is tested first",
        [part("unknown:too_few_samples", 2), part("unknown:expired", 2)],
        "unknown:expired",
    ),
    (12, "a group without any partition has committed nothing", [], "unknown:no_commit"),
    (13, "ghosts are not its business: the rest is well", [part("ghost", 50), part("ok")], "ok"),
    (14, "ghosts are not its business: the rest stands", [part("ghost", 50), part("stopped")], "stopped"),
    (15, "ghosts hide nothing", [part("ghost", 50), part("ok"), part("unknown:expired")], "unknown:expired"),
    (16, "of nothing but ghosts nothing is left", [part("ghost", 50)], "unknown:no_commit"),
)


@pytest.mark.parametrize(("parts", "word"), [r[2:] for r in STATUSES], ids=[f"{r[0]:02d} {r[1]}" for r in STATUSES])
def test_status(parts: Sequence[PartitionsInStatus], word: str) -> None:
    status, _, reason = word.partition(":")
    assert status_of(parts) == (Status(status), UnknownReason(reason) if reason else None)
    assert (judged(*parts).status, judged(*parts).reason) == status_of(parts)


@pytest.mark.parametrize("parts", [[], [part("ghost", 50)], [part("unknown:unreadable", 3)]])
def test_a_group_that_could_not_be_read_is_unreadable_and_not_without_commits(parts: list[PartitionsInStatus]) -> None:
    found = verdict_of(parts, members=None, idle_members=0, error="group_not_authorized")
    assert (found.status, found.reason) == (Status.UNKNOWN, UnknownReason.UNREADABLE)


WORDS = st.sampled_from([*KNOWN_STATUSES, *(f"unknown:{reason}" for reason in UnknownReason)])
PARTS = st.lists(st.builds(part, WORDS, st.integers(1, 100)), min_size=1, max_size=8)


@reproducible
@given(PARTS, st.integers(0, 100))
def test_ghosts_change_no_status(parts: list[PartitionsInStatus], ghosts: int) -> None:
    assert status_of([part("ghost", ghosts), *parts]) == status_of(parts)


@reproducible
@given(PARTS)
def test_a_group_is_never_better_than_any_of_its_partitions(parts: list[PartitionsInStatus]) -> None:
    status, reason = status_of(parts)
    assert (status is Status.UNKNOWN) == (reason is not None)
    known = [p.status for p in parts if p.status is not Status.UNKNOWN]
    assert all(status.rank <= other.rank or status is Status.UNKNOWN for other in known)
    if any(p.status is Status.UNKNOWN for p in parts):
        assert status not in (Status.OK, Status.CATCHING_UP)
    if status is Status.UNKNOWN:
        assert set(known) <= {Status.OK, Status.CATCHING_UP}
        assert reason in {p.reason for p in parts}
    else:
        assert status in known


@reproducible
@given(PARTS, st.randoms(use_true_random=False))
def test_neither_order_nor_division_of_the_partitions_matters(parts: list[PartitionsInStatus], chance: Any) -> None:
    """Spark sums up by status and reason in whatever order it likes."""
    divided = [replace(p, partitions=n) for p in parts for n in (1, p.partitions - 1) if n]
    chance.shuffle(divided)
    assert status_of(divided) == status_of(parts)


class TestNumbers:
    def test_sums_leave_out_what_is_unknown_and_what_is_a_ghost(self) -> None:
        """A rebalancing partition's lag is a number, but not one to add up."""
        rates: dict[str, Any] = {"produce_rate_per_second": 10.0, "consume_rate_per_second": 8.0}
        found = judged(
            part("lagging", 2, lag=40, records_lost=0, **rates),
            part("losing_data", lag=2, records_lost=7, **rates),
            part("unknown:rebalancing", lag=1000, records_lost=100, **rates),
            part("ghost", lag=5000, records_lost=900, **rates),
        )
        assert (found.numbers.lag_records, found.numbers.records_lost) == (42, 7)
        assert (found.numbers.produce_rate_per_second, found.numbers.consume_rate_per_second) == (20.0, 16.0)

    def test_the_lag_of_an_unknown_group_is_not_zero(self) -> None:
        found = judged(part("unknown:expired", 3))
        assert (found.numbers.lag_records, found.numbers.lag_seconds, found.numbers.produce_rate_per_second) == (
            None,
            None,
            None,
        )
        assert found.numbers.lag_seconds_is_lower_bound is False

    def test_a_group_without_partitions_has_no_numbers(self) -> None:
        found = judged()
        assert (found.partitions, found.partitions_by_status, found.topics) == (0, {}, ())
        assert (
            found.numbers.lag_records,
            found.numbers.lag_seconds,
            found.numbers.seconds_to_loss,
            found.numbers.worst_topic,
        ) == (None, None, None, None)

    def test_counts_leave_ghosts_out_and_by_status_shows_them(self) -> None:
        found = judged(part("ok", 5), part("unknown:expired", 2), part("unknown:recreated", 1), part("ghost", 4))
        assert found.partitions == 8
        assert found.partitions_by_status == {Status.OK: 5, Status.UNKNOWN: 3, Status.GHOST: 4}

    def test_topics_are_named_once_in_order_and_without_those_that_were_left(self) -> None:
        found = judged(
            part("ok", topics=frozenset({"b", "a"})),
            part("stalled", topics=frozenset({"c", "b"})),
            part("ghost", topics=frozenset({"old"})),
        )
        assert found.topics == ("a", "b", "c")

    def test_the_age_is_that_of_the_oldest_unread_record_of_any_status(self) -> None:
        found = judged(part("stalled", lag=3, lag_seconds=100.0), part("lagging", lag=9, lag_seconds=400.0))
        assert (found.status, found.numbers.lag_seconds) == (Status.STALLED, 400.0)

    def test_the_age_of_what_is_unknown_counts_where_it_was_measured(self) -> None:
        """While a group rebalances nobody can say which way it is going, but its records get older all the same."""
        known, measured = part("stalled", lag_seconds=100.0), part("unknown:rebalancing", lag_seconds=900.0)
        assert judged(known, measured).numbers.lag_seconds == 900.0
        assert judged(known, part("unknown:unreadable", lag_seconds=None)).numbers.lag_seconds == 100.0
        assert judged(part("unknown:unreadable", lag_seconds=None)).numbers.lag_seconds is None

    def test_an_age_is_a_lower_bound_where_the_oldest_record_s_is(self) -> None:
        older: dict[str, Any] = {"lag_seconds": 400.0}
        bound: dict[str, Any] = {"lag_seconds_is_lower_bound": True}
        assert not judged(
            part("lagging", **older), part("stalled", lag_seconds=100.0, **bound)
        ).numbers.lag_seconds_is_lower_bound
        assert judged(
            part("lagging", **older, **bound), part("stalled", lag_seconds=100.0)
        ).numbers.lag_seconds_is_lower_bound
        assert judged(part("lagging", **older), part("stalled", **older, **bound)).numbers.lag_seconds_is_lower_bound

    def test_caught_up_means_the_last_of_them(self) -> None:
        found = judged(
            part("catching_up", lag=9, to_catch_up=Forecast(60.0, 50.0, None)),
            part("catching_up", lag=9, to_catch_up=Forecast(600.0, 400.0, 900.0)),
            part("ok"),
        )
        assert found.to_catch_up == Forecast(600.0, 400.0, None)

    def test_a_group_with_trouble_on_another_partition_has_no_catch_up_time(self) -> None:
        found = judged(part("catching_up", lag=9, to_catch_up=Forecast(60.0, 50.0, None)), part("lagging", lag=9))
        assert found.numbers.seconds_to_catch_up is None

    def test_the_first_loss_counts(self) -> None:
        later = part("stalled", seconds_to_loss=90_000.0, loss_cause=LossCause.DELETION)
        found = judged(part("at_risk", seconds_to_loss=7200.0, loss_cause=LossCause.EXPIRY), later, part("ok"))
        assert (found.numbers.seconds_to_loss, found.numbers.loss_cause) == (7200.0, LossCause.EXPIRY)

    def test_of_two_losses_at_once_that_of_records_counts_in_any_order(self) -> None:
        parts = [part("at_risk", seconds_to_loss=60.0, loss_cause=cause) for cause in LossCause]
        for order in (parts, parts[::-1]):
            assert judged(*order).numbers.loss_cause is LossCause.DELETION

    def test_where_nothing_will_be_lost_there_is_no_cause(self) -> None:
        assert (judged(part("ok")).numbers.seconds_to_loss, judged(part("ok")).numbers.loss_cause) == (None, None)

    def test_a_loss_of_old_commits_on_a_topic_that_was_left_is_none(self) -> None:
        assert judged(part("ok"), part("ghost", seconds_to_loss=5.0)).numbers.seconds_to_loss is None


class TestWorst:
    def test_it_is_the_oldest_of_those_that_have_the_group_s_status(self) -> None:
        found = judged(
            part("stalled", lag_seconds=100.0, worst_topic="a", worst_partition=1),
            part("stalled", lag_seconds=300.0, worst_topic="b", worst_partition=2),
            part("lagging", lag_seconds=900.0, worst_topic="c", worst_partition=3),
        )
        assert (found.numbers.worst_topic, found.numbers.worst_partition) == ("b", 2)

    def test_it_has_the_reason_of_the_group_too(self) -> None:
        found = judged(
            part("unknown:rebalancing", 1, lag_seconds=900.0, worst_topic="a"),
            part("unknown:expired", 2, worst_topic="b"),
        )
        assert (found.reason, found.numbers.worst_topic) == (UnknownReason.EXPIRED, "b")

    def test_among_equals_it_is_the_first_by_name_in_any_order(self) -> None:
        """Two runs over the same rows name the same partition."""
        parts = [
            part("stalled", lag_seconds=100.0, worst_topic=topic, worst_partition=number)
            for topic, number in (("b", 0), ("a", 11), ("a", 2))
        ]
        for order in (parts, parts[::-1]):
            assert (judged(*order).numbers.worst_topic, judged(*order).numbers.worst_partition) == ("a", 2)


def test_the_sentence_is_that_of_the_status_with_the_members() -> None:
    parts = [part("stopped", 2, lag=5, unmoved_seconds=60.0), part("ok", 3)]
    for members in (0, 4):
        expected = explain(Status.STOPPED, None, parts, members=members, idle_members=1)
        assert verdict_of(parts, members=members, idle_members=1).sentence == expected


@pytest.mark.parametrize(
    ("values", "expected"),
    [([1, None, 2], 3), ([0, None], 0), ([None, None], None), ([], None), ([0.5, 0.25], 0.75)],
    ids=["what is known", "a zero is known", "nothing is known", "there is nothing", "fractions"],
)
def test_a_total_of_nothing_known_is_not_zero(values: list[float | None], expected: float | None) -> None:
    assert total(values) == expected


@pytest.mark.parametrize(
    ("status", "state", "reason", "expected"),
    [
        pytest.param("ok", "Stable", None, True, id="all is well"),
        pytest.param("ghost", "Empty", None, True, id="an old commit"),
        pytest.param("unknown", "Empty", "expired", True, id="an old name"),
        pytest.param("unknown", "Dead", "no_commit", True, id="a name without commits"),
        pytest.param("unknown", "Stable", "no_commit", False, id="members that commit nothing"),
        pytest.param("unknown", "Empty", "too_few_samples", False, id="its only member may just have died"),
        pytest.param("unknown", "Empty", "unreadable", False, id="nobody can tell"),
        pytest.param("stopped", "Empty", None, False, id="nobody reads"),
    ],
)
def test_quiet_groups_need_no_attention(status: str, state: str, reason: str | None, expected: bool) -> None:
    assert is_quiet(status, state, reason) == expected
