"""How fast the dashboard's pages are, how much they send, and whether its process grows, in a real Chromium.

A lake of 1,000 groups and 100,000 group-partitions, and one more group of 10,000 partitions, with three hours of
minutes and a week of hours (of one group a day of minutes), the really started server, and the numbers that the pages
must reach next to those measured.

- First paint: from the navigation to the table, of a server that was started, is at rest, and has had no reader: in a
  browser without any cache, and in one that was on the page before (of an earlier server).
- Pages: from the navigation until everything is there, and until what a reader wants first is (a group's verdict, the
  table of groups), which stands there before the page does; of a running server after a round of the analysis that
  changed everything, so that no cached answer helps. In a browser without any cache, then in the same one. How far what
  is drawn moves what was there (layout shift, as Chromium's score).
- The baseline of both: the same of a page of Streamlit's own that has a table of fifty rows and nothing else.
- Refresh: from the request, as the browser sends it, to the last message of the answer, after such a round.
- Twenty readers: refreshes of one page for which all ask at the same moment, after such a round.
- Memory: of the server's process, while many browsers refresh the overview and the page of a group.
"""

import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import psutil
from playwright.sync_api import Browser

from benchmarks.common import options_parser
from benchmarks.pages_cast import CLUSTER, GROUP, INTERVAL_SECONDS, SMALL, TOPIC, WIDE_GROUP, Size
from benchmarks.pages_lake import PagesLake
from benchmarks.pages_refreshes import READY_MS, VIEWPORT, Rounds, gone_to, memory, refreshes
from benchmarks.pages_server import Server, bare, browser_of_machine, served
from benchmarks.pages_viewers import refreshes_of_all
from lagwise.tables.store import Lake
from tests.dashboard.serving import free_port

#: What must be reached: seconds, bytes, Chromium's score of layout shift.
REFRESH_S, REFRESH_BYTES, LAYOUT_SHIFT = 0.3, 60_000, 0.05
VIEWERS_S, VIEWERS_CPU_MS = 1.0, 60
_AT_REST_PERCENT = 5.0
_SETTLE_MS = 2_000
#: So many browsers at once leave two cores no time for anything else, if they look every two seconds.
_MEMORY_REFRESH_SECONDS = 10
#: Nothing refreshes itself.
_NEVER_SECONDS = 3600
_TABLE = "role=gridcell"
_CHART = ".js-plotly-plot .main-svg"
#: The table of the bare page is Streamlit's own, which is a picture.
_BARE_TABLE = '[data-testid="stDataFrame"] canvas'
#: On the group page the list of events comes last.
_EVENTS = 'role=heading[name="What happened"]'
#: On the page, or in the first sight, which comes before it.
_VERDICT = '[data-testid="stAlert"], #first_sight .verdict'
_GROUPS = "tbody td"
_COUNT_SHIFTS = """
    window.layoutShift = 0;
    new PerformanceObserver(list => list.getEntries().forEach(e => { if (!e.hadRecentInput) layoutShift += e.value; }))
        .observe({ type: "layout-shift", buffered: true });
"""


@dataclass(frozen=True, slots=True)
class MeasuredPage:
    """A page, and the parts of it (selectors) that are waited for one after the other: the last says that all is there.
    ``must`` is how many times the bare page's seconds each part may take; None is not promised."""

    path: str
    parts: tuple[str, ...]
    must: tuple[float | None, ...] = (None,)


def _path(page: str, **query: str) -> str:
    return f"/{page}?{urlencode({'cluster': CLUSTER, **query})}"


_OVERVIEW, _GROUP_PAGE = "/", _path("group", group=GROUP, range="24h")
PAGES = {
    "overview": MeasuredPage(_OVERVIEW, (_GROUPS, f".st-key-room_table_groups {_GROUPS}"), (1.1, None)),
    "group_24h": MeasuredPage(_GROUP_PAGE, (_VERDICT, f"{_CHART} >> nth=0", _EVENTS), (0.6, 1.3, 1.3)),
    "group_of_10_000": MeasuredPage(
        _path("group", group=WIDE_GROUP, tab="partitions"), (_VERDICT, _CHART, _TABLE), (None, 1.6, 1.6)
    ),
    "capacity": MeasuredPage("/capacity", (_TABLE,), (1.6,)),
    "topic": MeasuredPage(_path("topic", topic=TOPIC, range="24h"), (_TABLE,)),
    "retention": MeasuredPage("/retention", (_TABLE,)),
    "rebalances": MeasuredPage(_path("rebalances", group=GROUP), (_TABLE,)),
    "health": MeasuredPage("/health", (_TABLE,)),
}


def wait_until_at_rest(process: psutil.Process) -> None:
    """Wait until the process has done next to nothing for a second."""
    while process.cpu_percent(interval=1.0) > _AT_REST_PERCENT:
        pass


def first_paints(
    server: Server, folder: Path, browser: Browser, wanted: str, times: int
) -> tuple[list[float], list[float]]:
    """Seconds to the first table (``wanted``) of servers that have just been started: in browsers without any cache,
    and in the same ones, of the next server at the same address."""
    cold: list[float] = []
    again: list[float] = []
    for _ in range(times):
        port, context = free_port(), browser.new_context(viewport=VIEWPORT)
        for found in (cold, again):
            with server(folder, port) as (address, process):
                wait_until_at_rest(process)
                page = context.new_page()
                found.append(gone_to(page, address + _OVERVIEW, wanted))
                page.wait_for_timeout(_SETTLE_MS)  # until what it loaded is in its cache
                page.close()
        context.close()
    return cold, again


