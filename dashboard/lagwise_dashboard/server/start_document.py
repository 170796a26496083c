"""The document that a browser loads first: Streamlit's, with the style of our pages, the scripts that they need, and
what asks for the first sight of a page (first_sight.py).

Left alone, Streamlit sends a style sheet as an element of the page, which applies after others have been drawn, and
fetches the script of each kind of element when the first of that kind arrives. What was drawn until then jumps to its
place, and each script costs a request. Here the document holds the style and names the scripts, so that they are loaded
beside Streamlit's own.
"""

import re
from collections.abc import Iterable, Iterator
from http import HTTPStatus
from pathlib import Path

from starlette.datastructures import Headers
from starlette.responses import HTMLResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lagwise.links import pages
from lagwise_dashboard.server import first_sight
from lagwise_dashboard.widgets import component

#: Kinds of elements that every page has or may soon have, as Streamlit names their scripts.
_ELEMENTS = (
    "BidiComponent",
    "Button",
    "ButtonGroup",
    "Checkbox",
    "LinkButton",
    "Metric",
    "NumberInput",
    "PageLink",
    "Progress",
    "Selectbox",
    "TextInput",
)
#: The pages that need what is large: the libraries of components.
_WITH_CHARTS = frozenset(
    page.path for page in (pages.GROUP, pages.TOPIC, pages.REBALANCES, pages.ALERTS, pages.PLAN, pages.HEALTH)
)
#: The font of the icons: until it is there, each icon is as wide as its name.
_ICONS = "MaterialSymbols-Rounded"
#: That of text.
_TEXT = "SourceSansVF-Upright"
#: Scripts import others at their beginning.
_IMPORTS_BYTES = 20_000
_ENTRY = re.compile(r"""<script type="module" crossorigin src="([^"]+)"></script>""")
_IMPORTED = re.compile(r"""(?:from|import)\s*["'`]\./([^"'`]+\.js)["'`]""")
#: With these, a browser asks whether what it has is still current. It is not where an older Lagwise sent it.
_CONDITIONS = frozenset({b"if-none-match", b"if-modified-since", b"range"})


class StartDocument:
    """Sends our document wherever ``app`` sends Streamlit's ``folder/index.html``. ``style`` is what a style sheet
    contains."""

    def __init__(self, app: ASGIApp, folder: Path, style: str) -> None:
        self._app = app
        self._document = _document(folder, style)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request (ASGI)."""
        name = scope["path"].rpartition("/")[2] if scope["type"] == "http" else "."  # a base path may stand in front
        if "." in name:  # a file, or no request of HTTP
            await self._app(scope, receive, send)
            return
        is_replaced = False

        async def replace(message: Message) -> None:
            nonlocal is_replaced
            if message["type"] == "http.response.start":
                kind = Headers(raw=message["headers"]).get("content-type", "")
                is_replaced = message["status"] == HTTPStatus.OK and kind.startswith("text/html")
            if not is_replaced:
                await send(message)

        asked = [(name, value) for name, value in scope["headers"] if name not in _CONDITIONS]
        await self._app({**scope, "headers": asked}, receive, replace)
        if is_replaced:
            links = _preloaded(with_charts=name in _WITH_CHARTS)
            if sight := first_sight.path_of(name, scope["query_string"].decode("latin-1")):
                # A browser opens few connections, and asks on them for what is named first.
                links.insert(0, f"<./{sight}>; rel=preload; as=fetch; crossorigin")
            headers = {"Cache-Control": "no-cache", "Link": ", ".join(links)}
            await HTMLResponse(self._document, headers=headers)(scope, receive, send)


def _preloaded(*, with_charts: bool) -> list[str]:
    """The scripts of our components as the header Link names them, relative to the page, as Streamlit does its own."""
    libraries = component.LIBRARIES
    links = [f"<./{path}>; rel=modulepreload" for path in list(component.SCRIPTS) if path not in libraries]
    if with_charts:
        links += [f"<./{path}>; rel=modulepreload; fetchpriority=low" for path in sorted(libraries)]
    return links


def _document(folder: Path, style: str) -> str:
    """Streamlit's document with a style, and with what our elements are made of."""
    text = (folder / "index.html").read_text(encoding="utf-8")
    scripts = folder / "static" / "js"
    known = set(re.findall(r'"\./static/js/([^"]+)"', text))
    run = _files(scripts, *_ELEMENTS)
    added = [
        *(
            f'<link rel="preload" as="font" type="font/woff2" crossorigin href="./static/media/{name}">'
            for name in _files(folder / "static" / "media", _ICONS)
        ),
        *(
            f'<link rel="modulepreload" crossorigin href="./static/js/{name}">'
            for name in _imported(scripts, run, known)
        ),
    ]
    text, entry = _held(text)
    start, start_of_head, text = text.partition("<head>")
    head, end_of_head, body = text.partition("</head>")
    body, end_of_body, end = body.rpartition("</body>")
    text_font = "".join(f"./static/media/{name}" for name in _files(folder / "static" / "media", _TEXT)[:1])
    first = first_sight.elements(text_font, entry, [f"./static/js/{name}" for name in run])
    head = first + head + "".join(added)
    # Streamlit appends its own rules to the head: ours, which come later, win where both apply.
    return "".join((start, start_of_head, head, end_of_head, body, f"<style>{style}</style>", end_of_body, end))


def _held(text: str) -> tuple[str, str]:
    """Streamlit's document without the start of its script, which is only loaded, and the address of that script."""
    (found,) = _ENTRY.finditer(text)
    loaded = f'<link rel="modulepreload" crossorigin href="{found[1]}" />'
    return text[: found.start()] + loaded + text[found.end() :], found[1]


def _files(folder: Path, *names: str) -> list[str]:
    """The files of these names, whose hashes are between the name and the suffix."""
    return [file.name for name in names for file in folder.glob(f"{name}.*")]


def _imported(folder: Path, names: Iterable[str], known: set[str]) -> Iterator[str]:
    """These scripts and what they import, and so on, each once and none of those ``known``, which is added to."""
    for name in names:
        if name not in known:
            known.add(name)
            yield name
            with (folder / name).open(encoding="utf-8") as script:
                yield from _imported(folder, _IMPORTED.findall(script.read(_IMPORTS_BYTES)), known)
