"""Compaction and retention keep every row that is to be kept."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from lagwise.config import RetentionSettings
from lagwise.platform.errors import LakeError
from lagwise.tables.analysis import GROUP_HISTORY, PARTITION_STATUS
from lagwise.tables.capacity import FORECASTS, TOPIC_HOURS
from lagwise.tables.maintenance import COMPACT_FROM_FILES, FORECASTS_DAYS, days_kept, maintain
from lagwise.tables.quarantine import DAMAGED_FILES, QUARANTINE
from lagwise.tables.raw import GROUPS, SAMPLES, TOPICS
from lagwise.tables.repair import inspect, repair, repairing
from lagwise.tables.store import Lake
from tests.tables.test_store import groups

NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)


def test_small_files_are_merged_and_no_row_is_lost(lake: Lake) -> None:
    for i in range(COMPACT_FROM_FILES):
        lake.append(GROUPS, groups(f"g{i}", at=NOW))
    done = maintain(lake, RetentionSettings(), now=NOW)
    assert done.compacted_files == COMPACT_FROM_FILES
    assert len(lake.files(GROUPS)) == 1
    assert {row["group"] for row in lake.read(GROUPS).to_pylist()} == {f"g{i}" for i in range(COMPACT_FROM_FILES)}


def test_what_a_killed_process_had_begun_to_write_is_removed_after_a_while(lake: Lake) -> None:
    lake.append(GROUPS, groups("g", at=NOW))
    lake.create(PARTITION_STATUS)
    day = Path(lake.location(GROUPS), f"day={NOW:%Y-%m-%d}")
    partial = [folder / f".part-{name}.lz4.parquet" for folder in (day, Path(lake.location(PARTITION_STATUS)))
               for name in ("old", "new")]  # fmt: skip
    for file in partial:
        file.write_bytes(b"PAR1")
        if "old" in file.name:
            os.utime(file, (0, 0))
    assert maintain(lake, RetentionSettings(), now=NOW).removed_files == 2
    assert [file for file in partial if file.exists()] == [file for file in partial if "new" in file.name]
    assert len(lake.read(GROUPS)) == 1


def test_old_days_go_and_young_ones_stay(lake: Lake) -> None:
    for age in range(5):
        lake.append(GROUPS, groups(f"{age} days old", at=NOW - timedelta(days=age)))
    done = maintain(lake, RetentionSettings(raw_days=2), now=NOW)
    assert done.deleted_days == 2
    assert {row["group"] for row in lake.read(GROUPS).to_pylist()} == {"0 days old", "1 days old", "2 days old"}


def test_topics_are_kept_whatever_their_age(lake: Lake) -> None:
    row = {"sample_id": "s", "cluster": "c", "sampled_at": NOW - timedelta(days=400), "topic": "t"}
    lake.append(TOPICS, TOPICS.from_rows([row]))
    maintain(lake, RetentionSettings(), now=NOW)
    assert lake.read(TOPICS).num_rows == 1


def test_each_table_has_its_time() -> None:
    retention = RetentionSettings(raw_days=1, minute_stats_days=2, history_days=3)
    assert days_kept(GROUPS, retention) == 1
    assert days_kept(GROUP_HISTORY, retention) == 2
    assert days_kept(SAMPLES, retention) == 3
    assert days_kept(TOPIC_HOURS, retention) == 400
    assert days_kept(FORECASTS, retention) == FORECASTS_DAYS


def test_past_days_of_what_is_kept_for_long_become_a_file_each(lake: Lake) -> None:
    empty = {"partitions": 1, "minutes": 0, "records": 0, "seconds": 0.0, "max_rate_per_second": 0.0}
    hours = [NOW - timedelta(hours=hour) for hour in range(72)]
    for hour in hours:
        row = empty | {"cluster": "c", "topic": "t", "hour": hour, "max_at": hour}
        row |= {"minute_rates_per_second": [None] * 60, "partition_records": []}
        lake.append(TOPIC_HOURS, TOPIC_HOURS.from_rows([row]))
    maintain(lake, RetentionSettings(), now=NOW)
    by_day = [len(lake.files(TOPIC_HOURS, days=(day, day))) for day in ("2026-03-07", "2026-03-08", "2026-03-09")]
    assert by_day == [1, 1, 24], "late samples may still come for yesterday's hours"
    assert sorted(row["hour"] for row in lake.read(TOPIC_HOURS).to_pylist()) == sorted(hours)


def test_doing_it_again_does_nothing(lake: Lake) -> None:
    lake.append(GROUPS, groups("a", at=NOW))
    maintain(lake, RetentionSettings(), now=NOW)
    again = maintain(lake, RetentionSettings(), now=NOW)
    assert (again.compacted_files, again.deleted_days) == (0, 0)


def test_a_single_bit_in_what_was_merged_is_noticed(lake: Lake) -> None:
    """Of what delta-rs appends it would be another number; what is kept for longer has checksums."""
    for i in range(COMPACT_FROM_FILES):
        lake.append(GROUPS, groups(*(f"g{i}-{k}" for k in range(50)), at=NOW + timedelta(seconds=i)))
    maintain(lake, RetentionSettings(), now=NOW)
    [merged] = lake.files(GROUPS)
    content = bytearray(Path(merged).read_bytes())
    chunk = pq.read_metadata(merged).row_group(0).column(3)
    end = (chunk.dictionary_page_offset or chunk.data_page_offset) + chunk.total_compressed_size
    behind_the_header = chunk.data_page_offset + 100
    assert end - behind_the_header > 1000
    for place in range(behind_the_header, end, 97):
        content[place] ^= 1
        Path(merged).write_bytes(content)
        with pytest.raises(LakeError, match=f"{Path(merged).name}: .*CRC"):
            lake.read(GROUPS)
        content[place] ^= 1
    Path(merged).write_bytes(content)
    assert lake.read(GROUPS).num_rows == 50 * COMPACT_FROM_FILES


def test_readers_know_what_times_a_merged_file_holds(lake: Lake) -> None:
    for i in range(COMPACT_FROM_FILES):
        lake.append(GROUPS, groups(f"g{i}", at=NOW + timedelta(seconds=i)))
    maintain(lake, RetentionSettings(), now=NOW)
    last = NOW + timedelta(seconds=COMPACT_FROM_FILES - 1)
    assert len(lake.files(GROUPS, since=last)) == 1
    assert lake.files(GROUPS, since=last + timedelta(seconds=1)) == []
    assert len(lake.files(GROUPS, until=NOW + timedelta(seconds=1))) == 1
    assert lake.files(GROUPS, until=NOW) == []


def test_a_damaged_file_is_not_merged(lake: Lake) -> None:
    """Neither is it lost: it is named, so that it can be quarantined, and then the others are merged."""
    for i in range(COMPACT_FROM_FILES):
        lake.append(GROUPS, groups(f"g{i}", at=NOW + timedelta(seconds=i)))
    damaged = Path(lake.files(GROUPS)[7])
    content = bytearray(damaged.read_bytes())
    content[4:30] = bytes(26)
    damaged.write_bytes(content)
    with pytest.raises(LakeError, match=damaged.name):
        maintain(lake, RetentionSettings(), now=NOW)
    assert len(lake.files(GROUPS)) == COMPACT_FROM_FILES
    lake.append(GROUPS, groups("another", at=NOW))
    done = repairing(lake, lambda: maintain(lake, RetentionSettings(), now=NOW))
    assert done.compacted_files == COMPACT_FROM_FILES
    assert lake.read(GROUPS).num_rows == COMPACT_FROM_FILES
    assert [r["file"] for r in lake.read(DAMAGED_FILES).to_pylist()] == [f"day={NOW:%Y-%m-%d}/{damaged.name}"]


def test_files_stay_in_quarantine_as_long_as_the_table_speaks_of_them(lake: Lake) -> None:
    for age in (0, 5):
        lake.append(GROUPS, groups("a", at=NOW))
        Path(lake.files(GROUPS)[0]).write_bytes(b"no parquet")
        repair(lake, inspect(lake), NOW - timedelta(days=age))
    quarantine = Path(lake.uri, QUARANTINE)
    assert len(list(quarantine.rglob("*.parquet"))) == 2
    maintain(lake, RetentionSettings(history_days=3), now=NOW)
    assert [day.name for day in quarantine.iterdir()] == [f"{NOW:%Y-%m-%d}"]
    assert len(lake.read(DAMAGED_FILES)) == 1
