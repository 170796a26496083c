"""Every YAML block of the docs parses: users copy it, and wrapping the text around it must not break it."""

import re
import textwrap
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCKS = [
    pytest.param(textwrap.dedent(block[2]), id=f"{page.relative_to(ROOT)}-{number}")
    for page in PAGES
    for number, block in enumerate(
        re.finditer(r"^( *)```ya?ml\n(.*?)^\1```$", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE), start=1
    )
]


def test_the_blocks_are_found() -> None:
    text = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    assert len(BLOCKS) == len(re.findall(r"```ya?ml", text)) > 10


@pytest.mark.parametrize("block", BLOCKS)
def test_a_yaml_block_parses(block: str) -> None:
    assert isinstance(yaml.safe_load(block), dict | list)
