"""Traces: a recorded or constructed history in a folder of CSV files, with its truth beside it.

The format is described in ``docs/traces.md``. A trace becomes rows of the raw tables, so that everything behind the
collectors treats it exactly as it treats a live cluster.
"""

import csv
import tomllib
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from lagwise.domain.vocabulary import Status, UnknownReason
from lagwise.errors import LagwiseError

#: Where second 0 of a trace lies; any fixed moment would do.
ORIGIN = datetime(2026, 1, 1, tzinfo=UTC)

Row = dict[str, Any]


class TraceError(LagwiseError):
    """A trace cannot be read; the message names the file and the line."""


@dataclass(frozen=True, slots=True)
class Truth:
    """Through the whole of [from_s, to_s] the shown status must be one of ``allowed`` (status, reason or None)."""

    group: str
    topic: str | None
    partition: int | None
    from_s: float
    to_s: float
    allowed: tuple[tuple[Status, UnknownReason | None], ...]

    def is_met_by(self, status: str, reason: str | None) -> bool:
        return any(status == s and (r is None or reason == r) for s, r in self.allowed)


@dataclass(frozen=True, slots=True)
class Trace:
    """A history as rows of the raw tables (keyed by table name, times as datetimes), and what goes with it."""

    name: str
    story: str
    sample_interval_s: float
    evaluate_every_s: float
    offsets_retention_s: float | None
    lag_objective_s: float
    risk_horizon_s: float
    sample_times: tuple[float, ...]
    rows: dict[str, list[Row]]
    truth: tuple[Truth, ...]

    @property
    def evaluation_times(self) -> tuple[float, ...]:
        """When the trace is judged: every ``evaluate_every_s`` from the first sample to the last."""
        times = []
        at = self.sample_times[0]
        while at <= self.sample_times[-1] + 1e-6:
            times.append(round(at, 6))
            at += self.evaluate_every_s
        return tuple(times)

    def sample_at(self, time_s: float) -> int:
        """Index of the newest sample at this time."""
        return bisect_right(self.sample_times, time_s + 1e-6) - 1


def moment(time_s: float) -> datetime:
    """A trace's time as a point in time."""
    return ORIGIN + timedelta(seconds=time_s)


def sample_id(index: int) -> str:
    """The id of a trace's sample."""
    return f"{index:08d}"


def read_trace(folder: Path) -> Trace:
    """Read a trace folder. Raises TraceError naming what is wrong and where."""
    head = _head(folder)
    interval = float(head["sample_interval_s"])
    watermarks = list(_rows(folder, "watermarks.csv", _WATERMARKS))
    commits = list(_rows(folder, "commits.csv", _COMMITS))
    groups = list(_rows(folder, "groups.csv", _GROUPS))
    assignments = list(_rows(folder, "assignments.csv", _ASSIGNMENTS))
    topics = list(_rows(folder, "topics.csv", _TOPICS, required=False))
    times = _sample_times((row["time_s"] for part in (watermarks, commits, groups) for row in part), interval)
    if not times:
        raise TraceError(f"{folder}: watermarks.csv and commits.csv hold no rows, so there is nothing to replay")
    return Trace(
        name=str(head.get("name", folder.name)),
        story=str(head.get("story", "")),
        sample_interval_s=interval,
        evaluate_every_s=float(head.get("evaluate_every_s", interval)),
        offsets_retention_s=_optional(head.get("offsets_retention_s")),
        lag_objective_s=float(head.get("lag_objective_s", 300.0)),
        risk_horizon_s=float(head.get("risk_horizon_s", 6 * 3600.0)),
        sample_times=times,
        rows=_raw_rows(times, watermarks, commits, groups, assignments, topics),
        truth=tuple(_truths(folder)),
    )


def _optional(value: Any) -> float | None:
    return None if value is None else float(value)


def _head(folder: Path) -> dict[str, Any]:
    path = folder / "trace.toml"
    try:
        head = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise TraceError(f"{path} cannot be read ({error.strerror}): is {folder} the folder of a trace?") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise TraceError(f"{path} is not TOML: {error}") from error
    for key in ("sample_interval_s", "evaluate_every_s"):
        value = head.get(key, 15.0 if key == "evaluate_every_s" else None)
        if not isinstance(value, int | float) or value <= 0:
            raise TraceError(f"{path}: {key} must be a number of seconds above 0")
    return head


def _text(value: str) -> str | None:
    return value or None


def _integer(value: str) -> int | None:
    return int(value) if value else None


_Column = tuple[str, Callable[[str], Any], bool]
_WATERMARKS: tuple[_Column, ...] = (
    ("time_s", float, True),
    ("topic", str, True),
    ("partition", int, True),
    ("log_start", _integer, True),
    ("high_watermark", _integer, True),
    ("last_stable", _integer, False),
    ("topic_id", _text, False),
)
_COMMITS: tuple[_Column, ...] = (
    ("time_s", float, True),
    ("group", str, True),
    ("topic", str, True),
    ("partition", int, True),
    ("committed", _integer, True),
)
_GROUPS: tuple[_Column, ...] = (
    ("time_s", float, True),
    ("group", str, True),
    ("state", _text, True),
    ("type", _text, False),
)
_ASSIGNMENTS: tuple[_Column, ...] = (
    ("time_s", float, True),
    ("group", str, True),
    ("member_id", str, True),
    ("client_id", _text, False),
    ("host", _text, False),
    ("topic", _text, True),
    ("partition", _integer, True),
)
_TOPICS: tuple[_Column, ...] = (
    ("topic", str, True),
    ("retention_ms", _integer, True),
    ("retention_bytes", _integer, False),
    ("cleanup_policy", _text, False),
)
_TRUTH: tuple[_Column, ...] = (
    ("group", str, True),
    ("topic", _text, True),
    ("partition", _integer, True),
    ("from_s", float, True),
    ("to_s", float, True),
    ("status", str, True),
)


