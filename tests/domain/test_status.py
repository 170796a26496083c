"""The correctness proof of the status rules.

Every row says what is known of a group-partition and what must follow: the status, the reason of an unknown one, all
that hold, and every number. How to add a row: take the next number, say in ``why`` why the verdict is right (not what
the code does), and give every number that is not the default. Changing a row that stands needs a reason in the commit.
"""

from dataclasses import replace
from typing import Any, NamedTuple

import pytest

from lagwise.domain.evidence import Evidence, Policy
from lagwise.domain.loss.retention import Jumps
from lagwise.domain.status import judge
from lagwise.domain.trend import Trend
from lagwise.domain.vocabulary import LossCause, Status, UnknownReason

LOSING_DATA, AT_RISK, STOPPED, STALLED, REWOUND, FALLING_BEHIND, LAGGING, CATCHING_UP, OK, GHOST, UNKNOWN = Status

FLAT = Trend(0.0, -0.5, 0.5)
UP = Trend(4.0, 3.0, 5.0)
DOWN = Trend(-4.0, -5.0, -3.0)
#: Points upwards, but its interval holds the zero.
MAYBE_UP = Trend(4.0, -1.0, 9.0)
MAYBE_DOWN = Trend(-4.0, -9.0, 1.0)

#: A partition that is read as fast as it is written: 10 records per second, committed at every sample.
HEALTHY = Evidence(
    committed=1000,
    ever_committed=True,
    log_start=0,
    high_watermark=1000,
    samples=20,
    span_seconds=285.0,
    lag_seconds=0.0,
    unmoved_seconds=0.0,
    standstill_seconds=0.0,
    commits_seen=20,
    commit_cadence_seconds=15.0,
    trend=FLAT,
    longer=FLAT,
    produce_rate_per_second=10.0,
    consume_rate_per_second=10.0,
    state="Stable",
    type="classic",
    owner="consumer-1",
    topic_is_assigned=True,
    group_is_assigned=True,
    group_samples=20,
)
#: The same with a backlog of 400 records, the oldest 40 s old, and a commit every 10 s.
BEHIND = replace(HEALTHY, high_watermark=1400, lag_seconds=40.0, commit_cadence_seconds=10.0)
#: Nine minutes behind; of what is written, something will be deleted in 20 minutes, before it gets there.
OVERTAKEN = replace(BEHIND, lag_seconds=540.0, retention_seconds=3600.0, overtaken_seconds=1200.0)
#: Six of ten records are read, of a topic that keeps ten minutes.
TOO_SLOW = replace(
    BEHIND,
    trend=UP,
    longer=UP,
    consume_rate_per_second=6.0,
    retention_seconds=600.0,
)
#: Its lag grows for certain, and by half a percent of what is written. An hour is kept, and it is 54 minutes old.
CREEPING = replace(
    BEHIND,
    trend=Trend(0.05, 0.04, 0.06),
    longer=Trend(0.05, 0.04, 0.06),
    consume_rate_per_second=9.95,
    lag_seconds=3240.0,
    retention_seconds=3600.0,
)
#: A backlog that nobody reads: nothing was committed for two minutes.
STANDING = replace(
    BEHIND, unmoved_seconds=120.0, standstill_seconds=120.0, lag_seconds=120.0, consume_rate_per_second=0.0
)
#: Nobody owns it either.
DEAD = replace(STANDING, state="Empty", owner=None, topic_is_assigned=False, group_is_assigned=False)
#: A group that moved on to another topic: its backlog here grows on paper.
LEFT = replace(STANDING, owner=None, topic_is_assigned=False)
NEVER = replace(
    HEALTHY, committed=None, ever_committed=False, lag_seconds=None, samples=0, span_seconds=0.0, trend=None
)
#: The same on a partition that holds no record.
EMPTY = replace(NEVER, log_start=0, high_watermark=0, last_stable=0)
#: A backlog that was there before anyone looked, of a topic that keeps records for a week.
OLD = replace(
    STANDING,
    committed=100_000,
    high_watermark=1_000_000,
    lag_seconds=90.0,
    lag_seconds_is_lower_bound=True,
    commits_seen=0,
    commit_cadence_seconds=None,
    retention_seconds=604_800.0,
)
#: Everything before an open transaction is read; behind its first record, 16 min old, lie 662 more.
OPEN = replace(
    HEALTHY,
    high_watermark=1663,
    last_stable=1000,
    last_stable_seconds=960.0,
    lag_seconds=960.0,
    unmoved_seconds=960.0,
    standstill_seconds=960.0,
)
POLICY = Policy()


class Row(NamedTuple):
    number: int
    name: str
    why: str
    evidence: Evidence
    status: Status
    reasons: tuple[Status, ...]
    reason: UnknownReason | None = None
    lag: int | None = 0
    to_catch_up: float | None = None
    to_loss: float | None = None
    cause: LossCause | None = None
    lost: int = 0
    at_most: bool = False
    open_for: float | None = None
    policy: Policy = POLICY


def row(number: int, name: str, why: str, evidence: Evidence, status: Status, *more: Status, **expected: Any) -> Row:
    """``more`` are the further statuses that hold; a loss is one of records, unless ``expected`` says otherwise."""
    cause = None if expected.get("to_loss") is None else LossCause.DELETION
    return Row(number, name, why, evidence, status, (status, *more), **({"cause": cause} | expected))


def unknown(number: int, name: str, why: str, evidence: Evidence, reason: UnknownReason, **expected: Any) -> Row:
    """An unknown whose lag is not known either, unless ``expected`` says so."""
    return Row(number, name, why, evidence, UNKNOWN, (UNKNOWN,), reason, **({"lag": None} | expected))


