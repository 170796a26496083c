"""The page of the alerts in a real browser: from firing alerts to acknowledged and silenced ones."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect
from sqlalchemy import Engine

from lagwise_alerts.operate import queries
from lagwise_alerts.outbox.database import open_engine
from tests.dashboard import alerts, lakes
from tests.dashboard.browsing import Visit
from tests.dashboard.lakes import Scene
from tests.dashboard.serving import served

pytestmark = pytest.mark.browser

#: How long the last toast could be read, ms.
_TIME_TOASTS = """() => {
    let since = null;
    new MutationObserver(() => {
        const there = document.querySelector('[data-testid="stToast"]') !== null;
        if (there && since === null) since = performance.now();
        if (!there && since !== null) { window.toastLasted = performance.now() - since; since = null; }
    }).observe(document.body, { childList: true, subtree: true });
}"""
_FORM = '[data-testid="stPopoverBody"]'


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("alerts")
    now = datetime.now(UTC)
    lakes.write_to(made, Scene(now, promised=timedelta(hours=10)))
    alerts.write_to(made, now)
    return made


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    """One dashboard for the module: what one test does stays done."""
    with served(folder, interval_seconds=36_000.0) as found:
        yield found


@pytest.fixture
def engine(folder: Path) -> Iterator[Engine]:
    made = open_engine(f"sqlite:///{folder / 'lagwise.db'}")
    yield made
    made.dispose()


@pytest.fixture
def visitor(address: str, browser: Browser) -> Iterator[Visit]:
    visit = Visit(browser, address)
    yield visit
    visit.close()
    assert visit.troubles == []


def test_acknowledge_silence_and_see_it_gone(visitor: Visit, engine: Engine) -> None:
    page = visitor.open("/alerts")
    firing = [a for a in queries.open_alerts(engine) if a.fired_at]
    first, second = firing[0], firing[1]

    form = _opened(page, "Acknowledge")
    _choose(form, "Alerts", first.subject.group or "")
    form.get_by_label("Comment").fill("restarting it")
    form.get_by_role("button", name="Acknowledge", exact=True).click()
    expect(page.get_by_test_id("stToast")).to_contain_text("1 alert acknowledged.")
    expect(page.locator(_FORM)).to_be_hidden()
    expect(page.get_by_role("heading", name="Acknowledged")).to_be_visible()

    page.reload()
    visitor.settled()
    expect(page.get_by_role("heading", name="Acknowledged")).to_be_visible()
    _choose(_opened(page, "Silence"), "Like this alert", second.subject.group or "")
    expect(page.get_by_role("textbox", name="Groups")).to_have_value(second.subject.group or "")
    page.get_by_label("Reason (required)").fill("deploy")
    page.get_by_role("button", name="Silence", exact=True).last.click()
    # A name is a name, not a pattern full of backslashes.
    expect(page.get_by_test_id("stToast")).to_contain_text(re.compile(r"^[^\\]*Silence 1 \(cluster[^\\]*$"))
    expect(page.get_by_role("heading", name="Silenced")).to_be_visible()
    assert visitor.overflow() == 0

    [taken] = queries.mute_state(engine, (), datetime.now(UTC)).acknowledgements.values()
    assert (taken.incident_id, taken.comment) == (first.incident_id, "restarting it")
    assert [one.comment for one in queries.silences(engine, datetime.now(UTC))] == ["deploy"]
    assert {action.via for action in queries.actions(engine)} == {"dashboard"}


def test_missing_input_is_named_in_the_form_which_stays_open(visitor: Visit, engine: Engine) -> None:
    """The page refreshes every 5 s in this test."""
    page = visitor.open("/alerts")
    before = len(queries.actions(engine))
    form = _opened(page, "Silence")
    form.get_by_role("textbox", name="Groups").fill("fraud-check")
    form.get_by_role("button", name="Silence", exact=True).click()
    complaint = form.get_by_test_id("stAlert")
    expect(complaint).to_contain_text("give the reason for the silence")
    _wait(page, 11)
    expect(complaint).to_contain_text("give the reason for the silence")
    expect(form.get_by_role("textbox", name="Groups")).to_have_value("fraud-check")
    assert len(queries.actions(engine)) == before

    page.evaluate(_TIME_TOASTS)
    form.get_by_label("Reason (required)").fill("deploy")
    form.get_by_role("button", name="Silence", exact=True).click()
    toast = page.get_by_test_id("stToast")
    expect(toast).to_contain_text("group fraud-check")
    expect(page.locator(_FORM)).to_be_hidden()
    expect(toast).to_be_hidden()
    assert page.evaluate("() => window.toastLasted") >= 7_500
    expect(_opened(page, "Silence").get_by_label("Reason (required)")).to_have_value("")


def test_what_is_half_typed_survives_a_refresh(visitor: Visit) -> None:
    """The page refreshes every 5 s in this test."""
    page = visitor.open("/alerts")
    comment = _opened(page, "Acknowledge").get_by_label("Comment")
    comment.press_sequentially("half a sen")
    _wait(page, 11)
    expect(comment).to_be_visible()
    expect(comment).to_have_value("half a sen")


def test_it_fits_a_phone(visitor: Visit) -> None:
    visitor.page.set_viewport_size({"width": 390, "height": 844})
    page = visitor.open("/alerts")
    expect(page.get_by_role("button", name="Acknowledge", exact=True)).to_be_visible()
    assert visitor.overflow() == 0


def _wait(page: Page, seconds: float) -> None:
    """Until the page has been there for so much longer, whatever is refreshed meanwhile."""
    before = page.evaluate("() => performance.now()")
    page.wait_for_function("([from, ms]) => performance.now() - from > ms", arg=[before, 1000 * seconds])


def _opened(page: Page, name: str) -> Locator:
    page.get_by_role("button", name=name, exact=True).first.click()
    opened = page.locator(_FORM)
    expect(opened).to_be_visible()
    return opened


def _choose(opened: Locator, label: str, name: str) -> None:
    """Choose by keyboard what holds a name."""
    field = opened.get_by_role("combobox", name=label)
    field.click()
    field.press_sequentially(name)
    opened.page.get_by_role("option").filter(has_text=name).first.click()
