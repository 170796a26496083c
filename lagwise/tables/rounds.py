"""The analysis layer's table about itself: how far its rounds have got."""

import pyarrow as pa

from lagwise.tables.schema import TIMESTAMP, Column, Table

PROGRESS = pa.list_(
    pa.struct(
        [
            pa.field("cluster", pa.string()),
            pa.field("read_until", TIMESTAMP),
            pa.field("finished_until", TIMESTAMP),
            pa.field("hours_until", TIMESTAMP),
            pa.field("observed_until", TIMESTAMP),
        ]
    )
)

TICKS = Table(
    "ticks",
    "analysis",
    "finished round of the analysis: its own health, and how far it has got",
    (
        Column("started_at", TIMESTAMP, "when the round began", nullable=False),
        Column("finished_at", TIMESTAMP, "when its results were written", nullable=False),
        Column("wall_seconds", pa.float64(), "duration", nullable=False),
        Column("samples", pa.int64(), "new samples that it processed", nullable=False),
        Column("group_partitions", pa.int64(), "group-partitions that it analysed", nullable=False),
        Column(
            "progress",
            PROGRESS,
            "per cluster: newest `samples.written_at` it has read, the minute before which the minutes are final, the "
            "hour before which the hours are, and the one up to which `throughput` has been observed",
            nullable=False,
        ),
    ),
    clock="started_at",
    skipping=("started_at",),
)