def _rows(folder: Path, name: str, columns: tuple[_Column, ...], *, required: bool = True) -> Iterator[Row]:
    path = folder / name
    if not path.exists() and not required:
        return
    try:
        with path.open(encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file)
            missing = [c for c, _, needed in columns if needed and c not in (reader.fieldnames or ())]
            if missing:
                raise TraceError(f"{path} lacks the column {missing[0]!r}")
            for row in reader:
                try:
                    yield {column: convert((row.get(column) or "").strip()) for column, convert, _ in columns}
                except ValueError as error:
                    raise TraceError(f"{path}, line {reader.line_num}: {error}") from error
    except OSError as error:
        raise TraceError(f"{path} cannot be read: {error.strerror}") from error


def _truths(folder: Path) -> Iterator[Truth]:
    for row in _rows(folder, "truth.csv", _TRUTH, required=False):
        allowed = []
        for word in row["status"].split("|"):
            status, _, reason = word.strip().partition(":")
            try:
                allowed.append((Status(status), UnknownReason(reason) if reason else None))
            except ValueError as error:
                raise TraceError(f"{folder / 'truth.csv'}: {error}") from error
        yield Truth(row["group"], row["topic"], row["partition"], row["from_s"], row["to_s"], tuple(allowed))


def _sample_times(times: Iterator[float], interval: float) -> tuple[float, ...]:
    """Times less than half an interval apart are one sample: commits and watermarks are read one after the other."""
    samples: list[float] = []
    for at in sorted(set(times)):
        if not samples or at - samples[-1] >= interval / 2:
            samples.append(at)
    return tuple(samples)


def _raw_rows(
    times: tuple[float, ...],
    watermarks: list[Row],
    commits: list[Row],
    groups: list[Row],
    assignments: list[Row],
    topics: list[Row],
) -> dict[str, list[Row]]:
    def index_of(at: float) -> int:
        return bisect_right(times, at + 1e-9) - 1

    def dated(row: Row) -> Row:
        index = index_of(row["time_s"])
        return {"sample_id": sample_id(index), "index": index, "sampled_at": moment(times[index])} | row

    def described(row: Row) -> tuple[int, str]:
        return row["index"], row["group"]

    states = {described(row): row for row in map(dated, groups)}
    owners: dict[tuple[int, str], list[Row]] = {}
    for row in map(dated, assignments):
        owners.setdefault(described(row), []).append(row)
    committed = [dated(row) for row in commits]
    # A recorder may write a group only when it changes: what was last seen of it still holds.
    names = sorted({row["group"] for row in (*groups, *commits)})
    last: dict[str, tuple[Row, list[Row]]] = {}
    group_rows: list[Row] = []
    member_rows: list[Row] = []
    owner_of: dict[tuple[int, str, str, int], str] = {}
    for index, at in enumerate(times):
        for name in names:
            if (index, name) in states:
                last[name] = (states[index, name], owners.get((index, name), []))
            elif (index, name) in owners and name in last:
                last[name] = (last[name][0], owners[index, name])
            if name not in last:
                continue
            state, owned = last[name]
            common = {"sample_id": sample_id(index), "sampled_at": moment(at), "group": name}
            its_members = _members(owned)
            member_rows += [common | member for member in its_members]
            group_rows.append(
                common | {"state": state["state"], "type": state["type"], "member_count": len(its_members)}
            )
            for row in owned:
                if row["topic"] is not None and row["partition"] is not None:
                    owner_of[index, name, row["topic"], row["partition"]] = row["member_id"]
    seen = set()
    for row in committed:
        key = (row["index"], row["group"], row["topic"], row["partition"])
        seen.add(key)
        row["owner"] = owner_of.get(key)
    for key, owner in owner_of.items():
        if key not in seen:
            index, group, topic, partition = key
            committed.append(
                {
                    "sample_id": sample_id(index),
                    "sampled_at": moment(times[index]),
                    "group": group,
                    "topic": topic,
                    "partition": partition,
                    "committed": None,
                    "owner": owner,
                }
            )
    return {
        "watermarks": [dated(row) for row in watermarks],
        "commits": committed,
        "groups": group_rows,
        "members": member_rows,
        "topics": [{"sample_id": sample_id(0), "sampled_at": moment(times[0])} | row for row in topics],
    }


def _members(owned: list[Row]) -> list[Row]:
    """One row per member from one row per assigned partition (a member without any has an empty topic)."""
    members: dict[str, Row] = {}
    for row in owned:
        member = members.setdefault(
            row["member_id"],
            {"member_id": row["member_id"], "client_id": row["client_id"], "host": row["host"], "topics": {}},
        )
        if row["topic"] is not None and row["partition"] is not None:
            member["topics"].setdefault(row["topic"], []).append(row["partition"])
    for member in members.values():
        by_topic: dict[str, list[int]] = member.pop("topics")
        member["assignment"] = [{"topic": t, "partitions": sorted(ps)} for t, ps in sorted(by_topic.items())]
        member["assigned_partitions"] = sum(len(ps) for ps in by_topic.values())
    return list(members.values())
