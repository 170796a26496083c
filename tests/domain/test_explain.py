"""The sentence about a group: every word has one, with its numbers. Each row says what it must make clear."""

from collections.abc import Callable
from typing import NamedTuple

import pytest

from lagwise.domain.explain import explain
from lagwise.domain.groups import verdict_of
from lagwise.domain.lag_forecast import Forecast
from lagwise.domain.partition_rollup import PartitionsInStatus
from lagwise.domain.vocabulary import LossCause, Status, UnknownReason, is_quiet
from tests.domain.partitions import WAITING, WELL, part

LOSING_DATA, AT_RISK, STOPPED, STALLED, REWOUND, FALLING_BEHIND, LAGGING, CATCHING_UP, OK, GHOST, UNKNOWN = Status


DELETION, EXPIRY = LossCause
BEFORE = WAITING | {"lag_seconds_is_lower_bound": True}
ONE = WAITING | {"lag": 1}


class Row(NamedTuple):
    number: int
    why: str
    parts: list[PartitionsInStatus]
    members: int | None = 3
    idle: int = 0
    error: str | None = None
    state: str | None = None
    group_type: str | None = None


ROWS = (
    Row(
        1,
        "how many were lost, where, and what still waits",
        [part(LOSING_DATA, 1, records_lost=12_000, **WAITING), WELL],
    ),
    Row(
        2,
        "one record is one record",
        [part(LOSING_DATA, 1, records_lost=1, **ONE)],
    ),
    Row(
        3,
        "nothing is left to wait, and one more partition lost some",
        [part(LOSING_DATA, 2, records_lost=700, lag=0, lag_seconds=0.0), WELL],
    ),
    Row(
        4,
        "the partition that is named lost the most",
        [
            part(LOSING_DATA, 2, records_lost=700, lag=0, lag_seconds=0.0),
            part(LOSING_DATA, 1, records_lost=900, lag=0, lag_seconds=0.0, worst_topic="payments", worst_partition=0),
        ],
    ),
    Row(
        5,
        "how soon, and that it is a forecast",
        [part(AT_RISK, 4, seconds_to_loss=7500.0, **WAITING), WELL],
    ),
    Row(
        6,
        "at the edge already",
        [part(AT_RISK, 1, seconds_to_loss=0.0, **WAITING)],
    ),
    Row(
        44,
        "not before the retention, and by the time at which the whole segment must be gone",
        [part(AT_RISK, 1, seconds_to_loss=7500.0, seconds_to_loss_at_latest=612_600.0, **WAITING)],
    ),
    Row(
        45,
        "at the edge, in a segment that may take records for days yet",
        [part(AT_RISK, 1, seconds_to_loss=0.0, seconds_to_loss_at_latest=604_800.0, **WAITING)],
    ),
    Row(
        46,
        "older than the history, in such a segment: the latest moment is that of the segment",
        [
            part(
                AT_RISK,
                1,
                seconds_to_loss=9000.0,
                seconds_to_loss_is_upper_bound=True,
                seconds_to_loss_at_latest=18_000.0,
                **BEFORE,
            )
        ],
    ),
    Row(
        7,
        "nothing is unread, so it is the commits that are at risk",
        [part(AT_RISK, 3, seconds_to_loss=3600.0, loss_cause=EXPIRY, lag=0, lag_seconds=0.0)],
        members=0,
    ),
    Row(
        8,
        "nobody is there",
        [part(STOPPED, 3, **WAITING)],
        members=0,
    ),
    Row(
        9,
        "somebody is there, but not for this partition",
        [part(STOPPED, 1, **WAITING), WELL],
    ),
    Row(
        10,
        "nor for these",
        [part(STOPPED, 2, **WAITING), WELL],
    ),
    Row(
        11,
        "who does not get on",
        [part(STALLED, 1, "client billing-2 on host 10.0.0.7", **ONE), WELL],
    ),
    Row(
        12,
        "two of them",
        [part(STALLED, 2, "client b", "client a", **WAITING)],
    ),
    Row(
        13,
        "more than two are not named",
        [part(STALLED, 3, "client c", "client b", "client a", **WAITING), WELL],
    ),
    Row(
        14,
        "an owner without a name",
        [part(STALLED, 1, **WAITING)],
    ),
    Row(
        15,
        "what is to be read (again)",
        [part(REWOUND, 1, **WAITING), WELL],
    ),
    Row(
        15,
        "a queue of RocketMQ is called as its own tools call it",
        [part(REWOUND, 1, worst_label="broker-b q3", **WAITING), WELL],
    ),
    Row(
        47,
        "by how much, and when the last of them did",
        [
            part(REWOUND, 2, rewound_records=41_000, rewound_seconds=720.0, **WAITING),
            part(REWOUND, 1, rewound_records=200, rewound_seconds=840.0, lag=0, loss_cause=EXPIRY),
            WELL,
        ],
    ),
    Row(
        16,
        "all three rates",
        [
            part(
                FALLING_BEHIND,
                3,
                lag_slope_per_second=42.34,
                produce_rate_per_second=1240.6,
                consume_rate_per_second=1198.0,
                **WAITING,
            ),
            WELL,
        ],
    ),
    Row(
        17,
        "a rate that is not known is a dash and not a zero",
        [part(FALLING_BEHIND, 1, lag_slope_per_second=0.5, **WAITING)],
    ),
    Row(
        18,
        "an age that is at least so much",
        [part(LAGGING, 2, lag_seconds_is_lower_bound=True, lag_slope_per_second=0.1, **WAITING), WELL],
    ),
    Row(
        18,
        "a job that comes every few hours has no trend",
        [part(LAGGING, 2, **WAITING), WELL],
    ),
    Row(
        19,
        "when it will be over",
        [
            part(CATCHING_UP, 2, to_catch_up=Forecast(95.0, 60.0, 180.0), **WAITING),
            part(CATCHING_UP, 1, to_catch_up=Forecast(9.0, 4.0, 20.0), lag=6),
        ],
    ),
    Row(20, "all is well", [WELL]),
    Row(
        21,
        "well, with one too many",
        [WELL],
        10,
        1,
    ),
    Row(
        22,
        "well, with many too many",
        [WELL],
        12,
        3,
    ),
    Row(23, "ghosts are not counted", [WELL, part(GHOST, 40, lag=7)]),
    Row(
        24,
        "the first of the losses is what counts",
        [part(AT_RISK, 1, seconds_to_loss=9000.0, **ONE), part(AT_RISK, 1, seconds_to_loss=95.0, **WAITING)],
    ),
    Row(
        25,
        "nobody can tell when it will be over",
        [part(CATCHING_UP, 1, **WAITING)],
    ),
    Row(
        26,
        "of the unknown, those that are so for the reason that is given",
        [part(UNKNOWN, 3, reason=UnknownReason.EXPIRED), part(UNKNOWN, 2, reason=UnknownReason.RECREATED), WELL],
    ),
    Row(27, "nothing was ever committed", []),
    Row(
        28,
        "no record is deleted: the offsets expire, and what that means for the records that wait",
        [part(AT_RISK, 1, seconds_to_loss=3315.0, loss_cause=EXPIRY, **WAITING)],
        members=0,
    ),
    Row(
        29,
        "the nearest loss is of offsets, of two partitions; what will be deleted on another comes later",
        [
            part(AT_RISK, 1, seconds_to_loss=9000.0, loss_cause=DELETION, **WAITING),
            part(AT_RISK, 2, seconds_to_loss=60.0, loss_cause=EXPIRY, lag=0, lag_seconds=0.0),
        ],
        members=0,
    ),
    Row(
        30,
        "the nearest loss is of records, and of two at the same moment it is that",
        [
            part(AT_RISK, 2, seconds_to_loss=60.0, loss_cause=EXPIRY, lag=0, lag_seconds=0.0),
            part(AT_RISK, 1, seconds_to_loss=60.0, loss_cause=DELETION, **WAITING),
        ],
        members=0,
    ),
    Row(
        31,
        "after a quiet hour one record comes in: what has lasted for an hour is not its waiting",
        [part(STOPPED, 1, lag=1, lag_seconds=45.0, unmoved_seconds=3585.0)],
        members=0,
    ),
    Row(
        32,
        "a group that may not be described, of which no partition is known: what is missing, by name",
        [],
        members=None,
        error="group_not_authorized",
    ),
    Row(
        33,
        "a group that could be read before: the error is the group's, not that of its partitions",
        [part(UNKNOWN, 3, reason=UnknownReason.UNREADABLE)],
        members=None,
        error="timeout",
    ),
    Row(
        34,
        "an error without words of ours is named, and where there is more",
        [],
        members=None,
        error="group_max_size_reached",
    ),
    Row(
        35,
        "nobody can tell who reads, only what waits",
        [part(UNKNOWN, 2, reason=UnknownReason.REBALANCING, **WAITING), WELL],
    ),
    Row(
        36,
        "what waits before anybody can tell where it is going",
        [part(UNKNOWN, 2, reason=UnknownReason.TOO_FEW_SAMPLES, **WAITING), WELL],
    ),
    Row(
        37,
        "a rebalance that does not end",
        [part(STOPPED, 3, **WAITING)],
        state="PreparingRebalance",
    ),
    Row(
        38,
        "members that come, hang and go",
        [part(STOPPED, 1, "client billing-2", **WAITING)],
        state="Stable",
    ),
    Row(
        39,
        "an engine, a script, or another cluster's mirror: there never were members",
        [part(STOPPED, 1, **WAITING)],
        members=0,
        group_type="simple",
    ),
    Row(
        40,
        "nothing was ever committed, and it matters how much is written there",
        [part(UNKNOWN, 1, reason=UnknownReason.NO_COMMIT, produce_rate_per_second=20.0), WELL],
    ),
    Row(
        41,
        "the oldest record is older than anybody knows: what is told is the latest moment, not the earliest",
        [part(AT_RISK, 1, seconds_to_loss=9000.0, seconds_to_loss_is_upper_bound=True, **BEFORE)],
    ),
    Row(
        42,
        "the same, told from how the log start moves: neither the latest nor the earliest moment",
        [part(AT_RISK, 1, seconds_to_loss=9000.0, **BEFORE)],
    ),
    Row(
        43,
        "the owner is not to blame: a transaction hangs, and how much lies behind it",
        [part(STALLED, 1, "client billing-2", transaction_seconds=4500.0, held_back_records=41_000, **WAITING)],
    ),
    Row(
        44,
        "it will not be over before some of it is deleted",
        [
            part(
                CATCHING_UP,
                to_catch_up=Forecast(4e4, 39e3, 41e3),
                seconds_to_loss=30_000.0,
                loss_cause=DELETION,
                **WAITING,
            ),
            part(CATCHING_UP, 1, to_catch_up=Forecast(9.0, 4.0, 20.0), lag=6),
        ],
    ),
    Row(
        45,
        "who does not read what is going to be deleted: nobody is there",
        [part(AT_RISK, 3, stopped=3, seconds_to_loss=14_000.0, loss_cause=DELETION, **WAITING)],
        members=0,
    ),
    Row(
        46,
        "who does not read what is going to be deleted: somebody who is there",
        [
            part(AT_RISK, 1, "client billing-2", stalled=1, seconds_to_loss=14_000.0, loss_cause=DELETION, **WAITING),
            WELL,
        ],
    ),
    Row(
        47,
        "some of what is going to be deleted is read, but too slowly",
        [part(AT_RISK, 3, "client billing-2", stalled=1, seconds_to_loss=14_000.0, loss_cause=DELETION, **WAITING)],
    ),
    Row(
        48,
        "who does not read what is being deleted",
        [part(LOSING_DATA, 1, "client billing-2", records_lost=700, stalled=1, **WAITING), WELL],
    ),
    Row(
        49,
        "one record that makes whoever reads it crash: that is not the rebalances' fault",
        [
            part(STOPPED, 1, "client billing-2", **WAITING),
            part(UNKNOWN, 7, reason=UnknownReason.REBALANCING, lag=50, lag_seconds=2.0, consume_rate_per_second=80.0),
        ],
        state="Stable",
    ),
    Row(
        50,
        "the others are not read either",
        [
            part(STOPPED, 1, "client billing-2", **WAITING),
            part(UNKNOWN, 7, reason=UnknownReason.REBALANCING, lag=50, lag_seconds=80.0, consume_rate_per_second=80.0),
        ],
        state="Stable",
    ),
    Row(
        51,
        "two processes of one name hang",
        [part(STALLED, 2, "client billing", owning_members=2, **WAITING), WELL],
    ),
    Row(
        52,
        "it keeps pace, and somebody would ask about what waits",
        [part(OK, 3, lag=497_000, lag_seconds=30.0)],
    ),
    Row(
        53,
        "it keeps pace, and what waits is not worth a word",
        [part(OK, 3, lag=497, lag_seconds=30.0)],
    ),
    Row(
        54,
        "of the topics of the group only one is meant; an interval whose ends read alike says nothing",
        [
            part(
                CATCHING_UP,
                6,
                topics=frozenset({"orders"}),
                to_catch_up=Forecast(5400.0, 5400.0, 5401.0),
                **WAITING,
            ),
            part(OK, 6, topics=frozenset({"payments"})),
        ],
    ),
    Row(
        55,
        "a rewind of this very moment",
        [part(REWOUND, 1, rewound_records=100, rewound_seconds=0.0, **WAITING)],
    ),
)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.number:02d} {row.why}")
def test_sentence(row: Row, golden_sentence: Callable[..., None]) -> None:
    found = verdict_of(
        row.parts,
        members=row.members,
        idle_members=row.idle,
        state=row.state,
        group_type=row.group_type,
        error=row.error,
    )
    golden_sentence(found.sentence)


