"""The rules: from what is known of a group-partition to its status.

The proof table of ``tests/domain/test_status.py`` says why each is right.
"""

import numpy as np

from lagwise.domain.verdicts.columns import NULL, Array, Columns, as_floats, before, is_first, last_index, or_zero
from lagwise.domain.verdicts.direction import CADENCES_OF_PATIENCE, direction
from lagwise.domain.verdicts.loss import loss_of, lost_of_day
from lagwise.domain.verdicts.turns import ABSENCE_SECONDS
from lagwise.domain.vocabulary import Status, UnknownReason

#: A partition is judged over its own commit cadence: this many cadences without a commit are a standstill, and a trend
#: needs at least this many.
TELLING_CADENCES = 3.0
#: Shortest pause of a partition that a member owns which is a standstill: the member may be busy with a long batch, or
#: restart.
STALLED_AFTER_SECONDS = 60.0
#: Shortest standstill of a partition without an owner: a restart takes that long.
STOPPED_AFTER_SECONDS = 30.0
#: Shortest standstill in a group that keeps rebalancing: its members have this long to rejoin
#: (`max.poll.interval.ms`).
UNSETTLED_AFTER_SECONDS = 300.0
#: Shortest standstill before the commit cadence is known: a job that commits once a minute must have had the chance.
UNSEEN_AFTER_SECONDS = 90.0
#: Shortest standstill, before the commit cadence is known, of a group that is only the name for an engine's commits: a
#: job that commits every few minutes must have had the chance.
UNSEEN_SIMPLE_AFTER_SECONDS = 600.0
#: The commit cadence is known once this many commits have been seen: the time before the first is cut off at its
#: start.
COMMITS_OF_RHYTHM = 2
#: Commits that make the cadence known where records come more rarely than samples: each commit waits for a part of the
#: cadence, by chance a short one.
COMMITS_OF_RHYTHM_IF_RARE = 10
#: Factor on the cadence where records come more rarely than samples: a commit waits for half of it on average.
CADENCE_IF_RARE = 2.0
#: A topic that the group committed to within this time is not a ghost, whatever the assignment says.
GHOST_AFTER_SECONDS = 60.0
#: A group keeps rebalancing when at least this many, and at least this share, of recent samples report it.
REBALANCES_OF_UNREST = 3
SHARE_OF_UNREST = 1 / 3
#: It does not once it has not been seen to for this long (or for two sampling intervals).
SETTLED_AFTER_SECONDS = 120.0
#: Fewer samples than this say nothing.
MINIMUM_SAMPLES = 3
#: The names behind the numbers in verdicts; -1 is null.
STATUSES = tuple(Status)
REASONS = tuple(UnknownReason)
_NUMBER = {word: number for words in (STATUSES, REASONS) for number, word in enumerate(words)}
#: The statuses that may hold together, worst first.
HELD = (
    Status.LOSING_DATA,
    Status.AT_RISK,
    Status.STOPPED,
    Status.STALLED,
    Status.REWOUND,
    Status.FALLING_BEHIND,
    Status.LAGGING,
    Status.CATCHING_UP,
)


