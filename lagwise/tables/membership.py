"""The analysis layer's tables about who is in a group: its rebalances, and who reads what."""

import pyarrow as pa

from lagwise.tables.keys import OF_GROUP
from lagwise.tables.schema import BOOLEAN, FLOAT, INT32, INT64, TEXT, TIMESTAMP, Column, Table, list_of

REBALANCE_STATS = Table(
    "rebalance_stats",
    "analysis",
    "group and hour in which it was rebalanced",
    (
        *OF_GROUP,
        Column("hour", TIMESTAMP, "start of the UTC hour", nullable=False),
        Column("rebalances", INT32, "rebalances", nullable=False),
        Column("exact", BOOLEAN, "all were read from the offsets topic; from samples some may be missed", False),
        Column(
            "downtime_seconds",
            FLOAT,
            "how much of the hour rebalances took, as far as known, also those that end in the next hour; null is not "
            "known",
        ),
        Column(
            "downtime_seconds_at_most",
            FLOAT,
            "the same, with the time since the last commit on what changed hands where a duration is not known; time "
            "in which several were under way counts once",
        ),
        Column("partitions_moved", INT32, "sum of the partitions that changed hands, as far as known"),
        Column("joined", INT32, "members that joined", nullable=False),
        Column("left", INT32, "members that went", nullable=False),
        Column("churning", pa.list_(TEXT), "client ids (host) that went twice or more, the worst first", False),
        Column("is_storm", BOOLEAN, "many within a quarter of an hour, by the same clients", nullable=False),
        Column("cause", TEXT, "likeliest cause in a word; `continued` is reported in the next hour", nullable=False),
        Column("sentence", TEXT, "the cause in a sentence, with its evidence", nullable=False),
        Column("remedy", TEXT, "what would help, as far as the evidence supports it; null is nothing to do"),
        Column(
            "reread_records_at_most",
            INT64,
            "records that had been read and not committed at those moments, so that they were read again: an upper "
            "bound from what was unread; null is not known, or not of all of them",
        ),
        Column("last_at", TIMESTAMP, "time of the last of them", nullable=False),
        Column("events", INT32, "events that the row was made of", nullable=False),
    ),
    clock="hour",
)

ALTERNATIVES = list_of(
    assignor=TEXT,
    busiest_share=FLOAT,
    skew_by_count=FLOAT,
    skew_by_rate=FLOAT,
    idle_members=INT32,
    partitions_moved=INT32,
    rebalances=INT32,
)

ASSIGNMENTS = Table(
    "assignments",
    "analysis",
    "group whose assignment is settled, now",
    (
        *OF_GROUP,
        Column("as_of", TIMESTAMP, "time of the sample that the row describes", nullable=False),
        Column("assignor", TEXT, "partition assignor it runs"),
        Column("members", INT32, "members", nullable=False),
        Column("idle_members", INT32, "members that own no partition", nullable=False),
        Column("partitions", INT32, "partitions of the topics it owns partitions of"),
        Column("partitions_without_owner", INT32, "those of them that no member owns"),
        Column("skew_by_count", FLOAT, "most partitions of a member over the mean of all members; 1 is even"),
        Column("skew_by_rate", FLOAT, "produce rate of the busiest member over the mean; null is unknown"),
        Column("busiest_member", TEXT, "the member with most traffic: instance id, client id or client id (host)"),
        Column("busiest_share", FLOAT, "its share of the produce rate of all these partitions, 0 to 1"),
        Column("hottest_topic", TEXT, "topic of the partition with most traffic"),
        Column("hottest_partition", INT32, "that partition"),
        Column("hottest_share", FLOAT, "its share of the traffic, 0 to 1"),
        Column("bound_share", FLOAT, "no assignment to these members brings the busiest share below this"),
        Column("bound_cause", TEXT, "why: hottest_partition, even_share or together (several on one member)"),
        Column("attainable_share", FLOAT, "the busiest share of the best assignment that was found"),
        Column("useful_members", INT32, "more members than these would not lower the busiest share"),
        Column("alternatives", ALTERNATIVES, "what each of Kafka's assignors would give these members", nullable=False),
        Column("sentences", pa.list_(TEXT), "what is worth saying, worst first; empty if all is well", nullable=False),
    ),
)
