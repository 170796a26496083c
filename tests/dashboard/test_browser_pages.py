"""The pages on topics, retention and rebalances, zoom and cards, in a real browser against the real server."""

import re
from collections.abc import Iterator
from urllib.parse import parse_qs, quote, urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect

from lagwise_dashboard.escaping import visible
from tests.dashboard.browsing import Visit
from tests.dashboard.pointer import click, drag
from tests.dashboard.stories import HOSTILE_NAMES

pytestmark = pytest.mark.browser

_CHART = ".js-plotly-plot"
_PHONE = (
    "Mozilla/5.0 (Linux; Android 14; Pixel 8) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0 Mobile Safari/537.36"
)


@pytest.fixture
def phone(browser: Browser, address: str) -> Iterator[Visit]:
    """A visitor on a phone."""
    visitor = Visit(browser, address, viewport=(390, 844), user_agent=_PHONE)
    yield visitor
    visitor.close()
    assert visitor.troubles == []


def _query(page: Page) -> dict[str, list[str]]:
    return parse_qs(urlsplit(page.url).query)


def test_a_stretch_dragged_over_is_in_the_address_and_survives_a_reload(visit: Visit) -> None:
    page = visit.open("/group?cluster=prod&group=orders-fulfilment")
    drag(page.locator(_CHART).first, (0.4, 0.3), (0.6, 0.35))
    scrolled = page.get_by_test_id("stMain").evaluate("main => main.scrollTop")
    assert scrolled == 0, "the first chart is on the screen without scrolling"
    expect(page).to_have_url(re.compile("from=.*to="))
    zoomed = _query(page)
    leave = page.get_by_role("button", name="Leave the zoom")
    expect(leave).to_be_visible()
    page.reload()
    visit.settled()
    expect(leave).to_be_visible()
    assert _query(page) == zoomed
    leave.click()
    expect(leave).to_be_hidden()
    expect(page).not_to_have_url(re.compile("from="))


def test_who_does_not_drag_types_the_stretch(visit: Visit) -> None:
    page = visit.open("/group?cluster=prod&group=orders-fulfilment")
    page.get_by_role("button", name="Zoom to").click()
    page.get_by_role("button", name="Zoom", exact=True).click()
    expect(page).to_have_url(re.compile("from=.*to="))
    expect(page.get_by_role("button", name="Leave the zoom")).to_be_visible()


def test_the_heat_map_and_the_timeline_of_members_are_drawn(visit: Visit) -> None:
    page = visit.open("/group?cluster=prod&group=clickstream-archive&tab=partitions")
    expect(page.locator(f"{_CHART} g.hm image").last).to_be_attached()
    page = visit.open("/rebalances?cluster=prod&group=orders-fulfilment")
    expect(page.locator(f"{_CHART} g.bars path").first).to_be_attached()
    assert visit.overflow() == 0


@pytest.mark.parametrize(
    ("part", "place", "found"),
    [
        ('a[*|href$="partitions_q=clicks-7"]', (0.5, 0.5), "clicks-7"),
        ("g.hm image", (0.9, 10.5 / 24), "clicks-10"),
        (".scatterlayer .trace:first-child .js-line", (0.9, 0.5), "clicks-7"),
    ],
    ids=["number", "cell", "lines"],
)
def test_a_click_on_a_partition_in_the_charts_shows_its_row_of_the_table(
    visit: Visit, part: str, place: tuple[float, float], found: str
) -> None:
    page = visit.open("/group?cluster=prod&group=clickstream-archive&tab=partitions&partitions_by=relative")
    rows = page.get_by_role("grid", name="Partitions of the group").locator("tbody tr")
    expect(rows).to_have_count(24)
    click(page.locator(f"{_CHART} {part}").last, place)
    shown = {"partitions_by": ["relative"], "partitions_q": [found], "tab": ["partitions"]}
    assert _query(page) == {"cluster": ["prod"], "group": ["clickstream-archive"], **shown}
    expect(rows).to_have_count(1)
    expect(rows.first).to_contain_text("at risk")
    page.go_back()
    expect(rows).to_have_count(24)


