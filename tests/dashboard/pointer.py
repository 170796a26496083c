"""The pointer at places of the page, for what Playwright does not find by itself: a part of a chart, a stretch of it.

Whenever something is drawn anew or moves, the place that was measured of it is void. So what is done at a place is done
again, at the place as it is by then, until its effect shows.
"""

import time
from collections.abc import Callable
from contextlib import suppress

from playwright.sync_api import Error, Locator, Page, expect

from tests.dashboard.browsing import READY_MS

#: A share of the width and of the height of an element, from its left and its top.
Share = tuple[float, float]
#: Fails with an AssertionError or an error of Playwright's where an effect does not show within so many ms.
Shows = Callable[[float], None]

#: What the browser does by itself, and what it must ask the server for, shows by then if the pointer was at the place.
IN_BROWSER_MS, FROM_SERVER_MS = 4_000, 15_000
#: Where a share of an element is in the window, once the element has a size; scrolls to it unless it is in view.
_PLACES = """(element, shares) => {
    const place = ([x, y], box) => [box.left + x * box.width, box.top + y * box.height];
    const isSeen = ([x, y]) => x > 0 && x < innerWidth && y > 64 && y < innerHeight;
    const places = () => shares.map(share => place(share, element.getBoundingClientRect()));
    if (!places().every(isSeen)) element.scrollIntoView({block: 'center', behavior: 'instant'});
    return element.getBoundingClientRect().width ? places() : null;
}"""


def hover(part: Locator, share: Share, shows: Shows) -> None:
    """Move the pointer to a place until what is said there shows."""

    until_shown(lambda: _move(part, share), shows)


def click(part: Locator, share: Share) -> None:
    """Click on a place until that leads to another address."""
    page, before = part.page, part.page.url

    def press() -> None:
        _move(part, share)
        page.mouse.down()
        page.mouse.up()

    until_shown(press, _is_elsewhere(page, before))


def drag(chart: Locator, begin: Share, end: Share) -> None:
    """Drag over a stretch of a chart until that leads to another address."""
    page, before = chart.page, chart.page.url

    def sweep() -> None:
        first, last = _places(chart, begin, end)
        page.mouse.move(*first)
        page.mouse.down()
        page.mouse.move(*last, steps=8)
        page.mouse.up()

    until_shown(sweep, _is_elsewhere(page, before), FROM_SERVER_MS)


def _move(part: Locator, share: Share) -> None:
    """From beside the place: where the pointer stands already, a chart that was drawn anew does not notice it."""
    [(x, y)] = _places(part, share)
    part.page.mouse.move(x - 20, y)
    part.page.mouse.move(x, y, steps=4)


def _is_elsewhere(page: Page, before: str) -> Shows:
    return lambda ms: expect(page).not_to_have_url(before, timeout=ms)


def _places(element: Locator, *shares: Share) -> list[tuple[float, float]]:
    found: list[tuple[float, float]] | None = element.evaluate(_PLACES, list(shares))
    if found is None:
        raise Error("it was drawn anew meanwhile")
    return found


def until_shown(act: Callable[[], object], shows: Shows, within_ms: int = IN_BROWSER_MS) -> None:
    """Do something until its effect shows, in all within the time in which anything must."""
    deadline = time.monotonic() + READY_MS / 1000
    while True:
        with suppress(Error):  # what it is done to may be gone: drawn anew, or left as the effect came late
            act()
        try:
            return shows(within_ms)
        except (AssertionError, Error):
            if time.monotonic() > deadline:
                raise
