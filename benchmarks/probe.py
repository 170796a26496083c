"""What the probe costs and how right it is: T1 and T2 as it reports them against the true ones, up to the knee.

The work is a sleep (T1) and PBKDF2 (T2), which releases the interpreter lock and needs next to no memory. The truth
comes from the wall clock, not from the clocks that the probe reads. T1: the sleep, and by how much sleeps are late.
T2: the hashing is done in pieces; one during which the thread never lost its core took exactly as long as the wall
clock says, and since all pieces are alike, the mean of those is the mean of all. A piece is much shorter than a
thread's turn on a core: of longer ones, those that are not cut short are the quick ones. So it is true under the
conditions of the run: two busy hardware threads of one core are slower than one alone. A core is left to others.

Each thread is a process of its own, as CPU work in Python wants it. ``--one-process`` has all in one, where waits for
the interpreter lock get into T1 on a core with more work than it can do: whether the probe doubts it then.

Then handlers that hold the lock: whether the probe says so. And what the collector pays for looking at 100,000 commits.

    python -m benchmarks.probe [--seconds 5] [--one-process] [--small] [--json]
"""

import hashlib
import json
import multiprocessing
import os
import resource
import statistics
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from multiprocessing.connection import Connection
from random import Random
from typing import Any

import pyarrow as pa

from benchmarks.common import options_parser, show
from lagwise.domain.capacity.service_times import ServiceTimes, parse_service_times
from lagwise.domain.sizing.formulas import knee_threads
from lagwise.probe import Probe
from lagwise.tables.raw import COMMITS
from lagwise_collectors.probe_service_times import new_measurements
from lagwise_collectors.protocol import Snapshot

CPU_SHARES = (0.01, 0.1, 0.5, 0.9, 0.99)
#: The smaller one of T1 and T2: a sleep is late by some 0.06 ms, which must be little of it.
LEAST_SECONDS = 0.004
GOAL = 0.05
_CALLS = 20_000
_COMMITS = 100_000
#: Rounds of hashing that take a few milliseconds, and how often they are timed.
_BURST, _TIMES = 5_000, 100
_PIECE_SECONDS = 0.000_4


@dataclass(frozen=True, slots=True)
class Point:
    """One run: the true times, in seconds per message, and what the probe reported."""

    cpu_share: float
    threads: int
    true_t1: float
    true_t2: float
    reported: ServiceTimes

    @property
    def errors(self) -> tuple[float, float]:
        """Relative errors of T1 and T2."""
        return self.reported.t1_seconds / self.true_t1 - 1, self.reported.t2_seconds / self.true_t2 - 1

    def line(self) -> str:
        t1, t2 = self.errors
        its = self.reported
        queued, lock = its.run_queue_seconds or 0.0, its.lock_wait_seconds or 0.0
        return (
            f"{self.cpu_share:9.0%}{self.threads:9}{its.messages:10}"
            f"{self.true_t1 * 1e3:9.2f}{its.t1_seconds * 1e3:9.2f}{t1:7.1%}"
            f"{self.true_t2 * 1e3:9.2f}{its.t2_seconds * 1e3:9.2f}{t2:7.1%}"
            f"{queued * 1e3:9.2f}{(its.t1_seconds + queued) * 1e3:9.2f}{lock * 1e3:10.2f}  {its.t1_doubt or ''}"
        )


