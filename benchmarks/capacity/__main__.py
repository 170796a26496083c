"""Is the advice right? Consumers of known cost really run, with 1 to 4 × the knee's threads, then as many as advised.

Each run has a backlog on a real broker and consumers on cores of their own (the last one this program may use, or
``--cores`` of them); broker, collector, analysis and this program share the others. After it, Lagwise is asked as a
user asks: probe, collector, lake, analysis, ``lagwise size GROUP``. Its advice must be the same whatever ran; the
advised number of threads is then run, and must do what was predicted and nearly the best found.

Consumers are processes of one thread each, as CPU work in Python wants it. ``--one-process`` has them as threads of one
process, where waits for the interpreter lock get into T1 on a node with more work than cores: Lagwise says so
("T1 doubtful"), and this is not held against the goals.

Times are random (exponential) or all the same. Work whose every message costs exactly the same, and more CPU than the
system's scheduler gives a thread at a time (some milliseconds), falls into step: threads that share a core finish
together, wait together, and leave the core idle meanwhile. No model that knows only means foresees that: the mixes of
equal times with 5 ms of CPU show how far it may go, and miss the goals, and so the program ends with 1 where they run.
With 1 ms, less than a turn, equal times keep nobody in step.

    python -m benchmarks.capacity [--seconds 15] [--mix 4] [--times random] [--t2 1] [--one-process] [--small] [--json]
"""

import argparse
import json
import os
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pyspark import SparkContext

from benchmarks.capacity.judge import HEADER, Point, counts, line, said, verdict
from benchmarks.capacity.runs import WARM_UP_SECONDS, Bench, Run, fill
from benchmarks.capacity.work import Mix, pin
from benchmarks.common import options_parser, show
from lagwise.config import SparkSettings
from lagwise.domain.sizing.formulas import knee_threads, node_ceiling_per_second
from lagwise_sandbox.broker import KafkaBroker
from lagwise_spark.start import start_spark

#: T1 : T2, T2 in milliseconds, and whether the times are random.
MIXES = tuple(
    (ratio, t2_ms, random)
    for t2_ms, random in ((5.0, True), (2.0, True), (0.5, True), (1.0, False), (5.0, False))
    for ratio in (1.0, 4.0, 19.0)
)


def main() -> int:
    parser = options_parser(__doc__, "one mix, two short runs: does it work at all?", has_json=True)
    parser.add_argument("--seconds", type=float, default=15.0, help="length of a run (default 15)")
    parser.add_argument("--cores", type=int, default=1, help="cores of the consumers' own (default 1)")
    parser.add_argument("--mix", type=float, action="append", help="only mixes with this T1:T2 (1, 4, 19)")
    parser.add_argument("--t2", type=float, help="only mixes with this T2 in ms (5; 2 and 0.5 random; 1 constant)")
    parser.add_argument("--times", choices=("random", "constant"), help="only mixes whose times are so")
    parser.add_argument("--one-process", action="store_true", help="consumers as threads of one process")
    parser.add_argument(
        "--whole", action="store_true", help="the client library runs on the consumers' cores, too, as it does outside"
    )
    options = parser.parse_args()
    mine = sorted(os.sched_getaffinity(0))
    if len(mine) <= options.cores:
        parser.error(f"{len(mine)} cores are too few: the consumers need {options.cores}, the broker another one")
    others, cores = frozenset(mine[: -options.cores]), frozenset(mine[-options.cores :])
    kinds = {"random": (True,), "constant": (False,), None: (True, False)}[options.times]
    mixes = [
        Mix(ratio * t2_ms / 1e3, t2_ms / 1e3, random)
        for ratio, t2_ms, random in MIXES
        if random in kinds and (not options.mix or ratio in options.mix) and options.t2 in (None, t2_ms)
    ]
    if not mixes:
        parser.error("there is no such mix")
    pin(others)
    show(options, f"{options.cores} of {len(mine)} cores for the consumers, load {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory(prefix="lagwise-capacity-") as folder, _broker() as broker:
        context = start_spark(SparkSettings())
        try:
            seconds = 6.0 if options.small else options.seconds
            bench = Bench(broker, Path(folder), cores, seconds, options.whole)
            results = [
                sweep(bench, context, mix, number, options)
                for number, mix in enumerate(mixes[:1] if options.small else mixes)
            ]
        finally:
            context.stop()
    show(options, f"\nload at the end {os.getloadavg()[0]:.1f}")
    if options.json:
        print(json.dumps(results, indent=2))
    held = all(result["holds"] for result in results)
    return 0 if held or options.small or options.one_process else 1


def _broker() -> KafkaBroker:
    # Consumers that start together are given their partitions once, and not once for each.
    return KafkaBroker(extra={"group.initial.rebalance.delay.ms": 3000})


def sweep(bench: Bench, context: SparkContext, mix: Mix, number: int, options: argparse.Namespace) -> dict[str, Any]:
    """All runs of one mix, printed as they come, and the verdict."""
    cores = len(bench.cores)
    knee = knee_threads(cores, mix.t1_seconds, mix.t2_seconds)
    sweep_counts = [1, max(2, round(knee))] if options.small else counts(knee)
    ceiling = node_ceiling_per_second(cores, mix.t2_seconds)
    topic = f"mix-{number}"
    # More than the fastest run reads, however uneven its consumers are: three times as many.
    fill(bench.broker, topic, int(3 * ceiling * (bench.seconds + WARM_UP_SECONDS + 10)))
    show(options, f"\n{mix}: the knee is at {knee:g} threads, a node's ceiling {ceiling:g}/s")
    show(options, HEADER)

    def run(threads: int, what: str) -> Point:
        one = Run(bench, topic, f"{topic}-{what}-{threads}")
        measured = one.measure(mix, threads, 1 if options.one_process else threads)
        return Point(measured, one.advice(context))

    points = []
    for threads in sweep_counts:
        points.append(run(threads, "sweep"))
        show(options, line(points[-1], cores))
    show(options, "the advised threads, really run:")
    advised = {}
    for threads in sorted({point.advised.threads for point in points}):
        again = run(threads, "advised")
        advised[threads] = again.measured.rate_per_second
        show(options, line(again, cores))
    found = verdict(points, advised)
    show(options, said(found))
    return {
        "mix": asdict(mix),
        "points": [asdict(point) | {"naive_threads": point.naive_threads(cores)} for point in points],
        "advised": advised,
        "verdict": asdict(found),
        "holds": found.holds,
    }


if __name__ == "__main__":
    sys.exit(main())
