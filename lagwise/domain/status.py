"""The rules: from what is known of a group-partition to its status.

This is the definition. Spark evaluates the same rules as column expressions (``lagwise_spark.transforms.judge``), and
a contract test holds the two together; the proof table of ``tests/domain/test_status.py`` says why each row is right.
"""

from dataclasses import dataclass

from lagwise.domain import lag as lags
from lagwise.domain.retention import seconds_to_deletion, seconds_to_truncation, soonest
from lagwise.domain.trend import Trend
from lagwise.domain.vocabulary import GroupState, Status, UnknownReason

#: A trend smaller than this share of the produce rate is noise, whatever its confidence interval.
TREND_SHARE_OF_PRODUCE_RATE = 0.01
#: A partition is judged over its own rhythm: this many commit cadences without a commit are a standstill …
CADENCES_OF_STANDSTILL = 3.0
#: … but never fewer seconds than this where a member owns it (it may merely be busy with a long batch) …
STALLED_AFTER_SECONDS = 60.0
#: … or than this where nobody does (a restart takes that long).
STOPPED_AFTER_SECONDS = 30.0
#: A topic that the group committed to within this time is not a ghost, whatever the assignment says.
GHOST_AFTER_SECONDS = 60.0
#: A group keeps rebalancing when at least this many, and at least this share, of recent samples say so.
REBALANCES_OF_UNREST = 3
SHARE_OF_UNREST = 1 / 3
#: Fewer samples than this say nothing.
MINIMUM_SAMPLES = 3


