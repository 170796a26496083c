"""Charts drawn by a real browser, over the backgrounds of both schemes: what they look like, measured."""

import tomllib
from datetime import timedelta
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
import pytest
from PIL import Image
from playwright.sync_api import Browser, Page

from lagwise.links.parameters import PartitionMeasure
from lagwise.platform.time_zones import time_zone
from lagwise.tables import ALL_TABLES
from lagwise.tables.store import Lake
from lagwise_dashboard import plot_theme
from lagwise_dashboard.pages.group import partition_charts
from lagwise_dashboard.pages.group.measures import MEASURES
from lagwise_dashboard.pages.rebalances import member_lanes, timeline
from lagwise_dashboard.pages.rebalances.timeline import Rates
from lagwise_dashboard.queries import partition_history, rebalances
from lagwise_dashboard.queries.listing import FIRST_PAGE
from lagwise_dashboard.time_zone import ShownZone
from lagwise_dashboard.widgets import charts
from lagwise_dashboard.widgets.time_range import TimeRange
from tests.dashboard import lakes, storm
from tests.dashboard.browsing import READY_MS
from tests.dashboard.conftest import NOW
from tests.dashboard.lakes import Scene
from tests.dashboard.stories import GROUPS_OF_THE_DEMO, WIDE_GROUP, Story

pytestmark = pytest.mark.browser

_THEME = tomllib.loads(Path(".streamlit/config.toml").read_text(encoding="utf-8"))["theme"]
_SINCE = NOW - timedelta(hours=1)
#: What the pages draw with.
_PLOTLY = Path(charts.__file__).parent / "plotly" / "plotly-cartesian.min.js"
#: Where the heat map (``cells``: its image) and the lines above lie, and which times are written below each.
_HEAT_MAP = """() => {
    const place = e => (({left, top, width, height}) => ({left, top, width, height}))(e.getBoundingClientRect())
    const panel = name => place(document.querySelector(`rect.nsewdrag[data-subplot="${name}"]`))
    const times = axis => [...document.querySelectorAll(`.${axis}tick text`)].map(e => [e.textContent, place(e).left])
    return {
        heat: panel('x2y2'), above: panel('xy'), cells: place([...document.querySelectorAll('g.hm image')].at(-1)),
        times: times('x2'), times_above: times('x'), rows: document.querySelectorAll('.y2tick text').length,
    }
}"""
_BOXES = "all => all.map(e => e.getBoundingClientRect().toJSON())"


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    found = Lake(str(tmp_path / "lake"))
    found.create(*ALL_TABLES)
    return found


def _drawn(browser: Browser, made: go.Figure, folder: Path, *, background: str = "#FFFFFF") -> Page:
    file = folder / "chart.html"
    body = f'<body style="margin: 0; background: {background}">'
    file.write_text(made.to_html(include_plotlyjs=_PLOTLY.as_uri()).replace("<body>", body), encoding="utf-8")
    page = browser.new_page(viewport={"width": 1150, "height": made.layout.height})
    page.goto(file.as_uri(), timeout=4 * READY_MS)
    page.locator(".main-svg .bglayer").first.wait_for(state="attached", timeout=4 * READY_MS)
    return page


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(
    ("story", "rows", "bad", "good"),
    [(next(s for s in GROUPS_OF_THE_DEMO if s.partitions == 24), 24, 7, 0), (WIDE_GROUP, 40, 0, 39)],
    ids=lambda value: value.group if isinstance(value, Story) else None,
)
def test_a_heat_map_is_the_page_where_nothing_waits_and_strong_where_much_does(
    browser: Browser, tmp_path: Path, scheme: str, story: Story, rows: int, bad: int, good: int
) -> None:
    lake = lakes.write_to(tmp_path, Scene(NOW, stories=(story,), hours=1.0))
    asked = (lake, "prod", story.group, _SINCE, NOW, PartitionMeasure.LAG)
    made = partition_charts.chart(
        partition_history.spread(*asked),
        partition_history.cells(*asked),
        TimeRange(_SINCE, NOW, "in the last 1 h"),
        MEASURES[PartitionMeasure.LAG],
        lambda topic, partition: f"?partitions_q={topic}-{partition}",
        zoom="",
    )
    page = _drawn(browser, made, tmp_path, background=_THEME[scheme]["backgroundColor"])
    found = page.wait_for_function(_HEAT_MAP).json_value()
    picture = Image.open(BytesIO(page.screenshot())).convert("RGB")
    page.close()
    heat, above, cells = found["heat"], found["above"], found["cells"]
    assert found["rows"] == rows
    assert (heat["left"], heat["width"]) == (above["left"], above["width"]), "equal margins"
    assert found["times"] and not found["times_above"], "one axis of time, written below both"

    def contrast(row: int, minutes: int) -> float:
        """Of what a row showed this many minutes before its end with the background of the page."""
        x = cells["left"] + cells["width"] - (minutes + 0.5) * heat["width"] / 60
        y = heat["top"] + (row + 0.5) * heat["height"] / rows
        return _contrast(picture.getpixel((round(x), round(y))), picture.getpixel((1, 1)))

    assert contrast(good, 0) < 1.35, "nearly no lag"
    assert contrast(bad, 27) < contrast(bad, 11) < contrast(bad, 0), "it grows"
    assert contrast(bad, 0) > 3.0, "the largest"


