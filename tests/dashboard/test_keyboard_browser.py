"""Pages by the keyboard alone: everything is reached and seen, each table is walked, sorted, opened and left, and
Escape closes what a key opened."""

import re
from contextlib import suppress
from dataclasses import dataclass, replace

import pytest
from playwright.sync_api import Locator, Page, TimeoutError, expect

from tests.dashboard.browsing import Visit
from tests.dashboard.pointer import until_shown

pytestmark = pytest.mark.browser

#: More stops of the Tab key than any page has.
_MAX_STOPS = 200
#: What is being drawn anew is in its place again by then.
_DRAWN_MS = 10_000
#: Where the focus is. ``is_seen`` is false where its middle lies outside of the window, below the line of the menu, or
#: (of a cell) below the headings of its table. ``was_marked`` is false where what had the focus at the call before
#: looks without it as it did with it: neither it, nor what is drawn for it or around it.
_FOCUS = """() => {
    const inner = (root, next) => {
        const e = next(root);
        return (e?.shadowRoot && inner(e.shadowRoot, next)) || e;
    };
    const isWithin = (e, selector) => !!e && (e.matches?.(selector) || isWithin(e.parentNode ?? e.host, selector));
    const look = e => {
        const style = getComputedStyle(e);
        const outline = style.outlineStyle === 'none' ? '' : style.outline;
        return [outline, style.boxShadow, style.borderColor, style.backgroundColor, style.textDecorationLine].join();
    };
    const around = e => {
        const found = [e, ...(e.closest('label')?.querySelectorAll('*') ?? [])];
        for (let up = e.parentElement; up && found.length < 40 && up.offsetHeight < 80; up = up.parentElement)
            found.push(up);
        return found;
    };
    const e = inner(document, root => root.activeElement);
    for (const animation of document.getAnimations()) if (animation instanceof CSSTransition) animation.finish();
    const was = window.focusedBefore;
    // The field of a list and the button that clears it share a frame, which is marked while either has the focus.
    const isSameField = was?.[0][0].closest('[data-testid="stSelectbox"]')?.contains(e);
    const wasMarked = !was || isSameField || was.some(([part, looked]) => look(part) !== looked);
    window.focusedBefore = e === document.body ? null : around(e).map(part => [part, look(part)]);
    const drawn = e.offsetWidth > 2 || e instanceof SVGElement ? e : e.closest('label') ?? e.parentElement;
    const box = drawn.getBoundingClientRect();
    const [x, y] = [(Math.max(box.left, 0) + Math.min(box.right, innerWidth)) / 2, (box.top + box.bottom) / 2];
    const line = '[data-testid="stHeader"], .st-key-menu, .st-key-finder_place, .st-key-skip_place';
    const hit = inner(document, root => root.elementFromPoint(x, y));
    const isClear = y > 0 && y < innerHeight && (isWithin(e, line) || !isWithin(hit, line));
    const grid = e.closest('[role=grid]');
    const name = e.getAttribute('aria-label') ?? e.innerText ?? e.textContent;
    const at = {
        grid: null, tag: e.tagName, name: name.trim().slice(0, 99), row: 0, column: 0,
        is_seen: isClear, was_marked: wasMarked, outline: getComputedStyle(e).outlineStyle,
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
#: Whether the page has had the same parts for two seconds, all of them drawn: a walk that begins while some are still
#: to come ends before them.
_IS_COMPLETE = """() => {
    const parts = document.querySelectorAll('button, a, input, summary, [data-testid=stBidiComponentIsolated]').length;
    if (document.querySelector('[data-testid=stSkeleton]') || window.counted?.parts !== parts)
        window.counted = {parts, since: performance.now()};
    return performance.now() - window.counted.since > 2000;
}"""
#: Of these, every heading that sorts is tried. Of the others it is one for each table: the rest is the same code.
_SORTED_BY_ALL = ("/overview", "/retention")
#: Pages, and the least number of tables that each shows: all of them are walked.
_PAGES = {
    "/overview": 1,
    "/retention": 1,
    "/group?cluster=prod&group=orders-fulfilment&range=6h": 1,
    "/group?cluster=prod&group=clickstream-archive&tab=partitions": 1,
    "/group?cluster=prod&group=clickstream-archive&tab=members": 1,
    "/topic?cluster=prod&topic=clicks": 2,
    "/rebalances": 1,
    "/rebalances?cluster=prod&group=orders-fulfilment&range=6h": 1,
    "/alerts": 4,
    "/capacity": 1,
    "/capacity?cluster=prod&group=checkout": 4,
    "/plan?cluster=prod&group=checkout": 1,
    "/health": 2,
}


@dataclass(frozen=True)
class Focus:
    """Where the focus is. Outside of tables ``grid`` is None."""

    grid: str | None
    tag: str
    name: str
    row: int
    column: int
    is_seen: bool
    was_marked: bool
    outline: str


def _focus(page: Page) -> Focus:
    return Focus(**page.evaluate(_FOCUS))


def _press(page: Page, key: str) -> Focus:
    """Press a key. Returns where the focus is then; what a refresh draws anew may be out of place for a moment."""
    page.keyboard.press(key)
    at = _focus(page)
    if not at.is_seen and at.tag != "BODY":
        with suppress(TimeoutError):
            page.wait_for_function(f"() => ({_FOCUS})().is_seen", timeout=_DRAWN_MS)
            at = replace(at, is_seen=True)
    return at


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


def _sort(page: Page, table: Locator, *, by_all: bool) -> None:
    """Sort by every heading that sorts, or by the first one. The focus stays on it, whatever is drawn anew."""
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
            if not by_all:
                return
        page.keyboard.press("ArrowRight")


@pytest.mark.parametrize("path", _PAGES)
def test_the_keyboard_reaches_everything_on_a_page_and_every_table_sorts(visit: Visit, path: str) -> None:
    page = visit.open(path)
    grids = page.get_by_role("grid")
    expect(grids.nth(_PAGES[path] - 1)).to_be_visible()
    page.wait_for_function(_IS_COMPLETE)
    reached = stops = 0
    before, unmarked = _focus(page), []
    while (at := _press(page, "Tab")).tag != "BODY":
        stops += 1
        assert stops < _MAX_STOPS, "no end: something holds the focus"
        assert at.is_seen, f"{at.tag} {at.name} is not seen"
        if not at.was_marked:
            unmarked.append(f"{before.tag} {before.name}")
        before = at
        if at.grid is None:
            continue
        table = grids.nth(reached)  # its label may say how it is sorted
        assert table.get_attribute("aria-label") == at.grid, "a table is one stop of the Tab key"
        reached += 1
        _walk(page, table)
        _sort(page, table, by_all=path in _SORTED_BY_ALL)
        visit.settled()
        before = _press(page, "Tab")
        assert before.name == f"CSV: {table.get_attribute('aria-label')}"
        stops += 1
    assert reached >= _PAGES[path]
    assert reached == grids.count(), f"after {stops} stops, the focus left the page from {before}"
    assert unmarked == [], "each shows that it has the focus"
    for _ in range(stops):
        at = _press(page, "Shift+Tab")
        assert at.is_seen or at.tag == "BODY", f"backwards, {at.tag} {at.name} is not seen"


@pytest.mark.parametrize("path", _SORTED_BY_ALL)
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


@pytest.mark.parametrize(
    ("path", "openers"),
    [
        ("/overview", ("Views", "UTC", "Find")),
        ("/group?cluster=prod&group=payments-settlement", ("Zoom to …", "Acknowledge", "Silence")),
        ("/alerts", ("Acknowledge", "Silence")),
    ],
)
def test_escape_closes_what_a_key_opened_and_gives_the_focus_back(
    visit: Visit, path: str, openers: tuple[str, ...]
) -> None:
    page = visit.open(path)
    opened = page.get_by_role("dialog").or_(page.get_by_test_id("stPopoverBody"))
    for name in openers:
        opener = page.get_by_role("button", name=name, exact=True).first
        opener.focus()
        page.keyboard.press("Enter")
        expect(opened.first).to_be_visible()
        # What has just been drawn does not hear a key before it has the focus.
        until_shown(lambda: page.keyboard.press("Escape"), lambda ms: expect(opened).to_have_count(0, timeout=ms))
        expect(opener).to_be_focused()


def test_the_focus_stays_on_a_partition_s_number_beside_a_chart_that_is_drawn_anew(visit: Visit) -> None:
    page = visit.open("/group?cluster=prod&group=clickstream-archive&tab=partitions&partitions_by=relative")
    number = '.js-plotly-plot a[*|href$="partitions_q=clicks-7"]'  # while Plotly draws it anew, there may be two
    page.locator(number).first.focus()
    focused = page.locator(f"{number}:focus")
    expect(focused).to_have_count(1)
    # As Plotly does with a name whose place among the rows has changed.
    focused.evaluate("link => link.replaceWith(link.cloneNode(true))")
    expect(focused).to_have_count(1)
    page.keyboard.press("Enter")
    page.wait_for_url("**partitions_q=clicks-7*")
    visit.settled()
