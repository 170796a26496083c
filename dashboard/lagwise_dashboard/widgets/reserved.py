"""Room for what a script of ours draws: nothing is there until it has run, and whatever stands below would jump when it
does."""

from collections.abc import Iterator
from contextlib import contextmanager

import streamlit as st


@contextmanager
def room(key: str, height: int) -> Iterator[None]:
    """What is drawn in this block gets a room of this height, in pixels, or more if it is higher itself: ``height`` is
    the least that it will need. ``key`` is its own on its page."""
    with st.container(key=f"room_{key}"):
        st.space(height)
        yield
