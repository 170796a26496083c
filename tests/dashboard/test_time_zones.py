"""In which time zone the pages show moments: what converts them, who chooses it, and what stays UTC."""

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
import pytest
from streamlit.testing.v1 import AppTest

import lagwise_dashboard
from lagwise.config.load import validated
from lagwise.links import parameters
from lagwise.platform.errors import ConfigError
from lagwise.platform.time_zones import time_zone as load
from lagwise_dashboard import plot_theme, tables, time_zone
from lagwise_dashboard.csv_export import as_csv
from lagwise_dashboard.plot_theme import Panel, Plain
from lagwise_dashboard.time_zone import IN_UTC, ShownZone
from lagwise_dashboard.widgets import charts
from tests.dashboard.conftest import NOW, Open
from tests.dashboard.shown_charts import figures
from tests.dashboard.shown_tables import table

_BERLIN, _KOLKATA, _NEW_YORK = (ShownZone(n, load(n)) for n in ("Europe/Berlin", "Asia/Kolkata", "America/New_York"))
#: Clocks in Berlin show 02:00 to 03:00 twice on this day: until 01:00 UTC with UTC+2, from then on with UTC+1.
_CHANGE = datetime(2026, 10, 25, 1, 0, tzinfo=UTC)
_HALF_HOUR = timedelta(minutes=30)


@pytest.fixture(autouse=True)
def _utc_again() -> Iterator[None]:
    yield
    time_zone.use(IN_UTC)


# What converts


def test_the_hour_that_occurs_twice_is_told_apart_by_its_offset() -> None:
    time_zone.use(_BERLIN)
    shown = [time_zone.clock(_CHANGE + shift, _CHANGE) for shift in (-_HALF_HOUR, _HALF_HOUR)]
    assert shown == ["02:30:00 UTC+2", "02:30:00 UTC+1"]


def test_a_typed_time_that_occurs_twice_begins_early_and_ends_late() -> None:
    typed = datetime(2026, 10, 25, 2, 30)  # noqa: DTZ001 (as a field of a form has it)
    assert _BERLIN.typed(typed) == _CHANGE - _HALF_HOUR
    assert _BERLIN.typed(typed, latest=True) == _CHANGE + _HALF_HOUR
    skipped = datetime(2026, 3, 29, 2, 30)  # noqa: DTZ001 (as a field of a form has it)
    assert _BERLIN.typed(skipped) == datetime(2026, 3, 29, 0, 30, tzinfo=UTC), "01:30 by the clock"
    assert _BERLIN.typed(skipped, latest=True) == datetime(2026, 3, 29, 1, 30, tzinfo=UTC), "03:30 by the clock"
    assert _KOLKATA.typed(typed) == datetime(2026, 10, 24, 21, 0, tzinfo=UTC)


def test_a_week_before_is_the_same_time_of_day_whatever_the_clocks_did_meanwhile() -> None:
    noon = datetime(2026, 10, 28, 12, 0, tzinfo=UTC)
    assert IN_UTC.days_before(noon, 7) == timedelta(days=7)
    assert _BERLIN.days_before(noon, 7) == timedelta(days=7, hours=1)
    assert _BERLIN.days_before(noon, 1) == timedelta(days=1)
    assert _BERLIN.local(noon - _BERLIN.days_before(noon, 7)).time() == _BERLIN.local(noon).time()


def test_a_column_of_moments_reads_in_the_zone_sorts_by_time_and_is_utc_in_a_csv() -> None:
    time_zone.use(_KOLKATA)
    at = [_CHANGE, _CHANGE - timedelta(days=1)]
    made = tables.moment("At", at, _CHANGE)
    assert made.cells == ["06:30:00 UTC+5:30", "2026-10-24 06:30:00 UTC+5:30"]
    assert made.order == [one.timestamp() for one in at]
    assert as_csv([made]) == "at\n2026-10-25T01:00:00Z\n2026-10-24T01:00:00Z\n"


def test_no_address_holds_a_moment_that_some_zone_cannot_show() -> None:
    for text in ("0001-01-01T00:30:00Z", "9999-12-31T12:00:00Z", "0001-01-01T00:00:00+14:00"):
        with pytest.raises(ValueError, match=text.split("T")[0]):
            parameters.FROM.read([text])


# Charts


def _chart(since: datetime, until: datetime) -> Plain:
    """One of everything that holds a moment."""
    made = plot_theme.stack([Panel("One", 50), Panel("Two", 50)], zoom="its")
    made.add_trace(plot_theme.line([since, until], [1, 2]), row=1, col=1)
    made.add_trace(go.Bar(orientation="h", y=[0], base=[since], x=[60_000.0]), row=2, col=1)
    made.add_hline(y=1, row=1, col=1)
    plot_theme.upright(made, until, 2.0, "end", plot_theme.MARK)
    made.update_xaxes(range=[since, until])
    plain: Plain = made.to_plotly_json()
    return plain


