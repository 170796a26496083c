"""What capacity planning looks at: what each topic was sent, hour by hour for more than a year, and what it will be."""

import pyarrow as pa

from lagwise.tables.schema import TIMESTAMP, Column, Table

_TOPIC = (
    Column("cluster", pa.string(), "name of the cluster in the configuration", nullable=False),
    Column("topic", pa.string(), "topic", nullable=False),
)

RATE_COUNTS = pa.list_(pa.struct([pa.field("bucket", pa.int32()), pa.field("minutes", pa.int32())]))

PARTITION_RECORDS = pa.list_(pa.struct([pa.field("partition", pa.int32()), pa.field("records", pa.int64())]))

TOPIC_HOURS = Table(
    "topic_hours",
    "analysis",
    "topic and hour: the records produced, and how the minutes of the hour differed",
    (
        *_TOPIC,
        Column("hour", TIMESTAMP, "start of the hour", nullable=False),
        Column("partitions", pa.int32(), "partitions that were sampled in the hour", nullable=False),
        Column("minutes", pa.int32(), "minutes in which every one of them was sampled: only these count", False),
        Column("records", pa.int64(), "records written in these minutes", nullable=False),
        Column("seconds", pa.float64(), "time from sample to sample that these minutes cover", nullable=False),
        Column("max_rate_per_second", pa.float64(), "highest rate of any of these minutes", nullable=False),
        Column("max_at", TIMESTAMP, "that minute", nullable=False),
        Column("zero_minutes", pa.int32(), "of these minutes, those in which nothing was written", nullable=False),
        Column(
            "rates",
            RATE_COUNTS,
            "the others by rate: minutes whose rate lies in (g^(bucket-1), g^bucket] per second, g = 1.02/0.98: a "
            "sketch of relative error 2 %, which is merged by adding",
            nullable=False,
        ),
        Column("partition_records", PARTITION_RECORDS, "the records by partition, those with none as well", False),
    ),
    clock="hour",
    skipping=("hour",),
)

FORECASTS = Table(
    "forecasts",
    "analysis",
    "topic and hour ahead (day ahead beyond two weeks), as forecast at `made_at`: the newest counts",
    (
        *_TOPIC,
        Column("made_at", TIMESTAMP, "end of the last hour that it knew", nullable=False),
        Column("at", TIMESTAMP, "start of the hour or day", nullable=False),
        Column("hours", pa.int32(), "1 is an hour, 24 a day", nullable=False),
        Column("produce_rate_per_second", pa.float64(), "mean rate of the hour, or of the day's mean hour", False),
        Column("low_per_second", pa.float64(), "lower end of the 90 % interval of an hour's mean rate", False),
        Column("high_per_second", pa.float64(), "upper end of it", nullable=False),
        Column("busiest_per_second", pa.float64(), "mean rate of the busiest hour, which is the hour itself", False),
        Column("busiest_high_per_second", pa.float64(), "upper end of its 90 % interval", nullable=False),
        Column("model", pa.string(), "model that forecast it: seasonal-naive, seasonal-mean or theta", nullable=False),
        Column("mase", pa.float64(), "its error on the held-out tail of the topic's history; null is not comparable"),
        Column("baseline_mase", pa.float64(), "the seasonal-naive baseline's error there"),
    ),
    clock="made_at",
    skipping=("made_at",),
)

DEMAND = Table(
    "demand",
    "analysis",
    "topic, now: the rates it has seen, and the peak to plan for",
    (
        *_TOPIC,
        Column("as_of", TIMESTAMP, "end of the last hour that the row knows", nullable=False),
        Column("first_hour", TIMESTAMP, "first hour of its history", nullable=False),
        Column("history_hours", pa.int32(), "hours with samples since then", nullable=False),
        Column("minutes", pa.int64(), "minutes with samples: what the rates rest on", nullable=False),
        Column("peak_per_second", pa.float64(), "highest minute rate of the history", nullable=False),
        Column("peak_at", TIMESTAMP, "when that was", nullable=False),
        Column("p50_per_second", pa.float64(), "half of the minutes had at most this rate; to within 2 %", False),
        Column("p95_per_second", pa.float64(), "95 of 100 minutes had at most this rate; to within 2 %", False),
        Column("p99_per_second", pa.float64(), "99 of 100 minutes had at most this rate; to within 2 %", False),
        Column("growth_per_month", pa.float64(), "growth in 30 days as a share of the mean rate; null below 4 weeks"),
        Column("growth_low_per_month", pa.float64(), "lower end of its 90 % interval"),
        Column("growth_high_per_month", pa.float64(), "upper end of its 90 % interval"),
        Column("horizon_days", pa.int32(), "how far ahead is planned", nullable=False),
        Column("forecast_peak_per_second", pa.float64(), "highest minute rate to expect in the last week before then"),
        Column("forecast_peak_low_per_second", pa.float64(), "lower end of its 90 % interval"),
        Column("forecast_peak_high_per_second", pa.float64(), "upper end of its 90 % interval"),
        Column("tested_days", pa.float64(), "so far ahead the forecast was compared with the topic's own history"),
        Column("model", pa.string(), "model that was best there: seasonal-naive, seasonal-mean or theta"),
        Column("mase", pa.float64(), "its mean error there, in units of the change from week to week"),
        Column("baseline_mase", pa.float64(), "the seasonal-naive baseline's error there"),
        Column("reason", pa.string(), "why there is no forecast at the horizon; null where there is one"),
    ),
)

PLANNING_TABLES = (TOPIC_HOURS, FORECASTS, DEMAND)
