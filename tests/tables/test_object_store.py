"""The lake in an object store: the same tables, by the settings alone, with the credentials from the settings."""

import json
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
import yaml
from deltalake.fs import DeltaStorageHandler
from pyarrow.fs import FileType, S3FileSystem

from lagwise.platform.errors import LakeError
from lagwise.tables import ALL_TABLES
from lagwise.tables.analysis import GROUP_STATUS
from lagwise.tables.duckdb_connection import connected
from lagwise.tables.raw import GROUPS
from lagwise.tables.repair import inspect, repair
from lagwise.tables.storage import Storage
from lagwise.tables.store import Lake
from lagwise.tables.tolerant import TolerantLake
from lagwise_dashboard.queries import base
from lagwise_spark.tasks.lake_files import KeyRange, LakeFiles
from tests.app.judged import append, row
from tests.fixtures.object_store import Bucket
from tests.tables.test_store import AT, groups

pytestmark = pytest.mark.thorough

LATER = AT + timedelta(hours=1)


@pytest.fixture
def lake(bucket: Bucket) -> Lake:
    made = Lake(f"{bucket.uri}/lake", bucket.options)
    made.create(*ALL_TABLES)
    made.append(GROUPS, groups("a", "b"))
    made.append(GROUPS, groups("c", at=LATER))
    return made


def test_what_is_written_is_read(lake: Lake) -> None:
    assert sorted(lake.read(GROUPS)["group"].to_pylist()) == ["a", "b", "c"]
    values = lake.query('select "group", sampled_at from groups order by all', over=[GROUPS])
    assert values.to_pylist() == [
        {"group": "a", "sampled_at": AT},
        {"group": "b", "sampled_at": AT},
        {"group": "c", "sampled_at": LATER},
    ]
    assert lake.query("select count(*) as n from group_status", over=[GROUP_STATUS]).to_pylist() == [{"n": 0}]


def test_the_name_that_hadoop_has_for_the_store_works(bucket: Bucket, lake: Lake) -> None:
    same = Lake(lake.uri.replace("s3://", "s3a://"), bucket.options)
    same.append(GROUPS, groups("d"))
    for one in (lake, same):
        files = LakeFiles(one.uri, one.storage_options, {GROUPS.name: one.files(GROUPS)})
        assert sorted(files.rows(GROUPS, ["group"], KeyRange())["group"].to_pylist()) == ["a", "b", "c", "d"]
        assert sorted(one.read(GROUPS)["group"].to_pylist()) == ["a", "b", "c", "d"]


def test_files_of_other_times_are_not_fetched(lake: Lake) -> None:
    lake.append(GROUPS, groups("d", at=AT + timedelta(days=2)))
    with connected() as connection:
        lake.scan(connection, GROUPS, since=LATER)
        assert sorted(connection.sql('select "group" from groups').fetchall()) == [("c",), ("d",)]
        lake.scan(connection, GROUPS, days=("2026-03-01", "2026-03-02"))
        assert connection.sql("select count(*) from groups").fetchall() == [(3,)]
    # A later question on a connection that is kept sees what was written meanwhile.
    asked = {GROUPS: None}
    assert base.rows(lake, asked, "select count(*) as n from groups") == [{"n": 4}]
    lake.append(GROUPS, groups("e"))
    assert base.rows(lake, asked, "select count(*) as n from groups") == [{"n": 5}]


