"""Offsets out of files, Spark's logs and a real SQLite: what is there, half there, and something else."""

import json
import os
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from lagwise.config.external_offsets import OffsetFiles, SparkCheckpoints, SqlOffsets
from lagwise_collectors.external_offsets.json_csv_files import read_offset_files
from lagwise_collectors.external_offsets.model import OffsetSourceTrouble, SourceResult, offset_of, time_of
from lagwise_collectors.external_offsets.spark_checkpoint import kafka_offsets, read_spark_checkpoints
from lagwise_collectors.external_offsets.sql_database import read_sql

AT = datetime(2026, 11, 21, 3, 0, tzinfo=UTC)

Offsets = dict[tuple[str, int], int | None]


def offsets(found: SourceResult, group: str) -> Offsets:
    assert found.groups[group].error is None, found.errors.as_rows()
    return {(offset.topic, offset.partition): offset.committed for offset in found.groups[group].offsets}


def kinds(found: SourceResult) -> dict[str, str | None]:
    return {name: group.error for name, group in found.groups.items()}


# --- one record ---


@pytest.mark.parametrize("value", ["12", 12, 12.0, Decimal(12)])
def test_numbers_are_taken_as_they_come(value: Any) -> None:
    assert offset_of({"topic": "orders", "partition": value, "offset": value}).committed == 12


@pytest.mark.parametrize("value", [None, "", -1, "-1", "-2"])
def test_no_offset_is_none_and_not_zero(value: Any) -> None:
    assert offset_of({"topic": "orders", "partition": 0, "offset": value}).committed is None


@pytest.mark.parametrize(
    "record",
    [
        {"topic": "../etc", "partition": 0, "offset": 1},
        {"topic": "", "partition": 0, "offset": 1},
        {"topic": "x" * 250, "partition": 0, "offset": 1},
        {"topic": 3, "partition": 0, "offset": 1},
        {"topic": "orders", "offset": 1},
        {"topic": "orders", "partition": -1, "offset": 1},
        {"topic": "orders", "partition": True, "offset": 1},
        {"topic": "orders", "partition": 2**31, "offset": 1},
        {"topic": "orders", "partition": 0, "offset": 2**63},
        {"topic": "orders", "partition": 0, "offset": 1.5},
        {"topic": "orders", "partition": 0, "offset": "NaN"},
        {"topic": "orders", "partition": 0, "offset": float("nan")},
        {"topic": "orders", "partition": 0, "offset": [1]},
    ],
)
def test_what_no_topic_partition_or_offset_can_be_is_refused(record: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"the (topic|partition|offset)"):
        offset_of(record)


@pytest.mark.parametrize(
    "value",
    [
        "2026-11-21T03:00:00Z",
        "2026-11-21 03:00:00",
        "2026-11-21T04:00:00+01:00",
        AT,
        AT.replace(tzinfo=None),
        AT.timestamp(),
        AT.timestamp() * 1000,
        str(int(AT.timestamp())),
    ],
)
def test_times_in_every_usual_form(value: Any) -> None:
    assert time_of(value) == AT


@pytest.mark.parametrize("value", [None, "", "yesterday", 1e30, float("nan"), True, [1]])
def test_an_invalid_time_is_left_out(value: Any) -> None:
    assert time_of(value) is None


# --- files ---


def files(path: Path | str, **settings: Any) -> SourceResult:
    return read_offset_files(OffsetFiles(name="files", path=str(path), **settings))


