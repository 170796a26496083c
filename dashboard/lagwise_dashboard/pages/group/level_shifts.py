"""When the time per message and what is written changed their level: as marks in the charts, and in words."""

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from itertools import pairwise
from typing import Any

import pyarrow as pa

from lagwise.domain import humanise
from lagwise.domain.capacity.saturation import Block
from lagwise.domain.what_changed.levels import Level, WorkStep, levels_between, per_message, with_enough_work
from lagwise_dashboard.pages.group.group_charts import ChartMark

Shift = tuple[datetime, str]


def shifts_of(work: pa.Table, history: pa.Table) -> list[Shift]:
    """Moment and words of each shift, in order of time: of T1 and T2 (``work``, of
    :func:`lagwise_dashboard.queries.time_per_message.history`), and of what is written (``history`` of the group)."""
    return sorted([*_of_work(work.to_pylist()), *_of_written(history.to_pylist())])


def marks(shifts: list[Shift]) -> list[ChartMark]:
    """The shifts as marks."""
    return [ChartMark(at, text) for at, text in shifts]


def sentence(shifts: list[Shift], now: datetime, *, most: int = 5) -> str:
    """The latest shifts in one line of text; empty without any."""
    if not shifts:
        return ""
    told = "; ".join(f"{text} at {humanise.clock(at, now)}" for at, text in shifts[-most:])
    return f"Changes of level: {told}."


def _of_work(rows: list[Mapping[str, Any]]) -> Iterator[Shift]:
    steps = with_enough_work(
        [
            WorkStep(
                start=row["at"], messages=row["messages"], t1_seconds=row["t1_seconds"], t2_seconds=row["t2_seconds"]
            )
            for row in rows
        ]
    )
    is_split = all(step.t2_seconds is not None for step in steps)
    yield from _worded(
        levels_between(per_message(steps, [step.t1_seconds for step in steps])),
        "T1" if is_split else "time per message",
        humanise.precise_duration,
    )
    if is_split:
        t2 = [step.t2_seconds or 0.0 for step in steps]
        yield from _worded(levels_between(per_message(steps, t2)), "T2", humanise.precise_duration)


def _of_written(rows: list[Mapping[str, Any]]) -> Iterator[Shift]:
    known = [row for row in rows if row["produce_rate_per_second"] is not None]
    blocks = [
        Block(start, end, later["produce_rate_per_second"] * (end - start))
        for earlier, later in pairwise(known)
        if (end := later["at"].timestamp()) > (start := earlier["at"].timestamp())
    ]
    yield from _worded(levels_between(blocks), "written", humanise.significant_rate)


def _worded(levels: list[Level], name: str, shown: Callable[[float], str]) -> Iterator[Shift]:
    for level in levels:
        yield level.at, f"{name} {shown(level.before)} → {shown(level.now)}"
