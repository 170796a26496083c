"""The lake as readers see it who may not see everything: table by table, below every query."""

from datetime import timedelta
from pathlib import Path

import pytest

from lagwise.config.base import NameFilter
from lagwise.config.visibility import NOTHING, Visibilities, Visibility
from lagwise.platform.errors import LakeError
from lagwise.tables import ALL_TABLES
from lagwise.tables.analysis import GROUP_STATUS, PARTITION_STATUS
from lagwise.tables.raw import EVENTS, SAMPLES, TOPICS
from lagwise.tables.rounds import TICKS
from lagwise.tables.schema import Table
from lagwise.tables.store import Lake
from lagwise.tables.tolerant import TolerantLake
from lagwise_dashboard.queries import health, overview
from lagwise_dashboard.queries.base import rows
from lagwise_dashboard.visible_lake import OF_LAGWISE, VisibleLake
from tests.dashboard import lakes
from tests.dashboard.conftest import NOW
from tests.dashboard.lakes import LEADERLESS, Scene
from tests.lake_rows import append, overwrite


def seen_by(*parts: Visibility) -> Visibilities:
    return Visibilities(parts)


def named(*patterns: str) -> NameFilter:
    return NameFilter(include=patterns)


MONEY = seen_by(Visibility(named("prod"), named("payments-.*", "invoice-mailer")))


def visible(folder: Path, seen: Visibilities) -> VisibleLake:
    return VisibleLake(TolerantLake(str(folder / "lake")), seen, repr(seen))


def all_rows(lake: Lake, table: Table) -> list[dict[str, object]]:
    return rows(lake, {table: None}, f'select * from "{table.name}"')


def test_each_table_holds_visible_rows_alone_or_is_refused(planned: Path) -> None:
    whole, lake = TolerantLake(str(planned / "lake")), visible(planned, MONEY)
    for table in ALL_TABLES:
        check_rows(table, whole, lake)


def check_rows(table: Table, whole: Lake, lake: Lake) -> None:
    groups = {("prod", "payments-settlement"), ("prod", "invoice-mailer")}
    topics = {
        ("prod", row["topic"]) for row in all_rows(whole, PARTITION_STATUS) if (row["cluster"], row["group"]) in groups
    }
    names = {column.name for column in table.columns}
    if "cluster" not in names and table not in OF_LAGWISE:
        with pytest.raises(LakeError, match="only unlimited users see it"):
            all_rows(lake, table)
        return
    before, found = all_rows(whole, table), all_rows(lake, table)
    if "group" in names:
        assert {(r["cluster"], r["group"]) for r in found if r["group"] is not None} <= groups
        own = [r for r in before if (r["cluster"], r["group"]) in groups]
        assert len([r for r in found if r["group"] is not None]) == len(own), "and all of them"
    elif "topic" in names:
        assert {(r["cluster"], r["topic"]) for r in found} <= topics
        assert len(found) == len([r for r in before if (r["cluster"], r["topic"]) in topics]), "and all of them"
    elif "cluster" in names:
        assert {r["cluster"] for r in found} <= {"prod"}
    else:
        assert len(found) == len(before), "it is about Lagwise itself"


def test_what_a_member_of_two_teams_sees_is_what_either_does(busy: Path) -> None:
    shop = Visibility(named("prod"), named("checkout"))
    lake = visible(busy, seen_by(*MONEY.parts, shop))
    assert {r["group"] for r in all_rows(lake, GROUP_STATUS)} == {"payments-settlement", "invoice-mailer", "checkout"}
    assert overview.counts(lake, None, "").total == 3


def test_who_sees_nothing_sees_no_row(busy: Path) -> None:
    lake = visible(busy, NOTHING)
    for table in (GROUP_STATUS, EVENTS, TOPICS, SAMPLES):
        assert all_rows(lake, table) == []


def test_a_pattern_means_what_it_means_to_python(busy: Path) -> None:
    """DuckDB's own regular expressions know no lookahead."""
    lake = visible(busy, seen_by(Visibility(groups=named("(?!payments).*-.*"))))
    found = {r["group"] for r in all_rows(lake, GROUP_STATUS)}
    assert "payments-settlement" not in found
    assert "fraud-scoring" in found


