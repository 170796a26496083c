"""The sentence about a group: every word has one, with its numbers. Each row says what it must make clear."""

from typing import NamedTuple

import pytest

from lagwise.domain.explain import explain
from lagwise.domain.forecast import Forecast
from lagwise.domain.groups import verdict_of
from lagwise.domain.partition_rollup import PartitionsInStatus
from lagwise.domain.vocabulary import LossCause, Status, UnknownReason
from tests.domain.spoken import WAITING, WELL, part

LOSING_DATA, AT_RISK, STOPPED, STALLED, REWOUND, FALLING_BEHIND, LAGGING, CATCHING_UP, OK, GHOST, UNKNOWN = Status


DELETION, EXPIRY = LossCause
BEFORE = WAITING | {"lag_seconds_is_lower_bound": True}
ONE = WAITING | {"lag": 1}


class Row(NamedTuple):
    number: int
    why: str
    parts: list[PartitionsInStatus]
    sentence: str
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
        "12,000 records were deleted before this group read them (orders-3); 41,234 records wait, the oldest for "
        "3 min 20 s.",
    ),
    Row(
        2,
        "one record is one record",
        [part(LOSING_DATA, 1, records_lost=1, **ONE)],
        "1 record was deleted before this group read it (orders-3); 1 record waits, the oldest for 3 min 20 s.",
    ),
    Row(
        3,
        "nothing is left to wait, and one more partition lost some",
        [part(LOSING_DATA, 2, records_lost=700, lag=0, lag_seconds=0.0), WELL],
        "700 records were deleted before this group read them (orders-3 and 1 more partition); nothing else waits.",
    ),
    Row(
        4,
        "the partition that is named lost the most",
        [
            part(LOSING_DATA, 2, records_lost=700, lag=0, lag_seconds=0.0),
            part(LOSING_DATA, 1, records_lost=900, lag=0, lag_seconds=0.0, worst_topic="payments", worst_partition=0),
        ],
        "1,600 records were deleted before this group read them (payments-0 and 2 more partitions); nothing else "
        "waits.",
    ),
    Row(
        5,
        "how soon, and that it is a forecast",
        [part(AT_RISK, 4, seconds_to_loss=7500.0, **WAITING), WELL],
        "4 of 13 partitions will lose unread records in 2 h 5 min at the earliest, at today's rates; 41,234 records "
        "wait, the oldest for 3 min 20 s.",
    ),
    Row(
        6,
        "at the edge already",
        [part(AT_RISK, 1, seconds_to_loss=0.0, **WAITING)],
        "The only partition may lose unread records at any moment; 41,234 records wait, the oldest for 3 min 20 s.",
    ),
    Row(
        44,
        "not before the retention, and by the time at which the whole segment must be gone",
        [part(AT_RISK, 1, seconds_to_loss=7500.0, seconds_to_loss_at_latest=612_600.0, **WAITING)],
        "The only partition will lose unread records in 2 h 5 min at the earliest and in 7 d 2 h at the latest (whole "
        "segments are deleted), at today's rates; 41,234 records wait, the oldest for 3 min 20 s.",
    ),
    Row(
        45,
        "at the edge, in a segment that may take records for days yet",
        [part(AT_RISK, 1, seconds_to_loss=0.0, seconds_to_loss_at_latest=604_800.0, **WAITING)],
        "The only partition may lose unread records at any moment, and will within 7 d (whole segments are deleted); "
        "41,234 records wait, the oldest for 3 min 20 s.",
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
        "The only partition may lose unread records at any moment, and will within about 5 h; 41,234 records wait, "
        "the oldest for ≥ 3 min 20 s.",
    ),
    Row(
        7,
        "nothing is unread, so it is the commits that are at risk",
        [part(AT_RISK, 3, seconds_to_loss=3600.0, loss_cause=EXPIRY, lag=0, lag_seconds=0.0)],
        "The committed offsets of all 3 partitions expire in 1 h, because the group has no members.",
        members=0,
    ),
    Row(
        8,
        "nobody is there",
        [part(STOPPED, 3, **WAITING)],
        "All 3 partitions have committed nothing, the longest for 2 min 30 s, and the oldest of 41,234 unread records "
        "has waited 3 min 20 s; the group has no members.",
        members=0,
    ),
    Row(
        9,
        "somebody is there, but not for this partition",
        [part(STOPPED, 1, **WAITING), WELL],
        "1 of 10 partitions (orders-3) has committed nothing for 2 min 30 s, and the oldest of 41,234 unread records "
        "has waited 3 min 20 s; no member owns it.",
    ),
    Row(
        10,
        "nor for these",
        [part(STOPPED, 2, **WAITING), WELL],
        "2 of 11 partitions have committed nothing, the longest for 2 min 30 s, and the oldest of 41,234 unread "
        "records has waited 3 min 20 s; no member owns them.",
    ),
    Row(
        11,
        "who does not get on",
        [part(STALLED, 1, "client billing-2 on host 10.0.0.7", **ONE), WELL],
        "1 of 10 partitions (orders-3) has committed nothing for 2 min 30 s, and the only unread record has waited "
        "3 min 20 s; its owner is client billing-2 on host 10.0.0.7.",
    ),
    Row(
        12,
        "two of them",
        [part(STALLED, 2, "client b", "client a", **WAITING)],
        "Both partitions have committed nothing, the longest for 2 min 30 s, and the oldest of 41,234 unread records "
        "has waited 3 min 20 s; their owners are client a and client b.",
    ),
    Row(
        13,
        "more than two are not named",
        [part(STALLED, 3, "client c", "client b", "client a", **WAITING), WELL],
        "3 of 12 partitions have committed nothing, the longest for 2 min 30 s, and the oldest of 41,234 unread "
        "records has waited 3 min 20 s; members own them.",
    ),
    Row(
        14,
        "an owner without a name",
        [part(STALLED, 1, **WAITING)],
        "The only partition has committed nothing for 2 min 30 s, and the oldest of 41,234 unread records has waited "
        "3 min 20 s; a member owns it.",
    ),
    Row(
        15,
        "what is to be read (again)",
        [part(REWOUND, 1, **WAITING), WELL],
        "The committed offset of 1 of 10 partitions (orders-3) went back and is not yet past where it was; 41,234 "
        "records wait to be read, for the first time or again.",
    ),
    Row(
        15,
        "a queue of RocketMQ is called as its own tools call it",
        [part(REWOUND, 1, worst_label="broker-b q3", **WAITING), WELL],
        "The committed offset of 1 of 10 queues (orders broker-b q3) went back and is not yet past where it was; "
        "41,234 records wait to be read, for the first time or again.",
    ),
    Row(
        47,
        "by how much, and when the last of them did",
        [
            part(REWOUND, 2, rewound_records=41_000, rewound_seconds=720.0, **WAITING),
            part(REWOUND, 1, rewound_records=200, rewound_seconds=840.0, lag=0, loss_cause=EXPIRY),
            WELL,
        ],
        "The committed offset of 3 of 12 partitions went back by 41,200 records, 12 min ago, and is not yet past where "
        "it was; 41,234 records wait to be read, for the first time or again.",
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
        "Lag on 3 of 12 partitions grows by 42.3 records/s (1,241 written, 1,198 read per second); 41,234 records "
        "wait, the oldest for 3 min 20 s.",
    ),
    Row(
        17,
        "a rate that is not known is a dash and not a zero",
        [part(FALLING_BEHIND, 1, lag_slope_per_second=0.5, **WAITING)],
        "Lag on the only partition grows by 0.50 records/s (— written, — read per second); 41,234 records wait, the "
        "oldest for 3 min 20 s.",
    ),
    Row(
        18,
        "an age that is at least so much",
        [part(LAGGING, 2, lag_seconds_is_lower_bound=True, lag_slope_per_second=0.1, **WAITING), WELL],
        "2 of 11 partitions stay behind: 41,234 records wait, the oldest for ≥ 3 min 20 s, and that neither grows nor "
        "shrinks.",
    ),
    Row(
        18,
        "a job that comes every few hours has no trend",
        [part(LAGGING, 2, **WAITING), WELL],
        "2 of 11 partitions stay behind: 41,234 records wait, the oldest for 3 min 20 s; whether that grows cannot be "
        "told of a group that reads so seldom.",
    ),
    Row(
        19,
        "when it will be over",
        [
            part(CATCHING_UP, 2, to_catch_up=Forecast(95.0, 60.0, 180.0), **WAITING),
            part(CATCHING_UP, 1, to_catch_up=Forecast(9.0, 4.0, 20.0), lag=6),
        ],
        "Catching up on all 3 partitions: 41,240 records wait, until about 1 min 35 s from now at today's rates "
        "(1 min to 3 min).",
    ),
    Row(20, "all is well", [WELL], "Keeps pace on all 9 partitions."),
    Row(
        21,
        "well, with one too many",
        [WELL],
        "Keeps pace on all 9 partitions; 1 of 10 members has nothing to do.",
        10,
        1,
    ),
    Row(
        22,
        "well, with many too many",
        [WELL],
        "Keeps pace on all 9 partitions; 3 of 12 members have nothing to do.",
        12,
        3,
    ),
    Row(23, "ghosts are not counted", [WELL, part(GHOST, 40, lag=7)], "Keeps pace on all 9 partitions."),
    Row(
        24,
        "the first of the losses is what counts",
        [part(AT_RISK, 1, seconds_to_loss=9000.0, **ONE), part(AT_RISK, 1, seconds_to_loss=95.0, **WAITING)],
        "Both partitions will lose unread records in 1 min 35 s at the earliest, at today's rates; 41,235 records "
        "wait, the oldest for 3 min 20 s.",
    ),
    Row(
        25,
        "nobody can tell when it will be over",
        [part(CATCHING_UP, 1, **WAITING)],
        "Catching up on the only partition: 41,234 records wait.",
    ),
    Row(
        26,
        "of the unknown, those that are so for the reason that is given",
        [part(UNKNOWN, 3, reason=UnknownReason.EXPIRED), part(UNKNOWN, 2, reason=UnknownReason.RECREATED), WELL],
        "The committed offsets of 3 of 14 partitions are gone: they expired, or somebody deleted them or the topic.",
    ),
    Row(27, "nothing was ever committed", [], "Nothing was ever committed, so nobody can tell how far this group is."),
    Row(
        28,
        "no record is deleted: the offsets expire, and what that means for the records that wait",
        [part(AT_RISK, 1, seconds_to_loss=3315.0, loss_cause=EXPIRY, **WAITING)],
        "The committed offsets of the only partition expire in 55 min 15 s, because the group has no members; a "
        "consumer that starts after that begins where auto.offset.reset says, which may skip what is unread: 41,234 "
        "records wait, the oldest for 3 min 20 s.",
        members=0,
    ),
    Row(
        29,
        "the nearest loss is of offsets, of two partitions; what will be deleted on another comes later",
        [
            part(AT_RISK, 1, seconds_to_loss=9000.0, loss_cause=DELETION, **WAITING),
            part(AT_RISK, 2, seconds_to_loss=60.0, loss_cause=EXPIRY, lag=0, lag_seconds=0.0),
        ],
        "The committed offsets of 2 of 3 partitions expire in 1 min, because the group has no members.",
        members=0,
    ),
    Row(
        30,
        "the nearest loss is of records, and of two at the same moment it is that",
        [
            part(AT_RISK, 2, seconds_to_loss=60.0, loss_cause=EXPIRY, lag=0, lag_seconds=0.0),
            part(AT_RISK, 1, seconds_to_loss=60.0, loss_cause=DELETION, **WAITING),
        ],
        "1 of 3 partitions (orders-3) will lose unread records in 1 min at the earliest, at today's rates; 41,234 "
        "records wait, the oldest for 3 min 20 s.",
        members=0,
    ),
    Row(
        31,
        "after a quiet hour one record comes in: what has lasted for an hour is not its waiting",
        [part(STOPPED, 1, lag=1, lag_seconds=45.0, unmoved_seconds=3585.0)],
        "The only partition has committed nothing for 59 min 45 s, and the only unread record has waited 45 s; the "
        "group has no members.",
        members=0,
    ),
    Row(
        32,
        "a group that may not be described, of which no partition is known: what is missing, by name",
        [],
        "The group could not be read: the collector's account may not see it; grant the account Describe on the "
        "group, or leave the group out by groups.exclude.",
        members=None,
        error="group_not_authorized",
    ),
    Row(
        33,
        "a group that could be read before: the error is the group's, not that of its partitions",
        [part(UNKNOWN, 3, reason=UnknownReason.UNREADABLE)],
        "The group could not be read: its coordinator did not answer in time; if that lasts, see whether the brokers "
        "are well.",
        members=None,
        error="timeout",
    ),
    Row(
        34,
        "an error without words of ours is named, and where there is more",
        [],
        "The group could not be read: group_max_size_reached; the collector's health page says more.",
        members=None,
        error="group_max_size_reached",
    ),
    Row(
        35,
        "nobody can tell who reads, only what waits",
        [part(UNKNOWN, 2, reason=UnknownReason.REBALANCING, **WAITING), WELL],
        "The group keeps rebalancing, so it is not settled who reads 2 of 11 partitions: 41,234 records wait, the "
        "oldest for 3 min 20 s.",
    ),
    Row(
        36,
        "what waits before anybody can tell where it is going",
        [part(UNKNOWN, 2, reason=UnknownReason.TOO_FEW_SAMPLES, **WAITING), WELL],
        "There are too few samples of 2 of 11 partitions yet to tell where the lag is going: 41,234 records wait.",
    ),
    Row(
        37,
        "a rebalance that does not end",
        [part(STOPPED, 3, **WAITING)],
        "All 3 partitions have committed nothing, the longest for 2 min 30 s, and the oldest of 41,234 unread records "
        "has waited 3 min 20 s; the group is rebalancing (PreparingRebalance) and does not get past it.",
        state="PreparingRebalance",
    ),
    Row(
        38,
        "members that come, hang and go",
        [part(STOPPED, 1, "client billing-2", **WAITING)],
        "The only partition has committed nothing for 2 min 30 s, and the oldest of 41,234 unread records has waited "
        "3 min 20 s; the group keeps rebalancing, and its members do not get to read it (its owner is client "
        "billing-2 now).",
        state="Stable",
    ),
    Row(
        39,
        "an engine, a script, or another cluster's mirror: there never were members",
        [part(STOPPED, 1, **WAITING)],
        "The only partition has committed nothing for 2 min 30 s, and the oldest of 41,234 unread records has waited "
        "3 min 20 s; its offsets are committed from outside, by a job, a tool or a mirror, which does not do so any "
        "more.",
        members=0,
        group_type="simple",
    ),
    Row(
        40,
        "nothing was ever committed, and it matters how much is written there",
        [part(UNKNOWN, 1, reason=UnknownReason.NO_COMMIT, produce_rate_per_second=20.0), WELL],
        "Nothing was ever committed on 1 of 10 partitions (orders-3), while 20.0 records/s are written there, so "
        "nobody can tell how far this group is.",
    ),
    Row(
        41,
        "the oldest record is older than anybody knows: what is told is the latest moment, not the earliest",
        [part(AT_RISK, 1, seconds_to_loss=9000.0, seconds_to_loss_is_upper_bound=True, **BEFORE)],
        "The only partition may lose unread records at any moment, and will within about 2 h 30 min; 41,234 records "
        "wait, the oldest for ≥ 3 min 20 s.",
    ),
    Row(
        42,
        "the same, told from how the log start moves: neither the latest nor the earliest moment",
        [part(AT_RISK, 1, seconds_to_loss=9000.0, **BEFORE)],
        "The only partition will lose unread records in about 2 h 30 min, at today's rates; 41,234 records wait, the "
        "oldest for ≥ 3 min 20 s.",
    ),
    Row(
        43,
        "the owner is not to blame: a transaction hangs, and how much lies behind it",
        [part(STALLED, 1, "client billing-2", transaction_seconds=4500.0, held_back_records=41_000, **WAITING)],
        "The only partition has committed nothing for 2 min 30 s, and the oldest of 41,234 unread records has waited "
        "3 min 20 s; its owner is client billing-2; 41,000 of them are held back from readers of committed records by "
        "a transaction that hangs, open for at least 1 h 15 min.",
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
        "Catching up on both partitions: 41,240 records wait, but some will be lost in 8 h 20 min at the earliest, at "
        "today's rates.",
    ),
    Row(
        45,
        "who does not read what is going to be deleted: nobody is there",
        [part(AT_RISK, 3, stopped=3, seconds_to_loss=14_000.0, loss_cause=DELETION, **WAITING)],
        "All 3 partitions will lose unread records in 3 h 53 min at the earliest, at today's rates; 41,234 records "
        "wait, the oldest for 3 min 20 s; the group has no members.",
        members=0,
    ),
    Row(
        46,
        "who does not read what is going to be deleted: somebody who is there",
        [
            part(AT_RISK, 1, "client billing-2", stalled=1, seconds_to_loss=14_000.0, loss_cause=DELETION, **WAITING),
            WELL,
        ],
        "1 of 10 partitions (orders-3) will lose unread records in 3 h 53 min at the earliest, at today's rates; "
        "41,234 records wait, the oldest for 3 min 20 s; it stands still, and its owner is client billing-2.",
    ),
    Row(
        47,
        "some of what is going to be deleted is read, but too slowly",
        [part(AT_RISK, 3, "client billing-2", stalled=1, seconds_to_loss=14_000.0, loss_cause=DELETION, **WAITING)],
        "All 3 partitions will lose unread records in 3 h 53 min at the earliest, at today's rates; 41,234 records "
        "wait, the oldest for 3 min 20 s; 1 of them stands still.",
    ),
    Row(
        48,
        "who does not read what is being deleted",
        [part(LOSING_DATA, 1, "client billing-2", records_lost=700, stalled=1, **WAITING), WELL],
        "700 records were deleted before this group read them (orders-3); 41,234 records wait, the oldest for "
        "3 min 20 s; it stands still, and its owner is client billing-2.",
    ),
    Row(
        49,
        "one record that makes whoever reads it crash: that is not the rebalances' fault",
        [
            part(STOPPED, 1, "client billing-2", **WAITING),
            part(UNKNOWN, 7, reason=UnknownReason.REBALANCING, lag=50, lag_seconds=2.0, consume_rate_per_second=80.0),
        ],
        "1 of 8 partitions (orders-3) has committed nothing for 2 min 30 s, and the oldest of 41,234 unread records "
        "has waited 3 min 20 s; whoever owns it gets no further, while the group keeps rebalancing and gets on with "
        "others (its owner is client billing-2 now).",
        state="Stable",
    ),
    Row(
        50,
        "the others are not read either",
        [
            part(STOPPED, 1, "client billing-2", **WAITING),
            part(UNKNOWN, 7, reason=UnknownReason.REBALANCING, lag=50, lag_seconds=80.0, consume_rate_per_second=80.0),
        ],
        "1 of 8 partitions (orders-3) has committed nothing for 2 min 30 s, and the oldest of 41,234 unread records "
        "has waited 3 min 20 s; the group keeps rebalancing, and its members do not get to read it (its owner is "
        "client billing-2 now).",
        state="Stable",
    ),
    Row(
        51,
        "two processes of one name hang",
        [part(STALLED, 2, "client billing", owning_members=2, **WAITING), WELL],
        "2 of 11 partitions have committed nothing, the longest for 2 min 30 s, and the oldest of 41,234 unread "
        "records has waited 3 min 20 s; their owners are 2 members that are called client billing.",
    ),
    Row(
        52,
        "it keeps pace, and somebody would ask about what waits",
        [part(OK, 3, lag=497_000, lag_seconds=30.0)],
        "Keeps pace on all 3 partitions; 497,000 records wait, the oldest for 30 s.",
    ),
    Row(
        53,
        "it keeps pace, and what waits is not worth a word",
        [part(OK, 3, lag=497, lag_seconds=30.0)],
        "Keeps pace on all 3 partitions.",
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
        "Catching up on 6 of 12 partitions (orders): 41,234 records wait, until about 1 h 30 min from now at today's "
        "rates.",
    ),
    Row(
        55,
        "a rewind of this very moment",
        [part(REWOUND, 1, rewound_records=100, rewound_seconds=0.0, **WAITING)],
        "The committed offset of the only partition went back by 100 records, just now, and is not yet past where it "
        "was; 41,234 records wait to be read, for the first time or again.",
    ),
)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.number:02d} {row.why}")
def test_sentence(row: Row) -> None:
    found = verdict_of(
        row.parts,
        members=row.members,
        idle_members=row.idle,
        state=row.state,
        group_type=row.group_type,
        error=row.error,
    )
    assert found.sentence == row.sentence


