"""Whether the advice held: pure arithmetic over the runs of one mix, and its table."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from lagwise.domain.sizing.formulas import knee_threads

#: The goals: how far advice may differ from the others, how far a prediction from what was done, and how much of the
#: best throughput found the advised threads must do.
SAME_WITHIN, PREDICTED_WITHIN, SHARE_OF_BEST = 0.10, 0.10, 0.93
#: Factors of the knee at which the threads are measured, in addition to one thread.
SWEEP = (0.5, 1.0, 1.5, 2.0, 3.0, 4.0)


@dataclass(frozen=True, slots=True)
class Measured:
    """What a run with so many threads did, and what the consumers reported of a message, in seconds."""

    threads: int
    rate_per_second: float
    t1_seconds: float
    t2_seconds: float
    run_queue_seconds: float
    lock_wait_seconds: float
    #: Whether any measurement was marked as an upper bound of T1.
    doubtful: bool


@dataclass(frozen=True, slots=True)
class Advised:
    """What ``lagwise size GROUP`` says after a run."""

    #: The formula's number, not rounded.
    knee_threads: float
    #: Threads that fill a node, and what a node then does.
    threads: int
    rate_per_second: float
    #: How many threads it saw running on the node.
    seen_threads: int | None


@dataclass(frozen=True, slots=True)
class Point:
    """One run of the sweep and the advice after it."""

    measured: Measured
    advised: Advised

    def naive_threads(self, cores: int) -> float:
        """What the bare formula says with T1 = wall − CPU, the time in the run queue in it."""
        measured = self.measured
        return knee_threads(cores, measured.t1_seconds + measured.run_queue_seconds, measured.t2_seconds)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The worst of each kind over the points of a mix."""

    #: Largest relative distance of a formula's number from the median one.
    knee_spread: float
    #: The same of the advised threads, a difference of one thread left out: there are no halves.
    threads_spread: float
    #: Largest relative error of a predicted throughput.
    prediction_error: float
    #: Least throughput of any advised number of threads, as a share of the best found.
    share_of_best: float

    @property
    def holds(self) -> bool:
        """Whether every goal is met."""
        same = max(self.knee_spread, self.threads_spread) <= SAME_WITHIN
        return same and self.prediction_error <= PREDICTED_WITHIN and self.share_of_best >= SHARE_OF_BEST


def counts(knee: float) -> list[int]:
    """Thread counts to measure: from one to four times the knee."""
    return sorted({1, *(max(1, round(factor * knee)) for factor in SWEEP)})


def verdict(points: Sequence[Point], advised_runs: Mapping[int, float]) -> Verdict:
    """Judge a mix. ``advised_runs`` is the throughput of each number of threads that any point advised."""
    knees = [point.advised.knee_threads for point in points]
    threads = [point.advised.threads for point in points]
    best = max([point.measured.rate_per_second for point in points] + list(advised_runs.values()))
    apart = [abs(count - median(threads)) for count in threads]
    return Verdict(
        knee_spread=max(abs(knee / median(knees) - 1) for knee in knees),
        threads_spread=max((n / median(threads) for n in apart if n > 1), default=0.0),
        prediction_error=max(
            (point.advised.rate_per_second / advised_runs[point.advised.threads] - 1 for point in points), key=abs
        ),
        share_of_best=min(advised_runs.values()) / best,
    )


HEADER = (
    "threads  messages/s    T1 ms   T2 ms    Tq ms  lock ms |  formula  advised  predicted | wall − CPU: formula\n"
    "                            as consumers reported       |         as Lagwise advises    |       (naive)"
)


def line(point: Point, cores: int) -> str:
    """One run as a line under HEADER."""
    seen, advised = point.measured, point.advised
    return (
        f"{seen.threads:7}{seen.rate_per_second:12.1f}{seen.t1_seconds * 1e3:9.2f}{seen.t2_seconds * 1e3:8.2f}"
        f"{seen.run_queue_seconds * 1e3:9.2f}{seen.lock_wait_seconds * 1e3:9.2f} |"
        f"{advised.knee_threads:9.2f}{advised.threads:9}{advised.rate_per_second:11.1f} |"
        f"{point.naive_threads(cores):12.1f}{'  T1 doubtful' if seen.doubtful else ''}"
    )


def said(found: Verdict) -> str:
    """A verdict in a sentence, with its goals."""
    return (
        f"{'holds' if found.holds else 'DOES NOT HOLD'}: advice within {found.knee_spread:.1%} "
        f"(threads {found.threads_spread:.0%}; goal {SAME_WITHIN:.0%}), "
        f"prediction off by {found.prediction_error:+.1%} (goal {PREDICTED_WITHIN:.0%}), "
        f"{found.share_of_best:.1%} of the best found (goal {SHARE_OF_BEST:.0%})"
    )