#: Of groups whose offsets are not kept in Kafka: type and state.
EXTERNAL_OFFSETS = [
    ("flink", "FAILED"),
    ("flink", "RUNNING"),
    ("flink", None),
    ("spark", "Recorded"),
    ("sql", "Recorded"),
    ("files", "Recorded"),
]


@pytest.mark.parametrize(("group_type", "state"), EXTERNAL_OFFSETS)
def test_why_external_offsets_do_not_move(
    group_type: str, state: str | None, golden_sentence: Callable[..., None]
) -> None:
    parts = [part(STOPPED, 1, **WAITING), WELL]
    sentence = explain(STOPPED, None, parts, members=0, idle_members=0, state=state, group_type=group_type)
    assert "1 of 10 partitions (orders-3)" in sentence
    assert "no commits" in sentence and "2 min 30 s" in sentence
    golden_sentence(sentence)


def test_a_job_without_a_checkpoint_is_described_without_numbers(golden_sentence: Callable[..., None]) -> None:
    held_up = part(STALLED, 4, "client orders-job")
    golden_sentence(explain(STALLED, None, [held_up], members=1, idle_members=0, state="RUNNING", group_type="flink"))


#: What a sentence on partitions that are unknown must say.
REASONS = {
    UnknownReason.UNREADABLE: "could not be read",
    UnknownReason.EXPIRED: "are gone",
    UnknownReason.NO_COMMIT: "ever committed",
    UnknownReason.RECREATED: "created again",
    UnknownReason.OUT_OF_RANGE: "beyond the end",
    UnknownReason.NOT_COMMITTING: "does not commit",
    UnknownReason.REBALANCING: "keeps rebalancing",
    UnknownReason.TOO_FEW_SAMPLES: "too few samples",
}


