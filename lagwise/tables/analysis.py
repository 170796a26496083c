"""The analysis layer: what Spark made of the raw layer. Idempotent, and re-runnable from raw."""

from dataclasses import replace

import pyarrow as pa

from lagwise.tables.capacity import CAPACITY
from lagwise.tables.membership import ASSIGNMENTS, REBALANCE_STATS
from lagwise.tables.observed import OBSERVED_CAPACITY, THROUGHPUT
from lagwise.tables.planning import PLANNING_TABLES
from lagwise.tables.schema import TIMESTAMP, Column, Table
from lagwise.tables.ticks import TICKS

_PAIR = (
    Column("cluster", pa.string(), "name of the cluster in the configuration", nullable=False),
    Column("group", pa.string(), "consumer group", nullable=False),
    Column("topic", pa.string(), "topic", nullable=False),
    Column("partition", pa.int32(), "partition", nullable=False),
)

MINUTES = Table(
    "minutes",
    "analysis",
    "group-partition and minute: sufficient statistics, so that any window is a merge of minutes",
    (
        *_PAIR,
        Column("minute", TIMESTAMP, "start of the minute", nullable=False),
        Column("samples", pa.int32(), "samples in the minute whose lag is known", nullable=False),
        Column("first_at", TIMESTAMP, "time of the first sample"),
        Column("last_at", TIMESTAMP, "time of the last sample"),
        Column("first_committed", pa.int64(), "committed offset at the first sample"),
        Column("last_committed", pa.int64(), "committed offset at the last sample"),
        Column("last_lag", pa.int64(), "lag at the last sample, records"),
        Column("max_lag", pa.int64(), "largest lag, records"),
        Column("sum_t", pa.float64(), "sum of t, seconds since the start of the minute"),
        Column("sum_tt", pa.float64(), "sum of t²"),
        Column("sum_lag", pa.float64(), "sum of lag"),
        Column("sum_lag_lag", pa.float64(), "sum of lag²"),
        Column("sum_t_lag", pa.float64(), "sum of t·lag"),
        Column("steps", pa.int32(), "successive sample pairs that end in this minute (the first may begin earlier)"),
        Column("sum_dt_dt", pa.float64(), "sum of (Δt)² over the steps"),
        Column("sum_dt_dlag", pa.float64(), "sum of Δt·Δlag over the steps"),
        Column("sum_dlag_dlag", pa.float64(), "sum of (Δlag)² over the steps"),
        Column("moves", pa.int32(), "steps in which the committed offset changed"),
        Column(
            "last_moved_at", TIMESTAMP, "time of the last sample whose committed offset differs from the one before"
        ),
        Column("backlog_seconds", pa.float64(), "seconds of the steps that began with lag"),
        Column("last_drained_at", TIMESTAMP, "time of the last sample at which nothing was unread"),
        Column(
            "first_progress_at", TIMESTAMP, "time of the first sample that had moved, or at which nothing was unread"
        ),
        Column("rewound_from", pa.int64(), "highest committed offset from which a step went back"),
        Column("rewound_records", pa.int64(), "sum of the records by which steps went back; null is none"),
        Column("rewound_at", TIMESTAMP, "time of the last sample that had gone back"),
        Column("lost_at_least", pa.int64(), "records deleted unread: beyond the commit read before; null is none"),
        Column("lost_at_most", pa.int64(), "those beyond the commit of the sample before; null is none"),
        Column("first_lost_at", TIMESTAMP, "time of the first sample that shows records to have been deleted unread"),
        Column("last_lost_at", TIMESTAMP, "time of the last such sample"),
    ),
    clock="minute",
    skipping=("minute",),
)

WATERMARK_POINT = pa.list_(pa.struct([pa.field("at", TIMESTAMP), pa.field("high_watermark", pa.int64())]))

