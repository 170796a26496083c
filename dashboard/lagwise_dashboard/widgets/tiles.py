"""Numbers in boxes, side by side."""

from collections.abc import Iterator, Sequence

import streamlit as st

from lagwise.domain import humanise
from lagwise_dashboard import escaping

#: Label, value as text (a dash where there is none) and explanation.
Tile = tuple[str, str, str | None]


#: More boxes do not fit beside each other on a usual screen.
_MAX_PER_ROW = 10


def _rows(tiles: Sequence[Tile]) -> Iterator[Sequence[Tile]]:
    """Rows of about as many boxes each: one that is left over would be as wide as the page."""
    number = -(-len(tiles) // _MAX_PER_ROW)
    for row in range(number):
        yield tiles[row * len(tiles) // number : (row + 1) * len(tiles) // number]


def show(result: Sequence[Tile], *, missing_because: str | None = None) -> None:
    """Draw those that have a value. A box with a dash in it tells nothing: the others are named below, with why they
    are missing, where that is given."""
    shown = [tile for tile in result if tile[1] != humanise.DASH]
    for row in _rows(shown):
        with st.container(horizontal=True, gap="small"):
            for label, value, explained in row:
                st.metric(label, escaping.markdown(value), help=explained, border=True)
    missing = [label for label, value, _ in result if value == humanise.DASH]
    if missing and missing_because:
        st.caption(f"Unknown: {', '.join(missing)} ({missing_because}).")