RECORDS = [
    {"group": "billing", "topic": "orders", "partition": 0, "offset": 12, "updated_at": "2026-11-21T03:00:00Z"},
    {"group": "billing", "topic": "orders", "partition": 1, "offset": None},
    {"group": "mail", "topic": "orders", "partition": 0, "offset": 3},
]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("offsets.json", json.dumps(RECORDS)),
        ("offsets.jsonl", "\n".join(json.dumps(one) for one in RECORDS) + "\n"),
        (
            "offsets.csv",
            "group,topic,partition,offset,updated_at\nbilling,orders,0,12,2026-11-21T03:00:00Z\nbilling,orders,1,,\n"
            "mail,orders,0,3,\n",
        ),
        (
            "with-a-mark.csv",
            "\ufeffgroup, topic, partition, offset\nbilling, orders, 0, 12\nbilling,orders,1,-1\nmail,orders,0,3",
        ),
    ],
)
def test_records_in_each_form(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    found = files(tmp_path / name)
    assert offsets(found, "billing") == {("orders", 0): 12, ("orders", 1): None}
    assert offsets(found, "mail") == {("orders", 0): 3}
    assert not found.errors


def test_a_file_that_names_no_group_is_one_of_its_own_name(tmp_path: Path) -> None:
    (tmp_path / "billing.json").write_text('{"orders": {"0": 12, "1": 7}}')
    assert offsets(files(tmp_path / "billing.json"), "billing") == {("orders", 0): 12, ("orders", 1): 7}
    assert offsets(files(tmp_path / "billing.json", group="b"), "b") == {("orders", 0): 12, ("orders", 1): 7}


def test_the_parts_of_a_group_in_several_files(tmp_path: Path) -> None:
    for number in (0, 1):
        folder = tmp_path / f"host-{number}"
        folder.mkdir()
        (folder / "offsets.json").write_text(json.dumps({"orders": {str(number): 10 + number}}))
    found = files(tmp_path / "host-*" / "*.json", group="billing")
    assert offsets(found, "billing") == {("orders", 0): 10, ("orders", 1): 11}


def test_of_two_records_the_later_one_counts(tmp_path: Path) -> None:
    old, new = RECORDS[0] | {"updated_at": 1_000_000_000, "offset": 5}, RECORDS[0]
    (tmp_path / "o.json").write_text(json.dumps([new, old]))
    assert offsets(files(tmp_path / "o.json"), "billing") == {("orders", 0): 12}


@pytest.mark.parametrize(
    "text", ["", '[{"group": "billing", "top', "[1, 2]", '"hello"', '{"orders": 3}', "\x00\x01", "[" * 100_000]
)
def test_a_file_that_is_none_costs_its_own_group_and_no_other(tmp_path: Path, text: str) -> None:
    (tmp_path / "billing.json").write_text(text)
    (tmp_path / "mail.json").write_text('{"orders": {"0": 3}}')
    found = files(tmp_path / "*.json")
    assert kinds(found) == {"billing": "external_offsets_malformed", "mail": None}
    assert found.errors.counts == {"external_offsets_malformed": 1}
    assert "billing.json" in found.errors.example("external_offsets_malformed")


def test_a_record_that_is_none_makes_its_group_unreadable_and_no_other(tmp_path: Path) -> None:
    broken = {"group": "billing", "topic": "orders", "partition": "x", "offset": 3}
    (tmp_path / "o.json").write_text(
        json.dumps([RECORDS[0], broken, RECORDS[1], RECORDS[2], {"topic": "t"}, {"group": 7}])
    )
    found = files(tmp_path / "o.json")
    assert kinds(found) == {"billing": "external_offsets_malformed", "mail": None, "o": "external_offsets_malformed"}
    assert found.errors.counts == {"external_offsets_malformed": 3}


def test_csv_without_its_columns(tmp_path: Path) -> None:
    (tmp_path / "o.csv").write_text("group;topic;partition;offset\na;b;0;1\n")
    with_trouble = files(tmp_path / "o.csv")
    assert "has no column" in with_trouble.errors.example("external_offsets_malformed")


def test_a_path_that_leads_nowhere(tmp_path: Path) -> None:
    with pytest.raises(OffsetSourceTrouble, match="there is no") as missing:
        files(tmp_path / "none.json")
    assert missing.value.kind == "external_offsets_missing"
    assert files(tmp_path / "*.json").groups == {}


@contextmanager
def without_root() -> Iterator[None]:
    """Without root's right to read everything."""
    before = os.geteuid()
    if before == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(before)


def test_a_file_that_may_not_be_read() -> None:
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        path = Path(name) / "billing.json"
        path.write_text("{}")
        path.chmod(0)
        with without_root():
            assert kinds(files(path)) == {"billing": "external_offsets_refused"}


def test_a_uri_of_a_file_system_that_is_none() -> None:
    with pytest.raises(OffsetSourceTrouble) as trouble:
        files("gopher://host/offsets.json")
    assert trouble.value.kind == "external_offsets_malformed"


def test_a_file_by_its_uri(tmp_path: Path) -> None:
    (tmp_path / "billing.json").write_text('{"orders": {"0": 12}}')
    assert offsets(files((tmp_path / "*.json").as_uri().replace("%2A", "*")), "billing") == {("orders", 0): 12}


# --- Spark's logs (what Spark itself writes: test_spark_checkpoints.py) ---

BATCH = '{"batchWatermarkMs":0,"batchTimestampMs":1795344598911,"conf":{}}'


def checkpoint(folder: Path, planned: dict[int, str], completed: tuple[int, ...]) -> Path:
    for log in ("offsets", "commits"):
        (folder / log).mkdir(parents=True)
    for batch, lines in planned.items():
        (folder / "offsets" / str(batch)).write_text(f"v1\n{BATCH}\n{lines}")
    for batch in completed:
        (folder / "commits" / str(batch)).write_text('v1\n{"nextBatchWatermarkMs":0}')
    return folder


def spark(path: Path, **settings: Any) -> SourceResult:
    return read_spark_checkpoints(SparkCheckpoints(name="spark", path=str(path), **settings))


def test_the_last_completed_batch_counts_and_not_the_one_under_way(tmp_path: Path) -> None:
    folder = checkpoint(
        tmp_path / "q", {9: '{"orders":{"0":5}}', 10: '{"orders":{"0":9}}', 11: '{"orders":{"0":20}}'}, (9, 10)
    )
    found = spark(folder)
    assert offsets(found, "q") == {("orders", 0): 9}
    assert (found.groups["q"].type, found.groups["q"].state) == ("spark", "Recorded")
    assert found.groups["q"].offsets[0].updated_at is not None
    assert offsets(spark(folder, group="billing"), "billing") == {("orders", 0): 9}


def test_before_the_first_batch_is_completed_nothing_is_committed(tmp_path: Path) -> None:
    assert offsets(spark(checkpoint(tmp_path / "q", {0: '{"orders":{"0":5}}'}, ())), "q") == {("orders", 0): None}


def test_temporary_files_and_checksums_are_no_batches(tmp_path: Path) -> None:
    folder = checkpoint(tmp_path / "q", {3: '{"orders":{"0":5}}'}, (3,))
    for name in (".4.crc", ".4.5a.tmp", "4.tmp", "_4", "4.compact"):
        (folder / "commits" / name).write_text("v1\n{}")
    (folder / "commits" / "5").touch()  # begun, and not written
    assert offsets(spark(folder), "q") == {("orders", 0): 5}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "truncated|not a known version"),
        ("v1\n", "truncated"),
        (f"v1\n{BATCH}", "truncated"),
        (f'v1\n{BATCH}\n{{"orders":{{"0":', "truncated"),
        (f'v3\n{BATCH}\n{{"orders":{{"0":5}}}}', "not a known version"),
        (f'v1\n{BATCH}\n{{"or/ders":{{"0":5}}}}', "the topic"),
    ],
)
def test_a_log_that_was_cut_off_or_is_of_another_version(tmp_path: Path, text: str, why: str) -> None:
    folder = checkpoint(tmp_path / "a" / "q", {3: '{"orders":{"0":5}}'}, (3, 4))
    (folder / "offsets" / "4").write_text(text or "\n")
    checkpoint(tmp_path / "a" / "well", {0: '{"orders":{"0":1}}'}, (0,))
    found = spark(tmp_path / "a" / "*")
    assert kinds(found) == {"q": "external_offsets_malformed", "well": None}
    assert any(part in found.errors.example("external_offsets_malformed") for part in why.split("|"))


