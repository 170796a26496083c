"""The raw layer: what collectors saw. Append-only, never interpreted, partitioned by day."""

import pyarrow as pa

from lagwise.tables.schema import SAMPLE, TIMESTAMP, Column, Table
from lagwise.tables.service_times import JOBS, SERVICE_TIMES

ERRORS = pa.list_(
    pa.struct(
        [
            pa.field("kind", pa.string()),
            pa.field("count", pa.int64()),
            pa.field("example", pa.string()),
        ]
    )
)

SAMPLES = Table(
    "samples",
    "raw",
    "collection run: the monitor's own health",
    (
        *SAMPLE,
        Column("system", pa.string(), "kafka, rocketmq, flink, files or sql", nullable=False),
        Column("started_at", TIMESTAMP, "when the run began", nullable=False),
        Column("commits_read_at", TIMESTAMP, "when the committed offsets had been read; always before the watermarks"),
        Column("watermarks_read_at", TIMESTAMP, "when the watermarks had been read"),
        Column("finished_at", TIMESTAMP, "when the run ended, before writing", nullable=False),
        Column(
            "written_at",
            TIMESTAMP,
            "when the row was written, possibly much later; the analysis finds new samples by it",
            False,
        ),
        Column("interval_seconds", pa.float64(), "the configured interval", nullable=False),
        Column("groups", pa.int64(), "groups read without error", nullable=False),
        Column("group_partitions", pa.int64(), "committed offsets read", nullable=False),
        Column("partitions", pa.int64(), "topic-partitions whose watermarks were read", nullable=False),
        Column("wall_seconds", pa.float64(), "duration of the run", nullable=False),
        Column("cpu_seconds", pa.float64(), "CPU time of the collector process during the run", nullable=False),
        Column("offsets_retention_seconds", pa.float64(), "the broker's offsets.retention.minutes, where readable"),
        Column("errors", ERRORS, "errors of the run: one entry per kind, with a count and an example", nullable=False),
    ),
    clock="started_at",
    skipping=("started_at",),
)

WATERMARKS = Table(
    "watermarks",
    "raw",
    "topic-partition and sample",
    (
        *SAMPLE,
        Column("sampled_at", TIMESTAMP, "when the watermarks had been read", nullable=False),
        Column("topic", pa.string(), "topic", nullable=False),
        Column("partition", pa.int32(), "partition", nullable=False),
        Column("topic_id", pa.string(), "unique id of the topic; a new id means another topic of the same name"),
        Column(
            "label", pa.string(), "name of the partition in its system, if that is not a number (a queue of a broker)"
        ),
        Column("log_start", pa.int64(), "log start offset: the oldest record that still exists"),
        Column("high_watermark", pa.int64(), "offset after the newest replicated record; null is unreadable"),
        Column("last_stable", pa.int64(), "last stable offset: the end for readers of committed records"),
        Column("leader", pa.int32(), "node id of the leader; null is none"),
        Column("replicas", pa.list_(pa.int32()), "node ids of the replicas"),
        Column("isr", pa.list_(pa.int32()), "node ids of the in-sync replicas"),
        Column("newest_record_at", TIMESTAMP, "timestamp of the newest record, if the source reports it"),
        Column("error", pa.string(), "kind of the error that made it unreadable; null is no error"),
    ),
    clock="sampled_at",
    skipping=("sampled_at",),
)

COMMITS = Table(
    "commits",
    "raw",
    "group-partition and sample",
    (
        *SAMPLE,
        Column("sampled_at", TIMESTAMP, "when the committed offsets had been read", nullable=False),
        Column("group", pa.string(), "consumer group", nullable=False),
        Column("topic", pa.string(), "topic", nullable=False),
        Column("partition", pa.int32(), "partition", nullable=False),
        Column(
            "committed",
            pa.int64(),
            "committed offset (of the next record to read); null is never committed, gone, or not readable",
        ),
        Column(
            "next_record",
            pa.int64(),
            "offset of the next record there is at or after the committed one, where that was looked up: commit "
            "markers of transactions and gaps of compaction take offsets, and are no records",
        ),
        Column("leader_epoch", pa.int32(), "leader epoch of the commit, where known"),
        Column("metadata", pa.string(), "free text the consumer committed with the offset"),
        Column("owner", pa.string(), "id of the member that the partition is assigned to; null is none"),
        Column(
            "committed_at",
            TIMESTAMP,
            "time of the newest commit, if `__consumer_offsets` is read or the offsets are external",
        ),
        Column("commits_since", pa.int32(), "commits since the previous sample, if `__consumer_offsets` is read"),
    ),
    clock="sampled_at",
    skipping=("sampled_at",),
)

