"""What stands between Streamlit's server and the network: headers on every answer, compressed scripts, those of our own
components, and where old addresses lead.

Streamlit sends its scripts as they are, because compressing them for every request would cost more than it saves, and
leaves the rest to a proxy. The dashboard is mostly used without one, often through a VPN: so each file is compressed
once, soon after the server has started or when it is first asked for, and kept in memory (7 MB for all).

What Streamlit offers for the scripts of components was not taken: it finds them by the metadata of an installed
package, which a checkout does not have, and adds a script to the page with every drawing.
"""

import gzip
import re
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

import streamlit as st
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit import file_util

from lagwise.links import pages
from lagwise_dashboard.server.first_sight import FirstSight
from lagwise_dashboard.server.start_document import StartDocument
from lagwise_dashboard.widgets import component

#: No other site frames the pages (a click there could press a button here), browsers do not guess what a file is, and
#: links to other sites do not reveal the page's address, which names groups.
HEADERS = {
    "X-Frame-Options": "DENY",
    "Content-Security-Policy": "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
}
_STYLE = Path(__file__).resolve().parent.parent / "assets" / "page.css"
#: What is worth compressing, and what it is; the machine's own table of types may be anything.
_MEDIA_TYPES = {".css": "text/css", ".js": "text/javascript", ".json": "application/json", ".svg": "image/svg+xml"}
#: Anything smaller fits into one packet as it is.
_SMALLEST_BYTES = 1000
_GZIP_LEVEL = 6


class DashboardApp(st.App):
    """Streamlit's app of the pages, with :data:`HEADERS` on every answer, and :class:`CompressedFiles`,
    :class:`FirstSight` and :class:`StartDocument` in front."""

    def __init__(self, page: Path) -> None:
        super().__init__(page)
        folder = Path(file_util.get_static_dir())
        style = _STYLE.read_text(encoding="utf-8")
        self.files = CompressedFiles(FirstSight(StartDocument(super().__call__, folder, style)), folder)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request (ASGI)."""

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        answer = _redirect(scope) or self.files
        await answer(scope, receive, with_headers)


def _redirect(scope: Scope) -> Response | None:
    """To the page that an address of an earlier version leads to; None where it is no such address."""
    if scope["type"] != "http" or scope["method"] not in ("GET", "HEAD"):
        return None
    name = scope["path"].rpartition("/")[2]  # a base path may stand in front
    target = pages.moved(name, scope["query_string"].decode("latin-1"))
    # Relative: a whole path could begin with two slashes, which lead to another host.
    return None if target is None else RedirectResponse(target)


class CompressedFiles:
    """Answers requests for what lies in ``folder/static``, and for the scripts of our components, with compressed
    bytes; everything else is ``app``'s.

    So are requests for a part of a file, and those of clients that do not accept gzip, save for our scripts, which
    nobody else has: these clients get them as they are.
    """

    def __init__(self, app: ASGIApp, folder: Path) -> None:
        self._app = app
        self._files = {
            f"/{file.relative_to(folder).as_posix()}": file
            for file in sorted((folder / "static").rglob("*"))
            if file.suffix in _MEDIA_TYPES and file.stat().st_size >= _SMALLEST_BYTES
        }
        self._answers: dict[str, Response] = {}

    def compress(self) -> None:
        """Compress the files that no request has needed yet, which takes a second for all. From any thread."""
        for path in (*self._files, *(f"/{path}" for path in list(component.SCRIPTS))):
            if path not in self._answers:
                self._answer(path)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request (ASGI)."""
        path = self._wanted(scope)
        if path is None:
            await self._app(scope, receive, send)
            return
        if not _accepts_gzip(Headers(scope=scope).get("accept-encoding", "")):
            await _response(component.SCRIPTS[path[1:]].encode(), path)(scope, receive, send)
            return
        answer = self._answers.get(path)
        if answer is None:
            answer = await run_in_threadpool(self._answer, path)
        await answer(scope, receive, send)

    def _wanted(self, scope: Scope) -> str | None:
        """The file that is asked for; None where it is not one of ours, or not for us to answer."""
        if scope["type"] != "http" or scope["method"] not in ("GET", "HEAD"):
            return None
        _, static, name = scope["path"].partition("/static/")  # a base path may stand in front
        path: str = static + name
        if path[1:] in component.SCRIPTS:
            return path
        headers = Headers(scope=scope)
        if path not in self._files or "range" in headers:
            return None
        return path if _accepts_gzip(headers.get("accept-encoding", "")) else None

    def _answer(self, path: str) -> Response:
        ours = component.SCRIPTS.get(path[1:])
        content = self._files[path].read_bytes() if ours is None else ours.encode()
        made = self._answers[path] = _response(
            gzip.compress(content, _GZIP_LEVEL, mtime=0), path, {"Content-Encoding": "gzip"}
        )
        return made


def _response(body: bytes, path: str, headers: Mapping[str, str] | None = None) -> Response:
    """A file's name holds its hash, so what it contains never changes."""
    kept = {"Vary": "Accept-Encoding", "Cache-Control": "public, immutable, max-age=31536000"}
    return Response(body, headers={**kept, **(headers or {})}, media_type=_MEDIA_TYPES[PurePosixPath(path).suffix])


def _accepts_gzip(accept_encoding: str) -> bool:
    """Whether the header names gzip and does not rule it out, as ``gzip;q=0`` does."""
    for part in accept_encoding.lower().split(","):
        coding, _, quality = part.partition(";")
        if coding.strip() == "gzip":
            return not re.fullmatch(r"\s*q\s*=\s*0(\.0*)?\s*", quality)
    return False
