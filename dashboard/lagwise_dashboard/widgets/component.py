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

#: The scripts of all components that were declared, by their paths as seen from a page.
SCRIPTS: dict[str, str] = {}
_PATHS: dict[str, str] = {}


def declared(name: str, folder: Path, file: str) -> Any:
    """The component of a folder's ``file``.js and, where it looks like anything, ``file``.css."""
    style = folder / f"{file}.css"
    css = _SHARED_CSS + style.read_text(encoding="utf-8") if style.exists() else ""
    script = f"const STYLE = {json.dumps(css)};\n{_SHARED_JS}{(folder / f'{file}.js').read_text(encoding='utf-8')}"
    path = f"{_FOLDER}/{file}.{hashlib.blake2b(script.encode(), digest_size=8).hexdigest()}.js"
    SCRIPTS[path] = script
    _PATHS[name] = path
    return st.components.v2.component(f"lagwise_{name}", js=_LOADER.format(path=path))


def path_of(name: str) -> str:
    """The path of the script of a component that was declared under this name, as seen from a page."""
    return _PATHS[name]
