"""Shared incidents on the alerts page and on the pages of their groups."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from lagwise.domain.correlation import SharedThing, ThingKind
from lagwise_dashboard import alert_reader
from tests.dashboard import alerts, lakes
from tests.dashboard.browsing import Visit
from tests.dashboard.conftest import Open, offered
from tests.dashboard.lakes import Scene
from tests.dashboard.serving import served
from tests.dashboard.shown_tables import table, tables
from tests.dashboard.stories import HOSTILE_NAMES
from tests.dashboard.test_views import _text


@pytest.mark.thorough
class TestPages:
    def test_the_alerts_page_has_one_row_for_it_and_its_groups_below(self, open_app: Open, busy: Path) -> None:
        before = table(open_app("alerts"), "firing")["About"]
        alerts.gather(busy)
        alert_reader.clear_cache()
        app = open_app("alerts")
        firing = table(app, "firing")["About"]
        assert firing[0] == "shared incident: broker 3"
        (members,) = [one for one in tables(app) if one.name.startswith("members-")]
        assert sorted([*firing[1:], *members["About"]]) == sorted(before), "each is shown once"
        count = len(members["About"])
        assert count > 1
        assert f"{count} groups of the shared incident\\: broker 3" in [one.label for one in app.expander]
        assert f"Firing={len(firing)}" in _text(app)

    def test_the_page_of_a_group_names_it(self, open_app: Open, busy: Path) -> None:
        def lines() -> list[str]:
            app = open_app("group", cluster="prod", group="invoice-mailer")
            return [one for one in offered(app) if "firing for" in one]

        (before,) = lines()
        alerts.gather(busy)
        alert_reader.clear_cache()
        assert lines() == [f"{before}, part of a shared incident\\: broker 3"]

    @pytest.mark.parametrize("name", HOSTILE_NAMES)
    def test_names_of_strangers_are_no_markup(self, open_app: Open, busy: Path, name: str) -> None:
        alerts.gather(busy, SharedThing(ThingKind.TOPIC, name, "prod"))
        for view, query in (("alerts", {}), ("group", {"cluster": "prod", "group": "invoice-mailer"})):
            app = open_app(view, **query)
            shown = [one.label for one in app.expander] + offered(app)
            assert any("shared incident" in one for one in shown)
            assert not any(name in one for one in shown if "x" * 99 not in name)


@pytest.mark.browser
class TestBrowser:
    @pytest.fixture
    def address(self, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
        folder = tmp_path_factory.mktemp("shared")
        now = datetime.now(UTC)
        lakes.write_to(folder, Scene(now, promised=timedelta(hours=10)))
        alerts.write_to(folder, now)
        alerts.gather(folder)
        with served(folder, interval_seconds=36_000.0) as found:
            yield found

    def test_its_groups_unfold_and_lead_to_their_pages(self, address: str, browser: Browser) -> None:
        visit = Visit(browser, address)
        page = visit.open("/alerts")
        line = page.get_by_text("groups of the shared incident: broker 3")
        expect(line).to_be_visible()
        link = page.get_by_role("link", name="invoice-mailer (prod)").first
        expect(link).to_be_hidden()
        line.click()
        expect(link).to_be_visible()
        link.click()
        expect(page.get_by_text("part of a shared incident: broker 3")).to_be_visible()
        visit.close()
        assert visit.troubles == []
