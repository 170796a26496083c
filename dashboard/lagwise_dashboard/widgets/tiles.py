"""Numbers in boxes, side by side."""

from collections.abc import Sequence

import streamlit as st

from lagwise.domain import humanise
from lagwise_dashboard import escaping

#: Label, value as text (a dash where there is none) and explanation.
Tile = tuple[str, str, str | None]
#: More boxes do not fit side by side on a usual screen.
_MAX_PER_ROW = 10


def show(result: Sequence[Tile], *, missing_because: str | None = None) -> None:
    """Draw the tiles that have a value, in rows of about the same length: a box alone would be as wide as the page.

    The others are named below, where it is given why they are missing.
    """
    shown = [tile for tile in result if tile[1] != humanise.DASH]
    rows = -(-len(shown) // _MAX_PER_ROW)
    for row in range(rows):
        with st.container(horizontal=True, gap="small"):
            for label, value, explained in shown[row * len(shown) // rows : (row + 1) * len(shown) // rows]:
                st.metric(label, escaping.markdown(value), help=explained, border=True)
    missing = [label for label, value, _ in result if value == humanise.DASH]
    if missing and missing_because:
        st.caption(f"Unknown: {', '.join(missing)} ({missing_because}).")
