"""The raw layer: what collectors saw. Append-only, never interpreted, partitioned by day."""

import pyarrow as pa

from lagwise.tables.keys import CLUSTER, GROUP, PARTITION, SAMPLE, TOPIC
from lagwise.tables.schema import FLOAT, INT32, INT64, TEXT, TIMESTAMP, Column, Table, list_of
from lagwise.tables.service_times import JOBS, SERVICE_TIMES

ERRORS = list_of(kind=TEXT, count=INT64, example=TEXT)
BROKERS = list_of(name=TEXT, role=TEXT, rack=TEXT, clock_ahead_seconds=FLOAT, disk_used=FLOAT, gone_at=TIMESTAMP)
REPLICAS = list_of(topic=TEXT, state=TEXT, partitions=INT64, named=TEXT, missing=TEXT)

SAMPLES = Table(
    "samples",
    "raw",
    "collection run: the monitor's own health",
    (
        *SAMPLE,
        Column("system", TEXT, "kafka, rocketmq, flink, files or sql", nullable=False),
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
        Column("interval_seconds", FLOAT, "the configured interval", nullable=False),
        Column("groups", INT64, "groups read without error", nullable=False),
        Column("group_partitions", INT64, "committed offsets read", nullable=False),
        Column("partitions", INT64, "topic-partitions whose watermarks were read", nullable=False),
        Column("wall_seconds", FLOAT, "duration of the run", nullable=False),
        Column("cpu_seconds", FLOAT, "CPU time of the collector process during the run", nullable=False),
        Column("offsets_retention_seconds", FLOAT, "the broker's offsets.retention.minutes, where readable"),
        Column("errors", ERRORS, "errors of the run: one entry per kind, with a count and an example", nullable=False),
        Column(
            "brokers",
            BROKERS,
            "brokers of the cluster: name or node id, role (broker, or controller: the active controller where that is "
            "no broker), rack, how far its clock is ahead of the collector's (of Kafka only that of the active "
            "controller), used share of its disk (RocketMQ), and since when it is gone (RocketMQ; null is not gone); "
            "null is unknown",
        ),
        Column(
            "replicas",
            REPLICAS,
            "partitions with a problem, by topic (`__consumer_offsets`, or null for all watched topics together) and "
            "state: no_leader, under_min_isr, min_isr_too_high, last_replica, under_replicated or one_rack; how many, "
            "the first of them, and brokers that have replicas of them and are not in the cluster; null is unknown",
        ),
        Column("offsets_topic_replicas", INT32, "replicas of that partition of `__consumer_offsets` with the fewest"),
        Column("offsets_topic_min_isr", INT32, "`min.insync.replicas` of `__consumer_offsets`, where readable"),
    ),
    clock="started_at",
)

WATERMARKS = Table(
    "watermarks",
    "raw",
    "topic-partition and sample",
    (
        *SAMPLE,
        Column("sampled_at", TIMESTAMP, "when the watermarks had been read", nullable=False),
        TOPIC,
        PARTITION,
        Column("topic_id", TEXT, "unique id of the topic; a new id means another topic of the same name"),
        Column("label", TEXT, "name of the partition in its system, if that is not a number (a queue of a broker)"),
        Column("log_start", INT64, "log start offset: the oldest record that still exists"),
        Column("high_watermark", INT64, "offset after the newest replicated record; null is unreadable"),
        Column("last_stable", INT64, "last stable offset: the end for readers of committed records"),
        Column("leader", INT32, "node id of the leader; null is none"),
        Column("replicas", pa.list_(INT32), "node ids of the replicas"),
        Column("isr", pa.list_(INT32), "node ids of the in-sync replicas"),
        Column("newest_record_at", TIMESTAMP, "timestamp of the newest record, if the source reports it"),
        Column("error", TEXT, "kind of the error that made it unreadable; null is no error"),
    ),
    clock="sampled_at",
)