SUBSCRIPTIONS = pa.list_(
    pa.struct(
        [
            pa.field("topic", pa.string()),
            pa.field("filter", pa.string()),
            pa.field("members", pa.int32()),
            pa.field("of", pa.int32()),
        ]
    )
)

GROUPS = Table(
    "groups",
    "raw",
    "group and sample",
    (
        *SAMPLE,
        Column("sampled_at", TIMESTAMP, "when the group was described", nullable=False),
        Column("group", pa.string(), "consumer group", nullable=False),
        Column("state", pa.string(), "state as the coordinator names it: Stable, Empty, PreparingRebalance, …"),
        Column(
            "type",
            pa.string(),
            "Kafka: classic, consumer (KIP-848), share or simple; RocketMQ: concurrent, orderly, pop, pull, "
            "broadcasting, or clustering where no member reports more; or who keeps its offsets: flink, spark, sql, "
            "files",
        ),
        Column("assignor", pa.string(), "partition assignor: range, roundrobin, cooperative-sticky, uniform, …"),
        Column("coordinator", pa.int32(), "node id of the group coordinator"),
        Column("member_count", pa.int32(), "members"),
        Column(
            "unacknowledged",
            pa.int64(),
            "messages that members were handed and did not acknowledge yet, which count as read (RocketMQ's POP); null "
            "is not known, or none can be",
        ),
        Column(
            "error", pa.string(), "kind of the error that made the group or its offsets unreadable; null is no error"
        ),
        Column(
            "source",
            pa.string(),
            "where the offsets come from: a source in `external_offsets`; for a broadcasting group of RocketMQ, "
            "`local files` of its members or the broker's `broadcast hint` (what was fetched); null is the cluster",
        ),
        Column(
            "subscriptions",
            SUBSCRIPTIONS,
            "what is subscribed to (RocketMQ): which messages of a topic (tags or SQL; * is all), and by how many "
            "members of so many that reported it; null where none did",
        ),
        Column(
            "checkpointed_at",
            TIMESTAMP,
            "when its Flink job last completed a checkpoint, or began where it has completed none; null is no such job",
        ),
        Column("checkpoint_interval_seconds", pa.float64(), "how often that job makes one; null is never"),
    ),
    clock="sampled_at",
    skipping=("sampled_at",),
)

ASSIGNMENT = pa.list_(pa.struct([pa.field("topic", pa.string()), pa.field("partitions", pa.list_(pa.int32()))]))

MEMBERS = Table(
    "members",
    "raw",
    "member and sample",
    (
        *SAMPLE,
        Column("sampled_at", TIMESTAMP, "when the group was described", nullable=False),
        Column("group", pa.string(), "consumer group", nullable=False),
        Column("member_id", pa.string(), "member id given by the coordinator", nullable=False),
        Column("client_id", pa.string(), "client.id of the member"),
        Column("host", pa.string(), "address the member connects from"),
        Column("static_instance_id", pa.string(), "group.instance.id of a static member"),
        Column("assignment", ASSIGNMENT, "partitions that it owns, by topic", nullable=False),
        Column("assigned_partitions", pa.int32(), "number of partitions that it owns", nullable=False),
        Column(
            "lag",
            pa.int64(),
            "records that it has not read, of a group whose members read everything each (broadcasting); null: not "
            "known, or no such group",
        ),
    ),
    clock="sampled_at",
    skipping=("sampled_at",),
)

