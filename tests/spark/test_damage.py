"""Rounds of the analysis over a lake with damaged files: each costs its own rows, and the round goes on."""

from collections.abc import Callable
from datetime import UTC, datetime
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lagwise.config import Config
from lagwise.platform.errors import LakeError
from lagwise.tables import ALL_TABLES
from lagwise.tables.analysis import GROUP_STATUS
from lagwise.tables.quarantine import DAMAGED_FILES
from lagwise.tables.raw import COMMITS, SAMPLES, WATERMARKS
from lagwise.tables.repair import inspect, repairing
from lagwise.tables.rounds import TICKS
from lagwise.tables.schema import Table
from lagwise.tables.store import Lake
from tests.spark.recorder import Recorder
from tests.tables.test_repair import cut, entry, rot

if TYPE_CHECKING:
    from pyspark import SparkContext

pytestmark = pytest.mark.spark

START = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)


@pytest.fixture
def config(lake: Lake) -> Config:
    return Config(data=str(Path(lake.uri).parent))


def sampled(recorder: Recorder, samples: int) -> None:
    """So many samples, in two files of each table."""
    for number in range(samples):
        if number == samples // 2:
            recorder.write()
        end = recorder.elapsed * 100
        commits: dict[Any, tuple[int | None, str | None]] = {
            ("healthy", "orders", 0): (max(0, end - 20), "member-1"),
            ("gone", "orders", 0): (min(end, 10_000), None),
        }
        recorder.sample({"orders": {0: end}}, commits)
    recorder.write()


def round_(spark: "SparkContext", lake: Lake, config: Config) -> Any:
    from lagwise_spark.jobs.tick import tick

    return repairing(lake, lambda: tick(spark, lake, config))


def checkpoint_of(lake: Lake, table: Table) -> Path:
    """A new checkpoint of a table's log."""
    delta = lake.open(table)
    assert delta is not None
    delta.create_checkpoint()
    return next(Path(lake.location(table), "_delta_log").glob("*.checkpoint.parquet"))


def listed(lake: Lake) -> set[tuple[str, str]]:
    """Table and file of each row of the table of damaged files."""
    return {(r["table"], r["file"]) for r in lake.read(DAMAGED_FILES).to_pylist()}


def by_age(lake: Lake, table: Table) -> list[Path]:
    """The data files of a table, the oldest first."""
    return sorted(map(Path, lake.files(table)), key=lambda file: file.stat().st_mtime_ns)


def damaged(lake: Lake, table: Table, file: Path, damage: Callable[[Path], Any]) -> tuple[str, str]:
    """Damage a file; its table and its path in there."""
    damage(file)
    return table.path, str(file.relative_to(lake.location(table)))


def test_a_round_goes_on_over_damaged_files(spark: "SparkContext", lake: Lake, config: Config) -> None:
    """Each kind of damage, a file in every table that has any."""
    recorder = Recorder(lake, START, gathers=True)
    sampled(recorder, 20)
    round_(spark, lake, config)
    before = max(lake.read(GROUP_STATUS)["as_of"].to_pylist())
    sampled(recorder, 20)
    commits = lake.read(COMMITS).num_rows
    expected = {
        # The first page of one of the new files.
        damaged(lake, WATERMARKS, by_age(lake, WATERMARKS)[-1], rot),
    }
    damages: cycle[Callable[[Path], Any]] = cycle([Path.unlink, cut])
    for table in ALL_TABLES:
        if table not in (COMMITS, TICKS) and (files := by_age(lake, table)):
            expected.add(damaged(lake, table, files[0], next(damages)))
    expected.add(damaged(lake, SAMPLES, checkpoint_of(lake, SAMPLES), cut))
    for table in (COMMITS, TICKS):
        version = lake.version(table)
        assert version is not None
        expected.add(damaged(lake, table, entry(lake, table, version), cut))
    assert len(expected) > 15
    with pytest.raises(LakeError, match=SAMPLES.path):
        Lake(lake.uri).read(SAMPLES)

    cold = Lake(lake.uri)
    assert round_(spark, cold, config).new_samples == 20
    assert listed(cold) == expected
    assert cold.read(COMMITS).num_rows == commits, "the file that the entry named is recovered"
    judged = {row["group"]: row["as_of"] for row in cold.read(GROUP_STATUS).to_pylist()}
    assert judged.keys() == {"healthy", "gone"}
    assert min(judged.values()) > before
    assert inspect(cold, thorough=True).damaged == []
