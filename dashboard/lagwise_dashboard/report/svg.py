"""The report's charts as SVG: some kilobytes that every browser and many mail programs show, without a script.

The charts are made once, for Plotly, which draws them on the page; with its library in it, a report has 4.8 MB. This
draws what the report's charts consist of: lines, bands and markers over one pair of axes, lines and areas across them,
labels, and a legend. The values that Plotly shows under the pointer are titles, which browsers show there.
"""

import html
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import plotly.graph_objects as go

from lagwise.domain.humanise import significant

_WIDTH = 960
_FONT = 12
#: Width of a character, on average; only the distance of legends and labels depends on it.
_CHARACTER = 6.7
_TEXT, _GRID = "#475569", "#e2e8f0"
_MAX_TICKS = 8
_DAYS = (1, 2, 7, 14, 28, 91, 182, 364)
_DASHES = {"dash": "7 5", "dot": "2 3"}


@dataclass(frozen=True, slots=True)
class _Axis:
    """``low`` to ``high`` (of times: seconds since 1970) over ``pixels``; ``flipped`` counts them from the far end."""

    low: float
    high: float
    pixels: float
    flipped: bool
    ticks: Sequence[tuple[float, str]]
    says: Callable[[float], str]

    def at(self, value: Any) -> float:
        """Where a value lies."""
        return self._pixel((_number(value) - self.low) / (self.high - self.low))

    def place(self, value: Any, reference: str | None) -> float:
        """Where a value lies that is a share of the axis's length if the reference says so."""
        return self._pixel(float(value)) if (reference or "").endswith(("domain", "paper")) else self.at(value)

    def _pixel(self, share: float) -> float:
        return self.pixels * (1 - share if self.flipped else share)


def draw(figure: go.Figure) -> str:
    """The figure as an ``svg`` element. Raises ValueError where it holds what this cannot draw."""
    height = float(figure.layout.height)
    traces = [_checked(trace) for trace in figure.data]
    y_title, x_title = _title(figure.layout.yaxis), _title(figure.layout.xaxis)
    top, bottom, right = 32.0, 24.0 + 18.0 * bool(x_title), 12.0
    y = _axis(figure.layout.yaxis, [v for t in traces for v in t.y], height - top - bottom, flipped=True)
    left = 12.0 + _CHARACTER * max(len(label) for _, label in y.ticks) + 18.0 * bool(y_title)
    x = _axis(figure.layout.xaxis, [v for t in traces for v in t.x], _WIDTH - left - right, flipped=False)
    shapes = [(shape.layer == "below", _shape(shape, x, y)) for shape in figure.layout.shapes]
    inside = [
        *_grid(x, y),
        *(drawn for is_below, drawn in shapes if is_below),
        *_traces(traces, x, y),
        *(drawn for is_below, drawn in shapes if not is_below),
        *_values(traces, x, y),
    ]
    outside = [
        *_legend(traces),
        *(_text(left + x.at(v), height - bottom + 16, label, "middle") for v, label in x.ticks),
        *(_text(left - 6, top + y.at(v) + 4, label, "end") for v, label in y.ticks),
        *(_label(a, left, top, x, y) for a in figure.layout.annotations),
    ]
    if x_title:
        outside.append(_text(left + x.pixels / 2, height - 4, x_title, "middle"))
    if y_title:
        outside.append(_text(0, 0, y_title, "middle", transform=f"translate(12 {top + y.pixels / 2:.0f}) rotate(-90)"))
    plot = _tag("svg", "".join(inside), x=left, y=top, width=x.pixels, height=y.pixels)
    return (
        f'<svg viewBox="0 0 {_WIDTH} {height:.0f}" font-size="{_FONT}" font-family="system-ui, sans-serif" '
        f'role="img">{plot}{"".join(outside)}</svg>'
    )


def _checked(trace: Any) -> Any:
    if trace.type not in ("scatter", "scattergl"):
        raise ValueError(f"the report cannot draw a {trace.type}")
    if trace.mode not in ("lines", "markers"):
        raise ValueError(f"the report cannot draw the mode {trace.mode}")
    if trace.fill not in (None, "none", "tonexty"):
        raise ValueError(f"the report cannot draw the fill {trace.fill}")
    return trace


# --- axes ------------------------------------------------------------------------------------------------------------


def _axis(axis: Any, values: Sequence[Any], pixels: float, *, flipped: bool) -> _Axis:
    numbers = [_number(v) for v in axis.range or values if v is not None]
    low, high = (min(numbers), max(numbers)) if numbers else (0.0, 1.0)
    if axis.range is None and flipped:
        low, high = min(0.0, low), high + 0.05 * (high - min(0.0, low))
    if high <= low:
        high = low + 1.0
    if axis.type == "date":
        return _Axis(low, high, pixels, flipped, _days(low, high), lambda v: f"{_time(v):%Y-%m-%d}")
    suffix = axis.ticksuffix or ""
    ticks = [(tick, f"{_plain(tick)}{suffix}") for tick in _steps(low, high)]
    return _Axis(low, high, pixels, flipped, ticks, lambda v: f"{significant(v)}{suffix}")


def _title(axis: Any) -> str:
    return axis.title.text or ""


def _steps(low: float, high: float) -> list[float]:
    """Round numbers from ``low`` to ``high``, as many as there is room for."""
    power = 10.0 ** math.floor(math.log10((high - low) / _MAX_TICKS))
    step = next(power * m for m in (1, 2, 5, 10) if (high - low) / (power * m) <= _MAX_TICKS)
    return [n * step for n in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]


