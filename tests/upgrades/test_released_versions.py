"""What earlier versions wrote is migrated, and judged as they judged it."""

import json
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyarrow.fs import S3FileSystem, copy_files

from lagwise.config import Config
from lagwise.operational.engine import open_engine
from lagwise.operational.migrate import NEWEST as NEWEST_DATABASE
from lagwise.operational.migrate import database_version
from lagwise.tables import ALL_TABLES
from lagwise.tables.analysis import GROUP_STATUS, PARTITION_STATUS
from lagwise.tables.lake_version import lake_version
from lagwise.tables.migrate import plan_of
from lagwise.tables.migrations_table import MIGRATIONS
from lagwise.tables.schema import Table
from lagwise.tables.store import Lake
from lagwise_alerts.operate import queries
from lagwise_app.upgrade import upgrade
from lagwise_spark.tasks.lake_files import KeyRange, LakeFiles
from tests.fixtures.object_store import Bucket
from tests.spark.recorder import Recorder
from tests.upgrades.make import COMMITS, END

if TYPE_CHECKING:
    from pyspark import SparkContext

_PACKED = sorted(Path(__file__).parent.glob("*.tar.xz"))
_KEY = ("cluster", "group", "topic", "partition")
#: What may differ in a verdict: words get better from version to version.
_WORDS = {"sentence", "detail", "evidence"}


@pytest.fixture(params=_PACKED, ids=lambda packed: packed.name.removesuffix(".tar.xz"))
def packed(request: pytest.FixtureRequest) -> Path:
    found: Path = request.param
    return found


@pytest.fixture
def config(packed: Path, tmp_path: Path) -> Config:
    with tarfile.open(packed) as tar:
        tar.extractall(tmp_path, filter="data")
    return Config.model_validate({"data": str(tmp_path)})


def _rows(lake: Lake, table: Table) -> dict[Any, dict[str, Any]]:
    return _by_key(json.loads(json.dumps(lake.read(table).to_pylist(), default=str)))


def _by_key(rows: list[dict[str, Any]]) -> dict[Any, dict[str, Any]]:
    return {tuple(row.get(name) for name in _KEY): row for row in rows}


def _sorted(rows: pa.Table) -> list[str]:
    return sorted(json.dumps(row, default=str, sort_keys=True) for row in rows.to_pylist())


def _differences(recorded: dict[str, Any], found: dict[str, Any], *, but: set[str]) -> dict[str, Any]:
    """Columns of the earlier version that have another value now."""
    return {
        name: (value, found[name]) for name, value in recorded.items() if name not in but and value != found.get(name)
    }


def _upgraded(config: Config) -> Lake:
    upgrade(config, lambda _line: None)
    return Lake(config.lake_uri)


def test_every_released_version_is_here() -> None:
    assert [packed.name for packed in _PACKED] == ["0.1.tar.xz", "before-0.1.tar.xz"]


def test_all_tables_can_be_read_and_verdicts_are_what_they_were(config: Config) -> None:
    recorded = json.loads(Path(config.data, "recorded.json").read_text(encoding="utf-8"))
    lake = _upgraded(config)
    assert plan_of(lake).is_up_to_date
    for table in ALL_TABLES:
        lake.read(table)
    for table in (GROUP_STATUS, PARTITION_STATUS):
        before, found = _by_key(recorded[table.name]), _rows(lake, table)
        assert len(before) == 3
        assert found.keys() == before.keys()
        for key, row in before.items():
            assert _differences(row, found[key], but=set()) == {}, (table.name, key)


def test_alerts_are_kept(config: Config) -> None:
    _upgraded(config)
    engine = open_engine(config.database_url)
    assert database_version(engine) == NEWEST_DATABASE
    assert queries.counts(engine).pending + queries.counts(engine).firing > 0
    engine.dispose()


def test_migrating_again_does_nothing(config: Config) -> None:
    lake = _upgraded(config)
    versions = lake_version(lake), {table.name: lake.version(table) for table in ALL_TABLES}
    said: list[str] = []
    upgrade(config, said.append)
    assert said == []
    assert (lake_version(lake), {table.name: Lake(lake.uri).version(table) for table in ALL_TABLES}) == versions


def test_tasks_read_files_of_the_version_before_as_others_do(config: Config) -> None:
    """The tasks of Spark read the files themselves; an upgrade adds columns to a table and rewrites none of them."""
    lake = _upgraded(config)
    for table in ALL_TABLES:
        names = table.without_day.names
        files = LakeFiles(lake.uri, lake.storage_options, {table.name: lake.files(table)})
        found = files.rows(table, names, KeyRange()).select(names)
        assert _sorted(found) == _sorted(lake.read(table).select(names)), table.name


@pytest.mark.thorough
def test_a_lake_in_an_object_store_is_migrated_as_on_a_disk(
    config: Config, bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = dict(bucket.options)
    monkeypatch.setenv("LAKE_SECRET", options["AWS_SECRET_ACCESS_KEY"])
    options["AWS_SECRET_ACCESS_KEY"] = "${env:LAKE_SECRET}"
    endpoint = options["AWS_ENDPOINT_URL"].removeprefix("http://")
    keys = {"access_key": "reader", "secret_key": bucket.options["AWS_SECRET_ACCESS_KEY"], "region": "us-east-1"}
    store = S3FileSystem(endpoint_override=endpoint, scheme="http", **keys)
    copy_files(config.lake_uri, f"{bucket.uri.removeprefix('s3://')}/lake", destination_filesystem=store)
    remote = Config.model_validate(
        {"data": bucket.uri, "state_dir": str(tmp_path / "state"), "lake": {"storage_options": options}}
    )
    upgrade(remote, lambda _line: None)
    lake, expected = Lake(remote.lake_uri, remote.lake.resolved_storage_options()), _upgraded(config)
    assert (plan_of(lake).is_up_to_date, lake_version(lake)) == (True, lake_version(expected))
    for table in ALL_TABLES:
        if table is not MIGRATIONS:  # has the time of each step
            assert _sorted(lake.read(table)) == _sorted(expected.read(table)), table.name


@pytest.mark.spark
def test_the_next_rounds_judge_on_with_the_history_of_the_version_before(spark: "SparkContext", config: Config) -> None:
    from lagwise_spark.jobs.tick import tick

    lake = _upgraded(config)
    before = _rows(lake, GROUP_STATUS)
    recorder = Recorder(lake, END, gathers=True)
    for i in range(4):
        recorder.sample({"orders": {0: 100 * i + 36_100}}, {pair: at(i + 360) for pair, at in COMMITS.items()})
    recorder.write()
    tick(spark, lake, config)
    found = _rows(lake, GROUP_STATUS)
    assert {key: row["status"] for key, row in found.items()} == {key: row["status"] for key, row in before.items()}
    # Each has held since before the upgrade: what was known of it is used.
    assert {key: row["since"] for key, row in found.items()} == {key: row["since"] for key, row in before.items()}
    assert all(row["as_of"] > before[key]["as_of"] for key, row in found.items())
