"""The address of what is on the screen: it holds everything that was chosen, and it is the only place that does.

A widget shows what the address says. What a reader chooses is written into the address, which makes a step of the
browser's history, and then the page is drawn anew. So a reload, a link and the Back button all show the same.

Streamlit writes ``st.query_params`` as a new step of the history. To replace the present one, which typing does, it has
no call: that is done in the browser by a component (:func:`sync_browser`). Other pages are opened by
links: ``st.switch_page`` makes two steps, of which the first is the old page with the new page's query.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import streamlit as st

from lagwise.links import pages, parameters
from lagwise.links.pages import Ignored, Page, Values
from lagwise.links.parameter_types import Parameter

T = TypeVar("T")
Texts = dict[str, list[str]]

_PAGES = Path(__file__).resolve().parent / "pages"
_PAGE = "address_page"
#: The query that the present step of the history is to have: written by a callback, done at the next drawing.
_QUERY_TO_SET = "address_replaced"
#: What was typed and does not stand in the address yet, by name.
_TYPED = "address_typed"

_SYNC_SCRIPT = """
export default ({ data }) => {
    const query = data.query ? "?" + data.query : "";
    if (query === location.search) return;
    history.replaceState({}, "", location.pathname + query);
    // Streamlit follows the browser's history, whoever moves in it.
    dispatchEvent(new PopStateEvent("popstate", { state: {} }));
};
"""


def set_current_page(page: Page) -> None:
    """Say which page is being drawn."""
    st.session_state[_PAGE] = page


def current_page() -> Page:
    """The page that is being drawn."""
    page: Page = st.session_state[_PAGE]
    return page


def get(parameter: Parameter[T]) -> T:
    """What the address says; the default where it says nothing, or something that cannot be."""
    texts = _texts().get(parameter.name, [])
    try:
        return parameter.read(texts)
    except ValueError:
        return parameter.default


def ignored() -> list[Ignored]:
    """What the address says and the page cannot use."""
    return pages.ignored(current_page(), _texts())


def change(values: Values, *, replace: bool = False) -> None:
    """Write what was chosen into the address, and draw the whole page anew. To be called in a callback.

    It is a new step of the browser's history, or with ``replace`` (for what is typed letter by letter) still the same.
    Lists whose rows follow from what was chosen start again at their first page. What the page cannot use goes.
    """
    values = dict.fromkeys(current_page().restarted(values)) | dict(values)
    chosen = {parameter.name: parameter.written(value) for parameter, value in values.items()}
    unusable = {one.name for one in ignored()}
    texts = {name: given for name, given in _texts().items() if name not in unusable} | chosen
    texts = {name: given for name, given in texts.items() if given}
    if texts == _texts():
        return
    if replace:
        st.session_state[_TYPED] = chosen
        st.session_state[_QUERY_TO_SET] = pages.query_string(texts)
        return
    st.session_state.pop(_TYPED, None)
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
    if key not in st.session_state or st.session_state[key] != shown:
        st.session_state[key] = shown

    def chosen() -> None:
        given = st.session_state[key]
        if required and given is None:
            # No reader can choose nothing here. A browser reports it that has not been told the value yet, as after a
            # run with a query from before the last choice. The next drawing tells it again.
            return
        value = tuple(given) if isinstance(given, list) else given
        change(dict.fromkeys(resets) | {parameter: value}, replace=typed)

    return {"key": key, "on_change": chosen} | ({"required": True} if required else {})


def link_parameters(page: Page, values: Values | None = None) -> Texts:
    """The query of a link to another page: these values, and what is looked at here."""
    texts = {p.name: p.written(get(p)) for p in parameters.KEPT} | {
        p.name: p.written(v) for p, v in (values or {}).items()
    }
    return {name: given for name, given in texts.items() if given and name in page.parameters}


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
    result = pages.query_string(link_parameters(page, values))
    return f"{page.path}?{result}" if result else page.path


def group_links(rows: Iterable[Mapping[str, Any]], page: Page = pages.GROUP) -> list[str]:
    """For each row with a cluster and a group the address of the group's page, or of another page about it."""
    return [
        href(page, {parameters.CLUSTER: row["cluster"], parameters.GROUP: row["group"], parameters.TOPIC: None})
        for row in rows
    ]


def sync_browser(place: Any) -> None:
    """Let the browser's address say what was typed, if something was; ``place`` is always the same spot of the page."""
    result = st.session_state.pop(_QUERY_TO_SET, None)
    if result is not None:
        with place:
            st.components.v2.component("lagwise_address", js=_SYNC_SCRIPT)(
                data={"query": result}, key="address", height=1
            )


def _texts() -> Texts:
    """The query, with what was typed just now."""
    texts = {name: list(st.query_params.get_all(name)) for name in st.query_params}
    typed: Mapping[str, list[str]] = st.session_state.get(_TYPED, {})
    if typed and all(texts.get(name, []) == given for name, given in typed.items()):
        del st.session_state[_TYPED]
    return texts | dict(typed)
