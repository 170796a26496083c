"""The strip of all groups in a real browser: pointer, keyboard, legend, colours, and the width of the table below."""

import io
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import pytest
from PIL import Image
from playwright.sync_api import Browser, Locator, Page, Position, expect

from lagwise.tables.analysis import GROUP_STATUS
from lagwise.tables.store import Lake
from tests.dashboard import lakes
from tests.dashboard.browsing import Visit
from tests.dashboard.lakes import Row, Scene
from tests.dashboard.pointer import FROM_SERVER_MS, until_shown
from tests.dashboard.serving import served
from tests.dashboard.stories import GROUPS_OF_THE_DEMO, HOSTILE_NAMES
from tests.lake_rows import overwrite

pytestmark = pytest.mark.browser

#: How much a mark differs from what lies below it at least: WCAG 2.2, 1.4.11.
_ENOUGH = 3.0
#: Where the first cell of each status is: a point inside of it, or on the outline of one that is hollow.
_POINTS = """svg => [...svg.querySelectorAll('path')].map(path => {
    const [x, y, size] = path.getAttribute('d').match(/[\\d.]+/g).map(Number);
    const box = svg.getBoundingClientRect();
    const across = path.classList.contains('hollow') ? 0 : size / 2;
    return [box.left + x + across, box.top + y + size / 2].map(Math.floor);
})"""


_MIDDLE = "one => (one.getBoundingClientRect().top + one.getBoundingClientRect().bottom) / 2"
#: Whether the cell that is marked is within what the strip shows of its cells.
_IS_IN_VIEW = """cells => {
    const [mark, frame] = [cells.querySelector('.marked'), cells].map(one => one.getBoundingClientRect());
    return mark.top >= frame.top - 1 && mark.bottom <= frame.bottom + 1;
}"""
#: Pixels from the strip's left and top.
_FIRST_CELL: Position = {"x": 9, "y": 9}
_LONG = timedelta(hours=10)


@dataclass(frozen=True)
class Changing:
    """A served dashboard that is refreshed every two seconds, and its lake, into which a test writes."""

    address: str
    lake: Lake
    rows: list[Row]

    def write(self, groups: Collection[str] = (), **changed: str) -> None:
        """As at the beginning, but for these values of these groups."""
        overwrite(self.lake, GROUP_STATUS, [r | (changed if r["group"] in groups else {}) for r in self.rows])

    def write_two_more_that_lose_data(self) -> None:
        """Two groups come before the one that has always been the second."""
        self.write({"fraud-scoring", "invoice-mailer"}, status="losing_data")

    @contextmanager
    def visited(self, browser: Browser, path: str = "/overview") -> Iterator[Page]:
        """The overview, as it is at the beginning."""
        self.write()
        visit = Visit(browser, self.address)
        yield visit.open(path)
        visit.close()
        assert visit.troubles == []


@pytest.fixture(scope="module")
def changing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Changing]:
    folder = tmp_path_factory.mktemp("changing")
    lake = lakes.write_to(folder, Scene(datetime.now(UTC), promised=_LONG))
    with served(folder, refresh_seconds=2, interval_seconds=_LONG.total_seconds()) as address:
        yield Changing(address, lake, lake.read(GROUP_STATUS).to_pylist())


def _cells(page: Page) -> Locator:
    cells = page.get_by_role("listbox", name="All groups, worst first")
    expect(cells.locator("path").first).to_be_attached()
    return cells


def _with_the_keyboard_on_the_second(page: Page) -> Locator:
    """The cells, of which the keyboard is on that of clickstream-archive."""
    cells = _cells(page)
    cells.focus()
    page.keyboard.press("ArrowRight")
    expect(_title(page)).to_contain_text("clickstream-archive")
    return cells


def _hover_first_cell(cells: Locator, says: str) -> None:
    """Until its title says so: whatever is above the strip may come later, and move it away from the pointer."""
    title = _title(cells.page)
    until_shown(
        lambda: cells.hover(position=_FIRST_CELL, timeout=FROM_SERVER_MS),
        lambda ms: expect(title).to_contain_text(says, timeout=ms),
    )


def _title(page: Page) -> Locator:
    return page.locator(".help[role=tooltip]:popover-open")


def test_a_cell_says_what_it_is_and_opens_its_group(visit: Visit) -> None:
    page = visit.open("/overview?range=6h")
    cells = _cells(page)
    _hover_first_cell(cells, "payments-settlement (prod)")
    expect(_title(page)).to_contain_text("✕ losing data")
    expect(_title(page)).to_contain_text("18,240 records of 2 partitions were deleted by r…")
    until_shown(
        lambda: cells.click(position=_FIRST_CELL, timeout=FROM_SERVER_MS),
        lambda ms: page.wait_for_url("**/group?cluster=prod&range=6h&group=payments-settlement", timeout=ms),
        FROM_SERVER_MS,
    )
    expect(page.get_by_role("heading", name="payments-settlement")).to_be_visible()
    visit.settled()


