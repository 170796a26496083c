"""Refreshes of pages in real browsers: how long they take, what goes over the wire, and what they do to the server's
memory."""

import statistics
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import psutil
from playwright.sync_api import Browser, BrowserContext, Page, ViewportSize

from benchmarks.pages_lake import PagesLake
from benchmarks.pages_server import REFRESH_SECONDS

VIEWPORT: ViewportSize = {"width": 1280, "height": 900}
READY_MS = 60_000
#: An answer is over when nothing more came for so long.
_QUIET_S = 0.7


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
    context = browser.new_context(viewport=VIEWPORT)
    page = context.new_page()
    wire = Wire()
    wire.attach(page)
    return gone_to(page, address, wanted), context, page, wire


def gone_to(page: Page, address: str, wanted: str) -> float:
    """Seconds from the navigation until something is on the screen."""
    began = time.monotonic()
    page.goto(address, wait_until="commit")
    page.wait_for_selector(wanted, state="attached", timeout=READY_MS)
    return time.monotonic() - began


def refreshes(
    browser: Browser, address: str, wanted: str, tick: Callable[[], None], times: int
) -> list[tuple[float, int]]:
    """Seconds and bytes of refreshes of a page, each after a round that changed everything."""
    _, context, page, wire = opened(browser, address, wanted)
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


def memory(
    browser: Browser, pages: Sequence[tuple[str, str]], process: psutil.Process, browsers: int, refreshes: int
) -> Any:
    """Resident memory of the server, MiB, while many browsers refresh these pages: addresses, and what is on them."""
    open_pages = []
    for number in range(browsers):
        _, context, page, wire = opened(browser, *pages[number % len(pages)])
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
