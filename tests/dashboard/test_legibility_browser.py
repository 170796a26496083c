"""Pages can be read: in light and dark, on paper, in a narrow window, and without signs of their source."""

import re
from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.dashboard.browsing import Visit

pytestmark = pytest.mark.browser

_LEGIBILITY = (Path(__file__).parent / "legibility.js").read_text(encoding="utf-8")
_CHARTS = {
    "/overview": 0,
    "/group?cluster=prod&group=orders-fulfilment": 1,
    "/group?cluster=prod&group=clickstream-archive&tab=partitions": 1,
    "/topic?cluster=prod&topic=clicks": 1,
    "/retention": 0,
    "/rebalances?cluster=prod&group=orders-fulfilment": 1,
    "/alerts": 1,
    "/capacity": 0,
    "/capacity?cluster=prod&group=checkout": 3,
    "/plan?cluster=prod&group=checkout": 2,
    "/health": 2,
}
#: Width of a landscape A4 page in CSS pixels, its margins left out.
_PAPER = 1047
#: Charts, tables, cells and numbers that reach beyond the paper, or are cut.
_CUT = """width => {
    const component = '[data-testid=stBidiComponentIsolated]';
    const parts = [...document.querySelectorAll('.js-plotly-plot .main-svg, [data-testid=stMetricValue]')];
    for (const part of document.querySelectorAll(`${component}, ${component} *`))
        if (part.shadowRoot) parts.push(...part.shadowRoot.querySelectorAll('.frame, td'));
    if (!parts.length) return ['nothing was found'];
    const isCut = (part) =>
        part.getBoundingClientRect().right > width + 1 ||
        part.scrollWidth > part.clientWidth + 2 ||
        (part.matches('.frame') && part.scrollHeight > part.clientHeight + 2);
    const said = (part) => `${part.scrollWidth} of ${part.clientWidth}: ${part.textContent.slice(0, 80)}`;
    return parts.filter(isCut).map(said);
}"""

#: The sizes of what stands at the axes of charts, in one step: a refresh may draw them anew at any time.
_SIZES_OF_AXES = """charts => {
    const texts = [...document.querySelectorAll('.js-plotly-plot :is(.xaxislayer-above, .yaxislayer-above) text')];
    return (texts.length > 0 || charts === 0) && texts.map(text => parseFloat(getComputedStyle(text).fontSize));
}"""


#: Pixels between the title of a page and the age of its data below it.
_BELOW_TITLE = """() => {
    const [title, age] = ['[data-testid=stHeading]', 'strong'].map(
        one => document.querySelector('.st-key-page_head ' + one).getBoundingClientRect());
    return age.top - title.bottom;
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_are_legible_on_the_screen_and_whole_on_paper(
    browser: Browser, address: str, scheme: Literal["light", "dark"]
) -> None:
    visit = Visit(browser, address, scheme=scheme)
    for path, charts in _CHARTS.items():
        page = visit.open(path)
        drawn = page.locator(".js-plotly-plot").filter(has=page.locator(".xaxislayer-above text"))
        expect(drawn).to_have_count(charts)
        expect(page.locator('[data-testid="stSkeleton"]')).to_have_count(0)
        expect(page.get_by_role("grid").first).to_be_visible()
        visit.hold()  # what is being refreshed is faded
        found: dict[str, Any] = page.evaluate(_LEGIBILITY)
        assert found == {"faint": [], "escaped": []}, path
        sizes = page.wait_for_function(_SIZES_OF_AXES, arg=charts).json_value()
        assert min(sizes, default=12) >= 12, path
        _assert_whole_on_paper(page, path)
    visit.close()
    assert visit.troubles == []


def _assert_whole_on_paper(page: Page, path: str) -> None:
    page.evaluate("() => dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    page.set_viewport_size({"width": _PAPER, "height": 700})
    logo = page.get_by_test_id("stHeaderLogo").bounding_box()
    title = page.get_by_role("heading").first.bounding_box()
    assert logo is not None and title is not None
    assert logo["y"] + logo["height"] <= title["y"], path
    for control in ("Collector health", "Copy link", "Live", "Refresh", "15 min", "All groups"):
        expect(page.get_by_text(control, exact=True).or_(page.get_by_label(control, exact=True)).first).to_be_hidden()
    expect(page.get_by_text(re.compile(r"^Drawn on \d{4}-\d\d-\d\d at [\d:]{8} UTC$"))).to_be_visible()
    printed = page.locator(".st-key-on_paper").evaluate("line => getComputedStyle(line, '::after').content")
    assert printed == f'"{page.url}"'
    paper = page.get_by_test_id("stApp").evaluate("app => getComputedStyle(app).backgroundColor")
    assert paper == "rgb(255, 255, 255)", path
    assert page.evaluate(_LEGIBILITY)["faint"] == [], path
    assert page.evaluate(_CUT, _PAPER) == [], path
    page.emulate_media(media="screen")
    page.set_viewport_size({"width": 1280, "height": 900})


def test_in_a_narrow_window_the_age_of_the_data_stands_right_below_the_title(visit: Visit) -> None:
    page = visit.page
    page.set_viewport_size({"width": 390, "height": 844})
    visit.open("/retention")
    expect(page.get_by_text("Data as of")).to_be_visible()
    between: float = page.evaluate(_BELOW_TITLE)
    assert 0 <= between <= 12


def test_a_narrow_window_gets_cards_and_a_wide_one_the_table(visit: Visit) -> None:
    page = visit.page
    page.set_viewport_size({"width": 390, "height": 844})
    visit.open("/overview")
    card = page.get_by_role("link", name="payments-settlement")
    expect(card).to_be_visible()
    expect(page.get_by_role("grid")).to_have_count(0)
    expect(page.get_by_role("radio", name="Cards")).to_be_checked()
    assert visit.overflow() == 0
    assert page.evaluate(_LEGIBILITY)["escaped"] == []
    page.set_viewport_size({"width": 1280, "height": 900})
    expect(page.get_by_role("grid", name="Consumer groups")).to_be_visible()
    page.set_viewport_size({"width": 390, "height": 844})
    expect(page.get_by_role("grid")).to_have_count(0)
    page.get_by_role("radio", name="Table").click()
    expect(page).to_have_url(re.compile("as=table"))
    expect(page.get_by_role("grid", name="Consumer groups")).to_be_visible()