def _drawn(made: Plain) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(go.Figure(made).to_json())
    return found


def test_all_moments_of_a_chart_move_and_nothing_else() -> None:
    since, until = NOW - timedelta(hours=1), NOW
    made = _chart(since, until)
    offset = plot_theme.in_zone(made, _KOLKATA, NOW)
    drawn, begin, end = _drawn(made), "2026-11-21T16:30:05", "2026-11-21T17:30:05"
    line, bar = drawn["data"]
    assert (line["x"], bar["base"], bar["x"]) == ([begin, end], [begin], [60_000.0])
    layout = drawn["layout"]
    assert [layout[axis]["range"] for axis in ("xaxis", "xaxis2")] == [[begin, end]] * 2
    assert [(s["x0"], s["x1"]) for s in layout["shapes"]] == [(0, 1), (end, end)]
    assert [a["x"] for a in layout["annotations"]] == [0.0, 0.0, end]
    assert layout["xaxis2"]["title"]["text"] == "Asia/Kolkata, UTC+5:30", "below the lowest chart"
    assert {layout[axis]["hoverformat"] for axis in ("xaxis", "xaxis2")} == {"%H:%M:%S UTC+5:30"}
    assert layout["uirevision"] == "its UTC+5:30", "a zoom of another zone is none of this one"
    assert charts._moment("2026-11-21 17:30:05.0", offset) == until, "and back, as a reader drags over it"
    assert charts._moment("1000", offset) is None


def test_a_chart_in_utc_says_so_and_stays_as_it_was_made() -> None:
    made = _chart(NOW - timedelta(hours=1), NOW)
    plot_theme.in_zone(made, IN_UTC, NOW)
    drawn = _drawn(made)
    assert drawn["data"][0]["x"] == ["2026-11-21T11:00:05+00:00", "2026-11-21T12:00:05+00:00"]
    assert drawn["layout"]["xaxis2"]["title"]["text"] == "UTC"
    assert drawn["layout"]["uirevision"] == "its"


def test_an_axis_runs_evenly_through_the_hour_that_occurs_twice() -> None:
    made = _chart(_CHANGE - _HALF_HOUR, _CHANGE + _HALF_HOUR)
    plot_theme.in_zone(made, _BERLIN, NOW)
    assert _drawn(made)["data"][0]["x"] == ["2026-10-25T01:30:00", "2026-10-25T02:30:00"], "two places, an hour apart"
    title = made["layout"]["xaxis2"]["title"]["text"]
    assert title == "Europe/Berlin, UTC+1 throughout: its clocks change in this span"


def test_an_axis_into_the_future_has_the_offset_of_the_present() -> None:
    made = _chart(NOW, NOW + timedelta(days=150))
    plot_theme.in_zone(made, _NEW_YORK, NOW)
    assert _drawn(made)["data"][0]["x"][0] == "2026-11-21T07:00:05"
    assert made["layout"]["xaxis2"]["title"]["text"].startswith("America/New_York, UTC−5 throughout")


def test_what_has_no_axis_of_time_is_left_alone() -> None:
    made = go.Figure(go.Scatter(x=[1, 2], y=[1, 2]), layout={"xaxis": {"type": "linear"}}).to_plotly_json()
    before = _drawn(made)
    plot_theme.in_zone(made, _BERLIN, NOW)
    assert _drawn(made) == before


def test_pages_write_moments_and_draw_charts_in_one_place_only() -> None:
    folder = Path(lagwise_dashboard.__file__).parent
    for file in folder.rglob("*.py"):
        text, name = file.read_text(encoding="utf-8"), file.relative_to(folder).as_posix()
        assert "st.plotly_chart(" not in text, name
        assert ('declared("chart"' in text) == (name == "widgets/charts/__init__.py"), name
        if not name.startswith("report/"):  # files to take away stay UTC
            assert ("humanise.clock(" in text) == (name == "time_zone.py"), name
        assert not re.search(r"%[MS]\}? UTC", text), name


# The choice


def test_the_team_s_zone_is_checked_with_the_settings() -> None:
    assert validated({"dashboard": {"time_zone": "Asia/Kolkata"}}, where="a test").dashboard.time_zone == "Asia/Kolkata"
    for name in ("Berlin", "../etc/passwd", "", "Europe"):
        with pytest.raises(ConfigError, match=r"dashboard\.time_zone: .*is not a time zone: write an IANA name"):
            validated({"dashboard": {"time_zone": name}}, where="a test")


def _said(app: Any) -> str:
    """What the page says, times as they are read."""
    said = "\n".join(e.value for kind in ("markdown", "caption", "error", "warning") for e in app.get(kind))
    return said.replace("\\:", ":")


def _figure(app: Any) -> dict[str, Any]:
    return figures(app)[0]


