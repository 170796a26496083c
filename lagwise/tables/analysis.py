"""The analysis layer: what Spark made of the raw layer. Idempotent, and re-runnable from raw."""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum

import pyarrow as pa

from lagwise.domain.facts import FactField
from lagwise.domain.findings import Finding
from lagwise.domain.group_record import STORED_FACTS
from lagwise.tables.capacity import CAPACITY, OBSERVED_CAPACITY, PLANNING_TABLES, THROUGHPUT
from lagwise.tables.keys import OF_GROUP, OF_GROUP_PARTITION
from lagwise.tables.membership import ASSIGNMENTS, REBALANCE_STATS
from lagwise.tables.migrations_table import MIGRATIONS
from lagwise.tables.minutes import (
    DAYS,
    FIVE_MINUTES,
    HOURS,
    MINUTES,
    WATERMARK_FIVE_MINUTES,
    WATERMARK_MINUTES,
)
from lagwise.tables.quarantine import DAMAGED_FILES
from lagwise.tables.rounds import TICKS
from lagwise.tables.schema import BOOLEAN, FLOAT, INT32, INT64, TEXT, TIMESTAMP, Column, Table, list_of

PARTITION_STATUS = Table(
    "partition_status",
    "analysis",
    "group-partition, now",
    (
        *OF_GROUP_PARTITION,
        Column("as_of", TIMESTAMP, "time of the cluster's latest sample: the time the row describes", nullable=False),
        Column("status", TEXT, "status word", nullable=False),
        Column("reason", TEXT, "why it is unknown; null for every other status"),
        Column("since", TIMESTAMP, "since when the status has been shown", nullable=False),
        Column("reasons", pa.list_(TEXT), "every status that holds, worst first", nullable=False),
        Column("log_start", INT64, "log start offset"),
        Column("committed", INT64, "committed offset"),
        Column("high_watermark", INT64, "high watermark"),
        Column("last_stable", INT64, "last stable offset"),
        Column("lag", INT64, "unread records that still exist; null is unknown"),
        Column("lag_seconds", FLOAT, "age of the oldest unread record; 0 when nothing is unread"),
        Column("lag_seconds_is_lower_bound", BOOLEAN, "the age reaches beyond the watermark history"),
        Column("produce_rate_per_second", FLOAT, "records written per second, trend window"),
        Column("consume_rate_per_second", FLOAT, "records committed per second, trend window; 0 without a reader"),
        Column("commits_seen", INT32, "how often the committed offset was seen to move within an hour"),
        Column("lag_slope_per_second", FLOAT, "growth of the lag, records per second"),
        Column("lag_slope_low_per_second", FLOAT, "lower end of its confidence interval"),
        Column("lag_slope_high_per_second", FLOAT, "upper end of its confidence interval"),
        Column("seconds_to_catch_up", FLOAT, "time until the lag is gone; only while catching up"),
        Column("seconds_to_catch_up_low", FLOAT, "lower end of its confidence interval"),
        Column("seconds_to_catch_up_high", FLOAT, "upper end of its confidence interval; null is never"),
        Column(
            "seconds_to_breach",
            FLOAT,
            "time until the oldest unread record is older than the group's objective, at today's rates; null where it "
            "is, or where it will not happen",
        ),
        Column("seconds_to_breach_low", FLOAT, "lower end of its confidence interval"),
        Column("seconds_to_breach_high", FLOAT, "upper end of its confidence interval; null is never"),
        Column(
            "seconds_to_loss",
            FLOAT,
            "time until unread records are deleted, at the earliest, or offsets expire; null is never",
        ),
        Column(
            "seconds_to_loss_is_upper_bound",
            BOOLEAN,
            "the loss may come at any moment before: the oldest unread record is older than the history, by an unknown "
            "time",
        ),
        Column(
            "seconds_to_loss_at_latest",
            FLOAT,
            "time until unread records are deleted by age at the latest: whole segments are, of up to segment.ms of "
            "records each; null is not known, or never",
        ),
        Column("loss_cause", TEXT, "how that loss would come: deletion (of records) or expiry (of offsets)"),
        Column("records_lost", INT64, "records deleted before they were read; 0 is none", nullable=False),
        Column(
            "rewound_records",
            INT64,
            "records by which the committed offset went back within an hour; null where it is past where it was",
        ),
        Column("rewound_at", TIMESTAMP, "when it last did, of a group that is not past where it was"),
        Column("lost_at_least", INT64, "records deleted unread within a day, or missing now, at least; 0 is none"),
        Column(
            "lost_at_most",
            INT64,
            "the same at most: what the log start passed between commits counts, too, in hours that show a loss",
        ),
        Column("first_lost_at", TIMESTAMP, "time of the first sample within a day that shows a loss; null is none"),
        Column("last_lost_at", TIMESTAMP, "time of the last such sample"),
        Column(
            "transaction_seconds",
            FLOAT,
            "for how long a transaction has been open, at least, that hangs and holds records back; null is none",
        ),
        Column("committed_since", TIMESTAMP, "since when the committed offset has had its value, at the latest"),
        Column(
            "commit_cadence_seconds",
            FLOAT,
            "seconds between commits while there was something to commit, or the longest pause that is usual",
        ),
        Column("owner", TEXT, "member id the partition is assigned to"),
        Column("client_id", TEXT, "client.id of the owner"),
        Column("host", TEXT, "address of the owner"),
        Column("leader", INT32, "node id of the partition's leader"),
        Column("samples", INT32, "samples the verdict rests on"),
        Column(
            "jump_records",
            INT64,
            "records by which the log start jumps when a segment is deleted; null where it was never seen to, "
            "and where the size of a log is not limited",
        ),
        Column("jump_high_watermark", INT64, "high watermark before its last jump"),
    ),
)

