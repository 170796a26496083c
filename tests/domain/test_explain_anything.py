"""A sentence about a group stays a sentence, whatever is not known and whatever things are called."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lagwise.domain.groups import verdict_of
from lagwise.domain.lag_forecast import Forecast
from lagwise.domain.partition_rollup import PartitionsInStatus
from lagwise.domain.vocabulary import LossCause, Status, UnknownReason
from tests.domain.partitions import WAITING, WELL, part

reproducible = settings(max_examples=300)

NAMES = (
    "<script>alert('x')</script>",
    "a\nb\x1b[31m",
    "\u202eevil",
    "{status} %s %(x)d {0}",
    "[bold red]x[/]",
    "None of it",
    "orders. No members",
)


@pytest.mark.parametrize("name", NAMES)
def test_names_are_data(name: str) -> None:
    """They stand in the sentence as the cluster reports them: whoever shows it escapes it, once."""
    losing = [part(Status.LOSING_DATA, records_lost=5, lag=0, worst_topic=name), WELL]
    assert f"({name}-3)" in verdict_of(losing, members=1, idle_members=0).sentence
    stalled = [part(Status.STALLED, 1, f"client {name} on host {name}", **WAITING)]
    assert verdict_of(stalled, members=1, idle_members=0).sentence.endswith(
        f"Its owner is client {name} on host {name}."
    )


def test_owners_are_named_in_order() -> None:
    """Of two runs over the same rows both say the same: twenty pairs, since a set may chance to be in order."""
    for n in range(20):
        names = f"client a{n}", f"client b{n}"
        found = verdict_of([part(Status.STALLED, 2, *reversed(names), **WAITING)], members=2, idle_members=0)
        assert f"Their owners are {names[0]} and {names[1]}." in found.sentence


NUMBER = st.none() | st.floats(0.0, 1e9)
FORECAST = st.none() | st.builds(Forecast, st.floats(0.0, 1e9), st.floats(0.0, 1e9), NUMBER)
PARTS = st.lists(
    st.builds(
        PartitionsInStatus,
        status=st.sampled_from([s for s in Status if s is not Status.UNKNOWN]),
        reason=st.none(),
        partitions=st.integers(1, 3),
        lag=st.none() | st.sampled_from([0, 1, 2, 41_234]),
        lag_seconds=NUMBER,
        lag_seconds_is_lower_bound=st.booleans(),
        unmoved_seconds=NUMBER,
        produce_rate_per_second=NUMBER,
        consume_rate_per_second=NUMBER,
        lag_slope_per_second=NUMBER,
        to_catch_up=FORECAST,
        to_breach=FORECAST,
        seconds_to_loss=NUMBER,
        loss_cause=st.none() | st.sampled_from(LossCause),
        records_lost=st.sampled_from([0, 1, 2, 5000]),
        worst_topic=st.just("orders"),
        worst_partition=st.integers(0, 40),
        owners=st.frozensets(st.sampled_from(["client a", "client b", "client c"])),
    )
    | st.builds(
        PartitionsInStatus,
        status=st.just(Status.UNKNOWN),
        reason=st.sampled_from(UnknownReason),
        partitions=st.integers(1, 3),
        worst_topic=st.just("orders"),
        worst_partition=st.integers(0, 40),
    ),
    max_size=4,
)
#: None, a number that is none, and a plural of one; ``1`` not as the end of another number.
WRONG = re.compile(r"None|nan|inf\b|\bTrue\b|(?<![\d,.])1 (records|partitions|members)\b|  |\(\)|\b0 of\b")


@reproducible
@given(PARTS, st.none() | st.integers(0, 4), st.integers(0, 2), st.sampled_from([None, "timeout", "client_failed"]))
def test_a_sentence_is_a_sentence_whatever_is_not_known(
    parts: list[PartitionsInStatus], members: int | None, idle: int, error: str | None
) -> None:
    if idle > (members or 0):
        idle = 0
    sentence = verdict_of(parts, members=members, idle_members=idle, error=error).sentence
    assert re.fullmatch(r"[A-Z0-9].*[^.]\.", sentence)
    assert not WRONG.search(sentence), sentence