#: Of groups whose offsets are kept elsewhere than in Kafka: type, state, and why nobody reads.
ELSEWHERE = [
    ("flink", "FAILED", "; its Flink job does not run (FAILED)."),
    ("flink", "RUNNING", "; its Flink job does not read it."),
    ("flink", None, "; whether its Flink job runs, Flink does not tell."),
    ("spark", "Recorded", "; its query has completed no batch, and whether it runs its checkpoint does not tell."),
    ("sql", "Recorded", "; its offsets are kept in a database, where nobody writes them any more."),
    ("files", "Recorded", "; its offsets are kept in files, which nobody writes any more."),
]


@pytest.mark.parametrize(("group_type", "state", "why"), ELSEWHERE)
def test_who_does_not_write_what_is_kept_elsewhere(group_type: str, state: str | None, why: str) -> None:
    parts = [part(STOPPED, 1, **WAITING), WELL]
    said = explain(STOPPED, None, parts, members=0, idle_members=0, state=state, group_type=group_type)
    assert said.startswith("1 of 10 partitions (orders-3) has committed nothing for 2 min 30 s")
    assert said.endswith(why)


def test_a_job_that_is_held_up_is_told_without_numbers_that_nobody_has() -> None:
    held_up = part(STALLED, 4, "client orders-job")
    said = explain(STALLED, None, [held_up], members=1, idle_members=0, state="RUNNING", group_type="flink")
    assert said == (
        "All 4 partitions are read by a job that has never completed a checkpoint, though several were due: all that "
        "it has read may still wait inside it; their owner is client orders-job."
    )


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


@pytest.mark.parametrize("reason", UnknownReason)
def test_every_reason_has_a_sentence_that_says_which_partitions(reason: UnknownReason) -> None:
    sentence = verdict_of([part(UNKNOWN, 2, reason=reason), WELL], members=3, idle_members=0).sentence
    assert REASONS[reason] in sentence
    assert "2 of 11 partitions" in sentence


def test_every_status_and_reason_is_told_apart() -> None:
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
    assert said.endswith("3,903 records wait, the oldest for an unknown time.")