def judge(e: Columns) -> dict[str, Array]:
    """The verdicts on evidence (:func:`lagwise.domain.verdicts.evidence.evidence_of`): see the comments at the columns
    of the result, which replace those of the evidence of the same name. Statuses, reasons and loss causes are numbers
    in ``STATUSES``, ``REASONS`` and :data:`lagwise.domain.verdicts.loss.LOSS_CAUSES`; ``holds`` has a row for each of
    ``HELD``."""
    p = _seen(e)
    blind, blind_status, is_known, keeps_rebalancing = (
        p[name] for name in ("blind", "blind_status", "is_known", "keeps_rebalancing")
    )
    # Lag that grew because nobody read it does not go on growing once somebody does.
    p["grows"] = _grows(p, e["was_growing"] & ~(e["was_stopped"] | e["was_stalled"]))
    p["is_level"] = _is_level(p)
    for standing, other in (("stopped", "stalled"), ("stalled", "stopped")):
        p[standing] = p[f"is_{standing}"] | (e[f"was_{standing}"] & p["goes_on_standing"] & ~p[f"is_{other}"])
    loss = loss_of(p)
    holds = np.stack(
        [
            loss["records_lost"] > 0,
            loss["seconds_to_loss"] <= e["risk_horizon_seconds"],
            p["stopped"],
            p["stalled"],
            e["committed"] < e["rewound_from"],
            p["grows"],
            p["is_level"] & (p["is_late"] | (e["was_lagging"] & p["is_late_again"])),
            p["shrinks"],
        ]
    )
    holds &= is_known
    status, reason = _verdict(p, holds, keeps_rebalancing)
    is_ghost = blind_status == _NUMBER[Status.GHOST]
    nobody_reads = is_known & (p["stopped"] | p["stalled"])
    shown_lost = np.where(is_known, loss["records_lost"], 0)
    status = np.where(is_known, status, blind_status)
    return {
        "status": status,
        # Why it is unknown; null for every other status.
        "reason": np.where(is_known, reason, np.where(blind_status == _NUMBER[Status.UNKNOWN], blind, -1)),
        # Every status of HELD that holds.
        "holds": holds,
        "is_known": is_known,
        # Stopped, or stalled, be it with a worse status.
        "stopped": holds[HELD.index(Status.STOPPED)],
        "stalled": holds[HELD.index(Status.STALLED)] | (status == _NUMBER[Status.STALLED]),
        "lag": np.where(is_known, e["lag"], NULL),
        "lag_seconds": np.where(is_known, e["lag_seconds"], np.nan),
        "lag_seconds_is_lower_bound": is_known & e["lag_seconds_is_lower_bound"],
        # The window, which suits a rhythm of commits that has ended, still holds the last of them.
        "consume_rate_per_second": np.where(nobody_reads, 0.0, e["consume_rate_per_second"]),
        "records_lost": shown_lost,
        **lost_of_day(e, is_ghost, shown_lost),
        "rewound_records": np.where(is_known & holds[HELD.index(Status.REWOUND)], e["rewound_records"], NULL),
        "rewound_at": np.where(is_known & holds[HELD.index(Status.REWOUND)], e["rewound_at"], NULL),
        "transaction_seconds": np.where(is_known & e["is_held_back"], e["last_stable_seconds"], np.nan),
        **{name: np.where(is_known, loss[name], np.nan) for name in ("seconds_to_loss", "seconds_to_loss_at_latest")},
        "seconds_to_loss_is_upper_bound": is_known & loss["seconds_to_loss_is_upper_bound"],
        "loss_cause": np.where(is_known, loss["loss_cause"], -1),
        **{name: np.where(is_known, value, np.nan) for name, value in _forecasts(p).items()},
    }


def remembered(e: Columns, series: Array, moment: Array) -> dict[str, Array]:
    """What each row remembers of the one before it in its series, where both are among those of ``e``: as rounds
    remember by the verdicts of the round before. The columns ``was_growing``, ``was_lagging``, ``was_stopped`` and
    ``was_stalled``."""
    p = _seen(e)
    order = np.lexsort((moment, series))
    first = is_first(series[order])

    def before_each(begins: Array, goes_on: Array) -> Array:
        """Whether it has begun before each row, and gone on since."""
        begins, goes_on = (begins & p["is_known"])[order], (goes_on & p["is_known"])[order]
        holds = last_index(begins) > last_index(~begins & (~goes_on | first))
        made = np.empty(len(series), bool)
        made[order] = ~first & before(holds)
        return made

    stopped, stalled, stands = (p[name] for name in ("is_stopped", "is_stalled", "goes_on_standing"))
    was_stopped, was_stalled = before_each(stopped, stands & ~stalled), before_each(stalled, stands & ~stopped)
    # As in `judge`: growth of lag that nobody read is forgotten.
    reads = ~(stopped | stalled | ((was_stopped | was_stalled) & stands))
    was_growing = before_each(p["begins_to_grow"] & reads, p["goes_on_growing"] & reads)
    is_level = _is_level({**p, "grows": _grows(p, was_growing)})
    return {
        "was_growing": was_growing,
        "was_lagging": before_each(is_level & p["is_late"], is_level & p["is_late_again"]),
        "was_stopped": was_stopped,
        "was_stalled": was_stalled,
    }


