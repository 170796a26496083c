"""The page of the alerts in a real browser: from what fires to what somebody has, or has silenced."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect
from sqlalchemy import Engine

from lagwise.alerts import queries
from lagwise.alerts.database import open_engine
from tests.dashboard import alerts, lakes
from tests.dashboard.browsing import READY_MS, Visit
from tests.dashboard.lakes import Scene
from tests.dashboard.serving import served

pytestmark = pytest.mark.browser


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    now = datetime.now(UTC)
    lakes.write_to(tmp_path, Scene(now))
    alerts.write_to(tmp_path, now)
    return tmp_path


@pytest.fixture
def engine(folder: Path) -> Iterator[Engine]:
    made = open_engine(f"sqlite:///{folder / 'lagwise.db'}")
    yield made
    made.dispose()


@pytest.fixture
def visitor(folder: Path, browser: Browser) -> Iterator[Visit]:
    with served(folder) as address:
        visit = Visit(browser, address)
        yield visit
        visit.close()
        assert visit.troubles == []


def test_acknowledge_silence_and_see_it_gone(visitor: Visit, engine: Engine) -> None:
    page = visitor.open("/alerts")
    firing = [a for a in queries.open_alerts(engine) if a.fired_at]
    first, second = firing[0], firing[1]

    _choose(_opened(page, "Acknowledge"), "Alerts", first.group or "")
    page.get_by_label("What you do about it (optional)").fill("restarting it")
    page.get_by_role("button", name="I have it").click()
    expect(page.get_by_text("1 alert acknowledged.")).to_be_visible(timeout=READY_MS)
    expect(page.get_by_role("heading", name="Acknowledged")).to_be_visible()

    page.reload()
    visitor.settled()
    expect(page.get_by_role("heading", name="Acknowledged")).to_be_visible()
    _choose(_opened(page, "Silence"), "Like this alert", second.group or "")
    pattern = (second.group or "").replace("-", "\\-")
    expect(page.get_by_role("textbox", name="Groups")).to_have_value(pattern, timeout=READY_MS)
    page.get_by_label("Why, for whoever wonders at night").fill("deploy")
    page.get_by_role("button", name="Silence", exact=True).last.click()
    expect(page.get_by_text("Silence 1 (cluster")).to_be_visible(timeout=READY_MS)
    expect(page.get_by_role("heading", name="Silenced")).to_be_visible()
    assert visitor.overflow() == 0

    [taken] = queries.orders(engine, (), datetime.now(UTC)).acknowledgements.values()
    assert (taken.incident_id, taken.comment) == (first.incident_id, "restarting it")
    assert [one.comment for one in queries.silences(engine, datetime.now(UTC))] == ["deploy"]
    assert {action.via for action in queries.actions(engine)} == {"dashboard"}


def test_what_is_half_typed_survives_a_refresh(visitor: Visit) -> None:
    """The page refreshes every 5 s in this test."""
    page = visitor.open("/alerts")
    _opened(page, "Acknowledge")
    comment = page.get_by_label("What you do about it (optional)")
    comment.press_sequentially("half a sen")
    before = page.evaluate("() => performance.now()")
    page.wait_for_function("from => performance.now() - from > 11000", arg=before, timeout=READY_MS)
    expect(comment).to_be_visible()
    expect(comment).to_have_value("half a sen")


def test_it_fits_a_phone(visitor: Visit) -> None:
    visitor.page.set_viewport_size({"width": 390, "height": 844})
    page = visitor.open("/alerts")
    expect(page.get_by_role("button", name="Acknowledge", exact=True)).to_be_visible()
    assert visitor.overflow() == 0


def _opened(page: Page, name: str) -> Locator:
    page.get_by_role("button", name=name, exact=True).first.click()
    opened = page.locator('[data-testid="stPopoverBody"]')
    expect(opened).to_be_visible(timeout=READY_MS)
    return opened


def _choose(opened: Locator, label: str, name: str) -> None:
    """Choose by keyboard what holds a name."""
    field = opened.get_by_role("combobox", name=label)
    field.click()
    field.press_sequentially(name)
    opened.page.get_by_role("option").first.click()
