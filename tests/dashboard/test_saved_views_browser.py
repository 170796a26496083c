"""Saved views in a real browser: one is saved, found, opened, renamed and deleted."""

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.dashboard.browsing import Visit
from tests.dashboard.pointer import IN_BROWSER_MS, until_shown

pytestmark = pytest.mark.browser

#: A name that would be markup, if it were not text.
_NAME, _OTHER = "stopped <b>in</b> *prod*", "who has stopped"


def test_a_view_is_saved_found_opened_renamed_and_deleted(visit: Visit) -> None:
    page = visit.open("/overview?status=stopped&cluster=prod")
    page.get_by_role("button", name="Views").click()
    dialog = page.get_by_role("dialog").filter(has_text="Saved views")
    dialog.get_by_role("textbox", name="Save what this page shows as").fill(_NAME)
    dialog.get_by_role("button", name="Save", exact=True).click()
    expect(dialog.get_by_role("link", name=_NAME)).to_be_visible()
    expect(dialog.get_by_role("textbox", name="Save what this page shows as")).to_have_value("")
    expect(page.get_by_role("button", name="Find", exact=True)).to_have_count(0)  # it could not be typed into
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)

    visit.open("/health")
    expect(page.get_by_role("button", name="Find", exact=True)).to_be_visible()
    page.keyboard.press("/")
    page.get_by_role("combobox", name="Find by a part of the name").fill("stopped <")
    its = page.get_by_role("group", name="Saved views").get_by_role("option")
    expect(its.locator(".name")).to_have_text(_NAME)
    page.keyboard.press("Enter")
    page.wait_for_url("**/overview?status=stopped&cluster=prod")
    visit.settled()

    page.get_by_role("button", name="Views").click()
    dialog.get_by_text("Rename or delete").click()
    for name, button, left in ((_NAME, "Rename", [_OTHER]), (_OTHER, "Delete", [])):
        _choose(page, dialog.get_by_role("combobox", name=re.compile("^View|Selected")), name)
        if button == "Rename":
            dialog.get_by_role("textbox", name="New name").fill(_OTHER)
        dialog.get_by_role("button", name=button, exact=True).click()
        expect(dialog.get_by_role("link")).to_have_text(left)
        if left:
            dialog.get_by_text("Rename or delete").click()
    expect(dialog.get_by_text("No view has been saved yet")).to_be_visible()


def _choose(page: Page, field: Locator, option: str) -> None:
    """Choose an option of a list, which a refresh of the page closes."""

    def choose() -> None:
        field.click(timeout=IN_BROWSER_MS)
        page.get_by_role("option", name=option).click(timeout=IN_BROWSER_MS)

    until_shown(choose, lambda ms: expect(field).to_have_value(option, timeout=ms))