def _seen(e: Columns) -> dict[str, Array]:
    """The evidence, and what it shows by itself, without what was so before."""
    blind, blind_status = _blind(e)
    p = {**e, "age": or_zero(e["lag_seconds"]), "produced": or_zero(e["produce_rate_per_second"]),
         "consumed": or_zero(e["consume_rate_per_second"]), "cadence": or_zero(e["commit_cadence_seconds"]),
         "has_lag": e["lag"] > 0, "blind": blind, "blind_status": blind_status, "is_known": blind < 0}  # fmt: skip
    unrest = e["samples_of_unrest"]
    keeps = (unrest >= REBALANCES_OF_UNREST) & (unrest >= SHARE_OF_UNREST * e["group_samples"])
    keeps &= e["settled_seconds"] <= np.maximum(SETTLED_AFTER_SECONDS, 2 * e["interval_seconds"])
    p["keeps_rebalancing"] = e["rebalancing_now"] | keeps
    late = np.where(e["lag_seconds_is_lower_bound"], 0.0, CADENCES_OF_PATIENCE * p["cadence"])
    # Larger than what sampling and committing make of no lag at all: a record that was read at once is committed a
    # cadence later, or two where a commit is late, and its age is known to within an interval. (Of one that was there
    # before anyone looked it is not.)
    p["is_visible"] = p["has_lag"] & (p["age"] > e["interval_seconds"] + late)
    p["is_measured"] = ~np.isnan(e["slope"]) & (e["span_seconds"] >= telling_seconds(p, e["minimum_span_seconds"]))
    p |= _standing(p)
    p |= direction(p)
    # What nobody reads just now grows until its turn comes.
    p["begins_to_grow"] &= ~(p["awaits_turn"] & (p["standstill_seconds"] >= ABSENCE_SECONDS))
    p |= _lateness(p)
    return p


def _grows(p: Columns, was_growing: Array) -> Array:
    return p["begins_to_grow"] | (was_growing & p["goes_on_growing"])


def _is_level(p: Columns) -> Array:
    return (p["is_measured"] | ~p["trend_is_measurable"]) & ~p["grows"] & ~p["shrinks"]


def _lateness(p: Columns) -> dict[str, Array]:
    """Whether unread records wait for too long, and whether they will have when the group next commits: between two
    commits they get older, and with each they are younger."""
    patience = np.maximum(p["lag_objective_seconds"], CADENCES_OF_PATIENCE * p["cadence"])
    # What a long transaction held back is old when it may be read at last.
    may_be = p["has_lag"] & ~(p["drained_seconds"] <= patience)
    at_commit = p["age"] + np.maximum(0.0, p["cadence"] - p["unmoved_seconds"])
    return {"is_late": may_be & (p["age"] > patience), "is_late_again": may_be & (at_commit > patience)}


def telling_seconds(p: Columns, minimum_seconds: Array | float) -> Array:
    """How long something must last to mean something, given the partition's rhythm: less is one commit's sawtooth."""
    unseen = np.where(p["is_without_protocol"], UNSEEN_SIMPLE_AFTER_SECONDS, UNSEEN_AFTER_SECONDS)
    unseen = np.where(p["moves"] >= COMMITS_OF_RHYTHM, 0.0, unseen)
    return np.maximum(np.maximum(minimum_seconds, unseen), TELLING_CADENCES * p["cadence"])


