"""Builds the docs as a site with search, strictly: ``site.py FOLDER``. The pages also read well without it.

The menu is that of ``docs/README.md``. Links that lead out of ``docs`` go to pages of the repository's root, which the
site has too, or become the path of the file.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
#: Pages of the root, by where the site has them.
_OF_ROOT = {
    ROOT / "CHANGELOG.md": "project/changelog.md",
    ROOT / "CONTRIBUTING.md": "project/contributing.md",
    ROOT / "SECURITY.md": "project/security.md",
}
_LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")
_SETTINGS = """[project]
site_name = "Lagwise"
site_description = "Consumer lag and capacity of Kafka, RocketMQ and Flink"
docs_dir = "docs"
site_dir = "site"
nav = [
{menu}
]
[project.theme]
font = false
logo = "images/icon.png"
favicon = "images/icon.png"
features = ["content.code.copy", "navigation.sections", "navigation.top", "search.highlight"]
[[project.theme.palette]]
media = "(prefers-color-scheme: light)"
scheme = "default"
[[project.theme.palette]]
media = "(prefers-color-scheme: dark)"
scheme = "slate"
"""


def menu(index: str) -> str:
    """The menu as TOML: the sections of the index, and the links of their tables."""
    parts = re.split(r"^## (.+)$", index, flags=re.MULTILINE)
    sections = ['  {"Home" = "README.md"}']
    for title, text in zip(parts[1::2], parts[2::2], strict=True):
        pages = [(name, path) for _, name, path in _LINK.findall(text) if path.endswith(".md")]
        entries = ", ".join(f'{{"{name[0].upper()}{name[1:]}" = "{path}"}}' for name, path in pages)
        sections.append(f'  {{"{title}" = [{entries}]}}')
    project = ", ".join(f'{{"{page.stem.capitalize()}" = "{place}"}}' for page, place in _OF_ROOT.items())
    return ",\n".join([*sections, f'  {{"Project" = [{project}]}}'])


def moved(text: str, page: Path, place: Path) -> str:
    """A page whose links are right where the site has it. ``place`` is relative to the site's pages."""

    def link(found: re.Match[str]) -> str:
        image, name, target = found.groups()
        if re.match(r"[a-z]+:|#", target):
            return found[0]
        path, hash_sign, anchor = target.partition("#")
        file = (page.parent / path).resolve()
        if file in _OF_ROOT:
            new = Path(_OF_ROOT[file])
        elif file.is_relative_to(DOCS) and not file.is_dir():
            new = file.relative_to(DOCS)
        elif file.is_dir() and (file / "README.md").is_relative_to(DOCS) and (file / "README.md").exists():
            new = (file / "README.md").relative_to(DOCS)
        else:
            return f"{name} (`{file.relative_to(ROOT)}`)"
        return f"{image}[{name}]({os.path.relpath(new, place.parent)}{hash_sign}{anchor})"

    pieces = re.split(r"(^ *```.*?^ *```)", text, flags=re.DOTALL | re.MULTILINE)
    return "".join(piece if i % 2 else _LINK.sub(link, piece) for i, piece in enumerate(pieces))


def build(target: Path) -> None:
    """Build into a folder, which is replaced. Ends the program where the generator finds anything wrong."""
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        shutil.copytree(DOCS, work / "docs")
        shutil.copy(ROOT / "dashboard" / "lagwise_dashboard" / "assets" / "icon.png", work / "docs" / "images")
        pages = {page: str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")} | _OF_ROOT
        for page, place in pages.items():
            file = work / "docs" / place
            file.parent.mkdir(exist_ok=True)
            file.write_text(moved(page.read_text(encoding="utf-8"), page, Path(place)), encoding="utf-8")
        index = (DOCS / "README.md").read_text(encoding="utf-8")
        (work / "zensical.toml").write_text(_SETTINGS.format(menu=menu(index)), encoding="utf-8")
        command = [str(Path(sys.executable).with_name("zensical")), "build", "--strict"]
        built = subprocess.run(command, cwd=work, capture_output=True, text=True, check=False)
        if built.returncode:
            sys.exit(f"{built.stdout}\n{built.stderr}")
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(work / "site", target)


if __name__ == "__main__":
    build(Path(sys.argv[1]))
