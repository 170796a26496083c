"""The plain model of the rules is independent of them: else the two would agree on any error."""

import ast
from pathlib import Path

MODULES = sorted((Path(__file__).parent / "plain_model").glob("*.py"))


def test_it_takes_nothing_but_limits_from_the_rules() -> None:
    taken = {
        (path.name, alias.name)
        for path in MODULES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
        if "verdicts" in f"{getattr(node, 'module', '')}.{alias.name}"
    }
    assert len(taken) > 20
    assert {(file, name) for file, name in taken if not name.isupper()} == set()
