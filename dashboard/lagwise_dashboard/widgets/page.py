"""The frame of every page: a title, the switch that pauses it, and a body that refreshes itself."""

from collections.abc import Callable

import streamlit as st

from lagwise.domain import humanise
from lagwise_dashboard import address, context, escaping, identity
from lagwise_dashboard.widgets.error_boundary import boundary

LIVE = "live"
#: Whether the reader paused the pages: the switch itself is another one on every page.
_PAUSED = "paused"
#: Damaged files that are named.
_NAMED = 3
#: Letters of a wrong part of an address that are repeated.
_MAX_QUOTED_LENGTH = 60


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
        seconds = context.config().dashboard.refresh_seconds
        with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
            st.header(title, anchor=False, help=help_text, width="content")
            live = st.toggle(
                "Live",
                value=not st.session_state.get(_PAUSED, False),
                key=LIVE,
                on_change=_remember_pause,
                help=f"Refreshes every {seconds:g} s. Switch it off to keep what you see.",
            )
            identity.sign_out()

        _warn_of_ignored_parameters()

        def guarded() -> None:
            way, above = st.empty(), st.container()
            with boundary():
                body()
            # Damage is found while the page is made, and concerns all of it.
            with above, boundary():
                _show_damaged_files()
            address.sync_browser(way)

        st.fragment(guarded, run_every=seconds if live else None)()
        if below is not None:
            below()


def _warn_of_ignored_parameters() -> None:
    """Report what the address asks for and this page does not have: nothing replaces it silently."""
    sentences = []
    for one in address.ignored():
        texts = ", ".join(escaping.quoted(text, max_length=_MAX_QUOTED_LENGTH) for text in one.texts)
        if one.allowed is None:
            sentences.append(f"This page has no parameter {escaping.quoted(one.name, max_length=_MAX_QUOTED_LENGTH)}.")
        else:
            sentences.append(f"`{one.name}` must be {one.allowed}, not {texts}.")
    if sentences:
        st.warning("**Part of the address was ignored.** " + " ".join(sentences), icon=":material/link_off:")


def _remember_pause() -> None:
    st.session_state[_PAUSED] = not st.session_state[LIVE]


def _show_damaged_files() -> None:
    """Show which damaged files are left out of the page, if any are."""
    files = context.lake().left_out
    if not files:
        return
    rows = sum(one.rows or 0 for one in files)
    named = "; ".join(escaping.markdown(str(one)) for one in files[:_NAMED])
    more = f"; and {len(files) - _NAMED} more" if len(files) > _NAMED else ""
    what = humanise.plural(len(files), "damaged file")
    st.error(
        f"**{what} left out of the pages** ({humanise.plural(rows, 'row')}): {named}{more}. The next round of the "
        "analysis that reads a damaged file sets it aside; `lagwise doctor --repair` does so now.",
        icon=":material/broken_image:",
    )
