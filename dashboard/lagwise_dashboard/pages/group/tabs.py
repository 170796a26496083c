"""The parts that the page of a group is cut into. Which one is shown stands in the address."""

from collections.abc import Mapping

import streamlit as st

from lagwise.links import parameters
from lagwise.links.parameters import GroupTab
from lagwise_dashboard import address

#: Plain words: Streamlit takes a member of an enum only where all options are of that enum.
HISTORY, PARTITIONS, MEMBERS, COMMANDS = _TABS = tuple(tab.value for tab in GroupTab)
_PARAMETERS = {
    PARTITIONS: (
        *parameters.PARTITION_LIST.parameters,
        parameters.PARTITION_STATUS,
        parameters.WITH_LAG,
        parameters.MEASURE,
    ),
    MEMBERS: parameters.MEMBER_LIST.parameters,
}


def shown() -> str:
    """The tab that the address asks for, or else the one whose list it filters: a link to a list needs no tab. That is
    written into the address, so that the tab stays when the filter goes."""
    if asked := address.get(parameters.TAB):
        return asked
    meant = (tab for tab, its in _PARAMETERS.items() if any(address.get(one) != one.default for one in its))
    result = next(meant, HISTORY)
    if result != HISTORY:
        address.change({parameters.TAB: result}, typed=True)
    return result


def choose(tab: str, counts: Mapping[str, int | None]) -> None:
    """Draw the tabs, of which one is shown, with how many rows each has where that is known."""

    def label(one: str) -> str:
        number = counts.get(one)
        return one.capitalize() if number is None else f"{one.capitalize()} {number:,}"

    st.segmented_control(
        "Part of the page",
        _TABS,
        format_func=label,
        label_visibility="collapsed",
        **address.bound(parameters.TAB, empty=tab, required=True),
    )
