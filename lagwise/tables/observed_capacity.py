"""The analysis layer's tables about what consumers were seen to be able to do."""

import pyarrow as pa

from lagwise.tables.schema import TIMESTAMP, Column, Table

BLOCKS = pa.list_(
    pa.struct(
        [
            pa.field("start", TIMESTAMP),
            pa.field("end", TIMESTAMP),
            pa.field("records", pa.int64()),
            pa.field("members", pa.int32()),
        ]
    )
)

_READER = (
    Column("cluster", pa.string(), "name of the cluster in the configuration", nullable=False),
    Column("group", pa.string(), "consumer group", nullable=False),
    Column("topic", pa.string(), "topic", nullable=False),
    Column("member", pa.string(), "client id (host) of one member; null is the whole group"),
)

THROUGHPUT = Table(
    "throughput",
    "analysis",
    "group, topic and hour, and per member where it had a backlog: what was read, and for how long under a backlog",
    (
        *_READER,
        Column("hour", TIMESTAMP, "start of the UTC hour", nullable=False),
        Column("members", pa.int32(), "members that owned partitions of it at the end of the hour; null is not known"),
        Column("records", pa.int64(), "records committed in the hour; null for a member"),
        Column("share_of_group", pa.float64(), "the topic's part in what the group committed, 0 to 1"),
        Column("best_at", TIMESTAMP, "start of the five minutes in which most was committed; null for a member"),
        Column("best_rate_per_second", pa.float64(), "records per second then, at least; null for a member"),
        Column(
            "blocks",
            BLOCKS,
            "times of whole commit cadences throughout which every partition being read had a backlog: records "
            "committed, and by how many members",
            nullable=False,
        ),
    ),
    clock="hour",
    skipping=("hour",),
)

OBSERVED_CAPACITY = Table(
    "observed_capacity",
    "analysis",
    "group and topic, and per member that ever had a backlog, now: what it was seen to be able to do",
    (
        *_READER,
        Column("as_of", TIMESTAMP, "time of the cluster's latest sample when this was estimated", nullable=False),
        Column("rate_per_second", pa.float64(), "records per second it can do; null is undecided"),
        Column("rate_low_per_second", pa.float64(), "lower end of its 95 % confidence interval"),
        Column("rate_high_per_second", pa.float64(), "upper end of its 95 % confidence interval"),
        Column(
            "reason",
            pa.string(),
            "why it is undecided: never_saturated, too_little, imprecise, unsteady, exceeded or shared; else null",
        ),
        Column("sentence", pa.string(), "the estimate with its evidence, or why there is none", nullable=False),
        Column("load_test", pa.string(), "the smallest load test that would decide it; null where none is needed"),
        Column("saturated_seconds", pa.float64(), "time with a backlog that it rests on", nullable=False),
        Column("blocks", pa.int32(), "blocks of whole cadences that this time was cut into: the sample size", False),
        Column("episodes", pa.int32(), "on how many occasions", nullable=False),
        Column("at_least_per_second", pa.float64(), "lower bound: the most it did in five minutes, backlog or not"),
        Column("members", pa.int32(), "members that it is for: today's; null is not known"),
        Column("is_scaled", pa.bool_(), "observed with other numbers of members and taken in proportion", False),
        Column(
            "seconds_per_message", pa.float64(), "T1 + T2 of one thread, a member taken as one thread; null is unknown"
        ),
        Column("measured_from", TIMESTAMP, "start of the first block"),
        Column("measured_until", TIMESTAMP, "end of the last block"),
        Column("changed_at", TIMESTAMP, "first block since it changed; null where it did not"),
        Column("changed_from_per_second", pa.float64(), "what it was before that"),
        Column("missing_seconds", pa.float64(), "time with a backlog that would probably decide it; 0 where it is"),
    ),
)
