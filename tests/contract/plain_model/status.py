"""The rules, one group-partition at a time: from what is known of it to its status.

The proof table of ``tests/domain/test_status.py`` says of the rules on columns why each is right.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from lagwise.domain.lag_forecast import Forecast
from lagwise.domain.verdicts.direction import (
    CADENCES_OF_PATIENCE,
    LIKELY_MARGINS,
    RISE_OF_LOAD,
    SHARE_OF_GROWTH,
    SHARE_OF_OBJECTIVE,
    SURE_MARGINS,
    TREND_SHARE_OF_LAG,
    TREND_SHARE_OF_PRODUCE_RATE,
)
from lagwise.domain.verdicts.loss import LOSING_WITHIN_SECONDS
from lagwise.domain.verdicts.status import (
    CADENCE_IF_RARE,
    COMMITS_OF_RHYTHM,
    COMMITS_OF_RHYTHM_IF_RARE,
    GHOST_AFTER_SECONDS,
    MINIMUM_SAMPLES,
    REBALANCES_OF_UNREST,
    SETTLED_AFTER_SECONDS,
    SHARE_OF_UNREST,
    STALLED_AFTER_SECONDS,
    STOPPED_AFTER_SECONDS,
    TELLING_CADENCES,
    UNSEEN_AFTER_SECONDS,
    UNSEEN_SIMPLE_AFTER_SECONDS,
    UNSETTLED_AFTER_SECONDS,
)
from lagwise.domain.verdicts.turns import ABSENCE_SECONDS, ABSENCES_OF_PATIENCE, SHARE_OF_WAITING, TURN_SECONDS
from lagwise.domain.vocabulary import (
    READING_STATES,
    REBALANCING_STATES,
    WITHOUT_PROTOCOL,
    Engine,
    GroupState,
    LossCause,
    Status,
    UnknownReason,
)
from tests.contract.plain_model.history import Observation, is_held_back
from tests.contract.plain_model.losses import (
    Pull,
    deletion_of,
    is_at_edge,
    is_near_edge,
    is_set_back,
    lost_by_now,
    lost_of_day,
    soonest,
)
from tests.contract.plain_model.records import Evidence, Policy, Trend, Verdict


class Direction(NamedTuple):
    """Where the lag is going: neither where it holds its level, or where nobody can tell. It ``creeps`` where it grows
    for certain, by however little."""

    grows: bool
    shrinks: bool
    creeps: bool


#: No direction.
NOWHERE = Direction(False, False, False)


def telling_seconds(e: Evidence, minimum_seconds: float) -> float:
    """How long something must last to mean something, given the partition's rhythm."""
    if e.commits_seen < COMMITS_OF_RHYTHM:
        unseen = UNSEEN_SIMPLE_AFTER_SECONDS if e.type in WITHOUT_PROTOCOL else UNSEEN_AFTER_SECONDS
        minimum_seconds = max(minimum_seconds, unseen)
    return max(minimum_seconds, TELLING_CADENCES * (e.commit_cadence_seconds or 0.0))


def telling_standstill_seconds(e: Evidence, policy: Policy, minimum_seconds: float) -> float:
    seconds = telling_seconds(e, minimum_seconds)
    is_rare = (e.produce_rate_per_second or 0.0) * policy.interval_seconds < 1
    if not is_rare or (e.owner is None and e.type not in WITHOUT_PROTOCOL):
        return seconds
    if e.commits_seen < COMMITS_OF_RHYTHM_IF_RARE:
        seconds = max(seconds, UNSEEN_AFTER_SECONDS)
    return max(seconds, CADENCE_IF_RARE * TELLING_CADENCES * (e.commit_cadence_seconds or 0.0))


def keeps_rebalancing(e: Evidence, policy: Policy) -> bool:
    """Whether ownership is unsettled: a rebalance is under way, or rebalances hardly stop."""
    lately = max(SETTLED_AFTER_SECONDS, 2 * policy.interval_seconds)
    return e.rebalancing_now or (
        e.samples_of_unrest >= REBALANCES_OF_UNREST
        and e.samples_of_unrest >= SHARE_OF_UNREST * e.group_samples
        and e.settled_seconds is not None
        and e.settled_seconds <= lately
    )


