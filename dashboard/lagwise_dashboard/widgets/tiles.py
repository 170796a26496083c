"""Numbers side by side, in a strip that wraps where the window is narrow."""

from collections.abc import Sequence

import streamlit as st

from lagwise.domain import humanise
from lagwise_dashboard import escaping

#: Label, value as text (a dash where there is none) and explanation.
Tile = tuple[str, str, str | None]


def known(result: Sequence[Tile]) -> list[Tile]:
    """The tiles that have a value."""
    return [tile for tile in result if tile[1] != humanise.DASH]


def show(result: Sequence[Tile], *, name: str, missing_because: str | None = None) -> None:
    """Draw the tiles that have a value. The others are named below, where it is given why they are missing. ``name`` is
    its own on its page."""
    shown = known(result)
    if shown:
        with st.container(border=True, horizontal=True, gap="medium", key=f"tiles_{name}"):
            for label, value, explained in shown:
                st.metric(label, escaping.markdown(value), help=explained, width="content")
    missing = [label for label, value, _ in result if value == humanise.DASH]
    if missing and missing_because:
        st.caption(f"Unknown: {', '.join(missing)}; {missing_because}.")
