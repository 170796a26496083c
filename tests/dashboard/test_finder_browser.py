"""Finding anything from any page, in a real browser: by pointer, by shortcut, by the keyboard alone."""

import re
from collections.abc import Iterator
from typing import Literal
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from lagwise.links import pages
from lagwise_dashboard.widgets.finder.hits import MAX_HITS
from tests.dashboard.browsing import Visit
from tests.dashboard.stories import HOSTILE_NAMES

pytestmark = pytest.mark.browser

_COMMAND = "Control+k"


def _opener(page: Page) -> Locator:
    return page.get_by_role("button", name="Find", exact=True)


def _dialog(page: Page) -> Locator:
    return page.get_by_role("dialog", name="Find")


def _field(page: Page) -> Locator:
    return page.get_by_role("combobox", name="Find by a part of the name")


def _active(page: Page) -> Locator:
    return _dialog(page).locator("[role=option][aria-selected=true]")


def _open(page: Page, key: str = _COMMAND) -> None:
    """Open it by a key."""
    expect(_opener(page)).to_be_visible()
    page.keyboard.press(key)
    expect(_field(page)).to_be_focused()


def _look_for(page: Page, text: str) -> None:
    """Type a text, and wait for the answer to it."""
    _open(page)
    _field(page).fill(text)
    expect(_dialog(page).get_by_role("status")).to_have_text(re.compile(r"\d+ (found|of)|Nothing has"))


@pytest.mark.parametrize("path", [page.path for page in pages.PAGES])
def test_every_page_has_it_and_the_slash_opens_it(visit: Visit, path: str) -> None:
    page = visit.open(f"/{path}")
    expect(_opener(page)).to_have_attribute("title", re.compile(r"press / or Ctrl\+K"))
    _open(page, "/")
    expect(_dialog(page).get_by_role("option", name="Overview, Who is in trouble?")).to_be_visible()
    page.keyboard.press("Escape")
    expect(_dialog(page)).to_have_count(0)


def test_nothing_is_sent_before_it_is_opened(visit: Visit) -> None:
    page = visit.open("/health")
    expect(_opener(page)).to_be_visible()
    assert page.locator("[role=option]").count() == 0


def test_a_group_is_opened_by_the_keyboard_alone(visit: Visit) -> None:
    page = visit.open("/capacity?range=6h")
    _open(page)
    page.keyboard.type("clickst")
    page.keyboard.press("Enter")  # pressed before the answer: it is the answer's first that opens
    page.wait_for_url("**/group?cluster=prod&group=clickstream-archive&range=6h")
    expect(page.get_by_role("heading", name="clickstream-archive")).to_be_visible()
    expect(_dialog(page)).to_have_count(0)
    visit.settled()
    page.go_back()
    page.wait_for_url("**/capacity?range=6h")
    visit.settled()


def test_arrows_walk_what_was_found_and_begin_again_at_the_end(visit: Visit) -> None:
    page = visit.open("/overview")
    _look_for(page, "clicks")
    field, found = _field(page), _dialog(page).get_by_role("option")
    names = [found.nth(i).get_attribute("aria-label") or "" for i in range(found.count())]
    assert names[0].startswith("clicks, at risk, 1 group"), names
    for key, at in (("ArrowDown", 1), ("ArrowUp", 0), ("ArrowUp", -1), ("ArrowDown", 0), ("PageDown", -1)):
        page.keyboard.press(key)
        expect(_active(page)).to_have_accessible_name(names[at])
        expect(field).to_have_attribute("aria-activedescendant", _active(page).get_attribute("id") or "none")
        expect(field).to_be_focused()
    page.keyboard.press("Tab")
    expect(_dialog(page).get_by_role("button", name="Close")).to_be_focused()
    page.keyboard.press("Shift+Tab")
    expect(field).to_be_focused()


@pytest.mark.parametrize(
    ("text", "kind", "name", "leads_to", "shows"),
    [
        ("payments.s", "Topics", "payments.settled", "topic?cluster=prod&topic=payments.settled", "payments.settled"),
        (
            "clicks-7",
            "Partitions",
            "clicks-7",
            "topic?cluster=prod&topic=clicks&topic_partitions_q=7",
            "1 partition that",
        ),
        ("clicks-worker-3", "Members", "clicks-worker-3", "group?*members_q=*", "1 member that"),
        ("capac", "Pages", "Capacity", "capacity", "How much"),
    ],
)
def test_each_kind_leads_to_the_page_about_it(
    visit: Visit, text: str, kind: str, name: str, leads_to: str, shows: str
) -> None:
    page = visit.open("/overview")
    _look_for(page, text)
    its = _dialog(page).get_by_role("group", name=re.compile(f"^{kind}"))
    its.get_by_role("option", name=re.compile(f"^{re.escape(name)},")).first.click()
    page.wait_for_url(f"**/{leads_to}")
    visit.settled()
    if kind in ("Partitions", "Members"):
        expect(page.get_by_text(re.compile(f"^{shows}"))).to_be_visible()
    else:
        expect(page.get_by_test_id("stHeading").first).to_be_visible()


