"""What is known of a group-partition at a moment, by which it is judged, and what that comes to."""

from dataclasses import dataclass

from lagwise.domain.lag_forecast import Forecast
from lagwise.domain.loss.records import NOTHING_LOST, Lost
from lagwise.domain.loss.retention import Jumps
from lagwise.domain.trend import Trend
from lagwise.domain.vocabulary import LossCause, Status, UnknownReason


@dataclass(frozen=True, slots=True)
class Policy:
    """The settings that a verdict depends on. Times in seconds."""

    #: Time between two samples of the cluster.
    interval_seconds: float = 15.0
    #: Age that the oldest unread record of the group may reach.
    lag_objective_seconds: float = 300.0
    #: A missed objective or a loss of records is a warning when it is expected within this time.
    risk_horizon_seconds: float = 6 * 3600.0
    #: A trend is judged only over a window at least this long.
    minimum_span_seconds: float = 60.0


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known of one group-partition at one moment. Times in seconds; None is unknown."""

    #: Whether the latest sample could read the offsets of the group and the ends of the log.
    readable: bool = True
    #: The committed offset.
    committed: int | None = None
    #: Offset of the next record that still exists after the committed offset, where it was looked up.
    next_record: int | None = None
    #: Whether a committed offset was ever seen.
    ever_committed: bool = False
    #: Whether the topic was deleted and created again after the commit.
    recreated: bool = False
    #: Offset of the oldest record that the log still holds.
    log_start: int | None = None
    #: End of the log: the offset after the last record that consumers may read.
    high_watermark: int | None = None
    #: Last stable offset: consumers that read only committed transactions get no further.
    last_stable: int | None = None
    #: Age of the record at the last stable offset.
    last_stable_seconds: float | None = None
    #: Number of samples in the window on which the trend of the lag is judged.
    samples: int = 0
    #: Time between the first and the last sample of the window on which the trend of the lag is judged.
    span_seconds: float = 0.0
    #: Age of the oldest unread record.
    lag_seconds: float | None = None
    #: Whether `lag_seconds` is only a lower bound: the oldest unread record is older than the watermark history.
    lag_seconds_is_lower_bound: bool = False
    #: For how long the committed offset has stayed where it is.
    unmoved_seconds: float = 0.0
    #: For how long the committed offset has stayed where it is while there was something to read.
    standstill_seconds: float = 0.0
    #: How long ago the group last had nothing unread here.
    drained_seconds: float | None = None
    #: How often the committed offset was seen to move within the last hour.
    commits_seen: int = 0
    #: Usual time between two commits while there is something to commit.
    commit_cadence_seconds: float | None = None
    #: The highest committed offset before a rewind of the last hour.
    rewound_from: int | None = None
    #: Number of records by which the committed offset was rewound within the last hour.
    rewound_records: int = 0
    #: How long ago the committed offset was last rewound, within the last hour.
    rewound_seconds: float | None = None
    #: Records that were deleted unread, as seen in the samples of the shortest trend window.
    lost_lately: int = 0
    #: Records that were deleted unread, as seen in the samples of a day.
    lost_of_day: Lost = NOTHING_LOST
    #: Whether a client deleted the oldest records (DeleteRecords): no retention limit explains it.
    deleted_by_request: bool = False
    #: Log start at the end of the previous minute.
    earlier_log_start: int | None = None
    #: Whether the group commits often enough for its lag to have a trend.
    trend_is_measurable: bool = True
    #: Trend of the lag over the window that suits the commit cadence.
    trend: Trend | None = None
    #: Trend of the lag over the next longer window, which has to agree with `trend`.
    longer: Trend | None = None
    #: Records written per second, mean of the trend window.
    produce_rate_per_second: float | None = None
    #: Records written per second, the lower of the means of the trend window and of an hour: a burst is not taken to
    #: continue.
    steady_produce_rate_per_second: float | None = None
    #: Records committed per second, mean of the trend window.
    consume_rate_per_second: float | None = None
    #: Time until retention deletes the first record that the group does not reach in time
    #: (:func:`lagwise.domain.loss.race.seconds_to_overtaking`), if segments are deleted as early as they may be.
    overtaken_seconds: float | None = None
    #: Time until retention deletes the first record that the group does not reach in time, if segments are deleted as
    #: late as they may be.
    overtaken_at_latest_seconds: float | None = None
    #: How the log start moves when a segment is deleted; None where it was never seen to move.
    log_start_jumps: Jumps | None = None
    #: Mean rate at which the log start moves, records per second.
    log_start_rate_per_second: float | None = None
    #: State of the group as its coordinator names it.
    state: str | None = None
    #: Type of the group as the collector names it.
    type: str | None = None
    #: Member id that the partition is assigned to.
    owner: str | None = None
    #: Whether any partition of the topic is assigned to a member of the group.
    topic_is_assigned: bool = False
    #: Whether any partition at all is assigned to a member of the group.
    group_is_assigned: bool = False
    #: Whether the group was rebalancing in the latest samples.
    rebalancing_now: bool = False
    #: In how many of the group's recent samples it was rebalancing, or had rebalanced since the previous sample.
    samples_of_unrest: int = 0
    #: Number of the group's recent samples, of which `samples_of_unrest` is a part.
    group_samples: int = 0
    #: Records older than this are deleted.
    retention_seconds: float | None = None
    #: Whether the size of the log is limited, too (`retention.bytes`).
    retention_is_by_size: bool = False
    #: Longest time for which one segment of the log is written (`segment.ms`).
    segment_seconds: float | None = None
    #: Time until the committed offsets expire on the broker.
    seconds_to_expiry: float | None = None
    #: How long ago the Flink job that reads the partition last completed a checkpoint, or started where it has
    #: completed none.
    checkpoint_age_seconds: float | None = None
    #: How often the Flink job that reads the partition should complete a checkpoint.
    checkpoint_interval_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """The status of a group-partition, and the numbers that come with it."""

    #: The worst status that holds.
    status: Status
    #: Why it is unknown; None for every other status.
    reason: UnknownReason | None = None
    #: Every status that holds, worst first.
    reasons: tuple[Status, ...] = ()
    #: Unread records.
    lag: int | None = None
    #: Records committed per second, mean of the trend window; 0 where no consumer reads any more.
    consume_rate_per_second: float | None = None
    #: When the lag is gone, at today's rates; None where that is not to be expected.
    to_catch_up: Forecast | None = None
    #: When the oldest unread record is older than the objective, at today's rates; None where that is not expected.
    to_breach: Forecast | None = None
    #: When unread records are deleted at the earliest, or offsets expire; None where neither will happen.
    seconds_to_loss: float | None = None
    #: Whether the loss may come sooner, because only a lower bound of the oldest unread record's age is known.
    seconds_to_loss_is_upper_bound: bool = False
    #: When unread records are deleted at the latest, where they are deleted by age and it is known.
    seconds_to_loss_at_latest: float | None = None
    #: How the loss would come; None where none will.
    loss_cause: LossCause | None = None
    #: Records that are missing, or were lost within minutes by a group that goes on losing.
    records_lost: int = 0
    #: What was lost within a day.
    lost: Lost = NOTHING_LOST
    #: For how long a transaction has been open, at least, that hangs and holds records back.
    transaction_seconds: float | None = None

    @property
    def seconds_to_catch_up(self) -> float | None:
        """Time until the lag is gone; only while catching up."""
        return self.to_catch_up.seconds if self.to_catch_up is not None else None
