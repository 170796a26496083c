"""The frame of every page: a title, how often it is refreshed, and a body that refreshes itself."""

from collections.abc import Callable

import streamlit as st

from lagwise.domain import humanise
from lagwise_dashboard import address, context, escaping, identity, time_zone, visibility
from lagwise_dashboard.widgets import browser_window, copy_link, freshness, refresh, saved_views, zone_choice
from lagwise_dashboard.widgets.error_boundary import boundary

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
        with st.container(
            horizontal=True, vertical_alignment="center", horizontal_alignment="distribute", key="page_head"
        ):
            with st.container(horizontal=True, vertical_alignment="center", gap="medium", width="content"):
                st.header(title, anchor=False, help=help_text, width="content")
                freshness.place()
            with st.container(horizontal=True, vertical_alignment="center", width="content"):
                saved_views.show()
                copy_link.show()
                seconds = refresh.choose()
                if not browser_window.is_narrow():  # else it stands beside the menu, where there is room
                    zone_choice.choose()
                identity.sign_out()

        _warn_of_ignored_parameters()
        for cluster, note in cluster_notes():
            st.caption(f":material/info: **{escaping.markdown(cluster)}**: {escaping.markdown(note)}")

        def guarded() -> None:
            zone_choice.use()  # a refresh runs this alone
            _show_on_paper()
            way, above = st.empty(), st.container()
            with boundary():
                body()
            # Damage is found while the page is made, and concerns all of it.
            with above, boundary():
                _show_damaged_files()
            address.sync_browser(way)

        st.fragment(guarded, run_every=seconds)()
        if below is not None:
            below()


def _show_on_paper() -> None:
    """What only paper shows: when the page was drawn. The browser adds its address as it prints (browser_window)."""
    with st.container(key="on_paper"):
        now = context.now()
        st.markdown(f"Drawn on {time_zone.local(now):%Y-%m-%d} at {time_zone.clock_markdown(now, now)}")


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


def cluster_notes() -> list[tuple[str, str]]:
    """What the settings say of the clusters that the page may show, by name: of the one it is limited to, or of all."""
    shown, seen = address.shown_cluster(), visibility.of_reader()
    notes = context.config().dashboard.cluster_notes
    return [
        (cluster, note) for cluster, note in notes.items() if shown in ("", cluster) and seen.shows_cluster(cluster)
    ]


def _show_damaged_files() -> None:
    """Show which damaged files are left out of the page, if any are."""
    files = visibility.lake().left_out
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
