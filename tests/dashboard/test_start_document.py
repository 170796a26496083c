"""The document that a browser loads first, from the real server: what it holds and names, and that a page needs no
other script of Streamlit's."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, Request
from streamlit import file_util

from lagwise_dashboard import time_zone
from lagwise_dashboard.server import start_document
from tests.dashboard import alerts, lakes
from tests.dashboard.browsing import Visit
from tests.dashboard.lakes import Scene
from tests.dashboard.serving import served

_SCRIPT = re.compile(r"/static/js/([^\"/]+\.js)")
_LIBRARY = re.compile(r"<\./(static/lagwise/plotly\.[0-9a-f]{16}\.js)>; rel=modulepreload; fetchpriority=low")
_STYLE = ".st-key-finder_place"
_PATHS = ("/", "/group", "/plan", "/capacity")


@pytest.fixture(scope="module")
def at(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a dashboard over a lake with alerts that fire."""
    folder = tmp_path_factory.mktemp("document")
    now = datetime.now(UTC)
    lakes.write_to(folder, Scene(now))
    alerts.write_to(folder, now)
    with served(folder, refresh_seconds=3600) as found:
        yield found


@pytest.mark.process
@pytest.mark.parametrize("path", ["/", "/group", "/overview?cluster=prod", "/no-such-page"])
def test_every_address_of_a_page_gets_the_style_and_the_scripts(at: str, path: str) -> None:
    answer = httpx.get(at + path)
    assert answer.headers["content-type"].startswith("text/html")
    assert answer.headers["cache-control"] == "no-cache"
    assert answer.text.rindex(_STYLE) > answer.text.index("</head>"), "after the rules that Streamlit adds to the head"
    names = _SCRIPT.findall(answer.text)
    assert any(name.startswith("BidiComponent.") for name in names)
    for name in set(names):
        assert httpx.head(f"{at}/static/js/{name}").status_code == 200, name


@pytest.mark.process
def test_only_pages_with_charts_name_the_script_that_draws_them(at: str) -> None:
    named = {path: _LIBRARY.findall(httpx.get(at + path).headers["link"]) for path in _PATHS}
    assert {path for path, names in named.items() if names} == {"/group", "/plan"}
    [name] = named["/plan"]
    assert httpx.get(f"{at}/{name}").headers["content-encoding"] == "gzip"


@pytest.mark.process
def test_what_an_older_version_sent_is_never_taken_for_current(at: str) -> None:
    conditions = {"if-none-match": "*", "if-modified-since": "Fri, 01 Jan 2100 00:00:00 GMT", "range": "bytes=0-9"}
    answer = httpx.get(at + "/group", headers=conditions)
    assert answer.status_code == 200
    assert _STYLE in answer.text


@pytest.mark.process
def test_what_is_no_page_is_as_streamlit_sends_it(at: str) -> None:
    assert _STYLE not in httpx.get(at + "/_stcore/health").text
    assert httpx.head(at + "/group").content == b""
    assert httpx.get(at + "/favicon.png").headers["content-type"] == "image/png"
    assert httpx.get(at + "/_stcore/agent/none").status_code == 404


@pytest.mark.browser
@pytest.mark.parametrize(
    "path", ["/", "/group?cluster=prod&group=orders-fulfilment", "/retention", "/capacity", "/alerts"]
)
def test_a_page_needs_no_script_of_streamlit_that_the_document_does_not_name(
    browser: Browser, at: str, path: str
) -> None:
    asked: list[str] = []

    def note(request: Request) -> None:
        asked.extend(_SCRIPT.findall(request.url + '"'))

    visit = Visit(browser, at)
    visit.page.on("request", note)
    visit.open(path)
    visit.close()
    named = set(_SCRIPT.findall(httpx.get(at + path).text))
    assert len(asked) > 50
    assert set(asked) - named == set()


@pytest.mark.browser
@pytest.mark.parametrize("path", ["/", "/group?cluster=prod&group=orders-fulfilment&tab=partitions", "/retention"])
def test_no_room_is_higher_than_what_it_is_for(browser: Browser, at: str, path: str) -> None:
    visit = Visit(browser, at)
    page = visit.open(path)
    page.wait_for_selector("role=gridcell")
    rooms = page.locator('[class*="st-key-room_"]')
    found = rooms.evaluate_all("rooms => rooms.map(room => [...room.children].map(one => one.offsetHeight))")
    visit.close()
    assert found
    for reserved, drawn in found:
        assert 0 < reserved <= drawn, found


def test_a_time_in_markdown_is_no_name_of_an_emoji() -> None:
    now = datetime(2026, 11, 27, 8, 15, tzinfo=UTC)
    for text in (time_zone.clock_markdown(now, now), time_zone.clock_markdown(now, now.replace(day=28))):
        assert not re.search(r":[\w+-]+:", text)
        assert text.replace("\\", "").endswith("08:15:00 UTC")


def test_the_document_is_made_of_what_is_installed() -> None:
    """A name of an element that Streamlit does not have any more would silently load nothing."""
    scripts = Path(file_util.get_static_dir()) / "static" / "js"
    for element in start_document._ELEMENTS:
        assert len(list(scripts.glob(f"{element}.*.js"))) == 1, element
    for font in (start_document._ICONS, start_document._TEXT):
        assert len(list((scripts.parent / "media").glob(f"{font}.*.woff2"))) == 1, font