def test_names_beyond_the_basic_plane_are_read_whole_and_open_their_group(visit: Visit) -> None:
    page = visit.open("/overview?q=%F0%9F%9A%80")
    cells = _cells(page)
    cells.focus()
    page.keyboard.press("End")
    expect(_title(page)).to_contain_text("\N{ROCKET}-orders-b")
    page.keyboard.press("Enter")
    page.wait_for_url("**/group?cluster=prod&group=%F0%9F%9A%80-orders-b")
    expect(page.get_by_role("heading", name="\N{ROCKET}-orders-b")).to_be_visible()
    visit.settled()


def test_the_strip_is_one_stop_of_the_tab_key_and_arrows_walk_it(visit: Visit) -> None:
    page = visit.open("/overview")
    cells = _cells(page)
    cells.focus()
    page.keyboard.press("Tab")
    expect(page.get_by_role("toolbar", name="Statuses").get_by_role("button").first).to_be_focused()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("button", name="at risk")).to_be_focused()
    page.keyboard.press("Shift+Tab")
    expect(cells).to_be_focused()
    expect(cells.get_by_role("option")).to_have_accessible_name(
        re.compile("payments-settlement .*, ✕ losing data: 18,240")
    )
    page.keyboard.press("ArrowRight")
    expect(_title(page)).to_contain_text("clickstream-archive")
    page.keyboard.press("End")
    expect(_title(page)).to_contain_text("legacy-reports")
    page.keyboard.press("Home")
    page.keyboard.press("ArrowLeft")
    expect(_title(page)).to_contain_text("payments-settlement")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    page.wait_for_url("**/group?cluster=prod&group=clickstream-archive")
    visit.settled()


def test_a_refresh_leaves_the_keyboard_on_its_group_wherever_that_moves(browser: Browser, changing: Changing) -> None:
    with changing.visited(browser) as page:
        cells = _with_the_keyboard_on_the_second(page)
        changing.write_two_more_that_lose_data()
        expect(page.get_by_role("button", name="losing data")).to_contain_text("3")
        expect(cells).to_be_focused()
        expect(_title(page)).to_contain_text("clickstream-archive")
        expect(cells.get_by_role("option")).to_have_attribute("aria-posinset", "4")
        page.keyboard.press("Enter")
        page.wait_for_url("**/group?cluster=prod&group=clickstream-archive")


def test_a_refresh_leaves_the_focus_on_the_row_of_its_group_wherever_that_moves(
    browser: Browser, changing: Changing
) -> None:
    with changing.visited(browser) as page:
        table = page.get_by_role("grid", name="Consumer groups")
        cell = table.get_by_role("gridcell", name="clickstream-archive", exact=True)
        cell.focus()
        rows = table.locator("tbody tr")
        expect(rows.nth(1)).to_contain_text("clickstream-archive")
        changing.write_two_more_that_lose_data()
        expect(rows.nth(1)).not_to_contain_text("clickstream-archive")
        expect(cell).to_be_focused()
        page.keyboard.press("Enter")
        page.wait_for_url("**/group?cluster=prod&group=clickstream-archive")


def test_a_refresh_with_one_more_block_leaves_the_keyboard_on_its_group(browser: Browser, changing: Changing) -> None:
    with changing.visited(browser, "/overview?by=cluster") as page:
        cells = _with_the_keyboard_on_the_second(page)
        changing.write({"payments-settlement"}, cluster="canary")
        expect(cells.get_by_role("link")).to_have_text(["canary", "prod", "staging"])
        expect(_title(page)).to_contain_text("clickstream-archive")
        expect(cells.locator(".block svg path").last).to_be_visible()
        expect(cells.locator(".block")).to_have_count(3)


def test_a_refresh_leaves_the_title_beside_a_pointer_that_rests(browser: Browser, changing: Changing) -> None:
    with changing.visited(browser) as page:
        _hover_first_cell(_cells(page), "payments-settlement")
        changing.write_two_more_that_lose_data()
        expect(page.get_by_role("button", name="losing data")).to_contain_text("3")
        expect(_title(page)).to_contain_text("fraud-scoring", timeout=2_000)
        page.mouse.move(0, 0)
        expect(_title(page)).to_have_count(0)


def test_the_cell_that_the_keyboard_is_on_is_scrolled_into_view(visit: Visit) -> None:
    visit.page.set_viewport_size({"width": 400, "height": 900})
    page = visit.open("/overview?by=topic")
    cells = _cells(page)
    assert cells.evaluate("cells => cells.scrollHeight - cells.clientHeight") > 0
    cells.focus()
    for key, ends in (("End", "bottom"), ("Home", "top")):
        page.keyboard.press(key)
        assert cells.evaluate(_IS_IN_VIEW), ends


