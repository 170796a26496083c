"""kafka-lag-exporter's time lag (seglo/kafka-lag-exporter, LookupTable.scala), as it is published, in our own words,
with the alert that people put on it: the group's largest time lag above its objective.

A table per partition holds points (end of the log, time of the poll); the time at which the committed offset was
written is read off between two points, or off the line through the first and the last where it lies outside. It polls
every 30 s and keeps 60 points; here every sample is a poll and it keeps as many as make the same half hour. Nothing
else is lost by sampling: it polls itself.
"""

import math
from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

from benchmarks.verdicts.seen import ALARM, QUIET, UNKNOWN, Pair, Sample

TABLE_SECONDS = 1800.0


class Point(NamedTuple):
    offset: int
    at: float


@dataclass
class LookupTable:
    """Ends of a log and when they were polled, oldest first."""

    size: int
    points: deque[Point] = field(default_factory=deque)

    def add(self, point: Point) -> None:
        """Take a point in. One that is older than the newest, or lower, is refused; a third of the same offset only
        moves the second."""
        if self.points:
            newest = self.points[-1]
            if point.at <= newest.at or point.offset < newest.offset:
                return
            if point.offset == newest.offset and len(self.points) > 1 and self.points[-2].offset == point.offset:
                self.points[-1] = point
                return
        self.points.append(point)
        if len(self.points) > self.size:
            self.points.popleft()

    def written_at(self, offset: int) -> float:
        """When this offset was written: NaN where that is unknown, minus infinity on a line without slope."""
        if len(self.points) < 2:
            return math.nan
        points = list(self.points)
        for left, right in zip(reversed(points[:-1]), reversed(points[1:]), strict=True):
            if left.offset <= offset <= right.offset:
                break
        else:
            left, right = points[0], points[-1]
        behind, span = right.offset - offset, right.offset - left.offset
        if span == 0:
            return right.at if behind == 0 else math.copysign(math.inf, -behind)
        return right.at - behind * (right.at - left.at) / span

    def lag_seconds(self, offset: int, now: float) -> float:
        if self.points and self.points[-1].offset == offset:
            return 0.0
        return now - self.written_at(offset)


class LagExporter:
    """kafka-lag-exporter's ``kafka_consumergroup_group_max_lag_seconds`` above an objective."""

    name = "kafka-lag-exporter"

    def __init__(self, objective_seconds: float, interval_seconds: float) -> None:
        self._objective = objective_seconds
        self._size = max(2, round(TABLE_SECONDS / interval_seconds))
        self._tables: dict[tuple[str, int], LookupTable] = {}
        self._lags: dict[Pair, float] = {}

    def see(self, sample: Sample) -> None:
        for pair, reading in sample.readings.items():
            if reading.high_watermark is not None:
                table = self._tables.setdefault((pair.topic, pair.partition), LookupTable(self._size))
                table.add(Point(reading.high_watermark, sample.at))
        self._lags = {}
        for pair, reading in sample.readings.items():
            known = self._tables.get((pair.topic, pair.partition))
            if reading.committed is not None and reading.high_watermark is not None and known is not None:
                self._lags[pair] = known.lag_seconds(reading.committed, sample.at)

    def says(self, group: str) -> str:
        lags = [lag for pair, lag in self._lags.items() if pair.group == group and not math.isnan(lag)]
        return UNKNOWN if not lags else ALARM if max(lags) > self._objective else QUIET
