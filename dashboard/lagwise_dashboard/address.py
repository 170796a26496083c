"""The address of what is on the screen: it holds everything that was chosen, and it is the only place that does.

A widget shows what the address says. What a reader chooses is written into the address, which makes a step of the
browser's history, and then the page is drawn anew. So a reload, a link and the Back button all show the same.

Streamlit writes ``st.query_params`` as a new step of the history. To replace the present one, which typing does, it has
no call: that is done in the browser by a component (:func:`sync_browser`). Other pages are opened by
links: ``st.switch_page`` makes two steps, of which the first is the old page with the new page's query.
"""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import parse_qs

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.runtime.state.common import user_key_from_element_id

from lagwise.links import pages, parameters
from lagwise.links.pages import Ignored, Page, Values
from lagwise.links.parameter_types import Parameter

T = TypeVar("T")
Texts = dict[str, list[str]]

_PAGES = Path(__file__).resolve().parent / "pages"
_PAGE = "address_page"
#: What was typed and does not stand in the address yet, by name.
_TYPED = "address_typed"
#: The controls that were sent a value which the browser has not reported yet, by key.
_SENT = "address_sent"
#: The last choice that was written into the address.
_WRITTEN = "address_written"
#: For so long after a run that knew of the last choice, the browser may ask for one with the query from before it.
_HEARD_WITHIN_SECONDS = 2.0
#: More choices than this are not made within that time.
_MAX_EARLIER = 5

_SYNC_SCRIPT = """
export default ({ data }) => {
    const [query, before] = [data.query, data.before].map((text) => new URL("?" + text, location).search);
    // A browser that is busy gets here late, when a later choice may stand in the address already.
    if (query === location.search || before !== location.search) return;
    history.replaceState({}, "", location.pathname + query);
    // Streamlit follows the browser's history, whoever moves in it.
    dispatchEvent(new PopStateEvent("popstate", { state: {} }));
};
"""


@dataclass(frozen=True, slots=True)
class _Written:
    """A choice that was written into the address of a page: its query afterwards, and those ``before`` that the browser
    may still have: several after choices in quick succession. ``seen_at`` is when a run last knew of the choice, in
    seconds of the monotonic clock."""

    page: str
    before: tuple[Texts, ...]
    after: Texts
    seen_at: float


#: The page and the query of what is made outside of a run.
_asked_for: ContextVar[tuple[Page, Texts] | None] = ContextVar("asked_for", default=None)


@contextmanager
def asked_for(page: Page, query: str) -> Iterator[None]:
    """In this block, which is no run of a page, the address is that of ``page`` with this query (``a=1&b=2``)."""
    token = _asked_for.set((page, parse_qs(query, keep_blank_values=True)))
    try:
        yield
    finally:
        _asked_for.reset(token)


def set_current_page(page: Page) -> None:
    """Say which page is being drawn. What was typed on another one, and is not in its address yet, stays there."""
    before: Page | None = st.session_state.get(_PAGE)
    if before is not None and before.path != page.path:
        st.session_state.pop(_TYPED, None)
    st.session_state[_PAGE] = page


def current_page() -> Page:
    """The page that is being drawn."""
    asked = _asked_for.get()
    page: Page = st.session_state[_PAGE] if asked is None else asked[0]
    return page


def get(parameter: Parameter[T]) -> T:
    """What the address says; the default where it says nothing, or something that cannot be."""
    return _read(parameter, _texts())


def _read(parameter: Parameter[T], texts: Texts) -> T:
    try:
        return parameter.read(texts.get(parameter.name, []))
    except ValueError:
        return parameter.default


def shown_cluster() -> str:
    """The cluster that the page is limited to; empty where it shows all. Every page keeps the address's cluster for the
    others; only some are limited to it."""
    return get(parameters.CLUSTER) if parameters.CLUSTER in current_page().uses else ""


def ignored() -> list[Ignored]:
    """What the address says and the page cannot use."""
    return pages.ignored(current_page(), _texts())


