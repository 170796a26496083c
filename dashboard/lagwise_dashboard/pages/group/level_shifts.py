"""When the time per message and what is written changed their level, and in words how."""

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from enum import StrEnum
from itertools import pairwise
from typing import Any, NamedTuple

import pyarrow as pa

from lagwise.domain import humanise
from lagwise.domain.capacity.saturation import Block
from lagwise.domain.what_changed.levels import Level, WorkStep, levels_between, per_message, with_enough_work


class Quantity(StrEnum):
    """What changed its level, as a reader sees it called."""

    T1 = "T1"
    T2 = "T2"
    TIME_PER_MESSAGE = "time per message"
    WRITTEN = "written"


class Shift(NamedTuple):
    """That a quantity has another level from a moment on. ``text`` says from which to which."""

    at: datetime
    text: str
    quantity: Quantity
    rises: bool


def shifts_of(work: pa.Table, history: pa.Table) -> list[Shift]:
    """The shifts in order of time: of T1 and T2 (``work``, of
    :func:`lagwise_dashboard.queries.time_per_message.history`), and of what is written (``history`` of the group)."""
    return sorted([*_of_work(work.to_pylist()), *_of_written(history.to_pylist())])


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
        Quantity.T1 if is_split else Quantity.TIME_PER_MESSAGE,
        humanise.precise_duration,
    )
    if is_split:
        t2 = [step.t2_seconds or 0.0 for step in steps]
        yield from _worded(levels_between(per_message(steps, t2)), Quantity.T2, humanise.precise_duration)


def _of_written(rows: list[Mapping[str, Any]]) -> Iterator[Shift]:
    known = [row for row in rows if row["produce_rate_per_second"] is not None]
    blocks = [
        Block(start, end, later["produce_rate_per_second"] * (end - start))
        for earlier, later in pairwise(known)
        if (end := later["at"].timestamp()) > (start := earlier["at"].timestamp())
    ]
    yield from _worded(levels_between(blocks), Quantity.WRITTEN, humanise.significant_rate)


def _worded(levels: list[Level], quantity: Quantity, shown: Callable[[float], str]) -> Iterator[Shift]:
    for level in levels:
        text = f"{quantity} {shown(level.before)} → {shown(level.now)}"
        yield Shift(level.at, text, quantity, level.now > level.before)
