"""The strip of all groups on the overview: its cells, its blocks, its legend, and the sentence on it."""

from pathlib import Path

import pytest

from lagwise.domain.vocabulary import Status
from lagwise.tables.analysis import GROUP_STATUS
from lagwise.tables.store import Lake
from lagwise_dashboard import alert_reader
from lagwise_dashboard.pages.overview import fleet_sentence, fleet_strip
from lagwise_dashboard.pages.overview.fleet_sentence import SharedIncident
from lagwise_dashboard.queries import overview
from lagwise_dashboard.queries.base import Query
from lagwise_dashboard.queries.overview import SENTENCE_START, FleetGroup, GroupKeys, StatusCounts
from tests.dashboard import alerts
from tests.dashboard.conftest import Open
from tests.dashboard.shown_strip import strip
from tests.dashboard.shown_tables import tables
from tests.dashboard.stories import GROUPS_OF_THE_DEMO, HOSTILE_NAMES
from tests.lake_rows import overwrite

_TOPIC = ("on topic", lambda one: one.topic)
_HOST = ("on host", lambda one: one.host)


def _groups(number: int, status: Status, topic: str | None = None, host: str | None = None) -> list[FleetGroup]:
    quiet = status in (Status.OK, Status.GHOST)
    return [FleetGroup("prod", f"{status}-{topic}-{i}", status, quiet, "", topic, host) for i in range(number)]


_WELL = _groups(20, Status.OK, "orders")


@pytest.mark.parametrize(
    ("troubled", "said"),
    [
        ([], ""),
        (_groups(1, Status.STOPPED, "clicks"), "stopped-clicks-0 is stopped."),
        (_groups(10, Status.LOSING_DATA, "clicks"), "10 groups lose data, all on topic clicks."),
        (
            [*_groups(10, Status.LOSING_DATA, "clicks"), *_groups(1, Status.LAGGING, "views")],
            "10 groups lose data, all on topic clicks; 1 more is in trouble.",
        ),
        (
            [*_groups(1, Status.LOSING_DATA, "clicks"), *_groups(4, Status.FALLING_BEHIND, "clicks")],
            "5 groups are in trouble, all on topic clicks: 1 loses data.",
        ),
        (_groups(2, Status.STOPPED, "clicks"), "2 groups are stopped."),
        (_groups(5, Status.STALLED, "orders"), "5 groups are stalled."),
        (_groups(5, Status.STALLED, None), "5 groups are stalled."),
        (_groups(3, Status.UNKNOWN, "clicks"), ""),
        (_groups(3, Status.AT_RISK, "orders", "/10.0.0.1"), "3 groups are at risk, all on host /10.0.0.1."),
    ],
    ids=[
        "none", "one is named", "what all share", "others do not share it", "in several statuses", "two are few",
        "well groups have it, too", "nothing is known", "unknown is no trouble", "the narrowest",
    ],
)  # fmt: skip
def test_the_sentence_says_how_many_and_what_they_share(troubled: list[FleetGroup], said: str) -> None:
    assert fleet_sentence.sentence([*troubled, *_WELL], [_TOPIC, _HOST]) == said


def test_without_a_group_that_is_well_nothing_is_said_to_be_shared() -> None:
    assert fleet_sentence.sentence(_groups(9, Status.STOPPED, "clicks"), [_TOPIC]) == "9 groups are stopped."


@pytest.mark.parametrize(
    ("clusters", "watched", "differ"),
    [
        (["prod", "staging"], ["prod", "staging"], True),
        (["prod", "staging"], [], True),
        (["prod", "prod"], ["prod", "staging"], False),
        (["prod", "made-up"], ["prod"], False),
        (["prod", "prod"], [], False),
    ],
)
def test_a_cluster_is_only_named_if_there_are_groups_on_another_that_is_watched(
    clusters: list[str], watched: list[str], differ: bool
) -> None:
    groups = [one._replace(cluster=cluster) for one, cluster in zip(_WELL, clusters, strict=False)]
    assert fleet_sentence.clusters_differ(groups, watched) is differ


def test_a_shared_incident_goes_before_what_the_page_finds() -> None:
    troubled = _groups(4, Status.STOPPED, "clicks")
    incident = SharedIncident("broker 3", frozenset((one.cluster, one.group) for one in troubled[:3]))
    said = "3 groups are in one shared incident, broker 3; 1 more is in trouble."
    assert fleet_sentence.sentence([*troubled, *_WELL], [_TOPIC], [incident]) == said
    larger = SharedIncident("broker 7", frozenset((one.cluster, one.group) for one in troubled))
    said = "4 groups are in one shared incident, broker 7."
    assert fleet_sentence.sentence([*troubled, *_WELL], [_TOPIC], [incident, larger]) == said, "the largest"
    elsewhere = SharedIncident("broker 3", frozenset({("prod", "another group")}))
    assert "clicks" in fleet_sentence.sentence([*troubled, *_WELL], [_TOPIC], [elsewhere]), "it is filtered out"


