"""The docs as a site: it builds strictly, every link and anchor leads somewhere, and nothing is loaded from outside."""

import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

ROOT = Path(__file__).resolve().parents[2]
#: Elements that a browser loads by itself, and where they name what.
_LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src"}
_LOADED_LINKS = {"stylesheet", "icon", "preload", "modulepreload", "preconnect", "dns-prefetch"}


class Page(HTMLParser):
    """What a page links to, loads, and has anchors for."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.loads: set[str] = set()
        self.anchors: set[str] = set()
        self.feed(file.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.add(given["href"])
        if tag in _LOADED and _LOADED[tag] in given:
            self.loads.add(given[_LOADED[tag]])
        if tag == "link" and _LOADED_LINKS & set(given.get("rel", "").split()):
            self.loads.add(given["href"])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, Page]:
    """The pages of the site by their files."""
    target = tmp_path_factory.mktemp("site") / "site"
    built = subprocess.run(
        [sys.executable, ROOT / "scripts" / "site.py", target], capture_output=True, text=True, timeout=120
    )
    assert built.returncode == 0, built.stderr
    return {file: Page(file) for file in sorted(target.rglob("*.html"))}


def _target(file: Path, link: str) -> Path:
    path = unquote(urlsplit(link).path)
    found = (file.parent / path).resolve() if path else file
    return found / "index.html" if found.is_dir() else found


@pytest.mark.process
def test_every_page_of_the_docs_is_there(site: dict[Path, Page]) -> None:
    assert len(site) > len(list((ROOT / "docs").rglob("*.md")))  # and those of the root, and that of what is not found


@pytest.mark.process
def test_every_link_and_anchor_leads_somewhere(site: dict[Path, Page]) -> None:
    broken = []
    for file, page in site.items():
        if file.name == "404.html":  # its links are absolute: it may be shown at any address
            continue
        for link in page.links:
            if urlsplit(link).scheme:
                continue
            target, anchor = _target(file, link), unquote(urlsplit(link).fragment)
            if not target.exists() or (anchor and target in site and anchor not in site[target].anchors):
                broken.append(f"{file.parent.name}: {link}")
    assert broken == []


@pytest.mark.process
def test_nothing_is_loaded_from_another_host(site: dict[Path, Page]) -> None:
    outside = {load for page in site.values() for load in page.loads if urlsplit(load).netloc}
    assert outside == set()
