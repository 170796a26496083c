"""Numbers in boxes, side by side."""

from collections.abc import Sequence

import streamlit as st

from lagwise.domain import humanise
from lagwise_dashboard import literal

#: Label, value as text (a dash where there is none) and explanation.
Tile = tuple[str, str, str | None]


def show(found: Sequence[Tile], *, missing_because: str | None = None) -> None:
    """Draw those that have a value. A box with a dash in it tells nothing: the others are named below, with why they
    are missing, where that is given."""
    with st.container(horizontal=True, gap="small"):
        for label, value, explained in found:
            if value != humanise.DASH:
                st.metric(label, literal.markdown(value), help=explained, border=True)
    missing = [label for label, value, _ in found if value == humanise.DASH]
    if missing and missing_because:
        st.caption(f"Not known: {', '.join(missing)} ({missing_because}).")
