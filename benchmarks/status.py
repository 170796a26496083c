"""What `lagwise status` takes over many groups: the whole command, from the start of the interpreter to its end.

Lakes of 5,001 and 10,000 groups, 30 % of which are in trouble, with a day of samples every 15 s; each command several
times, after one that is not counted. Output goes to a file, as in a script.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.common import options_parser
from benchmarks.pages_cast import CLUSTER, INTERVAL_SECONDS, Size, back
from benchmarks.pages_lake import PagesLake
from benchmarks.synthetic_lake import make_lake
from lagwise.tables.raw import SAMPLES

#: The bound.
WALL_S = 1.0
_COMMANDS: dict[str, list[str]] = {
    "status": [],
    "status --all": ["--all"],
    "status --group 'group-00*' --status stopped": ["--group", "group-00*", "--status", "stopped"],
    "status --json": ["--json"],
}
_SMALL, _LARGE = (40,), (5001, 10_000)


def write(folder: Path, groups: int) -> None:
    """The lake: one round just now, and a day of samples."""
    lake, now = make_lake(str(folder / "lake")), datetime.now(UTC)
    size = Size(groups=groups, partitions=4, topics=100, minutes=0, hours=0, day_minutes=0)
    read = {
        "cluster": CLUSTER, "system": "kafka", "interval_seconds": INTERVAL_SECONDS, "groups": groups,
        "group_partitions": size.pairs, "partitions": 400, "wall_seconds": 0.6, "cpu_seconds": 0.5, "errors": [],
    }  # fmt: skip
    moments = list(back(now, INTERVAL_SECONDS, 24 * 240))
    for first in range(0, len(moments), 240):
        rows = [
            {**read, "sample_id": f"{at:%d%H%M%S}", "started_at": at, "finished_at": at, "written_at": at}
            for at in moments[first : first + 240]
        ]
        lake.append(SAMPLES, SAMPLES.from_rows(rows))
    PagesLake(lake, size, now).tick(now)


def timed(folder: Path, options: list[str]) -> tuple[float, float, int]:
    """Wall and CPU seconds of one command, and the bytes that it prints."""
    with tempfile.TemporaryFile() as output:
        began = time.monotonic()
        command = [sys.executable, "-m", "lagwise", "status", "--data", str(folder), *options]
        process = subprocess.Popen(command, stdout=output, cwd=folder)
        _, code, used = os.wait4(process.pid, 0)
        took = time.monotonic() - began
        process.returncode = os.waitstatus_to_exitcode(code)
        if process.returncode:
            raise SystemExit(f"{' '.join(command)} exits {process.returncode}")
        return took, used.ru_utime + used.ru_stime, os.fstat(output.fileno()).st_size


def measure(groups: int, times: int) -> dict[str, object]:
    """All figures: medians, and the worst."""
    found: dict[str, object] = {"groups": groups, "must_s": WALL_S}
    with tempfile.TemporaryDirectory(prefix="lagwise-status-") as made:
        write(Path(made), groups)
        for name, options in _COMMANDS.items():
            timed(Path(made), options)
            runs = [timed(Path(made), options) for _ in range(times)]
            wall, cpu = [run[0] for run in runs], [run[1] for run in runs]
            found[name] = {
                "wall_s": {"median": round(statistics.median(wall), 2), "worst": round(max(wall), 2)},
                "cpu_s": round(statistics.median(cpu), 2),
                "bytes": runs[0][2],
            }
    return found


def main() -> None:
    small = options_parser(__doc__, "few groups, once each: does it run at all?").parse_args().small
    sizes, times = (_SMALL, 1) if small else (_LARGE, 9)
    print(json.dumps([measure(groups, times) for groups in sizes], indent=2))


if __name__ == "__main__":
    main()