@pytest.mark.parametrize("reason", REASONS)
def test_every_reason_has_a_sentence_that_names_the_partitions(reason: UnknownReason) -> None:
    sentence = verdict_of([part(UNKNOWN, 2, reason=reason), WELL], members=3, idle_members=0).sentence
    assert REASONS[reason] in sentence.lower()
    assert "2 of 11 partitions" in sentence


def test_every_reason_is_said_of_partitions_but_one() -> None:
    assert set(UnknownReason) - set(REASONS) == {UnknownReason.NO_TOPICS}


@pytest.mark.parametrize(
    ("kind", "reason"), [("connect", "no_topics"), ("other", "no_topics"), ("classic", "no_commit")]
)
def test_a_group_without_partitions_reads_none_where_that_is_its_type(kind: str, reason: str) -> None:
    found = verdict_of([], members=2, idle_members=2, state="Stable", group_type=kind)
    assert (found.status, found.reason) == (UNKNOWN, reason)
    assert ("Reads no topic" in found.sentence) == (reason == "no_topics")
    assert is_quiet(found.status, "Stable", found.reason) == (reason == "no_topics")
    unreadable = verdict_of([], members=None, idle_members=0, group_type=kind, error="timeout")
    assert unreadable.reason == UnknownReason.UNREADABLE
    committed = verdict_of([WELL], members=2, idle_members=0, state="Stable", group_type=kind)
    assert committed.status == OK


def test_every_status_and_reason_has_its_own_sentence() -> None:
    words = [(status, None) for status in Status if status not in (GHOST, UNKNOWN)]
    sentences = [
        explain(status, reason, [part(status, reason=reason, **WAITING), WELL], members=0, idle_members=0)
        for status, reason in [*words, *((UNKNOWN, reason) for reason in UnknownReason)]
    ]
    assert len(set(sentences)) == len(words) + len(UnknownReason)
    assert all(sentence for sentence in sentences)


def test_an_age_that_is_only_known_not_to_be_negative_is_not_known() -> None:
    first_seen = part(LOSING_DATA, 1, lag=3903, lag_seconds=0.0, lag_seconds_is_lower_bound=True, records_lost=5)
    said = explain(LOSING_DATA, None, [first_seen], members=1, idle_members=0)
    assert said.endswith("3,903 records wait, oldest of unknown age.")