def telling_standstill_seconds(p: Columns, minimum_seconds: Array | float) -> Array:
    """How long the offset must stand still to mean something, with records unread.

    Where records are rare, the rhythm is told from how long each waited, and the next may wait for longer: unless there
    is nobody who could still commit.
    """
    seconds = telling_seconds(p, minimum_seconds)
    is_rare = p["produced"] * p["interval_seconds"] < 1
    may_be_committed = (p["owner"] >= 0) | p["is_without_protocol"]
    unsure = np.where(p["moves"] >= COMMITS_OF_RHYTHM_IF_RARE, 0.0, UNSEEN_AFTER_SECONDS)
    if_rare = np.maximum(unsure, CADENCE_IF_RARE * TELLING_CADENCES * p["cadence"])
    return np.where(is_rare & may_be_committed, np.maximum(seconds, if_rare), seconds)


def _blind(e: Columns) -> tuple[Array, Array]:
    """Why the lag cannot be known, as a reason (-1 where it can), and the status that follows: unknown, ghost, or
    stalled."""
    has_owner, is_uncommitted = e["owner"] >= 0, (e["committed"] == NULL) & ~e["has_nothing_to_commit"]
    # A job reads the partition that makes no checkpoints, and so records nowhere how far it is.
    is_of_job = e["is_flink"] & has_owner
    makes_none = is_of_job & np.isnan(e["checkpoint_interval_seconds"])
    # A job reads it and has never completed a checkpoint in the time that several take. What it has read is then
    # committed nowhere; how far its source got says nothing, because all of it may wait inside the job.
    due = np.maximum(UNSEEN_AFTER_SECONDS, TELLING_CADENCES * e["checkpoint_interval_seconds"])
    is_held_up = is_of_job & (e["checkpoint_age_seconds"] >= due)
    has_no_ends = (e["high_watermark"] == NULL) | (e["log_start"] == NULL)
    cases = [
        (~e["is_readable"], UnknownReason.UNREADABLE),
        (is_uncommitted & e["ever_committed"], UnknownReason.EXPIRED),
        (is_uncommitted & makes_none, UnknownReason.NOT_COMMITTING),
        (is_uncommitted, UnknownReason.NO_COMMIT),
        (has_no_ends, UnknownReason.UNREADABLE),
        (e["is_recreated"], UnknownReason.RECREATED),
        ((e["committed"] != NULL) & (e["committed"] > e["high_watermark"]), UnknownReason.OUT_OF_RANGE),
    ]
    reason = np.select([holds for holds, _ in cases], [_NUMBER[word] for _, word in cases], -1)
    # The commit on this topic is only an old one of a group that has left it.
    is_ghost = (e["committed"] != NULL) & e["has_left_topic"] & (e["unmoved_seconds"] >= GHOST_AFTER_SECONDS)
    stalled = is_held_up & (reason == _NUMBER[UnknownReason.NO_COMMIT])
    status = np.select([is_ghost, stalled], [_NUMBER[Status.GHOST], _NUMBER[Status.STALLED]], _NUMBER[Status.UNKNOWN])
    return np.where(is_ghost, _NUMBER[UnknownReason.UNREADABLE], reason), status


def _standing(p: Columns) -> dict[str, Array]:
    """Who reads no more: with nobody to read it, or with an owner. What was told is told until the offset moves:
    members that come and go and read nothing change nothing."""

    def stands_for(minimum_seconds: Array | float) -> Array:
        return p["has_lag"] & (p["standstill_seconds"] >= telling_standstill_seconds(p, minimum_seconds))

    # While ownership is being settled, or the topic may merely have been left, having no owner means nothing.
    has_owner, stays = p["owner"] >= 0, ~p["has_left_topic"]
    is_unowned = ~has_owner & p["is_settled"] & ~p["rebalancing_now"] & stays
    stopped = (is_unowned & stands_for(STOPPED_AFTER_SECONDS)) | (
        p["keeps_rebalancing"] & stays & stands_for(UNSETTLED_AFTER_SECONDS)
    )
    has_its_turn = ~p["awaits_turn"]
    goes_on = stays & p["is_where_it_was"] & stands_for(STOPPED_AFTER_SECONDS)
    return {
        "is_stopped": stopped,
        "is_stalled": ~stopped & has_owner & stands_for(stalled_after_seconds(p)) & has_its_turn,
        "goes_on_standing": goes_on & has_its_turn,
    }


