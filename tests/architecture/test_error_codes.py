"""The codes of errors, their uses in the sources and the page that explains them are the same."""

import ast
import functools
import re
from pathlib import Path

from lagwise.platform.error_codes import ErrorCode
from lagwise.platform.errors import LagwiseError, NewerThanProgram
from tests.architecture.test_imports import MODULES

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "errors.md").read_text(encoding="utf-8")
#: Their classes have no code that fits, so that each of them brings its own.
_WITHOUT_CODE = {LagwiseError.__name__, NewerThanProgram.__name__}


@functools.cache
def _nodes() -> list[tuple[str, ast.AST]]:
    return [
        (f"{name}:{getattr(node, 'lineno', 0)}", node)
        for name, path in MODULES.items()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    ]


def test_every_code_is_explained_and_no_other() -> None:
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.splitlines() if line[:3] == "| `"]
    assert [len(row) for row in rows] == [3] * len(rows)
    assert all(all(row) for row in rows), "what it says, and what to do"
    assert sorted(row[0].strip("`") for row in rows) == sorted(ErrorCode)


def test_every_code_is_used_and_no_other() -> None:
    used = {
        node.attr
        for _, node in _nodes()
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "ErrorCode"
    }
    assert used == set(ErrorCode.__members__)


def test_an_error_whose_class_has_no_code_brings_one() -> None:
    calls = {
        place: {keyword.arg for keyword in node.keywords}
        for place, node in _nodes()
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _WITHOUT_CODE
    }
    assert len(calls) > 20
    assert [place for place, keywords in calls.items() if "code" not in keywords] == []


def test_codes_in_the_text_of_the_page_exist() -> None:
    shown = re.findall(r"\[([a-z]+_[a-z_]+)\]$|\"code\": \"([a-z_]+)\"", PAGE, re.MULTILINE)
    assert shown
    assert {a or b for a, b in shown} <= set(ErrorCode)