def _of_browser(app: AppTest, zone: str) -> AppTest:
    app.context["timezone"] = zone
    return app.run()


def _choice(app: Any) -> Any:
    (found,) = app.radio
    return found


@pytest.mark.thorough
def test_without_a_choice_times_are_utc_or_the_team_s(
    open_app: Open, busy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = _of_browser(open_app("group", cluster="prod", group="orders-fulfilment"), "Asia/Kolkata")
    assert "**Data as of 11:59:59 UTC**" in _said(app)
    assert _choice(app).options == ["UTC", "Browser (Asia\\/Kolkata)"]
    assert _figure(app)["layout"]["xaxis"]["title"]["text"] == "UTC"
    monkeypatch.setenv("LAGWISE_DASHBOARD__TIME_ZONE", "Europe/Berlin")
    app = open_app("group", cluster="prod", group="orders-fulfilment")
    said = _said(app)
    assert "**Data as of 12:59:59 UTC+1**" in said
    assert "Drawn on 2026-11-21 at 13:00:05 UTC+1" in said
    assert _figure(app)["layout"]["xaxis"]["title"]["text"] == "Europe/Berlin, UTC+1"
    assert _choice(app).options == ["Team (Europe\\/Berlin)", "UTC", "Browser (unknown, so UTC)"]
    assert all(at is None or at.endswith(" UTC+1") for at in table(app, "events")["At"])
    _choice(app).set_value("utc").run()
    assert app.query_params["time_zone"] == "utc"
    assert "**Data as of 11:59:59 UTC**" in _said(app)


@pytest.mark.thorough
def test_the_choice_stands_in_the_address_and_every_link_keeps_it(open_app: Open, busy: Path) -> None:
    app = _of_browser(open_app("overview"), "Asia/Kolkata")
    _choice(app).set_value("browser").run()
    assert app.query_params["time_zone"] == "browser"
    assert _choice(app).value == "browser"
    assert "**Data as of 17:29:59 UTC+5:30**" in _said(app)
    queries = [link.proto.query_string for link in app.get("page_link")]
    assert queries and all("time_zone=browser" in query for query in queries)
    _choice(app).set_value("").run()
    assert "time_zone" not in app.query_params


@pytest.mark.thorough
def test_two_readers_of_one_server_each_see_their_own_hours(open_app: Open, busy: Path) -> None:
    """The second one's answers come from what is kept for everybody."""
    asked = {"cluster": "prod", "group": "orders-fulfilment", "time_zone": "browser"}
    berlin, kolkata = (_of_browser(open_app("group", **asked), z) for z in ("Europe/Berlin", "Asia/Kolkata"))
    berlin.run()
    for app, zone, offset, ends in (
        (berlin, "Europe/Berlin", "UTC+1", "2026-11-21T13:00:05"),
        (kolkata, "Asia/Kolkata", "UTC+5:30", "2026-11-21T17:30:05"),
    ):
        layout = _figure(app)["layout"]
        assert layout["xaxis"]["range"][1] == ends
        assert layout["xaxis"]["title"]["text"] == f"{zone}, {offset}"
        assert all(at.endswith(f" {offset}") for at in table(app, "events")["At"])


@pytest.mark.thorough
@pytest.mark.parametrize("zone", ["Mars/Olympus", "../../etc/passwd", "Europe", "<b>x</b>", "a\0b", "x" * 5000, ""])
def test_a_zone_of_the_browser_that_is_none_is_utc_and_called_unknown(open_app: Open, busy: Path, zone: str) -> None:
    app = _of_browser(open_app("overview", time_zone="browser"), zone)
    assert not app.exception
    assert "**Data as of 11:59:59 UTC**" in _said(app)
    assert _choice(app).options == ["UTC", "Browser (unknown, so UTC)"]


@pytest.mark.thorough
def test_what_is_typed_is_read_in_the_shown_zone(open_app: Open, busy: Path) -> None:
    asked = {"cluster": "prod", "group": "orders-fulfilment", "time_zone": "browser"}
    zoom = {"from": "2026-11-21T11:20:00Z", "to": "2026-11-21T11:30:00Z"}
    app = _of_browser(open_app("group", **asked, **zoom), "Asia/Kolkata")
    assert "events from 16:50:00 UTC+5:30 to 17:00:00 UTC+5:30." in _said(app)
    first, last = app.get("datetime_input")
    assert (first.label, last.label) == ("From, Asia/Kolkata", "To, Asia/Kolkata")
    assert first.value.isoformat() == "2026-11-21T16:50:00"
    first.set_value(datetime(2026, 11, 21, 16, 45))  # noqa: DTZ001 (as a reader types it)
    next(button for button in app.button if button.label == "Zoom").click().run()
    assert app.query_params["from"] == "2026-11-21T11:15:00Z"
    assert app.query_params["to"] == "2026-11-21T11:30:00Z"
