"""What a node really does with N threads: the closed machine-repairman model, M/M/c//N.

N threads take turns: each waits for something outside (mean T1), then needs one of the node's ``c`` cores (mean T2),
then waits again. In the model's own words, N machines run for a mean time T1 until they fail, and c repairmen take a
mean T2 to mend one. It shows what the two straight lines N/(T1+T2) and c/T2 leave out: near the point where they
cross, threads also queue for the cores.

Sources: D. Gross, J. F. Shortle, J. M. Thompson, C. M. Harris, *Fundamentals of Queueing Theory*, "Finite-Source
Queues"; A. O. Allen, *Probability, Statistics, and Queueing Theory with Computer Science Applications*, "Machine
Repair". The state is n, the number of threads that run or wait for a core. It grows at rate (N−n)/T1 and falls at rate
min(n, c)/T2, so p(n) is proportional to the product of (N−k+1)/min(k, c) · T2/T1 over k = 1…n.

A fraction of cores is a CPU limit (a quota of CPU time in each period, as of a container). It does not slow a thread
that uses less: it stops all threads for the rest of a period once they have used up the quota. So messages that cost
little of it see whole cores, up to the limit on the average, and messages that cost many quotas see a slower core.
Between these two models is a blend, by T2 over T2 plus half a period's quota: found and tested against a simulation of
the quota, which it matches within a tenth (``tests/domain/test_cpu_limit.py``), and against real processes under a
limit (``benchmarks/cpu_limit.py``). The slower core alone is off by up to a third.

How far to trust it: T1 may have any distribution, only its mean counts. T2 is taken as exponential; where the cores
share their time among the runnable threads, as an operating system's scheduler does, only its mean counts as well
(processor sharing; Baskett, Chandy, Muntz and Palacios, *Journal of the ACM* 22(2), 1975). Locks between threads,
an interpreter lock, garbage collection and a downstream that slows down under load are outside it.
"""

import math
from bisect import bisect_left
from dataclasses import dataclass
from functools import lru_cache

from lagwise.domain.sizing.ranges import check_cores, check_service_time, check_threads

#: Within this time a CPU limit grants its share: the default of Linux's and of containers (``cpu.max``).
LIMIT_PERIOD_SECONDS = 0.1
#: Terms this small compared with the largest cannot change a double: the sum over the states stops there.
_NEGLIGIBLE = 1e-30


@dataclass(frozen=True, slots=True)
class NodeThroughput:
    """What one node does while every thread always has a next message."""

    threads: int
    #: Messages per second.
    rate_per_second: float
    #: Share of the cores' time spent on messages, 0 … 1.
    core_utilisation: float
    #: Threads that could run and wait for a core, on average.
    threads_waiting_for_core: float

    @property
    def core_wait_seconds(self) -> float:
        """Time a message spends waiting for a core, seconds: what a probe sees as run-queue time."""
        return self.threads_waiting_for_core / self.rate_per_second

    @property
    def thread_rate_per_second(self) -> float:
        """Messages per second of one thread among these."""
        return self.rate_per_second / self.threads


@lru_cache(maxsize=16_384, typed=True)  # typed, or True would find the answer for 1
def node_throughput(cores: float, threads: int, t1_seconds: float, t2_seconds: float) -> NodeThroughput:
    """Throughput of a node with ``cores`` cores and ``threads`` threads, each kept busy.

    ``t1_seconds`` is the time per message spent waiting for something outside, ``t2_seconds`` the time on the CPU.
    ``cores`` may be a fraction, as a container's CPU limit is. Exact, to rounding, for any number of threads on whole
    cores.
    Raises :class:`~lagwise.domain.sizing.ranges.OutOfRange` (a ValueError) that names the argument and its range.
    """
    check_cores(cores)
    check_threads("threads", threads)
    check_service_time(t1_seconds, t2_seconds)
    if t2_seconds == 0.0:
        return NodeThroughput(threads, threads / t1_seconds, 0.0, 0.0)
    if t1_seconds == 0.0:
        busy = min(float(threads), cores)
        return NodeThroughput(threads, busy / t2_seconds, busy / cores, threads - busy)
    busy, waiting = _mean_busy_and_waiting(cores, threads, t2_seconds / t1_seconds)
    if not float(cores).is_integer():
        busy, waiting = _under_limit(cores, threads, t1_seconds, t2_seconds, slower=busy)
    return NodeThroughput(threads, busy / t2_seconds, min(1.0, busy / cores), waiting)


def _under_limit(
    cores: float, threads: int, t1_seconds: float, t2_seconds: float, slower: float
) -> tuple[float, float]:
    """Mean number of busy cores, and of threads that could run and do not, with a limit of ``cores``. ``slower`` is how
    many would be busy if the limit were a slower core."""
    whole, _ = _mean_busy_and_waiting(math.ceil(cores), threads, t2_seconds / t1_seconds)
    share = t2_seconds / (t2_seconds + cores * LIMIT_PERIOD_SECONDS / 2)
    busy = (1.0 - share) * min(whole, cores) + share * slower
    # Who neither computes nor waits for something outside; the rate is busy / T2.
    return busy, max(0.0, threads - busy - busy * t1_seconds / t2_seconds)


def _mean_busy_and_waiting(cores: float, threads: int, ratio: float) -> tuple[float, float]:
    """Mean number of busy cores and of threads that wait for one; ``ratio`` is T2/T1.

    The probabilities rise to one peak and fall again. Starting there, with weight 1, nothing overflows, and what
    underflows to 0 does not matter; every term is positive, so nothing cancels.
    """

    def growth(n: int) -> float:
        return (threads - n + 1) / min(float(n), cores) * ratio

    peak = bisect_left(range(1, threads + 1), True, key=lambda n: growth(n) < 1.0)
    total = weighted_busy = weighted_waiting = 0.0

    def add(n: int, weight: float) -> None:
        nonlocal total, weighted_busy, weighted_waiting
        busy = min(float(n), cores)
        total += weight
        weighted_busy += weight * busy
        weighted_waiting += weight * (n - busy)

    add(peak, 1.0)
    weight = 1.0
    for n in range(peak + 1, threads + 1):
        weight *= growth(n)
        add(n, weight)
        if weight < _NEGLIGIBLE:
            break
    weight = 1.0
    for n in range(peak, 0, -1):
        weight /= growth(n)
        add(n - 1, weight)
        if weight < _NEGLIGIBLE:
            break
    return weighted_busy / total, weighted_waiting / total