def has_left_topic(e: Evidence) -> bool:
    """Whether a stable group, or a job that runs, is assigned other topics, and not this one."""
    return e.state in READING_STATES and e.group_is_assigned and not e.topic_is_assigned


def is_ghost(e: Evidence) -> bool:
    """Whether the commit on this topic is only an old one of a group that has left it."""
    return e.committed is not None and has_left_topic(e) and e.unmoved_seconds >= GHOST_AFTER_SECONDS


def has_nothing_to_commit(e: Evidence) -> bool:
    """Whether nothing is committed because there never was anything to read: somebody owns the partition, and it holds
    no record. Clients built on librdkafka commit nothing there."""
    is_empty = e.log_start is not None and e.log_start == e.high_watermark
    return is_empty and e.owner is not None and e.committed is None and not e.ever_committed


def does_not_commit(e: Evidence) -> bool:
    """Whether a job reads the partition that makes no checkpoints, and so records nowhere how far it is."""
    return e.type == Engine.FLINK and e.owner is not None and e.checkpoint_interval_seconds is None


def is_held_up(e: Evidence) -> bool:
    """Whether a job reads the partition and has never completed a checkpoint in the time that several take."""
    if e.type != Engine.FLINK or e.owner is None or e.ever_committed:
        return False
    if e.committed is not None or e.checkpoint_interval_seconds is None or e.checkpoint_age_seconds is None:
        return False
    due = max(UNSEEN_AFTER_SECONDS, TELLING_CADENCES * e.checkpoint_interval_seconds)
    return e.checkpoint_age_seconds >= due


def blind_reason(e: Evidence) -> UnknownReason | None:
    """Why the lag cannot be known, or None where it can."""
    if not e.readable:
        return UnknownReason.UNREADABLE
    if e.committed is None and not has_nothing_to_commit(e):
        if e.ever_committed:
            return UnknownReason.EXPIRED
        return UnknownReason.NOT_COMMITTING if does_not_commit(e) else UnknownReason.NO_COMMIT
    if e.high_watermark is None or e.log_start is None:
        return UnknownReason.UNREADABLE
    if e.recreated:
        return UnknownReason.RECREATED
    if e.committed is not None and e.committed > e.high_watermark:
        return UnknownReason.OUT_OF_RANGE
    return None


def is_measured(e: Evidence, policy: Policy) -> bool:
    """Whether there is a trend to go by."""
    return e.trend is not None and e.span_seconds >= telling_seconds(e, policy.minimum_span_seconds)


def is_visible(e: Evidence, policy: Policy) -> bool:
    """Whether the lag is larger than what sampling and committing make of no lag at all."""
    cadence = 0.0 if e.lag_seconds_is_lower_bound else e.commit_cadence_seconds or 0.0
    return (e.lag_seconds or 0.0) > policy.interval_seconds + CADENCES_OF_PATIENCE * cadence


def stalled_after_seconds(e: Evidence, policy: Policy) -> float:
    """Shortest standstill of a partition with an owner."""
    return STALLED_AFTER_SECONDS + min(e.commit_cadence_seconds or 0.0, policy.interval_seconds)


def sample_of(e: Evidence) -> Observation:
    """Where the group and the log are; what is held back by a transaction that hangs counts."""
    is_held = is_held_back(e.committed, e.high_watermark, e.last_stable, e.last_stable_seconds)
    last_stable = None if is_held else e.last_stable
    return Observation(0.0, e.committed, e.log_start, e.high_watermark, last_stable, next_record=e.next_record)


def awaits_turn(e: Evidence, its: Sequence[Evidence], policy: Policy) -> bool:
    """Whether the owner of a partition reads on, and may still come to it; ``its`` are all that it has in the group."""
    stands = e.standstill_seconds
    idle = min((other.moved_seconds for other in its if other.moved_seconds is not None), default=math.inf)
    if idle >= min(stands, stalled_after_seconds(e, policy)):
        return False
    if stands <= ABSENCES_OF_PATIENCE * max(other.absence_seconds for other in its):
        return True
    unread = [other for other in its if sample_of(other).lag]
    waiting = sum(0 < other.standstill_seconds >= stands - policy.interval_seconds for other in unread)
    return waiting > SHARE_OF_WAITING * len(unread) and stands <= TURN_SECONDS


