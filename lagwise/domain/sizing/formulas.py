"""The formulas of sizing: threads on a node, what thread and node do, the demand, the nodes it takes.

In all of them T1 is the time per message spent waiting for something outside (I/O, locks, a downstream), T2 the time
per message on the CPU, and C the cores of one node. Time spent runnable but waiting for a core belongs to neither.
Times are seconds, rates messages per second. A bad argument raises
:class:`~lagwise.domain.sizing.ranges.OutOfRange`, a ValueError that names the argument and its range.

How the advice is put together from them is described in ``docs/sizing.md``; the advice itself is made by
:func:`lagwise.domain.sizing.advice.advise`.
"""

import math

from lagwise.domain.sizing.node_throughput import node_throughput
from lagwise.domain.sizing.ranges import (
    check_cores,
    check_count,
    check_number,
    check_service_time,
    check_threads,
)

#: Rounding errors of this relative size must not add a thread or a node.
_ROUNDING = 1e-9
#: An outage is rarer than a restart: half a working day to be done with it.
DEFAULT_OUTAGE_CATCH_UP_SECONDS = 4 * 3_600.0


def knee_threads(cores: float, t1_seconds: float, t2_seconds: float) -> float:
    """Threads per node at which the two straight lines cross: C · (T1 + T2) / T2. Infinite where T2 is 0.

    The classic C · (1 + wait/compute) of B. Goetz, *Java Concurrency in Practice*, §8.2. It is where a node *would*
    become busy if threads never queued for a core; what it does there is :func:`node_throughput`'s to say.
    """
    check_cores(cores)
    check_service_time(t1_seconds, t2_seconds)
    return math.inf if t2_seconds == 0.0 else cores * (t1_seconds + t2_seconds) / t2_seconds


def thread_rate_per_second(t1_seconds: float, t2_seconds: float) -> float:
    """What one thread does when it never waits for a core: 1 / (T1 + T2)."""
    check_service_time(t1_seconds, t2_seconds)
    return 1.0 / (t1_seconds + t2_seconds)


def node_ceiling_per_second(cores: float, t2_seconds: float) -> float:
    """What a node can do at most, with every core busy: C / T2. Infinite where T2 is 0."""
    check_cores(cores)
    check_service_time(1.0, t2_seconds)
    return math.inf if t2_seconds == 0.0 else cores / t2_seconds


def straight_line_rate_per_second(cores: float, threads: int, t1_seconds: float, t2_seconds: float) -> float:
    """The two straight lines: min(threads / (T1 + T2), C / T2). Never below what the node really does."""
    check_threads("threads", threads)
    return min(threads * thread_rate_per_second(t1_seconds, t2_seconds), node_ceiling_per_second(cores, t2_seconds))


def threads_for_share(
    cores: float, t1_seconds: float, t2_seconds: float, share: float = 0.95, max_threads: int = 10_000
) -> int | None:
    """The fewest threads with which a node reaches ``share`` of its ceiling C / T2, by the machine-repairman model.

    At least ``share`` times the knee. None if even ``max_threads`` do not reach it; so always where T2 is 0, because
    then there is no ceiling. ``share`` is from 0.01 to 0.999: the ceiling itself is never quite reached.
    """
    check_number("share", share, 0.01, 0.999, "a number from 0.01 to 0.999")
    check_threads("max_threads", max_threads)
    ceiling = node_ceiling_per_second(cores, t2_seconds)
    check_service_time(t1_seconds, t2_seconds)
    if math.isinf(ceiling):
        return None
    goal = share * ceiling * (1.0 - _ROUNDING)

    def reaches(threads: int) -> bool:
        return node_throughput(cores, threads, t1_seconds, t2_seconds).rate_per_second >= goal

    # The straight lines are never exceeded, so nothing below share · knee can do.
    low = max(1, math.floor(share * knee_threads(cores, t1_seconds, t2_seconds)))
    if low > max_threads or not reaches(max_threads):
        return None
    high = low
    while not reaches(high):
        low, high = high, min(2 * high, max_threads)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if reaches(middle) else (middle + 1, high)
    return high


