"""Where trouble sits: each row is a group, what its partitions have in common, and why that is the answer."""

from collections.abc import Callable
from typing import NamedTuple

import pytest

from lagwise.domain.causes import TROUBLE, Cause, Place, Scope, cause_of
from lagwise.domain.groups import verdict_of
from lagwise.domain.partition_rollup import PartitionsInStatus
from lagwise.domain.vocabulary import Status
from tests.domain.partitions import WAITING, WELL, part

OK, STALLED, STOPPED, BEHIND, GHOST = (
    Status.OK,
    Status.STALLED,
    Status.STOPPED,
    Status.FALLING_BEHIND,
    Status.GHOST,
)
A, B, C = "client a on host 10.0.0.1", "client b on host 10.0.0.2", "client c"


class Row(NamedTuple):
    why: str
    status: Status
    places: list[Place]
    cause: Cause | None


ROWS = (
    Row("nothing is wrong", OK, [Place(OK, A, 1, 3)], None),
    Row("nothing is known of the places", STALLED, [], None),
    Row(
        "one bad record: its owner gets on elsewhere",
        STALLED,
        [Place(STALLED, A, 1, 1), Place(OK, A, 2, 2), Place(OK, B, 1, 3)],
        Cause(Scope.PARTITION, well=2),
    ),
    Row(
        "one member hangs, the others do not",
        STALLED,
        [Place(STALLED, A, 1, 2), Place(STALLED, A, 2, 1), Place(OK, B, 1, 3), Place(OK, B, 2, 3)],
        Cause(Scope.MEMBER, A),
    ),
    Row(
        "a member that owns one partition hangs: the member, not the partition",
        STALLED,
        [Place(STALLED, A, 1, 1), Place(OK, B, 1, 1)],
        Cause(Scope.MEMBER, A),
    ),
    Row(
        "the only member hangs: that is the whole group",
        STALLED,
        [Place(STALLED, A, 1, 3)],
        Cause(Scope.GROUP),
    ),
    Row(
        "the only member that owns anything hangs on two of three",
        STALLED,
        [Place(STALLED, A, 1, 2), Place(OK, A, 1, 1)],
        Cause(Scope.GROUP, well=1),
    ),
    Row(
        "everything that broker 3 leads, whoever owns it",
        STALLED,
        [Place(STALLED, A, 3, 1), Place(STALLED, B, 3, 1), Place(OK, A, 1, 2), Place(OK, B, 2, 2)],
        Cause(Scope.BROKER, "3"),
    ),
    Row(
        "broker 3 leads others that are well",
        STALLED,
        [Place(STALLED, A, 3, 1), Place(STALLED, B, 3, 1), Place(OK, A, 3, 1), Place(OK, B, 2, 2)],
        Cause(Scope.GROUP),
    ),
    Row(
        "of some that are well nobody knows the leader",
        STALLED,
        [Place(STALLED, A, 3, 1), Place(STALLED, B, 3, 1), Place(OK, A, None, 1)],
        Cause(Scope.GROUP),
    ),
    Row(
        "a cluster of one broker: that they share it says nothing",
        BEHIND,
        [Place(BEHIND, A, 1, 3), Place(BEHIND, B, 1, 3)],
        Cause(Scope.GROUP),
    ),
    Row(
        "one member's partitions are just those of one broker: the member can be looked at first",
        BEHIND,
        [Place(BEHIND, A, 3, 2), Place(OK, B, 1, 2)],
        Cause(Scope.MEMBER, A),
    ),
    Row(
        "nobody owns them: no member is to blame, and no broker",
        STOPPED,
        [Place(STOPPED, None, 3, 2), Place(OK, A, 1, 2)],
        Cause(Scope.GROUP),
    ),
    Row(
        "other members hang too",
        STALLED,
        [Place(STALLED, A, 1, 2), Place(STALLED, B, 1, 1), Place(OK, C, 1, 2)],
        Cause(Scope.GROUP),
    ),
    Row(
        "trouble of another kind on a partition of the same member is not being well, but the same member is also not "
        "all there is to it",
        STALLED,
        [Place(STALLED, A, 1, 2), Place(BEHIND, A, 1, 1), Place(OK, B, 1, 2)],
        Cause(Scope.GROUP, well=1),
    ),
    Row(
        "what the group has left does not count",
        STALLED,
        [Place(STALLED, A, 1, 2), Place(GHOST, None, 2, 5), Place(OK, B, 1, 1)],
        Cause(Scope.MEMBER, A),
    ),
    Row(
        "two processes on one host share the name: the one that hangs does not get on with what the other reads",
        STALLED,
        [Place(STALLED, "m-1", 1, 2, A, stands=True), Place(OK, "m-2", 1, 2, A)],
        Cause(Scope.MEMBER, f"{A} (member m-1)"),
    ),
    Row(
        "two processes of one name hang",
        STALLED,
        [
            Place(STALLED, "m-1", 1, 1, A, stands=True),
            Place(STALLED, "m-2", 1, 1, A, stands=True),
            Place(OK, "m-3", 1, 2),
        ],
        Cause(Scope.GROUP),
    ),
    Row(
        "a name that nobody shares says who it is",
        STALLED,
        [Place(STALLED, "m-1", 1, 2, A, stands=True), Place(OK, "m-2", 1, 2, B)],
        Cause(Scope.MEMBER, A),
    ),
    Row(
        "what the member owns of a topic without a limit stands still, too: it gets on with nothing",
        Status.AT_RISK,
        [Place(Status.AT_RISK, A, 1, 2, stands=True), Place(STALLED, A, 1, 1, stands=True), Place(OK, B, 1, 2)],
        Cause(Scope.MEMBER, A),
    ),
)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.why)
def test_where_trouble_sits(row: Row) -> None:
    assert cause_of(row.status, row.places) == row.cause
    assert cause_of(row.status, row.places[::-1]) == row.cause


@pytest.mark.parametrize("status", sorted(set(Status) - TROUBLE))
def test_what_is_no_trouble_has_no_cause(status: Status) -> None:
    assert cause_of(status, [Place(status, A, 1, 2), Place(OK, B, 2, 2)]) is None


SENTENCES = (
    (
        "a hanging member",
        [part(STALLED, 3, A, **WAITING), WELL],
        [Place(STALLED, A, 1, 3), Place(OK, B, 1, 9)],
    ),
    (
        "a member that owns just this one",
        [part(STALLED, 1, A, **WAITING), WELL],
        [Place(STALLED, A, 1, 1), Place(OK, B, 1, 9)],
    ),
    (
        "a bad record",
        [part(STALLED, 1, A, **WAITING), WELL],
        [Place(STALLED, A, 1, 1), Place(OK, A, 1, 4), Place(OK, B, 1, 5)],
    ),
    (
        "a broker",
        [part(STALLED, 2, A, B, **WAITING), WELL],
        [Place(STALLED, A, 3, 1), Place(STALLED, B, 3, 1), Place(OK, A, 1, 9)],
    ),
    (
        "a slow member",
        [
            part(BEHIND, 3, A, produce_rate_per_second=90.0, lag_slope_per_second=30.0, **WAITING),
            WELL,
        ],
        [Place(BEHIND, A, 1, 3), Place(OK, B, 1, 9)],
    ),
)


@pytest.mark.parametrize(("parts", "places"), [row[1:] for row in SENTENCES], ids=[row[0] for row in SENTENCES])
def test_the_sentence_says_it(
    parts: list[PartitionsInStatus], places: list[Place], golden_sentence: Callable[..., None]
) -> None:
    golden_sentence(verdict_of(parts, members=3, idle_members=0, places=places).sentence)