COMMITS = Table(
    "commits",
    "raw",
    "group-partition and sample",
    (
        *SAMPLE,
        Column("sampled_at", TIMESTAMP, "when the committed offsets had been read", nullable=False),
        GROUP,
        TOPIC,
        PARTITION,
        Column(
            "committed",
            INT64,
            "committed offset (of the next record to read), of a share group the start offset; null is never "
            "committed, gone, or not readable",
        ),
        Column(
            "next_record",
            INT64,
            "offset of the next record there is at or after the committed one, where that was looked up: commit "
            "markers of transactions and gaps of compaction take offsets, and are no records",
        ),
        Column("leader_epoch", INT32, "leader epoch of the commit, where known"),
        Column("metadata", TEXT, "free text the consumer committed with the offset"),
        Column("owner", TEXT, "id of the member that the partition is assigned to; null is none"),
        Column(
            "committed_at",
            TIMESTAMP,
            "time of the newest commit, if `__consumer_offsets` is read or the offsets are external",
        ),
        Column("commits_since", INT32, "commits since the previous sample, if `__consumer_offsets` is read"),
    ),
    clock="sampled_at",
)

SUBSCRIPTIONS = list_of(topic=TEXT, filter=TEXT, members=INT32, of=INT32)

GROUPS = Table(
    "groups",
    "raw",
    "group and sample",
    (
        *SAMPLE,
        Column("sampled_at", TIMESTAMP, "when the group was described", nullable=False),
        GROUP,
        Column("state", TEXT, "state as the coordinator names it: Stable, Empty, PreparingRebalance, …"),
        Column(
            "type",
            TEXT,
            "Kafka: classic, consumer (KIP-848), share (KIP-932), streams (KIP-1071), connect, simple, or other; "
            "RocketMQ: concurrent, orderly, pop, pull, broadcasting, or clustering where no member reports more; or "
            "who keeps its offsets: flink, spark, sql, files",
        ),
        Column("assignor", TEXT, "partition assignor: range, roundrobin, cooperative-sticky, uniform, …"),
        Column("coordinator", INT32, "node id of the group coordinator"),
        Column("member_count", INT32, "members"),
        Column(
            "unacknowledged",
            INT64,
            "messages that members were handed and did not acknowledge yet, which count as read (RocketMQ's POP); null "
            "is not known, or none can be",
        ),
        Column("error", TEXT, "kind of the error that made the group or its offsets unreadable; null is no error"),
        Column(
            "source",
            TEXT,
            "where the offsets come from: a source in `external_offsets`; for a broadcasting group of RocketMQ, "
            "`local files` of its members or the broker's `broadcast hint` (what was fetched); null is the cluster",
        ),
        Column(
            "subscriptions",
            SUBSCRIPTIONS,
            "what is subscribed to (RocketMQ): which messages of a topic (tags or SQL; * is all), and how many "
            "members (`members`) of those that reported (`of`) subscribe to them; null where none reported",
        ),
        Column(
            "checkpointed_at",
            TIMESTAMP,
            "when its Flink job last completed a checkpoint, or began where it has completed none; null is no such job",
        ),
        Column("checkpoint_interval_seconds", FLOAT, "how often that job makes one; null is never"),
    ),
    clock="sampled_at",
)

ASSIGNMENT = list_of(topic=TEXT, partitions=pa.list_(INT32))

MEMBERS = Table(
    "members",
    "raw",
    "member and sample",
    (
        *SAMPLE,
        Column("sampled_at", TIMESTAMP, "when the group was described", nullable=False),
        GROUP,
        Column("member_id", TEXT, "member id given by the coordinator", nullable=False),
        Column("client_id", TEXT, "client.id of the member"),
        Column("host", TEXT, "address the member connects from"),
        Column("static_instance_id", TEXT, "group.instance.id of a static member"),
        Column("assignment", ASSIGNMENT, "partitions that it owns, by topic", nullable=False),
        Column("assigned_partitions", INT32, "number of partitions that it owns", nullable=False),
        Column(
            "lag",
            INT64,
            "records that it has not read, of a group whose members read everything each (broadcasting); null: not "
            "known, or no such group",
        ),
    ),
    clock="sampled_at",
)