def direction_of(e: Evidence, policy: Policy, lag: int) -> Direction:
    """Where the lag is going: a trend is significant in one of three windows, and another must agree. Growth that was
    told is told until something speaks against it."""
    produced, age = e.produce_rate_per_second or 0.0, e.lag_seconds or 0.0
    visible, measured = is_visible(e, policy), is_measured(e, policy)
    short, longer, longest = e.trend, e.longer, e.longest
    most = produced * (policy.interval_seconds + CADENCES_OF_PATIENCE * (e.commit_cadence_seconds or 0.0))
    drains = e.has_resumed and (e.highest_lag or 0) - lag > most
    drains = drains or (e.trough_drop or 0.0) > 2 * produced * policy.interval_seconds
    drains = drains and visible and not (short and short.low > 0)
    fell = e.highest_lag_of_window is not None and e.highest_lag_of_window - lag > most
    if not measured or short is None:
        return Direction(False, drains, False)
    least_change = max(1.0, TREND_SHARE_OF_LAG * lag) / e.span_seconds
    band = max(TREND_SHARE_OF_PRODUCE_RATE * produced, least_change)
    left = max(policy.lag_objective_seconds - age, SHARE_OF_OBJECTIVE * policy.lag_objective_seconds)
    least = min(band, max(produced * left / policy.risk_horizon_seconds, least_change))

    def is_sure(trend: Trend) -> bool:
        is_missed = age > policy.lag_objective_seconds
        return trend.low > band or (not is_missed and trend.low > least_change and trend.slope > least)

    surely_below = short.slope + SURE_MARGINS * (short.high - short.slope)
    shrinks = surely_below < -band
    by_short = by_longer = has_slowed = is_clear = is_level_at_troughs = False
    at_troughs, recent = e.at_troughs, e.at_recent_troughs
    if at_troughs is not None and recent is not None:
        is_level_at_troughs = has_slowed = recent.high < SHARE_OF_GROWTH * max(at_troughs.slope, 0.0)
    if longer is not None:
        shrinks = shrinks or (short.high < -band and longer.high < 0)
        shrinks = shrinks or (longer.high < -band and short.slope < -band)
        if recent is not None:
            shrinks = shrinks or _surely(recent).high < -band
            shrinks = shrinks or (at_troughs is not None and at_troughs.high < -band and recent.slope < -band)
        surely_above = short.slope - SURE_MARGINS * (short.slope - short.low)
        is_clear = surely_above > least and longer.low > least
        by_short = is_sure(short._replace(low=surely_above)) and longer.slope > least
        by_longer = is_sure(longer) and short.slope > least
    if longer is not None and longest is not None:
        if e.earlier is not None:
            margin = math.hypot(longer.high - longer.slope, e.earlier.slope - e.earlier.low)
            has_slowed = has_slowed or longer.slope + SURE_MARGINS * margin < e.earlier.slope
        confirms = longer.slope > max(least, SHARE_OF_GROWTH * longest.slope) and short.slope > least
        by_longer = by_longer or (is_sure(longest) and confirms and not has_slowed)
    if recent is not None:
        by_longer = by_longer or (longest is not None and longest.slope > least and is_sure(_surely(recent)))
        if at_troughs is not None:
            still = recent.slope > max(least, SHARE_OF_GROWTH * at_troughs.slope)
            by_longer = by_longer or (is_sure(_surely(at_troughs)) and still)
    shrinks = (visible and longer is not None and shrinks) or drains
    cadence = e.commit_cadence_seconds or 0.0
    late = CADENCES_OF_PATIENCE * min(
        cadence, max(0.0, 2 * (cadence - max(policy.interval_seconds, e.spacing_seconds or 0.0)))
    )
    may_grow = age > policy.interval_seconds + late
    sinks = e.mean_lag is not None and e.longest_mean_lag is not None and e.mean_lag < e.longest_mean_lag
    is_over = sinks or (
        surely_below < least
        and not any(trend is not None and trend.low > least for trend in (longer, at_troughs, recent))
    )
    is_shown = any(trend is not None and trend.low > 0 for trend in (longer, at_troughs, recent))
    is_shown = is_shown or (longest is not None and longest.slope - LIKELY_MARGINS * (longest.slope - longest.low) > 0)
    goes_on = e.was_growing and is_shown and not (shrinks or is_over or has_slowed or fell)
    steady = e.steady_produce_rate_per_second
    is_even = steady is None or produced <= RISE_OF_LOAD * steady
    is_untouched = e.awaits_turn and e.standstill_seconds >= ABSENCE_SECONDS
    begins = (
        not fell
        and not is_level_at_troughs
        and not is_untouched
        and ((by_short or by_longer) if visible else (is_clear or (by_longer and is_even)))
    )
    creeps = visible and longer is not None and short.low > 0 and longer.slope > 0
    return Direction((may_grow and begins) or (lag > 0 and goes_on), shrinks, creeps)


