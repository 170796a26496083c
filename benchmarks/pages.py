"""How fast the dashboard's pages are, how much they send, and whether its process grows, in a real Chromium.

A lake of 1,000 groups and 100,000 group-partitions with three hours of minutes and a week of hours (one group with a
day of minutes), the really started server, and the numbers that the pages must reach next to those measured.

- First paint: from the navigation to the table, of a server that was started, is at rest, and has had no reader: in a
  browser without any cache, and in one that was on the page before (of an earlier server).
- Its baseline: the same of a page of Streamlit's own that has a table of fifty rows and nothing else.
- Refresh: from the request, as the browser sends it, to the last message of the answer; each after a round of the
  analysis that changed everything, so that no cached answer helps.
- Other pages: from the navigation to their last table, after such a round, in a browser that was on the overview. Of
  the page of a group also until its verdict stands there.
- Memory: of the server's process, while many browsers refresh the overview and the page of a group.
"""

import json
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import psutil
from playwright.sync_api import Browser, BrowserContext, Page, ViewportSize

from benchmarks.common import options_parser
from benchmarks.pages_cast import CLUSTER, GROUP, INTERVAL_SECONDS, SMALL, TOPIC, Size
from benchmarks.pages_lake import PagesLake
from benchmarks.pages_server import REFRESH_SECONDS, Server, bare, browser_of_machine, served
from lagwise.tables.store import Lake
from tests.dashboard.serving import free_port

#: What must be reached: seconds, bytes.
FIRST_PAINT_S, REFRESH_S, GROUP_S, REFRESH_BYTES = 1.5, 0.3, 1.0, 500_000
#: An answer is over when nothing more came for so long.
_QUIET_S = 0.7
_AT_REST_PERCENT = 5.0
_READY_MS = 60_000
_SETTLE_MS = 2_000
_VIEWPORT: ViewportSize = {"width": 1280, "height": 900}
#: So many browsers at once leave two cores no time for anything else, if they look every two seconds.
_MEMORY_REFRESH_SECONDS = 10
_OVERVIEW, _GROUP_PAGE = "/", "/group?" + urlencode({"cluster": CLUSTER, "group": GROUP, "range": "24 h"})
_OTHERS = {
    "topic": "/topic?" + urlencode({"cluster": CLUSTER, "topic": TOPIC, "range": "24 h"}),
    "retention": "/retention",
    "rebalances": "/rebalances?" + urlencode({"cluster": CLUSTER, "group": GROUP}),
    "health": "/health",
}
_TABLE = "role=gridcell"
#: The table of the bare page is Streamlit's own, which is a picture.
_BARE_TABLE = '[data-testid="stDataFrame"] canvas'
#: On the group page the charts come before the tables; members are drawn after both.
_MEMBERS = 'role=heading[name="Members"]'
_VERDICT = '[data-testid="stAlert"]'


@dataclass
class Wire:
    """What went over a page's socket: the answers, each from its request on. Times are of one clock."""

    #: Seconds and bytes of each answer.
    answers: list[tuple[float, int]] = field(default_factory=list)
    _asked_at: float | None = None
    _last_at: float = 0.0
    _bytes: int = 0

    def attach(self, page: Page) -> None:
        """Listen to the sockets that the page opens from now on."""

        def opened(socket: Any) -> None:
            socket.on("framesent", lambda _: self._sent())
            socket.on("framereceived", lambda data: self._received(len(data)))

        page.on("websocket", opened)

    def _sent(self) -> None:
        self.finish()
        self._asked_at, self._bytes = time.monotonic(), 0

    def _received(self, size: int) -> None:
        self._last_at = time.monotonic()
        self._bytes += size

    def finish(self) -> None:
        """Count what came so far as an answer."""
        if self._asked_at is not None and self._bytes:
            self.answers.append((self._last_at - self._asked_at, self._bytes))
        self._asked_at, self._bytes = None, 0


class Rounds:
    """Rounds of the analysis, as often as the product has them, for as long as the block lasts."""

    def __init__(self, lake: PagesLake, every_seconds: float) -> None:
        self._lake, self._every = lake, every_seconds
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._over.wait(self._every):
            self._lake.tick(datetime.now(UTC))


def opened(browser: Browser, address: str, wanted: str) -> tuple[float, BrowserContext, Page, Wire]:
    """Seconds from the navigation until something is on the screen, in a browser without any cache."""
    context = browser.new_context(viewport=_VIEWPORT)
    page = context.new_page()
    wire = Wire()
    wire.attach(page)
    return gone_to(page, address, wanted), context, page, wire


def gone_to(page: Page, address: str, wanted: str) -> float:
    """Seconds from the navigation until something is on the screen."""
    began = time.monotonic()
    page.goto(address, wait_until="commit")
    page.wait_for_selector(wanted, state="attached", timeout=_READY_MS)
    return time.monotonic() - began


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
        port, context = free_port(), browser.new_context(viewport=_VIEWPORT)
        for found in (cold, again):
            with server(folder, port) as (address, process):
                wait_until_at_rest(process)
                page = context.new_page()
                found.append(gone_to(page, address + _OVERVIEW, wanted))
                page.wait_for_timeout(_SETTLE_MS)  # until what it loaded is in its cache
                page.close()
        context.close()
    return cold, again


