"""The files of a trace: TOML and CSV to plain rows, every mistake with its file and line."""

import csv
import math
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lagwise.platform.error_codes import ErrorCode
from lagwise.platform.errors import LagwiseError

Row = dict[str, Any]

#: The key under which a row holds its line number in the file.
LINE = "line"


class TraceError(LagwiseError):
    """A trace cannot be read; the message names the file and the line."""

    code = ErrorCode.TRACE_INVALID


@dataclass(frozen=True, slots=True)
class CsvColumn:
    """A column of a CSV file; where it is not ``needed`` the file may lack it."""

    name: str
    convert: Callable[[str], Any]
    needed: bool = True


def _time(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text!r} is not a time")
    return value


def _name(text: str) -> str:
    if not text:
        raise ValueError("a name is missing")
    return text


def _text(text: str) -> str | None:
    return text or None


def _count(text: str) -> int:
    value = int(text)
    if value < 0:
        raise ValueError(f"{value} is below 0 (what is not known is an empty field)")
    return value


def _count_or_null(text: str) -> int | None:
    return _count(text) if text else None


def _limit(text: str) -> int | None:
    return int(text) if text else None


#: The columns of each file.
CSV_FILES: dict[str, tuple[CsvColumn, ...]] = {
    "watermarks.csv": (
        CsvColumn("time_s", _time),
        CsvColumn("topic", _name),
        CsvColumn("partition", _count),
        CsvColumn("log_start", _count_or_null),
        CsvColumn("high_watermark", _count_or_null),
        CsvColumn("last_stable", _count_or_null, needed=False),
        CsvColumn("topic_id", _text, needed=False),
    ),
    "commits.csv": (
        CsvColumn("time_s", _time),
        CsvColumn("group", _name),
        CsvColumn("topic", _name),
        CsvColumn("partition", _count),
        CsvColumn("committed", _count_or_null),
        CsvColumn("next_record", _count_or_null, needed=False),
    ),
    "groups.csv": (
        CsvColumn("time_s", _time),
        CsvColumn("group", _name),
        CsvColumn("state", _text),
        CsvColumn("type", _text, needed=False),
    ),
    "assignments.csv": (
        CsvColumn("time_s", _time),
        CsvColumn("group", _name),
        CsvColumn("member_id", _name),
        CsvColumn("client_id", _text, needed=False),
        CsvColumn("host", _text, needed=False),
        CsvColumn("topic", _text),
        CsvColumn("partition", _count_or_null),
    ),
    "topics.csv": (
        CsvColumn("topic", _name),
        CsvColumn("retention_ms", _limit),
        CsvColumn("retention_bytes", _limit, needed=False),
        CsvColumn("cleanup_policy", _text, needed=False),
        CsvColumn("segment_ms", _limit, needed=False),
    ),
    "truth.csv": (
        CsvColumn("group", _name),
        CsvColumn("topic", _text),
        CsvColumn("partition", _count_or_null),
        CsvColumn("from_s", _time),
        CsvColumn("to_s", _time),
        CsvColumn("status", _name),
    ),
}
#: The files that a trace may lack.
_OPTIONAL_FILES = frozenset({"groups.csv", "assignments.csv", "topics.csv", "truth.csv"})


def read_rows(folder: Path, name: str) -> list[Row]:
    """The rows of a CSV file in a trace's folder. Raises TraceError."""
    path = folder / name
    if not path.exists() and name in _OPTIONAL_FILES:
        return []
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            return list(_parsed(path, csv.DictReader(file, strict=True), CSV_FILES[name]))
    except OSError as error:
        raise TraceError(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise TraceError(f"{path} is not UTF-8: {error.reason}") from error
    except csv.Error as error:
        raise TraceError(f"{path} is not CSV: {error}") from error


def _parsed(path: Path, reader: "csv.DictReader[str]", columns: tuple[CsvColumn, ...]) -> Iterator[Row]:
    present = reader.fieldnames or ()
    missing = [column.name for column in columns if column.needed and column.name not in present]
    if missing:
        raise TraceError(f"{path} lacks the column {missing[0]!r}")
    for row in reader:
        if None in row:
            raise TraceError(f"{path}, line {reader.line_num}: more fields than the first line names")
        parsed: Row = {LINE: reader.line_num}
        for column in columns:
            try:
                parsed[column.name] = column.convert((row.get(column.name) or "").strip())
            except ValueError as error:
                raise TraceError(f"{path}, line {reader.line_num}, {column.name}: {error}") from error
        yield parsed


def read_head(folder: Path) -> dict[str, Any]:
    """``trace.toml``, checked. Raises TraceError."""
    path = folder / "trace.toml"
    try:
        head = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise TraceError(f"{path} cannot be read ({error.strerror}): is {folder} the folder of a trace?") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise TraceError(f"{path} is not TOML: {error}") from error
    seconds = {"sample_interval_s", "evaluate_every_s", "offsets_retention_s", "lag_objective_s", "risk_horizon_s"}
    for key in sorted(seconds):
        value = head.get(key)
        if value is None and key != "sample_interval_s":
            continue
        if not _is_duration(value):
            raise TraceError(f"{path}: {key} must be a number of seconds above 0")
    own = head.get("lag_objectives_s", {})
    if not isinstance(own, dict) or not all(_is_duration(value) for value in own.values()):
        raise TraceError(f"{path}: lag_objectives_s must be groups, each with a number of seconds above 0")
    for key in ("name", "story"):
        if not isinstance(head.get(key, ""), str):
            raise TraceError(f"{path}: {key} must be text in quotes")
    return head


def _is_duration(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < math.inf