def _days(low: float, high: float) -> list[tuple[float, str]]:
    """Days at even distances, with the year where it begins to be another one."""
    first = _time(low).replace(hour=0, minute=0, second=0, microsecond=0)
    days = math.ceil((high - low) / 86_400)
    step = timedelta(days=next((d for d in _DAYS if days / d <= _MAX_TICKS), _DAYS[-1]))
    result: list[tuple[float, str]] = []
    year, day = 0, first
    while day.timestamp() <= high:
        if day.timestamp() >= low:
            result.append((day.timestamp(), f"{day:%b} {day.day}" + (f", {day.year}" if day.year != year else "")))
            year = day.year
        day += step
    return result


def _number(value: Any) -> float:
    """A value of an axis; times as seconds since 1970."""
    return value.timestamp() if isinstance(value, datetime) else float(value)


def _time(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _plain(number: float) -> str:
    """A tick's number: all of its digits, none that rounding made."""
    text = f"{number:,.9f}".rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text


# --- what is drawn ---------------------------------------------------------------------------------------------------


def _grid(x: _Axis, y: _Axis) -> Iterator[str]:
    for value, _ in x.ticks:
        yield _tag("line", x1=x.at(value), x2=x.at(value), y1=0, y2=y.pixels, stroke=_GRID)
    for value, _ in y.ticks:
        yield _tag("line", x1=0, x2=x.pixels, y1=y.at(value), y2=y.at(value), stroke=_GRID)


def _traces(traces: Sequence[Any], x: _Axis, y: _Axis) -> Iterator[str]:
    before: list[tuple[float, float]] = []
    for trace in traces:
        points = [(x.at(a), y.at(b)) for a, b in zip(trace.x, trace.y, strict=True)]
        if trace.mode == "markers":
            for a, b in points:
                yield _tag("circle", cx=a, cy=b, r=trace.marker.size / 2, fill=trace.marker.color)
            continue
        if trace.fill == "tonexty":
            yield _tag("path", d=f"{_path([*points, *reversed(before)])}Z", fill=trace.fillcolor)
        if trace.line.width != 0:
            yield _tag("path", d=_path(points), fill="none", **_stroke(trace.line))
        before = points


def _path(points: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in points)


def _shape(shape: Any, x: _Axis, y: _Axis) -> str:
    x0, x1 = x.place(shape.x0, shape.xref), x.place(shape.x1, shape.xref)
    y0, y1 = y.place(shape.y0, shape.yref), y.place(shape.y1, shape.yref)
    if shape.type == "line":
        return _tag("line", x1=x0, x2=x1, y1=y0, y2=y1, **_stroke(shape.line))
    if shape.type == "rect":
        size = {"width": abs(x1 - x0), "height": abs(y1 - y0)}
        return _tag("rect", x=min(x0, x1), y=min(y0, y1), fill=shape.fillcolor, **size)
    raise ValueError(f"the report cannot draw the shape {shape.type}")


def _stroke(line: Any) -> dict[str, object]:
    dashes = {"stroke_dasharray": _DASHES[line.dash]} if line.dash in _DASHES else {}
    return {"stroke": line.color, "stroke_width": line.width or 2, **dashes}


def _values(traces: Sequence[Any], x: _Axis, y: _Axis) -> Iterator[str]:
    """Adjacent strips that show, under the pointer, the values nearest to it."""
    lines = [trace for trace in traces if trace.name and trace.mode == "lines"]
    result: dict[float, list[str]] = {}
    for trace in lines:
        texts = trace.text or [y.says(value) for value in trace.y]
        for at, text in zip(trace.x, texts, strict=True):
            result.setdefault(_number(at), []).append(f"{html.unescape(trace.name)}: {html.unescape(text)}")
    places = sorted(result)
    edges = [x.at(a + (b - a) / 2) for a, b in itertools.pairwise(places)]
    for at, start, end in zip(places, [0.0, *edges], [*edges, x.pixels], strict=True):
        says = "\n".join([x.says(at), *result[at]])
        strip = {"x": start, "y": 0, "width": max(0.0, end - start), "height": y.pixels}
        yield _tag("rect", f"<title>{html.escape(says)}</title>", fill="transparent", **strip)


def _legend(traces: Sequence[Any]) -> Iterator[str]:
    """At the top, ending at the right edge, in the traces' order."""
    named = [(html.unescape(trace.name), trace.line) for trace in traces if trace.showlegend is not False]
    at = _WIDTH - sum(_CHARACTER * len(name) + 48 for name, _ in named)
    for name, line in named:
        yield _tag("line", x1=at, x2=at + 26, y1=10, y2=10, **_stroke(line))
        yield _text(at + 32, 14, name, "start")
        at += _CHARACTER * len(name) + 48


def _label(annotation: Any, left: float, top: float, x: _Axis, y: _Axis) -> str:
    across = left + x.place(annotation.x, annotation.xref)
    down = top + y.place(annotation.y, annotation.yref)
    anchor = {"left": "start", "right": "end"}.get(annotation.xanchor, "middle")
    across += {"start": 3, "end": -3}.get(anchor, 0)
    down += {"bottom": -4, "top": _FONT + 2}.get(annotation.yanchor, 4)
    return _text(across, down, html.unescape(annotation.text), anchor)


def _text(x: float, y: float, text: str, anchor: str, **attributes: object) -> str:
    return _tag("text", html.escape(text), x=x, y=y, text_anchor=anchor, **({"fill": _TEXT} | attributes))


def _tag(name: str, content: str = "", /, **attributes: object) -> str:
    """An element; underscores in names of attributes become hyphens."""
    written = "".join(
        f' {key.replace("_", "-")}="{html.escape(f"{v:.1f}" if isinstance(v, float) else str(v))}"'
        for key, v in attributes.items()
    )
    return f"<{name}{written}>{content}</{name}>" if content else f"<{name}{written}/>"
