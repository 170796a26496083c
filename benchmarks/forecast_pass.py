"""What it costs to forecast after a round: passes over a lake of many topics and a year of hours, inside Spark."""

import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.bulk import Bulk
from benchmarks.common import options_parser
from benchmarks.forecast import made, peaks_of
from benchmarks.lake_columns import rows_of
from benchmarks.synthetic_lake import make_lake
from lagwise.config import SparkSettings
from lagwise.config.model import ForecastSettings
from lagwise.domain.capacity.demand import MINUTES_OF_HOUR
from lagwise.domain.capacity.topic_hours import rounded_up
from lagwise.tables.capacity import MINUTE_RATES, PARTITION_RECORDS, TOPIC_HOURS
from lagwise.tables.schema import TIMESTAMP
from lagwise.tables.store import Lake
from lagwise_spark.jobs.demand import forecast_topics
from lagwise_spark.start import start_spark

#: So many different series; topics take turns.
SERIES = 20


def write_history(lake: Lake, topics: int, days: int, until: datetime) -> None:
    """A file a day, sorted by topic, as maintenance leaves them."""
    rates = np.stack([made("daily, weekly, growing", days, seed) for seed in range(SERIES)])
    peaks = np.stack([peaks_of(series, seed) for seed, series in enumerate(rates)])
    which = np.arange(topics) % SERIES
    names = pa.array([f"topic-{number:05d}" for number in range(topics)])
    bulk = Bulk(lake)
    rows = topics * 24
    ends = pa.array(np.arange(rows + 1, dtype=np.int32) * MINUTES_OF_HOUR)
    noise = np.exp(np.random.default_rng(1).normal(0, 0.2, (rows, MINUTES_OF_HOUR)))
    first = until - timedelta(days=days)
    for day in range(days):
        of_day = slice(day * 24, day * 24 + 24)
        minute_rates = rounded_up(rates[which, of_day].reshape(-1, 1) * noise)
        hours = pa.array([first + timedelta(days=day, hours=hour) for hour in range(24)] * topics, TIMESTAMP)
        columns = {
            "cluster": pa.array(["bench"] * rows),
            "topic": names.take(pa.array(np.repeat(np.arange(topics), 24))),
            "hour": hours,
            "partitions": np.full(rows, 3, np.int32),
            "minutes": np.full(rows, 60, np.int32),
            "records": (rates[which, of_day] * 3600).astype(np.int64).reshape(-1),
            "seconds": np.full(rows, 3600.0),
            "max_rate_per_second": peaks[which, of_day].reshape(-1),
            "max_at": hours,
            "minute_rates_per_second": pa.ListArray.from_arrays(
                ends, minute_rates.astype(np.float32).ravel(), type=MINUTE_RATES
            ),
            "partition_records": pa.array([[]] * rows, PARTITION_RECORDS),
        }
        bulk.append(TOPIC_HOURS, rows_of(TOPIC_HOURS, rows, columns), by_topic=True)
    bulk.commit()


def main() -> int:
    options = options_parser(__doc__, "a smoke test: few and short series").parse_args()
    topics, days = (200, 60) if options.small else (2_000, 365)
    with tempfile.TemporaryDirectory(prefix="lagwise-bench-") as folder:
        lake = make_lake(folder)
        write_history(lake, topics, days, datetime(2026, 3, 1, tzinfo=UTC))
        written = sum(Path(file).stat().st_size for file in lake.files(TOPIC_HOURS))
        print(f"an hour of a topic takes {written / (topics * days * 24):.0f} bytes")
        context = start_spark(SparkSettings())
        settings = ForecastSettings()
        try:
            for number in range(4):
                began = time.perf_counter()
                done = forecast_topics(context, lake, settings)
                seconds = time.perf_counter() - began
                print(f"pass {number + 1}: {done} of {topics} topics with {days} days of hours in {seconds:.1f} s")
            nothing = ForecastSettings(interval_hours=10_000, max_topics_per_round=topics)
            forecast_topics(context, lake, nothing)
            began = time.perf_counter()
            assert forecast_topics(context, lake, nothing) == 0
            print(f"where none is due: {time.perf_counter() - began:.3f} s")
        finally:
            context.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
