"""The scripts of our own components: fetched once and kept, and not sent in every refresh."""

import re
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, Response, WebSocket, expect

from lagwise.platform.health import DASHBOARD
from lagwise_app.supervisor.processes import process_command
from tests.dashboard import lakes
from tests.dashboard.browsing import READY_MS, Visit
from tests.dashboard.lakes import Scene
from tests.dashboard.serving import free_port, started, write_settings

pytestmark = [pytest.mark.thorough, pytest.mark.browser]

_PRELOADED = re.compile(r"<\./(static/lagwise/[a-z]+\.[0-9a-f]{16}\.js)>; rel=modulepreload")
_BASE_PATH = "lag"


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A dashboard below a path of its own, as behind a proxy that serves other things, too."""
    folder: Path = tmp_path_factory.mktemp("scripts")
    lakes.write_to(folder, Scene(datetime.now(UTC)))
    (folder / ".streamlit").mkdir()
    (folder / ".streamlit" / "config.toml").write_text(f'[server]\nbaseUrlPath = "{_BASE_PATH}"\n', encoding="utf-8")
    port = free_port()
    settings = write_settings(folder, port=port, refresh_seconds=2)
    with started(process_command(DASHBOARD), folder, f"http://127.0.0.1:{port}/{_BASE_PATH}", settings) as found:
        yield found


def test_a_script_is_fetched_once_and_not_sent_with_its_component(browser: Browser, address: str) -> None:
    with closing(Visit(browser, address)) as visit:
        scripts: list[Response] = []
        sockets: list[WebSocket] = []
        frames: list[bytes] = []

        def opened(socket: WebSocket) -> None:
            sockets.append(socket)
            socket.on("framereceived", lambda data: frames.append(data if isinstance(data, bytes) else data.encode()))

        visit.page.on("websocket", opened)
        visit.page.on("response", lambda found: scripts.append(found) if "/static/lagwise/" in found.url else None)
        page = visit.open("/group?cluster=prod&group=clickstream-archive&tab=partitions")
        table = page.get_by_role("grid", name="Partitions of the group")
        expect(table.get_by_role("gridcell").first).to_be_visible()
        expect(table).to_have_css("border-spacing", "0px")  # of its style, which comes with the script
        sockets[-1].wait_for_event("framereceived", lambda data: b"lagwise_table" in data, timeout=READY_MS)
        urls = [found.url for found in scripts]
        assert any("/grid." in url for url in urls)
        assert len(urls) == len(set(urls)), "each once, though it was asked for before its component came"
        for found in scripts:
            assert found.url.startswith(f"{address}/static/lagwise/")
            assert "immutable" in found.headers["cache-control"]
            assert found.headers["content-encoding"] == "gzip"
        assert any(b"lagwise_table" in frame for frame in frames)
        assert not any(b"class Table" in frame for frame in frames)
        assert visit.troubles == []


def test_scripts_are_named_by_what_they_contain(address: str) -> None:
    with httpx.Client(base_url=address) as client:
        link = client.get("/").headers["link"]
        paths = _PRELOADED.findall(link)
        assert len(paths) == len(set(paths)) == link.count("rel=modulepreload")
        assert {path.split("/")[-1].split(".")[0] for path in paths} >= {"grid", "window", "finder", "skip", "fleet"}
        for path in paths:
            packed, plain = (client.get(f"/{path}", headers={"accept-encoding": how}) for how in ("gzip", "identity"))
            assert (packed.headers["content-encoding"], plain.headers.get("content-encoding")) == ("gzip", None)
            assert packed.content == plain.content
            assert "export default" in plain.text
            name, digest, _ = path.rsplit(".", 2)
            other = client.get(f"/{name}.{digest[::-1]}.js")
            assert other.status_code == 404 or "export default" not in other.text, "of another version"