def catch_up_factor(
    *,
    catch_up_seconds: float,
    restart_seconds: float,
    outage_seconds: float = 0.0,
    outage_catch_up_seconds: float = DEFAULT_OUTAGE_CATCH_UP_SECONDS,
) -> float:
    """How many times the peak must be handled: 1 + the larger of restart / catch-up and outage / its own catch-up.

    The larger, not the sum: what catches up after the one is there for the other as well, as long as they do not come
    together.
    """
    check_number("catch_up_seconds", catch_up_seconds, 1.0, 30 * 86_400.0, "from 1 second to 30 days (in seconds)")
    check_number("restart_seconds", restart_seconds, 0.0, 86_400.0, "from 0 to 1 day (in seconds)")
    check_number("outage_seconds", outage_seconds, 0.0, 30 * 86_400.0, "from 0 to 30 days (in seconds)")
    check_number(
        "outage_catch_up_seconds", outage_catch_up_seconds, 1.0, 30 * 86_400.0, "from 1 second to 30 days (in seconds)"
    )
    return 1.0 + max(restart_seconds / catch_up_seconds, outage_seconds / outage_catch_up_seconds)


def demand_rate_per_second(
    peak_rate_per_second: float,
    *,
    lag: float,
    catch_up_seconds: float,
    restart_seconds: float,
    outage_seconds: float = 0.0,
    outage_catch_up_seconds: float = DEFAULT_OUTAGE_CATCH_UP_SECONDS,
) -> float:
    """What must be handled per second at the worst: peak · (1 + restart / catch-up) + lag / catch-up.

    The rate that a lag objective takes may stand in the peak's place: no stretch of n seconds brings more than
    rate · (n + objective) messages (:mod:`lagwise.domain.sizing.objective`), so after the catch-up time the oldest
    unread one is no older than the objective again.

    At peak, a restart of ``restart_seconds`` leaves peak · restart messages unread; they and the ``lag`` that already
    waits must be gone after ``catch_up_seconds``, while new ones keep coming. An outage of ``outage_seconds`` likewise,
    within ``outage_catch_up_seconds``: the harder of the two counts (:func:`catch_up_factor`). The terms are those of
    Flink's autoscaler (its *target capacity*), which divides only the peak by the utilisation; here all of it is.
    """
    check_number("peak_rate_per_second", peak_rate_per_second, 0.0, 1e12, "a number from 0 to 1e12")
    check_number("lag", lag, 0.0, 1e15, "a number from 0 to 1e15")
    factor = catch_up_factor(
        catch_up_seconds=catch_up_seconds,
        restart_seconds=restart_seconds,
        outage_seconds=outage_seconds,
        outage_catch_up_seconds=outage_catch_up_seconds,
    )
    return peak_rate_per_second * factor + lag / catch_up_seconds


def required_rate_per_second(demand: float, target_utilisation: float) -> float:
    """The throughput to provide, so that the demand uses ``target_utilisation`` (0.01 … 1) of it."""
    check_number("demand", demand, 0.0, math.inf, "a number from 0")
    check_number("target_utilisation", target_utilisation, 0.01, 1.0, "a number from 0.01 to 1")
    return demand / target_utilisation


def nodes_for_rate(rate_per_second: float, node_rate_per_second: float) -> int:
    """Whole nodes that reach a rate together; at least 1."""
    check_number("rate_per_second", rate_per_second, 0.0, math.inf, "a number from 0")
    check_number("node_rate_per_second", node_rate_per_second, 1e-12, math.inf, "a number above 0")
    return max(1, math.ceil(rate_per_second / node_rate_per_second * (1.0 - _ROUNDING)))


def busiest_share(partitions: int, readers: int, hottest_share: float) -> float:
    """The share of the traffic that the busiest reader gets, 0 … 1, at worst.

    Assignors spread partitions by count, not by traffic, so with P partitions some reader holds ceil(P / readers) of
    them; at worst the hottest is among them. The rest of the traffic is taken as even. Readers beyond the number of
    partitions hold none.
    """
    check_count("partitions", partitions, 1, 1_000_000)
    check_count("readers", readers, 1, 1_000_000_000)
    if partitions == 1:
        return 1.0
    held = -(-partitions // min(readers, partitions))
    return hottest_share + (held - 1) * (1.0 - hottest_share) / (partitions - 1)


def meets(capacity_per_second: float, rate_per_second: float) -> bool:
    """Whether a capacity is enough for a rate, rounding errors forgiven."""
    return capacity_per_second >= rate_per_second * (1.0 - _ROUNDING)