def test_blocks_with_most_trouble_come_first_and_the_last_ones_share_one() -> None:
    groups = [
        *_groups(2, Status.STOPPED, "two"),
        *_groups(3, Status.STOPPED, "three"),
        *_groups(1, Status.LOSING_DATA, "lost"),
        *_groups(1, Status.OK, None),
        *(one for i in range(40) for one in _groups(2, Status.OK, f"well-{i:02}")),
    ]
    shown = fleet_strip.blocks(groups, lambda one: one.topic, nameless="no topic", href=lambda name: f"?q={name}")
    assert [block.name for block in shown[:4]] == ["lost", "three", "two", "well-00"]
    assert (shown[0].href, shown[-1].href) == ("?q=lost", None)
    assert shown[-1].name == "21 others"
    assert sum(len(block.groups) for block in shown) == len(groups), "each group has a cell"


def test_every_group_has_a_cell_worst_first_and_what_needs_attention_its_sentence(open_app: Open, busy: Path) -> None:
    shown = strip(open_app())
    [block] = shown.blocks
    assert block.name == ""
    assert len(block.groups) == len(GROUPS_OF_THE_DEMO)
    assert block.groups[0] == ("payments-settlement", "losing_data")
    assert block.groups[-1] == ("legacy-reports", "ghost")
    assert (shown.counts["stopped"], shown.counts["ok"]) == ("2", "5")
    assert shown.says["feature-flags-audit"] == "Nothing has been committed yet on any of its 3 p…"
    assert "checkout" not in shown.says, "nothing is to be said of a group that is ok"
    assert shown.sentence == "payments-settlement loses data; 7 more are in trouble."


def test_a_status_is_chosen_in_the_address_and_the_others_stay_in_the_strip(open_app: Open, busy: Path) -> None:
    app = open_app(status="ok")
    assert tables(app)[0].rows == 5
    shown = strip(app)
    assert shown.chosen == ["ok"]
    assert sum(len(block.groups) for block in shown.blocks) == len(GROUPS_OF_THE_DEMO)
    assert strip(open_app(status="ok", q="clicks")).counts == {"at_risk": "1", "ok": "0"}


def test_a_round_that_ends_while_the_page_is_read_leaves_legend_and_cells_alike(
    open_app: Open, busy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = overview.counts

    def before_a_round(lake: Lake, cluster: str | None, text: str, among: GroupKeys | None = None) -> StatusCounts:
        found = read(lake, cluster, text, among)
        rows = lake.read(GROUP_STATUS).to_pylist()
        overwrite(Lake(lake.uri), GROUP_STATUS, [row | {"status": "stopped"} for row in rows])
        return found

    monkeypatch.setattr(overview, "counts", Query(before_a_round, read.tables))
    shown = strip(open_app(q="checkout"))
    assert shown.counts == {"stopped": "1"}
    assert shown.blocks[0].groups == [("checkout", "stopped")]


def test_without_hosts_the_strip_rests_on_one_table() -> None:
    assert overview.fleet.tables == (GROUP_STATUS,), "it would be read twice a round"


@pytest.mark.parametrize(
    ("by", "first", "group"),
    [
        ("cluster", "prod", "payments-settlement"),
        ("topic", "payments.settled", "payments-settlement"),
        ("owner", "no owner", "payments-settlement"),
        ("host", "/10.20.112.11", "payments-settlement"),
    ],
)
def test_the_strip_is_grouped(open_app: Open, busy: Path, by: str, first: str, group: str) -> None:
    block = strip(open_app(by=by)).blocks[0]
    assert (block.name, block.groups[0][0]) == (first, group)


def test_groups_without_members_have_a_block(open_app: Open, busy: Path) -> None:
    blocks = {block.name: [name for name, _ in block.groups] for block in strip(open_app(by="host")).blocks}
    assert set(blocks["no member"]) == {"invoice-mailer", "console-consumer-41275", "etl-nightly"}


def test_the_alerts_shared_incident_is_the_sentence(open_app: Open, busy: Path) -> None:
    alerts.gather(busy)
    alert_reader.clear_cache()
    assert strip(open_app()).sentence == "4 groups are in one shared incident, broker 3; 4 more are in trouble."


def test_hostile_names_reach_the_browser_as_they_are(open_app: Open, hostile: Path) -> None:
    [block] = strip(open_app()).blocks
    assert {name for name, _ in block.groups} == set(HOSTILE_NAMES)
    assert len(strip(open_app(by="topic")).blocks) == len(HOSTILE_NAMES)


def test_a_sentence_that_is_not_cut_has_no_dots(open_app: Open, busy: Path) -> None:
    for group, said in strip(open_app()).says.items():
        [story] = [one for one in GROUPS_OF_THE_DEMO if one.group == group]
        assert said.endswith("…") == (len(story.sentence) > SENTENCE_START), group
        assert story.sentence.startswith(said.removesuffix("…"))
