"""Tables in a real browser: they sort by value, are taken away as CSV, and are walked and opened by the keyboard."""

import csv
import io
import re
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.dashboard.browsing import Visit
from tests.dashboard.pointer import FROM_SERVER_MS, until_shown

pytestmark = pytest.mark.browser

_GROUP = "/group?cluster=prod&group=clickstream-archive&tab=partitions"
_SECONDS = {"ms": 0.001, "s": 1, "min": 60, "h": 3600, "d": 86_400}


def _partitions(page: Page) -> Locator:
    found = page.get_by_role("grid", name="Partitions of the group")
    expect(found.get_by_role("gridcell").first).to_be_visible()
    return found


def _cells(table: Locator, title: str) -> str:
    """The selector of a column's cells."""
    titles = [text.strip() for text in table.get_by_role("columnheader").all_inner_texts()]
    place = next(i for i, text in enumerate(titles) if text.startswith(title))
    return f"tbody td:nth-child({place + 1})"


def _column(table: Locator, title: str) -> list[str]:
    return table.locator(_cells(table, title)).all_inner_texts()


def _seconds(shown: str) -> float:
    words = shown.replace("≥ ", "").split()
    return sum(float(number) * _SECONDS[unit] for number, unit in zip(words[::2], words[1::2], strict=True))


def _number(shown: str) -> float:
    digits, _, suffix = shown.replace(",", "").partition(" ")
    return float(digits) * {"": 1, "k": 1e3, "M": 1e6}[suffix]


def _focused(page: Page) -> str:
    """What has the focus, as text."""
    found: str = page.evaluate(
        """() => { let e = document.activeElement;
                   while (e.shadowRoot?.activeElement) e = e.shadowRoot.activeElement;
                   return (e.getAttribute('aria-label') ?? e.innerText).trim() }"""
    )
    return found


def test_numbers_sort_by_value_and_again_the_other_way_round(visit: Visit) -> None:
    table = _partitions(visit.open(_GROUP))
    for title, value in (("Oldest unread", _seconds), ("Lag", _number), ("In/s", _number), ("Committed", _number)):
        heading = table.get_by_role("columnheader", name=title)
        as_found = _column(table, title)
        heading.click()
        expect(heading).to_have_attribute("aria-sort", "descending")
        values = [value(shown) for shown in _column(table, title)]
        assert values == sorted(values, reverse=True)
        assert len(set(values)) > 1, "a table that is all the same shows nothing"
        heading.click()
        expect(heading).to_have_attribute("aria-sort", "ascending")
        assert [value(shown) for shown in _column(table, title)] == sorted(values)
        heading.click()
        expect(heading).not_to_have_attribute("aria-sort", re.compile("."))
        assert sorted(_column(table, title)) == sorted(as_found)


def test_a_table_is_saved_as_a_csv_of_raw_values_under_a_descriptive_name(visit: Visit, tmp_path: Path) -> None:
    page = visit.open(_GROUP)
    shown = _column(_partitions(page), "Partition")
    with page.expect_download() as download:
        page.get_by_role("button", name="CSV: Partitions of the group").click()
    today = f"{datetime.now(UTC):%Y-%m-%d}"
    assert re.fullmatch(
        rf"lagwise-partitions-prod-clickstream-archive-{today}T\d{{6}}Z\.csv", download.value.suggested_filename
    )
    file = tmp_path / "partitions.csv"
    download.value.save_as(file)
    rows = list(csv.DictReader(io.StringIO(file.read_text(encoding="utf-8"))))
    assert [row["partition"] for row in rows] == shown
    assert {round(float(row["oldest_unread_seconds"]), 2) for row in rows} == {4080.0, 8.16}
    assert all(float(row["in_per_second"]) > 0 and row["lag_records"].isdigit() for row in rows)
    assert {row["status"] for row in rows} >= {"ok"}


def test_a_table_is_one_stop_of_the_tab_key_and_arrows_walk_its_cells(visit: Visit) -> None:
    page = visit.open("/retention")
    table = page.get_by_role("grid")
    expect(table.get_by_role("gridcell").first).to_be_visible()
    page.get_by_role("button", name="Live").or_(page.get_by_role("checkbox", name="Live")).first.focus()
    for _ in range(20):
        page.keyboard.press("Tab")
        if table.locator(":focus").count():
            break
    assert _focused(page) == "Status"
    page.keyboard.press("ArrowDown")
    assert _focused(page) == "✕ losing data"
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    assert _focused(page) == "clickstream-archive"
    page.keyboard.press("Tab")
    assert _focused(page).startswith("CSV"), "one stop, whatever the number of cells"
    page.keyboard.press("Tab")
    assert table.locator(":focus").count() == 0
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Shift+Tab")
    assert _focused(page) == "clickstream-archive", "where it was left"
    page.keyboard.press("Control+Home")
    assert _focused(page) == "Status"
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    expect(table.get_by_role("columnheader", name="In", exact=True)).to_have_attribute("aria-sort", "descending")
    page.keyboard.press("Control+End")
    page.keyboard.press("Enter")
    page.wait_for_url("**/group?**")
    visit.settled()
    expect(page.get_by_role("heading", name="payments-settlement")).to_be_visible()