def main() -> int:
    parser = options_parser(__doc__, "few and short runs: does it work at all?", has_json=True)
    parser.add_argument("--seconds", type=float, default=5.0, help="length of a run (default 5)")
    parser.add_argument("--one-process", action="store_true", help="the threads as those of one process")
    options = parser.parse_args()
    seconds = 1.0 if options.small else options.seconds
    everything = os.sched_getaffinity(0)
    cores = keep_a_core_free()
    result: dict[str, Any] = {"cores": cores, "load": os.getloadavg()[0], **costs()}
    show(options, f"{cores} cores, load {result['load']:.1f}")
    show(options, f"a measured call costs {result['cpu_microseconds']:.1f} µs of CPU more than a plain one")
    show(options, f"the meter of the interpreter lock takes {result['meter_share']:.2%} of a core")
    show(options, f"looking at {_COMMITS:,} commits without a text costs {result['commits_milliseconds']:.1f} ms\n")
    show(
        options, "milliseconds:                       T1                       T2               Tq  T1 + Tq  a wait for"
    )
    show(
        options,
        "CPU share  threads  messages     true reported  error     true reported  error reported  (naive)  the lock",
    )
    points = []
    for share in CPU_SHARES[1::2] if options.small else CPU_SHARES:
        for point in runs(share, cores, seconds, few=options.small, one_process=options.one_process):
            points.append(point)
            show(options, point.line())
    sure = [point for point in points if point.reported.t1_doubt is None]
    worst = [max((abs(point.errors[0]) for point in sure), default=0.0), max(abs(p.errors[1]) for p in points)]
    show(
        options,
        f"\nworst: T1 {worst[0]:.1%}, T2 {worst[1]:.1%}; T1 of the {len(sure)} runs of {len(points)} without a doubt",
    )
    show(options, f"the goal is {GOAL:.0%}; load {os.getloadavg()[0]:.1f}\n")
    # On one core threads that compute wait for the core, and not for the lock.
    os.sched_setaffinity(0, everything)
    locked = {threads: holding_the_lock(threads, seconds) for threads in (1, 24)}
    for threads, its in locked.items():
        show(
            options,
            f"{threads} threads that hold the interpreter lock: T1 {its.t1_seconds * 1e3:.2f} ms of a true "
            f"{_LOCKED_SLEEP_SECONDS * 1e3:.0f} ms, a wait for the lock {(its.lock_wait_seconds or 0) * 1e3:.2f} ms, "
            f"doubt: {its.t1_doubt}",
        )
    if options.json:
        result |= {"points": [asdict(point) for point in points], "worst": {"t1": worst[0], "t2": worst[1]}}
        result["locked"] = {threads: asdict(reported) for threads, reported in locked.items()}
        print(json.dumps(result, indent=2, default=str))
    return 0 if options.small or max(worst) <= GOAL else 1


def keep_a_core_free() -> int:
    """Leave a core to all other programs, if there is more than one. How many this one then has."""
    mine = sorted(os.sched_getaffinity(0))
    left = mine[1:] or mine
    os.sched_setaffinity(0, left)
    return len(left)


def costs() -> dict[str, float]:
    """CPU time of a measured call beyond a plain one, of the lock's meter, and of the collector's look at commits."""

    def plain() -> None: ...

    measured = Probe().handler(plain)
    measured()
    calls = [cpu_of(lambda: repeat(measured)) - cpu_of(lambda: repeat(plain)) for _ in range(9)]
    process, wall = time.process_time(), time.perf_counter()
    time.sleep(1)
    meter = (time.process_time() - process) / (time.perf_counter() - wall)
    columns = {name: pa.nulls(_COMMITS, COMMITS.arrow.field(name).type) for name in COMMITS.arrow.names}
    columns["metadata"] = pa.array([f"theirs {n % 100}" for n in range(_COMMITS)]).dictionary_encode()
    snapshot = Snapshot("bench", "0", {COMMITS.name: pa.table(columns)})
    looks = [cpu_of(lambda: new_measurements(frozenset(), snapshot)) for _ in range(9)]
    return {
        "cpu_microseconds": statistics.median(calls) / _CALLS * 1e6,
        "meter_share": meter,
        "commits_milliseconds": statistics.median(looks) * 1e3,
    }


def repeat(call: Callable[[], None]) -> None:
    for _ in range(_CALLS):
        call()


def cpu_of(work: Callable[[], object]) -> float:
    began = time.thread_time()
    work()
    return time.thread_time() - began