@pytest.mark.process
def test_commands_by_the_settings_alone(bucket: Bucket, lake: Lake, tmp_path: Path) -> None:
    """Each ends as it should, several times: what reads ahead in threads must not be cut off at the end."""
    values = {"cluster": "c", "group": "a", "as_of": datetime.now(UTC), "status": "ok", "sentence": "All is well."}
    append(lake, GROUP_STATUS, row(GROUP_STATUS, **values))
    secret = "AWS_SECRET_ACCESS_KEY"
    options = bucket.options | {secret: "${env:STORE_SECRET}"}
    settings = tmp_path / "lagwise.yaml"
    clusters = [{"name": "c", "bootstrap": "127.0.0.1:9"}]
    lake_settings = {"data": bucket.uri, "state_dir": str(tmp_path), "lake": {"storage_options": options}}
    settings.write_text(yaml.safe_dump(lake_settings | {"clusters": clusters}), encoding="utf-8")
    environment = os.environ | {"STORE_SECRET": bucket.options[secret]}

    def run(*words: str) -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, "-m", "lagwise", "--config", str(settings), *words]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60)

    for _ in range(5):
        found = run("status", "--json")
        assert (found.returncode, found.stderr) == (0, "")
        assert [(g["group"], g["status"]) for g in json.loads(found.stdout)["groups"]] == [("a", "ok")]
    looked = {line["check"]: line for line in json.loads(run("doctor", "--json", "--no-spark").stdout)["checks"]}
    assert looked["lake"]["result"] == "ok", looked["lake"]


def test_a_store_that_is_gone_is_one_clear_line(bucket: Bucket, lake: Lake) -> None:
    bucket.server.kill()
    for ask in (
        lambda: lake.read(GROUPS),
        lambda: lake.append(GROUPS, groups("d")),
        lambda: lake.query("select * from groups", over=[GROUPS]),
    ):
        with pytest.raises(LakeError, match=r"the table s3://lake/lagwise/lake/raw/groups: .*127\.0\.0\.1") as found:
            ask()
        assert "of-lakes" not in str(found.value)
        assert "\n" not in str(found.value)


def test_a_damaged_file_is_quarantined_as_on_a_disk(bucket: Bucket, lake: Lake) -> None:
    lake.append(GROUPS, groups("d", at=LATER + timedelta(hours=1)))
    handler = DeltaStorageHandler(lake.uri, lake.storage_options)
    # In order of the rows: one file was written after the other.
    delta = lake.open(GROUPS)
    assert delta is not None
    written = sorted(pa.table(delta.get_add_actions(flatten=True)).to_pylist(), key=lambda f: f["min.sampled_at"])
    files = dict(zip(("ab", "c", "d"), (f["path"] for f in written), strict=True))
    handler.delete_file(f"{GROUPS.path}/{files['c']}")
    endpoint = bucket.options["AWS_ENDPOINT_URL"].removeprefix("http://")
    keys = {"access_key": "reader", "secret_key": bucket.options["AWS_SECRET_ACCESS_KEY"], "region": "us-east-1"}
    store = S3FileSystem(endpoint_override=endpoint, scheme="http", **keys)
    with store.open_output_stream(f"{lake.uri.removeprefix('s3://')}/{GROUPS.path}/{files['d']}") as file:
        file.write(b"something else")
    readers = TolerantLake(lake.uri, lake.storage_options)
    assert readers.query('select "group" from groups order by all', over=[GROUPS]).to_pylist() == [
        {"group": "a"},
        {"group": "b"},
    ]
    assert {one.file for one in readers.left_out} == {files["c"], files["d"]}
    found = inspect(lake, tables=[GROUPS])
    assert {one.file: str(one.fault) for one in found.damaged} == {files["c"]: "missing", files["d"]: "truncated"}
    repair(lake, found, LATER)
    assert sorted(lake.read(GROUPS)["group"].to_pylist()) == ["a", "b"]
    assert inspect(lake, thorough=True, tables=[GROUPS]).damaged == []
    kept = handler.get_file_info([f"quarantine/{LATER:%Y-%m-%d}/{GROUPS.path}/{files['d']}"])
    assert [info.type for info in kept] == [FileType.File]
    assert readers.left_out == []


def test_a_store_that_does_not_answer_damages_nothing(bucket: Bucket, lake: Lake) -> None:
    file = lake.relative_files(GROUPS)[0]
    bucket.server.kill()
    with pytest.raises(LakeError, match=r"127\.0\.0\.1"):
        Storage(lake).read(f"{GROUPS.path}/{file}")
    found = inspect(lake, thorough=True, tables=[GROUPS])
    assert found.damaged == []
    assert len(found.unchecked) == 1
