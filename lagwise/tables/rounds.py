"""The analysis layer's table about itself: how far its rounds have got."""

from lagwise.tables.schema import FLOAT, INT64, TEXT, TIMESTAMP, Column, Table, list_of

PROGRESS = list_of(
    cluster=TEXT, read_until=TIMESTAMP, finished_until=TIMESTAMP, hours_until=TIMESTAMP, observed_until=TIMESTAMP
)

TICKS = Table(
    "ticks",
    "analysis",
    "finished round of the analysis: its own health, and how far it has got",
    (
        Column("started_at", TIMESTAMP, "when the round began", nullable=False),
        Column("finished_at", TIMESTAMP, "when its results were written", nullable=False),
        Column("wall_seconds", FLOAT, "duration", nullable=False),
        Column("samples", INT64, "new samples that it processed", nullable=False),
        Column("group_partitions", INT64, "group-partitions that it analysed", nullable=False),
        Column(
            "progress",
            PROGRESS,
            "per cluster: newest `samples.written_at` it has read, the minute before which the minutes are final, the "
            "hour before which the hours are, and the one up to which `throughput` has been observed",
            nullable=False,
        ),
    ),
    clock="started_at",
)
