"""Pages by the keyboard alone: each table is reached, walked, sorted, opened and left, and the focus is seen."""

import re
from dataclasses import dataclass

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.dashboard.browsing import Visit

pytestmark = pytest.mark.browser

#: More stops of the Tab key than any page has.
_MAX_STOPS = 200
#: Where the focus is. ``is_seen`` is false where its middle lies outside of the window, below the line of the menu, or
#: (of a cell) below the headings of its table.
_FOCUS = """() => {
    const inner = (root, next) => {
        const e = next(root);
        return (e?.shadowRoot && inner(e.shadowRoot, next)) || e;
    };
    const isWithin = (e, selector) => !!e && (e.matches?.(selector) || isWithin(e.parentNode ?? e.host, selector));
    const e = inner(document, root => root.activeElement);
    const drawn = e.offsetWidth > 2 ? e : e.closest('label') ?? e.parentElement;
    const box = drawn.getBoundingClientRect();
    const [x, y] = [(Math.max(box.left, 0) + Math.min(box.right, innerWidth)) / 2, (box.top + box.bottom) / 2];
    const line = '[data-testid="stHeader"], .st-key-menu, .st-key-finder_place, .st-key-skip_place';
    const hit = inner(document, root => root.elementFromPoint(x, y));
    const isClear = y > 0 && y < innerHeight && (isWithin(e, line) || !isWithin(hit, line));
    const grid = e.closest('[role=grid]');
    const at = {
        grid: null, tag: e.tagName, name: (e.getAttribute('aria-label') ?? e.innerText ?? '').trim(),
        row: 0, column: 0, is_seen: isClear, outline: getComputedStyle(e).outlineStyle,
    };
    if (!grid) return at;
    const isHeading = e.tagName === 'TH';
    const [frame, head] = [grid.parentElement, grid.tHead].map(one => one.getBoundingClientRect());
    return {
        ...at, grid: grid.getAttribute('aria-label'), name: e.innerText.trim(), column: e.cellIndex,
        row: isHeading ? 0 : e.parentElement.sectionRowIndex + 1,
        is_seen: isClear && box.top >= (isHeading ? frame.top : head.bottom) - 1 && box.bottom <= frame.bottom + 1,
    };
}"""
_PAGES = ("/overview", "/retention")


@dataclass(frozen=True)
class Focus:
    """Where the focus is. Outside of tables ``grid`` is None."""

    grid: str | None
    tag: str
    name: str
    row: int
    column: int
    is_seen: bool
    outline: str


def _focus(page: Page) -> Focus:
    return Focus(**page.evaluate(_FOCUS))


def _press(page: Page, key: str) -> Focus:
    page.keyboard.press(key)
    return _focus(page)


def _walk(page: Page, table: Locator) -> None:
    """Through a table that the Tab key has reached: to its corners and back, by a page, and a row at a time."""
    rows, columns = table.locator("tbody tr").count(), table.get_by_role("columnheader").count()
    for key, place in (
        ("Control+End", (rows, columns - 1)),
        ("Home", (rows, 0)),
        ("ArrowUp", (rows - 1, 0)),
        ("Control+Home", (0, 0)),
        ("PageDown", None),
        ("PageUp", None),
        ("Control+Home", (0, 0)),
        ("End", (0, columns - 1)),
        ("Control+Home", (0, 0)),
    ):
        at = _press(page, key)
        assert at.grid is not None, key
        assert at.is_seen, f"{at.grid}: {key} leads to a cell that is not seen"
        assert at.outline == "solid", f"{at.grid}: {key} leads to a cell that is not marked"
        assert place is None or (at.row, at.column) == place, key


def _sort(page: Page, table: Locator) -> None:
    """Sort by every heading that sorts. The focus stays on it, whatever is drawn anew."""
    headings = table.get_by_role("columnheader")
    for column in range(headings.count()):
        heading = headings.nth(column)
        at = _focus(page)
        assert (at.row, at.column) == (0, column)
        if "sortable" in (heading.get_attribute("class") or ""):
            was = heading.get_attribute("aria-sort")
            page.keyboard.press("Enter")
            if was is None:
                expect(heading).to_have_attribute("aria-sort", re.compile("."))
            else:
                expect(heading).not_to_have_attribute("aria-sort", was)
        page.keyboard.press("ArrowRight")


@pytest.mark.parametrize("path", _PAGES)
def test_the_keyboard_reaches_everything_on_a_page_and_every_table_sorts(visit: Visit, path: str) -> None:
    page = visit.open(path)
    grids = page.get_by_role("grid")
    expect(grids.first).to_be_visible()
    expect(page.locator('[data-testid="stSkeleton"]')).to_have_count(0)
    tables, reached, stops = grids.count(), 0, 0
    for stops in range(_MAX_STOPS):  # noqa: B007
        at = _press(page, "Tab")
        if at.tag == "BODY":
            break
        assert at.is_seen, f"{at.tag} {at.name} is not seen"
        if at.grid is None:
            continue
        table = grids.nth(reached)  # its label may say how it is sorted
        assert table.get_attribute("aria-label") == at.grid, "a table is one stop of the Tab key"
        reached += 1
        _walk(page, table)
        _sort(page, table)
        visit.settled()
        assert _press(page, "Tab").name == f"CSV: {table.get_attribute('aria-label')}"
    assert stops < _MAX_STOPS - 1, "no end: something holds the focus"
    assert reached == tables
    for _ in range(stops):
        at = _press(page, "Shift+Tab")
        assert at.is_seen or at.tag == "BODY", f"backwards, {at.tag} {at.name} is not seen"


@pytest.mark.parametrize("path", _PAGES)
def test_enter_on_a_cell_opens_the_link_of_its_row(visit: Visit, path: str) -> None:
    page = visit.open(path)
    row = page.locator("tr.opens").first
    expect(row).to_be_visible()
    target = row.get_by_role("link").get_attribute("href")
    row.page.get_by_role("grid").first.get_by_role("columnheader").first.focus()
    at = _press(page, "ArrowDown")
    assert (at.row, at.column) == (1, 0)
    while _focus(page).name != row.get_by_role("link").inner_text():
        page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/{target}")
    visit.settled()


def test_the_first_stops_skip_the_menu(visit: Visit) -> None:
    page = visit.open("/overview")
    expect(page.get_by_role("grid").first).to_be_visible()
    assert _press(page, "Tab").name == "Skip to main content", "Streamlit's own link, which does not skip the menu"
    page.keyboard.press("Enter")
    at = _press(page, "Tab")
    assert (at.name, at.is_seen, at.outline) == ("Skip the menu", True, "solid")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Who is in trouble?")).to_be_focused()
