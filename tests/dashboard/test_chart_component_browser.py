"""Charts on the pages of the real server: what does not wait for Plotly, and what a redrawing keeps."""

import re

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.dashboard.browsing import Visit
from tests.dashboard.pointer import until_shown

pytestmark = pytest.mark.browser

#: Counts how often Plotly draws.
_COUNT = """
    let plotly;
    window.drawn = 0;
    Object.defineProperty(window, "Plotly", {
        get: () => plotly,
        set: (found) => {
            const { react } = found;
            found.react = (...given) => { window.drawn++; return react(...given); };
            plotly = found;
        },
    });
"""
_GROUP = "/group?cluster=prod&group=orders-fulfilment"
_FIGURE = '[role="figure"]'
_DRAWN = f"{_FIGURE}.js-plotly-plot .main-svg"
_LAYOUT = f"document.querySelector('{_FIGURE}')?._fullLayout"
_SPAN = f"(new Date({_LAYOUT}?.xaxis.range[1]) - new Date({_LAYOUT}?.xaxis.range[0]))"


def test_nothing_waits_for_plotly_and_its_place_is_as_high_as_the_chart(browser: Browser, address: str) -> None:
    held: list[Route] = []
    visit = Visit(browser, address)
    visit.page.route(re.compile(r"/static/lagwise/plotly\."), lambda route: held.append(route))
    visit.page.add_init_script(_COUNT)
    page = visit.open(f"{_GROUP}&refresh=5m&range=24h")  # the lake may be older than the default of an hour
    expect(page.get_by_test_id("stMetric").first).to_be_visible()
    expect(page.get_by_role("radio", name="24 h", exact=True)).to_be_visible()
    expect(page.get_by_role("grid", name="What happened to the group")).to_be_visible()
    figure = page.get_by_role("figure", name="Status, age of the oldest unread record")
    expect(figure).to_be_attached()
    expect(page.locator(_DRAWN)).to_have_count(0)
    place = page.get_by_test_id("stElementContainer").filter(has=page.locator(_FIGURE))
    before = place.evaluate("place => place.offsetHeight")
    [asked] = held
    asked.continue_()
    expect(page.locator(_DRAWN).first).to_be_visible()
    after = place.evaluate("place => [place.offsetHeight, place.scrollHeight]")
    drawn = figure.evaluate("figure => figure.offsetHeight")
    page.evaluate("() => new Promise((resolve) => requestIdleCallback(resolve))")
    times = page.evaluate("window.drawn")
    visit.close()
    assert visit.troubles == []
    assert (before, before) == tuple(after)
    assert before == drawn > 300
    assert times == 1


def _drawings(page: Page) -> None:
    """Count from now on how often the first chart is drawn anew."""
    page.wait_for_selector(_DRAWN, state="attached")
    page.evaluate(
        f"""async () => {{
            await new Promise((resolve) => requestIdleCallback(resolve)); // the first drawing is over
            window.drawings = 0;
            document.querySelector('{_FIGURE}').on('plotly_afterplot', () => window.drawings++);
        }}"""
    )


def test_a_zoom_by_dragging_survives_that_a_chart_is_drawn_anew(visit: Visit) -> None:
    page = visit.open("/capacity?cluster=prod&group=checkout")
    _drawings(page)
    whole = page.evaluate(_SPAN)
    chart = page.locator(_FIGURE).first

    def zoom() -> None:
        box = chart.bounding_box()
        assert box is not None
        page.mouse.move(box["x"] + 0.4 * box["width"], box["y"] + 100)
        page.mouse.down()
        page.mouse.move(box["x"] + 0.6 * box["width"], box["y"] + 100, steps=8)
        page.mouse.up()

    def is_zoomed(ms: float) -> None:
        page.wait_for_function(f"whole => {_SPAN} < 0.25 * whole", arg=whole, timeout=ms)

    until_shown(zoom, is_zoomed)
    before = page.evaluate(f"[{_LAYOUT}.xaxis.range, window.drawings]")
    page.set_viewport_size({"width": 1000, "height": 900})
    page.wait_for_function("drawings => window.drawings > drawings", arg=before[1])
    page.wait_for_function(f"() => {_LAYOUT}?.width < 1000")
    assert page.evaluate(f"{_LAYOUT}.xaxis.range") == before[0]


def test_a_stretch_is_dragged_over_to_its_end_while_the_chart_is_to_be_drawn_anew(visit: Visit) -> None:
    page = visit.open(_GROUP)
    _drawings(page)
    box = page.locator(_FIGURE).first.bounding_box()
    assert box is not None
    left, top, width = box["x"], box["y"] + 130, box["width"]
    page.mouse.move(left + 0.4 * width, top)
    page.mouse.down()
    page.evaluate("() => { window.drawings = 0; }")
    page.mouse.move(left + 0.5 * width, top, steps=4)
    page.emulate_media(color_scheme="dark")
    expect(page.get_by_test_id("stApp")).to_have_css("background-color", "rgb(14, 20, 32)")
    page.evaluate("() => new Promise((resolve) => requestIdleCallback(resolve))")
    assert page.evaluate("window.drawings") == 0
    page.mouse.move(left + 0.6 * width, top, steps=4)
    page.mouse.up()
    expect(page).to_have_url(re.compile("from=.*to="))
    page.wait_for_function(f"() => {_LAYOUT}?.font.color.toUpperCase() === '#E6EBF2'")


def test_a_chart_has_the_width_of_the_window_and_the_colours_of_the_page(visit: Visit) -> None:
    page = visit.open(_GROUP)
    page.wait_for_selector(_DRAWN, state="attached")
    for width, scheme, text, ground in ((900, "light", "#0F172A", "#FFFFFF"), (1200, "dark", "#E6EBF2", "#0E1420")):
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
        page.wait_for_function(
            f"""([text, ground]) => {{
                const {{ width, font, hoverlabel }} = {_LAYOUT};
                const place = document.querySelector('{_FIGURE}').parentElement;
                const colours = [font.color, hoverlabel.font.color, hoverlabel.bgcolor].map((c) => c.toUpperCase());
                return width === place.clientWidth && colours.join() === [text, text, ground].join();
            }}""",
            arg=[text, ground],
        )


def test_a_chart_stays_when_a_run_ends_that_a_later_one_has_overtaken(visit: Visit) -> None:
    page = visit.open(_GROUP)
    page.wait_for_selector(_DRAWN, state="attached")
    left = page.evaluate(
        f"""async () => {{
            const of_chart = (entry) => /\\/static\\/lagwise\\/chart\\./.test(entry.name);
            const script = performance.getEntriesByType("resource").find(of_chart).name;
            const {{ default: run }} = await import(script);
            const figure = document.querySelector('{_FIGURE}');
            const shown = {{ alt: "again", reports_stretch: false, figure: {{ data: figure.data, layout: {{}} }} }};
            const data = new TextEncoder().encode(JSON.stringify(shown));
            const end = run({{ data, parentElement: figure.parentElement, setTriggerValue: () => {{}} }});
            end();
            return [figure.isConnected, figure.getAttribute("aria-label"), Boolean(figure.querySelector(".main-svg"))];
        }}"""
    )
    assert left == [True, "again", True]