@dataclass(frozen=True, slots=True)
class Policy:
    """What a verdict goes by. Times in seconds."""

    interval_seconds: float = 15.0
    lag_objective_seconds: float = 300.0
    risk_horizon_seconds: float = 6 * 3600.0
    minimum_span_seconds: float = 60.0


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known of one group-partition at one moment. Times in seconds, None where not known.

    ``samples`` and ``span_seconds`` speak of the window the trend is judged on, ``trend`` of its slope,
    ``longer_slope`` of the slope over the next longer window, which must agree.
    """

    readable: bool = True
    committed: int | None = None
    ever_committed: bool = False
    recreated: bool = False
    log_start: int | None = None
    high_watermark: int | None = None
    last_stable: int | None = None
    samples: int = 0
    span_seconds: float = 0.0
    lag_seconds: float | None = None
    unmoved_seconds: float = 0.0
    commit_cadence_seconds: float | None = None
    rewound_from: int | None = None
    trend_is_measurable: bool = True
    trend: Trend | None = None
    longer_slope: float | None = None
    produce_rate_per_second: float | None = None
    consume_rate_per_second: float | None = None
    log_start_rate_per_second: float | None = None
    state: str | None = None
    owner: str | None = None
    topic_is_assigned: bool = False
    group_is_assigned: bool = False
    rebalancing_now: bool = False
    samples_of_unrest: int = 0
    group_samples: int = 0
    retention_seconds: float | None = None
    retention_is_by_size: bool = False
    seconds_to_expiry: float | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """The status of a group-partition, all that hold (worst first), and the numbers that come with them."""

    status: Status
    reason: UnknownReason | None = None
    reasons: tuple[Status, ...] = ()
    lag: int | None = None
    seconds_to_catch_up: float | None = None
    seconds_to_loss: float | None = None
    records_lost: int = 0


def _unknown(reason: UnknownReason) -> Verdict:
    return Verdict(Status.UNKNOWN, reason, (Status.UNKNOWN,))


def standstill_after(minimum_seconds: float, cadence_seconds: float | None) -> float:
    """How long a committed offset may stay where it is before that means something."""
    return max(minimum_seconds, CADENCES_OF_STANDSTILL * (cadence_seconds or 0.0))


def keeps_rebalancing(e: Evidence) -> bool:
    """Whether ownership is unsettled: a rebalance is under way, or rebalances hardly stop."""
    return e.rebalancing_now or (
        e.samples_of_unrest >= REBALANCES_OF_UNREST and e.samples_of_unrest >= SHARE_OF_UNREST * e.group_samples
    )


def is_ghost(e: Evidence) -> bool:
    """A stable group that is assigned other topics, and whose commit on this one is only an old one."""
    return (
        e.state == GroupState.STABLE
        and e.group_is_assigned
        and not e.topic_is_assigned
        and e.unmoved_seconds >= GHOST_AFTER_SECONDS
    )


def judge(e: Evidence, policy: Policy) -> Verdict:
    """The verdict on one group-partition."""
    if e.committed is not None and is_ghost(e):
        return Verdict(Status.GHOST, reasons=(Status.GHOST,))
    if not e.readable:
        return _unknown(UnknownReason.UNREADABLE)
    if e.committed is None:
        return _unknown(UnknownReason.EXPIRED if e.ever_committed else UnknownReason.NO_COMMIT)
    if e.high_watermark is None or e.log_start is None:
        return _unknown(UnknownReason.UNREADABLE)
    if e.recreated:
        return _unknown(UnknownReason.RECREATED)
    if e.committed > e.high_watermark:
        return _unknown(UnknownReason.OUT_OF_RANGE)

    end = lags.readable_end(e.committed, e.high_watermark, e.last_stable)
    lag = lags.lag(e.committed, e.log_start, end)
    lost = lags.records_lost(e.committed, e.log_start)
    age = e.lag_seconds or 0.0
    produced = e.produce_rate_per_second or 0.0
    consumed = e.consume_rate_per_second or 0.0
    band = TREND_SHARE_OF_PRODUCE_RATE * produced

    # An offset that does not move means something only while there was something to read.
    standstill = min(e.unmoved_seconds, age) if lag > 0 else 0.0
    unowned_is_certain = e.state is not None and e.state != GroupState.UNKNOWN and not e.rebalancing_now
    stopped = (
        lag > 0
        and e.owner is None
        and unowned_is_certain
        and standstill >= standstill_after(STOPPED_AFTER_SECONDS, e.commit_cadence_seconds)
    )
    stalled = (
        lag > 0
        and e.owner is not None
        and standstill >= standstill_after(STALLED_AFTER_SECONDS, e.commit_cadence_seconds)
    )

    # A change within the resolution of the samples is not yet a trend.
    measured = e.trend is not None and e.span_seconds >= policy.minimum_span_seconds
    visible = lag > 0 and age > policy.interval_seconds
    grows = bool(
        measured
        and visible
        and e.trend is not None
        and e.trend.low > band
        and e.longer_slope is not None
        and e.longer_slope > band
    )
    shrinks = bool(measured and visible and e.trend is not None and e.trend.high < -band)
    patience = policy.lag_objective_seconds
    if not e.trend_is_measurable:
        patience = max(patience, 2 * (e.commit_cadence_seconds or 0.0))
    lagging = (measured or not e.trend_is_measurable) and not grows and not shrinks and lag > 0 and age > patience

    seconds_to_loss = None
    if lag > 0:
        losing_ground = stopped or stalled or grows
        growth = 0.0
        if stopped or stalled:
            growth, consumed = 1.0, 0.0
        elif grows and produced > 0:
            growth = min(1.0, max(0.0, 1 - consumed / produced))
        by_time = seconds_to_deletion(age, e.retention_seconds, growth)
        by_size = (
            seconds_to_truncation(e.committed - e.log_start, e.log_start_rate_per_second or 0.0, consumed)
            if losing_ground and e.retention_is_by_size
            else None
        )
        seconds_to_loss = soonest(by_time, by_size)
    seconds_to_loss = soonest(seconds_to_loss, e.seconds_to_expiry)
    at_risk = seconds_to_loss is not None and seconds_to_loss <= policy.risk_horizon_seconds

    holds = {
        Status.LOSING_DATA: lost > 0,
        Status.AT_RISK: at_risk,
        Status.STOPPED: stopped,
        Status.STALLED: stalled,
        Status.REWOUND: e.rewound_from is not None and e.committed < e.rewound_from,
        Status.FALLING_BEHIND: grows,
        Status.LAGGING: lagging,
        Status.CATCHING_UP: shrinks,
    }
    reasons = tuple(status for status, held in holds.items() if held)
    numbers = {
        "lag": lag,
        "seconds_to_catch_up": lag / -e.trend.slope if shrinks and e.trend is not None else None,
        "seconds_to_loss": seconds_to_loss,
        "records_lost": lost,
    }
    if reasons and reasons[0] != Status.CATCHING_UP:
        return Verdict(reasons[0], None, reasons, **numbers)
    if keeps_rebalancing(e):
        return Verdict(Status.UNKNOWN, UnknownReason.REBALANCING, (*reasons, Status.UNKNOWN), **numbers)
    if reasons:
        return Verdict(reasons[0], None, reasons, **numbers)
    if e.samples < MINIMUM_SAMPLES or (lag > 0 and visible and e.trend_is_measurable and not measured):
        return Verdict(Status.UNKNOWN, UnknownReason.TOO_FEW_SAMPLES, (Status.UNKNOWN,), **numbers)
    return Verdict(Status.OK, None, (Status.OK,), **numbers)
