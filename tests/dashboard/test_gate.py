"""The real server: whom it lets look and act, whatever stands between, and what it refuses to serve."""

import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest
import yaml

from lagwise.platform.health import DASHBOARD
from lagwise_app.supervisor.effective_settings import child_environment, free_port
from lagwise_app.supervisor.processes import process_command
from lagwise_dashboard.server.http_layer import HEADERS
from tests.dashboard import alerts, lakes
from tests.dashboard.lakes import Scene
from tests.dashboard.serving import served, started
from tests.dashboard.socket_client import drawn
from tests.dashboard.test_identity import ADDED_BY_PROXIES

pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A served dashboard without sign-in, with alerts that fire."""
    folder = tmp_path_factory.mktemp("gate")
    now = datetime.now(UTC)
    lakes.write_to(folder, Scene(now))
    alerts.write_to(folder, now)
    with served(folder) as found:
        yield found


def test_a_page_of_this_machine_acts_and_everything_else_looks(address: str) -> None:
    assert "You act as" in drawn(address, "alerts", origin=address)
    for origin in (None, "http://localhost:3000"):
        seen = drawn(address, "alerts", origin=origin)
        assert "Read-only." in seen
        assert "You act as" not in seen
        assert "payments-settlement" in seen


@pytest.mark.parametrize("name", ["X-Forwarded-Proto", "CF-Connecting-IP", "Remote-User"])
def test_no_actions_through_a_proxy(address: str, name: str) -> None:
    assert name in ADDED_BY_PROXIES
    seen = drawn(address, "alerts", origin=address, headers={name: "x"})
    assert "a proxy added" in seen
    assert "You act as" not in seen


def test_every_answer_carries_the_headers(address: str) -> None:
    page = httpx.get(address)
    script = re.search(r'href="\.(/static/js/index[^"]+)"', page.text)
    assert script is not None
    answers = {
        200: ["/", "/group", script[1], "/favicon.png", "/_stcore/health", "/_stcore/host-config"],
        404: ["/_stcore/agent/none", "/media/none"],
        400: ["/..%2fsecrets"],
    }
    for status, paths in answers.items():
        for path in paths:
            answer = httpx.get(address + path)
            assert (answer.status_code, path) == (status, path)
            assert HEADERS.items() <= {k.title(): v for k, v in answer.headers.items()}.items(), path
    assert HEADERS.items() <= {k.title(): v for k, v in httpx.post(address + "/group").headers.items()}.items()


def test_scripts_are_sent_compressed_to_whoever_takes_them(address: str) -> None:
    sent = whole = 0
    with httpx.Client(base_url=address) as client:
        static = re.findall(r'(?:src|href)="\.(/static/[^"]+\.(?:js|css))"', client.get("/").text)
        assert len(static) > 20
        for path in static:
            plain = client.get(path, headers={"accept-encoding": "identity"})
            assert "content-encoding" not in plain.headers
            with client.stream("GET", path, headers={"accept-encoding": "gzip"}) as packed:
                raw = b"".join(packed.iter_raw())
            assert client.get(path).content == plain.content, "it unpacks to the same"
            assert packed.headers["content-type"].split(";")[0].removeprefix("application/") in (
                "javascript",
                "text/javascript",
                "text/css",
            )
            assert "immutable" in packed.headers["cache-control"]
            sent, whole = sent + len(raw), whole + len(plain.content)
    assert sent < 0.4 * whole


AUTH = {
    "redirect_uri": "https://lagwise.example/oauth2callback",
    "cookie_secret": "c" * 32,
    "client_id": "lagwise",
    "client_secret": "a-secret",
    "server_metadata_url": "https://sso.example/.well-known/openid-configuration",
}


@pytest.fixture
def with_sign_in(tmp_path: Path) -> tuple[Path, int]:
    """Settings with a sign-in over a lake with groups, and the port in them."""
    lakes.write_to(tmp_path, Scene(datetime.now(UTC)))
    file, port = tmp_path / "monitor.yaml", free_port()
    sign_in = {"auth_file": str(tmp_path / "auth.toml"), "operators": [".*"]}
    file.write_text(yaml.safe_dump({"data": str(tmp_path), "dashboard": {"port": port, "sign_in": sign_in}}))
    (tmp_path / "auth.toml").write_text("[auth]\n" + "".join(f'{k} = "{v}"\n' for k, v in AUTH.items()))
    return file, port


def test_a_lone_dashboard_asks_who_people_are(with_sign_in: tuple[Path, int], tmp_path: Path) -> None:
    """Its settings are given by --config alone, and it runs in a folder where there are none."""
    file, port = with_sign_in
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    command = [sys.executable, "-P", "-m", "lagwise", "--config", str(file), "dashboard"]
    address = f"http://127.0.0.1:{port}"
    with started(command, folder, address):
        for page in ("", "alerts", "group"):
            seen = drawn(address, page, origin=address)
            assert "Sign in to see" in seen
            assert "payments-settlement" not in seen


def _errors(output: str) -> list[str]:
    """What a process said, without the log of its start: its settings, and what it made or migrated."""
    return [line for line in output.splitlines() if " dashboard INFO lagwise: " not in line]


def test_a_sign_in_that_cannot_be_put_up_is_not_served(with_sign_in: tuple[Path, int], tmp_path: Path) -> None:
    file, port = with_sign_in
    (tmp_path / "auth.toml").write_text("[auth]\n", encoding="utf-8")
    environment = child_environment(file)
    ran = subprocess.run(process_command(DASHBOARD), env=environment, capture_output=True, text=True, timeout=60)
    assert ran.returncode == 1
    assert _errors(ran.stderr) == [
        f"lagwise: dashboard.sign_in.auth_file: [auth] in {tmp_path / 'auth.toml'} needs redirect_uri, cookie_secret, "
        "client_id, client_secret, server_metadata_url, each a non-empty text [sign_in_incomplete]"
    ]
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", port)) != 0


def test_an_address_that_is_taken_is_one_line(address: str, tmp_path: Path) -> None:
    file, port = tmp_path / "lagwise.yaml", int(address.rpartition(":")[2])
    file.write_text(yaml.safe_dump({"data": str(tmp_path), "dashboard": {"port": port}}), encoding="utf-8")
    environment = child_environment(file)
    ran = subprocess.run(process_command(DASHBOARD), env=environment, capture_output=True, text=True, timeout=60)
    assert ran.returncode == 1
    assert _errors(ran.stderr) == [
        f"lagwise: cannot listen on 127.0.0.1:{port} (dashboard): Address already in use; another dashboard may be "
        "running there; choose another dashboard.port [cannot_listen]"
    ]
