"""What if all stand still, or every node is restarted: set-ups under the same load, and what comes of each."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from lagwise.domain.humanise import count, duration
from lagwise.domain.simulation.fluid import SimulatedOutcome, simulate
from lagwise.domain.simulation.scenario import Interruption, Scenario, Traffic
from lagwise.domain.sizing.advice import SizingAdvice
from lagwise.domain.sizing.group_workload import RunningNodes
from lagwise.domain.sizing.ranges import OutOfRange
from lagwise.domain.sizing.workload import Workload, nodes_and_threads

#: What happens begins after this, so that it is seen how it was before.
BEFORE_SECONDS = 300.0
RUNNING, ADVISED = "Running", "Advised"
_POINTS = 300
#: A line goes on for a while after everything is read, but no longer than a day.
_AFTER_DRAINED, _LONGEST_SHOWN_SECONDS = 1.05, 86_400.0
#: Above this a simulation of a rolling restart takes seconds: so many times all partitions are dealt out.
_MOST_DEALT = 200_000


@dataclass(frozen=True, slots=True)
class WhatIfSetUp:
    """Nodes with threads (or members, of one each), and what they are called."""

    name: str
    nodes: int
    threads_per_node: int

    def label(self, workload: Workload) -> str:
        """``Running: 3 nodes of 12 threads``, ``Advised: 4 members``."""
        return f"{self.name}: {nodes_and_threads(workload.unit, self.nodes, self.threads_per_node)}"


@dataclass(frozen=True, slots=True)
class WhatIf:
    """What was asked, and what came of it, each set-up by its label."""

    interruption: Interruption
    outcomes: tuple[tuple[str, SimulatedOutcome], ...]

    @property
    def question(self) -> str:
        """What was asked, as a sentence."""
        away = duration(self.interruption.seconds)
        if self.interruption.rolling:
            return f"One node after the other is away for {away}."
        return f"Nothing is read for {away}."


def outage(seconds: float) -> Interruption:
    """All nodes read nothing for a while."""
    return Interruption(at_seconds=BEFORE_SECONDS, seconds=seconds)


def rolling_restart(seconds: float) -> Interruption:
    """One node after the other is away, and the others read its partitions meanwhile."""
    return Interruption(at_seconds=BEFORE_SECONDS, seconds=seconds, rolling=True, reassigned_after_seconds=0.0)


def running_set_up(running: RunningNodes) -> WhatIfSetUp | None:
    """What runs; None where that is not known."""
    if not running.nodes or not running.threads_per_node:
        return None
    return WhatIfSetUp(RUNNING, running.nodes, running.threads_per_node)


def set_ups(advice: SizingAdvice, running: WhatIfSetUp | None) -> list[WhatIfSetUp]:
    """All that can be tried: what runs and what is advised, as far as they are known."""
    triple = advice.triple
    advised = None if triple is None else WhatIfSetUp(ADVISED, triple.nodes, triple.threads_per_node)
    return [one for one in (running, advised) if one is not None]


def try_set_ups(workload: Workload, tried: Sequence[WhatIfSetUp], interruption: Interruption) -> WhatIf:
    """What comes of each. Raises OutOfRange where one cannot be simulated."""
    scenarios = [scenario(workload, s, interruption) for s in tried]
    shown = _seconds_shown(scenarios)
    outcomes = tuple((s.label(workload), simulated(_until(shown, of))) for s, of in zip(tried, scenarios, strict=True))
    return WhatIf(interruption, outcomes)


def _seconds_shown(scenarios: Sequence[Scenario]) -> float:
    """Long enough to see the last backlog worked off, within a day: who compares lines looks for where they end."""
    ends = [of.traffic.seconds for of in scenarios]
    for outcome in map(simulated, scenarios):
        if outcome.drain_seconds is not None:
            drained = outcome.peak_lag_at_seconds + outcome.drain_seconds
            ends.append(min(drained * _AFTER_DRAINED, _LONGEST_SHOWN_SECONDS))
    return max(ends)


def _until(seconds: float, of: Scenario) -> Scenario:
    if seconds <= of.traffic.seconds:
        return of
    return replace(of, traffic=replace(of.traffic, seconds=seconds))


def scenario(workload: Workload, set_up: WhatIfSetUp, interruption: Interruption) -> Scenario:
    """The set-up under the rate that the workload plans for, until some time after what happens. Raises OutOfRange."""
    away = interruption.seconds * (set_up.nodes if interruption.rolling else 1)
    seconds = BEFORE_SECONDS + away + max(1_800.0, 2.0 * away)
    if interruption.rolling and set_up.nodes * workload.partitions > _MOST_DEALT:
        most = _MOST_DEALT // workload.partitions
        raise OutOfRange(f"{workload.unit}s", f"at most {most:,} here, one after the other", set_up.nodes)
    return Scenario(
        traffic=Traffic.constant(workload.planned_rate_per_second, seconds),
        t1_seconds=workload.t1_seconds,
        t2_seconds=workload.t2_seconds,
        cores=workload.cores,
        nodes=set_up.nodes,
        threads_per_node=set_up.threads_per_node,
        partitions=workload.partitions,
        hottest_share=workload.hottest_share,
        lag=workload.lag,
        concurrency=workload.concurrency,
        ordering=workload.ordering,
        interruption=interruption,
    )


def outcome_of(workload: Workload, set_up: WhatIfSetUp, interruption: Interruption) -> SimulatedOutcome | None:
    """What comes of it; None where it cannot be simulated."""
    try:
        return simulated(scenario(workload, set_up, interruption))
    except OutOfRange:
        return None


def outcome_sentence(outcome: SimulatedOutcome) -> str:
    """Peak lag and drain time, in a sentence or two."""
    if outcome.peak_lag <= 0.0:
        return "No lag worth speaking of."
    said = (
        f"The lag rises to {count(outcome.peak_lag)} messages, the oldest of them "
        f"{duration(outcome.peak_lag_seconds)} old."
    )
    if outcome.drain_seconds is None:
        return f"{said} It is never worked off: more arrives than this can do."
    return f"{said} {duration(outcome.drain_seconds)} later all is read."


@lru_cache(maxsize=64)
def simulated(of: Scenario) -> SimulatedOutcome:
    """What comes of a scenario. The same question is asked at every refresh of a page."""
    return simulate(of, of.traffic.seconds / _POINTS)
