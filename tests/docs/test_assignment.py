"""docs/assignment.md cannot lie: its example is computed again."""

import runpy
from pathlib import Path

from lagwise.domain.assignment.assignors import ASSIGNORS

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "assignment.md").read_text(encoding="utf-8")


def test_the_example_is_what_the_script_prints() -> None:
    printed = runpy.run_path(str(ROOT / "scripts" / "assignments.py"))["table"]()
    assert printed in PAGE


def test_every_assignor_is_explained() -> None:
    for name in ASSIGNORS:
        assert f"\n| `{name}` | " in PAGE.partition("## The assignors")[2], name
