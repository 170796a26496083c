"""Components of our own: a script, and a style where it looks like anything, with what all of them need in front of
each (``elements.js``, ``elements.css``).

Streamlit sends a component's script and style with every drawing of it: 20 kB for each table, in each refresh. So it is
given a few lines that load them from the server, where browsers keep them. A file's name holds its hash: a browser
never has the script of one version and the data of another.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

import streamlit as st

_SHARED_JS, _SHARED_CSS = (
    (Path(__file__).parent / name).read_text(encoding="utf-8") for name in ("elements.js", "elements.css")
)
#: Beside Streamlit's own files, below whatever path the pages are served.
_FOLDER = "static/lagwise"
#: Async, as a script that could not be loaded is asked for again at the next drawing.
_LOADER = """export default async (component) => {{
  const loaded = await import(new URL("{path}", document.baseURI));
  loaded.dress(component.parentElement);
  return loaded.default(component);
}};"""

#: The scripts of all components that were declared, and their libraries, by their paths as seen from a page.
SCRIPTS: dict[str, str] = {}
#: The paths of the scripts of components, by the names under which these were declared.
_PATHS: dict[str, str] = {}
#: The paths of the libraries: large, and needed by some pages only.
LIBRARIES: set[str] = set()


def library(name: str, script: str) -> str:
    """The path of a script that a component's own script imports when it needs it."""
    path = _kept(name, script)
    LIBRARIES.add(path)
    return path


def declared(name: str, folder: Path, file: str, *, library: str = "", has_style_of_page: bool = False) -> Any:
    """The component of a folder's ``file``.js and, where it looks like anything, ``file``.css. The script finds the
    path of its ``library`` in LIBRARY. With the style of the page, it lies in the page itself, not in a shadow root."""
    style = folder / f"{file}.css"
    css = _SHARED_CSS + style.read_text(encoding="utf-8") if style.exists() else ""
    own = (folder / f"{file}.js").read_text(encoding="utf-8")
    given = f"const STYLE = {json.dumps(css)};\nconst LIBRARY = {json.dumps(library)};\n"
    path = _PATHS[name] = _kept(file, given + _SHARED_JS + own)
    return st.components.v2.component(
        f"lagwise_{name}", js=_LOADER.format(path=path), isolate_styles=not has_style_of_page
    )


def _kept(name: str, script: str) -> str:
    path = f"{_FOLDER}/{name}.{hashlib.blake2b(script.encode(), digest_size=8).hexdigest()}.js"
    SCRIPTS[path] = script
    return path


def path_of(name: str) -> str:
    """The path of the script of a component that was declared under this name, as seen from a page."""
    return _PATHS[name]
