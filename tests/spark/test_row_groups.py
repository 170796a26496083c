"""Columns read from row groups are those that were written, whatever the statistics spare."""

import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lagwise.domain.verdicts.buckets import EARLIEST, SUMS
from lagwise.domain.verdicts.columns import NEVER, NULL
from lagwise.tables import written_files
from lagwise.tables.minutes import MINUTES
from lagwise_spark.tasks.arrow_columns import columns_of
from lagwise_spark.tasks.lake_files import KeyRange, LakeFiles
from lagwise_spark.tasks.range_rows import RangeReader, _number

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
#: One longer than what writers keep of a name in their statistics, and one that differs from it beyond that.
LONG = "l" * 70
GROUPS = ("g", "é", LONG, LONG + "x")


def some_rows(chance: random.Random, count: int) -> pa.Table:
    """Rows of `minutes` in which each column is all null, has one value, or several with nulls among them."""
    rows: list[dict[str, Any]] = []
    kinds = {column.name: chance.choice(("null", "same", "several")) for column in MINUTES.columns}

    def value(name: str, kind: pa.DataType, nullable: bool) -> Any:
        how = kinds[name]
        if nullable and (how == "null" or (how == "several" and chance.random() < 0.3)):
            return None
        number = 7 if how == "same" else chance.choice((0, 1, 10**12 if pa.types.is_int64(kind) else 10**6))
        if pa.types.is_timestamp(kind):
            return START + timedelta(minutes=number % 60)
        return float(number) if pa.types.is_floating(kind) else number

    for number in range(count):
        row = {c.name: value(c.name, c.type, c.nullable) for c in MINUTES.columns if not pa.types.is_string(c.type)}
        names = {"cluster": "c", "topic": f"t{number % 3}", "group": chance.choice(GROUPS)}
        rows.append(row | names | {"partition": number, "minute": START})
    return MINUTES.from_rows(rows)


@pytest.mark.parametrize("seed", range(20))
def test_what_is_read_is_what_was_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    monkeypatch.setattr(written_files, "ROWS_PER_GROUP", 8)
    rows = some_rows(random.Random(seed), 50).sort_by([("topic", "ascending"), ("partition", "ascending")])
    Path(tmp_path, MINUTES.path).mkdir(parents=True)
    files = LakeFiles(str(tmp_path), {})
    paths = [f"{tmp_path}/{MINUTES.path}/{path}" for path in files.write(MINUTES, rows)["path"].to_pylist()]
    files = LakeFiles(str(tmp_path), {}, {MINUTES.name: paths})
    names = MINUTES.without_day.names

    read = files.rows(MINUTES, names, KeyRange()).select(names)
    assert read.cast(MINUTES.without_day).to_pylist() == rows.to_pylist()

    reader = RangeReader(files, KeyRange(), ["c"])
    found = reader.buckets(MINUTES)
    nulls = dict.fromkeys(SUMS, 0) | dict.fromkeys(EARLIEST, NEVER)
    expected = columns_of(rows, MINUTES.without_day, [n for n in names if n not in reader.names])
    for name, values in expected.items():
        known = np.where(values == NULL, nulls[name], values) if name in nulls and values.dtype == np.int64 else values
        np.testing.assert_array_equal(found[name], known, name)
    for name in ("cluster", "group", "topic"):
        assert [reader.names[name].names[number] for number in found[name]] == rows[name].to_pylist()


def test_a_column_is_null_in_row_groups_of_before_it_was_added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(written_files, "ROWS_PER_GROUP", 8)
    rows = some_rows(random.Random(3), 20)
    added = [c.name for c in MINUTES.columns if c.nullable][-3:]
    names = MINUTES.without_day.names
    older = Path(tmp_path, "older.parquet")
    pq.write_table(rows.select([name for name in names if name not in added]), older, row_group_size=8)
    files = LakeFiles(str(tmp_path), {}, {MINUTES.name: [str(older)]})
    read = files.rows(MINUTES, names, KeyRange()).select(names).cast(MINUTES.without_day)
    assert read.to_pylist() == [row | dict.fromkeys(added) for row in rows.select(names).to_pylist()]
    found = RangeReader(files, KeyRange(), ["c"]).buckets(MINUTES)
    assert len(found["partition"]) == 20


def test_keys_are_numbered_alike_however_far_apart_they_are() -> None:
    close = [np.array([3, 1, 1]), np.array([2, 3])]
    tables: list[dict[str, np.ndarray[Any, Any]]] = [{}, {}]
    assert _number(tables, "log", close).tolist() == [1, 2, 3]
    assert [table["log"].tolist() for table in tables] == [[2, 0, 0], [1, 2]]
    far = [key * 10**12 for key in close]
    assert _number(tables, "log", far).tolist() == [10**12, 2 * 10**12, 3 * 10**12]
    assert [table["log"].tolist() for table in tables] == [[2, 0, 0], [1, 2]]
    assert _number([], "log", []).tolist() == []


def test_row_groups_of_another_time_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(written_files, "ROWS_PER_GROUP", 8)
    rows = some_rows(random.Random(1), 16)
    minutes = [START + timedelta(minutes=number // 8) for number in range(16)]
    rows = rows.set_column(rows.schema.get_field_index("minute"), "minute", [minutes]).cast(rows.schema)
    Path(tmp_path, MINUTES.path).mkdir(parents=True)
    groups = iter([rows.slice(0, 8), rows.slice(8)])
    [path] = written_files.write_day(str(tmp_path), {}, MINUTES, f"{START:%Y-%m-%d}", groups)["path"].to_pylist()
    second = round(minutes[8].timestamp() * 1_000_000)
    for since, until, numbers in ((second, second + 1, range(8, 16)), (second - 1, second, []), (0, second, range(8))):
        files = LakeFiles(
            str(tmp_path), {}, {MINUTES.name: [f"{tmp_path}/{MINUTES.path}/{path}"]}, {MINUTES.name: (since, until)}
        )
        read = files.rows(MINUTES, ["minute"], KeyRange())
        assert read["partition"].to_pylist() == list(numbers)
