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
    "group-topic, now",
    (
        Column("cluster", pa.string(), "name of the cluster in the configuration", nullable=False),
        Column("group", pa.string(), "consumer group", nullable=False),
        Column("topic", pa.string(), "topic", nullable=False),
        Column("as_of", TIMESTAMP, "when this was worked out", nullable=False),
        Column("verdict", pa.string(), "enough, tight, short, oversized or undecided", nullable=False),
        Column("sentence", pa.string(), "why, in one or two sentences with numbers", nullable=False),
        Column("enough_until", TIMESTAMP, "when what is enough now will not be any more; null is not in sight"),
        Column("partitions", pa.int32(), "partitions of the topic", nullable=False),
        Column("members", pa.int32(), "members that own any of them", nullable=False),
        Column("hottest_share", pa.float64(), "share of the traffic in the hottest partition, 0 … 1"),
        Column("produce_rate_per_second", pa.float64(), "records written per second, now"),
        Column("peak_rate_per_second", pa.float64(), "highest minute rate in the history"),
        Column(
            "forecast_peak_rate_per_second", pa.float64(), "highest minute rate at the horizon; null is no forecast"
        ),
        Column("forecast_peak_high_per_second", pa.float64(), "upper end of its 90 % interval"),
        Column("horizon_days", pa.int32(), "how far ahead the forecast looks"),
        Column("member_rate_per_second", pa.float64(), "what one member can do; null is not known"),
        Column("capacity_per_second", pa.float64(), "what its members can do together with this skew; null: not known"),
        Column("capacity_low_per_second", pa.float64(), "lower end of the interval, or what it has been seen to do"),
        Column("capacity_high_per_second", pa.float64(), "upper end of the interval; null where there is only a bound"),
        Column("capacity_source", pa.string(), "probe, saturation or none", nullable=False),
        Column("t1_seconds", pa.float64(), "waiting per message (probe)"),
        Column("t2_seconds", pa.float64(), "CPU time per message (probe)"),
        Column("cores", pa.float64(), "cores of a node (probe or settings)"),
        Column("threads_per_node", pa.int32(), "threads at work on a node (probe)"),
        Column("advised_nodes", pa.int32(), "nodes, spare ones included; null where nothing can be advised"),
        Column("advised_threads_per_node", pa.int32(), "threads on each"),
        Column("advised_partitions", pa.int32(), "partitions of the topic"),
        Column("binds", pa.string(), "what binds: cpu, waiting, partitions, skew, ordering or demand"),
        Column("change", pa.string(), "the cheapest change that helps, in a sentence; null where none is needed"),
        Column("confidence", pa.string(), "high, medium, low or none: by the sources and how much they rest on", False),
        Column("inputs", INPUTS, "every number that went in: where from, from how many samples, how old", False),
    ),
)
