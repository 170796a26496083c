"""The analysis layer: what Spark made of the raw layer. Idempotent, and re-runnable from raw."""

import pyarrow as pa

from lagwise.tables.capacity import CAPACITY, OBSERVED_CAPACITY, PLANNING_TABLES, THROUGHPUT
from lagwise.tables.membership import ASSIGNMENTS, REBALANCE_STATS
from lagwise.tables.minutes import (
    DAYS,
    FIVE_MINUTES,
    GROUP_PARTITION,
    HOURS,
    MINUTES,
    WATERMARK_FIVE_MINUTES,
    WATERMARK_MINUTES,
)
from lagwise.tables.quarantine import DAMAGED_FILES
from lagwise.tables.rounds import TICKS
from lagwise.tables.schema import TIMESTAMP, Column, Table

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
    Column(
        "lost_at_most",
        pa.int64(),
        "the same at most: what the log start passed between commits counts, too, in hours that show a loss",
    ),
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
        *GROUP_PARTITION,
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
    Column(
        "lag_seconds",
        pa.float64(),
        "age of the oldest unread record of any partition, of unknown ones too where their lag was measured",
    ),
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
        Column(
            "type",
            pa.string(),
            "Kafka: classic, consumer (KIP-848), share, simple; RocketMQ: how it consumes; else who keeps the offsets",
        ),
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
        Column("stands_still", pa.bool_(), "partitions of its status are stopped or stalled, be it beside a worse one"),
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
    DAMAGED_FILES,
)