WATERMARK_MINUTES = Table(
    "watermark_minutes",
    "analysis",
    "topic-partition and minute: when the log reached which offset",
    (
        Column("cluster", pa.string(), "name of the cluster in the configuration", nullable=False),
        Column("topic", pa.string(), "topic", nullable=False),
        Column("partition", pa.int32(), "partition", nullable=False),
        Column("minute", TIMESTAMP, "start of the minute", nullable=False),
        Column("topic_id", pa.string(), "the topic's unique id at the last sample"),
        Column("first_log_start", pa.int64(), "log start offset at the first sample"),
        Column("last_log_start", pa.int64(), "log start offset at the last sample"),
        Column("first_high_watermark", pa.int64(), "high watermark at the first sample"),
        Column("last_high_watermark", pa.int64(), "high watermark at the last sample"),
        Column("first_at", TIMESTAMP, "time of the first sample"),
        Column("last_at", TIMESTAMP, "time of the last sample"),
        Column("reset_at", TIMESTAMP, "time of the last sample at which the log had gone back, or was another topic's"),
        Column("recreated_at", TIMESTAMP, "time of the last sample at which the topic had another id than before"),
        Column("points", WATERMARK_POINT, "the samples in order of time, since the last reset"),
    ),
    clock="minute",
    skipping=("minute",),
)


def _merged(table: Table, name: str, bucket: str, rows: str) -> Table:
    columns = tuple(
        replace(c, meaning=c.meaning.replace("the minute", bucket).replace("this minute", bucket))
        for c in table.columns
    )
    return replace(table, name=name, rows=rows, columns=columns)


FIVE_MINUTES = _merged(
    MINUTES,
    "five_minutes",
    "the five minutes",
    "group-partition and five minutes: five of `minutes` merged, for what lies further back",
)
WATERMARK_FIVE_MINUTES = _merged(
    WATERMARK_MINUTES,
    "watermark_five_minutes",
    "the five minutes",
    "topic-partition and five minutes: five of `watermark_minutes` merged, for what lies further back",
)
_HOURS = _merged(MINUTES, "hours", "the hour", "group-partition and hour: twelve of `five_minutes` merged")
HOURS = replace(
    _HOURS,
    columns=(
        *_HOURS.columns,
        Column(
            "longest_pause_seconds",
            pa.float64(),
            "longest time without progress between samples with some (told where it is five minutes or more)",
        ),
    ),
)

DAYS = Table(
    "days",
    "analysis",
    "group-partition, now: 23 of `hours` merged, which is its last day but for the hour or so that is not whole yet",
    (
        *_PAIR,
        Column("until", TIMESTAMP, "end of the last of these hours; t counts from the start of the first", False),
        *[c for c in MINUTES.columns if c.name in ("samples", "first_at", "last_at")],
        *[c for c in MINUTES.columns if c.name in ("first_committed", "last_committed")],
        *[c for c in MINUTES.columns if c.name.startswith("sum_") or c.name == "steps"],
        *[c for c in MINUTES.columns if "lost" in c.name],
        Column("usual_pause_seconds", pa.float64(), "longest pause between commits that is usual; null is none"),
    ),
)

_AS_OF = Column("as_of", TIMESTAMP, "time of the cluster's latest sample: the moment the row speaks of", nullable=False)
_STATUS = (
    Column("status", pa.string(), "status word", nullable=False),
    Column("reason", pa.string(), "why it is unknown; null for every other status"),
    Column("since", TIMESTAMP, "since when the status has been shown", nullable=False),
)

_CATCH_UP_ENDS = (
    Column("seconds_to_catch_up_low", pa.float64(), "lower end of its confidence interval"),
    Column("seconds_to_catch_up_high", pa.float64(), "upper end of its confidence interval; null is never"),
)

_BREACH = (
    Column(
        "seconds_to_breach",
        pa.float64(),
        "time until the oldest unread record is older than the group's objective, at today's rates; null where it is, "
        "or where that is not to be expected",
    ),
    Column("seconds_to_breach_low", pa.float64(), "lower end of its confidence interval"),
    Column("seconds_to_breach_high", pa.float64(), "upper end of its confidence interval; null is never"),
)

_IS_UPPER_BOUND = Column(
    "seconds_to_loss_is_upper_bound",
    pa.bool_(),
    "the loss may come at any moment before: the oldest unread record is older than the history, nobody knows how much",
)