ROWS = (
    # --- ok ---
    row(1, "keeps up", "all that was written is committed", HEALTHY, OK),
    row(
        2,
        "reads between two samples",
        "an unread record younger than a sampling interval may have been read since: no lag worth the name",
        replace(BEHIND, lag_seconds=15.0, trend=UP, longer=UP),
        OK,
        lag=400,
    ),
    row(
        3,
        "idle topic",
        "nothing was committed for a day because there was nothing to commit (Burrow calls this STOP once one record "
        "comes in: Burrow#38, #123, #303)",
        replace(HEALTHY, unmoved_seconds=86_400.0, produce_rate_per_second=0.0, consume_rate_per_second=0.0),
        OK,
    ),
    row(
        4,
        "first record after a day of idleness",
        "the offset has not moved for a day, but there has been something to read for 10 s only",
        replace(
            HEALTHY,
            high_watermark=1001,
            unmoved_seconds=86_400.0,
            standstill_seconds=10.0,
            lag_seconds=10.0,
            commits_seen=0,
            commit_cadence_seconds=None,
        ),
        OK,
        lag=1,
    ),
    row(
        5,
        "level backlog within the objective",
        "the oldest record waits for 40 s, and 300 s were agreed on",
        BEHIND,
        OK,
        lag=400,
    ),
    row(
        6,
        "exactly at the objective",
        "300 s old is not older than 300 s",
        replace(BEHIND, lag_seconds=300.0),
        OK,
        lag=400,
    ),
    row(
        7,
        "reader of committed records, open transaction",
        "everything up to the last stable offset is read; what lies beyond cannot be read yet (klag-exporter#104)",
        replace(HEALTHY, high_watermark=1663, last_stable=1000, lag_seconds=0.0, trend=UP, longer=UP),
        OK,
    ),
    row(
        8,
        "transaction has just ended",
        "records of the transaction are five minutes old when they can first be read: a backlog for one moment, but no "
        "standstill, since there was nothing to read a sample ago",
        replace(
            HEALTHY,
            high_watermark=1663,
            last_stable=1663,
            lag_seconds=300.0,
            unmoved_seconds=300.0,
            standstill_seconds=15.0,
        ),
        OK,
        lag=663,
    ),
    row(
        9,
        "reader of uncommitted records",
        "it has committed beyond the last stable offset, so its end is the high watermark",
        replace(BEHIND, committed=1100, last_stable=1000),
        OK,
        lag=300,
    ),
    row(
        10,
        "last stable offset beyond the high watermark",
        "the two are read one after the other; nothing can be read beyond the high watermark",
        replace(HEALTHY, last_stable=1010),
        OK,
    ),
    row(
        11,
        "emptied topic",
        "the log start has reached the commit: all was read before it was deleted",
        replace(HEALTHY, log_start=1000),
        OK,
    ),
    # --- the direction of the lag ---
    row(
        12,
        "grows",
        "both windows point upwards, the short one beyond doubt",
        replace(BEHIND, trend=UP, longer=MAYBE_UP),
        FALLING_BEHIND,
        lag=400,
    ),
    row(
        13,
        "grows, with a dip",
        "one dip makes the short window doubtful; the long one is certain and the short one still points upwards "
        "(Burrow#155: one dip clears WARN; #738: OK at a lag of 200,000)",
        replace(BEHIND, trend=MAYBE_UP, longer=UP),
        FALLING_BEHIND,
        lag=400,
    ),
    row(
        14,
        "no longer grows",
        "the long window remembers growth that the short one denies: a verdict must not outlive its cause",
        replace(BEHIND, trend=FLAT, longer=UP),
        OK,
        lag=400,
    ),
    row(
        15,
        "a bump",
        "the short window grows, the long one shrinks: a sawtooth is not a trend",
        replace(BEHIND, trend=UP, longer=MAYBE_DOWN),
        OK,
        lag=400,
    ),
    row(
        16,
        "grows by less than 1 % of what is written",
        "0.08 of 10 records per second are noise, however certain",
        replace(BEHIND, trend=Trend(0.08, 0.07, 0.09), longer=Trend(0.08, 0.07, 0.09)),
        OK,
        lag=400,
    ),
    row(
        17,
        "the short interval touches 1 %",
        "the short window is not certain of more than 1 %, the long one is, and both point the same way",
        replace(BEHIND, trend=Trend(0.2, 0.1, 0.3), longer=UP, produce_rate_per_second=10.0),
        FALLING_BEHIND,
        lag=400,
    ),
    row(
        18,
        "both intervals touch 1 %",
        "neither window is certain of more than 1 %",
        replace(BEHIND, trend=Trend(0.2, 0.1, 0.3), longer=Trend(0.2, 0.1, 0.3)),
        OK,
        lag=400,
    ),
    row(
        19,
        "grows by less than a record over the window",
        "1/300 of a record per second is the rounding of a constant, not growth",
        replace(
            BEHIND, trend=Trend(0.003, 0.003, 0.003), longer=Trend(0.003, 0.003, 0.003), produce_rate_per_second=0.0
        ),
        OK,
        lag=400,
    ),
    row(
        20,
        "grows by less than a millionth of a huge lag",
        "two billion records and two more per second: beneath what the arithmetic can tell",
        replace(BEHIND, high_watermark=2_000_001_000, trend=Trend(2.0, 2.0, 2.0), longer=Trend(2.0, 2.0, 2.0)),
        OK,
        lag=2_000_000_000,
    ),
    row(
        21,
        "level, beyond the objective",
        "nothing grows, and every record waits for longer than agreed",
        replace(BEHIND, lag_seconds=300.1),
        LAGGING,
        lag=400,
    ),
    row(
        22,
        "level for a slow committer, within two of its commits",
        "it commits every 200 s: a record can be 400 s old without being late",
        replace(BEHIND, lag_seconds=399.0, commit_cadence_seconds=200.0, span_seconds=840.0),
        OK,
        lag=400,
    ),
    row(
        23,
        "level for a slow committer, beyond two of its commits",
        "more than two commits late",
        replace(BEHIND, lag_seconds=401.0, commit_cadence_seconds=200.0, span_seconds=840.0),
        LAGGING,
        lag=400,
    ),
    row(
        24,
        "commits too rarely for any trend",
        "once in half an hour: no window holds four commits, so only the age can be judged, by its own rhythm",
        replace(
            BEHIND,
            lag_seconds=3700.0,
            commit_cadence_seconds=1800.0,
            trend_is_measurable=False,
            trend=None,
            longer=None,
        ),
        LAGGING,
        lag=400,
    ),
    row(
        25,
        "commits too rarely for any trend, in time",
        "less than two of its own commits late",
        replace(
            BEHIND,
            lag_seconds=3500.0,
            commit_cadence_seconds=1800.0,
            trend_is_measurable=False,
            trend=None,
            longer=None,
        ),
        OK,
        lag=400,
    ),
    row(
        26,
        "shrinks",
        "certainly, by 4 records per second: 400 are gone in 100 s",
        replace(BEHIND, trend=DOWN, longer=MAYBE_DOWN),
        CATCHING_UP,
        lag=400,
        to_catch_up=100.0,
    ),
    row(
        27,
        "shrinks after a long growth",
        "the long window still sees the growth and would for minutes; that it is over is good news to tell at once",
        replace(BEHIND, trend=DOWN, longer=UP),
        CATCHING_UP,
        lag=400,
        to_catch_up=100.0,
    ),
    row(
        28,
        "shrinks beyond the objective",
        "old, but on its way: what to do about it is to wait",
        replace(BEHIND, lag_seconds=900.0, trend=DOWN, longer=DOWN),
        CATCHING_UP,
        lag=400,
        to_catch_up=100.0,
    ),
    row(
        29,
        "a lag that is gone",
        "the windows remember a lag that is not there any more",
        replace(HEALTHY, trend=DOWN, longer=DOWN),
        OK,
    ),
    # --- standing still ---
    row(
        30,
        "stalled",
        "a live member owns it, there is something to read, and nothing was committed for two minutes",
        STANDING,
        STALLED,
        lag=400,
    ),
    row(
        31, "stalled for exactly 60 s", "60 s are enough", replace(STANDING, standstill_seconds=60.0), STALLED, lag=400
    ),
    row(
        32,
        "busy for 59 s",
        "a long batch is no stall",
        replace(STANDING, standstill_seconds=59.0, lag_seconds=59.0),
        OK,
        lag=400,
    ),
    row(
        33,
        "stopped",
        "nobody owns it, and nothing was committed for two minutes: the lag of the dead counts (Burrow#58, #446)",
        DEAD,
        STOPPED,
        lag=400,
    ),
    row(
        34,
        "stopped for exactly 30 s",
        "30 s are enough, where three of its own commits take no longer",
        replace(DEAD, standstill_seconds=30.0, commit_cadence_seconds=10.0),
        STOPPED,
        lag=400,
    ),
    row(
        35,
        "restarting",
        "a restart takes 29 s",
        replace(DEAD, standstill_seconds=29.0, lag_seconds=29.0, commit_cadence_seconds=5.0),
        OK,
        lag=400,
    ),
    row(
        36,
        "stopped, a wide window of commits",
        "it stopped two minutes ago; that it committed for an hour before must not hide it (Burrow#303: up to hours)",
        replace(DEAD, commits_seen=240, samples=20),
        STOPPED,
        lag=400,
    ),
    row(
        37,
        "slow committer between two checkpoints",
        "it commits every 60 s, the last time 75 s ago (as seen), and is no member of its own group: Flink",
        replace(
            DEAD, type="simple", commit_cadence_seconds=60.0, standstill_seconds=75.0, lag_seconds=75.0, commits_seen=10
        ),
        OK,
        lag=400,
    ),
    row(
        38,
        "slow committer, three checkpoints missing",
        "three of its own commits are missing",
        replace(
            DEAD,
            type="simple",
            commit_cadence_seconds=60.0,
            standstill_seconds=180.0,
            lag_seconds=180.0,
            commits_seen=10,
        ),
        STOPPED,
        lag=400,
    ),
    row(
        39,
        "slow committer with an owner, three commits missing",
        "the same holds for a batch consumer that is a member",
        replace(
            STANDING, commit_cadence_seconds=200.0, standstill_seconds=600.0, lag_seconds=600.0, span_seconds=840.0
        ),
        STALLED,
        LAGGING,
        lag=400,
    ),
    unknown(
        40,
        "no commit seen yet",
        "watched for 75 s only: it may be one that commits every minute (Burrow: one commit, width 0, STOP at once)",
        replace(
            DEAD,
            commits_seen=0,
            commit_cadence_seconds=None,
            standstill_seconds=75.0,
            lag_seconds=75.0,
            samples=6,
            span_seconds=75.0,
        ),
        UnknownReason.TOO_FEW_SAMPLES,
        lag=400,
    ),
    row(
        41,
        "no commit seen for 90 s",
        "one that commits every minute would have",
        replace(
            DEAD,
            commits_seen=0,
            commit_cadence_seconds=None,
            standstill_seconds=90.0,
            lag_seconds=90.0,
            samples=7,
            span_seconds=90.0,
        ),
        STOPPED,
        lag=400,
    ),
    unknown(
        42,
        "an engine of which no commit has been seen",
        "a group that is only a name for commits may stand for checkpoints every five minutes",
        replace(
            DEAD,
            type="simple",
            commits_seen=1,
            commit_cadence_seconds=30.0,
            standstill_seconds=290.0,
            lag_seconds=290.0,
        ),
        UnknownReason.TOO_FEW_SAMPLES,
        lag=400,
    ),
    row(
        43,
        "an engine of which no commit has been seen for ten minutes",
        "that is long enough for any",
        replace(
            DEAD,
            type="simple",
            commits_seen=1,
            commit_cadence_seconds=30.0,
            standstill_seconds=600.0,
            lag_seconds=600.0,
            span_seconds=285.0,
        ),
        STOPPED,
        lag=400,
    ),
    row(
        44,
        "one commit seen, a member owns it",
        "a rhythm takes two commits: 60 s could still be within it",
        replace(STANDING, commits_seen=1, commit_cadence_seconds=10.0, standstill_seconds=60.0, lag_seconds=60.0),
        OK,
        lag=400,
    ),
    row(
        45,
        "unowned because ownership is being settled",
        "the group is rebalancing: that nobody owns it now means nothing, so it has not stopped; what is left to say "
        "is that its lag grows",
        replace(STANDING, owner=None, state="PreparingRebalance", rebalancing_now=True, trend=UP, longer=UP),
        FALLING_BEHIND,
        lag=400,
    ),
    row(
        46,
        "state not known",
        "nobody knows whether somebody owns it: lag can still be judged by its age",
        replace(DEAD, state="Unknown", lag_seconds=400.0),
        LAGGING,
        lag=400,
    ),
    row(
        47,
        "the group was not described",
        "the same without any state",
        replace(DEAD, state=None, lag_seconds=400.0),
        LAGGING,
        lag=400,
    ),
    row(
        48,
        "a group that is gone for the coordinator",
        "Dead is as memberless as Empty",
        replace(DEAD, state="Dead"),
        STOPPED,
        lag=400,
    ),
    row(
        49,
        "unowned partition of a topic that the group has",
        "a stable group is assigned the topic, but nobody this partition (an assignor's hole): nobody reads it",
        replace(STANDING, owner=None),
        STOPPED,
        lag=400,
    ),
    row(
        50,
        "stalled and growing",
        "both hold, the worse is shown",
        replace(STANDING, trend=UP, longer=UP),
        STALLED,
        FALLING_BEHIND,
        lag=400,
    ),
    # --- ghosts ---
    row(
        51,
        "ghost",
        "the stable group is assigned other topics, and its commit here is two minutes old: an old commit",
        LEFT,
        GHOST,
        lag=None,
    ),
    row(
        52,
        "ghost after exactly 60 s",
        "60 s are enough",
        replace(LEFT, unmoved_seconds=60.0, standstill_seconds=60.0),
        GHOST,
        lag=None,
    ),
    row(
        53,
        "left the topic 45 s ago",
        "it has not stopped here, it has left; a ghost it is only after 60 s",
        replace(LEFT, unmoved_seconds=45.0, standstill_seconds=45.0, lag_seconds=45.0),
        OK,
        lag=400,
    ),
    row(
        54,
        "left the topic 45 s ago, lag grows",
        "the same; that the lag grows is true for as long as it counts",
        replace(LEFT, unmoved_seconds=45.0, standstill_seconds=45.0, lag_seconds=45.0, trend=UP, longer=UP),
        FALLING_BEHIND,
        lag=400,
    ),
    row(
        55,
        "ghost whose records were deleted",
        "nobody was ever going to read them",
        replace(LEFT, log_start=1200),
        GHOST,
        lag=None,
    ),
    row(
        56,
        "ghost that cannot be read",
        "what its lag is does not matter",
        replace(LEFT, readable=False, high_watermark=None),
        GHOST,
        lag=None,
    ),
    row(
        57,
        "dead group that had moved on",
        "an empty group is assigned nothing: its lag counts on every topic (the tension of klag#92 and Burrow#58)",
        replace(LEFT, state="Empty", group_is_assigned=False),
        STOPPED,
        lag=400,
    ),
    row(
        58,
        "still committed to, though not assigned",
        "somebody commits here outside the group's assignment, so it is no old commit",
        replace(LEFT, unmoved_seconds=10.0, standstill_seconds=10.0, lag_seconds=10.0),
        OK,
        lag=400,
    ),
    # --- rewinds ---
    row(
        59,
        "rewound",
        "the commit went back from 5,000 and is not yet there again",
        replace(BEHIND, rewound_from=5000, high_watermark=6000, trend=DOWN, longer=MAYBE_DOWN),
        REWOUND,
        CATCHING_UP,
        lag=5000,
        to_catch_up=1250.0,
    ),
    row(
        60,
        "past where it was",
        "1,000 is where it was: from there on it is new",
        replace(BEHIND, rewound_from=1000, trend=DOWN, longer=DOWN),
        CATCHING_UP,
        lag=400,
        to_catch_up=100.0,
    ),
    row(
        61,
        "rewound to nothing unread",
        "the commit went back although nothing was left: somebody reset it to the end of a log that had grown shorter",
        replace(HEALTHY, rewound_from=1200),
        REWOUND,
    ),
    # --- retention ---
    row(
        62,
        "losing data",
        "200 records below the log start were never read; the rest is 200 (not 400: redpanda#30624)",
        replace(BEHIND, log_start=1200),
        LOSING_DATA,
        lag=200,
        lost=200,
    ),
    row(
        63,
        "lost all",
        "the log start lies at the end: nothing waits, and 400 are gone",
        replace(HEALTHY, log_start=1400, high_watermark=1400),
        LOSING_DATA,
        lost=400,
    ),
    row(
        64,
        "at the edge after a loss",
        "it was set on to the oldest record there is, which is deleted next: between two losses it is still losing",
        replace(BEHIND, log_start=1000, lost_lately=250, retention_seconds=600.0, lag_seconds=601.0),
        LOSING_DATA,
        AT_RISK,
        LAGGING,
        lag=400,
        lost=250,
        to_loss=0.0,
    ),
    row(
        65,
        "recovered from a loss",
        "records were lost lately, but what waits now is young: it is over",
        replace(BEHIND, lost_lately=250, retention_seconds=600.0),
        OK,
        lag=400,
    ),
    row(
        66,
        "will lose: stalled",
        "the oldest record is 120 s old, gets older by a second per second, and is deleted at 600 s",
        replace(STANDING, retention_seconds=600.0),
        AT_RISK,
        STALLED,
        lag=400,
        to_loss=480.0,
    ),
    row(
        67,
        "will lose: stopped",
        "the same without an owner",
        replace(DEAD, retention_seconds=600.0),
        AT_RISK,
        STOPPED,
        lag=400,
        to_loss=480.0,
    ),
    row(
        68,
        "will lose: too slow",
        "6 of 10 records are read, so the oldest gets 0.4 s older per second: 560 s are left, 1,400 s long",
        replace(BEHIND, trend=UP, longer=UP, consume_rate_per_second=6.0, retention_seconds=600.0),
        AT_RISK,
        FALLING_BEHIND,
        lag=400,
        to_loss=1400.0,
    ),
    row(
        69,
        "will lose, beyond the horizon",
        "in 7 days, and 6 h are looked ahead: told, but no risk yet",
        replace(STANDING, retention_seconds=604_800.0),
        STALLED,
        lag=400,
        to_loss=604_680.0,
    ),
    row(
        70,
        "loss exactly at the horizon",
        "within the horizon includes its end",
        replace(STANDING, retention_seconds=120.0 + 21_600.0),
        AT_RISK,
        STALLED,
        lag=400,
        to_loss=21_600.0,
    ),
    row(
        71,
        "old but level",
        "nine of the ten minutes that records are kept, and no nearer to them: late, not at risk",
        replace(BEHIND, lag_seconds=540.0, retention_seconds=600.0),
        LAGGING,
        lag=400,
    ),
    row(
        72,
        "older than records are kept",
        "the segment is deleted when its newest record is that old: at any moment",
        replace(BEHIND, lag_seconds=600.0, retention_seconds=600.0),
        AT_RISK,
        LAGGING,
        lag=400,
        to_loss=0.0,
    ),
    row(
        73,
        "catching up in time",
        "the backlog gets younger: nothing will be lost",
        replace(BEHIND, lag_seconds=540.0, trend=DOWN, longer=DOWN, retention_seconds=600.0),
        CATCHING_UP,
        lag=400,
        to_catch_up=100.0,
    ),
    row(
        74,
        "retention by size, stalled",
        "1,000 records lie between the log start and the commit and go 300 at a time: the fourth jump takes the first "
        "that is unread, and comes when 1,200 are written since the last one, 1,100 from now",
        replace(STANDING, retention_is_by_size=True, log_start_jumps=Jumps(300, 1300)),
        AT_RISK,
        STALLED,
        lag=400,
        to_loss=110.0,
    ),
    row(
        75,
        "retention by size, too slow",
        "20 per second are written and 15 read: after 192.5 s the log start has jumped by 39 times 100, and the group, "
        "1,000 ahead of it, has read 2,887; one jump earlier it was still ahead",
        replace(
            BEHIND,
            trend=UP,
            longer=UP,
            produce_rate_per_second=20.0,
            consume_rate_per_second=15.0,
            retention_is_by_size=True,
            log_start_jumps=Jumps(100, 1350),
        ),
        AT_RISK,
        FALLING_BEHIND,
        lag=400,
        to_loss=192.5,
    ),
    row(
        76,
        "retention by size, keeps its distance",
        "the log start moves, but the group moves as fast",
        replace(BEHIND, retention_is_by_size=True, log_start_jumps=Jumps(300, 1300)),
        OK,
        lag=400,
    ),
    row(
        77,
        "retention by time and size",
        "whichever comes first",
        replace(STANDING, retention_seconds=600.0, retention_is_by_size=True, log_start_jumps=Jumps(10_000, 1400)),
        AT_RISK,
        STALLED,
        lag=400,
        to_loss=480.0,
    ),
    row(
        78,
        "commits will expire",
        "no lag, but the empty group's commits are forgotten in an hour: it would begin anew",
        replace(
            HEALTHY,
            state="Empty",
            owner=None,
            topic_is_assigned=False,
            group_is_assigned=False,
            seconds_to_expiry=3600.0,
        ),
        AT_RISK,
        to_loss=3600.0,
        cause=LossCause.EXPIRY,
    ),
    row(
        79,
        "commits will expire before the records",
        "whichever comes first",
        replace(DEAD, retention_seconds=604_800.0, seconds_to_expiry=7200.0),
        AT_RISK,
        STOPPED,
        lag=400,
        to_loss=7200.0,
        cause=LossCause.EXPIRY,
    ),
    row(
        80,
        "commits will expire next week",
        "beyond the horizon: nothing to do about it today",
        replace(HEALTHY, state="Empty", owner=None, group_is_assigned=False, seconds_to_expiry=604_800.0),
        OK,
        to_loss=604_800.0,
        cause=LossCause.EXPIRY,
    ),
    # --- unknown: the lag cannot be known ---
    unknown(
        81,
        "never committed",
        "it is owned and nothing was ever committed: neither the whole topic nor 0 (kafka_exporter#28, dashboard#4293)",
        NEVER,
        UnknownReason.NO_COMMIT,
    ),
    unknown(
        82,
        "never committed by a group that has left the topic",
        "without a commit there is no ghost of one",
        replace(NEVER, topic_is_assigned=False, owner=None, unmoved_seconds=600.0),
        UnknownReason.NO_COMMIT,
    ),
    unknown(
        83,
        "commits that are gone",
        "there were commits: expired or deleted is another story than never",
        replace(NEVER, ever_committed=True),
        UnknownReason.EXPIRED,
    ),
    unknown(
        84,
        "partition without a leader",
        "its end cannot be read: not 0, and not the last one seen",
        replace(HEALTHY, readable=False, high_watermark=None, log_start=None, lag_seconds=None),
        UnknownReason.UNREADABLE,
    ),
    unknown(
        85,
        "group that cannot be read",
        "no commit is seen, but only because the group could not be asked",
        replace(NEVER, readable=False),
        UnknownReason.UNREADABLE,
    ),
    unknown(
        86,
        "log start unreadable",
        "without it nobody knows what was lost",
        replace(HEALTHY, log_start=None),
        UnknownReason.UNREADABLE,
    ),
    unknown(
        87,
        "re-created topic",
        "the commit is of the topic before: 400 is the difference of two unrelated numbers (Burrow#256)",
        replace(DEAD, recreated=True),
        UnknownReason.RECREATED,
    ),
    unknown(
        88,
        "re-created topic with smaller offsets",
        "the commit lies beyond the end because it is of the topic before: that is the cause to name",
        replace(HEALTHY, recreated=True, high_watermark=5),
        UnknownReason.RECREATED,
    ),
    unknown(
        89,
        "committed beyond the end",
        "a truncated log or a foreign commit; −95 is no lag, and 0 would be a lie (kafka_exporter#437, Burrow: OK)",
        replace(HEALTHY, high_watermark=905),
        UnknownReason.OUT_OF_RANGE,
    ),
    # --- unknown: the lag is known, where it goes is not ---
    unknown(
        90,
        "two samples",
        "two say nothing",
        replace(HEALTHY, samples=2, span_seconds=15.0, trend=None, longer=None, commits_seen=1),
        UnknownReason.TOO_FEW_SAMPLES,
        lag=0,
    ),
    row(
        91,
        "three samples without lag",
        "three times nothing unread is enough to say so",
        replace(HEALTHY, samples=3, span_seconds=30.0, trend=None, longer=None),
        OK,
    ),
    unknown(
        92,
        "lag, and 59 s of samples",
        "whether it grows takes a minute to see",
        replace(BEHIND, samples=5, span_seconds=59.0, trend=UP, longer=UP),
        UnknownReason.TOO_FEW_SAMPLES,
        lag=400,
    ),
    row(
        93,
        "lag, and 60 s of samples",
        "a minute is enough",
        replace(BEHIND, samples=5, span_seconds=60.0, trend=UP, longer=UP),
        FALLING_BEHIND,
        lag=400,
    ),
    unknown(
        94,
        "between two checkpoints at the start",
        "the lag grows from commit to commit: less than three of them show half a sawtooth",
        replace(
            BEHIND,
            commit_cadence_seconds=60.0,
            span_seconds=179.0,
            lag_seconds=140.0,
            samples=12,
            trend=UP,
            longer=UP,
        ),
        UnknownReason.TOO_FEW_SAMPLES,
        lag=400,
    ),
    unknown(
        95,
        "a backlog from before anyone looked",
        "level, and at least 40 s old: it may as well be hours, so nobody can say that it is in time",
        replace(BEHIND, lag_seconds_is_lower_bound=True),
        UnknownReason.TOO_FEW_SAMPLES,
        lag=400,
    ),
    row(
        96,
        "a backlog from before anyone looked, beyond the objective",
        "at least 301 s old is enough to say that it is late",
        replace(BEHIND, lag_seconds=301.0, lag_seconds_is_lower_bound=True),
        LAGGING,
        lag=400,
    ),
    row(
        97,
        "a young backlog from before anyone looked",
        "what is at least 10 s old is no lag worth the name yet",
        replace(BEHIND, lag_seconds=10.0, lag_seconds_is_lower_bound=True),
        OK,
        lag=400,
    ),
    unknown(
        98,
        "rebalancing now",
        "no verdict on the lag holds, and who reads it is not settled",
        replace(HEALTHY, state="PreparingRebalance", owner=None, rebalancing_now=True),
        UnknownReason.REBALANCING,
        lag=0,
    ),
    unknown(
        99,
        "rebalances hardly stop",
        "7 of 20 samples are in the middle of one",
        replace(HEALTHY, samples_of_unrest=7),
        UnknownReason.REBALANCING,
        lag=0,
    ),
    row(
        100, "a third is a storm, less is not", "6 of 20 are two deployments", replace(HEALTHY, samples_of_unrest=6), OK
    ),
    row(
        101,
        "two of three samples",
        "a group that has just appeared rebalances once: two are no storm",
        replace(HEALTHY, samples_of_unrest=2, group_samples=3, samples=3, trend=None, longer=None),
        OK,
    ),
    unknown(
        102,
        "three of nine samples",
        "exactly a third, and three",
        replace(HEALTHY, samples_of_unrest=3, group_samples=9),
        UnknownReason.REBALANCING,
        lag=0,
    ),
    # --- precedence ---
    row(
        103,
        "trouble outranks unrest",
        "that it falls behind is known, whoever reads it",
        replace(BEHIND, samples_of_unrest=10, trend=UP, longer=UP),
        FALLING_BEHIND,
        lag=400,
    ),
    Row(
        104,
        "unrest outranks good news",
        "that the lag shrinks is true, but a group that hardly settles is not well",
        replace(BEHIND, samples_of_unrest=10, trend=DOWN, longer=DOWN),
        UNKNOWN,
        (CATCHING_UP, UNKNOWN),
        UnknownReason.REBALANCING,
        lag=400,
        to_catch_up=100.0,
    ),
    row(
        105,
        "everything at once",
        "worst first: what is lost, what will be, why, and what else",
        replace(
            STANDING, log_start=1100, rewound_from=2000, retention_seconds=600.0, trend=UP, longer=UP, lag_seconds=400.0
        ),
        LOSING_DATA,
        AT_RISK,
        STALLED,
        REWOUND,
        FALLING_BEHIND,
        lag=300,
        lost=100,
        to_loss=200.0,
    ),
    unknown(
        106,
        "unreadable outranks no commit",
        "what could not be asked was not answered",
        replace(NEVER, readable=False, ever_committed=True),
        UnknownReason.UNREADABLE,
    ),
    unknown(
        107,
        "no verdict without an end",
        "neither lost records nor a rewind can be told from a partition whose end is not known",
        replace(STANDING, readable=False, log_start=1100, high_watermark=None, rewound_from=2000),
        UnknownReason.UNREADABLE,
    ),
    row(
        108,
        "a shorter objective",
        "40 s old where 30 s were agreed on",
        BEHIND,
        LAGGING,
        lag=400,
        policy=Policy(lag_objective_seconds=30.0),
    ),
    row(
        109,
        "a longer sampling interval",
        "sampled every minute, a record of 40 s is no lag worth the name",
        replace(BEHIND, trend=UP, longer=UP),
        OK,
        lag=400,
        policy=Policy(interval_seconds=60.0),
    ),
    row(
        110,
        "a nearer horizon",
        "two minutes are looked ahead, and the loss is eight away",
        replace(STANDING, retention_seconds=600.0),
        STALLED,
        lag=400,
        to_loss=480.0,
        policy=Policy(risk_horizon_seconds=120.0),
    ),
    row(
        111,
        "commits expire as records are deleted",
        "at the same moment: what is deleted is gone for everybody, so that is told",
        replace(DEAD, retention_seconds=600.0, seconds_to_expiry=480.0),
        AT_RISK,
        STOPPED,
        lag=400,
        to_loss=480.0,
    ),
    row(
        112,
        "records are deleted before the commits expire",
        "whichever comes first, the other way round",
        replace(DEAD, retention_seconds=600.0, seconds_to_expiry=604_800.0),
        AT_RISK,
        STOPPED,
        lag=400,
        to_loss=480.0,
    ),
    # --- what a rhythm hides ---
    row(
        113,
        "between two checkpoints",
        "commits come every 60 s: a record read at once is uncommitted for as long, or twice that if one is late, and "
        "samples tell its age to within 15 s. What grew meanwhile is the sawtooth, however it looks in the windows",
        replace(BEHIND, commit_cadence_seconds=60.0, lag_seconds=135.0, trend=UP, longer=UP),
        OK,
        lag=400,
    ),
    row(
        114,
        "longer than between two checkpoints",
        "the oldest record waits for longer than one that is read at once can",
        replace(BEHIND, commit_cadence_seconds=60.0, lag_seconds=135.1, trend=UP, longer=UP),
        FALLING_BEHIND,
        lag=400,
    ),
    row(
        115,
        "a rare record waits for its commit",
        "one that commits every minute: the seven records of the last hour happened to wait for 20 s on the average, "
        "this one may wait for a minute",
        replace(
            HEALTHY,
            high_watermark=1001,
            lag_seconds=75.0,
            standstill_seconds=75.0,
            commits_seen=7,
            commit_cadence_seconds=20.0,
            produce_rate_per_second=0.003,
        ),
        OK,
        lag=1,
    ),
    row(
        116,
        "a rare record waits for longer",
        "commits that take 20 s do not take 90",
        replace(
            HEALTHY,
            high_watermark=1001,
            lag_seconds=90.0,
            standstill_seconds=90.0,
            commits_seen=7,
            commit_cadence_seconds=10.0,
            produce_rate_per_second=0.003,
        ),
        STALLED,
        lag=1,
    ),
    row(
        117,
        "a rare record, a rhythm known from ten commits",
        "ten of them waited for 20 s on the average, which is half of what commits take: three times those 40 s",
        replace(
            HEALTHY,
            high_watermark=1001,
            lag_seconds=120.0,
            standstill_seconds=120.0,
            commits_seen=10,
            commit_cadence_seconds=20.0,
            produce_rate_per_second=0.003,
        ),
        STALLED,
        lag=1,
    ),
    row(
        118,
        "few commits on a busy topic",
        "records wait all the time, so every commit shows the whole rhythm",
        replace(STANDING, commits_seen=2, commit_cadence_seconds=20.0, standstill_seconds=60.0, lag_seconds=60.0),
        STALLED,
        lag=400,
    ),
    row(
        119,
        "a rare record that nobody can commit",
        "the group has no members: there is no rhythm to wait for",
        replace(
            DEAD,
            commits_seen=7,
            commit_cadence_seconds=10.0,
            standstill_seconds=30.0,
            lag_seconds=30.0,
            produce_rate_per_second=0.003,
        ),
        STOPPED,
        lag=400,
    ),
    row(
        120,
        "behind by a commit marker",
        "the last offset is the marker that ended a transaction: nothing is unread, however long that stands "
        "(KEDA#5675, librdkafka#2539, klag-exporter#104)",
        replace(STANDING, high_watermark=1001, next_record=1001, lag_seconds=0.0, standstill_seconds=0.0),
        OK,
    ),
    row(
        121,
        "behind by a record and its marker",
        "the next record was looked up, and is there: two offsets are left, one of them is unread work",
        replace(STANDING, high_watermark=1002, next_record=1000),
        STALLED,
        lag=2,
    ),
    row(
        122,
        "the marker was deleted",
        "retention took the marker of the last transaction: no record was lost",
        replace(HEALTHY, log_start=1001, high_watermark=1001, next_record=1001),
        OK,
    ),
    row(
        123,
        "a look that is older than the commit",
        "what comes after an offset says nothing of later ones",
        replace(HEALTHY, committed=1000, next_record=900),
        OK,
    ),
    row(
        124,
        "a rare record, still within a rhythm known from many",
        "22 of them waited for 20 s on the average, so commits may well take a minute",
        replace(
            HEALTHY,
            high_watermark=1001,
            lag_seconds=75.0,
            standstill_seconds=75.0,
            commits_seen=22,
            commit_cadence_seconds=20.0,
            produce_rate_per_second=0.006,
        ),
        OK,
        lag=1,
    ),
    unknown(
        125,
        "younger than two commits, as far as is known",
        "it was there when the first look was taken: how old it is nobody knows, so no rhythm explains it",
        replace(
            BEHIND,
            commit_cadence_seconds=60.0,
            lag_seconds=45.0,
            lag_seconds_is_lower_bound=True,
            trend=UP,
            longer=FLAT,
        ),
        UnknownReason.TOO_FEW_SAMPLES,
        lag=400,
    ),
    row(
        126,
        "unowned in the one sample that saw a rebalance",
        "whoever read it will own it again in a moment, or somebody else: it has not stopped for a deployment",
        replace(DEAD, state="PreparingRebalance", standstill_seconds=30.0, lag_seconds=30.0),
        OK,
        lag=400,
    ),
    row(
        127,
        "retention by size, and the log start has never jumped",
        "how large its segments are nobody knows yet, and a guess is no forecast",
        replace(STANDING, retention_is_by_size=True),
        STALLED,
        lag=400,
    ),
    row(
        128,
        "retention by size, losing already",
        "200 are gone; the next go with the next jump, when 200 more are written",
        replace(STANDING, log_start=1200, retention_is_by_size=True, log_start_jumps=Jumps(300, 1300)),
        LOSING_DATA,
        AT_RISK,
        STALLED,
        lag=200,
        lost=200,
        to_loss=20.0,
    ),
    row(
        129,
        "retention by size, a jump is overdue",
        "more was written than segments hold: the next jump comes at any moment, and takes all of it",
        replace(STANDING, log_start=600, retention_is_by_size=True, log_start_jumps=Jumps(300, 900)),
        AT_RISK,
        STALLED,
        lag=400,
        to_loss=0.0,
    ),
    row(
        130,
        "between two losses that are far apart",
        "it was set on to the oldest record there is, and a segment holds forty minutes: until then nothing is lost",
        replace(
            STANDING, log_start=1000, lost_lately=250, retention_is_by_size=True, log_start_jumps=Jumps(24_000, 1400)
        ),
        AT_RISK,
        STALLED,
        lag=400,
        to_loss=2400.0,
    ),
    row(
        131,
        "a rebalance that does not end",
        "members have five minutes by default to come back to a rebalance: after that nobody reads, whoever is in it",
        replace(
            STANDING,
            owner=None,
            state="PreparingRebalance",
            rebalancing_now=True,
            standstill_seconds=300.0,
            trend=UP,
            longer=UP,
        ),
        STOPPED,
        FALLING_BEHIND,
        lag=400,
    ),
    row(
        132,
        "members that come, hang and die",
        "whose the partition is at this moment changes every minute, that nobody reads does not",
        replace(STANDING, samples_of_unrest=10, standstill_seconds=300.0),
        STOPPED,
        lag=400,
    ),
    row(
        133,
        "one of them hangs in a group that hardly rebalances",
        "that its owner does not get on is what there is to say",
        replace(STANDING, samples_of_unrest=2, standstill_seconds=300.0),
        STALLED,
        lag=400,
    ),
    row(
        134,
        "a topic that was left by a group that keeps rebalancing",
        "nobody is meant to read it",
        replace(LEFT, samples_of_unrest=10, standstill_seconds=300.0, unmoved_seconds=300.0),
        GHOST,
        lag=None,
    ),
    # --- nothing to read, and so nothing to commit ---
    row(
        135,
        "owned and empty, never committed",
        "a client that commits only what it has read (librdkafka) commits nothing on a partition without records: "
        "nothing is unread there",
        EMPTY,
        OK,
    ),
    row(
        136,
        "owned, never committed, all records deleted",
        "what was deleted can be read by nobody, and where nothing was committed nobody can say that it was lost",
        replace(EMPTY, log_start=1000, high_watermark=1000),
        OK,
    ),
    unknown(
        137,
        "owned, never committed, one record",
        "whether it was read cannot be known",
        replace(EMPTY, high_watermark=1),
        UnknownReason.NO_COMMIT,
    ),
    unknown(
        138,
        "empty, never committed, owned by nobody",
        "nobody reads it, as far as anybody knows",
        replace(EMPTY, owner=None),
        UnknownReason.NO_COMMIT,
    ),
    unknown(
        139,
        "empty, and its commit is gone",
        "where the group goes on is up to its settings: that is worth knowing, records or not",
        replace(EMPTY, ever_committed=True),
        UnknownReason.EXPIRED,
    ),
    unknown(
        140,
        "empty, in a group that keeps rebalancing",
        "who reads it is not settled, as for every other partition",
        replace(EMPTY, rebalancing_now=True),
        UnknownReason.REBALANCING,
        lag=0,
    ),
    unknown(
        141,
        "empty as far as its end is known",
        "without the log start it cannot be known that nothing is there",
        replace(EMPTY, log_start=None),
        UnknownReason.NO_COMMIT,
    ),
    # --- when records are lost that are older than anybody knows ---
    row(
        142,
        "stands before the log's beginning, nothing was ever deleted",
        "the oldest record has waited for 90 s that are known, and may be at its end: a bound, and no forecast",
        OLD,
        STALLED,
        lag=900_000,
        to_loss=604_710.0,
        at_most=True,
    ),
    row(
        143,
        "stands near the log start of a log that is deleted",
        "the log holds 600,000 records, a week's worth: its start moves on by one each 1.008 s on the average and is "
        "10,000 away, whatever the ages",
        replace(OLD, committed=410_000, log_start=400_000, high_watermark=1_000_000),
        AT_RISK,
        STALLED,
        lag=590_000,
        to_loss=10_080.0,
    ),
    row(
        144,
        "the same, and the log start was seen to move",
        "more was written a week ago than since: it comes nearer by 20 records a second",
        replace(OLD, committed=410_000, log_start=400_000, high_watermark=1_000_000, log_start_rate_per_second=20.0),
        AT_RISK,
        STALLED,
        lag=590_000,
        to_loss=500.0,
    ),
    row(
        145,
        "behind the history, and reads faster than the log start moves on",
        "the distance grows: by the log start it loses nothing, and by its age nobody can tell before the bound",
        replace(
            OLD,
            committed=410_000,
            log_start=400_000,
            high_watermark=1_000_000,
            standstill_seconds=0.0,
            trend=UP,
            longer=UP,
            produce_rate_per_second=10.0,
            consume_rate_per_second=6.0,
        ),
        FALLING_BEHIND,
        lag=590_000,
        to_loss=604_710.0 / 0.4,
        at_most=True,
    ),
    row(
        146,
        "behind the history, on a log that is kept for ever",
        "what nobody deletes is not lost, wherever the log starts",
        replace(OLD, log_start=90_000, retention_seconds=None),
        STALLED,
        lag=900_000,
    ),
    row(
        147,
        "known to be older than is kept",
        "at least so old is old enough: at any moment, and no bound",
        replace(OLD, lag_seconds=700_000.0),
        AT_RISK,
        STALLED,
        LAGGING,
        lag=900_000,
        to_loss=0.0,
    ),
    row(
        148,
        "its commits expire before that",
        "when offsets expire is known to the second",
        replace(OLD, owner=None, state="Empty", seconds_to_expiry=3600.0),
        AT_RISK,
        STOPPED,
        lag=900_000,
        to_loss=3600.0,
        cause=LossCause.EXPIRY,
    ),
    # --- a transaction that hangs ---
    row(
        149,
        "open for as long as a transaction may be",
        "it still ends by itself, and until then nothing can be read beyond it",
        replace(OPEN, last_stable_seconds=959.0),
        OK,
        lag=0,
    ),
    row(
        150,
        "hangs: open for longer than any transaction may be",
        "it does not end by itself, so what lies beyond is unread and gets older: the owner does not get on",
        OPEN,
        STALLED,
        LAGGING,
        lag=663,
        open_for=960.0,
    ),
    row(
        151,
        "hangs, and nobody is there to read on when it is aborted",
        "a group without members does not keep pace with anything",
        replace(OPEN, owner=None, state="Empty", topic_is_assigned=False, group_is_assigned=False),
        STOPPED,
        LAGGING,
        lag=663,
        open_for=960.0,
    ),
    row(
        152,
        "hangs, and the topic keeps records for half an hour",
        "nobody will have read what is deleted then",
        replace(OPEN, retention_seconds=1800.0),
        AT_RISK,
        STALLED,
        LAGGING,
        lag=663,
        to_loss=840.0,
        open_for=960.0,
    ),
    row(
        153,
        "hangs, and the group reads beyond it",
        "a reader of uncommitted records is not held back",
        replace(OPEN, committed=1663, lag_seconds=0.0, standstill_seconds=0.0, unmoved_seconds=0.0),
        OK,
        lag=0,
    ),
    row(
        154,
        "nothing beyond the last stable offset, however old it is",
        "no transaction is open where all can be read",
        replace(OPEN, high_watermark=1000, lag_seconds=0.0, standstill_seconds=0.0),
        OK,
        lag=0,
    ),
    # --- losses that go on, and who deleted ---
    row(
        155,
        "at the edge, where the lag does not grow",
        "it is cut off by what is deleted: that it lost lately and is about as old as is kept tells that it goes on",
        replace(BEHIND, lost_lately=250, retention_seconds=50.0),
        LOSING_DATA,
        lag=400,
        lost=250,
    ),
    row(
        156,
        "at the edge, with nothing unread",
        "what it lost lately was its last",
        replace(HEALTHY, lost_lately=250, retention_seconds=10.0),
        OK,
    ),
    row(
        157,
        "its own purge, seen between commit and log start",
        "no limit can have deleted what is gone, and a minute before the log did not begin behind it",
        replace(HEALTHY, log_start=1100, high_watermark=1100, deleted_by_request=True, earlier_log_start=990),
        OK,
    ),
    row(
        158,
        "its own purge, and nobody knows how it was before",
        "what one sample shows is no proof where a client had it deleted",
        replace(HEALTHY, log_start=1100, high_watermark=1100, deleted_by_request=True),
        OK,
    ),
    row(
        159,
        "deleted by somebody else",
        "it is behind where the log began a minute before: it cannot have committed before that was deleted",
        replace(HEALTHY, log_start=1100, high_watermark=1100, deleted_by_request=True, earlier_log_start=1060),
        LOSING_DATA,
        lost=60,
    ),
    row(
        160,
        "purges, and what it seemed to lose lately",
        "was never lost",
        replace(BEHIND, lost_lately=250, retention_seconds=50.0, deleted_by_request=True, earlier_log_start=0),
        OK,
        lag=400,
    ),
    # --- retention overtakes a reader ---
    row(
        161,
        "catching up too slowly",
        "there is less unread all the time, and the rest of the burst is deleted before it gets there",
        replace(OVERTAKEN, trend=DOWN, longer=DOWN),
        AT_RISK,
        CATCHING_UP,
        lag=400,
        to_catch_up=100.0,
        to_loss=1200.0,
    ),
    row(
        162,
        "level, and overtaken",
        "as much is written as is read, and what was written before is deleted in time",
        OVERTAKEN,
        AT_RISK,
        LAGGING,
        lag=400,
        to_loss=1200.0,
    ),
    row(
        163,
        "behind for less than a minute",
        "nobody knows yet how fast it reads",
        replace(OVERTAKEN, lag_seconds=59.0),
        OK,
        lag=400,
    ),
    row(
        164,
        "set back while its rate was measured",
        "before that it had everything read: it can read faster than it did",
        replace(OVERTAKEN, rewound_from=900, rewound_seconds=284.0),
        LAGGING,
        lag=400,
    ),
    row(
        165,
        "set back before its rate was measured",
        "all the time it had something to read",
        replace(OVERTAKEN, rewound_from=900, rewound_seconds=285.0),
        AT_RISK,
        LAGGING,
        lag=400,
        to_loss=1200.0,
    ),
    row(
        166,
        "too slow, and overtaken before what today's rates say",
        "today less is written than was: by today's rates 1,400 s are left, and 300 s by what is written",
        replace(TOO_SLOW, lag_seconds=300.0, overtaken_seconds=300.0),
        AT_RISK,
        FALLING_BEHIND,
        lag=400,
        to_loss=300.0,
    ),
    row(
        167,
        "too slow, and in time for all that is written",
        "today more is written than was, so it is what comes now that will be lost: it is kept for ten minutes",
        replace(TOO_SLOW, lag_seconds=500.0),
        AT_RISK,
        FALLING_BEHIND,
        lag=400,
        to_loss=600.0,
    ),
    row(
        168,
        "too slow for a burst, and fast enough for an hour of them",
        "what comes now and then does not go on",
        replace(TOO_SLOW, steady_produce_rate_per_second=5.0),
        FALLING_BEHIND,
        lag=400,
    ),
    row(
        169,
        "nearly too old, and slower than is written",
        "54 of 60 minutes: two percent, of which the trend shows less than one, use up the rest in five hours",
        replace(CREEPING, consume_rate_per_second=9.8),
        AT_RISK,
        LAGGING,
        lag=400,
        to_loss=18_000.0,
    ),
    row(
        170,
        "slower by half a percent, and not so old",
        "no trend to speak of, and far from the edge",
        replace(CREEPING, lag_seconds=3239.0),
        LAGGING,
        lag=400,
    ),
    row(
        171,
        "nearly too old, and as likely faster as slower",
        "the interval of its trend holds the zero",
        replace(CREEPING, trend=FLAT),
        LAGGING,
        lag=400,
    ),
    # --- what a long transaction held back ---
    row(
        172,
        "old when it may be read at last",
        "15 s ago nothing could be read that was not: it had no time to be late",
        replace(BEHIND, lag_seconds=600.0, drained_seconds=15.0),
        OK,
        lag=400,
    ),
    row(
        173,
        "drained longer ago than the objective",
        "it has had its time, and what may be read is late",
        replace(BEHIND, lag_seconds=600.0, drained_seconds=300.1),
        LAGGING,
        lag=400,
    ),
)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.number:03d} {row.name}")
def test_verdict(row: Row) -> None:
    verdict = judge(row.evidence, row.policy)
    assert (verdict.status, verdict.reason, verdict.reasons) == (row.status, row.reason, row.reasons), row.why
    assert (verdict.lag, verdict.records_lost) == (row.lag, row.lost), row.why
    assert verdict.seconds_to_catch_up == pytest.approx(row.to_catch_up), row.why
    assert verdict.seconds_to_loss == pytest.approx(row.to_loss), row.why
    assert (verdict.loss_cause, verdict.seconds_to_loss_is_upper_bound) == (row.cause, row.at_most), row.why
    assert verdict.transaction_seconds == row.open_for, row.why


