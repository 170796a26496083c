"""How long one round of the analysis takes at scale, with an hour of history behind it.

Writes a lake of 210 groups, 101,000 group-partitions and 10,000 partitions sampled every 15 s for an hour, lets the
analysis catch up on it, and then measures rounds over one new sample each with Spark warm. As a baseline DuckDB
computes only the slopes of one hour straight from the raw samples, which is the least that a round
without minute buckets would have to do.
"""

import statistics
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psutil

from benchmarks.common import options_parser, print_figures
from benchmarks.curves import INTERVAL_SECONDS, analysed
from benchmarks.synthetic_lake import Shape, make_lake, write_samples, write_topics
from lagwise.config import Config, SparkSettings
from lagwise.tables.kept_rows import KeptRows
from lagwise.tables.minutes import FIVE_MINUTES, MINUTES, WATERMARK_MINUTES
from lagwise.tables.raw import COMMITS, WATERMARKS
from lagwise.tables.store import Lake
from lagwise_spark.jobs.tick import tick
from lagwise_spark.start import start_spark

_SLOPES = """
    select "group", topic, partition, regr_slope(w.high_watermark - c.committed, epoch(c.sampled_at))
    from commits c join watermarks w using (sample_id, topic, partition) group by all
"""


def slopes_from_raw(lake: Lake) -> float:
    """Seconds for one slope per group-partition over the raw hour, by DuckDB, written nowhere."""
    began = time.monotonic()
    lake.query(_SLOPES, over=[COMMITS, WATERMARKS])
    return time.monotonic() - began


def measure(shape: Shape, samples: int, rounds: int, warm_up: int) -> dict[str, object]:
    """Figures of the catch-up, of the rounds after the first ``warm_up`` ones, and of the baseline."""
    with tempfile.TemporaryDirectory(prefix="lagwise-bench-") as folder:
        lake = make_lake(str(Path(folder) / "lake"))
        lake.kept = KeptRows()  # as the analysis has it
        start = datetime.now(UTC).replace(microsecond=0) - timedelta(
            seconds=INTERVAL_SECONDS * (samples + warm_up + rounds)
        )
        write_topics(lake, shape, start)
        write_samples(lake, shape, start, samples, INTERVAL_SECONDS)
        config = Config(data=folder)
        began = time.monotonic()
        context = start_spark(SparkSettings())
        start_seconds = time.monotonic() - began
        try:
            first = tick(context, lake, config)
            costs = list(analysed(context, lake, config, shape, start, range(samples, samples + warm_up + rounds)))
            warm = costs[warm_up:]
            jvm_mebibytes = sum(p.memory_info().rss for p in psutil.Process().children()) / 2**20
            baseline = slopes_from_raw(lake)
        finally:
            context.stop()
        walls = [c.wall_seconds for c in warm]
        sizes = {
            table: sum(f.stat().st_size for f in (Path(folder) / "lake" / table).rglob("*.parquet"))
            for table in (COMMITS.path, WATERMARKS.path, MINUTES.path, WATERMARK_MINUTES.path, FIVE_MINUTES.path)
        }
    assert first is not None
    return {
        "group_partitions": shape.pairs,
        "groups": shape.groups,
        "partitions": shape.partitions,
        "history_minutes": samples * INTERVAL_SECONDS / 60,
        "spark_start_seconds": round(start_seconds, 1),
        "catch_up_seconds": first.wall_seconds,
        "first_round_seconds": costs[0].wall_seconds,
        "tick_seconds": [round(seconds, 1) for seconds in walls],
        "tick_seconds_median": round(statistics.median(walls), 1),
        "tick_seconds_max": round(max(walls), 1),
        "tick_cpu_seconds_median": round(statistics.median(c.cpu_seconds for c in warm), 1),
        "jvm_mebibytes": round(jvm_mebibytes),
        "slopes_from_raw_seconds": round(baseline, 1),
        "ratio_to_slopes_from_raw": round(statistics.median(walls) / baseline, 2),
        "megabytes": {table: round(size / 1e6, 1) for table, size in sizes.items()},
    }


def main() -> None:
    parser = options_parser(__doc__, "a smoke test: 250 group-partitions, 15 minutes", has_json=True)
    parser.add_argument("--rounds", type=int, default=20, help="warm rounds to measure (default 20: five minutes)")
    parser.add_argument("--warm-up", type=int, default=10, help="rounds before these (default 10)")
    options = parser.parse_args()
    shape = Shape(100, 2, 10) if options.small else Shape(10_000, 10, 200)
    figures = measure(shape, 60 if options.small else 240, options.rounds, options.warm_up)
    print_figures(figures, as_json=options.json)


if __name__ == "__main__":
    main()
