"""What a text finds: the queries, and what of their answers a reader is shown."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from lagwise.tables.analysis import GROUP_STATUS, PARTITION_STATUS
from lagwise.tables.raw import GROUPS, MEMBERS
from lagwise.tables.store import Lake
from lagwise_dashboard.queries import finding
from lagwise_dashboard.queries.listing import ListPage
from lagwise_dashboard.widgets.finder import hits
from tests.dashboard import lakes
from tests.dashboard.lakes import Scene
from tests.dashboard.stories import GROUPS_OF_THE_DEMO, HOSTILE_GROUPS, HOSTILE_NAMES
from tests.lake_rows import append, overwrite, row

NOW = datetime(2026, 11, 21, 12, 0, 5, tzinfo=UTC)
Row = dict[str, Any]


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    scene = Scene(NOW, stories=GROUPS_OF_THE_DEMO + HOSTILE_GROUPS)
    return lakes.write_to(tmp_path_factory.mktemp("finding"), scene)


@pytest.fixture
def bare(tmp_path: Path) -> Lake:
    """A lake whose tables are empty."""
    return lakes.write_to(tmp_path, Scene(NOW, stories=()))


def _group(name: str, **what: Any) -> Row:
    return row(GROUP_STATUS, **{"cluster": "prod", "group": name, "as_of": NOW, "status": "ok", **what})


def _partition(group: str, topic: str, number: int, **what: Any) -> Row:
    its = {"cluster": "prod", "group": group, "topic": topic, "partition": number, "as_of": NOW, "status": "ok"}
    return row(PARTITION_STATUS, **{**its, **what})


def _sampled(lake: Lake, sample: str, at: datetime, members: list[Row], *, cluster: str = "prod") -> None:
    """A sample of the group ``g`` with these members."""
    shared = {"sample_id": sample, "cluster": cluster, "sampled_at": at, "group": "g"}
    append(lake, GROUPS, [{**shared, "state": "Stable", "type": "classic"}])
    append(lake, MEMBERS, [{**shared, "assignment": [], "assigned_partitions": 0, **member} for member in members])


def _names(found: ListPage[Row]) -> list[str]:
    return [one["name"] for one in found]


def test_the_group_of_exactly_this_name_is_first_and_then_the_worst(bare: Lake) -> None:
    rows = [
        _group("orders"),
        _group("orders-late", status="falling_behind", lag_seconds=9.0, lag=5),
        _group("orders-later", status="falling_behind", lag_seconds=90.0, lag=5),
        _group("my-orders", status="losing_data"),
        _group("billing", status="losing_data"),
    ]
    overwrite(bare, GROUP_STATUS, rows)
    found = finding.groups(bare, "ORDERS", 3)
    assert _names(found) == ["orders", "my-orders", "orders-later"]
    assert found.total == 4


def test_a_topic_has_its_readers_and_the_worst_status_among_them(bare: Lake) -> None:
    rows = [
        _partition("a", "orders", 0),
        _partition("b", "orders", 0, status="stalled"),
        _partition("b", "orders", 1, status="stopped"),
        _partition("a", "border", 0),
    ]
    overwrite(bare, PARTITION_STATUS, rows)
    first, second = finding.topics(bare, "order", 20)
    assert (first["name"], first["groups"], first["status"]) == ("orders", 2, "stopped")
    assert (second["name"], second["groups"], second["status"]) == ("border", 1, "ok")


def test_a_partition_is_found_by_the_topic_a_hyphen_and_the_beginning_of_its_number(bare: Lake) -> None:
    numbers = [_partition("a", "orders", number) for number in (1, 7, 17, 70, 71)]
    overwrite(bare, PARTITION_STATUS, [*numbers, _partition("a", "orders-7", 0), _partition("b", "orders", 71)])
    assert _names(finding.partitions(bare, "orders-7", 20)) == ["orders-7", "orders-70", "orders-71"]
    assert _names(finding.partitions(bare, "ERS-71", 20)) == ["orders-71"]
    assert finding.partitions(bare, "orders-71", 20)[0]["groups"] == 2
    assert _names(finding.partitions(bare, "orders-7-0", 20)) == ["orders-7-0"]
    for text in ("orders", "7", "orders-", ""):
        assert finding.partitions(bare, text, 20).total == 0, text


def test_members_are_those_of_the_newest_sample_of_each_cluster_with_the_status_of_what_they_own(bare: Lake) -> None:
    overwrite(bare, GROUP_STATUS, [_group("g")])
    overwrite(
        bare, PARTITION_STATUS, [_partition("g", "t", 0, owner="id-1", status="stalled"), _partition("g", "t", 1)]
    )
    gone = {"member_id": "id-0", "client_id": "worker-0", "host": "/10.0.0.1"}
    busy = {"member_id": "id-1", "client_id": "worker-1", "host": "/10.0.0.1"}
    idle = {"member_id": "id-2", "client_id": "worker-2", "host": "/10.0.0.1", "static_instance_id": "pod-2"}
    _sampled(bare, "s1", NOW - timedelta(seconds=30), [gone, busy, idle])
    _sampled(bare, "s2", NOW - timedelta(seconds=15), [busy, idle])
    _sampled(bare, "x1", NOW - timedelta(minutes=50), [{**gone, "host": "/10.9.9.9"}], cluster="slow")
    found = finding.members(bare, "worker", 20)
    assert [(r["name"], r["cluster"], r["status"]) for r in found] == [
        ("worker-1", "prod", "stalled"),
        ("worker-0", "slow", None),
        ("worker-2", "prod", None),
    ]
    assert [(r["name"], r["member_id"]) for r in finding.members(bare, "POD", 20)] == [("pod-2", "id-2")]
    assert [(r["name"], r["member_id"]) for r in finding.members(bare, "id-2", 20)] == [("id-2", "id-2")]
    [host] = finding.hosts(bare, "10.0", 20)
    assert (host["name"], host["group"], host["members"], host["status"]) == ("10.0.0.1", "g", 2, "stalled")


def test_a_group_whose_members_have_left_has_none(bare: Lake) -> None:
    overwrite(bare, GROUP_STATUS, [_group("g")])
    _sampled(bare, "s1", NOW - timedelta(seconds=30), [{"member_id": "id-1", "client_id": "worker-1", "host": "h"}])
    _sampled(bare, "s2", NOW - timedelta(seconds=15), [])
    assert finding.members(bare, "worker", 20).total == finding.hosts(bare, "h", 20).total == 0


@pytest.mark.parametrize("kind", [finding.groups, finding.topics, finding.partitions, finding.members, finding.hosts])
def test_a_lake_in_which_nothing_was_judged_yet_has_nothing(bare: Lake, kind: Any) -> None:
    assert kind(bare, "a-1", 20).total == 0


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_a_hostile_name_is_found_by_its_own_letters(stored: Lake, name: str) -> None:
    assert _names(finding.groups(stored, name, 20)) == [name]
    assert name[:200] in _names(finding.topics(stored, name[:200], 20))


@pytest.mark.parametrize("text", ["%", "_", "\\", "p%s", ".*", "[a-z]"])
def test_nothing_in_a_text_is_a_pattern(stored: Lake, text: str) -> None:
    for kind in (finding.groups, finding.topics, finding.members, finding.hosts):
        for found in kind(stored, text, 20):
            assert text.lower() in found["name"].lower()


def test_kinds_share_the_room_and_leave_none_of_it_empty() -> None:
    assert hits._shares([8, 20, 20, 0, 20, 20], 20) == [4, 4, 4, 0, 4, 4]
    assert hits._shares([0, 20, 2, 0, 0, 0], 20) == [0, 18, 2, 0, 0, 0]
    assert hits._shares([1, 20, 20, 0, 0, 0], 20) == [1, 10, 9, 0, 0, 0]
    assert hits._shares([0, 3, 2], 20) == [0, 3, 2]
