"""Scenarios side by side, as the columns of a table: what they ask, what they take, and what comes of the what-if."""

from collections.abc import Iterable
from dataclasses import dataclass

from lagwise.domain import humanise
from lagwise.domain.simulation.fluid import Outcome
from lagwise.domain.sizing.advice import SizingAdvice
from lagwise.domain.sizing.search import largest_peak_per_second
from lagwise.domain.sizing.words import say_number
from lagwise_dashboard import literal
from lagwise_dashboard.report.asked import spoken
from lagwise_dashboard.report.figures import BINDS


@dataclass(frozen=True, slots=True)
class Compared:
    """One column: what is asked, what it takes, and what the what-if comes to with that (None: not simulated)."""

    name: str
    advice: SizingAdvice
    outcome: Outcome | None


def columns(compared: tuple[Compared, ...]) -> dict[str, list[str]]:
    """The table: the first column names, then one for each scenario."""
    said = [_said(one) for one in compared]
    asked = [spoken(one.advice.workload) for one in compared]
    # Where members are sized in one and nodes in another, each has inputs that the other has not.
    labels = dict.fromkeys(label for one in asked for label in one)
    asked = [{label: one.get(label, humanise.DASH) for label in labels} for one in asked]
    differ = [label for label in labels if len({one[label] for one in asked}) > 1]
    lines = [*differ, *said[0]]
    values = [{**{label: a[label] for label in differ}, **s} for a, s in zip(asked, said, strict=True)]
    headings = _headings([one.name for one in compared])
    return {"": lines, **{name: [v[line] for line in lines] for name, v in zip(headings, values, strict=True)}}


def _headings(names: Iterable[str]) -> list[str]:
    """The names as they can be shown, made different where several read alike: an address is anybody's."""
    found: list[str] = []
    for name in names:
        shown = literal.shown(name) or "unnamed"
        times = sum(heading == shown or heading.startswith(f"{shown} (") for heading in found)
        found.append(f"{shown} ({times + 1})" if times else shown)
    return found


def _said(one: Compared) -> dict[str, str]:
    """What it takes and what comes of it."""
    advice, triple, outcome = one.advice, one.advice.triple, one.outcome
    dash = humanise.DASH
    drained = dash
    if outcome is not None:
        drained = "never" if outcome.drain_seconds is None else humanise.duration(outcome.drain_seconds)
    return {
        "Nodes": _nodes(advice, triple.nodes) if triple else dash,
        "Threads a node": f"{triple.threads_per_node:,}" if triple and not advice.workload.by_members else dash,
        "Threads in all": f"{triple.nodes * triple.threads_per_node:,}" if triple else dash,
        "What binds": BINDS[advice.binds],
        "Good up to a peak of": f"{say_number(largest_peak_per_second(advice.workload, triple))}/s" if triple else dash,
        "Lag, at most": humanise.count(outcome.peak_lag) if outcome else dash,
        "Oldest unread, at most": humanise.duration(outcome.peak_lag_seconds) if outcome else dash,
        "All read again after": drained,
    }


def _nodes(advice: SizingAdvice, nodes: int) -> str:
    return humanise.plural(nodes, advice.workload.unit) if advice.workload.by_members else f"{nodes:,}"
