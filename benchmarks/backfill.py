"""How long the first start takes where a day has been collected and nothing analysed: `lagwise analyze --once`.

Writes 24 hours of samples of 10,000 group-partitions (1,000 partitions, ten groups), one every 15 s and one data file
each, as a collector leaves them while no analysis runs, and then starts the analysis as a user would.
"""

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psutil

from benchmarks.bulk import Bulk
from benchmarks.common import options_parser, print_figures
from benchmarks.synthetic_lake import Shape, make_lake, write_samples, write_topics
from lagwise.tables.minutes import FIVE_MINUTES, MINUTES, WATERMARK_MINUTES
from lagwise.tables.store import Lake

INTERVAL_SECONDS = 15.0
GOAL_SECONDS = 60.0


class _Memory:
    """The most memory that a process and its children held at any time it was looked at, resident, in MiB."""

    def __init__(self, pid: int) -> None:
        self.most = 0.0
        self._pid, self._stop = pid, threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while not self._stop.wait(0.5):
            try:
                me = psutil.Process(self._pid)
                held = sum(p.memory_info().rss for p in (me, *me.children(recursive=True)))
            except psutil.Error:
                continue  # one of them ended meanwhile
            self.most = max(self.most, held / 2**20)

    def end(self) -> float:
        """Stop watching; what was seen."""
        self._stop.set()
        self._thread.join()
        return self.most


def make(data: Path, shape: Shape, samples: int) -> None:
    """The lake as the collector left it."""
    lake = make_lake(str(data / "lake"))
    start = datetime.now(UTC).replace(second=0, microsecond=0) - timedelta(seconds=INTERVAL_SECONDS * samples)
    bulk = Bulk(lake)
    write_topics(bulk, shape, start)
    write_samples(bulk, shape, start, samples, INTERVAL_SECONDS)
    bulk.commit()


def measure(shape: Shape, samples: int) -> dict[str, object]:
    """Figures of the one round that catches up, its process from start to end."""
    with tempfile.TemporaryDirectory(prefix="lagwise-bench-") as folder:
        data = Path(folder)
        began = time.monotonic()
        make(data, shape, samples)
        made_seconds = time.monotonic() - began
        load, began = os.getloadavg()[0], time.monotonic()
        command = [sys.executable, "-m", "lagwise", "analyze", "--once", "--json", "--data", folder]
        process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True)
        memory = _Memory(process.pid)
        printed, _ = process.communicate()
        wall, most = time.monotonic() - began, memory.end()
        if process.returncode:
            raise SystemExit(f"the analysis ended with {process.returncode}")
        cost = json.loads(printed)
        lake = Lake(str(data / "lake"))
        counted = {
            table.name: lake.query(f"select count(*) as n from {table.name}", over=[table])["n"][0].as_py()
            for table in (MINUTES, FIVE_MINUTES, WATERMARK_MINUTES)
        }
    committed = shape.pairs * samples
    return {
        "group_partitions": shape.pairs,
        "partitions": shape.partitions,
        "hours": samples * INTERVAL_SECONDS / 3600,
        "committed_offsets": committed,
        "making_the_lake_seconds": round(made_seconds, 1),
        "load_average_before": round(load, 1),
        "wall_seconds": round(wall, 1),
        "goal_seconds": GOAL_SECONDS,
        "round_wall_seconds": cost["wall_seconds"],
        "round_cpu_seconds": cost["cpu_seconds"],
        "committed_offsets_per_second": round(committed / wall),
        "most_mebibytes": round(most),
        "rows": counted,
    }


def main() -> None:
    parser = options_parser(__doc__, "a smoke test: half an hour", has_json=True)
    parser.add_argument("--hours", type=float, default=24.0, help="how much was collected (default 24)")
    options = parser.parse_args()
    samples = round((0.5 if options.small else options.hours) * 3600 / INTERVAL_SECONDS)
    figures = measure(Shape(1_000, 10, 0), samples)
    print_figures(figures, as_json=options.json)


if __name__ == "__main__":
    main()