def test_of_headings_that_share_an_order_the_chosen_one_says_how_the_rows_are_sorted(visit: Visit) -> None:
    page = visit.open("/retention")
    table = page.get_by_role("grid")
    sorted_by = table.locator("th[aria-sort]")
    expect(sorted_by).to_have_text(["In▲"])
    table.get_by_role("columnheader", name="At", exact=True).click()
    expect(sorted_by).to_have_text(["At▼"])
    table.get_by_role("columnheader", name="Group", exact=True).click()
    expect(sorted_by).to_have_text(["Group▲"])
    visit.settled()
    page.reload()
    expect(sorted_by).to_have_text(["Group▲"])


def test_a_refresh_leaves_the_sorting_the_focus_and_a_selection_as_they_are(visit: Visit) -> None:
    page = visit.open("/overview")
    table = page.get_by_role("grid", name="Consumer groups")
    heading = table.get_by_role("columnheader", name="Lag", exact=True)
    heading.click()
    expect(heading).to_have_attribute("aria-sort", "descending")
    page.keyboard.press("ArrowDown")
    held = _focused(page)
    since = table.locator(_cells(table, "Since")).first
    expect(since).not_to_have_text(since.inner_text())  # its status goes on
    assert _focused(page) == held
    expect(heading).to_have_attribute("aria-sort", "descending")


def test_a_group_opens_in_a_tab_of_its_own_like_any_link(visit: Visit) -> None:
    page = visit.open("/retention")
    link = page.get_by_role("link", name="clickstream-archive")
    with page.context.expect_page() as opened:
        link.click(modifiers=["ControlOrMeta"])
    expect(opened.value.get_by_role("heading", name="clickstream-archive")).to_be_visible()
    assert page.url.endswith("/retention")


def test_a_heading_explains_itself_to_the_mouse_and_to_the_keyboard(visit: Visit) -> None:
    page = visit.open("/retention")
    heading = page.get_by_role("columnheader", name="Partitions")
    tooltip = page.get_by_role("tooltip")
    until_shown(
        lambda: heading.hover(timeout=FROM_SERVER_MS),
        lambda ms: expect(tooltip).to_contain_text("which of them is the soonest.", timeout=ms),
    )
    page.mouse.move(5, 5)
    expect(tooltip).to_be_hidden()
    heading.focus()
    page.keyboard.press("ArrowLeft")
    expect(tooltip).to_contain_text("Records deleted before they were read")


def test_what_will_be_lost_is_seen_without_scrolling_at_1280_pixels(visit: Visit) -> None:
    page = visit.open("/retention")
    table = page.get_by_role("grid")
    expect(table.get_by_role("gridcell").first).to_be_visible()
    frame = table.locator("xpath=..")
    assert frame.evaluate("frame => frame.scrollWidth - frame.clientWidth") <= 0
    assert frame.evaluate("frame => frame.clientWidth") <= 1280


def test_a_table_does_not_bring_the_code_of_streamlit_s_own(browser: Browser, address: str) -> None:
    visit, asked = Visit(browser, address), []
    visit.page.on("request", lambda request: asked.append(request.url))
    try:
        visit.open("/retention")
        assert not [url for url in asked if "DataFrame" in url or "arrow" in url.lower()]
    finally:
        visit.close()


def test_rows_of_the_overview_have_two_lines_and_the_whole_sentence_at_the_pointer(visit: Visit) -> None:
    table = visit.open("/").get_by_role("grid", name="Consumer groups")
    expect(table.get_by_role("gridcell").first).to_be_visible()
    cells = table.locator(_cells(table, "Why")).evaluate_all(
        """cells => cells.map((cell) => {
            const lines = cell.querySelector(".lines");
            const { lineHeight } = getComputedStyle(lines);
            return {
                height: lines.clientHeight / parseFloat(lineHeight),
                isCut: lines.scrollHeight > lines.clientHeight + 1,
                isWhole: cell.title === lines.textContent,
            };
        })"""
    )
    assert max(cell["height"] for cell in cells) <= 2.1
    assert any(cell["isCut"] for cell in cells)
    assert all(cell["isWhole"] for cell in cells if cell["isCut"])


def test_every_column_of_the_losses_and_every_label_of_their_axis_is_seen_whole(visit: Visit) -> None:
    table = visit.open("/retention").get_by_role("grid", name="What will be lost")
    expect(table.get_by_role("columnheader", name="Cluster")).to_be_visible()
    hidden = table.evaluate("table => table.scrollWidth - table.closest('.frame').clientWidth")
    assert hidden <= 0, "at 1,280 pixels nothing has to be scrolled to"
    labels = table.locator(".axis span").evaluate_all(
        "spans => spans.map((span) => [span.textContent, span.getBoundingClientRect().left, "
        "span.getBoundingClientRect().right])"
    )
    assert [label for label, _, _ in labels] == ["now", "10 min", "1 h", "6 h", "1 d", "7 d", "30 d"]
    assert all(left[2] < right[1] for left, right in pairwise(labels)), f"two labels overlap: {labels}"