def change(values: Values, *, typed: bool = False) -> None:
    """Write what was chosen into the address, and draw the whole page anew. To be called in a callback; if ``typed``,
    also while the page is drawn.

    It is a new step of the browser's history, or if it is ``typed`` letter by letter still the same.
    Lists whose rows follow from what was chosen start again at their first page. What the page cannot use goes.
    """
    values = dict.fromkeys(current_page().restarted(values)) | dict(values)
    chosen = {parameter.name: parameter.written(value) for parameter, value in values.items()}
    unusable = {one.name for one in ignored()}
    texts = {name: given for name, given in _texts().items() if name not in unusable} | chosen
    texts = {name: given for name, given in texts.items() if given}
    before = _texts()
    if texts == before:
        return
    if typed:
        st.session_state[_TYPED] = st.session_state.get(_TYPED, {}) | chosen
        return
    st.session_state.pop(_TYPED, None)
    # It is still here if the browser may not have heard of it.
    last: _Written | None = st.session_state.get(_WRITTEN)
    earlier = (*(last.before if last else ()), before)[-_MAX_EARLIER:]
    st.session_state[_WRITTEN] = _Written(current_page().path, earlier, texts, time.monotonic())
    st.query_params.from_dict(texts)
    st.rerun()


def bound(
    parameter: Parameter[Any],
    *,
    empty: Any = None,
    options: Sequence[Any] | None = None,
    resets: Sequence[Parameter[Any]] = (),
    required: bool = False,
    typed: bool = False,
) -> dict[str, Any]:
    """Arguments for a widget that shows what the address says, and writes what is chosen into it.

    ``empty`` is what the widget holds where the address says nothing and there is no default, or something that is none
    of the ``options``. Another choice takes the ``resets`` out of the address. ``required`` is for controls that always
    hold a choice. ``typed`` is for what changes letter by letter.
    """
    key = parameter.name
    value = get(parameter)
    shown: Any = list(value) if isinstance(value, tuple) else value
    if shown in ("", None) or (options is not None and shown not in options):
        shown = empty
    fill(key, shown)

    def chosen() -> None:
        given = st.session_state[key]
        if required and given is None:
            # No reader can choose nothing here. A browser reports it that was not sent the value yet. The next drawing
            # sends it again.
            return
        value = tuple(given) if isinstance(given, list) else given
        if not typed and _is_from_before_typing(parameter, value):
            return
        change(dict.fromkeys(resets) | {parameter: value}, typed=typed)

    return {"key": key, "on_change": chosen} | ({"required": True} if required else {})


def fill(key: str, shown: Any) -> None:
    """Let a control show a value, and send it with every run until the browser has reported it.

    Streamlit sends a value once, and drops what a run has not sent yet when another run begins. The browser would then
    draw the control empty, and report it empty with the next run, as if the reader had emptied it.
    """
    sent: set[str] = st.session_state.setdefault(_SENT, set())
    if key not in st.session_state or st.session_state[key] != shown:
        sent.add(key)
        st.session_state[key] = shown
    elif key in sent:
        if key in _reported():
            sent.discard(key)
        else:
            st.session_state[key] = shown


def query() -> str:
    """The query of what is on the screen, without what the page cannot use."""
    unusable = {one.name for one in ignored()}
    return pages.query_string({name: given for name, given in _texts().items() if name not in unusable})


def link_parameters(page: Page, values: Values | None = None) -> Texts:
    """The query of a link to another page: these values, and what is looked at here."""
    (result,) = _link_parameters(page, [values or {}])
    return result


def page_link(
    page: Page, label: str, *, icon: str | None = None, values: Values | None = None, opens: st.Page | None = None
) -> None:
    """A link to a page of the dashboard that keeps what is looked at. ``opens`` is the page as Streamlit serves it,
    where it is not the one at its own path."""
    st.page_link(opens or script(page), label=label, icon=icon, query_params=link_parameters(page, values))


def script(page: Page) -> str:
    """The file that draws a page."""
    return str(_PAGES / page.path / f"{page.path}.py")


def href(page: Page, values: Values | None = None) -> str:
    """The address of a link within the dashboard, which keeps what the page shows. It is relative: all pages are in one
    folder."""
    (result,) = hrefs(page, [values or {}])
    return result


