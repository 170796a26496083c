"""The report's charts as SVG: the right marks at the right places, and nothing left out without a word."""

from datetime import UTC, datetime, timedelta
from xml.etree import ElementTree

import plotly.graph_objects as go
import pytest

from lagwise.domain.simulation.what_if import WhatIfSetUp, outage, try_set_ups
from lagwise.domain.sizing.advice import advise
from lagwise.domain.sizing.workload import Concurrency, Workload
from lagwise_dashboard import plot_theme
from lagwise_dashboard.report import node_chart, svg, what_if_chart

SVG = "{http://www.w3.org/2000/svg}"
WORKLOAD = Workload(
    t1_seconds=0.012,
    t2_seconds=0.003,
    cores=8,
    peak_rate_per_second=1_000,
    partitions=24,
    concurrency=Concurrency.POOL,
)


def parsed(figure: go.Figure) -> ElementTree.Element:
    return ElementTree.fromstring(svg.draw(figure).replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1))


def plot_of(root: ElementTree.Element) -> ElementTree.Element:
    found = root.find(f"{SVG}svg")
    assert found is not None
    return found


def texts(root: ElementTree.Element) -> list[str]:
    return [text.text or "" for text in root.iter(f"{SVG}text")]


def titles(root: ElementTree.Element) -> list[str]:
    return [title.text or "" for title in root.iter(f"{SVG}title")]


def lines(x: list[object], **ys: list[float]) -> go.Figure:
    made = plot_theme.figure(height=256, zoom="")
    for name, y in ys.items():
        made.add_trace(plot_theme.line(x, y, name=name, line={"color": "#111111", "width": 2}))
    made.update_xaxes(type="linear")
    return made


def points(path: ElementTree.Element) -> list[tuple[float, float]]:
    pairs = path.get("d", "").strip("MZ").split("L")
    return [(float(a), float(b)) for a, b in (pair.split() for pair in pairs)]


def test_a_line_goes_through_its_points() -> None:
    made = lines([0, 5, 10], lag=[0.0, 100.0, 50.0])
    made.update_yaxes(range=[0, 200])
    plot = plot_of(parsed(made))
    width, height = float(plot.get("width", "")), float(plot.get("height", ""))
    [path] = plot.findall(f"{SVG}path")
    expected = [(0.0, height), (width / 2, height / 2), (width, 0.75 * height)]
    assert [pytest.approx(point, abs=0.1) for point in points(path)] == expected
    assert path.get("stroke") == "#111111"


def test_axes_have_round_numbers_and_their_unit() -> None:
    made = lines([0, 63], rate=[0.0, 2_900.0])
    made.update_yaxes(ticksuffix="/s", title={"text": "how <much>"})
    made.update_xaxes(title={"text": "threads"})
    shown = texts(parsed(made))
    assert {"0/s", "500/s", "3,000/s", "0", "10", "60", "threads", "how <much>"} <= set(shown)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0, 8, [0, 1, 2, 3, 4, 5, 6, 7, 8]),
        (-5, 40, [0, 10, 20, 30, 40]),
        (0, 0.03, [0, 0.005, 0.01, 0.015, 0.02, 0.025, 0.03]),
        (0, 1_234_567, [0, 200_000, 400_000, 600_000, 800_000, 1_000_000, 1_200_000]),
    ],
)
def test_the_steps_of_an_axis(low: float, high: float, expected: list[float]) -> None:
    assert svg._steps(low, high) == pytest.approx(expected)
    assert len(expected) <= svg._MAX_TICKS + 1


@pytest.mark.parametrize(
    ("days", "expected"),
    [
        (3, ["Dec 30, 2026", "Dec 31", "Jan 1, 2027", "Jan 2"]),
        (30, ["Dec 30, 2026", "Jan 6, 2027", "Jan 13", "Jan 20", "Jan 27"]),
        (720, ["Dec 30, 2026", "Mar 31, 2027", "Jun 30", "Sep 29", "Dec 29", "Mar 29, 2028", "Jun 28", "Sep 27"]),
    ],
)
def test_days_with_their_year_where_it_changes(days: int, expected: list[str]) -> None:
    first = datetime(2026, 12, 30, tzinfo=UTC).timestamp()
    assert [label for _, label in svg._days(first, first + days * 86_400)] == expected


