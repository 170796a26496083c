"""A viewer of a team in a real browser: goes through every page, and is sent nothing of other teams' groups."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Locator, Page, WebSocket, expect

from lagwise.links import pages
from tests.dashboard import teams
from tests.dashboard.browsing import Visit
from tests.dashboard.oidc import Provider
from tests.dashboard.pointer import until_shown
from tests.dashboard.signed_in import cookies_for
from tests.dashboard.teams import ALL, HIDDEN, MONEY, OWN, STORIES

pytestmark = pytest.mark.browser

#: A group and a topic of nobody.
_NO_GROUP, _NO_TOPIC = "fraud-nothing", "transaction-nothing"


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    with Provider("lagwise") as running:
        yield running


@pytest.fixture(scope="module")
def served_to_teams(tmp_path_factory: pytest.TempPathFactory, provider: Provider) -> Iterator[str]:
    with teams.served_to_teams(tmp_path_factory.mktemp("teams"), provider.address) as found:
        yield found


class Reader:
    """Somebody who has signed in, and everything that the server sent them: on sockets, and as documents."""

    def __init__(self, browser: Browser, address: str) -> None:
        self.visit = Visit(browser, address)
        self.frames: list[bytes] = []
        self.visit.page.on("websocket", self._record)

    def _record(self, socket: WebSocket) -> None:
        socket.on(
            "framereceived", lambda frame: self.frames.append(frame.encode() if isinstance(frame, str) else frame)
        )

    def open(self, path: str) -> Page:
        self.frames.clear()
        return self.visit.open(path)

    def sent(self, names: set[str]) -> set[str]:
        """Which of these names the server sent since the page was opened, on the socket or as the page's document."""
        received = b"\n".join(self.frames) + self.visit.page.content().encode()
        return {name for name in names if name.encode() in received}


@pytest.fixture(scope="module")
def reader(browser: Browser, served_to_teams: str, provider: Provider) -> Iterator[Reader]:
    """A viewer of the team money, who has signed in through the provider, as a person does."""
    made = Reader(browser, served_to_teams)
    provider.claims = {"email": "sam@dev.example", "groups": ["money"]}
    page = made.visit.open()
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("button", name="Sign out")).to_be_visible()
    made.visit.settled()
    yield made
    made.visit.close()
    assert made.visit.troubles == []


def test_a_viewer_of_a_team_is_sent_its_groups_and_nothing_of_others(reader: Reader) -> None:
    hidden, seen = teams.traces_hidden_from(MONEY), {}
    of_own_group = f"/group?cluster=prod&group={OWN}&tab=members"
    for path in (*(f"/{page.path}" for page in pages.PAGES), of_own_group):
        reader.open(path)
        assert reader.sent(hidden) == set(), path
        seen[path] = reader.sent(set(ALL) | teams.members_of(MONEY))
    for path in ("/overview", "/alerts", "/capacity", "/retention", "/rebalances"):
        assert seen[path] & set(MONEY), f"{path} shows the groups of the team"
    assert {"payments.settled-worker-", "10.20.112."} <= seen[of_own_group]


def test_who_may_see_everything_is_sent_what_the_others_are_not(browser: Browser, served_to_teams: str) -> None:
    """What a leak is looked for by would show one."""
    boss = Reader(browser, served_to_teams)
    cookies = cookies_for({"groups": ["boss"]}, served_to_teams)
    boss.visit.page.context.add_cookies(
        [{"name": name, "value": value, "url": served_to_teams} for name, value in cookies.items()]
    )
    boss.open("/overview")
    assert boss.sent({*ALL, "staging"}) >= {HIDDEN, OWN, "checkout", "staging"}
    boss.open(f"/group?cluster=prod&group={HIDDEN}&tab=members")
    assert boss.sent({"transactions-worker-", "10.20.133."}) == {"transactions-worker-", "10.20.133."}
    boss.visit.close()


