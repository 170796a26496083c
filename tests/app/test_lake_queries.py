"""What the terminal asks the lake."""

from datetime import timedelta

import pytest

from lagwise.config import Config
from lagwise.domain.vocabulary import Status
from lagwise.platform.errors import LagwiseError
from lagwise.tables.analysis import GROUP_STATUS, PARTITION_STATUS
from lagwise.tables.store import Lake
from lagwise_app.terminal import lake_queries
from tests.app.judged import AT, HOSTILE, analyzed, append, changed, group, partition, sampled

CONFIG = Config.model_validate(
    {"clusters": [{"name": "shop", "bootstrap": "h:1", "interval_seconds": 10}], "analysis": {"interval_seconds": 10}}
)


def test_groups_come_worst_first(lake: Lake) -> None:
    append(lake, GROUP_STATUS, *(group(f"g-{s}", s) for s in reversed(Status)))
    shown = [row["status"] for row in lake_queries.groups(lake)]
    assert shown == [
        "losing_data",
        "at_risk",
        "stopped",
        "stalled",
        "rewound",
        "falling_behind",
        "lagging",
        "unknown",  # not known to be in trouble, and not known to be well
        "catching_up",
        "ok",
        "ghost",
    ]


def test_among_equals_the_older_backlog_comes_first_and_the_unknown_age_last(lake: Lake) -> None:
    append(
        lake,
        GROUP_STATUS,
        group("b", "lagging", lag_seconds=None),
        group("c", "lagging", lag_seconds=5.0),
        group("a", "lagging", lag_seconds=0.0),
        group("d", "lagging", lag_seconds=500.0),
    )
    assert [row["group"] for row in lake_queries.groups(lake)] == ["d", "c", "a", "b"]


def test_a_status_of_a_newer_version_is_shown_first_not_refused(lake: Lake) -> None:
    append(lake, GROUP_STATUS, group("a", "losing_data"), group("b", "on_fire"))
    assert [row["status"] for row in lake_queries.groups(lake)] == ["on_fire", "losing_data"]


def test_counts_by_status_are_an_object(lake: Lake) -> None:
    append(lake, GROUP_STATUS, group("a", "ok"))
    assert lake_queries.groups(lake)[0]["partitions_by_status"] == {"ok": 2}


def test_partitions_of_one_group_of_one_cluster_in_order(lake: Lake) -> None:
    append(
        lake,
        PARTITION_STATUS,
        partition("g", 10),
        partition("g", 2),
        partition("g", 1, topic="a"),
        partition("g", 0, cluster="other"),
        partition("other", 0),
    )
    rows = lake_queries.partitions(lake, "g", "shop")
    assert [(r["topic"], r["partition"]) for r in rows] == [("a", 1), ("orders", 2), ("orders", 10)]


def test_a_hostile_name_is_only_a_name(lake: Lake) -> None:
    append(lake, GROUP_STATUS, group(HOSTILE, "ok"), group("innocent", "ok"))
    append(lake, PARTITION_STATUS, partition(HOSTILE, 0), partition("innocent", 0))
    assert lake_queries.group(lake, HOSTILE, None)["group"] == HOSTILE
    assert [r["topic"] for r in lake_queries.partitions(lake, HOSTILE, "shop")] == ["orders"]
    assert lake_queries.partitions(lake, "' or '1'='1", "shop") == []


def test_a_group_that_is_not_known_or_not_clear_is_refused(lake: Lake) -> None:
    append(lake, GROUP_STATUS, group("g", "ok"), group("g", "stalled", cluster="other"))
    with pytest.raises(LagwiseError, match="no group 'nobody' has been analysed"):
        lake_queries.group(lake, "nobody", None)
    with pytest.raises(LagwiseError, match=r"several clusters \(other, shop\): choose one with --cluster"):
        lake_queries.group(lake, "g", None)
    assert lake_queries.group(lake, "g", "other")["status"] == "stalled"
    with pytest.raises(LagwiseError, match="no group 'g' in cluster third"):
        lake_queries.group(lake, "g", "third")


