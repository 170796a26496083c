"""Who sees which groups, asked of the real server page by page: nothing of another team's groups reaches a reader."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import Engine

from lagwise.links import pages, parameters
from lagwise_alerts.operate import Matcher, Operator, Via, actions, saved_views
from lagwise_alerts.outbox.database import open_engine
from tests.dashboard import alerts, lakes, planning
from tests.dashboard.lakes import Scene
from tests.dashboard.serving import free_port, served
from tests.dashboard.signed_in import drawn_for, write_auth_file
from tests.dashboard.stories import GROUPS_OF_THE_DEMO

pytestmark = pytest.mark.process

#: Each team's groups, all in the cluster prod.
MONEY = ("payments-settlement", "invoice-mailer", "billing-export")
SHOP = ("orders-fulfilment", "checkout", "inventory-sync")
TEAMS = [
    {"name": "money", "members": ["money"], "clusters": {"include": ["prod"]}, "groups": {"include": list(MONEY)}},
    {
        "name": "shop",
        "members": ["shop"],
        "clusters": {"include": ["prod"]},
        "groups": {"include": list(SHOP)},
        "may_operate": True,
    },
]
STORIES = {(story.cluster, story.group): story for story in GROUPS_OF_THE_DEMO}
ALL = tuple(group for _, group in STORIES)
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
    now, port = datetime.now(UTC), free_port()
    error = {"kind": "group_not_authorized", "count": 3, "example": "group fraud-scoring: not authorized"}
    lake = lakes.write_to(folder, Scene(now, promised=timedelta(hours=10), errors={"prod": [error]}))
    planning.write(lake, now)
    alerts.write_to(folder, now)
    alerts.gather(folder)
    engine, by = open_engine(f"sqlite:///{folder / 'lagwise.db'}"), Operator("root", Via.CLI)
    for group in ("fraud-scoring", "payments-settlement"):
        _silence(engine, group, by, now)
        saved_views.save(engine, f"all of {group}", "group", f"cluster=prod&group={group}", by=by, now=now)
    engine.dispose()
    write_auth_file(folder / "auth.toml", f"http://127.0.0.1:{port}")
    sign_in = {
        "auth_file": str(folder / "auth.toml"),
        "claim": "groups",
        "operators": ["root"],
        "viewers": ["boss"],
        "teams": TEAMS,
    }
    with served(folder, port=port, sign_in=sign_in) as found:
        yield found


def _silence(engine: Engine, group: str, by: Operator, now: datetime) -> None:
    its = Matcher(cluster="prod", group=group)
    actions.silence(
        engine, its, starts_at=now, ends_at=now + timedelta(hours=9), comment="nightly batch", by=by, now=now
    )


def names_of(groups: tuple[str, ...]) -> set[str]:
    """The names of these groups, and of the topics that they read."""
    return {name for (_, group), story in STORIES.items() if group in groups for name in (group, story.topic)}


def hidden_from(groups: tuple[str, ...]) -> set[str]:
    """Names that a reader of these groups must not read. Words that a visible sentence says for itself are none."""
    own = " ".join([*names_of(groups), *(s.sentence for (_, g), s in STORIES.items() if g in groups)])
    return {name for name in names_of(ALL) - names_of(groups) if name not in own and len(name) > 7}


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
