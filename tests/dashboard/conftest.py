"""A lake in a folder, the app over it in this process (AppTest), and the served app in a real browser."""

import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import streamlit as st
from playwright.sync_api import Browser, BrowserContext
from streamlit.components.v2 import manifest_scanner
from streamlit.testing.v1 import AppTest

import lagwise_dashboard
from lagwise.config import load_config
from lagwise.links import pages
from lagwise.tables.store import Lake
from tests.dashboard import alerts, lakes, planning
from tests.dashboard.browsing import Visit, new_context
from tests.dashboard.lakes import Scene
from tests.dashboard.serving import served, write_settings
from tests.dashboard.stories import GROUPS_OF_THE_DEMO, HOSTILE_GROUPS

APP = Path(lagwise_dashboard.__file__).parent / "server" / "app.py"
#: The moment that the AppTests take for the present.
NOW = datetime(2026, 11, 21, 12, 0, 5, tzinfo=UTC)
_LONG = timedelta(hours=10)

#: Opens a page; Any, because the types of AppTest do not tell an element from a block.
Open = Callable[..., Any]


@pytest.fixture(scope="session", autouse=True)
def _components_looked_for_once() -> Iterator[None]:
    """An AppTest looks through all that is installed for Streamlit's components, at every start: a third of its time.

    What is installed stays the same while the tests run.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(manifest_scanner, "scan_component_manifests", cache(manifest_scanner.scan_component_manifests))
        yield


@pytest.fixture
def open_app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Open]:
    """Open a page of the app over the test's own folder, at the moment NOW; no page may raise."""
    monkeypatch.setenv("LAGWISE_CONFIG", str(write_settings(tmp_path)))
    monkeypatch.setattr("lagwise_dashboard.context.now", lambda: NOW)
    monkeypatch.setattr("lagwise_dashboard.context.started_at", lambda: NOW - timedelta(hours=1))

    def open_page(view: str = "overview", **query: str | list[str]) -> AppTest:
        monkeypatch.setattr("lagwise_dashboard.context._in_use", load_config())
        app = AppTest.from_file(str(APP), default_timeout=30)
        if view != "overview":
            app.switch_page(f"../pages/{view}/{view}.py")
        for name, value in query.items():
            app.query_params[name] = value
        app.run()
        assert not app.exception
        return app

    _clear()
    yield open_page
    _clear()


def offered(app: AppTest) -> list[str]:
    """The labels of the links on a page, its menu left out."""
    titles = {page.title for page in pages.PAGES}
    return [link.label for link in app.get("page_link") if link.label not in titles]


def clear_the_filters(app: Any) -> None:
    """Press the button of a page on which nothing matches."""
    (button,) = [one for one in app.button if one.label == "Clear the filters"]
    button.click().run()


def _clear() -> None:
    st.cache_data.clear()
    st.cache_resource.clear()


@pytest.fixture(scope="session")
def stories(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the stories and their alerts, made once: only to be copied."""
    folder = tmp_path_factory.mktemp("stories")
    lakes.write_to(folder, Scene(NOW))
    alerts.write_to(folder, NOW)
    return folder


@pytest.fixture(scope="session")
def planned_stories(tmp_path_factory: pytest.TempPathFactory, stories: Path) -> Path:
    """The folder of the stories and what planning knows of them, made once: only to be copied."""
    folder = shutil.copytree(stories, tmp_path_factory.mktemp("planned") / "stories")
    planning.write(Lake(str(folder / "lake")), NOW)
    return folder


@pytest.fixture(scope="session")
def hostile_stories(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of groups with hostile names, made once: only to be copied."""
    folder = tmp_path_factory.mktemp("hostile")
    lakes.write_to(folder, Scene(NOW, stories=HOSTILE_GROUPS))
    return folder


@pytest.fixture
def busy(tmp_path: Path, stories: Path) -> Path:
    """A folder with the lake of the stories and their alerts."""
    return shutil.copytree(stories, tmp_path, dirs_exist_ok=True)


@pytest.fixture
def planned(tmp_path: Path, planned_stories: Path) -> Path:
    """The stories with demand, forecasts and measurements, and the verdicts that the analysis makes of them."""
    return shutil.copytree(planned_stories, tmp_path, dirs_exist_ok=True)


@pytest.fixture
def hostile(tmp_path: Path, hostile_stories: Path) -> Path:
    """A folder with the lake of groups with hostile names."""
    return shutil.copytree(hostile_stories, tmp_path, dirs_exist_ok=True)


@pytest.fixture(scope="session")
def address(tmp_path_factory: pytest.TempPathFactory, browser: Browser) -> Iterator[str]:
    """The served dashboard over the stories and the hostile names; its data stays fresh for hours."""
    folder = tmp_path_factory.mktemp("served")
    now = datetime.now(UTC)
    lake = lakes.write_to(folder, Scene(now, stories=GROUPS_OF_THE_DEMO + HOSTILE_GROUPS, promised=_LONG))
    planning.write(lake, now)
    alerts.write_to(folder, now)
    with served(folder, interval_seconds=_LONG.total_seconds()) as found:
        yield found


@pytest.fixture(scope="session")
def _loaded(browser: Browser) -> Iterator[BrowserContext]:
    """Keeps what the server serves to everybody: the scripts would be loaded and compiled anew for each test."""
    context = new_context(browser)
    yield context
    context.close()


@pytest.fixture
def visit(browser: Browser, address: str, _loaded: BrowserContext) -> Iterator[Visit]:
    """A visitor of the served dashboard, in light; nothing may go wrong in the browser."""
    visitor = Visit(browser, address, context=_loaded)
    yield visitor
    visitor.close()
    assert visitor.troubles == []
