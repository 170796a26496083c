"""The part of Plotly that pages load is a published file, of the right version, and draws all that we make."""

import hashlib
import re
from pathlib import Path

import pytest
from plotly.offline import get_plotlyjs_version

import lagwise_dashboard

_PACKAGE = Path(lagwise_dashboard.__file__).parent
_FOLDER = _PACKAGE / "widgets" / "charts" / "plotly"
_FILE = _FOLDER / "plotly-cartesian.min.js"
_README = (_FOLDER / "README.md").read_text(encoding="utf-8")


def test_it_is_the_file_that_the_readme_names() -> None:
    assert re.findall(r"([0-9a-f]{64})  (\S+)", _README) == [
        (hashlib.sha256(_FILE.read_bytes()).hexdigest(), _FILE.name)
    ]
    assert "MIT License" in (_FOLDER / "LICENSE").read_text(encoding="utf-8")


def test_its_version_is_the_one_that_figures_are_written_for() -> None:
    banner = _FILE.read_text(encoding="utf-8")[:200]
    assert re.findall(r"plotly\.js \(cartesian - minified\) v(\S+)", banner) == [get_plotlyjs_version()]
    assert f"`plotly.js-cartesian-dist-min` {get_plotlyjs_version()}" in _README


def _traces() -> set[str]:
    """The kinds of traces that the pages make."""
    sources = [file.read_text(encoding="utf-8") for file in _PACKAGE.rglob("*.py")]
    made = {name.lower() for text in sources for name in re.findall(r"\bgo\.([A-Z][a-z]+)\(", text)} - {"figure"}
    plain = {name for text in sources for name in re.findall(r'"type": "([a-z]+)"', text)}
    return made | plain - {"date", "line", "rect"}  # of axes and of shapes


@pytest.mark.parametrize("kind", sorted(_traces()))
def test_it_draws_every_kind_of_trace_that_pages_make(kind: str) -> None:
    """Plotly draws a kind that it does not have as a line, and says nothing."""
    assert f'moduleType:"trace",name:"{kind}"' in _FILE.read_text(encoding="utf-8")


def test_the_kinds_are_found() -> None:
    assert _traces() == {"bar", "heatmap", "scatter"}