EVENTS = Table(
    "events",
    "raw",
    "event",
    (
        CLUSTER,
        Column("at", TIMESTAMP, "when it happened, or when the sample that shows it was read", nullable=False),
        Column(
            "kind", TEXT, "rebalance, state_changed, commit_rewound, offsets_gone, leaders_moved, …", nullable=False
        ),
        Column("group", TEXT, "consumer group; null for an event of a topic"),
        Column("topic", TEXT, "topic; null for an event of a whole group"),
        Column("partition", INT32, "partition; null for an event of a whole group or topic"),
        Column("before", TEXT, "value before: a state, an offset, a topic id, a number of partitions, brokers"),
        Column("after", TEXT, "value after"),
        Column("generation", INT64, "generation or epoch that the rebalance led to, where known"),
        Column("source", TEXT, "how it was detected: samples (two of them differ) or offsets_topic (exact)"),
        Column(
            "cause",
            TEXT,
            "cause of a rebalance, where known, in a word; of other events how much changed; of a skip whose records "
            "before were deleted: from the log start",
        ),
        Column("joined", pa.list_(TEXT), "client ids (host) of members that joined"),
        Column("left", pa.list_(TEXT), "client ids (host) of members that left"),
        Column("failed", pa.list_(TEXT), "those of `left` that failed: they timed out, or exceeded the poll interval"),
        Column("members", INT32, "members after the rebalance"),
        Column("partitions_moved", INT32, "partitions whose owner changed"),
        Column("moved", ASSIGNMENT, "partitions that were taken from their owner, where known"),
        Column("duration_seconds", FLOAT, "duration, if known (for classic groups only from samples)"),
        Column("silent_seconds", FLOAT, "longest time for which a member that left had committed nothing"),
        Column("uncommitted_seconds", FLOAT, "longest time since the last commit on a partition that moved"),
        Column("session_timeout_seconds", FLOAT, "session.timeout.ms of the members, where known"),
        Column("poll_interval_seconds", FLOAT, "max.poll.interval.ms of the members, where known"),
    ),
    clock="at",
)

TOPICS = Table(
    "topics",
    "raw",
    "topic and change (and once at each start of a collector)",
    (
        *SAMPLE,
        Column("sampled_at", TIMESTAMP, "when the topic was described", nullable=False),
        TOPIC,
        Column("topic_id", TEXT, "the topic's unique id"),
        Column("role", TEXT, "retry or dead_letter, decided by its name; null is an ordinary topic"),
        Column("main_topic", TEXT, "topic that this is the retry or dead-letter topic of"),
        Column("partitions", INT32, "number of partitions"),
        Column("replication_factor", INT32, "replicas of a partition"),
        Column("retention_ms", INT64, "retention.ms; -1 is forever. For RocketMQ, how long messages are kept"),
        Column("retention_bytes", INT64, "retention.bytes of a partition; -1 is unlimited"),
        Column("segment_ms", INT64, "segment.ms"),
        Column("segment_bytes", INT64, "segment.bytes"),
        Column("cleanup_policy", TEXT, "delete, compact, or both"),
        Column("min_isr", INT32, "min.insync.replicas"),
    ),
    clock="sampled_at",
)

RAW_TABLES = (SAMPLES, WATERMARKS, COMMITS, GROUPS, MEMBERS, EVENTS, TOPICS, SERVICE_TIMES, JOBS)

#: A condition on rows of `samples`, in SQL of DuckDB and of DataFusion: the run read something, or there was nothing to
#: read. One that met only errors is no sign that its cluster is being watched.
READ_SOMETHING = (
    "coalesce(groups, 0) + coalesce(group_partitions, 0) + coalesce(partitions, 0) > 0 or array_length(errors) = 0"
)
