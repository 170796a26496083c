"""A lane for each member of a group: when it was there, and what it owned."""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import plotly.graph_objects as go

from lagwise.domain import humanise
from lagwise_dashboard import escaping
from lagwise_dashboard.queries.base import Row
from lagwise_dashboard.widgets.partition_names import owned

#: Of more lanes than this, those that changed most are drawn until all are asked for.
MAX_LANES = 60
#: Pixels of a lane while there are fewer than _MANY_LANES, and from then on.
_LANE, _NARROW_LANE, _MANY_LANES = 26, 15, 24
_MAX_NAME_LENGTH = 34
_OWNS, _IDLE, _UNSETTLED = "#0D9488", "#64748B", "#B45309"
_MAX_TEXT_LENGTH = 160
#: Stays that are a smaller share of the time than this are those of a member that restarts.
_MIN_STAY_SHARE = 0.1
_DIGITS = re.compile(r"(\d+)")


@dataclass(frozen=True, slots=True)
class Lane:
    """The periods of one member, in order of time. A member that left and came back has one lane if it has a static id,
    or if no other of its name was there meanwhile."""

    name: str
    periods: tuple[Row, ...]

    @property
    def first_seen(self) -> datetime:
        at: datetime = self.periods[0]["from_at"]
        return at

    @property
    def last_seen(self) -> datetime:
        at: datetime = self.periods[-1]["to_at"]
        return at

    @property
    def stays(self) -> list[timedelta]:
        """How long each of its members was in the group without a break, whatever it owned, in order of time."""
        result: list[timedelta] = []
        before: Row | None = None
        for row in self.periods:
            lasted = row["to_at"] - row["from_at"]
            if before and before["member_id"] == row["member_id"] and before["to_at"] == row["from_at"]:
                result[-1] += lasted
            else:
                result.append(lasted)
            before = row
        return result


@dataclass(frozen=True, slots=True)
class _Bar:
    """A bar of a lane: one period, or several that are too short to draw one by one."""

    lane: int
    periods: tuple[Row, ...]

    @property
    def begin(self) -> datetime:
        at: datetime = self.periods[0]["from_at"]
        return at

    @property
    def end(self) -> datetime:
        at: datetime = self.periods[-1]["to_at"]
        return at

    @property
    def kind(self) -> str:
        if len(self.periods) > 1:
            return _UNSETTLED
        return _OWNS if self.periods[0]["assigned_partitions"] else _IDLE

    def label(self, step: timedelta) -> str:
        """The text inside the bar; empty where there is no room."""
        is_crowd = len(self.periods) > 1
        if self.end - self.begin < step * (1.5 if is_crowd else 0.7):
            return ""
        return f"{len(self.periods)}×" if is_crowd else f"{self.periods[0]['assigned_partitions']}"


def lanes(periods: Sequence[Row]) -> list[Lane]:
    """Members in the order in which they were first seen, and of those seen at once by name, numbers in it by value.
    Each period is in the first lane of its name that is free."""
    named: dict[str, list[list[Row]]] = defaultdict(list)
    for row in sorted(periods, key=lambda r: (r["from_at"], r["member_id"])):
        its = named[_name(row)]
        lane = next((lane for lane in its if lane[-1]["member_id"] == row["member_id"]), None) or next(
            (lane for lane in its if lane[-1]["to_at"] < row["from_at"]), None
        )
        if lane is None:
            its.append([row])
        else:
            lane.append(row)
    result = [
        Lane(name if len(its) == 1 else f"{name} #{number}", tuple(lane))
        for name, its in named.items()
        for number, lane in enumerate(its, start=1)
    ]
    return sorted(result, key=lambda lane: (lane.first_seen, _natural(lane.name)))


def that_stay(result: Sequence[Lane]) -> list[Lane]:
    """The lanes of members that stayed for at least half of the time in which any was there, in the same order. Stays
    shorter than a tenth of that time do not count.

    The others come and go: pods that get a new name with every start, those that are seldom alive when a sample is
    taken, and those that restart again and again under their own name. Each of their lanes would be many short bars.
    """
    first_seen = min((lane.first_seen for lane in result), default=None)
    last_seen = max((lane.last_seen for lane in result), default=None)
    if first_seen is None or last_seen is None:
        return []
    time = last_seen - first_seen
    return [lane for lane in result if _lasted(lane, time * _MIN_STAY_SHARE) >= time / 2]