def test_a_band_lies_between_two_lines() -> None:
    days = [datetime(2026, 11, 21, tzinfo=UTC) + timedelta(days=n) for n in range(4)]
    made = plot_theme.figure(height=256, zoom="")
    for name, y, look in (
        ("upper", [3.0] * 4, {}),
        ("lower", [1.0] * 4, {"fill": "tonexty", "fillcolor": "rgba(1,2,3,0.5)"}),
    ):
        made.add_trace(plot_theme.line(days, y, name=name, line={"width": 0}, showlegend=False, **look))
    made.update_yaxes(range=[0, 4])
    root = parsed(made)
    plot = plot_of(root)
    height = float(plot.get("height", ""))
    [band] = plot.findall(f"{SVG}path")
    assert [y for _, y in points(band)] == pytest.approx([0.75 * height] * 4 + [height / 4] * 4, abs=0.1)
    assert band.get("fill") == "rgba(1,2,3,0.5)"
    assert "2026-11-22\nupper: 3\nlower: 1" in titles(root)
    assert {"upper", "lower"}.isdisjoint(texts(root))


def test_what_a_node_does_is_all_there() -> None:
    root = parsed(node_chart.chart(advise(WORKLOAD)))
    plot = plot_of(root)
    assert len(plot.findall(f"{SVG}path")) == 2, "the formula's lines and what the node does"
    assert len(plot.findall(f"{SVG}circle")) == 1, "the advised number"
    assert len([line for line in plot.findall(f"{SVG}line") if line.get("stroke-dasharray")]) == 3
    shown = texts(root)
    assert {"advised 23", "knee 40", "the node must do 1,476/s", "threads on one node"} <= set(shown)
    assert {"the formula's straight lines", "what the node does"} <= set(shown)
    assert "23\nthe formula's straight lines: 1,533/s\nwhat the node does: 1,529/s" in titles(root)


@pytest.mark.parametrize("seconds", [60.0, 600.0, 86_400.0])
def test_an_outage_is_all_there(seconds: float) -> None:
    asked = try_set_ups(WORKLOAD, [WhatIfSetUp("Running", 3, 4), WhatIfSetUp("Advised", 1, 23)], outage(seconds))
    root = parsed(what_if_chart.chart(asked))
    plot = plot_of(root)
    assert len(plot.findall(f"{SVG}path")) == 2
    [area] = [rect for rect in plot.findall(f"{SVG}rect") if rect.get("fill") == plot_theme.GRID]
    assert float(area.get("width", "")) > 0
    assert {"nothing is read", "minutes since it began", "oldest unread, minutes"} <= set(texts(root))
    assert any("Running: 3 nodes of 4 threads: " in title for title in titles(root))


def test_names_are_shown_letter_by_letter() -> None:
    made = lines([0, 1], **{"&lt;b&gt; &amp; </text><script>": [0.0, 1.0]})
    root = parsed(made)
    assert "<b> & </text><script>" in texts(root)
    assert {element.tag for element in root.iter()} == {
        f"{SVG}{tag}" for tag in ("svg", "line", "path", "rect", "text", "title")
    }


@pytest.mark.parametrize(
    "trace",
    [
        go.Bar(x=[1], y=[1]),
        go.Scatter(x=[1], y=[1], mode="lines+markers"),
        go.Scatter(x=[1], y=[1], mode="lines", fill="tozeroy"),
    ],
)
def test_what_it_cannot_draw_is_never_left_out(trace: object) -> None:
    made = lines([0, 1], lag=[0.0, 1.0])
    made.add_trace(trace)
    with pytest.raises(ValueError, match="the report cannot draw"):
        svg.draw(made)


@pytest.mark.parametrize("y", [[0.0, 0.0], [5.0], [1e-9, 2e-9], [1e12, 3e12]])
def test_every_range_of_values_can_be_drawn(y: list[float]) -> None:
    root = parsed(lines(list(range(len(y))), lag=y))
    assert len(plot_of(root).findall(f"{SVG}path")) == 1
    assert "nan" not in svg.draw(lines(list(range(len(y))), lag=y))
