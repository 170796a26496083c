"""Columns of tables, declared by unit: how a column reads, how it sorts, and how it stands in a CSV follow from it.

None is a value that is not known, everywhere.
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

from lagwise.domain import humanise
from lagwise.domain.vocabulary import DISPLAY_ORDER
from lagwise_dashboard import appearance, escaping, time_zone

NumberCells = Sequence[float | None]
MomentCells = Sequence[datetime | None]
Flags = Sequence[bool | None]


#: Where on an axis that ends at 1 everything stands that lies beyond its end.
_BEYOND_THE_AXIS = 1.1
#: One letter for each number, as JavaScript's ``parseInt(letter, 36)`` reads it.
BASE_36 = "0123456789abcdefghijklmnopqrstuvwxyz"


class ColumnKind(StrEnum):
    """How the cells of a column are drawn."""

    TEXT = "text"
    NUMBER = "number"
    BADGES = "badges"
    SHARE = "share"
    TREND = "trend"
    SPAN = "span"
    BULLET = "bullet"


#: Lines of a cell that wraps.
MAX_LINES = 5


@dataclass(frozen=True, slots=True)
class TableColumn:
    """One column, with a cell for each row.

    ``cells`` is what is read: text, a list of badges, the digits of a trend, or the places of a span or a bullet bar
    as shares of the width, with its text. ``order`` is what the column sorts by where that is not the text. ``raw`` is
    what a CSV holds: values by the names of their columns there, which carry the unit. ``width`` is in pixels: a column
    that ``wraps`` is as wide, another one at most.
    """

    title: str
    kind: ColumnKind
    cells: Sequence[Any]
    order: NumberCells | None = None
    raw: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    help: str | None = None
    width: int | None = None
    wraps: bool = False
    #: Of a column that wraps: what needs more lines is cut there, and whole at the pointer and on paper.
    max_lines: int = MAX_LINES
    #: Of spans and bullet bars: the shares of the width at which the axis has a label, and the labels.
    axis: Sequence[tuple[float, str]] = ()
    #: Of badges and bullet bars, by label.
    colours: Mapping[str, str] = field(default_factory=dict)
    #: The order that a click on the heading asks for, where the rows are a page of a list: a name in the list's ORDERS.
    list_order: str | None = None

    @property
    def is_empty(self) -> bool:
        """Whether no row has a value."""
        return all(cell is None or cell == [] for cell in self.cells)

    def with_help(self, help: str) -> "TableColumn":
        """The same with an explanation."""
        return replace(self, help=help)

    def sorts_by(self, list_order: str) -> "TableColumn":
        """The same, where a click on the heading asks the list for this order."""
        return replace(self, list_order=list_order)


def text(
    title: str, values: Iterable[object], *, width: int | None = None, wraps: bool = False, max_lines: int = MAX_LINES
) -> TableColumn:
    """Words and outside names. Control characters and changes of direction are made visible."""
    cells = [None if value in (None, "") else str(value) for value in values]
    shown = [None if cell is None else escaping.visible(cell) for cell in cells]
    raw = {_slug(title): cells}
    return TableColumn(title, ColumnKind.TEXT, shown, raw=raw, width=width, wraps=wraps, max_lines=max_lines)


def badges(title: str, cells: Iterable[Sequence[str]], appearances: Iterable[appearance.Appearance]) -> TableColumn:
    """Labels as badges, with other words; sorts by the order of the appearances."""
    appearances = list(appearances)
    rank = {badge.label: float(place) for place, badge in enumerate(appearances)}
    shown = [[escaping.visible(label) for label in cell] for cell in cells]
    plain = {badge.label: badge.word for badge in appearances}
    return TableColumn(
        title,
        ColumnKind.BADGES,
        shown,
        [rank.get(cell[0], float(len(rank))) if cell else None for cell in shown],
        {_slug(title): ["; ".join(plain.get(label, label) for label in cell) or None for cell in shown]},
        "\n".join(f"{badge.label}: {badge.meaning}" for badge in appearances if badge.meaning),
        colours={badge.label: badge.colour for badge in appearances},
    )


def statuses(title: str, cells: Iterable[Sequence[str]]) -> TableColumn:
    """Badges of statuses (:attr:`appearance.Appearance.label`), with what each of them means."""
    made = badges(title, cells, (appearance.STATUS_APPEARANCES[status] for status in DISPLAY_ORDER))
    return made.with_help(f"The worst that holds.\n{made.help}")


def count(
    title: str,
    values: NumberCells,
    *,
    of: str = "",
    formatter: Callable[[float], str] = humanise.count,
    width: int | None = None,
) -> TableColumn:
    """How many. ``of`` is the unit, where the title is not: ``records``."""
    return _numbers(title, values, formatter, _name(title, of), width)


def number(title: str, values: NumberCells) -> TableColumn:
    """Numbers that are names (partitions, nodes, processes): digit by digit."""
    return _numbers(title, values, str, _slug(title))


def offset(title: str, values: NumberCells) -> TableColumn:
    """Positions in a log, to the last digit."""
    return _numbers(title, values, lambda v: f"{v:,}", _slug(title))


def rate(title: str, per_second: NumberCells, *, unit: str = "", width: int | None = None) -> TableColumn:
    """How many a second. ``unit`` is written behind each where the title does not say it: ``/s``."""
    name = _name(title.removesuffix("/s"), "per_second")
    return _numbers(title, per_second, lambda r: f"{humanise.rate(r)}{unit}", name, width)


def between(
    title: str, lows: NumberCells, highs: NumberCells, *, formatter: Callable[[float], str], of: str
) -> TableColumn:
    """Numbers of which only bounds are known, which may be one; a missing upper bound is unknown."""

    def formatted(low: float | None, high: float | None) -> str | None:
        if low is None:
            return None
        if high is None:
            return f"≥ {formatter(low)}"
        lowest, highest = formatter(low), formatter(high)
        return lowest if lowest == highest else f"{lowest.removesuffix('/s')} to {highest}"

    cells = [formatted(low, high) for low, high in zip(lows, highs, strict=True)]
    name = _name(title, of)
    return TableColumn(
        title, ColumnKind.NUMBER, cells, _order(lows), {f"{name}_at_least": lows, f"{name}_at_most": highs}
    )


def duration(
    title: str,
    seconds: NumberCells,
    *,
    at_least: Flags | None = None,
    at_most: Flags | None = None,
    zero: str | None = None,
    endless: str = "forever",
    width: int | None = None,
) -> TableColumn:
    """Lengths of time. ``at_least`` and ``at_most`` say of which rows only a bound is known."""

    def formatted(length: float | None, *, least: bool | None, most: bool | None) -> str | None:
        if length is None or math.isnan(length):
            return None
        if length == math.inf:
            return endless
        if length <= 0 and zero is not None:
            return zero
        shown = humanise.duration(length, lower_bound=bool(least))
        return None if shown == humanise.DASH else f"≤ {shown}" if most else shown

    bounds = [at_least or [False] * len(seconds), at_most or [False] * len(seconds)]
    name = _name(title, "seconds")
    cells = [formatted(s, least=least, most=most) for s, least, most in zip(seconds, *bounds, strict=True)]
    flags = {f"{name}_is_{what}": f for what, f in (("lower_bound", at_least), ("upper_bound", at_most)) if f}
    return TableColumn(title, ColumnKind.NUMBER, cells, _order(seconds), {name: seconds, **flags}, width=width)


def share(title: str, shares: NumberCells, *, places: int = 1, bar: bool = False) -> TableColumn:
    """Shares of one, as per cent; with a ``bar`` behind the number."""
    made = _numbers(title, shares, lambda s: f"{100 * s:.{places}f} %", _name(title, "share"))
    return replace(made, kind=ColumnKind.SHARE) if bar else made


def ratio(title: str, values: NumberCells) -> TableColumn:
    """One number over another."""
    return _numbers(title, values, lambda v: f"{v:.2f}", _slug(title))


def size(title: str, number_of_bytes: NumberCells) -> TableColumn:
    """Bytes."""
    return _numbers(title, number_of_bytes, humanise.size, _name(title, "bytes"))


def moment(title: str, at: MomentCells, now: datetime) -> TableColumn:
    """Moments by the clock."""
    return _moments(title, at, [None if one is None else time_zone.clock(one, now) for one in at])


def ago(title: str, at: MomentCells, now: datetime, *, never: str | None = None) -> TableColumn:
    """Moments by how long ago they were."""
    return _moments(title, at, [never if one is None else f"{humanise.since(one, now)} ago" for one in at])


def trend(title: str, series: Sequence[Sequence[float] | None]) -> TableColumn:
    """A small chart in each row, on a scale of its own from zero up. It is not in a CSV.

    The cells are its points as digits from 0 to z: finer than it is drawn, and a tenth of the letters of numbers.
    """
    return TableColumn(title, ColumnKind.TREND, [None if points is None else _digits(points) for points in series])


def span(
    title: str, lows: NumberCells, highs: NumberCells, texts: Sequence[str], ticks: Sequence[tuple[float, str]]
) -> TableColumn:
    """A bar from a low to a high value in each row, all on one logarithmic axis. It is not in a CSV.

    ``ticks`` are the labels of the axis by value, the first and the last at its ends; what lies beyond is drawn at the
    end. A row without a low value has no bar, and one without a high value a mark at the low one.
    """
    first, last = math.log(ticks[0][0]), math.log(ticks[-1][0])

    def place(value: float) -> float:
        share = (math.log(max(value, ticks[0][0])) - first) / (last - first)
        return round(min(share, 1.0), 3)

    cells = [
        None if low is None else [place(low), place(low if high is None else high), text]
        for low, high, text in zip(lows, highs, texts, strict=True)
    ]
    return TableColumn(title, ColumnKind.SPAN, cells, axis=[(place(value), label) for value, label in ticks])


@dataclass(frozen=True, slots=True)
class Bullet:
    """A row's bullet bar: all values as shares of the row's limit, at which every row has a line.

    ``label`` is that of the badge whose colour the bar has, and ``text`` what is read instead of it.
    """

    label: str
    #: The bar; an outline goes on up to ``outline`` where that is higher.
    value: float
    outline: float | None
    #: What is expected later, and the upper end of that.
    mark: float | None
    mark_high: float | None
    #: Up to where the limit may really be; None is only known to be no lower than the line.
    limit_high: float | None
    text: str


def bullet(
    title: str,
    bars: Sequence[Bullet | None],
    ticks: Sequence[tuple[float, str]],
    appearances: Iterable[appearance.Appearance],
) -> TableColumn:
    """A bullet bar in each row (S. Few's bullet graph), all on one axis from 0 to the last of the ``ticks``, which are
    its labels by value; the last but one is the limit, at 1. What lies beyond is drawn as an arrow at the end. The
    column sorts by the bars' values; it is not in a CSV."""
    last = ticks[-1][0]

    def place(value: float | None) -> float | None:
        return None if value is None else round(min(value / last, _BEYOND_THE_AXIS), 3)

    cells = [
        None
        if one is None
        else [
            one.label,
            *map(place, (one.value, one.outline, one.mark, one.mark_high, one.limit_high)),
            escaping.visible(one.text),
        ]
        for one in bars
    ]
    return TableColumn(
        title,
        ColumnKind.BULLET,
        cells,
        [None if one is None else one.value for one in bars],
        axis=[(round(value / last, 3), label) for value, label in ticks],
        colours={one.label: one.colour for one in appearances},
    )


def mixed(title: str, values: Sequence[Any], shown: Sequence[str | None]) -> TableColumn:
    """Values of several units in one column, under a title that may be from outside. They do not sort by value."""
    return TableColumn(title, ColumnKind.NUMBER, shown, raw={title: values})


def elapsed_seconds(since: datetime | None, until: datetime) -> float | None:
    """Whole seconds from a moment on; one that lies ahead counts as now."""
    return None if since is None else float(int(max(0.0, (until - since).total_seconds())))


def without_empty(columns: Iterable[TableColumn], *names: str) -> list[TableColumn]:
    """The columns, of those with these titles only the ones that have a value."""
    return [column for column in columns if column.title not in names or not column.is_empty]


def _numbers(
    title: str, values: NumberCells, formatter: Callable[[float], str], name: str, width: int | None = None
) -> TableColumn:
    shown = [None if v is None or math.isnan(v) else formatter(v) for v in values]
    return TableColumn(title, ColumnKind.NUMBER, shown, _order(values), {name: values}, width=width)


def _moments(title: str, at: MomentCells, shown: Sequence[str | None]) -> TableColumn:
    order = [None if one is None else one.timestamp() for one in at]
    return TableColumn(title, ColumnKind.NUMBER, shown, order, {_slug(title): at})


def _order(values: NumberCells) -> list[float | None]:
    return [None if v is None or math.isnan(v) else float(v) for v in values]


def _digits(points: Sequence[float]) -> str:
    """Points as base-36 digits, the largest as z."""
    scale = (len(BASE_36) - 1) / (max(points, default=0.0) or 1.0)
    return "".join(BASE_36[round(scale * value)] for value in points)


def _slug(title: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", title.lower()).strip("_") or "name"


def _name(title: str, unit: str) -> str:
    return "_".join(filter(None, (_slug(title), unit)))
