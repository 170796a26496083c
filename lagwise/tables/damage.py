"""Which data files of a table are damaged: missing, cut off, or provably unreadable.

A file is damaged only if that is certain: the storage says that it does not exist, or its whole content was read and
is not what was written. A file that merely cannot be read now (network, permissions, too many open files, an I/O error)
is not damaged and is left alone.
"""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from urllib.parse import unquote

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable

from lagwise.platform.errors import LakeError
from lagwise.tables.duckdb_connection import connected
from lagwise.tables.engine_errors import in_a_line
from lagwise.tables.schema import Table
from lagwise.tables.storage import Storage
from lagwise.tables.store import Lake

_DATA_FILE = re.compile(r"[\w.=%-]+\.parquet")


class Fault(StrEnum):
    """What is wrong with a file."""

    MISSING = "missing"
    TRUNCATED = "truncated"
    CORRUPT = "corrupt"


@dataclass(frozen=True, slots=True)
class Damage:
    """A damaged file of a table: ``file`` is its path in the table's folder, ``detail`` what is wrong with it.

    ``rows`` is how many rows it held, and ``first_at`` and ``last_at`` are the first and last of their clock; None is
    not known. ``day`` is its partition (ISO date), None in a table without.
    """

    table: Table
    file: str
    fault: Fault
    detail: str
    rows: int | None = None
    size_bytes: int | None = None
    first_at: datetime | None = None
    last_at: datetime | None = None
    day: str | None = None

    def __str__(self) -> str:
        return f"{self.table.path}/{self.file} is {self.fault} ({self.detail})"


@dataclass(slots=True)
class Inspection:
    """What an inspection found: ``damaged`` files, and in ``unchecked`` a line for each that could not be read now."""

    damaged: list[Damage] = field(default_factory=list)
    unchecked: list[str] = field(default_factory=list)


def is_of_log(damage: Damage) -> bool:
    """Whether the file belongs to the table's log, and is not one of its data files."""
    return damage.file.startswith("_delta_log")


def day_of(file: str) -> str | None:
    """The partition that a data file belongs to by its path in the table's folder; None in a table without."""
    folder = file.partition("/")[0]
    return folder.removeprefix("day=") if folder.startswith("day=") else None


def files_named_in(text: str) -> frozenset[str]:
    """Names, without folders, of the data files that an error mentions."""
    return frozenset(unquote(name) for name in _DATA_FILE.findall(text))


def inspect_files(lake: Lake, table: Table, *, named: Collection[str] = (), thorough: bool = False) -> Inspection:
    """The damaged data files of a table's newest version. Raises LakeError if its log cannot be read.

    Checks that every file exists and has the size that was written. Files that are ``named`` (names without folders),
    or with ``thorough`` all files, are read from the first byte to the last.
    """
    delta, storage, found = lake.open(table), Storage(lake), Inspection()
    if delta is None:
        return found
    sizes = storage.sizes(table.path)
    for one in _active(delta, table):
        if sizes.get(one.file) == one.size_bytes and not thorough and one.file.rpartition("/")[2] not in named:
            continue
        try:
            damage = _damage_of(lake, storage, one)
        except LakeError as error:
            found.unchecked.append(str(error))
            continue
        if damage is not None:
            found.damaged.append(damage)
    return found


def _active(delta: DeltaTable, table: Table) -> Iterator[Damage]:
    """The files of the newest version, as if each were damaged."""
    for action in pa.table(delta.get_add_actions(flatten=True)).to_pylist():
        file = unquote(action["path"])
        yield Damage(
            table,
            file,
            Fault.MISSING,
            "",
            rows=action["num_records"],
            size_bytes=action["size_bytes"],
            first_at=_utc(action.get(f"min.{table.clock}")),
            last_at=_utc(action.get(f"max.{table.clock}")),
            day=day_of(file),
        )


def _utc(at: datetime | None) -> datetime | None:
    return None if at is None else at.astimezone(UTC)


def _damage_of(lake: Lake, storage: Storage, one: Damage) -> Damage | None:
    """What is wrong with a file; None if nothing is. Raises LakeError if it cannot be read now."""
    path = f"{one.table.path}/{one.file}"
    try:
        content = storage.read(path)
    except FileNotFoundError:
        return replace(one, fault=Fault.MISSING, detail="no such file")
    written = one.size_bytes
    if written is not None and len(content) != written:
        fault = Fault.TRUNCATED if len(content) < written else Fault.CORRUPT
        return replace(one, fault=fault, detail=f"{len(content):,} bytes of {written:,}")
    detail = unreadable(content, one.table, one.rows, Path(lake.uri, path) if lake.is_local else None)
    return None if detail is None else replace(one, fault=Fault.CORRUPT, detail=detail)


def unreadable(content: bytes, table: Table, rows: int | None, place: Path | None) -> str | None:
    """Why this content is not a data file of the table with this number of rows (None: unknown); None if it is one.

    ``place`` is the path of the file on a disk. DuckDB then reads it too: it rejects content that pyarrow accepts.
    """
    declared = {f.name: f for f in table.without_day}
    try:
        with pq.ParquetFile(pa.BufferReader(content), page_checksum_verification=True) as file:
            # Other writers put the partition into the file, too.
            there = [name for name in file.schema_arrow.names if name != "day"]
            # A nullable column may be younger than the file.
            lacking = [name for name, f in declared.items() if name not in there and not f.nullable]
            wrong = sorted({*lacking, *(set(there) - set(declared))})
            if wrong:
                return f"its columns are not the table's: {', '.join(wrong)}"
            schema = pa.schema([declared[name] for name in there])
            read = 0
            for batch in file.iter_batches(columns=there):
                pa.Table.from_batches([batch]).cast(schema).validate(full=True)
                read += batch.num_rows
    except MemoryError:
        raise
    except (pa.ArrowException, OSError, ValueError, TypeError) as error:  # read from memory: the content is to blame
        return in_a_line(error)
    if rows is not None and read != rows:
        return f"{read:,} rows of {rows:,}"
    return None if place is None else _unreadable_for_duckdb(place, there)


def _unreadable_for_duckdb(place: Path, columns: list[str]) -> str | None:
    quoted = ", ".join(f'"{name}"' for name in columns)
    with connected(threads=1) as connection:
        try:
            connection.execute(
                f"select bit_xor(hash({quoted})) from read_parquet(?, hive_partitioning=false)",  # noqa: S608 (own names)
                [str(place)],
            ).fetchall()
        except (duckdb.IOException, duckdb.OutOfMemoryException) as error:
            raise LakeError(f"cannot read {place}: {in_a_line(error)}") from error
        except (duckdb.Error, RuntimeError) as error:
            return in_a_line(error)
    return None
