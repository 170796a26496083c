"""What is known of a group-partition at a moment, by which it is judged, and what that comes to."""

from dataclasses import dataclass

from lagwise.domain.forecast import Forecast
from lagwise.domain.loss.records import NOTHING_LOST, Lost
from lagwise.domain.loss.retention import Jumps
from lagwise.domain.trend import Trend
from lagwise.domain.vocabulary import LossCause, Status, UnknownReason


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

    ``next_record`` is the offset of the next record that there is, where that was looked up, ``last_stable_seconds``
    the age of the record at the last stable offset. ``samples`` and ``span_seconds`` speak of the window the trend is
    judged on, ``trend`` of the lag over it, ``longer`` of the lag over the next longer window. ``commits_seen`` is how
    often the committed offset was seen to move, ``unmoved_seconds`` for how long it has stayed where it is,
    ``standstill_seconds`` for how long while there was something to read, ``drained_seconds`` how long ago nothing was
    unread. ``lost_lately`` is how many records the samples of the shortest window show to have been deleted unread,
    ``lost_of_day`` what those of a day do. ``deleted_by_request`` is whether a client had the oldest records deleted
    (no limit can have), ``earlier_log_start`` where the log began at the end of the minute before. ``rewound_records``
    is by how many records the committed offset was seen to go back, ``rewound_seconds`` how long ago it last did.
    ``steady_produce_rate_per_second`` is the lower of the rate of the window and that of an hour: a burst is not taken
    to go on. ``overtaken_seconds`` is when retention deletes the first of the records that are written already and
    that the group does not get to in time (:func:`lagwise.domain.loss.race.seconds_to_overtaking`),
    ``overtaken_at_latest_seconds`` the same of the latest moment at which they are deleted.
    ``checkpoint_age_seconds`` is how long ago the job that reads it completed a checkpoint (or began, where it has
    completed none), ``checkpoint_interval_seconds`` how often it is to.
    """

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
    lag_seconds: float | None = None
    lag_seconds_is_lower_bound: bool = False
    unmoved_seconds: float = 0.0
    standstill_seconds: float = 0.0
    drained_seconds: float | None = None
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
    retention_seconds: float | None = None
    retention_is_by_size: bool = False
    segment_seconds: float | None = None
    seconds_to_expiry: float | None = None
    checkpoint_age_seconds: float | None = None
    checkpoint_interval_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """The status of a group-partition, all that hold (worst first), and the numbers that come with them.

    ``consume_rate_per_second`` is that of the evidence, a mean over its window, but 0 where nobody reads any more.
    ``to_catch_up`` is when the lag is gone, ``to_breach`` when the oldest unread record is older than the group's
    objective, at today's rates; None where neither is to be expected. ``loss_cause`` is how the loss of
    ``seconds_to_loss`` would come; None where none will. That time is an upper bound where all that is known of the
    oldest unread record is that it is at least so old. ``seconds_to_loss_at_latest`` is when unread records are deleted
    at the latest, where they are deleted by age and it is known. ``records_lost`` is how many records are missing, or
    were lost within minutes by a group that goes on losing; ``lost`` is what was lost within a day.
    ``transaction_seconds`` is for how long a transaction has been open, at least, that hangs and holds records back.
    """

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
        """Time until the lag is gone; only while catching up."""
        return self.to_catch_up.seconds if self.to_catch_up is not None else None
