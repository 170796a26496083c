"""Sign-in with a real provider, in a real browser: nobody sees anything before, and roles are as the settings say."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from lagwise_alerts.operate import queries
from lagwise_alerts.outbox.database import open_engine
from tests.dashboard import alerts, lakes
from tests.dashboard.browsing import Visit
from tests.dashboard.lakes import Scene
from tests.dashboard.oidc import Provider
from tests.dashboard.serving import free_port, served

pytestmark = pytest.mark.browser

CLIENT = "lagwise"
AUTH = """[auth]
redirect_uri = "{address}/oauth2callback"
cookie_secret = "a-cookie-secret-of-the-test-alone"
client_id = "{client}"
client_secret = "a-client-secret-of-the-test-alone"
server_metadata_url = "{provider}/.well-known/openid-configuration"
"""
ROLES = {"claim": "groups", "operators": ["sre"], "viewers": ["dev"]}


@pytest.fixture
def provider() -> Iterator[Provider]:
    with Provider(CLIENT) as running:
        yield running


@pytest.fixture
def address(tmp_path: Path, provider: Provider) -> Iterator[str]:
    now, port = datetime.now(UTC), free_port()
    lakes.write_to(tmp_path, Scene(now))
    alerts.write_to(tmp_path, now)
    auth_file = tmp_path / "auth.toml"
    auth_file.write_text(
        AUTH.format(address=f"http://127.0.0.1:{port}", client=CLIENT, provider=provider.address), encoding="utf-8"
    )
    with served(tmp_path, port=port, sign_in={"auth_file": str(auth_file), **ROLES}) as found:
        yield found


@pytest.fixture
def visitor(browser: Browser, address: str) -> Iterator[Visit]:
    made = Visit(browser, address)
    yield made
    made.close()


def sign_in(visitor: Visit) -> None:
    visitor.page.get_by_role("button", name="Sign in").click()
    expect(visitor.page.get_by_role("button", name="Sign out")).to_be_visible()
    visitor.settled()


def test_nothing_is_shown_before_sign_in(visitor: Visit) -> None:
    for path in ("/", "/alerts", "/group?cluster=prod&group=payments-settlement", "/health"):
        page = visitor.open(path)
        expect(page.get_by_role("button", name="Sign in")).to_be_visible()
        assert "payments-settlement" not in page.content()


def test_an_operator_acts_under_his_name(visitor: Visit, provider: Provider, tmp_path: Path) -> None:
    provider.claims = {"email": "jo@ops.example", "groups": ["sre", "dev"]}
    visitor.open()
    sign_in(visitor)
    page = visitor.open("/alerts")
    # (What joins the two parts of the address keeps it from becoming a link.)
    expect(page.get_by_text(re.compile(r"You act as jo@\W?ops\.example"))).to_be_visible()
    page.get_by_role("button", name="Acknowledge", exact=True).click()
    form = page.get_by_test_id("stPopoverBody")
    field = form.get_by_role("combobox", name="Alerts")
    field.click()
    field.press_sequentially("payments-settlement")
    page.get_by_role("option").filter(has_text="payments-settlement").first.click()
    form.get_by_label("Comment").fill("mine")  # which also closes the list over the button
    form.get_by_role("button", name="Acknowledge", exact=True).click()
    expect(page.get_by_text("1 alert acknowledged.")).to_be_visible()
    engine = open_engine(f"sqlite:///{tmp_path / 'lagwise.db'}")
    [action] = queries.actions(engine)
    engine.dispose()
    assert (action.who, action.via, action.action) == ("jo@ops.example", "dashboard", "acknowledge")


def test_a_viewer_looks(visitor: Visit, provider: Provider) -> None:
    provider.claims = {"email": "sam@dev.example", "groups": ["dev"]}
    visitor.open()
    sign_in(visitor)
    page = visitor.open("/alerts")
    expect(page.get_by_text("need the role operator")).to_be_visible()
    expect(page.get_by_role("button", name="Acknowledge", exact=True)).to_have_count(0)


def test_a_user_without_a_role_sees_the_reason_and_can_sign_out(visitor: Visit, provider: Provider) -> None:
    provider.claims = {"email": "eve@elsewhere.org", "groups": ["guests"]}
    visitor.open()
    sign_in(visitor)
    page = visitor.page
    expect(page.get_by_text("has no access")).to_be_visible()
    assert "payments-settlement" not in page.content()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("button", name="Sign in")).to_be_visible()
