"""Rows of `assignments` from the tables of the lake: the driver's part of a round, which needs no JVM."""

from datetime import timedelta
from typing import Any

import pytest

from lagwise.tables.analysis import PARTITION_STATUS
from lagwise.tables.membership import ASSIGNMENTS
from lagwise.tables.raw import EVENTS, GROUPS, MEMBERS, TOPICS
from lagwise.tables.store import Lake
from lagwise_spark.jobs import assignments
from lagwise_spark.jobs.assignments import REFRESH, assign
from lagwise_spark.jobs.findings import findings_of
from tests.spark.test_rebalance_stats import append, at, left, news

pytestmark = pytest.mark.thorough


def sample(
    lake: Lake,
    group: str,
    owned: dict[str, list[int]],
    *,
    state: str = "Stable",
    kind: str = "classic",
    minute: float = 0.0,
) -> None:
    """One sample of a group: which member owns which partitions of the topic `orders`."""
    stamp = {"sample_id": "s1", "cluster": "shop", "sampled_at": at(minute), "group": group}
    append(lake, GROUPS, {**stamp, "state": state, "type": kind, "assignor": "range"})
    members = [
        {
            **stamp,
            "member_id": f"{member}-id",
            "client_id": member,
            "host": "10.0.0.1",
            "assignment": [{"topic": "orders", "partitions": numbers}] if numbers else [],
            "assigned_partitions": len(numbers),
        }
        for member, numbers in owned.items()
    ]
    append(lake, MEMBERS, *members)


def rates(lake: Lake, group: str, by_partition: dict[int, float | None]) -> None:
    rows = [
        {
            "cluster": "shop",
            "group": group,
            "topic": "orders",
            "partition": number,
            "as_of": at(0),
            "status": "ok",
            "since": at(0),
            "reasons": ["ok"],
            "records_lost": 0,
            "produce_rate_per_second": rate,
        }
        for number, rate in by_partition.items()
    ]
    append(lake, PARTITION_STATUS, *rows)


def topic(lake: Lake, partitions: int) -> None:
    row = {"sample_id": "s0", "cluster": "shop", "sampled_at": at(0), "topic": "orders", "partitions": partitions}
    append(lake, TOPICS, row)


@pytest.fixture
def skewed(lake: Lake) -> Lake:
    topic(lake, 4)
    sample(lake, "billing", {"a": [0, 1], "b": [2, 3], "c": []})
    rates(lake, "billing", {0: 90.0, 1: 5.0, 2: 3.0, 3: 2.0})
    return lake


def rows(lake: Lake) -> dict[str, dict[str, Any]]:
    return {row["group"]: row for row in lake.read(ASSIGNMENTS).to_pylist()}


@pytest.mark.parametrize("kind", ["broadcasting", "pop", "pull"])
def test_members_that_have_queues_in_common_are_not_compared(lake: Lake, kind: str) -> None:
    topic(lake, 2)
    sample(lake, "news", {"a": [0, 1], "b": [0, 1]}, kind=kind)
    assert assign(lake, news(1)) == 0
    assert rows(lake) == {}


def test_a_settled_group_has_a_row_and_its_sentences_are_findings(skewed: Lake) -> None:
    assert assign(skewed, news(1)) == 1
    row = rows(skewed)["billing"]
    assert (row["members"], row["idle_members"], row["partitions"]) == (3, 1, 4)
    assert (row["busiest_member"], row["hottest_partition"]) == ("a", 0)
    assert (row["busiest_share"], row["hottest_share"], row["bound_share"]) == pytest.approx((0.95, 0.9, 0.9))
    assert {a["assignor"] for a in row["alternatives"]} >= {"range", "roundrobin", "sticky", "cooperative-sticky"}
    found = findings_of(skewed, news(1))["shop", "billing"]
    assert [f.sentence for f in found] == row["sentences"]
    assert any("orders-0 alone" in f.sentence for f in found)


def test_where_rates_are_not_known_shares_are_not_either(lake: Lake) -> None:
    sample(lake, "billing", {"a": [0, 1], "b": [2]})
    rates(lake, "billing", {0: 1.0, 1: None, 2: 1.0})
    assign(lake, news(1))
    assert (rows(lake)["billing"]["busiest_share"], rows(lake)["billing"]["hottest_share"]) == (None, None)


def test_nothing_is_written_while_nothing_changes_and_rates_are_young(skewed: Lake) -> None:
    assign(skewed, news(1))
    delta = skewed.open(ASSIGNMENTS)
    assert delta is not None
    before = delta.version()
    assert assign(skewed, news(2)) == 0
    after = skewed.open(ASSIGNMENTS)
    assert after is not None
    assert after.version() == before
    assert assign(skewed, news(1 + REFRESH / timedelta(minutes=1))) == 1


def test_rates_that_were_not_known_are_asked_for_again_soon(lake: Lake) -> None:
    """The first row of a group is made in the round that first sees it."""
    topic(lake, 2)
    sample(lake, "billing", {"a": [0], "b": [1]})
    assign(lake, news(1))
    assert rows(lake)["billing"]["busiest_share"] is None
    rates(lake, "billing", {0: 3.0, 1: 1.0})
    assert assign(lake, news(1.9)) == 0
    assert assign(lake, news(2)) == 1
    assert rows(lake)["billing"]["busiest_share"] == pytest.approx(0.75)
    assert assign(lake, news(3)) == 0


def test_a_rebalance_makes_a_new_row(skewed: Lake) -> None:
    assign(skewed, news(1))
    append(skewed, EVENTS, left(1.5, "b (10.0.0.1)"))
    assert assign(skewed, news(2)) == 1
    assert rows(skewed)["billing"]["as_of"] == at(2)
    assert assign(skewed, news(3)) == 0


@pytest.mark.parametrize("state", ["Empty", "PreparingRebalance"])
def test_a_group_that_is_not_settled_has_none(lake: Lake, state: str) -> None:
    sample(lake, "billing", {"a": [0]})
    assign(lake, news(1))
    later = [n.__class__(**{f: getattr(n, f) for f in n.__slots__} | {"latest_id": "s2"}) for n in news(2)]
    append(
        lake, GROUPS, {"sample_id": "s2", "cluster": "shop", "sampled_at": at(2), "group": "billing", "state": state}
    )
    assert assign(lake, later) == 0
    assert rows(lake) == {}


def test_a_round_looks_at_so_many_and_the_oldest_come_first(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assignments, "MOST_PARTITIONS", 4)
    topic(lake, 3)
    for group in ("one", "two", "three"):
        sample(lake, group, {"a": [0, 1], "b": [2]})
        rates(lake, group, {0: 3.0, 1: 2.0, 2: 1.0})
    assert [assign(lake, news(minute)) for minute in (1, 2, 3, 4)] == [1, 1, 1, 0]
    assert [assign(lake, news(minute)) for minute in (6, 7, 8)] == [1, 1, 1]
    assert {row["as_of"] for row in rows(lake).values()} == {at(6), at(7), at(8)}
