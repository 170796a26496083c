"""The analysis layer's table about capacity: what a group can do, what it will have to, and what is advised."""

import pyarrow as pa

from lagwise.tables.schema import TIMESTAMP, Column, Table

INPUTS = pa.list_(
    pa.struct(
        [
            pa.field("name", pa.string()),
            pa.field("value", pa.float64()),
            pa.field("source", pa.string()),
            pa.field("samples", pa.int64()),
            pa.field("measured_at", TIMESTAMP),
        ]
    )
)

CAPACITY = Table(
    "capacity",
    "analysis",
    "group and topic, now: verdict, advice, and what they rest on",
    (
        Column("cluster", pa.string(), "name of the cluster in the configuration", nullable=False),
        Column("group", pa.string(), "consumer group", nullable=False),
        Column("topic", pa.string(), "topic", nullable=False),
        Column("as_of", TIMESTAMP, "time of the sample it was worked out at", nullable=False),
        Column("verdict", pa.string(), "enough, tight, short, oversized or undecided", nullable=False),
        Column("sentence", pa.string(), "why, in one or two sentences with numbers", nullable=False),
        Column("enough_until", TIMESTAMP, "when the forecast goes above what can be done; null is not within it"),
        Column("partitions", pa.int32(), "partitions of the topic", nullable=False),
        Column("members", pa.int32(), "members that own any of them", nullable=False),
        Column("nodes", pa.int32(), "hosts of these members", nullable=False),
        Column(
            "hottest_share",
            pa.float64(),
            "share of the hottest partition in the busy hours of a week, 0 to 1; null: too few records to tell",
        ),
        Column("lag", pa.int64(), "unread records"),
        Column("produce_rate_per_second", pa.float64(), "records written per second, now"),
        Column("peak_rate_per_second", pa.float64(), "highest minute rate of the history"),
        Column("forecast_peak_rate_per_second", pa.float64(), "highest minute rate at the horizon; null: no forecast"),
        Column("member_rate_per_second", pa.float64(), "what one member can do; null is not known"),
        Column("unit", pa.string(), "what is sized: node, member, or subtask (of a Flink job)", nullable=False),
        Column("capacity_low_per_second", pa.float64(), "what all members can do with this skew: lower end, or bound"),
        Column("capacity_high_per_second", pa.float64(), "… upper end; null where there is only the lower bound"),
        Column(
            "capacity_source",
            pa.string(),
            "saturation, busy_time, consume_rt, probe, throughput (a lower bound) or none",
            nullable=False,
        ),
        Column("t1_seconds", pa.float64(), "T1 that was sized with (the whole time per message where T2 is not known)"),
        Column("t2_seconds", pa.float64(), "T2 that was sized with; null where it is not known"),
        Column("cores", pa.float64(), "cores of a node"),
        Column("threads_per_node", pa.int32(), "threads at work on a node, by the probe"),
        Column("max_threads_per_node", pa.int32(), "most threads that sizing may give a node"),
        Column("concurrency", pa.string(), "consumer-per-thread or pool"),
        Column(
            "advised_nodes",
            pa.int32(),
            "nodes (or members, or subtasks), spare ones included; null where nothing can be advised",
        ),
        Column("advised_threads_per_node", pa.int32(), "threads on each"),
        Column("advised_partitions", pa.int32(), "partitions of the topic"),
        Column(
            "slots_held",
            pa.int32(),
            "of a Flink job: task slots that the vertex which bounds it and those that share slots with it hold; null "
            "is not known",
        ),
        Column(
            "slots_free",
            pa.int32(),
            "… task slots of its cluster that no job has; null is not known, or the cluster starts TaskManagers on "
            "demand",
        ),
        Column(
            "binds", pa.string(), "what binds: cpu, waiting, time, partitions, skew, ordering, downstream or demand"
        ),
        Column("change", pa.string(), "the cheapest change that helps, in a sentence; null where none is needed"),
        Column("advice", pa.string(), "the advice in sentences; null where not enough is known to ask sizing"),
        Column("confidence", pa.string(), "high, medium, low or none: how much it rests on", nullable=False),
        Column("inputs", INPUTS, "every number that went in: where from, from how many samples, how old", False),
    ),
)