def test_a_batch_whose_offsets_are_gone_and_a_folder_that_is_no_checkpoint(tmp_path: Path) -> None:
    checkpoint(tmp_path / "q", {3: '{"orders":{"0":5}}'}, (3, 4))
    (tmp_path / "empty").mkdir()
    assert kinds(spark(tmp_path / "*")) == {"q": "external_offsets_missing", "empty": "external_offsets_missing"}


def test_other_sources_are_left_out_and_of_two_the_lower_offset_counts() -> None:
    lines = [
        '{"orders":{"0":5,"1":9}}',
        "-",
        '{"orders":{"0":3},"clicks":{"0":1}}',
        '{"logOffset":4}',
        '{"sourceVersion":1,"reservoirId":"x","reservoirVersion":3,"index":-1}',
        "1795344598911",
        '{"shard":{"seq-1":"x"}}',
    ]
    found = kafka_offsets("\n".join(["v1", BATCH, *lines]), "offsets/3")
    assert found == {("orders", 0): 3, ("orders", 1): 9, ("clicks", 0): 1}


# --- a database ---


def database(tmp_path: Path, rows: list[tuple[Any, ...]]) -> Path:
    path = tmp_path / "offsets.db"
    with sqlite3.connect(path) as connection:
        connection.execute('create table progress ("group", topic, part, next_offset, at)')
        connection.executemany("insert into progress values (?, ?, ?, ?, ?)", rows)
    connection.close()
    return path