_AT_LATEST = Column(
    "seconds_to_loss_at_latest",
    pa.float64(),
    "time until unread records are deleted by age at the latest: whole segments are, of up to segment.ms of records "
    "each; null is not known, or never",
)
_LOST = (
    Column("lost_at_least", pa.int64(), "records deleted unread within a day, or missing now, at least; 0 is none"),
    Column("lost_at_most", pa.int64(), "the same at most: what the log start passed between two commits counts too"),
    Column("first_lost_at", TIMESTAMP, "time of the first sample within a day that shows a loss; null is none"),
    Column("last_lost_at", TIMESTAMP, "time of the last such sample"),
)

_TRANSACTION = Column(
    "transaction_seconds",
    pa.float64(),
    "for how long a transaction has been open, at least, that hangs and holds records back; null is none",
)

PARTITION_STATUS = Table(
    "partition_status",
    "analysis",
    "group-partition, now",
    (
        *_PAIR,
        _AS_OF,
        *_STATUS,
        Column("reasons", pa.list_(pa.string()), "every status that holds, worst first", nullable=False),
        Column("log_start", pa.int64(), "log start offset"),
        Column("committed", pa.int64(), "committed offset"),
        Column("high_watermark", pa.int64(), "high watermark"),
        Column("last_stable", pa.int64(), "last stable offset"),
        Column("lag", pa.int64(), "unread records that still exist; null is unknown"),
        Column("lag_seconds", pa.float64(), "age of the oldest unread record; 0 when nothing is unread"),
        Column("lag_seconds_is_lower_bound", pa.bool_(), "the age reaches beyond the watermark history"),
        Column("produce_rate_per_second", pa.float64(), "records written per second, trend window"),
        Column(
            "consume_rate_per_second", pa.float64(), "records committed per second, trend window; 0 where nobody reads"
        ),
        Column("commits_seen", pa.int32(), "how often the committed offset was seen to move within an hour"),
        Column("lag_slope_per_second", pa.float64(), "growth of the lag, records per second"),
        Column("lag_slope_low_per_second", pa.float64(), "lower end of its confidence interval"),
        Column("lag_slope_high_per_second", pa.float64(), "upper end of its confidence interval"),
        Column("seconds_to_catch_up", pa.float64(), "time until the lag is gone; only while catching up"),
        *_CATCH_UP_ENDS,
        *_BREACH,
        Column(
            "seconds_to_loss",
            pa.float64(),
            "time until unread records are deleted, at the earliest, or offsets expire; null is never",
        ),
        _IS_UPPER_BOUND,
        _AT_LATEST,
        Column("loss_cause", pa.string(), "how that loss would come: deletion (of records) or expiry (of offsets)"),
        Column("records_lost", pa.int64(), "records deleted before they were read; 0 is none", nullable=False),
        Column(
            "rewound_records",
            pa.int64(),
            "records by which the committed offset went back within an hour; null where it is past where it was",
        ),
        Column("rewound_at", TIMESTAMP, "when it last did, of a group that is not past where it was"),
        *_LOST,
        _TRANSACTION,
        Column("committed_since", TIMESTAMP, "since when the committed offset has had its value, at the latest"),
        Column(
            "commit_cadence_seconds",
            pa.float64(),
            "seconds between commits while there was something to commit, or the longest pause that is usual",
        ),
        Column("owner", pa.string(), "member id the partition is assigned to"),
        Column("client_id", pa.string(), "client.id of the owner"),
        Column("host", pa.string(), "address of the owner"),
        Column("leader", pa.int32(), "node id of the partition's leader"),
        Column("samples", pa.int32(), "samples the verdict rests on"),
        Column(
            "jump_records",
            pa.int64(),
            "records by which the log start jumps when a segment is deleted; null where it was never seen to, "
            "and where the size of a log is not limited",
        ),
        Column("jump_high_watermark", pa.int64(), "high watermark before its last jump"),
    ),
)

STATUS_COUNTS = pa.list_(pa.struct([pa.field("status", pa.string()), pa.field("partitions", pa.int32())]))

_GROUP_NUMBERS = (
    Column("lag", pa.int64(), "sum of the partitions' lag, unknown ones and ghosts left out; null if all are"),
    Column("lag_seconds", pa.float64(), "age of the oldest unread record of any partition"),
    Column("lag_seconds_is_lower_bound", pa.bool_(), "the age reaches beyond the watermark history"),
    Column("produce_rate_per_second", pa.float64(), "records written per second to the partitions it reads"),
    Column("consume_rate_per_second", pa.float64(), "records it committed per second"),
)

