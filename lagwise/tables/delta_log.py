"""The log of a table (``_delta_log``): which of its files are damaged, and making it readable again.

Readers start at the newest checkpoint and apply the numbered entries after it. An entry is one line of JSON per action.
The repair keeps the number of every version, because other processes have the table open:

- ``_last_checkpoint`` is only a hint: a damaged one is removed;
- a damaged checkpoint is removed if readers can start at an older one, or at the first entry;
- a damaged entry keeps the lines that mean the same without the others (schema, transactions); the data files that it
  named are added again if the table lacks their rows (:mod:`lagwise.tables.orphans`);
- if readers can start nowhere, an empty checkpoint is put before the oldest entry.

This is for lakes on a disk: object stores write a file as a whole or not at all.
"""

import json
import re
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable

from lagwise.platform.errors import LakeError
from lagwise.tables.damage import Damage, Fault
from lagwise.tables.engine_errors import in_a_line
from lagwise.tables.schema import Table
from lagwise.tables.storage import Storage
from lagwise.tables.store import Lake

FOLDER = "_delta_log"
_ENTRY = re.compile(r"(\d{20})\.json")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint\.parquet")
_CHECKSUM = re.compile(r"(\d{20})\.crc")
_HINT = "_last_checkpoint"
#: Actions that mean the same whatever else their entry held.
_INDEPENDENT = ("protocol", "metaData", "txn")
#: How often a log is read again because files of it were removed meanwhile.
_ATTEMPTS = 3

Action = dict[str, Any]


@dataclass(slots=True)
class DeltaLog:
    """What was found in a table's log.

    Readers apply the entries after the version ``base``; None if they can start nowhere. ``left`` are the actions that
    are left of damaged and missing entries, by version. ``named`` are the data files that any readable part names.
    """

    damaged: list[Damage] = field(default_factory=list)
    base: int | None = None
    left: dict[int, list[Action]] = field(default_factory=dict)
    named: set[str] = field(default_factory=set)


def inspect_log(table: Table, storage: Storage, *, whole: bool = False) -> DeltaLog:
    """Inspect the log of a table on a disk: what readers need of it, or the ``whole``, so that ``named`` is complete.

    Raises LakeError if that is not possible.
    """
    for _ in range(_ATTEMPTS):
        try:
            return _inspect(table, storage, whole)
        except FileNotFoundError:
            continue
    raise LakeError(f"the log of the table {table.path} changes faster than it can be read")


def _inspect(table: Table, storage: Storage, whole: bool) -> DeltaLog:
    log, folder = DeltaLog(), f"{table.path}/{FOLDER}"
    names = storage.sizes(folder)
    entries, checkpoints = _by_version(_ENTRY, names), _by_version(_CHECKPOINT, names)
    if not entries and not checkpoints:
        if any(name.endswith(".parquet") for name in storage.sizes(table.path)):
            log.damaged.append(Damage(table, FOLDER, Fault.MISSING, "data files without a log"))
        return log
    if _HINT in names and not _is_hint(content := storage.read(f"{folder}/{_HINT}")):
        log.damaged.append(_damage(table, _HINT, content, "it names no version"))
    for version in sorted(checkpoints, reverse=True):
        if log.base is not None and not whole:
            break
        content = storage.read(f"{folder}/{checkpoints[version]}")
        files, trouble = _checkpoint(content)
        log.named |= files
        if log.base is None and trouble is not None:
            log.damaged.append(_damage(table, checkpoints[version], content, trouble))
        elif log.base is None:
            log.base = version
    if log.base is None and 0 in entries:
        log.base = -1
    begin = min(entries, default=0) if log.base is None else log.base + 1
    for version in range(begin, max([*entries, begin - 1]) + 1):
        name = entries.pop(version, None)
        if name is None:
            detail = "no such file"
            log.damaged.append(Damage(table, f"{FOLDER}/{_entry_name(version)}", Fault.MISSING, detail))
            log.left[version] = []
            continue
        content = storage.read(f"{folder}/{name}")
        actions, trouble = _actions(content)
        log.named |= set(_data_files(actions))
        if trouble is not None:
            log.damaged.append(_damage(table, name, content, trouble))
            log.left[version] = [{key: a[key]} for a in actions for key in _INDEPENDENT if key in a]
    for name in entries.values() if whole else ():  # entries before the checkpoint: readers do not need them
        log.named |= set(_data_files(_actions(storage.read(f"{folder}/{name}"))[0]))
    return log


