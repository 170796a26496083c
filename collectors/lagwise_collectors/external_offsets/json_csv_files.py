"""Offsets in JSON and CSV files.

JSON is a list of records, a record a line, or, as Spark writes them, ``{"topic": {"0": 12}}``; CSV has a line of names.
"""

import csv
import json
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow.fs as pafs

from lagwise.config import OffsetFiles
from lagwise.domain.vocabulary import Engine
from lagwise_collectors.external_offsets.file_system import OffsetFileSystem
from lagwise_collectors.external_offsets.model import FoundOffsets, Trouble, groups_of

_Record = Mapping[str, Any]


class OffsetFilesReader:
    """Reads the files of one path."""

    def __init__(self, settings: OffsetFiles) -> None:
        self._settings = settings

    def read(self) -> FoundOffsets:
        """Every group of every file. A file that cannot be read costs the group that it is named after."""
        places = OffsetFileSystem(self._settings.path)
        records: list[_Record] = []
        broken: list[tuple[str, Trouble]] = []
        for info in places.found():
            if info.type != pafs.FileType.File:
                continue
            group = self._settings.group or info.base_name.partition(".")[0]
            try:
                those = list(_records(places.text(info.path), info.path, self._settings.format))
            except Trouble as trouble:
                broken.append((group, trouble))
                continue
            records += [{"group": group} | {k: v for k, v in one.items() if v not in (None, "")} for one in those]
        found = groups_of(records, Engine.FILES, where=self._settings.name)
        for group, why in broken:
            found.spoil(group, Engine.FILES, why)
        return found


def _records(text: str, path: str, form: str | None) -> Iterator[_Record]:
    """The records of a file. Raises Trouble where it is not of its form."""
    if (form or ("csv" if path.endswith(".csv") else "json")) == "csv":
        yield from _csv(text, path)
        return
    try:
        data = json.loads(text)
    except ValueError:
        data = _lines(text, path)
    except RecursionError:
        raise Trouble("malformed", f"{path} is not JSON that anybody meant") from None
    if isinstance(data, dict):
        data = [data] if "topic" in data else list(_by_topic(data, path))
    if not isinstance(data, list) or not all(isinstance(one, dict) for one in data):
        raise Trouble("malformed", f"{path} holds no list of records")
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
            raise Trouble("malformed", f"{path} is not JSON (line {number}); it may be half written") from None
    if not records:
        raise Trouble("malformed", f"{path} is empty")
    return records


def _by_topic(data: dict[str, Any], path: str) -> Iterator[_Record]:
    for topic, by_partition in data.items():
        if not isinstance(by_partition, dict):
            raise Trouble("malformed", f"{path}: what stands under {topic!r:.80} is not offsets by partition")
        for partition, offset in by_partition.items():
            yield {"topic": topic, "partition": partition, "offset": offset}


def _csv(text: str, path: str) -> Iterator[_Record]:
    rows = csv.DictReader(text.splitlines(), skipinitialspace=True)
    missing = {"topic", "partition", "offset"} - set(rows.fieldnames or ())
    if missing:
        raise Trouble("malformed", f"{path} has no column {sorted(missing)[0]} in its first line")
    try:
        for row in rows:
            yield {name: value for name, value in row.items() if name is not None}
    except csv.Error as error:
        raise Trouble("malformed", f"{path} is not CSV (line {rows.line_num}): {error}") from None
