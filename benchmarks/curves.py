"""How a round's time grows with the length of history and with the number of group-partitions.

Each point is a lake of its own, written in bulk as the product would have left it (``benchmarks.history_lake``), a
Spark of its own, and real rounds over one new sample each. The number of group-partitions is the same along the
first curve and the length of history along the second.
"""

import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psutil
from pyspark import SparkContext

from benchmarks.common import options_parser
from benchmarks.history_lake import History
from benchmarks.synthetic_lake import Shape, make_lake, write_samples
from lagwise.config import Config, RetentionSettings, SparkSettings
from lagwise.tables.kept_rows import KeptRows
from lagwise.tables.store import Lake
from lagwise_spark.jobs.tick import TickCost, tick
from lagwise_spark.start import start_spark

INTERVAL_SECONDS = 15.0
GROUPS = 10
#: The last sample of every lake: the middle of a day, so that what today holds is the same for all long histories.
END = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)

HISTORIES = {"1 h": 1.0, "24 h": 24.0, "30 d": 720.0}
PAIRS = (10_000, 100_000, 1_000_000)


@dataclass(frozen=True, slots=True)
class Point:
    """One measured lake. ``wall_seconds`` and ``cpu_seconds`` are medians over the rounds after the warm-up."""

    history_hours: float
    group_partitions: int
    partitions: int
    wall_seconds: float
    cpu_seconds: float
    wall_seconds_of_all: tuple[float, ...]
    making_the_lake_seconds: float
    lake_megabytes: int
    jvm_mebibytes: int
    load_average: float


def analysed(
    context: SparkContext, lake: Lake, config: Config, shape: Shape, start: datetime, samples: range
) -> Iterator[TickCost]:
    """Rounds of the analysis, each over one new sample."""
    for done, sample in enumerate(samples, 1):
        write_samples(lake, shape, start, 1, INTERVAL_SECONDS, first=sample)
        cost = tick(context, lake, config)
        assert cost is not None
        print(f"  round {done} of {len(samples)}: {cost.wall_seconds:.1f} s", file=sys.stderr)
        yield cost


def measure(hours: float, pairs: int, rounds: int, warm_up: int, heap: str) -> Point:
    """One point of a curve."""
    shape = Shape(pairs // GROUPS, GROUPS, 0)
    samples = round(hours * 3600 / INTERVAL_SECONDS)
    with tempfile.TemporaryDirectory(prefix="lagwise-bench-") as folder:
        lake = make_lake(str(Path(folder) / "lake"))
        lake.kept = KeptRows()  # as the analysis has it
        start = END - timedelta(seconds=INTERVAL_SECONDS * samples)
        began = time.monotonic()
        History(lake, shape, start, samples, INTERVAL_SECONDS).write(RetentionSettings())
        made = time.monotonic() - began
        size = sum(f.stat().st_size for f in Path(folder).rglob("*.parquet"))
        config = Config(data=folder)
        context = start_spark(SparkSettings(driver_memory=heap))
        try:
            costs, loads = [], []
            for cost in analysed(context, lake, config, shape, start, range(samples, samples + warm_up + rounds)):
                assert cost.group_partitions == pairs
                costs.append(cost)
                loads.append(os.getloadavg()[0])
            jvm = sum(p.memory_info().rss for p in psutil.Process().children(recursive=True)) / 2**20
        finally:
            context.stop()
    warm = costs[warm_up:]
    return Point(
        history_hours=hours,
        group_partitions=pairs,
        partitions=shape.partitions,
        wall_seconds=round(statistics.median(c.wall_seconds for c in warm), 2),
        cpu_seconds=round(statistics.median(c.cpu_seconds for c in warm), 2),
        wall_seconds_of_all=tuple(round(c.wall_seconds, 1) for c in costs),
        making_the_lake_seconds=round(made),
        lake_megabytes=round(size / 1e6),
        jvm_mebibytes=round(jvm),
        load_average=round(statistics.mean(loads), 1),
    )


def table(title: str, points: list[tuple[str, Point]]) -> str:
    """A curve, each point beside its ratio to the first one."""
    lines = [
        title,
        f"{'':>12} {'wall s':>8} {'ratio':>6} {'CPU s':>8} {'ratio':>6} {'JVM MiB':>8} {'lake MB':>8} {'load':>5}",
    ]
    first = points[0][1]
    for name, p in points:
        lines.append(
            f"{name:>11} {p.wall_seconds:8.1f} {p.wall_seconds / first.wall_seconds:8.2f} {p.cpu_seconds:8.1f} "
            f"{p.cpu_seconds / first.cpu_seconds:8.2f} {p.jvm_mebibytes:8} {p.lake_megabytes:8} {p.load_average:8}"
        )
    return "\n".join(lines)


def main() -> None:
    parser = options_parser(__doc__, "a smoke test: up to 3 hours and 1,000 group-partitions", has_json=True)
    parser.add_argument("--curve", choices=("history", "pairs", "both"), default="both", help="default both")
    parser.add_argument(
        "--pairs", type=int, nargs="+", metavar="N", help="group-partitions of the second curve; the first has N[0]"
    )
    parser.add_argument("--rounds", type=int, default=9, help="rounds to measure at each point (default 9)")
    parser.add_argument("--warm-up", type=int, default=6, help="rounds before these (default 6)")
    parser.add_argument("--heap", default="1g", help="heap of the JVM (default: that of the settings, 1g)")
    options = parser.parse_args()
    histories = {"1 h": 1.0, "3 h": 3.0} if options.small else HISTORIES
    numbers = options.pairs or ((100, 1_000) if options.small else PAIRS)
    rounds, warm_up = (2, 1) if options.small else (options.rounds, options.warm_up)
    curves: dict[str, list[tuple[str, Point]]] = {}
    wanted: list[tuple[str, str, float, int]] = []
    if options.curve != "pairs":
        wanted += [("history", name, hours, numbers[0]) for name, hours in histories.items()]
    if options.curve != "history":
        wanted += [("pairs", f"{n:,}", 1.0, n) for n in numbers]
    measured: dict[tuple[float, int], Point] = {}
    for curve, name, hours, pairs in wanted:
        print(f"{name}: {hours:g} h, {pairs:,} group-partitions", file=sys.stderr)
        if (hours, pairs) not in measured:
            measured[hours, pairs] = measure(hours, pairs, rounds, warm_up, options.heap)
        curves.setdefault(curve, []).append((name, measured[hours, pairs]))
    if options.json:
        print(json.dumps({curve: [asdict(p) for _, p in points] for curve, points in curves.items()}))
        return
    titles = {"history": f"By length of history, {numbers[0]:,} group-partitions", "pairs": "By group-partitions, 1 h"}
    print("\n\n".join(table(titles[curve], points) for curve, points in curves.items()))


if __name__ == "__main__":
    main()
