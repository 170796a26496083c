"""Addresses in a real browser: every one that the docs name, and what the menu, Back, reload and links keep."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pytest
from playwright.sync_api import Page, expect

from lagwise.links import pages, parameters
from lagwise_dashboard.address import _SYNC_SCRIPT
from tests.dashboard.browsing import Visit

pytestmark = pytest.mark.browser

ROOT = Path(__file__).resolve().parents[2]
_NAMED = re.compile(rf"`(/(?:{'|'.join(page.path for page in pages.PAGES)})(?:\?[^`]*)?)`")


def _named_in_the_docs() -> Iterator[str]:
    for file in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))):
        if "adr" not in file.parts:
            yield from _NAMED.findall(file.read_text(encoding="utf-8"))


def _at(page: Page, path: str, **parameters: str) -> None:
    """Wait until the address is this one."""

    def is_there(url: str) -> bool:
        parts = urlsplit(url)
        return parts.path == path and dict(parse_qsl(parts.query)) == parameters

    page.wait_for_url(is_there)


def _menu(page: Page, title: str) -> None:
    page.locator(".st-key-menu").get_by_role("link", name=title).click()


def test_every_address_that_the_docs_name_works(visit: Visit) -> None:
    named = list(dict.fromkeys(_named_in_the_docs()))
    assert {urlsplit(address).path for address in named} == {f"/{page.path}" for page in pages.PAGES}
    for address in named:
        page = visit.open(address)
        expect(page.get_by_text("Data as of")).to_be_visible()
        visit.settled()
        said = page.locator("body").inner_text()
        for complaint in ("address was ignored", "Page not found", "Something went wrong", "There is no group"):
            assert complaint not in said, (address, complaint)
        assert page.url.endswith(address), "it stays what it was"


def test_every_choice_is_a_step_that_back_takes_back(visit: Visit) -> None:
    page = visit.open("/overview")
    page.get_by_role("combobox", name="Cluster").click()
    page.get_by_role("option", name="prod", exact=True).click()
    _at(page, "/overview", cluster="prod")
    page.get_by_role("button", name="stalled").click()
    _at(page, "/overview", cluster="prod", status="stalled")
    page.get_by_role("searchbox", name="Search").press_sequentially("fraud", delay=60)
    _at(page, "/overview", cluster="prod", status="stalled", q="fraud")
    expect(page.get_by_text("1 group.")).to_be_visible()
    visit.settled()
    page.get_by_role("link", name="fraud-scoring").click()
    group = {"cluster": "prod", "group": "fraud-scoring"}
    _at(page, "/group", **group)
    expect(page.get_by_role("heading", name="fraud-scoring")).to_be_visible()
    visit.settled()
    page.get_by_role("radio", name="6 h").click()
    _at(page, "/group", **group, range="6h")
    visit.settled()
    _menu(page, "Rebalances")
    _at(page, "/rebalances", **group, range="6h")
    expect(page.get_by_role("heading", name="Rebalances of fraud-scoring")).to_be_visible()
    expect(page.get_by_role("radio", name="6 h")).to_be_checked()

    page.go_back()
    _at(page, "/group", **group, range="6h")
    expect(page.get_by_role("radio", name="6 h")).to_be_checked()
    page.reload()
    visit.settled()
    expect(page.get_by_role("radio", name="6 h")).to_be_checked()
    page.go_back()
    _at(page, "/group", **group)
    expect(page.get_by_role("radio", name="1 h")).to_be_checked()
    page.go_back()
    _at(page, "/overview", cluster="prod", status="stalled", q="fraud")
    expect(page.get_by_role("searchbox", name="Search")).to_have_value("fraud")
    expect(page.get_by_role("combobox", name="Cluster")).to_have_value("prod")
    expect(page.get_by_text("1 group.")).to_be_visible()
    visit.settled()
    page.go_back()  # what was typed belongs to the step before it
    _at(page, "/overview", cluster="prod")
    expect(page.get_by_role("searchbox", name="Search")).to_have_value("")
    visit.settled()
    page.go_back()
    _at(page, "/overview")
    expect(page.get_by_role("combobox", name="Cluster")).to_have_value("")
    visit.settled()
    page.go_forward()
    _at(page, "/overview", cluster="prod")
    expect(page.get_by_role("combobox", name="Cluster")).to_have_value("prod")


def test_what_was_typed_changes_only_the_address_in_which_it_was_typed(visit: Visit) -> None:
    """A busy browser hears of it late, when something else may stand there."""
    page = visit.open("/overview?cluster=prod")
    page.get_by_role("searchbox", name="Search").press_sequentially("fraud", delay=60)
    _at(page, "/overview", cluster="prod", q="fraud")
    visit.settled()
    hears = f"""async (data) => {{
        const script = new Blob([{json.dumps(_SYNC_SCRIPT)}], {{ type: "text/javascript" }});
        const {{ default: hear }} = await import(URL.createObjectURL(script));
        hear({{ data }});
        return location.search;
    }}"""
    late = {"query": "cluster=prod&q=fra", "before": "cluster=prod&q=fr"}
    assert page.evaluate(hears, late) == "?cluster=prod&q=fraud"
    in_time = {"query": "cluster=prod&q=invoice", "before": "cluster=prod&q=fraud"}
    assert page.evaluate(hears, in_time) == "?cluster=prod&q=invoice"
    expect(page.get_by_role("searchbox", name="Search")).to_have_value("invoice")


def test_the_menu_keeps_what_is_looked_at(visit: Visit) -> None:
    looked_at = {"cluster": "prod", "group": "clickstream-archive", "topic": "clicks", "range": "24h"}
    link = pages.link(
        pages.TOPIC,
        {
            parameters.CLUSTER: "prod",
            parameters.GROUP: "clickstream-archive",
            parameters.TOPIC: "clicks",
            parameters.RANGE: "24h",
        },
    )
    page = visit.open(link)
    for title, path, shows in (
        ("Group", "/group", "clickstream-archive"),
        ("Overview", "/overview", "Who is in trouble?"),
        ("Collector health", "/health", "Is Lagwise itself healthy?"),
        ("Topic", "/topic", "clicks"),
    ):
        visit.settled()
        _menu(page, title)
        _at(page, path, **looked_at)
        expect(page.get_by_role("heading", name=shows, exact=True).first).to_be_visible()
    expect(page.get_by_text("address was ignored")).to_have_count(0)


def test_the_root_is_the_overview_and_its_menu_says_so(visit: Visit) -> None:
    page = visit.open("/?cluster=staging")
    expect(page.get_by_role("combobox", name="Cluster")).to_have_value("staging")
    _menu(page, "Overview")
    visit.settled()
    _at(page, "/", cluster="staging")


def test_unusable_parameters_are_named_and_removed(visit: Visit) -> None:
    page = visit.open("/overview?sort=agee&cluster=nowhere&%3Cb%3E=1&cluster=nowhere")
    warning = page.get_by_text("Part of the address was ignored.")
    expect(warning).to_be_visible()
    said = page.locator('[data-testid="stAlert"]').first.inner_text()
    assert "sort must be one of worst, age, lag," in said
    assert "not “agee”" in said
    assert "This page has no parameter “<b>”." in said
    expect(page.get_by_text("No group matches.")).to_be_visible()
    visit.settled()
    page.get_by_role("button", name="Clear the filters").click()
    _at(page, "/overview")
    expect(warning).to_have_count(0)
    page = visit.open("/plan?cluster=prod&group=no-such-group&cores=0")
    expect(page.get_by_text("There is no group “no-such-group” in the cluster prod.")).to_be_visible()
    expect(page.get_by_text("cores must be a number from 0.01 to 4,096, not “0”.")).to_be_visible()
