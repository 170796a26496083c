"""Many clusters in one collector: fifty made-up clusters of 2,000 group-partitions each.

Starts a collector whose sources make their samples up, so that what is measured is the collector: schedule, comparison,
spool, writer and lake. Two hours of intervals of 15 s, compressed: the interval is 3 s. The lake is maintained every
forty intervals, as the analysis does it every ten minutes. Beside it, a while of the former way: a writer for each
cluster, all of which sample at the same moment.

- sample to lake: from the end of a sample to the commit that shows it;
- cores: CPU of the collector for an interval, divided by 15 s. A collector that only waits is measured before, because
  its leases are renewed by the clock and not with the interval.

Exits with 1 if a goal is missed: no append fails, 95 % of the samples are in the lake within 3 s, memory stays below
500 MiB and grows by less than 5 % in the second half, 0.2 of a core. Figures are of this machine in this hour.

    python -m benchmarks clusters [--clusters 50] [--interval 3] [--intervals 480] [--small] [--json]
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil
import pyarrow.parquet as pq

from benchmarks.common import REPOSITORY, cpu_seconds, machine, machine_line, options_parser, say
from lagwise.config import RetentionSettings
from lagwise.tables.maintenance import maintain
from lagwise.tables.raw import SAMPLES
from lagwise.tables.store import Lake

#: What a collector has as an interval by default, for which the cores are given.
REAL_INTERVAL_SECONDS = 15.0
GOAL_P95_SECONDS, GOAL_BYTES, GOAL_GROWTH, GOAL_CORES = 3.0, 500 * 1024**2, 0.05, 0.2
_MAINTAIN_EVERY_INTERVALS = 40
_IDLE_SECONDS = 30.0
#: How many intervals the former way gets.
_FORMER_INTERVALS = 20
_WAYS = ("one writer", "a writer for each cluster, in phase")


def main() -> int:
    parser = options_parser(__doc__, "five clusters for ten intervals of 1 s, to see that it works", has_json=True)
    parser.add_argument("--clusters", type=int, default=50, help="how many clusters (default 50)")
    parser.add_argument("--interval", type=float, default=3.0, help="seconds between samples (default 3)")
    parser.add_argument("--intervals", type=int, default=480, help="how many intervals to measure (default 480)")
    arguments = parser.parse_args()
    if arguments.small:
        arguments.clusters, arguments.interval, arguments.intervals = 10, 1.0, 10
    result: dict[str, Any] = {"machine": machine(), "clusters": arguments.clusters, "interval": arguments.interval}
    idle = 2.0 if arguments.small else _IDLE_SECONDS
    say(arguments, "a collector that waits …")
    result["idle_cores"] = round(run(_WAYS[0], arguments.clusters, 3600.0, idle).cpu_per_second, 4)
    for way, intervals in zip(_WAYS, (arguments.intervals, min(arguments.intervals, _FORMER_INTERVALS)), strict=True):
        say(arguments, f"{way}, {intervals} intervals of {arguments.interval:g} s …")
        measured = run(way, arguments.clusters, arguments.interval, intervals * arguments.interval)
        result[way] = figures(measured, arguments.interval, result["idle_cores"])
    result["machine"]["load_after"] = os.getloadavg()[0]
    missed = missed_goals(result[_WAYS[0]])
    result["missed_goals"] = missed
    print(json.dumps(result, indent=2) if arguments.json else table(result))
    return int(bool(missed))


class Measured:
    """What a run showed."""

    def __init__(self, lake: Path, said: dict[str, Any], cpu_per_second: float, memory: list[int]) -> None:
        self.appends, self.failed_appends = said["appends"], said["failed_appends"]
        self.cpu_per_second, self.memory = cpu_per_second, memory
        self.commits, self.waits, self.skipped = 0, [], said["skipped"]
        for log in sorted((lake / SAMPLES.path / "_delta_log").glob("*.json")):
            actions = [json.loads(line) for line in log.read_text().splitlines()]
            added = [a["add"] for a in actions if a.get("add", {}).get("dataChange")]
            self.commits += bool(added)
            for file in added:
                finished = pq.read_table(lake / SAMPLES.path / file["path"], columns=["finished_at"], partitioning=None)
                ends = [end.timestamp() for end in finished["finished_at"].to_pylist()]
                self.waits += [log.stat().st_mtime - end for end in ends]


def run(way: str, clusters: int, interval: float, seconds: float) -> Measured:
    """Let a collector work for so long, once each cluster has had its first sample."""
    with tempfile.TemporaryDirectory(prefix="lagwise-bench-") as folder:
        command = [sys.executable, "-m", "benchmarks.clusters_collector", folder, str(clusters), str(interval)]
        former = [] if way == _WAYS[0] else ["--former"]
        with subprocess.Popen(
            [*command, *former], cwd=REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as child:
            assert child.stdin is not None
            assert child.stdout is not None
            child.stdout.readline()  # all have had their first sample
            process, memory = psutil.Process(child.pid), []
            began, used = time.monotonic(), cpu_seconds(process)
            maintained = began
            while (now := time.monotonic()) < began + seconds:
                memory.append(process.memory_info().rss)
                if now - maintained > _MAINTAIN_EVERY_INTERVALS * interval:
                    maintained = now
                    maintain(Lake(f"{folder}/lake"), RetentionSettings())
                time.sleep(1)
            cpu = (cpu_seconds(process) - used) / (time.monotonic() - began)
            said = json.loads(child.communicate("stop\n")[0])
        return Measured(Path(folder, "lake"), said, cpu, memory)


def figures(measured: Measured, interval: float, idle_cores: float) -> dict[str, Any]:
    memory, waits = measured.memory, sorted(measured.waits)
    quarter = max(1, len(memory) // 4)
    return {
        "samples": len(waits),
        "appends": measured.appends,
        "failed_appends": measured.failed_appends,
        "skipped_samples": measured.skipped,
        "commits_of_samples": measured.commits,
        "wait_median_seconds": round(statistics.median(waits), 2),
        "wait_p95_seconds": round(waits[int(len(waits) * 0.95)], 2),
        "wait_max_seconds": round(waits[-1], 2),
        "memory_mib_by_quarter": [
            round(statistics.median(memory[n * quarter : (n + 1) * quarter] or memory[-1:]) / 1024**2) for n in range(4)
        ],
        "memory_mib_max": round(max(memory) / 1024**2),
        "cores": round(idle_cores + (measured.cpu_per_second - idle_cores) * interval / REAL_INTERVAL_SECONDS, 3),
    }


def missed_goals(found: dict[str, Any]) -> list[str]:
    """The goals that are missed, each in a few words."""
    _, before, _, after = found["memory_mib_by_quarter"]
    met = {
        "no failed append": found["failed_appends"] == 0,
        f"95 % within {GOAL_P95_SECONDS:g} s": found["wait_p95_seconds"] < GOAL_P95_SECONDS,
        "memory below 500 MiB": found["memory_mib_max"] * 1024**2 < GOAL_BYTES,
        "memory is flat": after <= before * (1 + GOAL_GROWTH),
        f"{GOAL_CORES:g} of a core": found["cores"] <= GOAL_CORES,
    }
    return [goal for goal, is_met in met.items() if not is_met]


def table(result: dict[str, Any]) -> str:
    lines = [machine_line(result["machine"])]
    lines += [f"{result['clusters']} clusters, interval {result['interval']:g} s; idle {result['idle_cores']} cores"]
    lines += [f"{'':26}" + "".join(f"{way:>40}" for way in _WAYS)]
    for name in result[_WAYS[0]]:
        lines.append(f"{name.replace('_', ' '):26}" + "".join(f"{result[way][name]!s:>40}" for way in _WAYS))
    lines.append("missed: " + (", ".join(result["missed_goals"]) or "none"))
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