def _lasted(lane: Lane, at_least: timedelta) -> timedelta:
    """The time of all stays of a lane that lasted so long at least."""
    return sum((stay for stay in lane.stays if stay >= at_least), timedelta())


def most_changed(result: Sequence[Lane]) -> list[Lane]:
    """The MAX_LANES lanes that changed most, in the same order."""
    most = sorted(result, key=lambda lane: -len(lane.periods))[:MAX_LANES]
    names = {lane.name for lane in most}
    return [lane for lane in result if lane.name in names]


def height(count: int) -> int:
    """Pixels of so many lanes."""
    return (_LANE if count < _MANY_LANES else _NARROW_LANE) * count


def draw(made: go.Figure, shown: Sequence[Lane], step: timedelta, *, row: int) -> None:
    """Draw the lanes into a row of a stack. A bar says how many partitions the member owned, or how often that changed
    where single changes are less than a ``step`` from each other."""
    bars = [bar for number, lane in enumerate(shown) for bar in _bars(number, lane, step)]
    for kind, name in ((_OWNS, "owns partitions"), (_IDLE, "owns nothing"), (_UNSETTLED, "changed this often")):
        _draw(made, [bar for bar in bars if bar.kind == kind], shown, step, colour=kind, name=name, row=row)
    made.update_yaxes(
        tickvals=list(range(len(shown))),
        ticktext=[escaping.plotly(lane.name, max_length=_MAX_NAME_LENGTH) for lane in shown],
        range=[len(shown) - 0.5, -0.5], showgrid=False, rangemode="normal", row=row, col=1,
    )  # fmt: skip


def _bars(number: int, lane: Lane, step: timedelta) -> Iterator[_Bar]:
    """The periods, those joined that are shorter than a step and no further than one from each other."""
    crowd: list[Row] = []
    for row in lane.periods:
        is_short = row["to_at"] - row["from_at"] < step
        if crowd and (not is_short or row["from_at"] - crowd[-1]["to_at"] > step):
            yield _Bar(number, tuple(crowd))
            crowd = []
        if is_short:
            crowd.append(row)
        else:
            yield _Bar(number, (row,))
    if crowd:
        yield _Bar(number, tuple(crowd))


def _draw(
    made: go.Figure, bars: Sequence[_Bar], shown: Sequence[Lane], step: timedelta, *, colour: str, name: str, row: int
) -> None:
    if not bars:
        return
    made.add_trace(
        go.Bar(
            orientation="h", y=[bar.lane for bar in bars], base=[bar.begin for bar in bars],
            x=[1000 * max(step / 3, bar.end - bar.begin).total_seconds() for bar in bars],
            name=name, width=0.72,
            marker={"color": colour, "line": {"width": 1, "color": "rgba(255,255,255,0.7)"}},
            text=[bar.label(step) for bar in bars], textposition="inside", insidetextanchor="middle", textangle=0,
            textfont={"color": "#FFFFFF", "size": 11 if len(shown) < _MANY_LANES else 9}, constraintext="none",
            customdata=[_in_words(bar, shown[bar.lane].name) for bar in bars],
            hovertemplate="%{customdata}<extra></extra>",
        ),
        row=row, col=1,
    )  # fmt: skip


def _natural(name: str) -> list[tuple[int, str]]:
    """``worker-2`` before ``worker-10``."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in _DIGITS.split(name) if part]


def _name(row: Row) -> str:
    if row["static_instance_id"]:
        return escaping.visible(row["static_instance_id"])
    client, host = escaping.visible(row["client_id"]), escaping.visible(row["host"]).removeprefix("/")
    return " · ".join(filter(None, (client, host))) or escaping.visible(row["member_id"])


def _in_words(bar: _Bar, name: str) -> str:
    lasted = humanise.duration((bar.end - bar.begin).total_seconds())
    if len(bar.periods) > 1:
        counts = [row["assigned_partitions"] for row in bar.periods]
        each = f"{min(counts)}" if min(counts) == max(counts) else f"{min(counts)} to {max(counts)}"
        text = f"{name}: {len(counts)} assignments within {lasted}, of {each} partitions; the last: "
    else:
        text = f"{name}: {lasted}, "
    return escaping.plotly(text + (owned(bar.periods[-1]) or "nothing"), max_length=_MAX_TEXT_LENGTH)
