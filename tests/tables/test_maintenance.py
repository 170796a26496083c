"""Compaction and retention keep every row that is to be kept."""

from datetime import UTC, datetime, timedelta

import pyarrow as pa

from lagwise.config import Retention
from lagwise.tables.analysis import GROUP_HISTORY
from lagwise.tables.maintenance import COMPACT_FROM_FILES, days_kept, maintain
from lagwise.tables.raw import GROUPS, SAMPLES, TOPICS
from lagwise.tables.store import Lake
from tests.tables.test_store import groups

NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)


def test_small_files_are_merged_and_no_row_is_lost(lake: Lake) -> None:
    for i in range(COMPACT_FROM_FILES):
        lake.append(GROUPS, groups(f"g{i}", at=NOW))
    done = maintain(lake, Retention(), now=NOW)
    assert done.compacted_files == COMPACT_FROM_FILES
    assert len(lake.files(GROUPS)) == 1
    assert {row["group"] for row in lake.read(GROUPS).to_pylist()} == {f"g{i}" for i in range(COMPACT_FROM_FILES)}


def test_old_days_go_and_young_ones_stay(lake: Lake) -> None:
    for age in range(5):
        lake.append(GROUPS, groups(f"{age} days old", at=NOW - timedelta(days=age)))
    done = maintain(lake, Retention(raw_days=2), now=NOW)
    assert done.deleted_days == 2
    assert {row["group"] for row in lake.read(GROUPS).to_pylist()} == {"0 days old", "1 days old", "2 days old"}


def test_topics_are_kept_whatever_their_age(lake: Lake) -> None:
    schema = pa.schema([f for f in TOPICS.arrow if f.name != "day"])
    row = {"sample_id": "s", "cluster": "c", "sampled_at": NOW - timedelta(days=400), "topic": "t"}
    lake.append(TOPICS, pa.Table.from_pylist([{n: row.get(n) for n in schema.names}], schema=schema))
    maintain(lake, Retention(), now=NOW)
    assert lake.read(TOPICS).num_rows == 1


def test_each_table_has_its_time() -> None:
    retention = Retention(raw_days=1, minutes_days=2, history_days=3)
    assert days_kept(GROUPS, retention) == 1
    assert days_kept(GROUP_HISTORY, retention) == 2
    assert days_kept(SAMPLES, retention) == 3


def test_doing_it_again_does_nothing(lake: Lake) -> None:
    lake.append(GROUPS, groups("a", at=NOW))
    maintain(lake, Retention(), now=NOW)
    again = maintain(lake, Retention(), now=NOW)
    assert (again.compacted_files, again.deleted_days) == (0, 0)
