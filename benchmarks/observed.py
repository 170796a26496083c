"""What looking for capacity under saturation costs, once an hour: an hour of a large cluster, a fifth of whose readers
are behind."""

import tempfile
import time
from dataclasses import replace
from datetime import timedelta

from benchmarks.common import options_parser
from benchmarks.curves import END, GROUPS, INTERVAL_SECONDS
from benchmarks.history_lake import History
from benchmarks.synthetic_lake import Shape, make_lake
from lagwise.config import RetentionSettings, SparkSettings
from lagwise_spark.jobs.observed import observe
from lagwise_spark.jobs.progress import read_news, read_progress
from lagwise_spark.start import start_spark


def measure(pairs: int, rounds: int) -> list[float]:
    """Seconds for one hour, as often as asked."""
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
                began = time.monotonic()
                assert observe(context, lake, [due]) == [replace(due, observed_from=END)]
                took.append(time.monotonic() - began)
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
        print(f"{pairs:,} group-partitions, an hour: {', '.join(f'{t:.1f} s' for t in took)}", flush=True)


if __name__ == "__main__":
    main()