def runs(share: float, cores: int, seconds: float, *, few: bool, one_process: bool) -> list[Point]:
    """One mix with one thread, half as many as the knee, and as many."""
    total = max(5 * LEAST_SECONDS, LEAST_SECONDS / min(share, 1 - share))
    knee = max(1, round(knee_threads(cores, total * (1 - share), total * share)))
    counts = {1, knee} if few else {1, max(1, knee // 2), knee}
    return [run(share, total, threads, seconds, one_process=one_process) for threads in sorted(counts)]


def run(share: float, total: float, threads: int, seconds: float, *, one_process: bool) -> Point:
    """Measure one mix with so many threads."""
    sleep_seconds = total * (1 - share)
    pieces = max(1, round(total * share / _PIECE_SECONDS))
    rounds = round(total * share / pieces / undisturbed(lambda: burn(_BURST)) * _BURST)
    true_t1 = sleep_seconds + undisturbed(lambda: time.sleep(LEAST_SECONDS)) - LEAST_SECONDS
    end = time.monotonic() + max(seconds, 20 * total)
    work = Work(sleep_seconds, pieces, rounds, end)
    found = [work.done_by(range(threads))] if one_process else in_processes(work, threads)
    whole = [one.undisturbed_seconds for one in found if one.undisturbed_seconds is not None]
    return Point(share, threads, true_t1, pieces * statistics.mean(whole), together([one.reported for one in found]))


@dataclass(frozen=True, slots=True)
class Done:
    """What the probe reported of a process, and the mean time of its pieces that nothing disturbed."""

    reported: ServiceTimes
    undisturbed_seconds: float | None


@dataclass(frozen=True, slots=True)
class Work:
    """A message: a sleep, and pieces of so many rounds of hashing; for as long as the clock says."""

    sleep_seconds: float
    pieces: int
    rounds: int
    end: float

    def done_by(self, numbers: range) -> Done:
        """Messages handled by as many threads as there are numbers."""
        probe, whole = Probe(0), list[float]()

        @probe.handler
        def handle() -> None:
            time.sleep(self.sleep_seconds)
            for _ in range(self.pieces):
                switches, began = switches_so_far(), time.perf_counter()
                burn(self.rounds)
                took = time.perf_counter() - began
                if switches_so_far() == switches:
                    whole.append(took)

        def consume(number: int) -> None:
            # Else all of them want the cores at the same time.
            time.sleep(Random(number).uniform(0, self.sleep_seconds + self.pieces * _PIECE_SECONDS))
            while time.monotonic() < self.end:
                handle()

        workers = [threading.Thread(target=consume, args=(number,)) for number in numbers]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        return Done(reported_by(probe), statistics.mean(whole) if whole else None)

    def report(self, number: int, to: Connection) -> None:
        """In a process of its own: what came of it goes ``to`` the one that asked."""
        to.send(self.done_by(range(number, number + 1)))


def in_processes(work: Work, threads: int) -> list[Done]:
    """The work done by so many processes of one thread."""
    forks = multiprocessing.get_context("fork")
    pipes = [forks.Pipe(duplex=False) for _ in range(threads)]
    for number, (_, to) in enumerate(pipes):
        forks.Process(target=work.report, args=(number, to), daemon=True).start()
    return [its.recv() for its, _ in pipes]


def together(reported: list[ServiceTimes]) -> ServiceTimes:
    """What several probes reported, by their messages."""
    messages = [one.messages for one in reported]

    def mean(name: str) -> float:
        values = [getattr(one, name) for one in reported]
        assert None not in values, f"this system does not report {name}"
        return statistics.fmean(values, messages)

    return replace(
        reported[0],
        messages=sum(messages),
        t1_seconds=mean("t1_seconds"),
        t2_seconds=mean("t2_seconds"),
        run_queue_seconds=mean("run_queue_seconds"),
        lock_wait_seconds=mean("lock_wait_seconds"),
    )


def switches_so_far() -> int:
    """How often this thread has lost its core, or given it up."""
    usage = resource.getrusage(resource.RUSAGE_THREAD)
    return usage.ru_nvcsw + usage.ru_nivcsw


def reported_by(probe: Probe) -> ServiceTimes:
    reported = parse_service_times(probe.metadata())
    assert reported is not None
    return reported


def burn(rounds: int) -> None:
    """CPU work without the interpreter lock."""
    hashlib.pbkdf2_hmac("sha256", b"lagwise", b"probe", rounds)


def undisturbed(work: Callable[[], None]) -> float:
    """How long it takes by the wall clock where nothing disturbs it: the lower tenth of many times."""
    walls = []
    for _ in range(_TIMES):
        began = time.perf_counter()
        work()
        walls.append(time.perf_counter() - began)
    return sorted(walls)[_TIMES // 10]


_LOCKED_SLEEP_SECONDS = 0.016


def holding_the_lock(threads: int, seconds: float) -> ServiceTimes:
    """What the probe reports of handlers that sleep 16 ms and then calculate in Python for 1 to 2 ms."""
    probe = Probe(0)

    @probe.handler
    def handle() -> None:
        time.sleep(_LOCKED_SLEEP_SECONDS)
        sum(number * number for number in range(30_000))

    def consume() -> None:
        while time.monotonic() < end:
            handle()

    end = time.monotonic() + seconds
    workers = [threading.Thread(target=consume) for _ in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return reported_by(probe)


if __name__ == "__main__":
    sys.exit(main())