def test_partitions_with_a_problem_are_shown_to_who_sees_all_groups_of_the_cluster(tmp_path: Path) -> None:
    lakes.write_to(tmp_path, Scene(NOW, facts={"prod": {"replicas": [LEADERLESS]}}))

    def replicas(seen: Visibilities) -> list[object]:
        rows = [row for row in all_rows(visible(tmp_path, seen), SAMPLES) if row["cluster"] == "prod"]
        assert rows
        return [row["replicas"] for row in rows]

    assert all(found == [LEADERLESS] for found in replicas(seen_by(Visibility(named("prod")))))
    assert all(found is None for found in replicas(MONEY)), "they name partitions of all topics"


def test_errors_of_a_cluster_of_which_some_groups_are_hidden_have_no_count_and_no_example(tmp_path: Path) -> None:
    error = {"kind": "group_unreadable", "count": 2, "example": "group fraud-scoring: not authorized"}
    lakes.write_to(tmp_path, Scene(NOW, errors={"prod": [error]}))
    some = [r for r in all_rows(visible(tmp_path, MONEY), SAMPLES) if r["errors"]]
    shown = {(e["kind"], e["count"], e["example"]) for r in some for e in r["errors"]}
    assert shown == {("group_unreadable", None, None)}
    (listed,) = health.errors(visible(tmp_path, MONEY), NOW - timedelta(hours=1), NOW)
    assert (listed["kind"], listed["count"]) == ("group_unreadable", None)
    assert {r["groups"] for r in some} == {2}, "those that are visible"
    whole = [r for r in all_rows(visible(tmp_path, seen_by(Visibility(named("prod")))), SAMPLES) if r["errors"]]
    assert {(e["count"], e["example"]) for r in whole for e in r["errors"]} == {(2, error["example"])}
    assert {r["cluster"] for r in whole} == {"prod"}
    read_at = {
        str(seen): [r["read_at"] for r in health.newest(visible(tmp_path, seen), NOW).samples]
        for seen in (MONEY, seen_by(Visibility(named("prod"))))
    }
    assert len(set(map(str, read_at.values()))) == 1, "an error of a hidden group does not make the data late"


def test_an_event_of_a_topic_is_seen_by_its_readers(busy: Path) -> None:
    whole = TolerantLake(str(busy / "lake"))
    story = next(s for s in Scene(NOW).stories if s.group == "payments-settlement")
    event = {"cluster": "prod", "at": NOW - timedelta(minutes=3), "kind": "leaders_moved", "group": None}
    append(whole, EVENTS, [{**event, "topic": story.topic}, {**event, "topic": "of-nobody"}])
    found = [r["topic"] for r in all_rows(visible(busy, MONEY), EVENTS) if r["group"] is None]
    assert found == [story.topic]


def test_a_new_group_is_seen_and_changes_the_key_of_the_answers(busy: Path) -> None:
    whole, lake = TolerantLake(str(busy / "lake")), visible(busy, MONEY)
    before, now = lake.key, all_rows(whole, GROUP_STATUS)
    overwrite(whole, GROUP_STATUS, now)
    assert lake.key == before, "the same groups, a round later"
    overwrite(whole, GROUP_STATUS, [*now, {**now[0], "cluster": "prod", "group": "payments-new"}])
    assert lake.key != before
    assert "payments-new" in {r["group"] for r in all_rows(lake, GROUP_STATUS)}


def test_a_table_is_not_read_in_another_way(busy: Path) -> None:
    lake = visible(busy, MONEY)
    for read in (
        lambda: lake.open(TICKS),
        lambda: lake.read(GROUP_STATUS),
        lambda: lake.files(GROUP_STATUS),
        lambda: lake.relative_files(GROUP_STATUS),
        lambda: lake.select("select * from group_status", GROUP_STATUS),
        lambda: lake.newest_day(EVENTS),
    ):
        with pytest.raises(LakeError, match="who may see every group"):
            read()
