"""What stands on the screen before the page does: that it says what the page will say, where the page will say it."""

import asyncio
import html
import json
import re
import shutil
import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest
import streamlit as st
from playwright.sync_api import Browser, Page, Route, expect

from lagwise.config import Config, load_config
from lagwise.domain.vocabulary import Status
from lagwise.links import pages
from lagwise_dashboard.server import first_sight
from lagwise_dashboard.server.first_sight import FirstSight, path_of
from tests.coroutines import run_apart
from tests.dashboard import lakes
from tests.dashboard.browsing import Visit
from tests.dashboard.conftest import NOW, Open
from tests.dashboard.lakes import Scene
from tests.dashboard.serving import write_settings
from tests.dashboard.stories import GROUPS_OF_THE_DEMO, HOSTILE_NAMES

_GROUP = "/group?cluster=prod&group=orders-fulfilment"
_SIGHT = "#first_sight"
#: Streamlit's connection to the server: what a page is made of comes by it.
_SOCKET = re.compile("_stcore/stream")

Ask = Callable[..., str | None]


@pytest.fixture
def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ask:
    """Ask for the first sight of a page at the moment NOW, over the lake in the test's folder; None where there is
    none."""
    monkeypatch.setenv("LAGWISE_CONFIG", str(write_settings(tmp_path)))
    monkeypatch.setattr("lagwise_dashboard.context.now", lambda: NOW)
    monkeypatch.setattr("lagwise_dashboard.context.started_at", lambda: NOW - timedelta(hours=1))

    def asked(page: str, config: Config | None = None, **query: str) -> str | None:
        monkeypatch.setattr("lagwise_dashboard.context._in_use", config or load_config())
        st.cache_data.clear()
        st.cache_resource.clear()
        path = path_of(page, urlencode(query))
        assert path is not None
        answer = run_apart(lambda: _answer(f"http://127.0.0.1/base/{path}"))
        assert answer.headers["cache-control"] == "no-store"
        assert answer.status_code == (200 if answer.text else 204)
        return answer.text or None

    return asked


async def _answer(address: str) -> httpx.Response:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(FirstSight(_nothing))) as client:
        return await client.get(address)


async def _nothing(*_: object) -> None:
    raise AssertionError("this is for the first sight to answer")


def _data(sight: str) -> list[dict[str, Any]]:
    return [json.loads(one) for one in re.findall(r'<script type="application/json">(.*?)</script>', sight)]


def test_a_group_begins_with_its_verdict_and_its_numbers(busy: Path, ask: Ask, open_app: Open) -> None:
    query = {"cluster": "prod", "group": "orders-fulfilment"}
    sight = ask("group", **query)
    assert sight is not None
    said = html.unescape(re.sub(r"<[^>]+>", " ", sight))
    page = open_app("group", **query)
    (verdict,) = [one.value for one in (*page.error, *page.warning, *page.success) if "Since" in one.value]
    for words in re.split(r"\*\*|&nbsp;|\n", verdict.replace("\\", "")):
        assert words.strip() in said
    assert len(page.metric) > 5
    shown = [f"{one.label} {one.value}".replace("\\", "") for one in page.metric]
    words = re.sub(r"\s+", " ", said)
    assert [one for one in shown if one not in words] == []


def test_the_overview_begins_with_the_data_of_its_strip_and_its_table(busy: Path, ask: Ask) -> None:
    sight = ask("overview")
    assert sight is not None
    strip, table = _data(sight)
    assert "in trouble" in strip["sentence"]
    groups = next(column for column in table["columns"] if column["title"] == "Group")
    troubled = {s.group for s in GROUPS_OF_THE_DEMO if s.status not in (Status.OK, Status.GHOST)}
    assert set(groups["cells"]) <= troubled
    assert "orders-fulfilment" in groups["cells"]
    assert all(link.startswith("group?cluster=") for link in table["links"])


def test_what_the_address_asks_for_is_heeded(busy: Path, ask: Ask) -> None:
    sight = ask("overview", status="stopped", sort="name")
    assert sight is not None
    strip, table = _data(sight)
    statuses = next(column for column in table["columns"] if column["title"] == "Status")["cells"]
    assert {cell[0] for cell in statuses} == {"■ stopped"}
    assert [strip["legend"][i]["status"] for i in strip["chosen"]] == ["stopped"]
    assert table["ordered_by"] == "name"
    for link in table["links"]:
        assert "status" not in link, "a link to a group does not filter it"


