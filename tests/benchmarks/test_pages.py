"""The lake that the pages are measured over is one that they read, and a round changes what they show."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from benchmarks.pages_cast import CLUSTER, GROUP, SMALL, TOPIC, WIDE_GROUP
from benchmarks.pages_lake import PagesLake
from benchmarks.pages_refreshes import Wire
from lagwise.links.parameters import PartitionMeasure
from lagwise.tables.store import Lake
from lagwise_dashboard.queries import capacity, group, overview, partition_history, rebalances, retention, topic
from lagwise_dashboard.queries.overview import GroupFilters

NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)


def test_every_page_finds_what_it_shows(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path / "lake"))
    made = PagesLake(lake, SMALL, NOW)
    made.write()
    since = NOW - timedelta(minutes=SMALL.day_minutes)
    counts = overview.counts(lake, None, "")
    assert counts.total == SMALL.groups + 1, "one with many partitions"
    assert counts.by_status["ok"] < SMALL.groups
    shown = overview.groups(lake, GroupFilters(), quiet=None)
    assert all(row["trend"] for row in shown)
    assert 390 <= group.history(lake, CLUSTER, GROUP, since, NOW).num_rows <= 400, "480 ticks, in at most 400 buckets"
    assert len(group.partitions(lake, CLUSTER, GROUP)) == SMALL.partitions
    assert len(group.partitions(lake, CLUSTER, WIDE_GROUP)) == SMALL.wide
    assert len(group.members(lake, CLUSTER, GROUP, NOW)) == 4
    assert "24 h" not in group.growth(lake, CLUSTER, GROUP, NOW)
    cells = partition_history.cells(lake, CLUSTER, GROUP, since, NOW, PartitionMeasure.LAG)
    assert cells.num_rows == SMALL.partitions * SMALL.day_minutes // 5
    assert len(topic.partitions(lake, CLUSTER, TOPIC, NOW, None)) == SMALL.partitions
    assert topic.written(lake, CLUSTER, TOPIC, NOW - timedelta(minutes=15), NOW).num_rows > 10
    assert retention.losses(lake, None, "", None)
    assert rebalances.periods(lake, CLUSTER, GROUP, since, NOW)
    made.write_capacity()
    assert capacity.headroom(lake, undecided=False)
    assert capacity.undecided_reasons(lake, None, "")

    made.tick(NOW + timedelta(seconds=15))
    after = overview.groups(lake, GroupFilters(), quiet=None)
    assert {row["as_of"] for row in after} == {NOW + timedelta(seconds=15)}


def test_an_answer_is_what_came_between_two_requests() -> None:
    wire = Wire()
    wire._received(99)  # before anything was asked
    wire._sent()
    wire._received(10)
    wire._received(20)
    wire._sent()
    wire.finish()
    assert [size for _, size in wire.answers] == [30], "a request that nothing answered is none"
