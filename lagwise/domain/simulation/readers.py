"""Who reads which partition, and when that changes."""

from dataclasses import dataclass

from lagwise.domain.simulation.scenario import Scenario
from lagwise.domain.sizing.workload import Concurrency, Ordering


@dataclass(frozen=True, slots=True)
class SimulatedReader:
    """Whatever handles messages of its partitions, by turns: a thread, or a node's pool of threads."""

    #: The node it runs on, counted from 0.
    node: int
    #: How many threads may work for it at once.
    threads: int
    #: Its partitions, counted from the hottest, which is 0.
    partitions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Epoch:
    """From one change of who reads to the next."""

    start_seconds: float
    #: Nodes that hold the partitions.
    nodes: int
    #: Those of them that read nothing.
    away: range = range(0)


def deal(scenario: Scenario, nodes: int) -> tuple[SimulatedReader, ...]:
    """The readers with their partitions, if so many nodes share them.

    As Kafka's assignors do it: by count, not by traffic. The hottest partitions are dealt first, so that where some
    reader holds one partition more than others, the hottest is among them, as sizing takes it as well.
    """
    count, threads = scenario.partitions, scenario.threads_per_node
    if scenario.order is Ordering.GLOBAL:
        return (SimulatedReader(0, 1, tuple(range(count))),)
    if scenario.concurrency is Concurrency.CONSUMER_PER_THREAD:
        readers = min(nodes * threads, count)
        return tuple(SimulatedReader(r % nodes, 1, tuple(range(r, count, readers))) for r in range(readers))
    if scenario.order is Ordering.PARTITION:
        return tuple(SimulatedReader(p % nodes, 1, (p,)) for p in range(count))
    return tuple(SimulatedReader(n, threads, tuple(range(n, count, nodes))) for n in range(min(nodes, count)))


def epochs(scenario: Scenario) -> tuple[Epoch, ...]:
    """The whole time, cut where nodes leave, where others are given their partitions, and where they are back."""
    nodes, stop = scenario.nodes, scenario.interruption
    found = [Epoch(0.0, nodes)]
    if stop is None or stop.seconds == 0.0:
        return tuple(found)
    groups = [range(n, n + 1) for n in range(nodes)] if stop.rolling else [range(stop.nodes or nodes)]
    for turn, away in enumerate(groups):
        start = stop.at_seconds + turn * stop.seconds
        taken_over = stop.reassigned_after_seconds
        found.append(Epoch(start, nodes, away))
        if taken_over is not None and taken_over < stop.seconds and len(away) < nodes:
            found.append(Epoch(start + taken_over, nodes - len(away)))
    found.append(Epoch(stop.at_seconds + len(groups) * stop.seconds, nodes))
    # Of several that start at once only the last lasts.
    return tuple({epoch.start_seconds: epoch for epoch in found}.values())
