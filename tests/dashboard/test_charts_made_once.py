"""Charts are made once for everybody who looks at the same, in the same time zone."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import plotly.graph_objects as go
import pyarrow as pa
import pytest

from lagwise.platform.time_zones import time_zone as load
from lagwise_dashboard import context, plot_theme, time_zone
from lagwise_dashboard.cache import computed_once
from lagwise_dashboard.time_zone import IN_UTC, ShownZone
from lagwise_dashboard.widgets import charts

NOW = datetime(2026, 11, 26, 12, tzinfo=UTC)
_drawn: list[str] = []


@pytest.fixture(autouse=True)
def _utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(context, "now", lambda: NOW)
    _drawn.clear()
    yield
    time_zone.use(IN_UTC)


def _draw(points: pa.Table, *, name: str) -> go.Figure:
    _drawn.append(name)
    made = plot_theme.figure(height=200, zoom="zoom")
    made.add_trace(go.Scatter(x=points["at"].to_pylist(), y=points["lag"].to_pylist(), name=name))
    return made.update_xaxes(range=[NOW, NOW + timedelta(hours=1)])


def _points(*lags: int) -> pa.Table:
    return pa.table({"at": [NOW + timedelta(minutes=i) for i in range(len(lags))], "lag": list(lags)})


def test_the_same_is_drawn_once_and_anything_else_anew() -> None:
    first = charts.made_once(_draw, _points(1, 2), name="a")
    assert charts.made_once(_draw, _points(1, 2), name="a") is first
    assert _drawn == ["a"]
    assert charts.made_once(_draw, _points(1, 3), name="a") is not first
    assert charts.made_once(_draw, _points(1, 2), name="b") is not first
    assert _drawn == ["a", "a", "b"]


@pytest.mark.parametrize("zone", [IN_UTC, ShownZone("Asia/Kolkata", load("Asia/Kolkata"))])
def test_what_is_sent_is_what_was_drawn_in_the_zone_of_its_reader(zone: ShownZone) -> None:
    time_zone.use(zone)
    expected = _draw(_points(3, 4), name="<b>").to_plotly_json()
    offset = plot_theme.in_zone(expected, zone, NOW)
    made = charts.made_once(_draw, _points(3, 4), name="<b>")
    assert made.offset == offset
    assert json.loads(made.figure) == json.loads(go.Figure(expected).to_json())
    assert made.height == expected["layout"]["height"]


def test_readers_in_different_zones_do_not_share_a_chart() -> None:
    ours = charts.made_once(_draw, _points(5, 6), name="a")
    time_zone.use(ShownZone("Asia/Kolkata", load("Asia/Kolkata")))
    theirs = charts.made_once(_draw, _points(5, 6), name="a")
    assert json.loads(ours.figure)["data"][0]["x"][0] == "2026-11-26T12:00:00+00:00"
    assert json.loads(theirs.figure)["data"][0]["x"][0] == "2026-11-26T17:30:00"


def _largest(points: pa.Table) -> dict[str, int]:
    _drawn.append("computed")
    return {"lag": max(points["lag"].to_pylist())}


def test_what_follows_from_an_answer_is_computed_once_and_nobody_changes_it_for_others() -> None:
    ours = computed_once(_largest, _points(1, 5))
    assert ours == {"lag": 5}
    ours["lag"] = 7
    assert computed_once(_largest, _points(1, 5)) == {"lag": 5}
    assert _drawn == ["computed"]
    assert computed_once(_largest, _points(1, 6)) == {"lag": 6}
    assert _drawn == ["computed", "computed"]


def test_a_stack_is_laid_out_once_and_each_chart_has_its_own() -> None:
    panels = [plot_theme.Panel("one", 20), plot_theme.Panel("two", 30)]
    first = plot_theme.stack(panels, zoom="first")
    first.add_trace(go.Scatter(x=[NOW], y=[1]), row=2, col=1)
    first.update_yaxes(ticksuffix=" s")
    second = plot_theme.stack(panels, zoom="second")
    assert (first.layout.uirevision, second.layout.uirevision) == ("first", "second")
    assert (len(second.data), second.layout.yaxis2.ticksuffix) == (0, None)
    second.add_trace(go.Scatter(x=[NOW], y=[1]), row=2, col=1)
    assert second.data[0].yaxis == "y2"
