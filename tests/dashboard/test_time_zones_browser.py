"""The time zone in a real browser: which it has, who chooses, and that charts and what is typed follow."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.dashboard.browsing import Visit, new_context
from tests.dashboard.pointer import drag, hover

pytestmark = pytest.mark.browser

_GROUP = "/group?cluster=prod&group=orders-fulfilment"
#: Where the clocks never change, and half an hour beside everybody else.
_ZONE, _OFFSET = "Australia/Darwin", timezone(timedelta(hours=9, minutes=30))
_TITLE = f"{_ZONE}, UTC+9:30"


@pytest.fixture
def visit_from_darwin(browser: Browser, address: str) -> Iterator[Visit]:
    context = new_context(browser, time_zone=_ZONE)
    visitor = Visit(browser, address, context=context)
    yield visitor
    visitor.close()
    context.close()
    assert visitor.troubles == []


def _last_tick_minutes(page: Page) -> int:
    """The last time that is written below the charts, in minutes of the day."""
    ticks = page.locator(".js-plotly-plot:visible .xtick text").all_text_contents()
    hours, minutes = re.findall(r"(\d\d):(\d\d)", ticks[-1])[0]
    return 60 * int(hours) + int(minutes)


def test_a_reader_chooses_the_zone_of_the_browser_and_all_times_follow(visit_from_darwin: Visit) -> None:
    page = visit_from_darwin.open(_GROUP)
    expect(page.locator(".js-plotly-plot:visible .xtitle").first).to_have_text("UTC")
    page.locator(".st-key-time_zones button:visible").click()
    page.get_by_text(f"Browser ({_ZONE})").click()
    expect(page).to_have_url(re.compile("time_zone=browser"))
    expect(page.locator(".js-plotly-plot:visible .xtitle").first).to_have_text(_TITLE)
    expect(page.get_by_text(re.compile(r"^Data as of .*UTC\+9:30$"))).to_be_visible()
    page.reload()
    visit_from_darwin.settled()
    expect(page.locator(".js-plotly-plot:visible .xtitle").first).to_have_text(_TITLE)
    now = datetime.now(_OFFSET)
    behind = (60 * now.hour + now.minute - _last_tick_minutes(page)) % (24 * 60)
    assert behind <= 30, "the axis ends with the present of Darwin"
    page.locator(".st-key-time_zones button:visible").click()
    expect(page.get_by_role("radio", name=f"Browser ({_ZONE})")).to_be_checked()


def test_what_is_at_the_pointer_and_what_is_dragged_over_are_of_the_zone(visit_from_darwin: Visit) -> None:
    page = visit_from_darwin.open(f"{_GROUP}&time_zone=browser")
    expect(page.locator(".js-plotly-plot:visible .xtitle").first).to_have_text(_TITLE)
    chart = page.locator(".js-plotly-plot:visible").first
    said = chart.locator(".hoverlayer").first
    # Nearly an hour ago: the data ends as the suite begins, and has soon left any later place.
    hover(chart, (0.1, 0.3), lambda ms: expect(said).to_contain_text("UTC+9:30", timeout=ms))
    drag(chart, (0.5, 0.3), (0.9, 0.35))  # within the chart of the age
    expect(page).to_have_url(re.compile("from=.*to="))
    query = parse_qs(urlsplit(page.url).query)
    since, until = (datetime.fromisoformat(query[name][0]) for name in ("from", "to"))
    now = datetime.now(UTC)
    assert now - timedelta(minutes=60) < since < until < now, "the address has the moments in UTC"
    expect(page.get_by_text(re.compile(r"from .*UTC\+9:30 to .*UTC\+9:30")).first).to_be_visible()


def test_a_sign_of_the_alerts_timeline_says_when_it_was_in_the_zone(visit_from_darwin: Visit) -> None:
    page = visit_from_darwin.open("/alerts?time_zone=browser&refresh=5m")
    expect(page.locator(".js-plotly-plot:visible .xtitle").first).to_have_text(_TITLE)
    sign = page.locator(".js-plotly-plot:visible .scatterlayer .points path").first
    said = page.locator(".js-plotly-plot:visible .hoverlayer").first
    time = re.compile(r"\d\d:\d\d:\d\d UTC\+9:30: ")
    hover(sign, (0.5, 0.5), lambda ms: expect(said).to_contain_text(time, timeout=ms))
