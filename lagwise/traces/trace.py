"""Traces: a recorded or constructed history in a folder of CSV files, with its truth.

The format is described in ``docs/traces.md``. A trace becomes rows of the raw tables, so that everything behind the
collectors treats it exactly as it treats a live cluster.
"""

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from lagwise.domain.vocabulary import Status, UnknownReason
from lagwise.traces import csv_files as files
from lagwise.traces.csv_files import LINE, Row, TraceError
from lagwise.traces.raw_rows import Samples, moment, raw_rows, sample_id, sample_times

__all__ = ["Row", "Trace", "TraceError", "Truth", "is_trace", "moment", "read_trace", "sample_id"]


def is_trace(path: Path) -> bool:
    """Whether it looks like a trace: a folder with a ``trace.toml``."""
    return (path / "trace.toml").is_file()


@dataclass(frozen=True, slots=True)
class Truth:
    """Through the whole of [from_s, to_s] the shown status must be one of ``allowed`` (status, reason or None).

    Without a partition it speaks of the group.
    """

    group: str
    topic: str | None
    partition: int | None
    from_s: float
    to_s: float
    allowed: tuple[tuple[Status, UnknownReason | None], ...]

    def is_met_by(self, status: str, reason: str | None) -> bool:
        """Whether a shown status (with its reason, where it is ``unknown``) is one of those allowed."""
        return any(status == s and (r is None or reason == r) for s, r in self.allowed)

    @property
    def words(self) -> str:
        """What is allowed, as it is written in ``truth.csv``."""
        return "|".join(s if r is None else f"{s}:{r}" for s, r in self.allowed)


@dataclass(frozen=True, slots=True)
class Trace:
    """A history as rows of the raw tables (keyed by table name, times as datetimes), and what goes with it.
    ``lag_objectives_s`` are those of groups that have one of their own."""

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
    lag_objectives_s: Mapping[str, float] = field(default_factory=dict)

    @property
    def evaluation_times(self) -> tuple[float, ...]:
        """When the trace is judged: every ``evaluate_every_s`` from the first sample to the last."""
        first, last, every = self.sample_times[0], self.sample_times[-1], self.evaluate_every_s
        return tuple(round(first + n * every, 6) for n in range(int((last - first + 1e-6) / every) + 1))

    def sample_at(self, time_s: float) -> int:
        """Index of the newest sample at this time."""
        return bisect_right(self.sample_times, time_s + 1e-6) - 1


def read_trace(folder: Path) -> Trace:
    """Read a trace folder. Raises TraceError naming what is wrong and where."""
    head = files.read_head(folder)
    interval = float(head["sample_interval_s"])
    rows = {name: files.read_rows(folder, name) for name in files.CSV_FILES}
    times = sample_times((row["time_s"] for name in ("watermarks.csv", "commits.csv") for row in rows[name]), interval)
    if not times:
        raise TraceError(f"{folder}: watermarks.csv and commits.csv hold no rows, so there is nothing to replay")
    retention = head.get("offsets_retention_s")
    return Trace(
        name=head.get("name", folder.resolve().name),
        story=head.get("story", ""),
        sample_interval_s=interval,
        evaluate_every_s=float(head.get("evaluate_every_s", interval)),
        offsets_retention_s=None if retention is None else float(retention),
        lag_objective_s=float(head.get("lag_objective_s", 300.0)),
        risk_horizon_s=float(head.get("risk_horizon_s", 6 * 3600.0)),
        sample_times=times,
        rows=raw_rows(folder, Samples(times, interval), rows),
        truth=tuple(_truth(folder, row) for row in rows["truth.csv"]),
        lag_objectives_s={group: float(seconds) for group, seconds in head.get("lag_objectives_s", {}).items()},
    )


def _truth(folder: Path, row: Row) -> Truth:
    where = f"{folder / 'truth.csv'}, line {row[LINE]}"
    if row["from_s"] > row["to_s"]:
        raise TraceError(f"{where}: it ends before it begins")
    if row["partition"] is not None and row["topic"] is None:
        raise TraceError(f"{where}: a partition without a topic")
    allowed = []
    for word in row["status"].split("|"):
        name, _, reason = word.strip().partition(":")
        try:
            status = Status(name)
            allowed.append((status, UnknownReason(reason) if reason else None))
        except ValueError as error:
            raise TraceError(f"{where}: {error}") from error
        if reason and status is not Status.UNKNOWN:
            raise TraceError(f"{where}: only `unknown` has a reason, not {name!r}")
    return Truth(row["group"], row["topic"], row["partition"], row["from_s"], row["to_s"], tuple(allowed))
