"""Scenarios side by side, as the columns of a table: what they ask, what they take, and what comes of the what-if."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from lagwise.domain import humanise
from lagwise.domain.humanise import significant
from lagwise.domain.simulation.fluid import SimulatedOutcome
from lagwise.domain.sizing.advice import SizingAdvice
from lagwise.domain.sizing.triple_search import largest_planned_rate_per_second
from lagwise_dashboard import escaping, tables
from lagwise_dashboard.report.advice_tables import BINDS, FormattedValue, formatted_inputs
from lagwise_dashboard.tables import TableColumn

_NOT_KNOWN = FormattedValue(humanise.DASH, None)


@dataclass(frozen=True, slots=True)
class ComparedScenario:
    """One column: what is asked, what it takes, and what the what-if comes to with that (None: not simulated)."""

    name: str
    advice: SizingAdvice
    outcome: SimulatedOutcome | None


def columns(compared: tuple[ComparedScenario, ...]) -> list[TableColumn]:
    """The table: the first column names the lines, then one for each scenario."""
    results = [_results(one) for one in compared]
    inputs = [formatted_inputs(one.advice.workload) for one in compared]
    # Where members are sized in one and nodes in another, each has inputs that the other has not.
    labels = dict.fromkeys(label for one in inputs for label in one)
    inputs = [{label: one.get(label, _NOT_KNOWN) for label in labels} for one in inputs]
    differ = [label for label in labels if len({one[label] for one in inputs}) > 1]
    lines = [*differ, *results[0]]
    values = [{**{label: a[label] for label in differ}, **s} for a, s in zip(inputs, results, strict=True)]
    headings = _headings([one.name for one in compared])
    return [
        tables.text("", lines),
        *(
            tables.mixed(heading, [v[line].raw for line in lines], [v[line].text for line in lines])
            for heading, v in zip(headings, values, strict=True)
        ),
    ]


def _headings(names: Iterable[str]) -> list[str]:
    """The names as they can be shown, made different where several read alike: an address is anybody's."""
    values: list[str] = []
    for name in names:
        shown = escaping.visible(name) or "unnamed"
        times = sum(heading == shown or heading.startswith(f"{shown} (") for heading in values)
        values.append(f"{shown} ({times + 1})" if times else shown)
    return values


def _results(one: ComparedScenario) -> dict[str, FormattedValue]:
    """What it takes and what comes of it."""
    advice, triple, outcome = one.advice, one.advice.triple, one.outcome
    values: dict[str, FormattedValue] = dict.fromkeys(
        ("Nodes", "Threads per node", "Threads in total", "Limited by", "Sufficient up to"), _NOT_KNOWN
    )
    values["Limited by"] = FormattedValue(BINDS[advice.binds], str(advice.binds))
    if triple is not None:
        values["Nodes"] = FormattedValue(_nodes(advice, triple.nodes), triple.nodes)
        if not advice.workload.by_members:
            values["Threads per node"] = FormattedValue(
                humanise.count(triple.threads_per_node), triple.threads_per_node
            )
        threads = triple.nodes * triple.threads_per_node
        values["Threads in total"] = FormattedValue(humanise.count(threads), threads)
        peak = largest_planned_rate_per_second(advice.workload, triple)
        values["Sufficient up to"] = FormattedValue(f"{significant(peak)}/s", peak)
    return values | _outcome(outcome)


def _outcome(outcome: SimulatedOutcome | None) -> dict[str, FormattedValue]:
    if outcome is None:
        return dict.fromkeys(("Lag, at most", "Oldest unread, at most", "Caught up after"), _NOT_KNOWN)
    drained = math.inf if outcome.drain_seconds is None else outcome.drain_seconds
    return {
        "Lag, at most": FormattedValue(humanise.count(outcome.peak_lag), outcome.peak_lag),
        "Oldest unread, at most": FormattedValue(humanise.duration(outcome.peak_lag_seconds), outcome.peak_lag_seconds),
        "Caught up after": FormattedValue("never" if drained == math.inf else humanise.duration(drained), drained),
    }


def _nodes(advice: SizingAdvice, nodes: int) -> str:
    return humanise.plural(nodes, advice.workload.unit) if advice.workload.by_members else humanise.count(nodes)