def test_numbers_that_mean_the_same_read_alike_on_a_page(visit: Visit) -> None:
    page = visit.open("/group?cluster=prod&group=clickstream-archive")
    expect(page.get_by_text("are deleted from")).to_contain_text(
        re.compile(r"on, in 52 min \(at the latest at .*\)\. Then")
    )
    expect(page.get_by_test_id("stMetric").filter(has_text="Loss in")).to_contain_text("52 min")
    expect(page.get_by_text("will be deleted in 52 min")).to_be_visible()
    page = visit.open("/rebalances?cluster=prod&group=session-cleaner&range=6h")
    by_hour = page.get_by_role("grid", name="Rebalances of the group by hour")
    expect(by_hour).to_be_visible()
    for tile in ("Rebalances", "Downtime"):
        (place,) = (n for n, name in enumerate(by_hour.get_by_role("columnheader").all_inner_texts()) if tile in name)
        in_table = by_hour.get_by_role("row").nth(1).get_by_role("gridcell").nth(place).inner_text()
        in_tile = page.get_by_test_id("stMetric").filter(has_text=tile).get_by_test_id("stMetricValue")
        expect(in_tile).to_have_text(in_table)


def test_what_happened_to_a_group_is_filtered_by_kind_and_back_takes_it_back(visit: Visit) -> None:
    # The events are up to an hour older than the suite's start: in the last hour not all stay until it ends.
    page = visit.open("/group?cluster=prod&group=orders-fulfilment&range=6h")
    rows = page.get_by_role("grid", name="What happened to the group").locator("tbody tr")
    expect(rows).to_have_count(3)
    expect(rows.nth(0)).to_contain_text("falling behind")
    page.get_by_role("toolbar", name="Kinds of events").get_by_role("button", name="Rebalance").click()
    page.wait_for_url("**events_kind=rebalance**")
    expect(rows).to_have_count(2)
    expect(rows.nth(0)).to_contain_text("a member left")
    page.go_back()
    expect(rows).to_have_count(3)


def test_from_a_group_to_its_topic_and_back(visit: Visit) -> None:
    page = visit.open("/group?cluster=prod&group=clickstream-archive")
    page.get_by_role("link", name="Topic clicks").click()
    page.wait_for_url("**/topic?**")
    visit.settled()
    expect(page.get_by_role("heading", name="clicks", exact=True)).to_be_visible()
    expect(
        page.get_by_text(re.compile(r"Retention will delete unread records of .* in 52 min at the earliest"))
    ).to_be_visible()
    page.go_back()
    expect(page.get_by_role("heading", name="clickstream-archive")).to_be_visible()


def test_a_phone_gets_cards_that_fit_and_open_the_group(phone: Visit) -> None:
    page = phone.open("/")
    card = page.get_by_role("link", name="payments-settlement")
    expect(card).to_be_visible()
    expect(page.get_by_role("grid")).to_have_count(0)
    assert phone.overflow() == 0
    card.click()
    page.wait_for_url("**/group?**")
    phone.settled()
    expect(page.get_by_role("heading", name="payments-settlement")).to_be_visible()
    assert phone.overflow() == 0


def test_cards_are_reached_and_opened_by_the_keyboard(visit: Visit) -> None:
    page = visit.open("/?as=cards")
    card = page.get_by_role("link", name="payments-settlement")
    expect(card).to_be_visible()
    page.get_by_placeholder("Group or topic").focus()
    for _ in range(60):
        if card.evaluate("e => e === document.activeElement"):
            break
        page.keyboard.press("Tab")
    expect(card).to_be_focused()
    page.keyboard.press("Enter")
    page.wait_for_url("**/group?**")


@pytest.mark.parametrize("path", ["/topic?cluster=prod&topic=clicks", "/retention", "/rebalances"])
def test_the_other_pages_open_by_their_address(visit: Visit, path: str) -> None:
    page = visit.open(path)
    expect(page.get_by_role("grid").first).to_be_visible()
    expect(page.get_by_text("Something went wrong")).to_have_count(0)
    assert visit.overflow() == 0


@pytest.mark.parametrize("name", HOSTILE_NAMES, ids=lambda n: repr(n[:12]))
def test_hostile_names_are_shown_letter_by_letter(visit: Visit, name: str) -> None:
    for path, heading in (
        (f"/rebalances?cluster=prod&group={quote(name)}", f"Rebalances of {visible(name)}"),
        (f"/topic?cluster=prod&topic={quote(name[:200])}", visible(name[:200])),
    ):
        page = visit.open(path)
        expect(page.locator(_CHART).first).to_be_visible()
        assert page.locator('[data-testid="stHeading"] h2').first.inner_text().replace("\u2060", "") == heading
        assert visit.foreign_links() == [], "no name becomes a link"
        assert visit.overflow() == 0
