"""The timeline of a group: its rebalances, and below them a lane for each member, on one time axis.

A few rebalances are counted, and marked in the lanes. Of many, their rate is drawn, and how many members joined and
left.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import plotly.graph_objects as go

from lagwise.domain import humanise
from lagwise_dashboard import escaping, plot_theme, time_zone
from lagwise_dashboard.pages.rebalances import member_lanes
from lagwise_dashboard.pages.rebalances.member_lanes import Lane
from lagwise_dashboard.plot_theme import Panel
from lagwise_dashboard.queries.base import Row
from lagwise_dashboard.widgets import rebalance_hours

#: Of more rebalances than this, their rate is drawn.
MAX_COUNTED = 100
#: Pixels of the charts above the lanes, and of the free space between all of them.
_COUNTS, _RATE, _CHURN, _GAP = 56, 90, 90, 40
#: The span is cut into this many steps, each wide enough for a number: the rebalances of a step are one bar, and
#: shorter assignments of a member are joined.
_STEPS = 60
#: With more rebalances than this, their bands would cover the lanes and are not drawn.
_MAX_BANDS = 20
_JOINED, _LEFT = "#3B82F6", "#8B5CF6"
_MAX_TEXT_LENGTH = 160


@dataclass(frozen=True, slots=True)
class Rates:
    """Rebalances by bins of one ``width``, oldest first, as :func:`lagwise_dashboard.queries.rebalances.rates` reads
    them."""

    bins: Sequence[Row]
    width: timedelta


def chart(
    shown: Sequence[Lane], rebalances: Sequence[Row] | Rates, since: datetime, until: datetime, *, zoom: str
) -> go.Figure:
    """The chart from ``since`` to ``until``, from rebalances one by one, newest first, or from their rates."""
    above = (
        (Panel("Rebalances per minute", _RATE), Panel("Members that joined (up) and left (down)", _CHURN, _GAP))
        if isinstance(rebalances, Rates)
        else (Panel("Rebalances", _COUNTS),)
    )
    below = (Panel("Members", member_lanes.height(len(shown)), _GAP),) if shown else ()
    made = plot_theme.stack((*above, *below), zoom=zoom)
    step = (until - since) / _STEPS
    if shown:
        member_lanes.draw(made, shown, step, row=len(above) + 1)
    if isinstance(rebalances, Rates):
        _draw_rates(made, rebalances)
    else:
        _draw_counts(made, rebalances, since, step)
        if len(rebalances) <= _MAX_BANDS:
            _mark(made, rebalances, len(shown))
    made.update_layout(hovermode="closest", barmode="overlay", bargap=0.25, uniformtext={"mode": "hide", "minsize": 8})
    made.update_xaxes(range=[since, until])
    return made


def _draw_counts(made: go.Figure, rebalances: Sequence[Row], since: datetime, step: timedelta) -> None:
    """How many rebalances there were when, each step a number."""
    made.update_yaxes(visible=False, row=1, col=1)
    by_step: dict[int, list[Row]] = defaultdict(list)
    for row in rebalances:
        by_step[(row["at"] - since) // step].append(row)
    if not by_step:
        return
    made.add_trace(
        go.Bar(
            x=[since + (number + 0.5) * step for number in by_step], y=[len(its) for its in by_step.values()],
            width=_milliseconds(step), name="rebalances", showlegend=False,
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
        text = f"{time_zone.clock(newest['at'], newest['at'])}: {rebalance_hours.details(newest)}"
    else:
        text = (
            f"{len(rebalances)} rebalances, {time_zone.clock(oldest['at'], newest['at'])} to "
            f"{time_zone.clock(newest['at'], newest['at'])}; the last: {rebalance_hours.details(newest)}"
        )
    return escaping.plotly(text, max_length=_MAX_TEXT_LENGTH)


def _mark(made: go.Figure, rebalances: Sequence[Row], count: int) -> None:
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


def _draw_rates(made: go.Figure, rates: Rates) -> None:
    """The rate of rebalances, and below it who joined and left, in the same bins."""
    minutes, words = rates.width / timedelta(minutes=1), humanise.duration(rates.width.total_seconds())
    if rates.width >= timedelta(hours=1):
        made.update_xaxes(hoverformat="%Y-%m-%d %H:%M:%S")
    bar = {
        "x": [row["at"] for row in rates.bins], "offset": 0, "width": _milliseconds(rates.width), "showlegend": False,
    }  # fmt: skip
    made.add_trace(
        go.Bar(
            **bar, y=[row["rebalances"] / minutes for row in rates.bins], name="rebalances",
            marker={"color": plot_theme.PRODUCED, "line": {"width": 0}},
            customdata=[_rate_in_words(row, minutes) for row in rates.bins],
            hovertemplate=f"%{{x}}, {words}: %{{customdata}}<extra></extra>",
        ),
        row=1, col=1,
    )  # fmt: skip
    for name, colour, sign in (("joined", _JOINED, 1), ("left", _LEFT, -1)):
        made.add_trace(
            go.Bar(
                **bar, y=[sign * row[name] for row in rates.bins], name=name,
                marker={"color": colour, "line": {"width": 0}}, customdata=[row[name] for row in rates.bins],
                hovertemplate=f"%{{x}}, {words}: %{{customdata:,}} {name}<extra></extra>",
            ),
            row=2, col=1,
        )  # fmt: skip
    made.update_yaxes(nticks=4, row=1, col=1)
    most = max((max(row["joined"], row["left"]) for row in rates.bins), default=0) or 1
    made.update_yaxes(
        tickvals=[-most, 0, most], ticktext=[f"{most:,}", "0", f"{most:,}"], range=[-1.1 * most, 1.1 * most],
        rangemode="normal", row=2, col=1,
    )  # fmt: skip


def _rate_in_words(row: Row, minutes: float) -> str:
    cause = f"; most often: {escaping.visible(row['cause']).replace('_', ' ')}" if row["cause"] else ""
    rate = humanise.significant(row["rebalances"] / minutes)
    text = f"{humanise.plural(row['rebalances'], 'rebalance')}, {rate} per minute{cause}"
    return escaping.plotly(text, max_length=_MAX_TEXT_LENGTH)


def _milliseconds(width: timedelta) -> float:
    """A width as Plotly wants it on an axis of time."""
    return 1000 * width.total_seconds()