EVENTS = Table(
    "events",
    "raw",
    "event",
    (
        Column("cluster", pa.string(), "name of the cluster in the configuration", nullable=False),
        Column("at", TIMESTAMP, "when it happened, or when the sample that shows it was read", nullable=False),
        Column(
            "kind",
            pa.string(),
            "rebalance, state_changed, commit_rewound, commit_skipped, offsets_gone, …",
            False,
        ),
        Column("group", pa.string(), "consumer group; null for an event of a topic"),
        Column("topic", pa.string(), "topic; null for an event of a whole group"),
        Column("partition", pa.int32(), "partition; null for an event of a whole group or topic"),
        Column("before", pa.string(), "value before: a state, an offset, a topic id, a number of partitions"),
        Column("after", pa.string(), "value after"),
        Column("generation", pa.int64(), "generation or epoch that the rebalance led to, where known"),
        Column("source", pa.string(), "how it was detected: samples (two of them differ) or offsets_topic (exact)"),
        Column(
            "cause",
            pa.string(),
            "cause of a rebalance, where known, in a word; of other events how much changed; of a skip whose records "
            "before were deleted: from the log start",
        ),
        Column("joined", pa.list_(pa.string()), "client ids (host) of members that joined"),
        Column("left", pa.list_(pa.string()), "client ids (host) of members that left"),
        Column(
            "failed",
            pa.list_(pa.string()),
            "those of `left` that failed: they timed out, or exceeded the poll interval",
        ),
        Column("members", pa.int32(), "members after the rebalance"),
        Column("partitions_moved", pa.int32(), "partitions whose owner changed"),
        Column("moved", ASSIGNMENT, "partitions that were taken from their owner, where known"),
        Column(
            "duration_seconds",
            pa.float64(),
            "duration, if known (for classic groups only from samples)",
        ),
        Column("silent_seconds", pa.float64(), "longest time for which a member that left had committed nothing"),
        Column("uncommitted_seconds", pa.float64(), "longest time since the last commit on a partition that moved"),
        Column("session_timeout_seconds", pa.float64(), "session.timeout.ms of the members, where known"),
        Column("poll_interval_seconds", pa.float64(), "max.poll.interval.ms of the members, where known"),
    ),
    clock="at",
    skipping=("at",),
)

TOPICS = Table(
    "topics",
    "raw",
    "topic and change (and once at each start of a collector)",
    (
        *SAMPLE,
        Column("sampled_at", TIMESTAMP, "when the topic was described", nullable=False),
        Column("topic", pa.string(), "topic", nullable=False),
        Column("topic_id", pa.string(), "the topic's unique id"),
        Column("role", pa.string(), "retry or dead_letter, decided by its name; null is an ordinary topic"),
        Column("main_topic", pa.string(), "topic that this is the retry or dead-letter topic of"),
        Column("partitions", pa.int32(), "number of partitions"),
        Column("replication_factor", pa.int32(), "replicas of a partition"),
        Column("retention_ms", pa.int64(), "retention.ms; -1 is forever. For RocketMQ, how long messages are kept"),
        Column("retention_bytes", pa.int64(), "retention.bytes of a partition; -1 is unlimited"),
        Column("segment_ms", pa.int64(), "segment.ms"),
        Column("segment_bytes", pa.int64(), "segment.bytes"),
        Column("cleanup_policy", pa.string(), "delete, compact, or both"),
        Column("min_isr", pa.int32(), "min.insync.replicas"),
    ),
    clock="sampled_at",
    skipping=("sampled_at",),
)

RAW_TABLES = (SAMPLES, WATERMARKS, COMMITS, GROUPS, MEMBERS, EVENTS, TOPICS, SERVICE_TIMES, JOBS)

#: A condition on rows of `samples`, in SQL of DuckDB and of DataFusion: the run read something, or there was nothing to
#: read. One that met only errors is no sign that its cluster is being watched.
READ_SOMETHING = "groups + group_partitions + partitions > 0 or array_length(errors) = 0"
