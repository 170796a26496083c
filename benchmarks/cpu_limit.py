"""Is the model of a CPU limit right? Real processes under a real limit of the system, against the model.

Each process waits and computes, message after message, for random (exponential) times of known means, in a control
group with a limit. It needs root, and control groups of version 1 or 2 that are writable. Compared are the model,
the slower core that it replaced, and the straight lines.

    python -m benchmarks.cpu_limit [--seconds 15] [--json] [--small]
"""

import json
import multiprocessing
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path

from benchmarks.capacity.work import Mix, Work
from benchmarks.common import options_parser
from lagwise.domain.sizing.formulas import straight_line_rate_per_second
from lagwise.domain.sizing.node_throughput import LIMIT_PERIOD_SECONDS, node_throughput

_ROOT = Path("/sys/fs/cgroup")
#: The limit, T1 and T2 in seconds, and threads.
CASES = (
    (0.5, 0.040, 0.010, 1),
    (0.5, 0.040, 0.010, 2),
    (0.5, 0.040, 0.010, 3),
    (0.5, 0.008, 0.002, 2),
    (0.5, 0.400, 0.100, 2),
    (0.25, 0.095, 0.005, 3),
    (0.25, 0.095, 0.005, 5),
    (1.5, 0.040, 0.010, 4),
    (1.5, 0.040, 0.010, 8),
)
#: The model's goal, and messages of which a mean is known well enough to judge it.
GOAL, LEAST_MESSAGES = 0.1, 400


@dataclass(frozen=True, slots=True)
class Measured:
    """One case: rates in messages per second."""

    limit: float
    t1_seconds: float
    t2_seconds: float
    threads: int
    measured: float
    model: float
    slower_core: float
    straight_lines: float


@contextmanager
def limited(limit: float) -> Iterator[Path]:
    """A control group with this limit: the file that takes the ids of its processes."""
    period = round(LIMIT_PERIOD_SECONDS * 1e6)
    first = (_ROOT / "cgroup.controllers").exists()
    folder = (_ROOT if first else _ROOT / "cpu") / f"lagwise-bench-{os.getpid()}"
    folder.mkdir()
    try:
        if first:
            (folder / "cpu.max").write_text(f"{round(limit * period)} {period}")
        else:
            (folder / "cpu.cfs_period_us").write_text(str(period))
            (folder / "cpu.cfs_quota_us").write_text(str(round(limit * period)))
        yield folder / "cgroup.procs"
    finally:
        for _ in range(50):
            with suppress(OSError):  # its processes take a moment to go
                folder.rmdir()
                break
            time.sleep(0.1)


def measure(limit: float, t1_seconds: float, t2_seconds: float, threads: int, seconds: float) -> Measured:
    """Run so many processes of one thread under a limit, and count."""
    done: list[Synchronized[int]] = [multiprocessing.Value("Q", 0) for _ in range(threads)]
    begin, end = multiprocessing.Event(), multiprocessing.Event()
    with limited(limit) as members:

        def work(number: int) -> None:
            its = Work(Mix(t1_seconds, t2_seconds, random=True), seed=number)
            members.write_text(str(os.getpid()))
            begin.wait()
            while not end.is_set():
                its.handle()
                done[number].value += 1

        processes = [multiprocessing.get_context("fork").Process(target=work, args=(n,)) for n in range(threads)]
        for process in processes:
            process.start()
        time.sleep(1.0)
        begin.set()
        time.sleep(1.0)
        count, began = sum(one.value for one in done), time.monotonic()
        time.sleep(seconds)
        count, took = sum(one.value for one in done) - count, time.monotonic() - began
        end.set()
        for process in processes:
            process.join()
    return Measured(
        limit,
        t1_seconds,
        t2_seconds,
        threads,
        count / took,
        node_throughput(limit, threads, t1_seconds, t2_seconds).rate_per_second,
        _slower_core(limit, threads, t1_seconds, t2_seconds),
        straight_line_rate_per_second(limit, threads, t1_seconds, t2_seconds),
    )


def _slower_core(limit: float, threads: int, t1_seconds: float, t2_seconds: float) -> float:
    """The machine-repairman model with a repairman of this speed, by its balance equations."""
    weights = [1.0]
    for n in range(1, threads + 1):
        weights.append(weights[-1] * (threads - n + 1) / min(n, limit) * t2_seconds / t1_seconds)
    busy = sum(weight * min(n, limit) for n, weight in enumerate(weights)) / sum(weights)
    return busy / t2_seconds


def main() -> int:
    parser = options_parser(__doc__, "one case, briefly", has_json=True)
    parser.add_argument("--seconds", type=float, default=15.0, help="least length of a run (default 15)")
    options = parser.parse_args()
    if not os.access(_ROOT, os.W_OK):
        parser.error(f"control groups in {_ROOT} are not writable: run it as root, on Linux")
    cases = CASES[:1] if options.small else CASES
    results = []
    if not options.json:
        print("limit   T1 ms   T2 ms  threads  measured/s |  model       slower core  straight lines")
    for case in cases:
        expected = node_throughput(case[0], case[3], case[1], case[2]).rate_per_second
        enough = max(options.seconds, LEAST_MESSAGES / expected)
        results.append(measure(*case, seconds=2.0 if options.small else enough))
        if not options.json:
            print(_line(results[-1]), flush=True)
    if options.json:
        print(json.dumps([asdict(result) for result in results]))
    worst = max(abs(result.model / result.measured - 1) for result in results)
    return 0 if worst <= GOAL or options.small else 1


def _line(m: Measured) -> str:
    others = "".join(
        f"{value:9.1f} ({value / m.measured - 1:+4.0%})" for value in (m.model, m.slower_core, m.straight_lines)
    )
    return f"{m.limit:5g}{m.t1_seconds * 1e3:8g}{m.t2_seconds * 1e3:8g}{m.threads:9}{m.measured:12.1f} |{others}"


if __name__ == "__main__":
    sys.exit(main())