def _surely(trend: Trend) -> Trend:
    """With the interval of 99.9 %."""
    slope, low, high = trend
    return Trend(slope, slope + SURE_MARGINS * (low - slope), slope + SURE_MARGINS * (high - slope))


def catch_up(lag: int, trend: Trend | None) -> Forecast | None:
    """When the lag is gone; None where it does not shrink."""
    if trend is None or trend.slope >= 0:
        return None
    return Forecast(lag / -trend.slope, lag / -trend.low, lag / -trend.high if trend.high < 0 else None)


def breach(e: Evidence, policy: Policy, direction: Direction, *, stands: bool) -> Forecast | None:
    """When the oldest unread record is older than the objective; None where that is so, or not to be expected, as where
    retention deletes records before they are so old."""
    left, produced = policy.lag_objective_seconds - (e.lag_seconds or 0.0), e.produce_rate_per_second or 0.0
    if left <= 0 or (e.retention_seconds is not None and e.retention_seconds <= policy.lag_objective_seconds):
        return None
    if stands:
        return Forecast(left, left, left)  # what nobody reads gets older by a second each second
    if not direction.grows or e.trend is None or produced <= 0 or e.trend.slope <= 0:
        return None
    seconds, low, high = (left / min(1.0, slope / produced) if slope > 0 else None for slope in e.trend)
    return Forecast(seconds, high, low)