def repair_log(lake: Lake, table: Table, log: DeltaLog, storage: Storage, quarantine: str, now: datetime) -> None:
    """Make a damaged log readable; its damaged files move below ``quarantine``. Raises LakeError.

    An interrupted repair is finished by the next.
    """
    folder = f"{table.path}/{FOLDER}"
    damaged = {one.file.removeprefix(f"{FOLDER}/") for one in log.damaged}
    names = storage.sizes(folder)
    if not names:
        lake.forget(table)
        lake.create(table)
        return

    def replace(name: str, content: bytes) -> None:
        if name in names:
            storage.replace(f"{quarantine}/{folder}/{name}", storage.read(f"{folder}/{name}"))
        storage.replace(f"{folder}/{name}", content)
        damaged.discard(name)

    checkpoints = _by_version(_CHECKPOINT, damaged)
    if checkpoints:
        damaged.add(_HINT)
    if log.left:
        # Spark's checksum of a version no longer holds once an entry before it was changed.
        damaged |= {name for version, name in _by_version(_CHECKSUM, names).items() if version >= min(log.left)}
    for version, actions in log.left.items():
        if version == 0 and not {"protocol", "metaData"} <= {key for action in actions for key in action}:
            actions = _declared(table)
        replace(_entry_name(version), _entry(actions, now))
    if log.base is None:
        entries = _by_version(_ENTRY, names)
        before = min(entries) - 1 if entries else max(checkpoints)
        replace(f"{before:020d}.checkpoint.parquet", _empty_checkpoint(table))
    for name in sorted(damaged):
        storage.move(f"{folder}/{name}", f"{quarantine}/{folder}/{name}")
    lake.forget(table)


def _by_version(pattern: re.Pattern[str], names: Iterable[str]) -> dict[int, str]:
    return {int(m[1]): m[0] for m in map(pattern.fullmatch, names) if m}


def _entry_name(version: int) -> str:
    return f"{version:020d}.json"


def _damage(table: Table, name: str, content: bytes, detail: str) -> Damage:
    is_cut = not content or (name.endswith(".json") and b"\0" not in content and not content.rstrip().endswith(b"}"))
    fault = Fault.TRUNCATED if is_cut else Fault.CORRUPT
    return Damage(table, f"{FOLDER}/{name}", fault, detail, size_bytes=len(content))


def _is_hint(content: bytes) -> bool:
    try:
        return isinstance(json.loads(content)["version"], int)
    except (ValueError, KeyError, TypeError):
        return False


def _actions(content: bytes) -> tuple[list[Action], str | None]:
    """The actions of an entry that can be read, and what is wrong with it; None if nothing is."""
    actions: list[Action] = []
    trouble = None if content else "it is empty"
    for number, line in enumerate(content.split(b"\n"), 1):
        if not line.strip(b" \t\r"):
            continue
        try:
            action = json.loads(line)
        except ValueError:
            action = None
        if isinstance(action, dict):
            actions.append(action)
        else:
            trouble = trouble or f"line {number} cannot be read"
    return actions, trouble or _incomplete(actions)


def _incomplete(actions: list[Action]) -> str | None:
    """Compares how many files were added and removed, which delta-rs writes in the first line, with the other lines."""
    info: Action = next((a["commitInfo"] for a in actions if "commitInfo" in a), {})
    counts: Action = info.get("operationMetrics") or {}
    for what, key in (("add", "num_added_files"), ("remove", "num_removed_files")):
        counted, named = counts.get(key), sum(what in a for a in actions)
        if isinstance(counted, int) and named < counted:
            return f"it names {named} of {counted} files to {what}"
    return None


def _data_files(actions: Iterable[Action]) -> Iterator[str]:
    for action in actions:
        for what in ("add", "remove"):
            path = (action.get(what) or {}).get("path")
            if isinstance(path, str):
                yield unquote(path)


def _checkpoint(content: bytes) -> tuple[set[str], str | None]:
    """The data files that a checkpoint names, and what is wrong with it; None if nothing is."""
    named: set[str] = set()
    try:
        with pq.ParquetFile(pa.BufferReader(content), page_checksum_verification=True) as file:
            rows = file.read()
        rows.validate(full=True)
        for what in ("add", "remove"):
            if what in rows.column_names:
                named.update(unquote(p) for p in pc.struct_field(rows[what], "path").to_pylist() if p is not None)
        if any(rows[what].null_count == rows.num_rows for what in ("metaData", "protocol")):
            return set(), "it has no schema"
    except MemoryError:
        raise
    except (pa.ArrowException, OSError, ValueError, TypeError, KeyError) as error:  # read from memory
        return set(), in_a_line(error)
    return named, None


def _entry(actions: list[Action], now: datetime) -> bytes:
    """The content of an entry with these actions, marked as a repair."""
    info: Action = {
        "commitInfo": {"timestamp": round(now.timestamp() * 1000), "operation": "REPAIR", "operationParameters": {}}
    }
    return "".join(json.dumps(action) + "\n" for action in [info, *actions]).encode()


@contextmanager
def _new(table: Table) -> Iterator[tuple[DeltaTable, Storage]]:
    """The table as it is when newly created."""
    with tempfile.TemporaryDirectory(prefix="lagwise-log-") as folder:
        made = Lake(folder)
        made.create(table)
        yield DeltaTable(made.location(table)), Storage(made)


def _declared(table: Table) -> list[Action]:
    """The first entry's actions: the schema and properties of the table."""
    with _new(table) as (_, storage):
        actions, _ = _actions(storage.read(f"{table.path}/{FOLDER}/{_entry_name(0)}"))
    return [{key: a[key]} for a in actions for key in _INDEPENDENT if key in a]


def _empty_checkpoint(table: Table) -> bytes:
    """A checkpoint of the table without any data file."""
    with _new(table) as (delta, storage):
        delta.create_checkpoint()
        return storage.read(f"{table.path}/{FOLDER}/{0:020d}.checkpoint.parquet")
