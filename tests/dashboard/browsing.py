"""A real Chromium, and what a page must never do in it."""

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal

from playwright.sync_api import Browser, BrowserContext, Error, Page, ViewportSize, expect, sync_playwright

#: Where Debian, Fedora and others put it; LAGWISE_CHROMIUM names another one.
_CANDIDATES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
#: Streamlit looks below the page's own address for its server first, and finds it at the root then.
_SEARCHING = re.compile(r"/[a-z]+/_stcore/(health|host-config)$")
#: So long may anything take that a test waits for: the machine may be slow, and busy with other tests.
READY_MS = 120_000
expect.set_options(timeout=READY_MS)


def chromium() -> str | None:
    """The path of a Chromium on this machine; None if there is none."""
    named = os.environ.get("LAGWISE_CHROMIUM")
    if named:
        return named
    found = next((path for name in _CANDIDATES if (path := shutil.which(name))), None)
    if found:
        return found
    with sync_playwright() as playwright:
        own = playwright.chromium.executable_path
    return own if Path(own).exists() else None


@contextmanager
def launched(path: str) -> Iterator[Browser]:
    """A running browser."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


def new_context(
    browser: Browser,
    *,
    scheme: Literal["light", "dark"] = "light",
    viewport: tuple[int, int] = (1280, 900),
    user_agent: str | None = None,
    time_zone: str | None = None,
) -> BrowserContext:
    """A visitor's cookies, storage and cache, all empty."""
    size: ViewportSize = {"width": viewport[0], "height": viewport[1]}
    context = browser.new_context(viewport=size, color_scheme=scheme, user_agent=user_agent, timezone_id=time_zone)
    context.set_default_timeout(READY_MS)
    return context


class Visit:
    """One page of one visitor, and everything that went wrong in it."""

    def __init__(
        self,
        browser: Browser,
        address: str,
        *,
        scheme: Literal["light", "dark"] = "light",
        viewport: tuple[int, int] = (1280, 900),
        user_agent: str | None = None,
        context: BrowserContext | None = None,
    ) -> None:
        self._is_own_context = context is None
        self._context = context or new_context(browser, scheme=scheme, viewport=viewport, user_agent=user_agent)
        self.page: Page = self._context.new_page()
        self.address = address
        self.troubles: list[str] = []
        self.page.on("pageerror", lambda error: self.troubles.append(f"exception: {error}"))
        self.page.on("console", lambda m: self._console(m.type, m.text, str(m.location.get("url", ""))))
        self.page.on("requestfailed", lambda r: self._failed(r.url, r.failure or ""))

    def open(self, path: str = "/") -> Page:
        """Go to a path and wait until the page has been drawn."""
        self.page.goto(self.address + path)
        self.settled()
        return self.page

    def settled(self) -> None:
        """Wait until the script has run and its results are on the screen."""
        expect(self.page.locator('[data-testid="stApp"][data-test-script-state="notRunning"]')).to_be_visible()
        expect(self.page.locator('[data-testid="stHeading"]').first).to_be_visible()
        expect(self.page.locator("#first_sight")).to_have_count(0)

    def hold(self) -> None:
        """Switch the refreshes off, and wait until the page has been drawn without them."""
        self.page.get_by_text("Live", exact=True).first.click()
        # The server has disabled it, so the run without refreshes has begun.
        expect(self.page.get_by_role("combobox", name="Refresh")).to_be_disabled()
        self.settled()
        expect(self.page.locator('[data-stale="true"]')).to_have_count(0)

    def close(self) -> None:
        """Leave, and leave nothing behind: a ``context`` that was given keeps only what it loaded from the server."""
        if self._is_own_context:
            self._context.close()
            return
        with suppress(Error):  # a page that was never drawn has stored nothing
            self.page.evaluate("localStorage.clear()")
        self.page.close()
        self._context.clear_cookies()

    def overflow(self) -> int:
        """Pixels by which the page is wider than the window."""
        found: int = self.page.evaluate(
            """() => Math.max(0, ...[document.documentElement, document.querySelector('[data-testid="stMain"]')]
                .map(e => e.scrollWidth - e.clientWidth))"""
        )
        return found

    def foreign_links(self) -> list[str]:
        """Links on the page that lead elsewhere than to the dashboard itself."""
        found: list[str] = self.page.locator('[data-testid="stMain"] a[href]').evaluate_all(
            "links => links.filter(a => a.host !== location.host).map(a => a.href)"
        )
        return found

    def _console(self, kind: str, text: str, url: str) -> None:
        if kind == "error" and not _SEARCHING.search(url):
            self.troubles.append(f"console: {text} ({url})")

    def _failed(self, url: str, why: str) -> None:
        # What is under way when a page is left is aborted: that is no trouble. A foreign host always is.
        if why != "net::ERR_ABORTED" or not url.removeprefix("blob:").startswith(self.address):
            self.troubles.append(f"request failed: {url} ({why})")


__all__ = ["READY_MS", "Error", "Visit", "chromium", "launched", "new_context"]
