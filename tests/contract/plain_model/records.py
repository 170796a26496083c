"""What the plain model knows of a group-partition, and what it says of it. Times in seconds; None is unknown.

The columns of the same names are explained in :mod:`lagwise.domain.verdicts.evidence` and ``status``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from lagwise.domain.groups import GroupVerdict
from lagwise.domain.lag_forecast import Forecast
from lagwise.domain.loss.records import NOTHING_LOST, Lost
from lagwise.domain.vocabulary import LossCause, Status, UnknownReason

#: Rows of the raw tables as plain mappings, by the name of the table.
Row = Mapping[str, Any]
Rows = Mapping[str, Sequence[Row]]


class Pair(NamedTuple):
    """A group-partition."""

    group: str
    topic: str
    partition: int


class Trend(NamedTuple):
    """Slope of the lag in records per second with its 99 % confidence interval."""

    slope: float
    low: float
    high: float


class Jumps(NamedTuple):
    """How a log start jumps: by how many ``records`` at a time, and where the log ended before it last did."""

    records: int
    high_watermark: int


@dataclass(frozen=True, slots=True)
class Policy:
    """The settings that a verdict depends on."""

    interval_seconds: float = 15.0
    lag_objective_seconds: float = 300.0
    risk_horizon_seconds: float = 6 * 3600.0
    minimum_span_seconds: float = 60.0


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known of one group-partition at one moment."""

    readable: bool = True
    committed: int | None = None
    next_record: int | None = None
    ever_committed: bool = False
    recreated: bool = False
    log_start: int | None = None
    high_watermark: int | None = None
    last_stable: int | None = None
    last_stable_seconds: float | None = None
    samples: int = 0
    span_seconds: float = 0.0
    spacing_seconds: float | None = None
    lag_seconds: float | None = None
    lag_seconds_is_lower_bound: bool = False
    unmoved_seconds: float = 0.0
    standstill_seconds: float = 0.0
    drained_seconds: float | None = None
    moved_seconds: float | None = None
    absence_seconds: float = 0.0
    awaits_turn: bool = False
    commits_seen: int = 0
    commit_cadence_seconds: float | None = None
    rewound_from: int | None = None
    rewound_records: int = 0
    rewound_seconds: float | None = None
    lost_lately: int = 0
    lost_of_day: Lost = NOTHING_LOST
    deleted_by_request: bool = False
    earlier_log_start: int | None = None
    trend_is_measurable: bool = True
    trend: Trend | None = None
    longer: Trend | None = None
    longest: Trend | None = None
    earlier: Trend | None = None
    mean_lag: float | None = None
    longest_mean_lag: float | None = None
    at_troughs: Trend | None = None
    at_recent_troughs: Trend | None = None
    trough_drop: float | None = None
    has_changed: bool = False
    has_resumed: bool = False
    highest_lag: int | None = None
    highest_lag_of_window: int | None = None
    produce_rate_per_second: float | None = None
    steady_produce_rate_per_second: float | None = None
    consume_rate_per_second: float | None = None
    overtaken_seconds: float | None = None
    overtaken_at_latest_seconds: float | None = None
    log_start_jumps: Jumps | None = None
    log_start_rate_per_second: float | None = None
    state: str | None = None
    type: str | None = None
    owner: str | None = None
    topic_is_assigned: bool = False
    group_is_assigned: bool = False
    rebalancing_now: bool = False
    samples_of_unrest: int = 0
    group_samples: int = 0
    settled_seconds: float | None = None
    is_where_it_was: bool = False
    was_growing: bool = False
    was_lagging: bool = False
    was_stopped: bool = False
    was_stalled: bool = False
    retention_seconds: float | None = None
    retention_is_by_size: bool = False
    segment_seconds: float | None = None
    seconds_to_expiry: float | None = None
    checkpoint_age_seconds: float | None = None
    checkpoint_interval_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """The status of a group-partition, every status that holds (worst first), and the numbers that come with it."""

    status: Status
    reason: UnknownReason | None = None
    reasons: tuple[Status, ...] = ()
    lag: int | None = None
    consume_rate_per_second: float | None = None
    to_catch_up: Forecast | None = None
    to_breach: Forecast | None = None
    seconds_to_loss: float | None = None
    seconds_to_loss_is_upper_bound: bool = False
    seconds_to_loss_at_latest: float | None = None
    loss_cause: LossCause | None = None
    records_lost: int = 0
    lost: Lost = NOTHING_LOST
    transaction_seconds: float | None = None

    @property
    def seconds_to_catch_up(self) -> float | None:
        return self.to_catch_up.seconds if self.to_catch_up is not None else None


@dataclass(frozen=True, slots=True)
class Judged:
    """One group-partition: what is known of it, what follows, and its owner as "client … on host …"."""

    evidence: Evidence
    verdict: Verdict
    owner: str | None

    @property
    def shown_age(self) -> tuple[float | None, bool]:
        """``lag_seconds`` as it is shown, and whether it is a lower bound: null where the lag is not known."""
        if not self.verdict.lag:
            return (None if self.verdict.lag is None else 0.0), False
        return self.evidence.lag_seconds, self.evidence.lag_seconds_is_lower_bound


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Every verdict at one moment."""

    partitions: Mapping[Pair, Judged]
    groups: Mapping[str, GroupVerdict]
