"""The overview and the group page in a real browser, against the really started server."""

import re
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.dashboard.browsing import Visit
from tests.dashboard.stories import HOSTILE_NAMES

pytestmark = pytest.mark.browser


def _table(page: Page) -> Locator:
    return page.get_by_role("grid").first


def _cells(page: Page) -> list[str]:
    """What the first table shows."""
    cells = _table(page).get_by_role("gridcell")
    expect(cells.first).to_be_visible()
    return cells.all_inner_texts()


def _query(page: Page) -> dict[str, list[str]]:
    return parse_qs(urlsplit(page.url).query)


def test_the_overview_shows_the_worst_first(visit: Visit) -> None:
    page = visit.open()
    expect(page.get_by_role("heading", name="Who is in trouble?")).to_be_visible()
    expect(page.get_by_text("Data as of")).to_be_visible()
    cells = _cells(page)
    assert cells.index("payments-settlement") < cells.index("clickstream-archive") < cells.index("orders-fulfilment")
    assert "never" in cells
    assert "checkout" not in cells, "a group that is ok stays folded"
    assert visit.overflow() == 0


def test_a_click_on_a_row_opens_the_group(visit: Visit) -> None:
    page = visit.open()
    assert "payments-settlement" in _cells(page)
    _table(page).get_by_text("never").first.click()
    page.wait_for_url("**/group?**")
    assert _query(page)["cluster"] == ["prod"]
    assert _query(page)["group"] == ["payments-settlement"]
    visit.settled()
    expect(page.get_by_role("heading", name="payments-settlement")).to_be_visible()
    expect(page.get_by_text("18,240 records of 2 partitions")).to_be_visible()
    expect(page).to_have_title("payments-settlement · Lagwise")
    expect(page.locator(".js-plotly-plot").first).to_be_visible()
    assert visit.overflow() == 0

    page.reload()
    visit.settled()
    expect(page.get_by_role("heading", name="payments-settlement")).to_be_visible()

    page.go_back()
    expect(page.get_by_role("heading", name="Who is in trouble?")).to_be_visible()
    visit.settled()
    assert "payments-settlement" in _cells(page), "going back does not open the group again"


def test_filters_are_in_the_address_and_survive_a_reload(visit: Visit) -> None:
    page = visit.open()
    page.get_by_role("button", name=re.compile("stopped")).click()
    expect(page).to_have_url(re.compile("status=stopped"))
    page.get_by_placeholder("Group or topic").fill("invoice")
    expect(page).to_have_url(re.compile("q=invoice"))
    expect(page.get_by_text("1 group.")).to_be_visible()

    page.reload()
    visit.settled()
    expect(page.get_by_text("1 group.")).to_be_visible()
    assert _query(page)["status"] == ["stopped"]
    assert _query(page)["q"] == ["invoice"]
    cells = _cells(page)
    assert "invoice-mailer" in cells
    assert "etl-nightly" not in cells


def test_a_filter_that_fits_nothing_can_be_cleared(visit: Visit) -> None:
    page = visit.open("/?q=no-such-group-anywhere")
    expect(page.get_by_text("No group matches.")).to_be_visible()
    page.get_by_role("button", name="Clear the filters").click()
    expect(page.get_by_text("No group matches.")).to_be_hidden()
    assert "payments-settlement" in _cells(page)
    expect(page).not_to_have_url(re.compile(r"[?&]q="))


def test_a_click_on_a_heading_sorts_all_rows_in_the_database(visit: Visit) -> None:
    page = visit.open()
    heading = _table(page).get_by_role("columnheader", name="Group")
    heading.click()
    expect(page).to_have_url(re.compile("sort="))
    expect(heading).to_have_attribute("aria-sort", "ascending")
    expect(_table(page)).to_contain_text(re.compile("billing-export.*clickstream-archive.*payments-settlement", re.S))
    heading.click()
    expect(page).to_have_url(re.compile("sort=-name"))
    expect(heading).to_have_attribute("aria-sort", "descending")
    expect(_table(page)).to_contain_text(re.compile("payments-settlement.*clickstream-archive.*billing-export", re.S))
    heading.click()
    expect(page).not_to_have_url(re.compile("sort="))


def test_the_quiet_groups_unfold(visit: Visit) -> None:
    page = visit.open()
    page.get_by_text(re.compile("quiet groups: ")).click()
    expect(page.get_by_role("grid")).to_have_count(2)
    expect(page.get_by_role("link", name="checkout", exact=True)).to_be_visible()


def test_the_page_follows_new_data_by_itself(visit: Visit) -> None:
    page = visit.open()
    badge = page.get_by_text(re.compile("analysed .* ago"))
    first = badge.inner_text()
    expect(badge).not_to_have_text(first)


def test_the_time_range_is_in_the_address(visit: Visit) -> None:
    page = visit.open("/group?cluster=prod&group=orders-fulfilment")
    page.get_by_role("radio", name="15 min").click()
    expect(page).to_have_url(re.compile(r"range=15"))
    page.reload()
    visit.settled()
    expect(page.get_by_role("radio", name="15 min")).to_be_checked()
    expect(page.get_by_role("heading", name="orders-fulfilment")).to_be_visible()


def test_dark_is_dark(browser: Browser, address: str) -> None:
    """Streamlit's settings reach the server although it was not started in the checkout."""
    visit = Visit(browser, address, scheme="dark")
    try:
        page = visit.open("/group?cluster=prod&group=fraud-scoring")
        colour = page.locator('[data-testid="stApp"]').evaluate("e => getComputedStyle(e).backgroundColor")
        assert colour == "rgb(14, 20, 32)"
        expect(page.locator(".js-plotly-plot").first).to_be_visible()
        assert visit.overflow() == 0
        assert visit.troubles == []
    finally:
        visit.close()


@pytest.mark.parametrize("path", ["/", "/group", "/alerts", "/capacity", "/plan", "/health"])
def test_every_page_opens_by_its_address(visit: Visit, path: str) -> None:
    page = visit.open(path)
    expect(page.locator('[data-testid="stException"]')).to_have_count(0)
    expect(page.get_by_text("Something went wrong")).to_have_count(0)
    assert "Traceback" not in page.locator("body").inner_text()
    assert visit.overflow() == 0


@pytest.mark.parametrize("name", HOSTILE_NAMES, ids=lambda n: repr(n[:12]))
def test_hostile_names_are_shown_letter_by_letter(visit: Visit, name: str) -> None:
    from urllib.parse import quote

    from lagwise_dashboard.escaping import visible

    page = visit.open(f"/group?cluster=prod&group={quote(name)}")
    expect(page.locator(".js-plotly-plot").first).to_be_visible()
    heading = page.locator('[data-testid="stHeading"] h2').first.inner_text()
    assert heading.replace("\u2060", "") == visible(name)
    callout = page.locator('[data-testid="stAlert"]').first.inner_text().replace("\u2060", "")
    assert visit.foreign_links() == [], "no name becomes a link"
    assert f"{visible(name)}: it has committed nothing for 9 min." in callout
    assert visit.overflow() == 0
