"""Offsets in JSON and CSV files.

JSON is a list of records, one record per line, or, as Spark writes it, ``{"topic": {"0": 12}}``. CSV has a header line.
"""

import csv
import json
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow.fs as pafs

from lagwise.config.external_offsets import OffsetFiles
from lagwise.domain.vocabulary import Engine
from lagwise_collectors.external_offsets.file_system import OffsetFileSystem
from lagwise_collectors.external_offsets.model import OffsetSourceTrouble, SourceResult, groups_of_records

_Record = Mapping[str, Any]


def read_offset_files(settings: OffsetFiles) -> SourceResult:
    """Every group of every file of a path. A file that cannot be read costs only the group that it is named after."""
    file_system = OffsetFileSystem(settings.path)
    records: list[_Record] = []
    broken: list[tuple[str, OffsetSourceTrouble]] = []
    for info in file_system.matches():
        if info.type != pafs.FileType.File:
            continue
        group = settings.group or info.base_name.partition(".")[0]
        try:
            those = list(_records(file_system.text(info.path), info.path, settings.format))
        except OffsetSourceTrouble as trouble:
            broken.append((group, trouble))
            continue
        records += [{"group": group} | {k: v for k, v in one.items() if v not in (None, "")} for one in those]
    result = groups_of_records(records, Engine.FILES, where=settings.name)
    for group, why in broken:
        result.mark_unreadable(group, Engine.FILES, why)
    return result


def _records(text: str, path: str, form: str | None) -> Iterator[_Record]:
    """The records of a file. Raises OffsetSourceTrouble where its format is wrong."""
    if (form or ("csv" if path.endswith(".csv") else "json")) == "csv":
        yield from _csv(text, path)
        return
    try:
        data = json.loads(text)
    except ValueError:
        data = _lines(text, path)
    except RecursionError:
        raise OffsetSourceTrouble("malformed", f"{path} is JSON that is nested too deeply") from None
    if isinstance(data, dict):
        data = [data] if "topic" in data else list(_by_topic(data, path))
    if not isinstance(data, list) or not all(isinstance(one, dict) for one in data):
        raise OffsetSourceTrouble("malformed", f"{path} holds no list of records")
    yield from data


def _lines(text: str, path: str) -> list[Any]:
    """A record a line."""
    records = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            records.append(json.loads(line))
        except (ValueError, RecursionError):
            raise OffsetSourceTrouble(
                "malformed", f"{path} is not JSON (line {number}); it may be incomplete"
            ) from None
    if not records:
        raise OffsetSourceTrouble("malformed", f"{path} is empty")
    return records


def _by_topic(data: dict[str, Any], path: str) -> Iterator[_Record]:
    for topic, by_partition in data.items():
        if not isinstance(by_partition, dict):
            raise OffsetSourceTrouble(
                "malformed", f"{path}: the value of {topic!r:.80} is not a map of partitions to offsets"
            )
        for partition, offset in by_partition.items():
            yield {"topic": topic, "partition": partition, "offset": offset}


def _csv(text: str, path: str) -> Iterator[_Record]:
    rows = csv.DictReader(text.splitlines(), skipinitialspace=True)
    missing = {"topic", "partition", "offset"} - set(rows.fieldnames or ())
    if missing:
        raise OffsetSourceTrouble("malformed", f"{path} has no column {sorted(missing)[0]} in its first line")
    try:
        for row in rows:
            yield {name: value for name, value in row.items() if name is not None}
    except csv.Error as error:
        raise OffsetSourceTrouble("malformed", f"{path} is not CSV (line {rows.line_num}): {error}") from None
