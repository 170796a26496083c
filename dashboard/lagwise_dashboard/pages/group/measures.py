"""What the charts of a group's partitions can show: lag, age, or lag as a multiple of the median."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from lagwise.domain import humanise
from lagwise.links.parameters import PartitionMeasure
from lagwise_dashboard import plot_theme


@dataclass(frozen=True, slots=True)
class Unit:
    """What values are divided by to be drawn, how D3 formats them, and what stands behind them then."""

    scale: float
    format: str
    suffix: str


@dataclass(frozen=True, slots=True)
class Measure:
    """One measure of partitions: what it is called on its button and above the charts, and in which unit values up to
    some are drawn.

    In the heat map a stronger colour means ``more``. It goes with the ``strength`` of a value, from the ``least`` on
    and at least to ``min_most``, so that a handful of records is never drawn at full strength. Of the ``ticks``, the
    scale shows those for which there is room.
    """

    label: str
    title: str
    more: str
    strength: Callable[[Any], Any]
    least: float
    min_most: float
    ticks: tuple[float, ...]
    words: Callable[[float], str]
    unit: Callable[[float], Unit]


def _unit_of_age(most: float) -> Unit:
    scale, name = plot_theme.time_unit(most)
    return Unit(scale, ",.3~r", f" {name}")


MEASURES = {
    PartitionMeasure.LAG: Measure(
        "Lag",
        "Lag, records",
        "more unread records",
        # The cube root: a tenth of the largest is drawn at half its strength, a thousandth at a tenth. On a logarithmic
        # scale a harmless lag of ten would be as strong as a quarter of one of ten thousand.
        lambda lag: np.cbrt(np.maximum(lag, 0.0)),
        0.0,
        100.0,
        tuple(10.0**n for n in range(12, 0, -1)),
        humanise.count,
        lambda _: Unit(1.0, ",.0f", " records"),
    ),
    PartitionMeasure.AGE: Measure(
        "Age",
        "Age of the oldest unread record",
        "an older unread record",
        np.sqrt,
        0.0,
        60.0,
        (2_592_000.0, 604_800.0, 86_400.0, 21_600.0, 3_600.0, 600.0, 60.0, 10.0),
        humanise.duration,
        _unit_of_age,
    ),
    PartitionMeasure.RELATIVE: Measure(
        "Against the median",
        "Lag, times the median of the partitions",
        "more times the median",
        lambda times: np.log(np.maximum(times, 1.0)),
        1.0,
        4.0,
        tuple(n * 10.0**power for power in range(9, -1, -1) for n in (5.0, 2.0, 1.0)),
        lambda times: f"{humanise.significant(times)} ×",
        lambda _: Unit(1.0, ",.3~r", " ×"),
    ),
}
