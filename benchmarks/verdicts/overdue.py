"""When the unread records of a group are older than its objective, as the trace shows it, whatever any rule says.

A record has been unread at least since the first sample at which it was there to be read: in which the end of its log
(of what is committed of it, where there are transactions) lay behind it. That is true for certain, and at most one
sampling interval too little. What was there before the trace begins counts from its beginning. A partition that the
truth calls a ghost holds nothing that the group is to read.
"""

from bisect import bisect_right
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from lagwise.domain.vocabulary import Status
from lagwise.traces.trace import Trace, moment

Log = tuple[str, int]


class Ends:
    """The ends of a log, and when they were first seen; of a log that is re-created only the new ones."""

    def __init__(self) -> None:
        self._ends: list[int] = []
        self._since: list[datetime] = []
        self._id: str | None = None

    def see(self, row: dict[str, Any]) -> int | None:
        """Take a sample in; the end up to which there is something to read."""
        end: int | None = row["high_watermark"] if row["last_stable"] is None else row["last_stable"]
        if end is None:
            return None
        if row["topic_id"] != self._id or (self._ends and end < self._ends[-1]):
            self._ends, self._since, self._id = [], [], row["topic_id"]
        if not self._ends or end > self._ends[-1]:
            self._ends.append(end)
            self._since.append(row["sampled_at"])
        return end

    def since(self, offset: int) -> datetime:
        """When the record of this offset was first there to be read."""
        return self._since[bisect_right(self._ends, offset)]


def overdue(trace: Trace) -> set[tuple[float, str]]:
    """Evaluation times and groups at which the oldest unread record is older than the group's objective."""
    oldest = _oldest(trace)
    found = set()
    groups = {truth.group for truth in trace.truth}
    for at in trace.evaluation_times:
        now = moment(trace.sample_times[trace.sample_at(at)])
        for group in groups:
            objective = trace.lag_objectives_s.get(group, trace.lag_objective_s)
            since = oldest.get((now, group))
            if since is not None and (now - since).total_seconds() > objective:
                found.add((at, group))
    return found


def _oldest(trace: Trace) -> dict[tuple[datetime, str], datetime]:
    """Since when the oldest unread record of a group was there to be read, by the time of the sample."""
    watermarks: dict[datetime, list[dict[str, Any]]] = {}
    for row in trace.rows["watermarks"]:
        watermarks.setdefault(row["sampled_at"], []).append(row)
    commits: dict[datetime, list[dict[str, Any]]] = {}
    for row in trace.rows["commits"]:
        commits.setdefault(row["sampled_at"], []).append(row)
    logs: dict[Log, Ends] = {}
    oldest: dict[tuple[datetime, str], datetime] = {}
    for at_s in trace.sample_times:
        now = moment(at_s)
        starts = {}
        ends = {}
        for row in watermarks.get(now, ()):
            log = row["topic"], row["partition"]
            end = logs.setdefault(log, Ends()).see(row)
            if end is not None and row["log_start"] is not None:
                starts[log], ends[log] = row["log_start"], end
        ghosts = set(_ghosts(trace, at_s))
        for row in commits.get(now, ()):
            log = row["topic"], row["partition"]
            if row["committed"] is None or log not in ends or (row["group"], *log) in ghosts:
                continue
            reads_from = max(row["committed"], row["next_record"] or 0, starts[log])
            if reads_from < ends[log]:
                since = logs[log].since(reads_from)
                oldest[now, row["group"]] = min(since, oldest.get((now, row["group"]), since))
    return oldest


def _ghosts(trace: Trace, at_s: float) -> Iterator[tuple[str, str | None, int | None]]:
    for truth in trace.truth:
        if truth.from_s <= at_s <= truth.to_s and {status for status, _ in truth.allowed} == {Status.GHOST}:
            yield truth.group, truth.topic, truth.partition