def test_a_host_leads_to_its_members_of_a_group(visit: Visit) -> None:
    page = visit.open("/group?cluster=prod&group=clickstream-archive&tab=members")
    host = page.get_by_role("grid", name="Members of the group").get_by_role("gridcell", name=re.compile(r"^10\."))
    address = host.first.inner_text()
    _look_for(page, address)
    its = _dialog(page).get_by_role("group", name="Hosts").get_by_role("option")
    expect(its.first).to_contain_text("1 member of clickstream-archive · prod")
    page.keyboard.press("PageDown")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**members_q={quote(address)}*")
    expect(page.get_by_text(re.compile("^1 member that matches"))).to_be_visible()


def test_what_is_typed_into_a_field_opens_nothing(visit: Visit) -> None:
    page = visit.open("/overview")
    expect(_opener(page)).to_be_visible()
    field = page.get_by_placeholder("Group or topic")
    field.click()
    page.keyboard.type("a/b")
    page.keyboard.press(_COMMAND)
    expect(field).to_have_value("a/b")
    expect(_dialog(page)).to_have_count(0)
    visit.settled()


def test_the_focus_returns_to_where_it_was(visit: Visit) -> None:
    page = visit.open("/overview")
    cell = page.get_by_role("grid", name="Consumer groups").get_by_role("gridcell").first
    cell.focus()
    _open(page, "/")
    page.keyboard.press("Escape")
    expect(cell).to_be_focused()


def test_a_refresh_of_the_page_leaves_it_open(visit: Visit) -> None:
    page = visit.open("/overview")
    _look_for(page, "orders")
    page.keyboard.press("ArrowDown")
    chosen = _active(page).get_attribute("aria-label") or "none"
    badge = page.get_by_text(re.compile("analysed .* ago"))
    expect(badge).not_to_have_text(badge.inner_text())
    expect(_field(page)).to_be_focused()
    expect(_field(page)).to_have_value("orders")
    expect(_active(page)).to_have_accessible_name(chosen)


def test_more_than_fits_is_counted(visit: Visit) -> None:
    page = visit.open("/overview")
    _look_for(page, "e")
    expect(_dialog(page).get_by_role("option")).to_have_count(MAX_HITS)
    expect(_dialog(page).get_by_role("status")).to_have_text(re.compile(rf"^{MAX_HITS} of \d+: type more of the name"))
    _field(page).fill("no such name")
    expect(_dialog(page).get_by_role("status")).to_have_text("Nothing has this in its name.")
    expect(_field(page)).to_have_attribute("aria-expanded", "false")
    page.keyboard.press("Enter")
    expect(_dialog(page)).to_be_visible()


@pytest.mark.parametrize("name", [HOSTILE_NAMES[0], HOSTILE_NAMES[1], HOSTILE_NAMES[2]])
def test_a_hostile_name_is_text_and_opens_its_group(visit: Visit, name: str) -> None:
    page = visit.open("/health")
    _look_for(page, name)
    found = _dialog(page).get_by_role("group", name="Groups").get_by_role("option")
    expect(found.locator(".name")).to_have_text(name)
    found.click()
    page.wait_for_url(f"**/group?*group={quote(name, safe='')}*")
    visit.settled()


def test_a_click_beside_the_dialog_closes_it_and_one_with_ctrl_opens_a_tab(visit: Visit) -> None:
    page = visit.open("/health")
    _look_for(page, "checkout")
    with page.context.expect_page() as opened:
        _dialog(page).get_by_role("option", name=re.compile("^checkout, ok")).click(modifiers=["Control"])
    opened.value.wait_for_url("**group=checkout*")
    opened.value.close()
    expect(_dialog(page)).to_be_visible()
    page.mouse.click(5, 5)
    expect(_dialog(page)).to_have_count(0)


@pytest.fixture(params=["light", "dark"])
def narrow(request: pytest.FixtureRequest, browser: Browser, address: str) -> Iterator[Visit]:
    scheme: Literal["light", "dark"] = request.param
    visitor = Visit(browser, address, scheme=scheme, viewport=(390, 844))
    yield visitor
    visitor.close()
    assert visitor.troubles == []


def test_it_fits_on_a_phone(narrow: Visit) -> None:
    page = narrow.open("/overview")
    _opener(page).click()
    _field(page).fill("orders")
    expect(_dialog(page).get_by_role("option").first).to_be_visible()
    box = _dialog(page).bounding_box()
    assert box is not None
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 390
    assert narrow.overflow() == 0
    page.get_by_role("button", name="Close").click()
    expect(_dialog(page)).to_have_count(0)