def test_freshness_of_nothing(lake: Lake) -> None:
    fresh = lake_queries.freshness(lake, CONFIG, AT)
    assert (fresh.as_of, fresh.age_seconds, fresh.analyzed_at, fresh.stale) == (None, None, None, True)
    (shop,) = fresh.clusters
    assert (shop.cluster, shop.as_of, shop.sampled_at, shop.stale, shop.errors) == ("shop", None, None, True, {})
    assert lake_queries.freshness(lake, Config(), AT).stale


def test_freshness(lake: Lake) -> None:
    append(lake, GROUP_STATUS, group("a", "ok", as_of=AT - timedelta(seconds=30)), group("b", "ok", as_of=AT))
    sampled(lake, AT - timedelta(seconds=60), errors={"timeout": 9})
    sampled(lake, AT, errors={"timeout": 2, "no_leader": 1})
    analyzed(lake, AT + timedelta(seconds=2))
    fresh = lake_queries.freshness(lake, CONFIG, AT + timedelta(seconds=20))
    assert (fresh.as_of, fresh.age_seconds, fresh.analysis_age_seconds, fresh.stale) == (AT, 20, 17, False)
    (shop,) = fresh.clusters
    assert (shop.as_of, shop.age_seconds, shop.sample_age_seconds, shop.stale) == (AT, 20, 19, False)
    assert shop.errors == {"timeout": 2, "no_leader": 1}  # of the newest sample, not of all


def test_an_attempt_that_read_nothing_is_no_sample(lake: Lake) -> None:
    sampled(lake, AT, errors={"unreachable": 1}, groups=0)
    (shop,) = lake_queries.freshness(lake, CONFIG, AT).clusters
    assert (shop.sampled_at, shop.stale, shop.errors) == (None, True, {"unreachable": 1})
    sampled(lake, AT - timedelta(seconds=60))
    (shop,) = lake_queries.freshness(lake, CONFIG, AT).clusters
    assert shop.sampled_at == AT - timedelta(seconds=59)
    assert shop.errors == {"unreachable": 1}


def test_a_cluster_whose_collector_died_is_not_hidden_by_the_others(lake: Lake) -> None:
    append(lake, GROUP_STATUS, group("a", "ok"), group("a", "ok", cluster="dead", as_of=AT - timedelta(hours=1)))
    sampled(lake, AT)
    sampled(lake, AT - timedelta(hours=1), cluster="dead")
    sampled(lake, AT, cluster="neither watched nor judged")
    fresh = lake_queries.freshness(lake, CONFIG, AT)
    assert {c.cluster: c.stale for c in fresh.clusters} == {"shop": False, "dead": True}
    assert (fresh.stale, fresh.age_seconds) == (True, 3600)
    asked_for = lake_queries.freshness(lake, CONFIG, AT, only=["shop"])
    assert ([c.cluster for c in asked_for.clusters], asked_for.stale, asked_for.as_of) == (["shop"], False, AT)


def test_a_cluster_in_the_settings_that_was_never_sampled_is_stale(lake: Lake) -> None:
    append(lake, GROUP_STATUS, group("a", "ok", cluster="other"))
    assert {c.cluster: c.stale for c in lake_queries.freshness(lake, CONFIG, AT).clusters} == {
        "other": False,
        "shop": True,
    }


@pytest.mark.parametrize(("age_seconds", "stale"), [(0, False), (80, False), (81, True), (-5, False)])
def test_stale_is_three_intervals_and_some_slack(lake: Lake, age_seconds: int, stale: bool) -> None:
    append(lake, GROUP_STATUS, group("a", "ok"))
    sampled(lake, AT, interval_seconds=10)  # what the collector works at, whatever the settings here say
    fresh = lake_queries.freshness(
        lake, Config.model_validate({"analysis": {"interval_seconds": 10}}), AT + timedelta(seconds=age_seconds)
    )
    assert fresh.stale is stale
    assert fresh.age_seconds == max(0, age_seconds)


def test_status_changes_of_groups_only_in_order(lake: Lake) -> None:
    changed(lake, "g", AT + timedelta(seconds=5), "unknown", "ok")
    changed(lake, "g", AT, None, "unknown")
    changed(lake, "g", AT, None, "unknown", topic="orders")
    assert [(c["before"], c["after"]) for c in lake_queries.status_changes(lake)] == [
        (None, "unknown"),
        ("unknown", "ok"),
    ]