@pytest.mark.parametrize(
    ("page", "query"),
    [
        ("overview", {"status": "no such status"}),
        ("overview", {"as": "cards"}),
        ("overview", {"q": "no such group"}),
        ("group", {"cluster": "prod", "group": "orders-fulfilment", "status": ""}),
        ("overview", {"time_zone": "browser"}),
        ("group", {}),
        ("group", {"group": "orders-fulfilment"}),
        ("group", {"cluster": "prod", "group": "no such group"}),
        ("group", {"cluster": "prod", "group": "orders-fulfilment", "range": "forever"}),
    ],
)
def test_what_the_page_has_to_explain_is_left_to_it(busy: Path, ask: Ask, page: str, query: dict[str, str]) -> None:
    assert ask(page, **query) is None


def test_old_data_never_passes_for_the_present(tmp_path: Path, ask: Ask) -> None:
    assert ask("overview") is None, "there is no lake"
    lakes.write_to(tmp_path, Scene(NOW, sample_age=timedelta(minutes=10), tick_age=timedelta(minutes=10)))
    assert ask("overview") is None
    shutil.rmtree(tmp_path / "lake")
    lakes.write_to(tmp_path, Scene(NOW))
    assert "Data as of 11:59:59 UTC" in (ask("overview") or "")


def test_who_has_to_sign_in_sees_nothing_before(busy: Path, ask: Ask) -> None:
    for sign_in in (None, {"auth_file": "auth.toml"}):
        config = Config.model_validate({"data": str(busy), "dashboard": {"sign_in": sign_in}})
        for page in ("overview", "group"):
            assert (ask(page, config, cluster="prod", group="orders-fulfilment") is None) == bool(sign_in)


def test_what_the_settings_say_of_a_cluster_stands_there_too(busy: Path, ask: Ask) -> None:
    notes = {"prod": "<b>made up</b>", "staging": "not this one"}
    config = Config.model_validate({"data": str(busy), "dashboard": {"cluster_notes": notes}})
    sight = ask("group", config, cluster="prod", group="orders-fulfilment")
    assert sight is not None
    assert "<b>prod</b>: &lt;b&gt;made up&lt;/b&gt;" in sight
    assert "not this one" not in sight


