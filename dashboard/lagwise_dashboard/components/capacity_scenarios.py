"""Scenarios side by side: kept ones and the one that stands above, what they ask and what they take.

A kept scenario is in the address, with every input: a link shows the comparison to somebody else, and it stays what it
was when the group changes.
"""

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any
from urllib.parse import quote, unquote

import streamlit as st

from lagwise.domain import humanise
from lagwise.domain.simulation.fluid import Outcome
from lagwise.domain.simulation.scenario import Interruption
from lagwise.domain.sizing.advice import SizingAdvice, advise
from lagwise.domain.sizing.search import largest_peak_per_second
from lagwise.domain.sizing.words import say_number
from lagwise.domain.sizing.workload import Concurrency, Ordering, Workload
from lagwise_dashboard import literal
from lagwise_dashboard.components import capacity_inputs, capacity_what_if, tables
from lagwise_dashboard.components.capacity_answer import BINDS
from lagwise_dashboard.components.capacity_what_if import SetUp

#: In the address, once for each kept scenario.
KEPT = "capacity_kept"
_NAME = "capacity_scenario_name"
#: More columns than these cannot be compared at a glance.
MOST_KEPT = 4
_LONGEST_NAME = 40
ABOVE = "As above"

_WHOLE = ("partitions", "spare_nodes", "max_threads_per_node")
_WORDS = {"concurrency": Concurrency, "ordering": Ordering}


@dataclass(frozen=True, slots=True)
class Scenario:
    """A name and what is asked. The name is anybody's."""

    name: str
    workload: Workload


@dataclass(frozen=True, slots=True)
class Compared:
    """One column: what is asked, what it takes, and what the what-if comes to with that (None: not simulated)."""

    name: str
    advice: SizingAdvice
    outcome: Outcome | None


def show(advice: SizingAdvice, interruption: Interruption) -> tuple[Compared, ...]:
    """Draw the scenarios; what was compared, which is nothing while none is kept."""
    st.subheader("Scenarios side by side", anchor=False)
    kept, unreadable = read(st.query_params.get_all(KEPT))
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.text_input(
            "Name",
            key=_NAME,
            max_chars=_LONGEST_NAME,
            placeholder=_free_name(kept),
            width=260,
            help="What the scenario above is to be called. A name that is there already is replaced.",
        )
        st.button(
            "Keep it for comparison",
            key="capacity_keep",
            icon=":material/bookmark_add:",
            on_click=_keep,
            args=(advice.workload, kept),
            disabled=len(kept) >= MOST_KEPT and (st.session_state.get(_NAME) or "") not in {s.name for s in kept},
        )
        for i, scenario in enumerate(kept):
            st.button(
                f"Forget {literal.markdown(scenario.name)}",
                key=f"capacity_forget_{i}",
                icon=":material/close:",
                on_click=_forget,
                args=(scenario.name, kept),
            )
    if unreadable:
        st.caption(f"{humanise.plural(unreadable, 'scenario')} in the link cannot be read, and is left out.")
    if not kept:
        st.caption("Keep what stands above, change an input, and compare: both go into the address.")
        return ()
    compared = tuple(
        _compared(name, one, interruption)
        for name, one in [(ABOVE, advice), *((s.name, advise(s.workload)) for s in kept)]
    )
    shown = columns(compared)
    st.dataframe(
        tables.table(shown),
        key="capacity_scenarios",
        hide_index=True,
        height=tables.height(len(shown[""])),
        row_height=tables.ROW_HEIGHT,
        alt="Scenarios in columns: inputs that differ, what they take, and what comes of the what-if",
    )
    st.caption("Of the inputs, those that differ. Lag and age are those of the what-if above, with what is advised.")
    return compared


def columns(compared: tuple[Compared, ...]) -> dict[str, list[str]]:
    """The table: the first column names, then one for each scenario."""
    said = [_said(one) for one in compared]
    asked = [capacity_inputs.spoken(one.advice.workload) for one in compared]
    differ = [label for label in asked[0] if len({one[label] for one in asked}) > 1]
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
        "Nodes": f"{triple.nodes:,}" if triple else dash,
        "Threads a node": f"{triple.threads_per_node:,}" if triple else dash,
        "Threads in all": f"{triple.nodes * triple.threads_per_node:,}" if triple else dash,
        "What binds": BINDS[advice.binds],
        "Good up to a peak of": f"{say_number(largest_peak_per_second(advice.workload, triple))}/s" if triple else dash,
        "Lag, at most": humanise.count(outcome.peak_lag) if outcome else dash,
        "Oldest unread, at most": humanise.duration(outcome.peak_lag_seconds) if outcome else dash,
        "All read again after": drained,
    }


def _compared(name: str, advice: SizingAdvice, interruption: Interruption) -> Compared:
    if advice.triple is None:
        return Compared(name, advice, None)
    advised = SetUp(name, advice.triple.nodes, advice.triple.threads_per_node)
    return Compared(name, advice, capacity_what_if.outcome_of(advice.workload, advised, interruption))


def written(scenario: Scenario) -> str:
    """The scenario as it stands in the address: its name and every input."""
    values = {f.name: getattr(scenario.workload, f.name) for f in fields(Workload)}
    told = [f"{name}={value!s}" for name, value in values.items() if value is not None]
    return ";".join([quote(scenario.name, safe=" "), *told])


def read(texts: Iterable[str]) -> tuple[list[Scenario], int]:
    """Scenarios of an address, no name twice, and how many of them cannot be read. An address is anybody's."""
    found: dict[str, Scenario] = {}
    unreadable = 0
    for text in texts:
        name, *told = text.split(";")
        try:
            values: dict[str, Any] = dict(_value(*one.split("=")) for one in told)
            scenario = Scenario(unquote(name)[:_LONGEST_NAME], Workload(**values))
        except (TypeError, ValueError, ArithmeticError):
            unreadable += 1
        else:
            found.setdefault(scenario.name, scenario)
    return list(found.values())[:MOST_KEPT], unreadable


def _value(name: str, text: str) -> tuple[str, object]:
    if name in _WORDS:
        return name, _WORDS[name](text)
    return name, int(text) if name in _WHOLE else float(text)


def _free_name(kept: list[Scenario]) -> str:
    taken = {scenario.name for scenario in kept}
    return next(name for i in range(1, MOST_KEPT + 2) if (name := f"Scenario {i}") not in taken)


def _keep(workload: Workload, kept: list[Scenario]) -> None:
    name = st.session_state[_NAME].strip() or _free_name(kept)
    _write([*(s for s in kept if s.name != name), Scenario(name, workload)])
    st.session_state[_NAME] = ""


def _forget(name: str, kept: list[Scenario]) -> None:
    _write([s for s in kept if s.name != name])


def _write(kept: list[Scenario]) -> None:
    if kept:
        st.query_params[KEPT] = [written(scenario) for scenario in kept]
    elif KEPT in st.query_params:
        del st.query_params[KEPT]
