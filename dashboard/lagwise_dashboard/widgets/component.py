"""Components of our own: their scripts and styles begin with what all of them need (``elements.js``,
``elements.css``)."""

from pathlib import Path
from typing import Any

import streamlit as st

_SHARED_JS, _SHARED_CSS = (
    (Path(__file__).parent / name).read_text(encoding="utf-8") for name in ("elements.js", "elements.css")
)


def declared(name: str, folder: Path, file: str) -> Any:
    """The component of a folder's ``file``.js and, where it looks like anything, ``file``.css."""
    style = folder / f"{file}.css"
    return st.components.v2.component(
        f"lagwise_{name}",
        css=_SHARED_CSS + (style.read_text(encoding="utf-8") if style.exists() else ""),
        js=_SHARED_JS + (folder / f"{file}.js").read_text(encoding="utf-8"),
    )