def judge(e: Evidence, policy: Policy) -> Verdict:
    """The verdict on one group-partition."""
    if is_ghost(e):
        return Verdict(Status.GHOST, reasons=(Status.GHOST,), consume_rate_per_second=e.consume_rate_per_second)
    blind = blind_reason(e)
    if blind is not None or e.high_watermark is None or e.log_start is None:
        rate = e.consume_rate_per_second
        if blind is UnknownReason.NO_COMMIT and is_held_up(e):
            return Verdict(Status.STALLED, None, (Status.STALLED,), consume_rate_per_second=rate, lost=lost_of_day(e))
        return Verdict(Status.UNKNOWN, blind, (Status.UNKNOWN,), consume_rate_per_second=rate, lost=lost_of_day(e))

    # Who has nothing to commit stands at the end.
    committed = e.high_watermark if e.committed is None else e.committed
    is_held = is_held_back(committed, e.high_watermark, e.last_stable, e.last_stable_seconds)
    sample = sample_of(replace(e, committed=committed))
    lag, reads_from = sample.lag, sample.reads_from
    assert lag is not None
    age = e.lag_seconds or 0.0

    def stands_for(minimum_seconds: float) -> bool:
        return lag > 0 and e.standstill_seconds >= telling_standstill_seconds(e, policy, minimum_seconds)

    # While ownership is being settled, or the topic may merely have been left, having no owner means nothing.
    is_settled = e.state is not None and e.state not in (GroupState.UNKNOWN, *REBALANCING_STATES)
    is_unowned = e.owner is None and is_settled
    stopped = is_unowned and not e.rebalancing_now and not has_left_topic(e) and stands_for(STOPPED_AFTER_SECONDS)
    stopped = stopped or (
        keeps_rebalancing(e, policy) and not has_left_topic(e) and stands_for(UNSETTLED_AFTER_SECONDS)
    )
    stalled = not stopped and e.owner is not None and stands_for(stalled_after_seconds(e, policy)) and not e.awaits_turn
    # What was told is told until the offset moves, or its turn may come.
    goes_on = e.is_where_it_was and not has_left_topic(e) and stands_for(STOPPED_AFTER_SECONDS) and not e.awaits_turn
    stopped, stalled = (
        stopped or (e.was_stopped and goes_on and not stalled),
        stalled or (e.was_stalled and goes_on and not stopped),
    )

    visible = lag > 0 and is_visible(e, policy)
    measured = is_measured(e, policy)
    direction = direction_of(e, policy, lag) if lag > 0 else NOWHERE
    patience = max(policy.lag_objective_seconds, CADENCES_OF_PATIENCE * (e.commit_cadence_seconds or 0.0))
    # What a long transaction held back is old when it may be read at last.
    was_drained = e.drained_seconds is not None and e.drained_seconds <= patience
    at_commit = age + max(0.0, (e.commit_cadence_seconds or 0.0) - e.unmoved_seconds)
    is_late = lag > 0 and age > patience and not was_drained
    stays_late = e.was_lagging and lag > 0 and at_commit > patience and not was_drained
    is_level = (measured or not e.trend_is_measurable) and not direction.grows and not direction.shrinks

    pull = Pull(
        stands=stopped or stalled,
        grows=direction.grows,
        near_edge=direction.creeps and is_near_edge(e),
        behind=measured and visible and age >= policy.minimum_span_seconds and not is_set_back(e),
    )
    deletion = deletion_of(e, lag, reads_from, pull)
    seconds_to_loss = soonest(deletion.seconds, e.seconds_to_expiry)
    loss_cause = None
    if seconds_to_loss is not None:
        loss_cause = LossCause.DELETION if seconds_to_loss == deletion.seconds else LossCause.EXPIRY
    is_near = seconds_to_loss is not None and seconds_to_loss <= LOSING_WITHIN_SECONDS
    goes_on = is_near or is_at_edge(e, lag, policy.interval_seconds)
    lost = lost_by_now(e, reads_from, e.log_start, goes_on=goes_on)
    holds = {
        Status.LOSING_DATA: lost > 0,
        Status.AT_RISK: seconds_to_loss is not None and seconds_to_loss <= policy.risk_horizon_seconds,
        Status.STOPPED: stopped,
        Status.STALLED: stalled,
        Status.REWOUND: e.rewound_from is not None and committed < e.rewound_from,
        Status.FALLING_BEHIND: direction.grows,
        Status.LAGGING: is_level and (is_late or stays_late),
        Status.CATCHING_UP: direction.shrinks,
    }
    reasons = tuple(status for status, held in holds.items() if held)

    def verdict(status: Status, reason: UnknownReason | None = None) -> Verdict:
        return Verdict(
            status,
            reason,
            reasons if status in reasons else (*reasons, status),
            lag=lag,
            # The window, which suits a rhythm of commits that has ended, still holds the last of them.
            consume_rate_per_second=0.0 if stopped or stalled else e.consume_rate_per_second,
            to_catch_up=catch_up(lag, e.trend) if direction.shrinks else None,
            to_breach=breach(e, policy, direction, stands=stopped or stalled),
            seconds_to_loss=seconds_to_loss,
            seconds_to_loss_is_upper_bound=deletion.is_upper_bound and loss_cause is LossCause.DELETION,
            seconds_to_loss_at_latest=deletion.at_latest if loss_cause is LossCause.DELETION else None,
            loss_cause=loss_cause,
            records_lost=lost,
            lost=lost_of_day(e, lost),
            transaction_seconds=e.last_stable_seconds if is_held else None,
        )

    if reasons and reasons[0] is not Status.CATCHING_UP:
        return verdict(reasons[0])
    if keeps_rebalancing(e, policy):
        return verdict(Status.UNKNOWN, UnknownReason.REBALANCING)
    if reasons:
        return verdict(reasons[0])
    # A backlog that was there before anyone looked may be older than the objective.
    unclear = visible and e.lag_seconds_is_lower_bound
    if e.trend_is_measurable and not measured:
        unclear = unclear or is_late or (visible and not e.has_changed)
    if (e.samples < MINIMUM_SAMPLES and not has_nothing_to_commit(e)) or unclear:
        return verdict(Status.UNKNOWN, UnknownReason.TOO_FEW_SAMPLES)
    return verdict(Status.OK)
