"""What is known of a group-partition at a moment, by which it is judged, and what that comes to."""

from dataclasses import dataclass

from lagwise.domain.lag_forecast import Forecast
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
    """What is known of one group-partition at one moment. Times in seconds, None where not known."""

    #: Whether the latest sample could read the offsets of the group and the ends of the log.
    readable: bool = True
    #: The committed offset.
    committed: int | None = None
    #: Offset of the next record that there is, where that was looked up.
    next_record: int | None = None
    #: Whether a committed offset was ever seen.
    ever_committed: bool = False
    #: Whether the topic was deleted and created anew after the commit.
    recreated: bool = False
    log_start: int | None = None
    high_watermark: int | None = None
    #: Consumers that read only committed transactions get no further than this offset.
    last_stable: int | None = None
    #: Age of the record at the last stable offset.
    last_stable_seconds: float | None = None
    #: Samples in the window on which the trend is judged.
    samples: int = 0
    #: Length of that window.
    span_seconds: float = 0.0
    #: Age of the oldest unread record.
    lag_seconds: float | None = None
    #: Whether that record is older than the watermark history.
    lag_seconds_is_lower_bound: bool = False
    #: For how long the committed offset has stayed where it is.
    unmoved_seconds: float = 0.0
    #: The same, as far as there was something to read.
    standstill_seconds: float = 0.0
    #: How long ago nothing was unread.
    drained_seconds: float | None = None
    #: How often the committed offset was seen to move.
    commits_seen: int = 0
    #: Usual time between two commits while there is something to commit.
    commit_cadence_seconds: float | None = None
    #: The committed offset before it went back.
    rewound_from: int | None = None
    #: By how many records the committed offset was seen to go back.
    rewound_records: int = 0
    #: How long ago it last did.
    rewound_seconds: float | None = None
    #: Records that were deleted unread, by the samples of the shortest window.
    lost_lately: int = 0
    #: The same, by the samples of a day.
    lost_of_day: Lost = NOTHING_LOST
    #: Whether a client had the oldest records deleted: no limit can have.
    deleted_by_request: bool = False
    #: Where the log began at the end of the minute before.
    earlier_log_start: int | None = None
    #: Whether the group commits often enough for a trend of its lag.
    trend_is_measurable: bool = True
    #: Trend of the lag over the window.
    trend: Trend | None = None
    #: Trend of the lag over the next longer window.
    longer: Trend | None = None
    #: Records written per second, over the window.
    produce_rate_per_second: float | None = None
    #: The lower of that rate and the rate of an hour: a burst is not taken to go on.
    steady_produce_rate_per_second: float | None = None
    #: Records committed per second, over the window.
    consume_rate_per_second: float | None = None
    #: When retention deletes the first of the written records that the group does not get to in time
    #: (:func:`lagwise.domain.loss.race.seconds_to_overtaking`).
    overtaken_seconds: float | None = None
    #: The same for the latest moment at which the records are deleted.
    overtaken_at_latest_seconds: float | None = None
    #: How the log start moves when a segment is deleted; None where it was never seen to.
    log_start_jumps: Jumps | None = None
    #: Records by which the log start moves per second.
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
    #: In how many of the group's samples it was rebalancing, or had been since the sample before.
    samples_of_unrest: int = 0
    #: How many samples those are counted in.
    group_samples: int = 0
    #: Records older than this are deleted.
    retention_seconds: float | None = None
    #: Whether the size of the log is limited as well.
    retention_is_by_size: bool = False
    #: Longest time that one segment of the log is written to.
    segment_seconds: float | None = None
    #: When the broker forgets the committed offsets.
    seconds_to_expiry: float | None = None
    #: How long ago the job that reads it completed a checkpoint, or began, where it has completed none.
    checkpoint_age_seconds: float | None = None
    #: How often that job is to complete one.
    checkpoint_interval_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """The status of a group-partition, and the numbers that come with it."""

    status: Status
    #: Why it is unknown; None for every other status.
    reason: UnknownReason | None = None
    #: Every status that holds, worst first.
    reasons: tuple[Status, ...] = ()
    #: Unread records.
    lag: int | None = None
    #: That of the evidence, a mean over its window, but 0 where nobody reads any more.
    consume_rate_per_second: float | None = None
    #: When the lag is gone, at today's rates; None where that is not to be expected.
    to_catch_up: Forecast | None = None
    #: When the oldest unread record is older than the objective, at today's rates; None where that is not expected.
    to_breach: Forecast | None = None
    #: When unread records are deleted at the earliest, or offsets expire; None where neither will happen.
    seconds_to_loss: float | None = None
    #: Whether the loss may come sooner: of the oldest unread record only a lower bound of its age is known.
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