def page_times(
    browser: Browser, address: str, measured: MeasuredPage, tick: Callable[[], None], times: int
) -> dict[str, Any]:
    """Seconds until each part of a page is there, after a round each: in browsers without any cache, then in the same
    ones; and the most that the layout shifted."""
    seconds: dict[str, list[list[float]]] = {"cold": [], "warm": []}
    shifts = []
    for _ in range(times):
        context = browser.new_context(viewport=VIEWPORT)
        for found in seconds.values():
            tick()
            page = context.new_page()
            page.add_init_script(_COUNT_SHIFTS)
            began = time.monotonic()
            page.goto(address + measured.path, wait_until="commit")
            found.append([])
            for part in measured.parts:
                page.wait_for_selector(part, state="attached", timeout=READY_MS)
                found[-1].append(time.monotonic() - began)
            page.wait_for_timeout(_SETTLE_MS)
            shifts.append(page.evaluate("layoutShift"))
            page.close()
        context.close()
    by_part = {
        name: [summary(list(of_part)) for of_part in zip(*found, strict=True)] for name, found in seconds.items()
    }
    return {**by_part, "layout_shift": round(max(shifts), 3)}


def beside_bare(found: dict[str, Any], bare_page: dict[str, Any], must: tuple[float | None, ...]) -> dict[str, Any]:
    """The figures of a page with how many times those of the bare page they are, by part."""
    ratios = {
        name: [round(part["median"] / bare_page[name][-1]["median"], 2) for part in found[name]]
        for name in ("cold", "warm")
    }
    return {**found, "times_bare": ratios, "must": list(must)}


def summary(values: list[float]) -> dict[str, float]:
    """Median and worst."""
    return {"median": round(statistics.median(values), 3), "worst": round(max(values), 3)}


def said(what: str) -> None:
    """Report progress."""
    print(what, file=sys.stderr)


def measure(size: Size, times: int, browsers: int, many: int) -> dict[str, Any]:
    """All figures."""
    with tempfile.TemporaryDirectory(prefix="lagwise-pages-") as made, browser_of_machine() as browser:
        folder = Path(made)
        lake = PagesLake(Lake(str(folder / "lake")), size, datetime.now(UTC))
        began = time.monotonic()
        lake.write()
        lake.write_capacity()
        said(f"lake written in {time.monotonic() - began:.0f} s")

        def tick() -> None:
            lake.tick(datetime.now(UTC))

        floor = first_paints(bare, folder, browser, _BARE_TABLE, times)
        paint = first_paints(served, folder, browser, _GROUPS, times)
        said(f"first paints: bare {[*map(summary, floor)]}, overview {[*map(summary, paint)]}")
        with bare(folder, free_port()) as (address, _):
            bare_page = page_times(browser, address, MeasuredPage(_OVERVIEW, (_BARE_TABLE,)), tick, times)
        pages = {}
        with served(folder, free_port(), refresh_seconds=_NEVER_SECONDS) as (address, process):
            for name, measured in PAGES.items():
                found = page_times(browser, address, measured, tick, times)
                pages[name] = beside_bare(found, bare_page, measured.must)
                said(f"{name}: {json.dumps(pages[name])}")
            at_once = {
                name: refreshes_of_all(address, PAGES[name].path, process, tick, browsers, times)
                for name in ("overview", "group_24h")
            }
        said(f"all at once: {json.dumps(at_once)}")
        with served(folder, free_port()) as (address, _):
            refreshed = {
                name: refreshes(browser, address + PAGES[name].path, PAGES[name].parts[-1], tick, 2 * times)
                for name in ("overview", "group_24h")
            }
        said(f"refreshes: {refreshed}")
        with (
            served(folder, free_port(), refresh_seconds=_MEMORY_REFRESH_SECONDS) as (address, process),
            Rounds(lake, INTERVAL_SECONDS),
        ):
            both = [(address + _OVERVIEW, _TABLE), (address + _GROUP_PAGE, _EVENTS)]
            grown = memory(browser, both, process, browsers, many)
    return {
        "size": {"groups": size.groups, "group_partitions": size.pairs},
        "first_paint_s": {
            "bare": {"cold": summary(floor[0]), "warm": summary(floor[1])},
            "overview": {"cold": summary(paint[0]), "warm": summary(paint[1])},
            "times_bare": [
                round(statistics.median(ours) / statistics.median(theirs), 2)
                for ours, theirs in zip(paint, floor, strict=True)
            ],
            "must": 1.1,
        },
        "bare": bare_page,
        "pages": pages,
        "must_shift": LAYOUT_SHIFT,
        "refresh": {
            name: {**summary([s for s, _ in answers]), "bytes_most": max(b for _, b in answers)}
            for name, answers in refreshed.items()
        },
        "refresh_must": {"seconds": REFRESH_S, "bytes": REFRESH_BYTES},
        "all_at_once": at_once,
        "all_at_once_must": {"p95_s": VIEWERS_S, "cpu_ms_each": VIEWERS_CPU_MS},
        "memory": grown,
    }


def main() -> None:
    options = options_parser(__doc__, "a small lake and few repetitions: does it run at all?").parse_args()
    found = measure(SMALL, 1, 2, 6) if options.small else measure(Size(wide=10_000), 3, 20, 500)
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
