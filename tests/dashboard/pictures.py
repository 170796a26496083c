"""The pictures of README and docs, taken anew by ``make pictures``.

They show the data of ``lagwise demo``, which is started for it and ended afterwards: what a reader gets who tries it.
Only what no group of the demo has is shown with the stories of this folder.
"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

from playwright.sync_api import Browser

from lagwise.tables.store import Lake
from lagwise_app.demo.demo_cluster import CLUSTER_NAME
from lagwise_app.demo.expectations import ExpectedGroups
from lagwise_app.terminal import lake_queries
from lagwise_sandbox.made_up import groups as made_up
from lagwise_sandbox.scenarios import SCENARIOS
from tests.dashboard.browsing import Visit, chromium, launched
from tests.dashboard.screenshots import HEIGHTS, PAGES, PHONE, picture, running
from tests.dashboard.serving import free_port, wait_until_served

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "images"
#: The demo has so long for its first start, which downloads what is missing, and then to show each group as expected.
_START_SECONDS, _AGREE_SECONDS = 900.0, 600.0
#: So old is the demo when it is pictured: charts need a past, and a growing backlog time to grow.
_HISTORY_SECONDS = 600.0
_POLL_SECONDS = 1.0
_END_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture of the docs: its file, what it shows, and its size in pixels. It is as tall as its page, within
    ``heights``. ``of_demo`` says whether it shows the demo or the stories."""

    name: str
    path: str
    width: int = 1280
    heights: tuple[int, int] = HEIGHTS
    of_demo: bool = True

    @property
    def file(self) -> str:
        return f"{self.name}.png"


def _address(page: str, cluster: str = CLUSTER_NAME, **query: str) -> str:
    return f"/{page}?" + urlencode({"cluster": cluster, **query})


PICTURES = (
    Picture("overview-light", "/"),
    Picture("overview-phone-light", "/?as=cards", PHONE[0], (PHONE[1], PHONE[1])),
    # Down to what happened.
    Picture("group-light", _address("group", group="warehouse-sync", range="15m"), heights=(700, 1640)),
    # Down to the heat map of its partitions.
    Picture(
        "partitions-light",
        _address("group", "prod", group="clickstream-archive", tab="partitions"),
        heights=(1150, 1150),
        of_demo=False,
    ),
    Picture("topic-light", _address("topic", topic="web-sessions", range="15m")),
    Picture("retention-light", "/retention"),
    Picture("rebalances-light", _address("rebalances", group="stock-cache", range="15m"), heights=(1060, 1060)),
    Picture("alerts-light", "/alerts"),
    # Down to the what-if.
    Picture(
        "capacity-light",
        _address("capacity", made_up.CLUSTER_NAME, group="checkout", topic="orders-placed"),
        heights=(1640, 1640),
    ),
    Picture("headroom-light", PAGES["headroom"], of_demo=False),
    # Down to the scenarios side by side.
    Picture("plan-light", PAGES["plan"], heights=(2000, 2000), of_demo=False),
    Picture("health-light", "/health", heights=(1200, 1200)),
)


def main() -> None:
    """Take all pictures, or those that are named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where they are written; default: %(default)s")
    parser.add_argument("--only", nargs="+", choices=[one.name for one in PICTURES], metavar="NAME", help="only these")
    options = parser.parse_args()
    path = chromium()
    if path is None:
        raise SystemExit("no Chromium on this machine: install Debian's package chromium, or set LAGWISE_CHROMIUM")
    options.folder.mkdir(parents=True, exist_ok=True)
    wanted = [one for one in PICTURES if options.only is None or one.name in options.only]
    with launched(path) as browser:
        for of_demo, source in ((False, running(None)), (True, _demo())):
            its = [one for one in wanted if one.of_demo is of_demo]
            if its:
                with source as address:
                    _take(browser, address, its, options.folder)


def _take(browser: Browser, address: str, pictures: list[Picture], folder: Path) -> None:
    for one in pictures:
        visit = Visit(browser, address, viewport=(one.width, one.heights[0]))
        # Nothing is refreshed, and so faded, while a picture is taken.
        path = f"{one.path}{'&' if '?' in one.path else '?'}refresh=1m"
        picture(visit, path, folder / one.file, width=one.width, heights=one.heights)
        visit.close()
        if visit.troubles:
            raise SystemExit(f"{one.name}: {visit.troubles}")


@contextmanager
def _demo() -> Iterator[str]:
    """The address of a demo that shows every group as expected, and is as old as it is pictured. Raises SystemExit
    where it ends before or does not get there."""
    with tempfile.TemporaryDirectory(prefix="lagwise-pictures-") as made:
        data, port, log = Path(made) / "data", free_port(), Path(made) / "demo.log"
        command = [sys.executable, "-m", "lagwise", "demo", "--data", str(data), "--port", str(port)]
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("LAGWISE_", "STREAMLIT_"))}
        with log.open("w", encoding="utf-8") as output:
            process = subprocess.Popen(command, stdout=output, stderr=output, cwd=made, env=environment)
        try:
            _wait(process, Lake(str(data / "lake")), log)
            address = f"http://127.0.0.1:{port}"
            wait_until_served(address, process, log)
            yield address
        finally:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(_END_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _wait(process: "subprocess.Popen[bytes]", lake: Lake, log: Path) -> None:
    """Wait until the demo has been watched for long enough, and every group has its expected status."""
    began = time.monotonic()
    seen_at: float | None = None
    expected = ExpectedGroups(SCENARIOS)
    while True:
        time.sleep(_POLL_SECONDS)
        now = time.monotonic()
        if process.poll() is not None:
            raise SystemExit(f"the demo ended:\n{log.read_text(encoding='utf-8')}")
        rows = [row for row in lake_queries.groups(lake) if row["cluster"] == CLUSTER_NAME]
        if seen_at is None:
            seen_at = now if rows else None
            if seen_at is None and now - began > _START_SECONDS:
                raise SystemExit(f"the demo shows no group:\n{log.read_text(encoding='utf-8')}")
            continue
        elapsed = now - seen_at
        expected.update(rows, elapsed)
        if elapsed < _HISTORY_SECONDS:
            continue
        if expected.all_agree:
            return
        if elapsed > _HISTORY_SECONDS + _AGREE_SECONDS:
            wrong = ", ".join(g.scenario.group for g in expected.groups if not g.agrees)
            raise SystemExit(f"not as expected: {wrong}\n{log.read_text(encoding='utf-8')}")


if __name__ == "__main__":
    main()
