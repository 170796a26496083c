"""How many bytes a cold browser fetches for the overview and for a group's page, as its network stack counts them.

A real Chromium without any cache, the really started server, a small lake: scripts and styles do not depend on what the
lake holds. What the page's socket carries does, and is counted separately.
"""

import json
import tempfile
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from playwright.sync_api import Browser

from benchmarks.common import options_parser
from benchmarks.pages_cast import CLUSTER, GROUP, SMALL
from benchmarks.pages_lake import PagesLake
from benchmarks.pages_server import browser_of_machine, served
from lagwise.tables.store import Lake
from tests.dashboard.serving import free_port

_READY_MS = 60_000
_SETTLE_MS = 3_000
_PAGES = {
    "overview": "/",
    "group": "/group?" + urlencode({"cluster": CLUSTER, "group": GROUP, "range": "24h"}),
}


def fetched(browser: Browser, address: str) -> dict[str, Any]:
    """Requests and bytes of one page, in a context without any cache: headers and bodies, as they were sent."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    client = context.new_cdp_session(page)
    kinds: dict[str, str] = {}
    found: Counter[str] = Counter()

    def finished(event: dict[str, Any]) -> None:
        found["requests"] += 1
        found["bytes"] += int(event["encodedDataLength"])
        found[f"{kinds.get(event['requestId'], 'other')}_bytes"] += int(event["encodedDataLength"])

    client.on("Network.responseReceived", lambda event: kinds.update({event["requestId"]: event["type"].lower()}))
    client.on("Network.loadingFinished", finished)
    client.on(
        "Network.webSocketFrameReceived",
        lambda event: found.update(socket_bytes=len(event["response"]["payloadData"]) * 3 // 4),  # it comes as base64
    )
    client.send("Network.enable")
    page.goto(address)
    page.wait_for_selector("role=gridcell", state="attached", timeout=_READY_MS)
    page.wait_for_timeout(_SETTLE_MS)
    context.close()
    return dict(sorted(found.items()))


def measure() -> dict[str, Any]:
    """Both pages."""
    with tempfile.TemporaryDirectory(prefix="lagwise-wire-") as made, browser_of_machine() as browser:
        folder = Path(made)
        PagesLake(Lake(str(folder / "lake")), SMALL, datetime.now(UTC)).write()
        with served(folder, free_port(), refresh_seconds=3600) as (address, _):
            return {name: fetched(browser, address + where) for name, where in _PAGES.items()}


def main() -> None:
    options_parser(__doc__, "the same: it is small anyway").parse_args()
    print(json.dumps(measure(), indent=2))


if __name__ == "__main__":
    main()
