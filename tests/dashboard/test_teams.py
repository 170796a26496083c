"""Who sees which groups, asked of the real server page by page: nothing of another team's groups reaches a reader."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from lagwise.links import pages, parameters
from tests.dashboard import teams
from tests.dashboard.signed_in import drawn_for
from tests.dashboard.teams import ALL, MONEY, SHOP, STORIES, hidden_from

pytestmark = pytest.mark.process

PAGES = tuple(page.path for page in pages.PAGES)
#: Whose claims are these, and which groups they see.
READERS = {
    "everything": ({"groups": ["boss"]}, ALL),
    "money": ({"groups": ["money"]}, MONEY),
    "shop": ({"groups": ["shop"]}, SHOP),
    "both": ({"groups": ["money", "shop"]}, MONEY + SHOP),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("teams")


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    """A served dashboard with two teams, alerts, a shared incident, silences, saved views and operators' actions."""
    with teams.served_to_teams(folder) as found:
        yield found


@pytest.mark.parametrize("page", PAGES)
def test_no_page_names_what_its_reader_may_not_see(page: str, address: str) -> None:
    seen_by = {}
    for reader, (claims, groups) in READERS.items():
        seen = drawn_for(claims, address, page)
        assert "Something went wrong" not in seen, reader
        assert {name for name in hidden_from(groups) if name in seen} == set(), reader
        seen_by[reader] = {name for name in ALL if name in seen}
    if page in ("overview", "alerts", "retention", "group"):
        assert seen_by["everything"] > seen_by["money"] > set(), "it shows names to those who may read them"
    assert seen_by["both"] >= seen_by["money"] | seen_by["shop"]


def test_errors_of_a_cluster_are_counted_for_those_who_see_all_of_its_groups(address: str) -> None:
    whole, part = (drawn_for(READERS[reader][0], address, "health") for reader in ("everything", "money"))
    assert re.search(r"\*\*\d+ errors in the last hour\*\*, of 1 kind", whole)
    assert "**Errors in the last hour**, of 1 kind" in part
    assert "fraud-scoring: not authorized" in whole


@pytest.mark.parametrize("page", [page.path for page in pages.PAGES if parameters.GROUP in page.uses])
def test_a_link_to_a_hidden_group_reads_like_one_to_an_unknown_group(page: str, address: str) -> None:
    claims, _ = READERS["money"]
    said = {
        group: [_comparable(drawn_for(claims, address, page, f"cluster=prod&group={group}"), group) for _ in range(2)]
        for group in ("fraud-nothing", "fraud-scoring")
    }
    # What a page says of its data's age may change once while they are drawn.
    assert set(said["fraud-nothing"]) & set(said["fraud-scoring"])


def _comparable(drawn: str, group: str) -> str:
    """What a page sent, without the group's name, ages, when it was drawn, and what is another each time."""
    said = drawn.replace(group, "GROUP").replace(group.replace("-", r"\\-"), "GROUP")
    said = re.sub(r"Drawn on [^\"]*", "", said)
    return re.sub(r'(script_run_id|session_id|hash): "[^"]*"|[0-9a-f]{24,}|(\d+ (h|min|s)\b ?)+', "", said)


def test_a_topic_that_no_visible_group_reads_is_unknown(address: str) -> None:
    topic = STORIES["prod", "fraud-scoring"].topic
    query = f"cluster=prod&topic={topic}"
    assert "No watched group reads a topic" in drawn_for(READERS["money"][0], address, "topic", query)
    assert "No watched group reads a topic" not in drawn_for(READERS["everything"][0], address, "topic", query)


def test_who_is_in_no_team_and_has_no_role_sees_nothing(address: str) -> None:
    seen = drawn_for({"groups": ["guests"]}, address, "overview")
    assert "has no access" in seen
    assert not any(name in seen for name in ALL)


def test_only_who_operates_for_a_team_acts_and_only_on_its_groups(address: str) -> None:
    assert "Read-only." in drawn_for(READERS["money"][0], address, "alerts")
    assert "You act as" in drawn_for(READERS["shop"][0], address, "alerts")
    both = READERS["both"][0]
    assert "silence_form" in drawn_for(both, address, "group", "cluster=prod&group=orders-fulfilment")
    assert "silence_form" not in drawn_for(both, address, "group", "cluster=prod&group=payments-settlement")
    for label in ("Send again", "Test a channel"):
        assert label not in drawn_for(both, address, "alerts"), "it concerns groups of others"
        assert label in drawn_for({"groups": ["root"]}, address, "alerts")


def test_a_silence_and_a_saved_view_of_a_visible_group_are_shown(address: str) -> None:
    seen = drawn_for(READERS["money"][0], address, "alerts")
    assert "nightly batch" in seen
    assert "nightly batch" not in drawn_for(READERS["shop"][0], address, "alerts")
