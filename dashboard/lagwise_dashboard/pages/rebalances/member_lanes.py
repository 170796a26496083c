"""The timeline of a group: how many rebalances there were when, and a lane for each member with what it owned."""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import plotly.graph_objects as go

from lagwise.domain import humanise
from lagwise_dashboard import escaping, plot_theme
from lagwise_dashboard.plot_theme import Panel
from lagwise_dashboard.queries.base import Row
from lagwise_dashboard.widgets import rebalance_hours
from lagwise_dashboard.widgets.partition_names import owned

#: Of more lanes than this, those that changed most are drawn until all are asked for.
MAX_LANES = 60
#: Pixels of a lane while there are fewer than _MANY_LANES, and from then on.
_LANE, _NARROW_LANE, _MANY_LANES = 26, 15, 24
#: Pixels of the bars of rebalances, and of the free space above the lanes.
_REBALANCES, _ABOVE_LANES = 56, 40
_MAX_NAME_LENGTH = 34
#: The span is cut into this many steps, each wide enough for a number: the rebalances of a step are one bar, and
#: shorter assignments of a member are joined.
_STEPS = 60
#: With more rebalances than this, their bands would cover the lanes and are not drawn.
_MAX_BANDS = 20
_OWNS, _IDLE, _UNSETTLED = "#0D9488", "#64748B", "#B45309"
_MAX_TEXT_LENGTH = 160
_DIGITS = re.compile(r"(\d+)")


@dataclass(frozen=True, slots=True)
class Lane:
    """The periods of one member, in order of time. A member that left and came back has one lane if it has a static id,
    or if no other of its name was there meanwhile."""

    name: str
    periods: tuple[Row, ...]


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
    """Members by name, numbers in it by value, each period in the first lane of its name that is free."""
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
    return sorted(result, key=lambda lane: _natural(lane.name))


def most_changed(result: Sequence[Lane]) -> list[Lane]:
    """The MAX_LANES lanes that changed most, in the same order."""
    most = sorted(result, key=lambda lane: -len(lane.periods))[:MAX_LANES]
    names = {lane.name for lane in most}
    return [lane for lane in result if lane.name in names]


def chart(
    shown: Sequence[Lane], rebalances: Sequence[Row], since: datetime, until: datetime, *, zoom: str
) -> go.Figure:
    """The lanes over a span, below the rebalances. A bar of a lane says how many partitions the member owned, or how
    often that changed where single changes are too near to each other."""
    height = (_LANE if len(shown) < _MANY_LANES else _NARROW_LANE) * len(shown)
    made = plot_theme.stack((Panel("Rebalances", _REBALANCES), Panel("Members", height, _ABOVE_LANES)), zoom=zoom)
    step = (until - since) / _STEPS
    bars = [bar for number, lane in enumerate(shown) for bar in _bars(number, lane, step)]
    for kind, name in ((_OWNS, "owns partitions"), (_IDLE, "owns nothing"), (_UNSETTLED, "changed this often")):
        _draw(made, [bar for bar in bars if bar.kind == kind], shown, step, colour=kind, name=name)
    _count(made, rebalances, since, step)
    if len(rebalances) <= _MAX_BANDS:
        _bands(made, rebalances, len(shown))
    made.update_layout(hovermode="closest", barmode="overlay", bargap=0.25, uniformtext={"mode": "hide", "minsize": 8})
    made.update_xaxes(range=[since, until])
    made.update_yaxes(visible=False, row=1, col=1)
    made.update_yaxes(
        tickvals=list(range(len(shown))),
        ticktext=[escaping.plotly(lane.name, max_length=_MAX_NAME_LENGTH) for lane in shown],
        range=[len(shown) - 0.5, -0.5], showgrid=False, rangemode="normal", row=2, col=1,
    )  # fmt: skip
    return made


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
    made: go.Figure, bars: Sequence[_Bar], shown: Sequence[Lane], step: timedelta, *, colour: str, name: str
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
        row=2, col=1,
    )  # fmt: skip


def _count(made: go.Figure, rebalances: Sequence[Row], since: datetime, step: timedelta) -> None:
    """How many rebalances there were when."""
    by_step: dict[int, list[Row]] = defaultdict(list)
    for row in rebalances:
        by_step[(row["at"] - since) // step].append(row)
    if not by_step:
        return
    made.add_trace(
        go.Bar(
            x=[since + (number + 0.5) * step for number in by_step], y=[len(its) for its in by_step.values()],
            width=[1000 * step.total_seconds()] * len(by_step), name="rebalances", showlegend=False,
            marker={"color": plot_theme.PRODUCED, "line": {"width": 0}},
            text=[f"{len(its)}" for its in by_step.values()], textposition="outside", cliponaxis=False,
            constraintext="none",
            textfont={"size": 10}, textangle=0,
            customdata=[_seen(its) for its in by_step.values()], hovertemplate="%{customdata}<extra></extra>",
        ),
        row=1, col=1,
    )  # fmt: skip


def _seen(rebalances: Sequence[Row]) -> str:
    """Newest first."""
    newest, oldest = rebalances[0], rebalances[-1]
    if len(rebalances) == 1:
        text = f"{newest['at']:%H:%M:%S} UTC: {rebalance_hours.details(newest)}"
    else:
        text = (
            f"{len(rebalances)} rebalances, {oldest['at']:%H:%M:%S} to {newest['at']:%H:%M:%S} UTC; the last: "
            f"{rebalance_hours.details(newest)}"
        )
    return escaping.plotly(text, max_length=_MAX_TEXT_LENGTH)


def _bands(made: go.Figure, rebalances: Sequence[Row], count: int) -> None:
    """A band across the lanes for each rebalance, as wide as it took."""
    made.layout.shapes += tuple(
        {
            "type": "rect", "xref": "x2", "yref": "y2",
            "x0": row["at"] - timedelta(seconds=row["duration_seconds"] or 0.0), "x1": row["at"],
            "y0": -0.5, "y1": count - 0.5, "layer": "above", "fillcolor": "rgba(217,119,6,0.25)",
            "line": {"width": 1, "color": plot_theme.PRODUCED, "dash": "dot"},
        }
        for row in rebalances
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