def stalled_after_seconds(p: Columns) -> Array:
    """Shortest standstill with an owner: whoever pauses may have committed last up to a cadence before. An owner that
    does nothing at all for as long reads no more."""
    return STALLED_AFTER_SECONDS + np.minimum(or_zero(p["commit_cadence_seconds"]), p["interval_seconds"])


def _verdict(p: Columns, holds: Array, keeps_rebalancing: Array) -> tuple[Array, Array]:
    """The worst status that holds, and the reason where it is unknown, of those whose lag is known."""
    worst = np.argmax(holds, axis=0)
    numbers = np.array([_NUMBER[status] for status in HELD])
    is_bad = holds[:-1].any(axis=0)
    # A backlog that was there before anyone looked may be older than the objective.
    is_seen = p["is_visible"] & (~p["has_changed"])
    is_unclear = (is_seen | p["is_late"]) & p["trend_is_measurable"] & ~p["is_measured"]
    is_unclear |= p["is_visible"] & p["lag_seconds_is_lower_bound"]
    is_new = (p["samples"] < MINIMUM_SAMPLES) & ~p["has_nothing_to_commit"]
    shrinks, unknown = holds[-1], _NUMBER[Status.UNKNOWN]
    status = np.select(
        [is_bad, keeps_rebalancing, shrinks, is_new | is_unclear],
        [numbers[worst], unknown, numbers[-1], unknown],
        _NUMBER[Status.OK],
    )
    reason = np.where(keeps_rebalancing, _NUMBER[UnknownReason.REBALANCING], _NUMBER[UnknownReason.TOO_FEW_SAMPLES])
    return status, np.where(status == unknown, reason, -1)


def _forecasts(p: Columns) -> dict[str, Array]:
    """When something will be so if the lag goes on as it does, with the ends of the 99 % confidence interval.

    A time is a length divided by a speed, and the speed is the slope of a trend with its interval: where that reaches
    zero, the time has no end (NaN). Where records come at a steady rate p and the lag grows by s records a second, the
    oldest unread record gets older by s / p seconds a second, and by one second at most: that is where nothing is read.
    """
    slope, low, high = p["slope"], p["slope_low"], p["slope_high"]
    lag, shrinks = as_floats(p["lag"]), p["shrinks"] & (slope < 0)
    standing = p["stopped"] | p["stalled"]
    left = p["lag_objective_seconds"] - p["age"]
    # Retention may delete records before they are so old.
    gets_so_old = np.isnan(p["retention_seconds"]) | (p["retention_seconds"] > p["lag_objective_seconds"])
    grows = p["grows"] & (p["produced"] > 0) & (slope > 0)

    def breach(of: Array) -> Array:
        seconds = left / np.minimum(1.0, of / p["produced"])
        seconds = np.where(grows & (of > 0), seconds, np.nan)
        return np.where((left > 0) & gets_so_old, np.where(standing, left, seconds), np.nan)

    with np.errstate(divide="ignore", invalid="ignore"):
        return {
            "seconds_to_catch_up": np.where(shrinks, lag / -slope, np.nan),
            "seconds_to_catch_up_low": np.where(shrinks, lag / -low, np.nan),
            "seconds_to_catch_up_high": np.where(shrinks & (high < 0), lag / -high, np.nan),
            "seconds_to_breach": breach(slope),
            "seconds_to_breach_low": breach(high),
            "seconds_to_breach_high": breach(low),
        }
