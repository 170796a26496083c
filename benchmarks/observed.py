"""What looking for capacity under saturation costs, once an hour: an hour of a large cluster, a fifth of whose readers
are behind."""

import tempfile
import time
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta

import psutil

from benchmarks.common import cpu_seconds, options_parser
from benchmarks.curves import END, GROUPS, INTERVAL_SECONDS
from benchmarks.history_lake import History
from benchmarks.synthetic_lake import Shape, make_lake
from lagwise.config import RetentionSettings, SparkSettings
from lagwise_spark.jobs.observed import observe
from lagwise_spark.jobs.progress import read_news, read_progress
from lagwise_spark.start import start_spark


def _cpu_seconds() -> float:
    """CPU time of this process, the JVM and Spark's workers."""
    total, me = 0.0, psutil.Process()
    for process in (me, *me.children(recursive=True)):
        with suppress(psutil.Error):  # it ended between being listed and being asked
            total += cpu_seconds(process)
    return total


def measure(pairs: int, rounds: int) -> list[str]:
    """Wall and CPU seconds for one hour, as often as asked."""
    with tempfile.TemporaryDirectory(prefix="lagwise-bench-") as folder:
        lake = make_lake(f"{folder}/lake")
        samples = round(3600 * 1.25 / INTERVAL_SECONDS)
        start = END - timedelta(seconds=INTERVAL_SECONDS * samples)
        History(lake, Shape(pairs // GROUPS, GROUPS, 0), start, samples, INTERVAL_SECONDS).write(RetentionSettings())
        context = start_spark(SparkSettings())
        try:
            [news] = read_news(lake, read_progress(lake))
            due = replace(news, hours_from=END, observed_from=END - timedelta(hours=1))
            took = []
            for _ in range(rounds):
                began, cpu = time.monotonic(), _cpu_seconds()
                assert observe(context, lake, [due]) == [replace(due, observed_from=END)]
                took.append(f"{time.monotonic() - began:.1f} s ({_cpu_seconds() - cpu:.1f} s of CPU)")
            return took
        finally:
            context.stop()


def main() -> None:
    parser = options_parser(__doc__, "a smoke test: 1,000 group-partitions")
    parser.add_argument("--pairs", type=int, help="one number of group-partitions (default: 10,000 and 100,000)")
    parser.add_argument("--rounds", type=int, default=3, help="how often (default 3)")
    options = parser.parse_args()
    for pairs in [options.pairs] if options.pairs else [1_000] if options.small else [10_000, 100_000]:
        took = measure(pairs, 1 if options.small else options.rounds)
        print(f"{pairs:,} group-partitions, an hour: {', '.join(took)}", flush=True)


if __name__ == "__main__":
    main()