FINDINGS = pa.list_(
    pa.struct([pa.field("kind", pa.string()), pa.field("sentence", pa.string()), pa.field("remedy", pa.string())])
)

GROUP_STATUS = Table(
    "group_status",
    "analysis",
    "group, now",
    (
        Column("cluster", pa.string(), "name of the cluster in the configuration", nullable=False),
        Column("group", pa.string(), "consumer group", nullable=False),
        _AS_OF,
        *_STATUS,
        Column("sentence", pa.string(), "why, in one sentence with numbers", nullable=False),
        Column("state", pa.string(), "state as the coordinator names it"),
        Column("type", pa.string(), "classic, consumer (KIP-848), share or simple"),
        Column("members", pa.int32(), "members"),
        Column("idle_members", pa.int32(), "members that own no partition"),
        Column("topics", pa.list_(pa.string()), "topics it has commits on or is assigned, ghosts left out", False),
        Column("partitions", pa.int32(), "partitions, ghosts left out", nullable=False),
        Column("partitions_by_status", STATUS_COUNTS, "how many partitions are in which status", nullable=False),
        *_GROUP_NUMBERS,
        Column("commits_seen", pa.int32(), "how often its committed offsets were seen to move within an hour"),
        Column("seconds_to_catch_up", pa.float64(), "until its last partition has no lag; only while catching up"),
        *_CATCH_UP_ENDS,
        *_BREACH,
        Column("seconds_to_loss", pa.float64(), "shortest of its partitions'; null is never"),
        _IS_UPPER_BOUND,
        _AT_LATEST,
        Column("loss_cause", pa.string(), "how that loss would come: deletion (of records) or expiry (of offsets)"),
        Column("records_lost", pa.int64(), "sum over its partitions", nullable=False),
        *_LOST,
        _TRANSACTION,
        Column("worst_topic", pa.string(), "topic of its worst partition"),
        Column("worst_partition", pa.int32(), "its worst partition: by status, then by age of the oldest unread"),
        Column("cause", pa.string(), "where its trouble sits: partition, member, broker or group; null is no trouble"),
        Column(
            "findings",
            FINDINGS,
            "what else is worth knowing, the most urgent first: loss, dead_letters, unread_retries, retries, …",
            nullable=False,
        ),
        Column("cause_name", pa.string(), "that member (client and host) or broker (node id); null for the others"),
    ),
)

GROUP_HISTORY = Table(
    "group_history",
    "analysis",
    "group and tick: the line in the charts",
    (
        Column("cluster", pa.string(), "name of the cluster in the configuration", nullable=False),
        Column("group", pa.string(), "consumer group", nullable=False),
        _AS_OF,
        Column("status", pa.string(), "status word", nullable=False),
        *_GROUP_NUMBERS,
    ),
    clock="as_of",
    skipping=("as_of",),
)

STATUS_CHANGES = Table(
    "status_changes",
    "analysis",
    "change of status",
    (
        Column("cluster", pa.string(), "name of the cluster in the configuration", nullable=False),
        Column("group", pa.string(), "consumer group", nullable=False),
        Column("topic", pa.string(), "topic; null for a change of the whole group"),
        Column("partition", pa.int32(), "partition; null for a change of the whole group"),
        Column("at", TIMESTAMP, "time of the sample that showed it", nullable=False),
        Column("before", pa.string(), "status before; null when it was seen for the first time"),
        Column("after", pa.string(), "status after", nullable=False),
        Column("reason", pa.string(), "why it is unknown; null for every other status"),
    ),
    clock="at",
    skipping=("at",),
)

ANALYSIS_TABLES = (
    MINUTES,
    WATERMARK_MINUTES,
    FIVE_MINUTES,
    WATERMARK_FIVE_MINUTES,
    HOURS,
    DAYS,
    PARTITION_STATUS,
    GROUP_STATUS,
    GROUP_HISTORY,
    STATUS_CHANGES,
    REBALANCE_STATS,
    ASSIGNMENTS,
    CAPACITY,
    THROUGHPUT,
    OBSERVED_CAPACITY,
    TICKS,
    *PLANNING_TABLES,
)
