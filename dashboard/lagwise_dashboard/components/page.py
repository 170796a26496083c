"""The frame of every page: a title, the switch that pauses it, and a body that refreshes itself."""

from collections.abc import Callable

import streamlit as st

from lagwise_dashboard import identity, settings
from lagwise_dashboard.components.boundary import boundary

LIVE = "live"
#: Kept beside the switch, which is another one on every page.
_PAUSED = "paused"


def show(
    title: str,
    body: Callable[[], None],
    *,
    below: Callable[[], None] | None = None,
    help_text: str | None = None,
    tab: str | None = None,
) -> None:
    """Draw a page. ``title`` is Markdown of our own making; ``body`` is run again at every refresh, and alone.

    ``below`` is what stands below the body and is not refreshed. ``tab`` names the browser's tab, in plain text, where
    that is not the title.

    Only the body is refreshed, never the whole page, so that an open dialog or a half-typed filter survives.
    """
    st.set_page_config(page_title=f"{tab or title} · Lagwise")
    with boundary():
        seconds = settings.config().dashboard.refresh_seconds
        with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
            st.header(title, anchor=False, help=help_text, width="content")
            live = st.toggle(
                "Live",
                value=not st.session_state.get(_PAUSED, False),
                key=LIVE,
                on_change=_remember,
                help=f"Looks for new data every {seconds:g} s. Switch it off to keep what you see.",
            )
            identity.sign_out()

        def guarded() -> None:
            with boundary():
                body()

        st.fragment(guarded, run_every=seconds if live else None)()
        if below is not None:
            below()


def _remember() -> None:
    st.session_state[_PAUSED] = not st.session_state[LIVE]
