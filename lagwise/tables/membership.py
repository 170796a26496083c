"""The analysis layer's tables about who is in a group: its rebalances, and who reads what."""

import pyarrow as pa

from lagwise.tables.schema import TIMESTAMP, Column, Table

REBALANCE_STATS = Table(
    "rebalance_stats",
    "analysis",
    "group and hour in which it was rebalanced",
    (
        Column("cluster", pa.string(), "name of the cluster in the configuration", nullable=False),
        Column("group", pa.string(), "consumer group", nullable=False),
        Column("hour", TIMESTAMP, "start of the UTC hour", nullable=False),
        Column("rebalances", pa.int32(), "rebalances", nullable=False),
        Column("exact", pa.bool_(), "all were read from the offsets topic; from samples some may be missed", False),
        Column(
            "downtime_seconds", pa.float64(), "total duration of the rebalances, as far as known; null is not known"
        ),
        Column(
            "downtime_seconds_at_most",
            pa.float64(),
            "the same, with the time since the last commit on what changed hands where a duration is not known; time "
            "in which several were under way counts once",
        ),
        Column("partitions_moved", pa.int32(), "sum of the partitions that changed hands, as far as known"),
        Column("joined", pa.int32(), "members that joined", nullable=False),
        Column("left", pa.int32(), "members that went", nullable=False),
        Column("churning", pa.list_(pa.string()), "client ids (host) that went twice or more, the worst first", False),
        Column("is_storm", pa.bool_(), "many within a quarter of an hour, by the same clients", nullable=False),
        Column(
            "cause",
            pa.string(),
            "likeliest cause in a word; `continued` is reported in the next hour",
            nullable=False,
        ),
        Column("sentence", pa.string(), "the cause in a sentence, with its evidence", nullable=False),
        Column("remedy", pa.string(), "what would help, as far as the evidence supports it; null is nothing to do"),
        Column(
            "reread_records_at_most",
            pa.int64(),
            "records that had been read and not committed at those moments, so that they were read again: an upper "
            "bound from what was unread; null is not known, or not of all of them",
        ),
        Column("last_at", TIMESTAMP, "time of the last of them", nullable=False),
        Column("events", pa.int32(), "events that the row was made of", nullable=False),
    ),
    clock="hour",
    skipping=("hour",),
)

ALTERNATIVES = pa.list_(
    pa.struct(
        [
            pa.field("assignor", pa.string()),
            pa.field("busiest_share", pa.float64()),
            pa.field("skew_by_count", pa.float64()),
            pa.field("skew_by_rate", pa.float64()),
            pa.field("idle_members", pa.int32()),
            pa.field("partitions_moved", pa.int32()),
            pa.field("rebalances", pa.int32()),
        ]
    )
)

ASSIGNMENTS = Table(
    "assignments",
    "analysis",
    "group whose assignment is settled, now",
    (
        Column("cluster", pa.string(), "name of the cluster in the configuration", nullable=False),
        Column("group", pa.string(), "consumer group", nullable=False),
        Column("as_of", TIMESTAMP, "time of the sample that the row speaks of", nullable=False),
        Column("assignor", pa.string(), "partition assignor it runs"),
        Column("members", pa.int32(), "members", nullable=False),
        Column("idle_members", pa.int32(), "members that own no partition", nullable=False),
        Column("partitions", pa.int32(), "partitions of the topics it owns partitions of"),
        Column("partitions_without_owner", pa.int32(), "those of them that no member owns"),
        Column("skew_by_count", pa.float64(), "most partitions of a member over the mean of all members; 1 is even"),
        Column("skew_by_rate", pa.float64(), "produce rate of the busiest member over the mean; null is unknown"),
        Column(
            "busiest_member", pa.string(), "the member with most traffic: instance id, client id or client id (host)"
        ),
        Column("busiest_share", pa.float64(), "its share of the produce rate of all these partitions, 0 to 1"),
        Column("hottest_topic", pa.string(), "topic of the partition with most traffic"),
        Column("hottest_partition", pa.int32(), "that partition"),
        Column("hottest_share", pa.float64(), "its share of the traffic, 0 to 1"),
        Column("bound_share", pa.float64(), "no assignment to these members brings the busiest share below this"),
        Column("bound_cause", pa.string(), "why: hottest_partition, even_share or together (several on one member)"),
        Column("attainable_share", pa.float64(), "the busiest share of the best assignment that was found"),
        Column("useful_members", pa.int32(), "more members than these would not lower the busiest share"),
        Column("alternatives", ALTERNATIVES, "what each of Kafka's assignors would give these members", nullable=False),
        Column("sentences", pa.list_(pa.string()), "what is worth saying, worst first; empty if all is well", False),
    ),
)