def test_the_legend_filters_and_the_strip_keeps_all_cells(visit: Visit) -> None:
    page = visit.open("/overview")
    count = _cells(page).locator("path").count()
    page.get_by_role("button", name="stopped").click()
    expect(page).to_have_url(re.compile("status=stopped"))
    expect(page.get_by_role("button", name="stopped")).to_have_attribute("aria-pressed", "true")
    expect(_cells(page).locator("path.left-out")).to_have_count(count - 1)
    visit.settled()
    page.get_by_role("button", name="stopped").click()
    expect(page).not_to_have_url(re.compile("status="))
    expect(_cells(page).locator("path.left-out")).to_have_count(0)


def test_grouped_by_topic_a_block_leads_to_its_groups_whatever_their_names(visit: Visit) -> None:
    page = visit.open("/overview?by=topic")
    blocks = _cells(page).locator(".block")
    beyond = len({s.topic for s in GROUPS_OF_THE_DEMO}) + len(HOSTILE_NAMES) - 23
    expect(blocks).to_have_count(24)
    expect(blocks.last).to_contain_text(f"{beyond} others")
    assert _cells(page).locator("a[href*='script']").count() == 1, "a name is part of an address, and no address"
    blocks.get_by_role("link", name="clicks", exact=True).click()
    page.wait_for_url("**/overview?q=clicks&by=topic")
    expect(page.get_by_text("1 group.")).to_be_visible()
    visit.settled()


def test_the_name_of_a_block_is_reached_by_the_keyboard_and_leaves_the_other_filters(visit: Visit) -> None:
    page = visit.open("/overview?by=cluster&q=a&status=stopped&sort=name&as=table")
    _cells(page).focus()
    page.keyboard.press("Tab")
    link = page.get_by_role("link", name="prod", exact=True)
    expect(link).to_be_focused()
    badge = page.get_by_text(re.compile("analysed .* ago"))
    expect(badge).not_to_have_text(badge.inner_text())
    expect(link).to_be_focused()
    page.keyboard.press("Enter")
    page.wait_for_url("**/overview?cluster=prod&q=a&status=stopped&sort=name&by=cluster&as=table")
    visit.settled()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_cells_are_told_from_the_page(browser: Browser, address: str, scheme: Literal["light", "dark"]) -> None:
    visit = Visit(browser, address, scheme=scheme)
    page = visit.open("/overview")
    visit.hold()  # what is being refreshed is faded
    svg = _cells(page).locator("svg")
    points = svg.evaluate(_POINTS)
    with Image.open(io.BytesIO(page.screenshot())) as shot:
        picture = shot.convert("RGB")
    ground = picture.getpixel((points[0][0], points[0][1] - 14))
    assert len(points) == 11, "every status"
    for x, y in points:
        assert _contrast(picture.getpixel((x, y)), ground) >= _ENOUGH, (x, y)
    visit.close()
    assert visit.troubles == []


def test_the_table_fits_its_frame_at_1400_pixels_and_begins_high_up(visit: Visit) -> None:
    page = visit.page
    page.set_viewport_size({"width": 1400, "height": 900})
    visit.open("/overview")
    table = page.get_by_role("grid", name="Consumer groups")
    expect(table.get_by_role("gridcell").first).to_be_visible()
    frame = table.locator("xpath=..")
    assert frame.evaluate("frame => frame.scrollWidth - frame.clientWidth") <= 0
    assert _top(_cells(page)) < 170
    assert _top(frame) < 240
    page.set_viewport_size({"width": 1280, "height": 900})


def test_the_first_group_is_at_210_pixels_of_the_first_screen(browser: Browser, changing: Changing) -> None:
    with changing.visited(browser) as page:
        controls = [page.get_by_label(name, exact=True) for name in ("Search", "Cluster", "Grouped by", "Order")]
        middles = [one.evaluate(_MIDDLE) for one in controls]
        assert max(middles) - min(middles) <= 2, "all controls are on one row"
        cell = page.get_by_role("grid", name="Consumer groups").get_by_role("gridcell").first
        assert _top(cell) <= 210
        assert _top(_cells(page)) < _top(page.get_by_role("toolbar", name="Statuses"))
        page.set_viewport_size({"width": 640, "height": 900})
        sentence = page.get_by_text("payments-settlement loses data;")
        expect(sentence).to_be_visible()
        assert _top(_cells(page)) >= sentence.evaluate("one => one.getBoundingClientRect().bottom"), "no room beside it"


def _top(element: Locator) -> float:
    top: float = element.evaluate("element => element.getBoundingClientRect().top")
    return top


def _contrast(one: Any, other: Any) -> float:
    dark, light = sorted(_luminance(colour) for colour in (one, other))
    return (light + 0.05) / (dark + 0.05)


def _luminance(colour: tuple[int, int, int]) -> float:
    linear = [v / 255 / 12.92 if v <= 10 else ((v / 255 + 0.055) / 1.055) ** 2.4 for v in colour]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
