"""The timeline of a group: a lane for each member, what it owned when, and the rebalances across all of them."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import plotly.graph_objects as go

from lagwise.domain import humanise
from lagwise_dashboard import literal, plot_theme
from lagwise_dashboard.components import happenings
from lagwise_dashboard.components.members import owned
from lagwise_dashboard.queries.base import Row

#: More lanes than this cannot be told apart on a screen; the others are counted.
MOST_LANES = 40
#: More than this many lines across the lanes are a smear.
_MOST_LINES = 60
_LANE_PIXELS, _FRAME_PIXELS = 26, 90
_LONGEST_NAME = 34
_OWNS, _IDLE = "#0D9488", "#94A3B8"
_LONGEST_TOLD = 160


@dataclass(frozen=True, slots=True)
class Lane:
    """The stretches of one member, in order of time: of one that left and came back, too, if it is known by its static
    id, or nobody else of its name was there meanwhile."""

    name: str
    stretches: tuple[Row, ...]


def lanes(stretches: Sequence[Row]) -> list[Lane]:
    """Members by name, each stretch in the first lane of its name that is free. The fullest lanes come first."""
    named: dict[str, list[list[Row]]] = defaultdict(list)
    for row in sorted(stretches, key=lambda r: (r["from_at"], r["member_id"])):
        its = named[_name(row)]
        lane = next((lane for lane in its if lane[-1]["member_id"] == row["member_id"]), None) or next(
            (lane for lane in its if lane[-1]["to_at"] < row["from_at"]), None
        )
        if lane is None:
            its.append([row])
        else:
            lane.append(row)
    found = [
        Lane(name if len(its) == 1 else f"{name} #{number}", tuple(lane))
        for name, its in named.items()
        for number, lane in enumerate(its, start=1)
    ]
    return sorted(found, key=lambda lane: lane.name)


def chart(
    shown: Sequence[Lane], rebalances: Sequence[Row], since: datetime, until: datetime, *, zoom: str
) -> go.Figure:
    """The lanes over a span. A bar says how many partitions the member owned; grey and dotted is none."""
    made = plot_theme.figure(height=_FRAME_PIXELS + _LANE_PIXELS * len(shown), zoom=zoom)
    for owns, colour, name in ((True, _OWNS, "owns partitions"), (False, _IDLE, "owns nothing")):
        _bars(made, shown, owns=owns, colour=colour, name=name)
    _marks(made, rebalances, len(shown))
    made.update_layout(hovermode="closest", barmode="overlay", bargap=0.25)
    made.update_xaxes(range=[since, until])
    made.update_yaxes(
        tickvals=list(range(len(shown))),
        ticktext=[literal.plotly(lane.name, longest=_LONGEST_NAME) for lane in shown],
        range=[len(shown) - 0.5, -1.2],
        showgrid=False,
        rangemode="normal",
    )
    return made


def _bars(made: go.Figure, shown: Sequence[Lane], *, owns: bool, colour: str, name: str) -> None:
    its = [
        (number, row)
        for number, lane in enumerate(shown)
        for row in lane.stretches
        if bool(row["assigned_partitions"]) == owns
    ]
    if not its:
        return
    made.add_trace(
        go.Bar(
            orientation="h", y=[number for number, _ in its], base=[row["from_at"] for _, row in its],
            x=[1000 * max(1.0, (row["to_at"] - row["from_at"]).total_seconds()) for _, row in its],
            name=name, width=0.7,
            marker={"color": colour, "line": {"width": 1, "color": "rgba(255,255,255,0.7)"},
                    "pattern": {"shape": "" if owns else "/", "fgcolor": "#FFFFFF", "size": 5}},
            text=[str(row["assigned_partitions"]) for _, row in its], textposition="inside",
            insidetextanchor="middle", textangle=0, textfont={"color": "#FFFFFF", "size": 11},
            customdata=[_told(row) for _, row in its], hovertemplate="%{customdata}<extra></extra>",
        )
    )  # fmt: skip


def _marks(made: go.Figure, rebalances: Sequence[Row], count: int) -> None:
    """A triangle above the lanes for each rebalance, and a band across them as wide as it took."""
    made.layout.shapes += tuple(
        {
            "type": "rect", "x0": row["at"] - timedelta(seconds=row["duration_seconds"] or 0.0), "x1": row["at"],
            "y0": -0.8, "y1": count - 0.5, "layer": "above", "fillcolor": "rgba(217,119,6,0.25)",
            "line": {"width": 1, "color": plot_theme.PRODUCED, "dash": "dot"},
        }
        for row in rebalances[:_MOST_LINES]
    )  # fmt: skip
    if rebalances:
        made.add_trace(
            go.Scatter(
                x=[row["at"] for row in rebalances], y=[-0.9] * len(rebalances), mode="markers", name="rebalance",
                marker={"symbol": "triangle-down", "size": 10, "color": plot_theme.PRODUCED},
                customdata=[literal.plotly(happenings.details(row), longest=_LONGEST_TOLD) for row in rebalances],
                hovertemplate="%{x|%H:%M:%S} UTC: %{customdata}<extra></extra>",
            )
        )  # fmt: skip


def _name(row: Row) -> str:
    if row["static_instance_id"]:
        return literal.shown(row["static_instance_id"])
    client, host = literal.shown(row["client_id"]), literal.shown(row["host"]).removeprefix("/")
    return " · ".join(filter(None, (client, host))) or literal.shown(row["member_id"])


def _told(row: Row) -> str:
    lasted = humanise.duration((row["to_at"] - row["from_at"]).total_seconds())
    return literal.plotly(f"{_name(row)}: {owned(row) or 'owned nothing'} · {lasted}", longest=_LONGEST_TOLD)
