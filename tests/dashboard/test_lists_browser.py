"""A group of 10,000 partitions in a real browser: each row is reached, found and saved, and Back goes back."""

import csv
import io
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.dashboard import long_lists
from tests.dashboard.browsing import Visit
from tests.dashboard.long_lists import STALLED, WIDE
from tests.dashboard.serving import served

pytestmark = pytest.mark.browser

_PARTITIONS = 10_000
_LONG = timedelta(hours=10)
#: A span without history: charts take longest to draw, and are not what is tested.
_SPAN = "from=2026-01-01T00:00:00Z&to=2026-01-01T01:00:00Z"


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The served dashboard over a group of 10,000 partitions, 602 groups in all."""
    folder = tmp_path_factory.mktemp("wide")
    long_lists.write_to(folder, datetime.now(UTC), partitions=_PARTITIONS, promised=_LONG)
    # What is tested is drawn once for each step: between them nothing needs to be drawn anew.
    with served(folder, refresh_seconds=600, interval_seconds=_LONG.total_seconds()) as address:
        yield address


@pytest.fixture
def visit(browser: Browser, wide: str) -> Iterator[Visit]:
    visitor = Visit(browser, wide)
    yield visitor
    visitor.close()
    assert visitor.troubles == []


#: Whether the cell that has the focus is seen whole: neither the headings nor the frame cover it.
_IS_SEEN = """grid => {
    const cell = grid.getRootNode().activeElement.getBoundingClientRect();
    const [head, frame] = [grid.tHead, grid.parentElement].map((one) => one.getBoundingClientRect());
    return cell.top >= head.bottom - 1 && cell.bottom <= frame.bottom + 1;
}"""


def _expect_text(page: Page, text: str) -> None:
    expect(page.get_by_text(text)).to_be_visible()


def _has(page: Page, /, **query: str) -> None:
    """Wait until the address holds this, besides group and span."""

    def is_there(url: str) -> bool:
        found = dict(parse_qsl(urlsplit(url).query))
        return {k: v for k, v in found.items() if k not in ("cluster", "group", "from", "to", "tab")} == query

    page.wait_for_url(is_there)


def _begins_with(page: Page, partition: int) -> None:
    """Wait until the first row of the partitions is this one's."""
    first = page.get_by_role("grid", name="Partitions of the group").locator("tbody tr:first-child td:nth-child(2)")
    expect(first).to_have_text(str(partition))


def test_ten_thousand_partitions(visit: Visit, tmp_path: Path) -> None:
    page = visit.open(f"/group?cluster=prod&group={WIDE}&{_SPAN}&tab=partitions")
    grid = page.get_by_role("grid", name="Partitions of the group")
    its_pages = page.locator(".st-key-partitions_page")
    _expect_text(page, "1–500 of 10,000 partitions of wide, worst first.")
    expect(grid.locator("tbody tr")).to_have_count(500)
    _begins_with(page, 42)  # the worst
    visit.settled()

    its_pages.get_by_role("button", name="Page 2", exact=True).click()
    _has(page, partitions_page="2")
    _expect_text(page, "501–1,000 of 10,000 partitions of wide, worst first.")
    visit.settled()
    heading = grid.get_by_role("columnheader", name="Partition", exact=True)
    heading.click()
    _has(page, partitions_sort="number")
    expect(heading).to_have_attribute("aria-sort", "ascending")
    visit.settled()
    heading.click()
    _has(page, partitions_sort="-number")
    expect(heading).to_have_attribute("aria-sort", "descending")
    _expect_text(page, "1–500 of 10,000 partitions of wide.")
    _begins_with(page, 9_999)  # of all rows, not of those of a page
    visit.settled()
    its_pages.get_by_role("button", name="Page 20", exact=True).click()
    _has(page, partitions_sort="-number", partitions_page="20")
    _expect_text(page, "9,501–10,000 of 10,000 partitions of wide.")
    _begins_with(page, 499)

    page.reload()
    _expect_text(page, "9,501–10,000 of 10,000 partitions of wide.")
    visit.settled()
    page.get_by_role("searchbox", name="Search the partitions").press_sequentially("wide-4711", delay=60)
    _has(page, partitions_sort="-number", partitions_q="wide-4711")
    _expect_text(page, "1 partition of wide that matches.")
    expect(grid.locator("tbody tr")).to_have_count(1)
    expect(its_pages).to_have_count(0)
    visit.settled()
    page.go_back()
    _has(page, partitions_sort="-number")
    _expect_text(page, "1–500 of 10,000 partitions of wide.")
    visit.settled()

    page.get_by_role("toolbar", name="Statuses of partitions").get_by_role("button", name="stalled").click()
    _has(page, partitions_sort="-number", partitions_status="stalled")
    _expect_text(page, f"1–500 of {STALLED} partitions of wide that match.")
    visit.settled()
    with page.expect_download() as download:
        page.get_by_role("button", name="CSV: Partitions of the group").click()
    file = tmp_path / "partitions.csv"
    download.value.save_as(file)
    rows = list(csv.DictReader(io.StringIO(file.read_text(encoding="utf-8"))))
    assert [int(row["partition"]) for row in rows] == list(range(41 + STALLED, 41, -1)), "all that match, in this order"

    page = visit.open("/overview")
    _expect_text(page, "1–100 of 602 groups.")
    page.locator(".st-key-page").get_by_role("button", name="Next page").click()
    _has(page, page="2")
    _expect_text(page, "101–200 of 602 groups.")
    visit.settled()
    page.get_by_role("button", name="catching up").click()
    _has(page, status="catching_up")
    _expect_text(page, "1–100 of 600 groups.")
    page.go_back()
    _expect_text(page, "101–200 of 602 groups.")
    visit.settled()
    page.go_back()
    _expect_text(page, "1–100 of 602 groups.")


def test_the_keyboard_walks_a_long_list_and_turns_its_page(visit: Visit) -> None:
    page = visit.open(f"/group?cluster=prod&group={WIDE}&{_SPAN}&tab=partitions")
    grid = page.get_by_role("grid", name="Partitions of the group")
    expect(grid.locator("tbody tr")).to_have_count(500)
    grid.get_by_role("gridcell").first.focus()
    for key in ("Control+End", "Home", *["ArrowUp"] * 30, "PageUp", "PageUp", "PageDown"):
        page.keyboard.press(key)
        assert grid.evaluate(_IS_SEEN), key
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="CSV: Partitions of the group")).to_be_focused()
    second = page.locator(".st-key-partitions_page").get_by_role("button", name="Page 2", exact=True)
    for _ in range(5):
        page.keyboard.press("Tab")
        if second.evaluate("button => button === document.activeElement"):
            break
    page.keyboard.press("Enter")
    _has(page, partitions_page="2")
    _expect_text(page, "501–1,000 of 10,000 partitions of wide, worst first.")
    visit.settled()