def refreshes(browser: Browser, address: str, tick: Callable[[], None], times: int) -> list[tuple[float, int]]:
    """Seconds and bytes of refreshes of the overview, each after a round that changed everything."""
    _, context, page, wire = opened(browser, address + _OVERVIEW, _TABLE)
    page.wait_for_timeout(2000 * REFRESH_SECONDS)
    found = []
    for _ in range(times):
        tick()
        wire.answers.clear()
        while not wire.answers:
            page.wait_for_timeout(100)
        # The first answer after the round may have been under way already: the largest of the next ones counts.
        page.wait_for_timeout(1000 * (REFRESH_SECONDS + _QUIET_S))
        wire.finish()
        found.append(max(wire.answers))
    context.close()
    return found


def page_times(browser: Browser, address: str, path: str, wanted: str, tick: Callable[[], None], times: int) -> Any:
    """Seconds until a page is there, after a round each, and the bytes of its largest answer afterwards."""
    seconds, sizes = [], []
    for _ in range(times):
        _, context, page, wire = opened(browser, address + _OVERVIEW, _TABLE)
        tick()
        seconds.append(gone_to(page, address + path, wanted))
        wire.finish()
        wire.answers.clear()
        while not wire.answers:
            page.wait_for_timeout(1000 * (REFRESH_SECONDS + _QUIET_S))
            wire.finish()
        sizes += [size for _, size in wire.answers]
        context.close()
    return {"seconds": summary(seconds), "refresh_bytes": max(sizes, default=0)}


def memory(browser: Browser, address: str, process: psutil.Process, browsers: int, refreshes: int) -> Any:
    """Resident memory of the server, MiB, while many browsers refresh the overview and the group page."""
    open_pages = []
    for number in range(browsers):
        path, wanted = ((_OVERVIEW, _TABLE), (_GROUP_PAGE, _MEMBERS))[number % 2]
        _, context, page, wire = opened(browser, address + path, wanted)
        open_pages.append((context, page, wire))
    for _, _, wire in open_pages:
        wire.answers.clear()  # what the first ones got while the last ones were being opened
    counted, seen = 0, []
    while counted < refreshes:
        open_pages[0][1].wait_for_timeout(5000)
        for _, _, wire in open_pages:
            wire.finish()
            counted += len(wire.answers)
            wire.answers.clear()
        seen.append(process.memory_info().rss / 2**20)
        print(f"{counted:,} refreshes, {seen[-1]:,.0f} MiB", file=sys.stderr)
    for context, _, _ in open_pages:
        context.close()
    third = max(1, len(seen) // 3)
    return {
        "browsers": browsers,
        "refreshes": counted,
        "mib_with_all_open": round(seen[0]),
        "mib_second_third": round(statistics.mean(seen[third : 2 * third] or seen)),
        "mib_last_third": round(statistics.mean(seen[-third:])),
        "mib_most": round(max(seen)),
    }


def summary(values: list[float]) -> dict[str, float]:
    """Median and worst."""
    return {"median": round(statistics.median(values), 3), "worst": round(max(values), 3)}


def measure(size: Size, times: int, browsers: int, many: int) -> dict[str, Any]:
    """All figures."""
    with tempfile.TemporaryDirectory(prefix="lagwise-pages-") as made, browser_of_machine() as browser:
        folder = Path(made)
        lake = PagesLake(Lake(str(folder / "lake")), size, datetime.now(UTC))
        began = time.monotonic()
        lake.write()
        print(f"lake written in {time.monotonic() - began:.0f} s", file=sys.stderr)

        def tick() -> None:
            lake.tick(datetime.now(UTC))

        floor = first_paints(bare, folder, browser, _BARE_TABLE, times)
        paint = first_paints(served, folder, browser, _TABLE, times)
        with served(folder, free_port()) as (address, _):
            refreshed = refreshes(browser, address, tick, 2 * times)
            sentence = page_times(browser, address, _GROUP_PAGE, _VERDICT, tick, times)
            group = page_times(browser, address, _GROUP_PAGE, _MEMBERS, tick, times)
            others = {name: page_times(browser, address, path, _TABLE, tick, times) for name, path in _OTHERS.items()}
        with (
            served(folder, free_port(), refresh_seconds=_MEMORY_REFRESH_SECONDS) as (address, process),
            Rounds(lake, INTERVAL_SECONDS),
        ):
            grown = memory(browser, address, process, browsers, many)
    return {
        "size": {"groups": size.groups, "group_partitions": size.pairs},
        "bare_streamlit_first_paint_s": {"cold": summary(floor[0]), "was_there_before": summary(floor[1])},
        "overview_first_paint_s": {
            "cold": summary(paint[0]),
            "was_there_before": summary(paint[1]),
            "must": FIRST_PAINT_S,
        },
        "overview_refresh_s": {**summary([s for s, _ in refreshed]), "must": REFRESH_S},
        "overview_refresh_bytes": {"most": max(b for _, b in refreshed), "must": REFRESH_BYTES},
        "group_page_24h": {"verdict_s": sentence["seconds"], **group, "must_s": GROUP_S, "must_bytes": REFRESH_BYTES},
        "other_pages": others,
        "memory": grown,
    }


def main() -> None:
    options = options_parser(__doc__, "a small lake and few repetitions: does it run at all?").parse_args()
    found = measure(SMALL, 1, 2, 6) if options.small else measure(Size(), 5, 20, 1000)
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