def test_one_that_has_to_wait_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lake that does not answer takes no more threads than these."""
    begun, goes_on = threading.Semaphore(0), threading.Event()

    def hangs(*_: object) -> str:
        begun.release()
        goes_on.wait(60)
        return "made"

    monkeypatch.setattr(first_sight, "_of", hangs)

    async def answers() -> list[int]:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(FirstSight(_nothing))) as client:
            address = f"http://127.0.0.1/{path_of('overview', '')}"
            waiting = [asyncio.create_task(client.get(address)) for _ in range(first_sight._MOST_AT_ONCE)]
            for _ in waiting:
                await asyncio.to_thread(begun.acquire)
            late = await client.get(address)
            goes_on.set()
            return [late.status_code, *[(await one).status_code for one in waiting]]

    assert run_apart(answers) == [204, *[200] * first_sight._MOST_AT_ONCE]


def test_only_pages_that_have_one_ask_for_it() -> None:
    assert [page.path for page in pages.PAGES if path_of(page.path, "")] == ["overview", "group"]
    assert path_of("", "") == path_of("overview", "")
    assert path_of("group", "a=<b>") is None, "it would end the header that it stands in"


def test_hostile_names_are_text(hostile: Path, ask: Ask) -> None:
    for name in HOSTILE_NAMES:
        sight = ask("group", cluster="prod", group=name)
        assert sight is not None, name
        assert "<script" not in sight
        assert re.findall(r"<(?!/?(?:div|h2|b|p|br|dl|dt|dd)\b)", sight) == []
        assert not re.search(r"[\x00-\x1f\u202e\u2066]", sight)
    overview = ask("overview", cluster="prod")
    assert overview is not None
    assert len(re.findall("<script", overview)) == 2, "the data of the strip and of the table"
    assert len(_data(overview)) == 2


def _boxes(page: Page, *selectors: str) -> list[dict[str, float]]:
    found = [page.locator(one).first.bounding_box() for one in selectors]
    assert all(found), selectors
    return [dict(box) for box in found if box]


@pytest.fixture
def held(browser: Browser, address: str) -> Any:
    """Somebody whose page never comes: its connection stays open, and silent."""
    visit = Visit(browser, address)
    visit.page.route_web_socket(_SOCKET, lambda _: None)
    yield visit
    visit.close()


@pytest.mark.browser
def test_the_verdict_stands_before_the_page_and_where_the_page_has_it(
    held: Visit, browser: Browser, address: str
) -> None:
    held.page.goto(address + _GROUP)
    expect(held.page.locator(f"{_SIGHT} .verdict")).to_be_visible()
    first = _boxes(held.page, f"{_SIGHT} h2", f"{_SIGHT} .verdict", f"{_SIGHT} dd >> nth=0", f"{_SIGHT} dd >> nth=3")
    visit = Visit(browser, address)
    page = visit.open(_GROUP)
    expect(page.locator(_SIGHT)).to_have_count(0)
    values = '[data-testid="stMetricValue"]'
    then = _boxes(page, "h2", '[data-testid="stAlertContainer"]', f"{values} >> nth=0", f"{values} >> nth=3")
    visit.close()
    for before, after in zip(first, then, strict=True):
        assert abs(before["x"] - after["x"]) < 6, (before, after)
        assert abs(before["y"] - after["y"]) < 6, (before, after)


@pytest.mark.browser
def test_the_groups_stand_before_the_page_and_can_be_opened(held: Visit, browser: Browser, address: str) -> None:
    held.page.goto(address + "/")
    row = held.page.locator(f"{_SIGHT} tbody tr").first
    expect(row).to_be_visible()
    before = row.bounding_box()
    href = row.get_by_role("link").get_attribute("href")
    row.click()
    expect(held.page).to_have_url(f"{address}/{href}")
    expect(held.page.locator(_SIGHT)).to_have_count(0)
    visit = Visit(browser, address)
    page = visit.open("/")
    after = page.get_by_role("grid").first.locator("tbody tr").first.bounding_box()
    visit.close()
    assert before is not None
    assert after is not None
    assert abs(before["y"] - after["y"]) < 6
    assert abs(before["height"] - after["height"]) < 2


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_has_the_colours_of_the_theme(browser: Browser, address: str, scheme: Any) -> None:
    other = {"light": "dark", "dark": "light"}[scheme]
    for system, chosen in ((scheme, None), (other, scheme.capitalize())):
        visit = Visit(browser, address, scheme=system)
        visit.page.route_web_socket(_SOCKET, lambda _: None)
        if chosen:
            visit.page.add_init_script(f"localStorage['stActiveTheme-/group-v2'] = JSON.stringify('{chosen}')")
        visit.page.goto(address + _GROUP)
        sight = visit.page.locator(_SIGHT)
        expect(sight).to_be_visible()
        colour = {"light": "rgb(255, 255, 255)", "dark": "rgb(14, 20, 32)"}[scheme]
        expect(sight).to_have_css("background-color", colour)
        visit.close()


@pytest.mark.browser
def test_it_stays_until_what_it_shows_is_on_the_page(browser: Browser, address: str) -> None:
    visit = Visit(browser, address)
    held: list[Route] = []
    visit.page.route(re.compile(r"/BidiComponent\.[^/]*\.js"), lambda route: held.append(route))
    visit.page.goto(address + "/overview")
    expect(visit.page.locator(f"{_SIGHT} tbody tr").first).to_be_visible()
    expect(visit.page.locator('[data-test-script-state="notRunning"] .st-key-on_paper')).to_be_attached()
    expect(visit.page.locator('[data-testid="stSkeleton"]').first).to_be_attached()
    expect(visit.page.locator(_SIGHT)).to_have_count(1)
    for route in held:
        route.continue_()
    expect(visit.page.locator(_SIGHT)).to_have_count(0)
    expect(visit.page.get_by_role("grid").first).to_be_visible()
    visit.close()