def test_nothing_hidden_is_found_or_among_the_saved_views(reader: Reader) -> None:
    page = reader.open("/health")
    page.get_by_role("button", name="Find", exact=True).click()
    found = page.get_by_role("dialog", name="Find")
    # Parts of names, as what is typed comes back.
    for typed, says in (("scoring", "Nothing has"), ("transactio", "Nothing has"), ("settlem", "found")):
        page.get_by_role("combobox", name="Find by a part of the name").fill(typed)
        expect(found.get_by_role("status")).to_contain_text(says)
    expect(found.get_by_role("option").filter(has_text=OWN).first).to_be_visible()
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Views").click()
    views = page.get_by_role("dialog").filter(has_text="Saved views")
    expect(views.get_by_role("link", name=f"all of {OWN}")).to_be_visible()
    assert reader.sent(teams.traces_hidden_from(MONEY)) == set()


@pytest.mark.parametrize(
    ("path", "hidden", "unknown", "says"),
    [
        ("/group?cluster=prod&group={}", HIDDEN, _NO_GROUP, "There is no group"),
        ("/topic?cluster=prod&topic={}", STORIES["prod", HIDDEN].topic, _NO_TOPIC, "No watched group reads a topic"),
    ],
)
def test_a_link_to_what_is_hidden_shows_what_one_to_an_unknown_name_does(
    path: str, hidden: str, unknown: str, says: str, reader: Reader
) -> None:
    page = reader.open(path.format(hidden))
    other = page.context.new_page()
    other.goto(reader.visit.address + path.format(unknown))
    for one in (page, other):
        expect(one.get_by_text(says)).to_be_visible()
    until_shown(
        lambda: None,
        lambda ms: expect(_main(page)).to_have_text(
            _alike(_main(other).inner_text(), unknown, hidden), use_inner_text=True, timeout=ms
        ),
    )
    other.close()
    assert reader.sent(teams.traces_hidden_from(MONEY) - {hidden}) == set(), "nothing but the name in the link"


def _main(page: Page) -> Locator:
    return page.get_by_test_id("stMain")


def _alike(text: str, name: str, other: str) -> re.Pattern[str]:
    """This text with another name, at another moment."""
    words = (re.sub(r"\d+", r"\\d+", re.escape(word.replace(name, other))) for word in text.split())
    return re.compile(r"\s*" + r"\s+".join(words) + r"\s*")


def test_what_is_taken_away_has_nothing_of_others_and_lies_under_no_address(reader: Reader) -> None:
    hidden = teams.traces_hidden_from(MONEY)
    page = reader.open("/overview")
    _check_download(page, re.compile("^CSV: "), OWN, hidden)
    page = reader.open(f"/plan?cluster=prod&group={OWN}")
    for button in ("Figures as CSV", "Report as HTML"):
        _check_download(page, button, OWN, hidden)
    # Of a group that they do not see there is nothing but its name, which they gave.
    page = reader.open(f"/plan?cluster=prod&group={HIDDEN}")
    for button in ("Figures as CSV", "Report as HTML"):
        _check_download(page, button, "", hidden - {HIDDEN})


def _check_download(page: Page, button: str | re.Pattern[str], shown: str, hidden: set[str]) -> None:
    with page.expect_download() as download:
        page.get_by_role("button", name=button).first.click()
    assert download.value.url.startswith("blob:"), "it came on the socket: nobody else can ask for it"
    text = download.value.path().read_text(encoding="utf-8")
    assert shown in text
    assert {name for name in hidden if name in text} == set()


def test_there_is_no_first_sight_where_one_has_to_sign_in(reader: Reader) -> None:
    """It is asked for before the server is told who reads."""
    for path in ("overview", f"group?cluster=prod&group={HIDDEN}", f"group?cluster=prod&group={OWN}"):
        answer = reader.visit.page.request.get(f"{reader.visit.address}/_lagwise/first_sight/{path}")
        assert (answer.status, answer.body()) == (204, b"")
