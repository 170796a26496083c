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
from lagwise.domain.simulation.scenario import Interruption
from lagwise.domain.simulation.what_if import WhatIfSetUp, outcome_of
from lagwise.domain.sizing.advice import SizingAdvice, advise
from lagwise.domain.sizing.workload import Concurrency, Ordering, SizeBy, Unit, Workload
from lagwise.links import parameters
from lagwise_dashboard import address, escaping
from lagwise_dashboard.report.scenarios import ComparedScenario, columns
from lagwise_dashboard.widgets import grid

_NAME = "capacity_scenario_name"
#: More columns than these cannot be compared at a glance.
MAX_SAVED = 4
_MAX_NAME_LENGTH = 40
CURRENT = "Current"

_WHOLE = ("partitions", "spare_nodes", "max_threads_per_node")
_WORDS = {"concurrency": Concurrency, "ordering": Ordering, "unit": Unit, "size_by": SizeBy}


@dataclass(frozen=True, slots=True)
class SavedScenario:
    """A name and what is asked. The name is anybody's."""

    name: str
    workload: Workload


def show(advice: SizingAdvice, interruption: Interruption) -> tuple[ComparedScenario, ...]:
    """Draw the scenarios; what was compared, which is nothing while none is kept."""
    st.subheader("Scenarios side by side", anchor=False)
    texts = address.get(parameters.SCENARIO)
    saved, unreadable = from_texts(texts)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.text_input(
            "Name",
            key=_NAME,
            max_chars=_MAX_NAME_LENGTH,
            placeholder=_free_name(saved),
            width=260,
            help="The name of the current scenario. Saving under an existing name replaces it.",
        )
        st.button(
            "Save for comparison",
            key="capacity_keep",
            icon=":material/bookmark_add:",
            on_click=_save,
            args=(advice.workload, saved),
            disabled=len(saved) >= MAX_SAVED and (st.session_state.get(_NAME) or "") not in {s.name for s in saved},
        )
        for i, scenario in enumerate(saved):
            st.button(
                f"Remove {escaping.quoted(scenario.name, max_length=_MAX_NAME_LENGTH)}",
                key=f"capacity_forget_{i}",
                icon=":material/close:",
                on_click=_remove,
                args=(scenario.name, saved),
            )
    if unreadable:
        st.caption(f"{humanise.plural(unreadable, 'scenario')} in the link could not be read and was ignored.")
    if not saved:
        st.caption("Save the current scenario, change an input, and compare. The address holds both.")
        return ()
    compared = tuple(
        _compared(name, one, interruption)
        for name, one in [(CURRENT, advice), *((s.name, _advice(s.workload, advice)) for s in saved)]
    )
    grid.show(
        columns(compared),
        name="scenarios",
        label="Scenarios in columns: inputs that differ, what they take, and the what-if result",
    )
    st.caption("Only inputs that differ are listed. Lag and age come from the what-if above, with the advised set-up.")
    return compared


def _advice(workload: Workload, above: SizingAdvice) -> SizingAdvice:
    """The advice to a scenario. It has the downstream of what stands above unless it assumes another T1."""
    is_same = workload.t1_seconds == above.workload.t1_seconds
    return advise(workload, above.downstream if is_same else None)


def _compared(name: str, advice: SizingAdvice, interruption: Interruption) -> ComparedScenario:
    if advice.triple is None:
        return ComparedScenario(name, advice, None)
    advised = WhatIfSetUp(name, advice.triple.nodes, advice.triple.threads_per_node)
    return ComparedScenario(name, advice, outcome_of(advice.workload, advised, interruption))


def as_text(scenario: SavedScenario) -> str:
    """The scenario as it stands in the address: its name and every input."""
    values = {f.name: getattr(scenario.workload, f.name) for f in fields(Workload)}
    pairs = [f"{name}={value!s}" for name, value in values.items() if value is not None]
    return ";".join([quote(scenario.name, safe=" "), *pairs])


def from_texts(texts: Iterable[str]) -> tuple[list[SavedScenario], int]:
    """Scenarios of an address, no name twice, and how many of them cannot be read. An address is anybody's."""
    result: dict[str, SavedScenario] = {}
    unreadable = 0
    for text in texts:
        name, *pairs = text.split(";")
        try:
            values: dict[str, Any] = dict(_value(*one.split("=")) for one in pairs)
            scenario = SavedScenario(unquote(name)[:_MAX_NAME_LENGTH], Workload(**values))
        except (TypeError, ValueError, ArithmeticError):
            unreadable += 1
        else:
            result.setdefault(scenario.name, scenario)
    return list(result.values())[:MAX_SAVED], unreadable


def _value(name: str, text: str) -> tuple[str, object]:
    if name in _WORDS:
        return name, _WORDS[name](text)
    return name, int(text) if name in _WHOLE else float(text)


def _free_name(saved: list[SavedScenario]) -> str:
    taken = {scenario.name for scenario in saved}
    return next(name for i in range(1, MAX_SAVED + 2) if (name := f"Scenario {i}") not in taken)


def _save(workload: Workload, saved: list[SavedScenario]) -> None:
    name = st.session_state[_NAME].strip() or _free_name(saved)
    st.session_state[_NAME] = ""
    _save_to_address([*(s for s in saved if s.name != name), SavedScenario(name, workload)])


def _remove(name: str, saved: list[SavedScenario]) -> None:
    _save_to_address([s for s in saved if s.name != name])


def _save_to_address(saved: list[SavedScenario]) -> None:
    address.change({parameters.SCENARIO: tuple(as_text(scenario) for scenario in saved)})
