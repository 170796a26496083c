"""Histories of logs as columns, each as it is seen at a moment. Times in seconds since some UTC hour began."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from lagwise.domain.verdicts.logs import SeenLogs, logs_of_samples, seen_logs
from tests.domain.observed import times


class Point(NamedTuple):
    """The ends of a log at a time, and which topic it was, where known."""

    at: float
    high_watermark: int
    log_start: int = 0
    topic: str | None = None


def logs(histories: Sequence[Sequence[Point]], as_of: Sequence[float]) -> SeenLogs:
    """Each history at its moment."""
    every = [point for points in histories for point in points]
    topics = sorted({point.topic for point in every if point.topic is not None})
    watermarks = {
        "log": np.repeat(np.arange(len(histories)), [len(points) for points in histories]),
        "at": times([point.at for point in every]),
        "high_watermark": np.array([point.high_watermark for point in every], np.int64),
        "log_start": np.array([point.log_start for point in every], np.int64),
        "topic_id": np.array([-1 if p.topic is None else topics.index(p.topic) for p in every], np.int64),
    }
    return seen_logs(logs_of_samples(watermarks), np.arange(len(histories)), times(as_of))