def test_the_timeline_of_a_storm_can_be_read(browser: Browser, lake: Lake, tmp_path: Path) -> None:
    storm.write(lake, NOW)
    lanes = member_lanes.lanes(rebalances.periods(lake, "prod", storm.GROUP, _SINCE, NOW))
    assert member_lanes.that_stay(lanes) == [], "each comes and goes: lanes are drawn only where all are asked for"
    rates = Rates(rebalances.rates(lake, "prod", storm.GROUP, _SINCE, NOW), rebalances.bin_width(_SINCE, NOW))
    page = _drawn(browser, timeline.chart(lanes, rates, _SINCE, NOW, zoom=""), tmp_path)
    names, numbers, rate_ticks = (
        page.locator(".y3tick text"),
        page.locator(".x3y3 .barlayer text"),
        page.locator(".ytick text"),
    )
    shown: list[Any] = [of.all_text_contents() for of in (names, numbers)]
    places: list[Any] = [of.evaluate_all(_BOXES) for of in (names, numbers)]
    assert len(rate_ticks.all_text_contents()) >= 2, "the rate can be read from its axis"
    page.close()
    assert shown[0] == [f"worker-{m} · 10.0.0.1" for m in range(storm.MEMBERS_OF_IT)], "all, in natural order"
    assert all(later["y"] - one["y"] >= 13 for one, later in pairwise(places[0])), "no name covers another"
    often = [int(number.removesuffix("×")) for number in shown[1] if number.endswith("×")]
    assert len(often) == storm.MEMBERS_OF_IT, "what changed in every sample is one bar, which says how often"
    assert len(shown[1]) == 2 * storm.MEMBERS_OF_IT, "and the calm before is another"
    assert 45 <= min(often) <= max(often) <= 60
    assert min(place["height"] for place in places[1]) >= 8, "large enough to be read"


def test_a_hundred_rebalances_are_counted_and_no_number_covers_another(
    browser: Browser, lake: Lake, tmp_path: Path
) -> None:
    storm.write(lake, NOW)
    events = rebalances.events(lake, "prod", storm.GROUP, _SINCE, NOW, FIRST_PAGE.all_rows).rows[: timeline.MAX_COUNTED]
    lanes = member_lanes.lanes(rebalances.periods(lake, "prod", storm.GROUP, _SINCE, NOW))
    page = _drawn(browser, timeline.chart(lanes, events, _SINCE, NOW, zoom=""), tmp_path)
    counts = page.locator(".xy .barlayer text")
    shown, places = counts.all_text_contents(), counts.evaluate_all(_BOXES)
    page.close()
    assert sum(map(int, shown)) == timeline.MAX_COUNTED, "each is counted"
    along = sorted(places, key=lambda place: float(place["left"]))
    assert all(one["right"] <= later["left"] for one, later in pairwise(along)), "no number covers another"


def _contrast(one: tuple[int, ...], other: tuple[int, ...]) -> float:
    """As WCAG 2.2 defines it: from 1, which is none, to 21."""
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _luminance(colour: tuple[int, ...]) -> float:
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (part / 255 for part in colour)]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_a_packed_line_is_drawn_where_a_plain_one_would_be(browser: Browser, tmp_path: Path) -> None:
    at = [NOW - (399 - n) * timedelta(seconds=216) for n in range(400)]
    lag = [None if 100 <= n < 120 else 37 * n % 1000 for n in range(400)]
    made = plot_theme.figure(height=300, zoom="zoom")
    made.add_trace(plot_theme.line(at, lag, line={"width": 1}))
    made.add_trace(plot_theme.packed_line(at, lag, line={"width": 1}))
    assert made.data[1].x is None, "it is long enough to be packed"
    made.update_xaxes(range=[at[0], at[-1]])
    plain = made.to_plotly_json()
    plot_theme.in_zone(plain, ShownZone("Asia/Kolkata", time_zone("Asia/Kolkata")), NOW)
    page = _drawn(browser, go.Figure(plain), tmp_path)
    unpacked, packed = page.locator(".scatterlayer .trace").evaluate_all(
        "all => all.map(e => [...e.querySelectorAll('path.js-line')].map(path => path.getAttribute('d')))"
    )
    assert packed == unpacked
    assert len(unpacked) == 2, "with its gap"