STATUS_COUNTS = list_of(status=TEXT, partitions=INT32)

FINDINGS = list_of(kind=TEXT, sentence=TEXT, remedy=TEXT)

#: The order that the columns of `group_status` have had from the beginning; a new one comes after them.
_FIRST_COLUMNS = """
    cluster group as_of status reason since sentence state type members idle_members topics partitions
    partitions_by_status lag lag_seconds lag_seconds_is_lower_bound produce_rate_per_second consume_rate_per_second
    commits_seen seconds_to_catch_up seconds_to_catch_up_low seconds_to_catch_up_high seconds_to_breach
    seconds_to_breach_low seconds_to_breach_high seconds_to_loss seconds_to_loss_is_upper_bound
    seconds_to_loss_at_latest loss_cause records_lost lost_at_least lost_at_most first_lost_at last_lost_at
    transaction_seconds worst_topic worst_partition cause findings cause_name stands_still
""".split()  # noqa: SIM905 (forty lines less)


def _arrow(field: FactField) -> pa.DataType:
    """Amounts of records are as large as offsets, other counts are small."""
    if field.type is int:
        return INT64 if field.fact.unit == "records" else INT32
    if isinstance(field.type, type) and issubclass(field.type, StrEnum):
        return TEXT
    return _ARROW[field.type]


_ARROW = {
    bool: BOOLEAN,
    float: FLOAT,
    str: TEXT,
    datetime: TIMESTAMP,
    tuple[str, ...]: pa.list_(TEXT),
    tuple[Finding, ...]: FINDINGS,
    Mapping[str, int]: STATUS_COUNTS,
}


def _column(field: FactField) -> Column:
    is_nullable = field.is_optional and not field.fact.is_required
    return Column(field.column, _arrow(field), field.fact.meaning, nullable=is_nullable)


_GROUP_COLUMNS = {field.column: _column(field) for field in STORED_FACTS}

GROUP_STATUS = Table(
    "group_status",
    "analysis",
    "group, now",
    tuple(_GROUP_COLUMNS[name] for name in dict.fromkeys((*_FIRST_COLUMNS, *_GROUP_COLUMNS))),
)

_HISTORY_COLUMNS = """
    cluster group as_of status lag lag_seconds lag_seconds_is_lower_bound produce_rate_per_second
    consume_rate_per_second
""".split()  # noqa: SIM905 (eight lines less)
GROUP_HISTORY = Table(
    "group_history",
    "analysis",
    "group and tick: the line in the charts",
    tuple(_GROUP_COLUMNS[name] for name in _HISTORY_COLUMNS),
    clock="as_of",
)

STATUS_CHANGES = Table(
    "status_changes",
    "analysis",
    "change of status",
    (
        *OF_GROUP,
        Column("topic", TEXT, "topic; null for a change of the whole group"),
        Column("partition", INT32, "partition; null for a change of the whole group"),
        Column("at", TIMESTAMP, "time of the sample that showed it", nullable=False),
        Column("before", TEXT, "status before; null when it was seen for the first time"),
        Column("after", TEXT, "status after", nullable=False),
        Column("reason", TEXT, "why it is unknown; null for every other status"),
    ),
    clock="at",
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
    MIGRATIONS,
)