QUERY = 'select "group", topic, part as "partition", next_offset as "offset", at as updated_at from progress'


def sql(path: Path, query: str = QUERY, **settings: Any) -> SourceResult:
    return read_sql(SqlOffsets(name="db", url=f"sqlite:///{path}", query=query, **settings))


def test_a_query_gives_groups(tmp_path: Path) -> None:
    path = database(tmp_path, [("billing", "orders", 0, 12, "2026-11-21 03:00:00"), ("mail", "orders", 0, None, None)])
    found = sql(path)
    assert offsets(found, "billing") == {("orders", 0): 12}
    assert offsets(found, "mail") == {("orders", 0): None}
    assert found.groups["billing"].offsets[0].updated_at == AT
    assert found.groups["billing"].type == "sql"


def test_names_in_capitals_and_colons_in_the_query(tmp_path: Path) -> None:
    path = database(tmp_path, [("a:b", "orders", 0, 12, None)])
    query = """select "group" as "GROUP", topic "TOPIC", part "PARTITION", next_offset "OFFSET" from progress
               where "group" = 'a:b' and topic like '%ord%'"""
    assert offsets(sql(path, query), "a:b") == {("orders", 0): 12}


def test_names_that_strangers_chose_stay_names(tmp_path: Path) -> None:
    name = "x'; drop table progress; --"
    path = database(tmp_path, [(name, "orders", 0, 12, None)])
    assert offsets(sql(path), name) == {("orders", 0): 12}
    assert offsets(sql(path), name) == {("orders", 0): 12}


@pytest.mark.parametrize(
    "query", ["delete from progress", "update progress set part = 1 returning *", "drop table progress"]
)
def test_nothing_can_be_changed(tmp_path: Path, query: str) -> None:
    path = database(tmp_path, [("billing", "orders", 0, 12, None)])
    with pytest.raises(OffsetSourceTrouble):
        sql(path, query)
    assert offsets(sql(path), "billing") == {("orders", 0): 12}


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("select topic from progress", "no column group"),
        ("selekt", "syntax"),
        ("select * from elsewhere", "no such table"),
    ],
)
def test_a_query_that_does_not_fit(tmp_path: Path, query: str, why: str) -> None:
    with pytest.raises(OffsetSourceTrouble, match=why) as trouble:
        sql(database(tmp_path, []), query)
    assert trouble.value.kind == "external_offsets_malformed"


def test_a_database_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(OffsetSourceTrouble) as trouble:
        sql(tmp_path / "none.db")
    assert trouble.value.kind == "external_offsets_unreachable"
    assert not (tmp_path / "none.db").exists()


def test_a_query_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    endless = "with recursive n(i) as (select 1 union all select i + 1 from n) select max(i) from n"
    with pytest.raises(OffsetSourceTrouble) as trouble:
        sql(database(tmp_path, []), endless, timeout_seconds=0.2)
    assert trouble.value.kind == "external_offsets_timeout"


def test_a_driver_that_is_not_installed_and_a_secret_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    def read(url: str) -> SourceResult:
        return read_sql(SqlOffsets(name="db", url=url, query="select 1"))

    with pytest.raises(OffsetSourceTrouble, match="driver") as trouble:
        read("oracle+cx_oracle://user@host/db")
    assert trouble.value.kind == "external_offsets_missing"
    monkeypatch.delenv("LAGWISE_SECRET_DB", raising=False)
    with pytest.raises(OffsetSourceTrouble, match="LAGWISE_SECRET_DB") as trouble:
        read("${env:LAGWISE_SECRET_DB}")
    assert trouble.value.kind == "external_offsets_refused"
