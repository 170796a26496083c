"""The minutes of the analysis layer, and what they are merged into."""

from dataclasses import replace

from lagwise.tables.keys import OF_GROUP_PARTITION, OF_TOPIC_PARTITION
from lagwise.tables.schema import FLOAT, INT32, INT64, TIMESTAMP, Column, Table, list_of

MINUTES = Table(
    "minutes",
    "analysis",
    "group-partition and minute: sufficient statistics, so that any window is a merge of minutes",
    (
        *OF_GROUP_PARTITION,
        Column("minute", TIMESTAMP, "start of the minute", nullable=False),
        Column("samples", INT32, "samples in the minute whose lag is known", nullable=False),
        Column("first_at", TIMESTAMP, "time of the first sample"),
        Column("last_at", TIMESTAMP, "time of the last sample"),
        Column("first_committed", INT64, "committed offset at the first sample"),
        Column("last_committed", INT64, "committed offset at the last sample"),
        Column("last_lag", INT64, "lag at the last sample, records"),
        Column("max_lag", INT64, "largest lag, records"),
        Column("sum_t", FLOAT, "sum of t, seconds since the start of the minute"),
        Column("sum_tt", FLOAT, "sum of t²"),
        Column("sum_lag", FLOAT, "sum of lag"),
        Column("sum_lag_lag", FLOAT, "sum of lag²"),
        Column("sum_t_lag", FLOAT, "sum of t·lag"),
        Column("steps", INT32, "successive sample pairs that end in this minute (the first may begin earlier)"),
        Column("sum_dt_dt", FLOAT, "sum of (Δt)² over the steps"),
        Column("sum_dt_dlag", FLOAT, "sum of Δt·Δlag over the steps"),
        Column("sum_dlag_dlag", FLOAT, "sum of (Δlag)² over the steps"),
        Column("moves", INT32, "steps in which the committed offset changed"),
        Column(
            "last_moved_at", TIMESTAMP, "time of the last sample whose committed offset differs from the previous one"
        ),
        Column("backlog_seconds", FLOAT, "total length of the steps that began with lag"),
        Column("last_drained_at", TIMESTAMP, "time of the last sample without unread records"),
        Column("first_progress_at", TIMESTAMP, "time of the first sample that shows a new commit or no unread records"),
        Column("rewound_from", INT64, "highest committed offset that was rewound"),
        Column("rewound_records", INT64, "records rewound in total; null is none"),
        Column("rewound_at", TIMESTAMP, "time of the last sample that shows a rewind"),
        Column("lost_at_least", INT64, "records deleted unread: beyond the commit read before; null is none"),
        Column("lost_at_most", INT64, "those beyond the commit of the sample before; null is none"),
        Column("first_lost_at", TIMESTAMP, "time of the first sample that shows records deleted unread"),
        Column("last_lost_at", TIMESTAMP, "time of the last such sample"),
    ),
    clock="minute",
)

WATERMARK_POINT = list_of(at=TIMESTAMP, high_watermark=INT64)

WATERMARK_MINUTES = Table(
    "watermark_minutes",
    "analysis",
    "topic-partition and minute: when the log reached which offset",
    (
        *OF_TOPIC_PARTITION,
        Column("minute", TIMESTAMP, "start of the minute", nullable=False),
        Column("first_log_start", INT64, "log start offset at the first sample"),
        Column("last_log_start", INT64, "log start offset at the last sample"),
        Column("first_high_watermark", INT64, "high watermark at the first sample"),
        Column("last_high_watermark", INT64, "high watermark at the last sample"),
        Column("first_at", TIMESTAMP, "time of the first sample"),
        Column("last_at", TIMESTAMP, "time of the last sample"),
        Column("reset_at", TIMESTAMP, "time of the last sample at which the log had gone back, or was another topic's"),
        Column("recreated_at", TIMESTAMP, "time of the last sample at which the topic had another id than before"),
        Column("points", WATERMARK_POINT, "the samples in order of time, since the last reset"),
    ),
    clock="minute",
)


def _merged(table: Table, name: str, bucket: str, rows: str) -> Table:
    columns = tuple(
        replace(c, meaning=c.meaning.replace("the minute", bucket).replace("this minute", bucket))
        for c in table.columns
    )
    return replace(table, name=name, rows=rows, columns=columns)


FIVE_MINUTES = _merged(
    MINUTES,
    "five_minutes",
    "the five minutes",
    "group-partition and five minutes: five of `minutes` merged, for older history",
)

WATERMARK_FIVE_MINUTES = _merged(
    WATERMARK_MINUTES,
    "watermark_five_minutes",
    "the five minutes",
    "topic-partition and five minutes: five of `watermark_minutes` merged, for older history",
)

_HOURS = _merged(MINUTES, "hours", "the hour", "group-partition and hour: twelve of `five_minutes` merged")

HOURS = replace(
    _HOURS,
    columns=(
        *_HOURS.columns,
        Column(
            "longest_pause_seconds",
            FLOAT,
            "longest time without progress between samples with some (null below five minutes)",
        ),
        Column("long_pauses", INT32, "how many such times lasted five minutes or longer", False),
    ),
)

DAYS = Table(
    "days",
    "analysis",
    "group-partition, now: its last 23 whole hours, merged from `hours`",
    (
        *OF_GROUP_PARTITION,
        Column("until", TIMESTAMP, "end of the last of these hours; t counts from the start of the first", False),
        *[c for c in MINUTES.columns if c.name in ("samples", "first_at", "last_at")],
        *[c for c in MINUTES.columns if c.name in ("first_committed", "last_committed")],
        *[c for c in MINUTES.columns if c.name.startswith("sum_") or c.name == "steps"],
        *[c for c in MINUTES.columns if c.name in ("moves", "backlog_seconds")],
        *[c for c in MINUTES.columns if "lost" in c.name],
        Column("usual_pause_seconds", FLOAT, "longest pause in enough of these hours; null is none"),
        Column("usual_pause_at_least", FLOAT, "the same in seconds if the time since then holds none"),
        Column("usual_pause_at_most", FLOAT, "the same in seconds if the time since then holds a longer one"),
        Column("long_pauses", INT32, "pauses of five minutes or longer in these hours", False),
        Column("last_progress_at", TIMESTAMP, "when the group last got on in these hours; null is never"),
    ),
)
