"""What somebody who opens a page wants to know first: of a group its verdict and its numbers, of all groups the
sentence, the strip and the table.

The first document asks for it at once, and shows it when it comes: before Streamlit's scripts have run and asked the
server for the page, which takes a second or two. It is made by the functions that the page is made by, and of the same
answers, which the page then finds in the cache. As soon as the page stands, it is gone (first_sight.js).
"""

import html
import json
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
from starlette.datastructures import Headers
from starlette.responses import HTMLResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send
from streamlit.web.server.starlette.starlette_websocket import is_host_allowed

from lagwise.links import pages, parameters
from lagwise.links.pages import Page
from lagwise.platform.errors import LagwiseError
from lagwise_dashboard import address, context, escaping, time_zone
from lagwise_dashboard.cache import ask
from lagwise_dashboard.pages.group import current_round, earlier_days, tabs, verdict
from lagwise_dashboard.pages.overview import fleet, fleet_strip, group_list, owners
from lagwise_dashboard.pages.overview.group_list import TITLE, ListStyle
from lagwise_dashboard.queries import group as group_queries
from lagwise_dashboard.queries import overview
from lagwise_dashboard.queries.overview import GroupFilters
from lagwise_dashboard.server import streamlit_options
from lagwise_dashboard.widgets import component, freshness, list_view, tiles, zone_choice
from lagwise_dashboard.widgets import page as frame

#: A title in plain text, and what stands below it, as HTML.
_Part = tuple[str, str]

#: Where the document asks for it, as seen from a page; a page's name and query follow.
_PATH = "_lagwise/first_sight"
#: So many are made at the same time.
_MOST_AT_ONCE = 8
_FOLDER = Path(__file__).resolve().parent
_SCRIPT = (_FOLDER / "first_sight.js").read_text(encoding="utf-8")
_STYLE = (_FOLDER / "first_sight.css").read_text(encoding="utf-8")


def elements(font: str, entry: str, elements: Sequence[str]) -> str:
    """What the document needs for it: a style sheet with the colours of both themes, and the script, which also starts
    Streamlit. The addresses are those of the ``font`` of text, of Streamlit's script (``entry``), and of the scripts of
    its ``elements``, which the first one is to be followed by."""
    options = streamlit_options.from_file(streamlit_options.installed_file())
    colours = {scheme: _colours(options, f"theme.{scheme}.") for scheme in ("light", "dark")}
    face = f'@font-face {{ font-family: "First sight"; font-weight: 200 900; src: url("{font}") format("woff2"); }}'
    values = json.dumps([_PATH, [page.path for page in _MAKERS], entry, list(elements)])
    given = f"const [PATH, PAGES, ENTRY, ELEMENTS] = {values};"
    return f"<style>{face}\n{_STYLE % colours}</style><script>(() => {{ {given}\n{_SCRIPT}}})();</script>"


def _colours(options: dict[str, Any], prefix: str) -> str:
    """The colours of a theme as declarations, by the names that Streamlit gives them in components."""
    named = {name.removeprefix(prefix): value for name, value in options.items() if name.startswith(prefix)}
    words = {"".join(f"-{c.lower()}" if c.isupper() else c for c in name): value for name, value in named.items()}
    return " ".join(f"--st-{name}: {value};" for name, value in words.items())


def path_of(name: str, query: str) -> str | None:
    """Where the document of the page of this name asks for its first sight; None where it has none, or a query that no
    browser would write so."""
    name = name or pages.OVERVIEW.path
    if all(page.path != name for page in _MAKERS) or set(query) & set("<>"):
        return None
    return f"{_PATH}/{name}" + (f"?{query}" if query else "")


class FirstSight:
    """Answers requests for the first sight of a page, which :func:`elements` make: HTML, or nothing where there is none
    or the page has something else to say first, about old data or errors, where one has to sign in, and while many are
    being made. Everything else is ``app``'s."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        # Not those that send files: a lake that does not answer would hold up the pages.
        self._threads = anyio.CapacityLimiter(_MOST_AT_ONCE)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request (ASGI)."""
        # A base path may stand in front.
        is_ours = scope["type"] == "http" and scope["method"] == "GET" and f"/{_PATH}/" in scope["path"]
        if not is_ours:
            await self._app(scope, receive, send)
            return
        name = scope["path"].rpartition("/")[2]
        made = ""
        if self._threads.available_tokens and is_host_allowed(Headers(scope=scope).get("host")):
            make = partial(_of, name, scope["query_string"].decode("latin-1"), context.now())
            made = await anyio.to_thread.run_sync(make, limiter=self._threads)
        headers = {"Cache-Control": "no-store"}
        await (HTMLResponse(made, headers=headers) if made else Response(status_code=204, headers=headers))(
            scope, receive, send
        )


