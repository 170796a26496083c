"""How to get from the threads that run to those that are advised: in steps, under load, each with when to stop.

The advice comes from a model, which leaves out locks, garbage collection and a downstream that slows down. A step shows
them while going back is still easy.
"""

import math
from dataclasses import dataclass

from lagwise.domain.humanise import per_cent, precise_duration, significant
from lagwise.domain.sizing.advice import SizingAdvice
from lagwise.domain.sizing.node_throughput import NodeThroughput, node_throughput
from lagwise.domain.sizing.ranges import check_threads

#: Shares of the way.
_STEPS = (0.25, 0.5, 0.75, 1.0)
#: No step has more than so many times the threads of the one before.
_MOST_GROWTH = 2
#: So much of the expected gain must be seen to go on.
_LEAST_GAIN_SHARE = 0.5
#: So much longer T1 may take than before the first step.
_MOST_T1_RISE = 0.2


@dataclass(frozen=True, slots=True)
class RampStep:
    """One step, on one node, measured while there is a backlog: without one a node only does what arrives."""

    #: What the model expects, threads and core utilisation included.
    expected: NodeThroughput
    #: What it expects on top of the step before, messages per second; 0 for the first, which is what runs now.
    gain_per_second: float
    #: Stop where less than this comes on top of what was measured at the step before.
    least_gain_per_second: float
    #: Stop where T1 takes longer than this.
    most_t1_seconds: float
    #: What to watch, in words.
    watch: tuple[str, ...]
    #: When to go back to the step before, in words.
    stop: str


def ramp_to(advice: SizingAdvice, running_threads: int | None) -> tuple[RampStep, ...]:
    """The plan from what runs to the advice, for one node; empty where nothing is to be changed, where it is not known
    what runs, and where members are sized, which have one thread."""
    w, advised = advice.workload, advice.threads_per_node
    if running_threads is None or advised is None or w.by_members or running_threads == advised:
        return ()
    return ramp_plan(w.cores, w.t1_seconds, w.t2_seconds, running_threads=running_threads, advised_threads=advised)


def ramp_plan(
    cores: float,
    t1_seconds: float,
    t2_seconds: float,
    *,
    running_threads: int,
    advised_threads: int,
) -> tuple[RampStep, ...]:
    """The steps for a node: what runs now, then 25, 50, 75 and 100 % of the way, and never more than doubled.

    Where fewer threads are advised, the steps lead down in the same way. Raises OutOfRange.
    """
    check_threads("running_threads", running_threads)
    check_threads("advised_threads", advised_threads)
    before: NodeThroughput | None = None
    steps = []
    for threads in _threads(running_threads, advised_threads):
        expected = node_throughput(cores, threads, t1_seconds, t2_seconds)
        gain = 0.0 if before is None else expected.rate_per_second - before.rate_per_second
        # On the way down: not more than so many times the loss that is expected.
        least = gain * _LEAST_GAIN_SHARE if gain >= 0.0 else gain / _LEAST_GAIN_SHARE
        most_t1 = t1_seconds * (1.0 + _MOST_T1_RISE)
        steps.append(RampStep(expected, gain, least, most_t1, _watch(expected), _stop(before, gain, least, most_t1)))
        before = expected
    return tuple(steps)


def _threads(running: int, advised: int) -> list[int]:
    found = [running]
    for share in _STEPS:
        wanted = running + round(share * (advised - running))
        while wanted > _MOST_GROWTH * found[-1]:
            found.append(_MOST_GROWTH * found[-1])
        if wanted != found[-1]:
            found.append(wanted)
    return found


def _watch(expected: NodeThroughput) -> tuple[str, ...]:
    return (
        f"throughput with a backlog: {significant(expected.rate_per_second)} messages/s, cores "
        f"{per_cent(expected.core_utilisation)} busy",
        f"waiting for a core (tq): {precise_duration(expected.core_wait_seconds)} a message; more means that others "
        "use the cores as well",
        "T1: if it rises together with the downstream's own latency, the downstream is full",
        "waiting for locks (or an interpreter lock): if T1 alone rises, the threads are in each other's way",
        "errors and time-outs: no new ones",
    )


def _stop(before: NodeThroughput | None, gain: float, least: float, most_t1: float) -> str:
    t1 = f"T1 is above {precise_duration(most_t1)}, or errors rise" if most_t1 > 0.0 else "errors rise"
    if before is None:
        return f"Measure first: the next steps are compared with this one. Do not start if {t1}."
    if math.isclose(gain, 0.0, abs_tol=1e-9 * before.rate_per_second):
        return f"Go back if {t1}."
    if gain > 0.0:
        return f"Go back if the gain is less than {significant(least)} messages/s ({significant(gain)} expected), {t1}."
    return f"Go back if the loss is more than {significant(-least)} messages/s ({significant(-gain)} expected), {t1}."