def test_rows_are_numbered_and_each_says_why() -> None:
    assert [row.number for row in ROWS] == list(range(1, len(ROWS) + 1))
    assert len({row.name for row in ROWS}) == len(ROWS)
    assert all(len(row.why) > 10 for row in ROWS)


def test_every_word_is_proved() -> None:
    assert {row.status for row in ROWS} == set(Status)
    # No source tells yet that an engine does not commit.
    assert {row.reason for row in ROWS if row.reason} == set(UnknownReason) - {UnknownReason.NOT_COMMITTING}


def test_reasons_are_ordered_and_begin_with_the_status() -> None:
    for row in ROWS:
        assert list(row.reasons) == sorted(row.reasons, key=lambda s: s.rank)
        assert row.status is UNKNOWN or row.reasons[0] is row.status


@pytest.mark.parametrize(
    ("evidence", "status", "rate_per_second"),
    [
        (BEHIND, Status.OK, 4.0),
        (replace(STANDING, standstill_seconds=50.0), Status.OK, 4.0),
        (STANDING, Status.STALLED, 0.0),
        (DEAD, Status.STOPPED, 0.0),
        (replace(DEAD, retention_seconds=150.0), Status.AT_RISK, 0.0),
        (replace(LEFT, unmoved_seconds=10.0), Status.OK, 4.0),
        (LEFT, Status.GHOST, 4.0),
        (replace(DEAD, readable=False), Status.UNKNOWN, 4.0),
    ],
)
def test_where_nobody_reads_the_rate_is_zero_whatever_the_window_still_holds(
    evidence: Evidence, status: Status, rate_per_second: float
) -> None:
    verdict = judge(replace(evidence, consume_rate_per_second=4.0), POLICY)
    assert (verdict.status, verdict.consume_rate_per_second) == (status, rate_per_second)
