"""Samples of single group-partitions as columns, and how each moves. Times in seconds since some UTC hour began."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np

from lagwise.domain.verdicts.buckets import hours_of, of_samples
from lagwise.domain.verdicts.columns import MICROS, NULL, Array
from lagwise.domain.verdicts.samples import known_samples
from lagwise.domain.verdicts.windows import DAY_SECONDS, WINDOWS_SECONDS, pace_of, whole_hours, whole_hours_until
from tests.traces.judged import plain

INTERVAL = 15.0
GAP = 120.0
#: The hour that times count from.
HOUR = 20_000 * 86_400 * MICROS


class Sample(NamedTuple):
    """One sample of a group-partition: the committed offset, and the ends of the log read right after it."""

    at: float
    committed: int | None
    high_watermark: int | None
    log_start: int | None = 0
    topic: str | None = None
    last_stable: int | None = None


class Watched(NamedTuple):
    """The samples of one group-partition, and the moment at which it is looked at."""

    samples: Sequence[Sample]
    as_of: float
    interval: float = INTERVAL
    recreated_at: float | None = None


def seen(*rows: tuple[float, int | None, int | None], log_start: int = 0, topic: str | None = None) -> list[Sample]:
    """Samples from (time, committed, high watermark)."""
    return [Sample(*row, log_start, topic) for row in rows]


def steady(until: float, *, start: float = 0.0, written: float = 10.0, read: float = 10.0) -> list[Sample]:
    """A sample every 15 s of a partition to which so many records per second are written, and as many read; a backlog
    of 1,000 to begin with."""
    samples = int((until - start) / INTERVAL) + 1
    times = [start + INTERVAL * n for n in range(samples)]
    return seen(*[(t, int(read * (t - start)), 1000 + int(written * (t - start))) for t in times])


def times(seconds: Sequence[float | None]) -> Array:
    return np.array([NULL if at is None else HOUR + round(at * MICROS) for at in seconds], np.int64)


def whole(numbers: Sequence[int | None]) -> Array:
    return np.array([NULL if number is None else number for number in numbers], np.int64)


def known(pairs: Sequence[Sequence[Sample]]) -> dict[str, Array]:
    """The samples whose lag is known, in order of pair."""
    every = [sample for samples in pairs for sample in samples]
    topics = sorted({sample.topic for sample in every if sample.topic is not None})
    ends = {name: whole([getattr(s, name) for s in every]) for name in ("log_start", "high_watermark", "last_stable")}
    commits = {
        "pair": np.repeat(np.arange(len(pairs)), [len(samples) for samples in pairs]),
        "at": times([s.at for s in every]),
        "committed": whole([s.committed for s in every]),
        "next_record": np.full(len(every), NULL),
    }
    topic_id = np.array([-1 if s.topic is None else topics.index(s.topic) for s in every], np.int64)
    return known_samples(commits, ends | {"topic_id": topic_id}, np.arange(len(every)))


def paces(cases: Sequence[Watched]) -> list[SimpleNamespace]:
    """How each moves, in plain values; ``*_at`` by the clock of the samples, trends as (slope, low, high)."""
    samples = known([case.samples for case in cases])
    buckets = of_samples(samples, np.full(len(samples["at"]), GAP))
    wanted = {
        "pair": np.arange(len(cases)),
        "as_of": times([case.as_of for case in cases]),
        "recreated_at": times([case.recreated_at for case in cases]),
        "interval_seconds": np.array([case.interval for case in cases], np.float64),
    }
    days = whole_hours(hours_of(buckets), wanted | {"until": whole_hours_until(wanted["as_of"])})
    found = pace_of(buckets, days, wanted)
    columns = {
        name: [None if at is None else (at - HOUR) / MICROS for at in plain(column)]
        if name.endswith("_at")
        else plain(column)
        for name, column in found.items()
    }
    columns["window_seconds"] = [(*WINDOWS_SECONDS, DAY_SECONDS)[n] for n in columns["window"]]
    for name, (slope, low, high) in {
        "trend": ("slope", "slope_low", "slope_high"),
        "longer": ("longer_slope", "longer_low", "longer_high"),
    }.items():
        ends = zip(columns[slope], columns[low], columns[high], strict=True)
        columns[name] = [None if one[0] is None else one for one in ends]
    return [SimpleNamespace(**dict(zip(columns, one, strict=True))) for one in zip(*columns.values(), strict=True)]


def pace(
    samples: Sequence[Sample], as_of: float, *, interval: float = INTERVAL, recreated_at: float | None = None
) -> SimpleNamespace:
    (found,) = paces([Watched(samples, as_of, interval, recreated_at)])
    return found
