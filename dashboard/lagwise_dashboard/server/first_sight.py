"""What somebody who opens a page wants to know first: of a group its verdict and its numbers, of all groups the
sentence, the strip and the table.

The first document asks for it at once, and shows it when it comes: before Streamlit's scripts have run and asked the
server for the page, which takes a second or two. As soon as the page stands, it is gone (first_sight.js).
"""

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
from starlette.datastructures import Headers
from starlette.responses import HTMLResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send
from streamlit.web.server.starlette.starlette_websocket import is_host_allowed

from lagwise.links import pages
from lagwise_dashboard import context
from lagwise_dashboard.server import streamlit_options

#: The pages that have one; the first is also at the root.
_PAGES = (pages.OVERVIEW, pages.GROUP)
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
    values = json.dumps([_PATH, [page.path for page in _PAGES], entry, list(elements)])
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
    if all(page.path != name for page in _PAGES) or set(query) & set("<>"):
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
            make = partial(_of, name, scope["query_string"].decode("latin-1"))
            made = await anyio.to_thread.run_sync(make, limiter=self._threads)
        headers = {"Cache-Control": "no-store"}
        await (HTMLResponse(made, headers=headers) if made else Response(status_code=204, headers=headers))(
            scope, receive, send
        )


def _of(name: str, query: str) -> str:
    """The first sight of the page of this name with this query; empty where there is none."""
    # It brings the pages along, whose caches complain where Streamlit does not run yet.
    from lagwise_dashboard.server import first_sight_content

    page = next((page for page in _PAGES if page.path == name), None)
    return "" if page is None else first_sight_content.of(page, query, context.now())