def _of(name: str, query: str, now: datetime) -> str:
    """The first sight of the page of this name with this query (``a=1&b=2``); empty where there is none."""
    page = next((page for page in _MAKERS if page.path == name), None)
    if page is None or context.config().dashboard.sign_in is not None:
        return ""
    try:
        with address.asked_for(page, query):
            return _whole(_MAKERS[page], now)
    except LagwiseError:  # which the page reports, in full
        return ""


def _whole(make: Callable[[datetime], _Part | None], now: datetime) -> str:
    if address.get(parameters.TIME_ZONE) == zone_choice.BROWSER:  # which only a page is told
        return ""
    zone_choice.use()
    fresh = freshness.read(now)
    if address.ignored() or fresh.as_of is None or fresh.stale or fresh.starting or fresh.trouble:
        return ""
    found = make(now)
    if found is None or context.lake().left_out:
        return ""
    title, body = found
    as_of = time_zone.clock(fresh.as_of, now)
    notes = (
        f'<p class="note"><b>{html.escape(escaping.visible(cluster))}</b>: {html.escape(escaping.visible(note))}</p>'
        for cluster, note in frame.cluster_notes()
    )
    head = f'<div class="head"><h2>{html.escape(title)}</h2><b>Data as of {html.escape(as_of)}</b></div>'
    return "".join((head, *notes, body))


def _group(now: datetime) -> _Part | None:
    cluster, name = address.get(parameters.CLUSTER), address.get(parameters.GROUP)
    if not cluster or not name:
        return None
    snapshot = current_round.read(cluster, name, tabs.HISTORY)
    if snapshot is None:
        return None
    row = snapshot.group
    told = verdict.of(row, now, earlier_days.sentence(row, now))
    numbers = tiles.known(verdict.tiles_of(snapshot, ask(group_queries.description, cluster, name, row["as_of"])))
    return escaping.visible(name), "".join(
        (
            f'<p class="verdict {told.gravity}"><b>{html.escape(told.status)}</b> &nbsp; {html.escape(told.sentence)}',
            f"<br>{html.escape(told.since)}</p>",
            '<dl class="numbers">',
            *(f"<div><dt>{html.escape(label)}</dt><dd>{html.escape(value)}</dd></div>" for label, value, _ in numbers),
            "</dl>",
        )
    )


def _overview(now: datetime) -> _Part | None:
    cluster, text = address.get(parameters.CLUSTER) or None, address.get(parameters.SEARCH)
    among = owners.groups_of(address.get(parameters.OWNER))
    strip = fleet.of(cluster, text, among)
    wanted = GroupFilters(address.get(parameters.STATUS), cluster, among)
    style_of_list = ListStyle(now, len(ask(overview.clusters)) > 1, as_cards=False)
    asked = list_view.query(parameters.GROUP_LIST, style_of_list.page_rows)
    rows = ask(overview.groups, wanted, asked, quiet=None if wanted.statuses else False)
    if strip is None or not rows or address.get(parameters.SHOWN_AS) == "cards":
        return None
    return TITLE, "".join(
        (
            _component("fleet", fleet_strip.data_of(*strip), fleet_strip.height(*strip)),
            _component("table", group_list.table_data(parameters.GROUP_LIST, rows, style_of_list)),
        )
    )


def _component(name: str, data: dict[str, Any], height: int | None = None) -> str:
    """What the script of a component of ours draws, of the data that the page would give it."""
    written = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
    room = "" if height is None else f' style="height: {height}px"'
    return (
        f'<div class="{name}" data-script="./{component.path_of(name)}"{room}>'
        f'<script type="application/json">{written}</script></div>'
    )


_MAKERS: dict[Page, Callable[[datetime], _Part | None]] = {pages.OVERVIEW: _overview, pages.GROUP: _group}
