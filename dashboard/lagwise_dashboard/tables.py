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
from lagwise_dashboard import appearance, escaping

NumberCells = Sequence[float | None]
MomentCells = Sequence[datetime | None]
Flags = Sequence[bool | None]


class ColumnKind(StrEnum):
    """How the cells of a column are drawn."""

    TEXT = "text"
    NUMBER = "number"
    BADGES = "badges"
    SHARE = "share"
    TREND = "trend"


@dataclass(frozen=True, slots=True)
class TableColumn:
    """One column, with a cell for each row.

    ``cells`` is what is read: text, a list of badges, or the points of a trend. ``order`` is what the column sorts by
    where that is not the text. ``raw`` is what a CSV holds: values by the names of their columns there, which carry
    the unit. ``width`` is in pixels: a column that ``wraps`` is as wide, another one at most.
    """

    title: str
    kind: ColumnKind
    cells: Sequence[Any]
    order: NumberCells | None = None
    raw: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    help: str | None = None
    width: int | None = None
    wraps: bool = False
    #: Of badges, by label.
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


def text(title: str, values: Iterable[object], *, width: int | None = None, wraps: bool = False) -> TableColumn:
    """Words and outside names. Control characters and changes of direction are made visible."""
    cells = [None if value in (None, "") else str(value) for value in values]
    shown = [None if cell is None else escaping.visible(cell) for cell in cells]
    return TableColumn(title, ColumnKind.TEXT, shown, raw={_slug(title): cells}, width=width, wraps=wraps)


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
    return _moments(title, at, [None if one is None else humanise.clock(one, now) for one in at])


def ago(title: str, at: MomentCells, now: datetime, *, never: str | None = None) -> TableColumn:
    """Moments by how long ago they were."""
    return _moments(title, at, [never if one is None else f"{humanise.since(one, now)} ago" for one in at])


def trend(title: str, series: Sequence[Sequence[float] | None]) -> TableColumn:
    """A small chart in each row, on a scale of its own. It is not in a CSV."""
    return TableColumn(title, ColumnKind.TREND, series)


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


def _slug(title: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", title.lower()).strip("_") or "name"


def _name(title: str, unit: str) -> str:
    return "_".join(filter(None, (_slug(title), unit)))
