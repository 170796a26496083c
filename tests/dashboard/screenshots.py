"""Pictures of every page, light and dark, from the real server in a real Chromium.

``python -m tests.dashboard.screenshots FOLDER`` shows the stories of this folder; with ``--address`` it shows what a
running dashboard shows, for example that of ``lagwise demo``. Those of the docs are taken by
:mod:`tests.dashboard.pictures`.
"""

import argparse
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal, get_args
from urllib.parse import urlencode

from lagwise.domain.sizing.workload import Concurrency, Workload
from lagwise.platform import health as heartbeats
from lagwise_dashboard.pages.plan.scenarios import SavedScenario, as_text
from tests.dashboard import alerts, lakes, planning
from tests.dashboard.browsing import Visit, chromium, launched
from tests.dashboard.lakes import Scene
from tests.dashboard.serving import served

#: A scenario that is compared with what is known of the group.
_BIGGER = SavedScenario(
    "nodes of 4 cores",
    Workload(
        t1_seconds=0.030,
        t2_seconds=0.004,
        cores=4.0,
        peak_rate_per_second=512.0,
        partitions=12,
        hottest_share=0.0978,
        concurrency=Concurrency.POOL,
    ),
)
PAGES = {
    "overview": "/",
    "group": "/group",
    "topic": "/topic?" + urlencode({"cluster": "prod", "topic": "clicks"}),
    "retention": "/retention",
    "rebalances": "/rebalances?" + urlencode({"cluster": "prod", "group": "orders-fulfilment"}),
    "alerts": "/alerts",
    "headroom": "/capacity",
    "capacity": "/capacity?" + urlencode({"cluster": "prod", "group": "checkout"}),
    "plan": "/plan?" + urlencode({"cluster": "prod", "group": "checkout", "scenario": as_text(_BIGGER)}),
    "health": "/health",
}
#: The shortest and the tallest picture.
HEIGHTS = (700, 3200)
PHONE = (390, 844)
_ATTEMPTS = 10
_IS_AT_REST = """() => document.querySelector('[data-testid="stApp"]').dataset.testScriptState === 'notRunning'
    && !document.querySelector('[data-stale="true"], [data-testid="stSkeleton"]')
    && [...document.querySelectorAll('[role="figure"]')].every(
        (chart) => chart.parentElement.clientWidth === 0 || chart.querySelector(".main-svg"))"""
#: How tall the page is, once it has been at rest, and as tall, for a second: tables and charts come after the script
#: has run, and are drawn anew at a new size of the window, without any sign of its end.
_HEIGHT = f"""() => {{
    const tall = document.querySelector('[data-testid="stMain"]').scrollHeight;
    if (window.seen?.tall !== tall || !({_IS_AT_REST})()) window.seen = {{tall, since: performance.now()}};
    return performance.now() - window.seen.since > 1000 && tall;
}}"""
_FRESH = timedelta(hours=1)
_ERRORS = {
    "prod": [{"kind": "leader_not_available", "count": 2, "example": "watermarks of clicks[4]: it has no leader"}]
}


Scheme = Literal["light", "dark"]


def main() -> None:
    """Write ``<page>-<light or dark>.png`` for every page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--address", help="of a running dashboard; without it, one is started over the stories")
    parser.add_argument("--cluster", default="prod")
    parser.add_argument("--pages", nargs="*", choices=list(PAGES), default=list(PAGES), help="only these")
    parser.add_argument("--group", default="orders-fulfilment", help="the group whose page is pictured")
    parser.add_argument("--schemes", nargs="*", choices=get_args(Scheme), default=get_args(Scheme), help="only these")
    options = parser.parse_args()
    path = chromium()
    if path is None:
        raise SystemExit("no Chromium on this machine: install Debian's package chromium, or set LAGWISE_CHROMIUM")
    options.folder.mkdir(parents=True, exist_ok=True)
    group = urlencode({"cluster": options.cluster, "group": options.group})
    for scheme in options.schemes:
        with running(options.address) as address, launched(path) as browser:
            if "overview" in options.pages:
                visit = Visit(browser, address, scheme=scheme, viewport=PHONE)
                width, height = PHONE
                file = options.folder / f"overview-phone-{scheme}.png"
                picture(visit, "/?as=cards", file, width=width, heights=(height, height))
                visit.close()
            visit = Visit(browser, address, scheme=scheme)
            for name in options.pages:
                page = PAGES[name]
                picture(visit, f"{page}?{group}" if name == "group" else page, options.folder / f"{name}-{scheme}.png")
            visit.close()


@contextmanager
def running(address: str | None) -> Iterator[str]:
    """The address that was given, or that of a dashboard over stories that end just now. They stay fresh for a while:
    no other data is expected for _FRESH."""
    if address is not None:
        yield address.rstrip("/")
        return
    with tempfile.TemporaryDirectory() as made:
        data = Path(made)
        now = datetime.now(UTC)
        planning.write(lakes.write_to(data, Scene(now, errors=_ERRORS, promised=_FRESH)), now)
        alerts.write_to(data, now)
        for part, line in (
            (heartbeats.COLLECTOR, "prod: 16 groups, 130 group-partitions, 0.23 s"),
            (heartbeats.ANALYSIS, "133 group-partitions judged in 2.6 s"),
            (heartbeats.ALERTS, "7 rules, 5 firing, 1 pending"),
        ):
            heartbeats.Heart(data, part).beat(line)
        with served(data, interval_seconds=_FRESH.total_seconds()) as found:
            yield found


def picture(visit: Visit, path: str, file: Path, *, width: int = 1280, heights: tuple[int, int] = HEIGHTS) -> None:
    """One page, as tall as it is within these heights."""
    least, most = heights
    visit.page.set_viewport_size({"width": width, "height": least})
    page = visit.open(path)
    page.wait_for_load_state("networkidle")
    height = least
    for _ in range(_ATTEMPTS):
        while height != (tall := min(max(least, page.wait_for_function(_HEIGHT).json_value()), most)):
            height = tall
            page.set_viewport_size({"width": width, "height": height})
        page.screenshot(path=str(file))
        if page.evaluate(_HEIGHT):  # else a refresh has begun, which fades the page, or a table came late
            break
    print(f"{file} ({file.stat().st_size // 1024} kB)")  # noqa: T201 (a tool's output)


if __name__ == "__main__":
    main()