def hrefs(page: Page, each: Iterable[Values]) -> list[str]:
    """The addresses of many links to one page; what is looked at here is read once."""
    queries = [pages.query_string(texts) for texts in _link_parameters(page, each)]
    return [f"{page.path}?{query}" if query else page.path for query in queries]


def group_links(rows: Iterable[Mapping[str, Any]], page: Page = pages.GROUP, *, with_topic: bool = False) -> list[str]:
    """For each row with a cluster and a group the address of the group's page, or of another page about it, and
    ``with_topic`` about the row's topic."""
    return hrefs(
        page,
        (
            {
                parameters.CLUSTER: row["cluster"],
                parameters.GROUP: row["group"],
                parameters.TOPIC: row["topic"] if with_topic else None,
            }
            for row in rows
        ),
    )


def sync_browser(place: Any) -> None:
    """Let the browser's address say what was typed, in every run until it does: Streamlit drops what a run has not sent
    when another begins. It changes nothing in an address that is not this run's any more: the next run sends it again.
    ``place`` is always the same spot of the page."""
    wanted = query()
    if st.session_state.get(_TYPED):
        with place:
            st.components.v2.component("lagwise_address", js=_SYNC_SCRIPT)(
                data={"query": wanted, "before": _query_of_browser()}, key="address", height=1
            )


def _query_of_browser() -> str:
    """The query as the browser wrote it into this run's request, or as this run has let it write it."""
    run = get_script_run_ctx()
    return run.query_string if run else ""


def _is_from_before_typing(parameter: Parameter[T], value: T) -> bool:
    """Whether a control reports what it held before something was typed that has set it back: the browser has not heard
    of that yet."""
    return parameter.name in st.session_state.get(_TYPED, {}) and parameter.written(value) == st.query_params.get_all(
        parameter.name
    )


def _reported() -> set[str | None]:
    """The keys of the controls whose values the browser sent with this run's request."""
    run = get_script_run_ctx()
    return {user_key_from_element_id(state.id) for state in run.session_state.get_widget_states()} if run else set()


def _link_parameters(page: Page, each: Iterable[Values]) -> list[Texts]:
    """The queries of links to another page, each with its values and what is looked at here."""
    texts = _texts()  # which takes longer than to read them
    looked_at = {p.name: p.written(_read(p, texts)) for p in parameters.KEPT}
    known = page.parameters
    result = []
    for values in each:
        of_link = looked_at | {p.name: p.written(value) for p, value in values.items()}
        result.append({name: given for name, given in of_link.items() if given and name in known})
    return result


def _texts() -> Texts:
    """The query, with what was chosen or typed just now."""
    asked = _asked_for.get()
    if asked is not None:
        return asked[1]
    texts = _with_last_choice({name: list(st.query_params.get_all(name)) for name in st.query_params})
    typed: Mapping[str, list[str]] = st.session_state.get(_TYPED, {})
    if typed and all(texts.get(name, []) == given for name, given in typed.items()):
        del st.session_state[_TYPED]
    return {name: given for name, given in {**texts, **typed}.items() if given}


def _with_last_choice(texts: Texts) -> Texts:
    """The query, as the browser will have it once it has heard of the last choice.

    Until then it may ask for a run with the query from before. Controls that were told their old values in it would
    report them, and so undo the choice.
    """
    written: _Written | None = st.session_state.get(_WRITTEN)
    if written is None:
        return texts
    now = time.monotonic()
    is_over = now - written.seen_at > _HEARD_WITHIN_SECONDS or written.page != current_page().path
    if is_over or _is_back_or_forward() or texts not in (*written.before, written.after):
        del st.session_state[_WRITTEN]
        return texts
    if texts == written.after:
        st.session_state[_WRITTEN] = replace(written, seen_at=now)
    return dict(written.after)


def _is_back_or_forward() -> bool:
    """Whether a step in the browser's history asked for this run."""
    run = get_script_run_ctx()
    return run is not None and run.is_history_navigation
