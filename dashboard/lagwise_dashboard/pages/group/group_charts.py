"""The history of one group on one time axis: status, age of the oldest unread record, lag, records written and read,
and the time per message."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa

from lagwise.domain import humanise
from lagwise_dashboard import appearance, escaping, plot_theme
from lagwise_dashboard.plot_theme import Panel, Plain

_PANELS = (
    Panel("Status", 21),
    Panel("Age of the oldest unread record", 125),
    Panel("Lag, records", 70),
    Panel("Records per second, written and read", 125),
)
#: The rows of the panels, from the top on.
_STATUS, _AGE, _LAG, _RATES, _WORK = range(1, 6)
#: Pixels of the words on a status: at most, and at least.
_STATUS_FONT, _SMALL_STATUS_FONT = 11, 9
#: What the box at the crosshair says of a number. The browser writes it: a text for each point is sent in each refresh.
_COUNT, _RATE = "%{y:,} records", "%{y:,.3~r}/s"
_WORK_PANEL = "Time per message on {topic}"
_WORK_HEIGHT = 110
_FILL, _FAINT_FILL = "rgba(13,148,136,0.14)", "rgba(13,148,136,0.05)"
#: More vertical lines than this would hide the charts: further marks are drawn as triangles only.
MAX_LINES = 12
#: The newest marks are drawn up to this many; the caption counts the others.
MAX_MARKS = 200


@dataclass(frozen=True, slots=True)
class ChartMark:
    """Something that happened: a triangle on the time axis, and where there are few a thin line across the charts.

    ``text`` may hold outside names. A ``minor`` one gives way first where there are many.
    """

    at: datetime
    text: str
    dash: str = "dot"
    colour: str = plot_theme.MARK
    minor: bool = True


@dataclass(frozen=True, slots=True)
class Before:
    """The same hours of an earlier day: how long ``ago``, in ``words``, and its points (columns of
    :func:`lagwise_dashboard.queries.group.history`, with nulls where there is a gap)."""

    ago: timedelta
    words: str
    points: dict[str, list[Any]]


def before_of(history: pa.Table, ago: timedelta, words: str, bucket_seconds: float) -> Before:
    """The history of an earlier day."""
    return Before(ago, words, plot_theme.with_gaps(history, bucket_seconds))


def chart(
    history: pa.Table,
    marks: Sequence[ChartMark],
    since: datetime,
    until: datetime,
    *,
    bucket_seconds: float = 0.0,
    objective_seconds: float | None,
    work: pa.Table | None,
    before: Before | None,
    zoom: str,
) -> Plain:
    """The charts over a span, with a point for each ``bucket_seconds`` (0: as they come). ``objective_seconds`` draws
    the age from which a steady lag is called ``lagging``, ``work`` (of
    :func:`lagwise_dashboard.queries.time_per_message.history`) the time per message where it is measured, ``before``
    the same hours of an earlier day.

    ``marks`` come latest first.
    """
    panels = [*_PANELS]
    if work is not None and work.num_rows:
        topic = escaping.plotly(work["topic"][0].as_py(), max_length=80)
        panels.append(Panel(_WORK_PANEL.format(topic=topic), _WORK_HEIGHT))
    upper = len(panels)
    made = plot_theme.plain_stack(panels, zoom=zoom)
    points = plot_theme.with_gaps(history, bucket_seconds)
    _status(made, points, until)
    scale, unit = plot_theme.time_unit(max((v for v in points["lag_seconds"] if v is not None), default=0.0))
    if before is not None:
        _lines_before(made, before)
    _lines(made, points, scale)
    rates = ("produce_rate_per_second", "consume_rate_per_second")
    for row, columns in ((_AGE, ("lag_seconds",)), (_LAG, ("lag",)), (_RATES, rates)):
        if all(value is None for column in columns for value in points[column]):
            _unknown(made, row)
    if work is not None and work.num_rows:
        _time_per_message(made, plot_theme.with_gaps(work))
    made["layout"]["xaxis"]["range"] = [since, until]
    plot_theme.value_axis(made, _AGE)["ticksuffix"] = f" {unit}"
    plot_theme.value_axis(made, _LAG)["nticks"] = 4
    plot_theme.value_axis(made, _RATES)["ticksuffix"] = " /s"
    plot_theme.value_axis(made, _STATUS).update(visible=False, range=[0, 1])
    lines = []
    if objective_seconds is not None and _worth_drawing(objective_seconds, points["lag_seconds"]):
        lines = [_objective(made, objective_seconds, scale)]
    made["layout"]["shapes"] = [*lines, *_marks(made, marks[:MAX_MARKS], rows=range(_AGE, upper + 1))]
    return made


def _lines(made: Plain, points: dict[str, list[Any]], scale: float) -> None:
    at = points["at"]
    is_bound = [bool(b) for b in points["lag_seconds_is_lower_bound"]]
    ages = [None if v is None else v / scale for v in points["lag_seconds"]]
    texts = [
        "" if status is None else f"{humanise.duration(v, lower_bound=b)}, {appearance.of_status(status).word}"
        for v, b, status in zip(points["lag_seconds"], is_bound, points["status"], strict=True)
    ]
    # The line is drawn up to its first point of the other kind, so that it is not broken there.
    reaches = [b or any(is_bound[max(0, i - 1) : i + 2]) for i, b in enumerate(is_bound)]
    for name, extra, dash, fill, shown in (
        ("age", "oldest unread", "solid", _FILL, [not b for b in is_bound]),
        ("age, at least", "oldest unread (lower bound)", "dot", _FAINT_FILL, reaches),
    ):
        if name != "age" and not any(is_bound):
            continue
        its = [v if s else None for v, s in zip(ages, shown, strict=True)]
        filled = {"fill": "tozeroy", "fillcolor": fill}
        if None in its:
            plot_theme.add(made, _AGE, *plot_theme.areas(at, its, fill))
            filled = {}
        plot_theme.add(
            made, _AGE,
            plot_theme.packed_line(
                at, its, name=name, line={"color": plot_theme.LAG, "width": 2, "dash": dash},
                customdata=[text if s else "" for text, s in zip(texts, shown, strict=True)],
                hovertemplate="%{customdata}<extra>" + extra + "</extra>",
                showlegend=any(is_bound) and any(shown), **filled,
            ),
        )  # fmt: skip
    plot_theme.add(
        made, _LAG,
        plot_theme.packed_line(
            at, points["lag"], name="lag", line={"color": plot_theme.LAG, "width": 1.8}, showlegend=False,
            hovertemplate=_COUNT + "<extra>lag</extra>",
        ),
    )  # fmt: skip
    for name, column, colour in (
        ("written", "produce_rate_per_second", plot_theme.PRODUCED),
        ("read", "consume_rate_per_second", plot_theme.CONSUMED),
    ):
        plot_theme.add(
            made, _RATES,
            plot_theme.packed_line(
                at, points[column], name=name, line={"color": colour, "width": 1.8},
                hovertemplate=_RATE + "<extra>" + name + "</extra>",
            ),
        )  # fmt: skip


def _lines_before(made: Plain, before: Before) -> None:
    """What was written and unread in the same hours of an earlier day, as thin dotted lines."""
    at = [one + before.ago for one in before.points["at"]]
    for column, row, colour, shown in (
        ("lag", _LAG, plot_theme.LAG, _COUNT),
        ("produce_rate_per_second", _RATES, plot_theme.PRODUCED, _RATE),
    ):
        plot_theme.add(
            made, row,
            plot_theme.packed_line(
                at, before.points[column], name=before.words, line={"color": colour, "width": 1, "dash": "dot"},
                hovertemplate=shown + "<extra>" + before.words + "</extra>",
                showlegend=row == _RATES,
            ),
        )  # fmt: skip


def _time_per_message(made: Plain, points: dict[str, list[Any]]) -> None:
    """T1 and T2 in milliseconds, in the panel below the rates."""
    is_whole = all(seconds is None for seconds in points["t2_seconds"])
    lines = [("whole time" if is_whole else "T1 (waiting)", "t1_seconds", plot_theme.SERIES[3])]
    lines += [] if is_whole else [("T2 (CPU)", "t2_seconds", plot_theme.SERIES[5])]
    for name, column, colour in lines:
        plot_theme.add(
            made, _WORK,
            plot_theme.packed_line(
                points["at"], [None if v is None else v * 1000 for v in points[column]],
                name=name, line={"color": colour, "width": 1.8},
                customdata=["" if v is None else humanise.precise_duration(v) for v in points[column]],
                hovertemplate="%{customdata}<extra>" + name + "</extra>",
            ),
        )  # fmt: skip
    plot_theme.value_axis(made, _WORK)["ticksuffix"] = " ms"


def _status(made: Plain, points: dict[str, list[Any]], until: datetime) -> None:
    """The status over time as a band. Its words are in the band where there is room for them, and always in the hover
    text, so that colour does not stand alone."""
    runs = [(start, end, appearance.of_status(status)) for start, end, status in _runs(points, until)]
    band = {
        "type": "bar", "orientation": "h", "base": [start for start, _, _ in runs], "y": [0.5] * len(runs), "width": 1,
        "x": [1000 * (end - start).total_seconds() for start, end, _ in runs],
        "marker": {"color": [badge.colour for _, _, badge in runs], "line": {"width": 0}},
        "text": [badge.label for _, _, badge in runs], "textposition": "inside", "insidetextanchor": "middle",
        "textangle": 0, "textfont": {"size": _STATUS_FONT, "color": "#FFFFFF"}, "hoverinfo": "skip",
        "showlegend": False,
    }  # fmt: skip
    # Bars have no hover text of their own where it is that of a moment.
    areas = [
        {
            "type": "scatter", "x": [start, end, end, start], "y": [0, 0, 1, 1], "mode": "lines", "line": {"width": 0},
            "fill": "toself", "fillcolor": "rgba(0,0,0,0)", "hoveron": "fills", "hoverinfo": "text",
            "text": badge.label, "showlegend": False,
        }
        for start, end, badge in runs
    ]  # fmt: skip
    plot_theme.add(made, _STATUS, band, *areas)
    # What would be smaller than that to fit is left out: how wide the band is only the browser knows.
    made["layout"].update(barmode="overlay", uniformtext={"mode": "hide", "minsize": _SMALL_STATUS_FONT})


def _runs(points: dict[str, list[Any]], until: datetime) -> list[tuple[datetime, datetime, str]]:
    """Stretches of one status; a gap in the history ends one."""
    runs: list[tuple[datetime, datetime, str]] = []
    previous: datetime | None = None
    for at, status in zip(points["at"], points["status"], strict=True):
        if status is None:
            previous = None
            continue
        if runs and previous is not None:
            start, _, last = runs[-1]
            runs[-1] = (start, at, last)
        if not runs or previous is None or runs[-1][2] != status:
            runs.append((at, at, status))
        previous = at
    return [run for run in runs if run[1] > run[0] and run[0] <= until]


def _unknown(made: Plain, row: int) -> None:
    """Nothing to draw: the panel says so, and has no axis."""
    made["layout"]["annotations"].append({
        "text": "unknown", "x": 0.5, "y": 0.5, "xref": "x domain", "yref": f"y{row} domain", "showarrow": False,
        "font": {"size": 12, "color": plot_theme.MARK},
    })  # fmt: skip
    plot_theme.value_axis(made, row).update(showticklabels=False, showgrid=False)


def _objective(made: Plain, seconds: float, scale: float) -> dict[str, Any]:
    """Name the objective in the title of the panel of ages, where nothing crosses it. Returns its line."""
    made["layout"]["annotations"][_AGE - 1]["text"] += f"; dashed: objective {humanise.duration(seconds)}"
    return {
        "type": "line", "xref": "x domain", "x0": 0, "x1": 1, "yref": f"y{_AGE}", "y0": seconds / scale,
        "y1": seconds / scale, "line": {"color": plot_theme.MARK, "width": 1, "dash": "dash"},
    }  # fmt: skip


def _marks(made: Plain, marks: Sequence[ChartMark], rows: Iterable[int]) -> list[dict[str, Any]]:
    """Draw the triangles. Returns the lines of the marks that have some."""
    if marks:
        plot_theme.add(made, _RATES, {
            "type": "scatter", "mode": "markers", "x": [mark.at for mark in marks], "y": [0] * len(marks),
            "marker": {"symbol": "triangle-up", "size": 9, "color": [mark.colour for mark in marks]},
            "customdata": [escaping.plotly(mark.text, max_length=120) for mark in marks],
            "hovertemplate": "%{customdata}<extra></extra>", "showlegend": False,
        })  # fmt: skip
    with_lines = marks if len(marks) <= MAX_LINES else [mark for mark in marks if not mark.minor][:MAX_LINES]
    return [
        {
            "type": "line", "xref": "x", "yref": f"y{row} domain", "x0": mark.at, "x1": mark.at, "y0": 0, "y1": 1,
            "line": {"color": mark.colour, "width": 1, "dash": mark.dash},
        }
        for mark in with_lines
        for row in rows
    ]  # fmt: skip


def _worth_drawing(objective: float, values: Sequence[float | None]) -> bool:
    """An objective far above everything would only flatten the line."""
    largest = max((v for v in values if v is not None), default=0.0)
    return objective <= 2.5 * largest
