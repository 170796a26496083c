"""`lagwise serve` over real HTTP: who is answered, in which format, and how it starts and ends."""

import gzip
import http.client
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from click.testing import CliRunner
from prometheus_client import parser
from prometheus_client.openmetrics import parser as openmetrics_parser

from lagwise.config import Config
from lagwise.platform import health
from lagwise.platform.errors import ConfigError
from lagwise.tables.raw import WATERMARKS
from lagwise.tables.rounds import TICKS
from lagwise_app.cli import cli
from lagwise_app.server.metrics.endpoint import prefers_openmetrics, qualities
from lagwise_app.server.serve import serve_forever
from lagwise_app.supervisor.effective_settings import free_port
from lagwise_app.supervisor.processes import product_processes
from tests.dashboard.lakes import Scene, write_to
from tests.dashboard.stories import GROUPS_OF_THE_DEMO
from tests.lake_rows import append, row

pytestmark = pytest.mark.thorough

#: What Prometheus 3 sends.
PROMETHEUS = (
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,application/openmetrics-text;version=0.0.1;"
    "q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
)
_SECONDS = 60.0


class Served:
    """A server in a thread, and what it answers."""

    def __init__(self, port: int, state: Path) -> None:
        self.port, self.state = port, state

    def get(self, path: str, method: str = "GET", **headers: str) -> tuple[int, dict[str, str], bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=_SECONDS)
        try:
            connection.request(method, path, headers={k.replace("_", "-"): v for k, v in headers.items()})
            answer = connection.getresponse()
            return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
        finally:
            connection.close()


@contextmanager
def started(data: Path, alerts: dict[str, Any] | None = None, /, **settings: Any) -> Iterator[Served]:
    """A server that listens, until the block ends."""
    port, stop, state = free_port(), threading.Event(), Path(tempfile.mkdtemp(dir=data))
    config = Config.model_validate({"data": str(data), "server": {"port": port, **settings}, "alerts": alerts or {}})
    thread = threading.Thread(target=serve_forever, args=(config, stop, state))
    thread.start()
    try:
        while health.SERVER not in health.read(state):
            assert thread.is_alive()
            thread.join(0.05)
        yield Served(port, state)
    finally:
        stop.set()
        thread.join(_SECONDS)
        assert not thread.is_alive()


@contextmanager
def serving(data: Path, sent: str = "", alerts: dict[str, Any] | None = None, /, **settings: Any) -> Iterator[Served]:
    """A server that has read the lake. ``sent`` is a token."""
    with started(data, alerts, **settings) as served:
        until(lambda: served.get("/metrics", Authorization=f"Bearer {sent}")[0] != 503)
        yield served


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + _SECONDS
    while not condition():
        assert time.monotonic() < end
        threading.Event().wait(0.05)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder whose verdicts are fresh for as long as these tests can take."""
    folder = tmp_path_factory.mktemp("served")
    write_to(folder, Scene(datetime.now(UTC), stories=GROUPS_OF_THE_DEMO, hours=0.1))
    return folder


@pytest.fixture(scope="module")
def served(data: Path) -> Iterator[Served]:
    with serving(data, metrics={"name_sets": ["kafka_exporter", "burrow"], "stale_after_seconds": 3600}) as found:
        yield found


def test_prometheus_gets_openmetrics_compressed(served: Served) -> None:
    status, headers, body = served.get("/metrics", Accept=PROMETHEUS, Accept_Encoding="gzip")
    assert (status, headers["content-encoding"]) == (200, "gzip")
    assert headers["content-type"] == "application/openmetrics-text; version=1.0.0; charset=utf-8"
    families = {f.name: f for f in openmetrics_parser.text_string_to_metric_families(gzip.decompress(body).decode())}
    assert len(families["lagwise_group_status"].samples) == len(GROUPS_OF_THE_DEMO)
    assert int(headers["content-length"]) == len(body)


def test_who_says_nothing_gets_plain_text(served: Served) -> None:
    status, headers, body = served.get("/metrics")
    assert (status, headers["content-type"]) == (200, "text/plain; version=0.0.4; charset=utf-8")
    assert "content-encoding" not in headers
    families = {f.name: f for f in parser.text_string_to_metric_families(body.decode())}
    assert len(families["lagwise_group_status"].samples) == len(GROUPS_OF_THE_DEMO)


@pytest.mark.parametrize(
    ("accept", "wants"),
    [
        (PROMETHEUS, True),
        ("application/openmetrics-text", True),
        ("text/plain", False),
        ("text/plain;version=0.0.4;q=0.9, application/openmetrics-text;q=0.5", False),
        ("application/openmetrics-text;q=0", False),
        ("application/openmetrics-text;q=much", False),
        ("*/*", False),
        ("", False),
    ],
)
def test_the_format_is_the_caller_s_choice(accept: str, wants: bool) -> None:
    assert prefers_openmetrics(accept) is wants


def test_gzip_can_be_refused(served: Served) -> None:
    assert qualities("br;q=1.0, gzip;q=0") == {"br": 1.0, "gzip": 0.0}
    assert "content-encoding" not in served.get("/metrics", Accept_Encoding="br;q=1.0, gzip;q=0")[1]


@pytest.mark.parametrize(
    ("path", "status", "says"),
    [
        ("/metrics/kafka_exporter/prod", 200, "kafka_consumergroup_lag{"),
        ("/metrics/burrow", 200, "burrow_kafka_consumer_status{"),
        ("/metrics/burrow/prod", 404, "leave it out of the path"),
        ("/metrics/kafka_exporter", 404, "the path must be /metrics/kafka_exporter/CLUSTER"),
        ("/metrics/kafka_exporter/nobody", 404, "no cluster 'nobody' is known"),
        (f"/metrics/kafka_exporter/{quote('a/b ü', safe='')}", 404, "no cluster 'a/b ü' is known"),
        ("/metrics/kminion/prod", 404, "kminion is not among server.metrics.name_sets"),
        ("/healthz", 200, '"ok":true'),
        ("/", 404, "Not Found"),
    ],
)
def test_every_exporter_has_its_own_address(served: Served, path: str, status: int, says: str) -> None:
    answered, _, body = served.get(path)
    assert answered == status
    assert says in body.decode()


def test_only_reading_is_possible(served: Served) -> None:
    assert served.get("/metrics", "HEAD")[::2] == (200, b"")
    assert served.get("/metrics", "POST")[0] == 405


def test_a_new_round_is_served(tmp_path: Path) -> None:
    now = datetime.now(UTC)
    lake = write_to(tmp_path, Scene(now, stories=GROUPS_OF_THE_DEMO[:1], hours=0.1))
    with serving(tmp_path) as served:
        before = rounds_end(served)
        append(lake, TICKS, [row(TICKS, started_at=now, finished_at=now + timedelta(seconds=5))])
        until(lambda: rounds_end(served) != before)
        assert rounds_end(served) == pytest.approx((now + timedelta(seconds=5)).timestamp(), abs=0.001)


def test_a_damaged_file_of_samples_is_left_out(tmp_path: Path) -> None:
    lake = write_to(tmp_path, Scene(datetime.now(UTC), stories=GROUPS_OF_THE_DEMO[:1], hours=0.1))
    newest = {key: rows[-1] for key, rows in lake.read(WATERMARKS).to_pydict().items()}
    before = set(lake.relative_files(WATERMARKS))
    append(lake, WATERMARKS, [{**newest, "partition": 99}])
    (damaged,) = set(lake.relative_files(WATERMARKS)) - before
    (Path(lake.location(WATERMARKS)) / damaged).write_bytes(b"damaged")
    with serving(tmp_path, metrics={"name_sets": ["burrow"], "stale_after_seconds": 3600}) as served:
        assert b"\nlagwise_lake_readable 1\n" in served.get("/metrics")[2]
        assert b"\nburrow_kafka_topic_partition_offset{" in served.get("/metrics/burrow")[2]


def rounds_end(served: Served) -> float:
    (found,) = re.findall(rb"^lagwise_analysis_timestamp_seconds (\S+)$", served.get("/metrics")[2], re.MULTILINE)
    return float(found)


def test_a_token(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVER_TOKEN", "s3cret")
    settings = {"token": "${env:SERVER_TOKEN}", "metrics": {"stale_after_seconds": 3600}}
    with serving(data, "s3cret", **settings) as served:
        for wrong in (
            {},
            {"Authorization": "Bearer wrong"},
            {"Authorization": "s3cret"},
            {"Authorization": "Bearer é"},
        ):
            status, _, body = served.get("/metrics", **wrong)
            assert (status, body.decode()) == (401, "send the token as Authorization: Bearer …\n")
        assert served.get("/metrics", Authorization="Bearer s3cret")[0] == 200
        assert served.get("/healthz")[0] == 200
        assert "s3cret" not in str(health.read(served.state))


def test_before_the_lake_is_read_there_is_no_answer(tmp_path: Path) -> None:
    """Of a lake that is out of reach: a file stands where its folder should be."""
    (tmp_path / "lake").write_text("no folder")
    with started(tmp_path) as served:
        assert served.get("/metrics")[::2] == (503, b"the lake has not been read yet\n")


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        config = Config.model_validate({"data": str(tmp_path), "server": {"port": port}})
        with pytest.raises(ConfigError, match=rf"cannot listen on 127\.0\.0\.1:{port} \(server\): Address already in"):
            serve_forever(config, threading.Event(), tmp_path)


def test_it_is_part_of_the_product_only_if_asked_for(tmp_path: Path) -> None:
    def names(**server: Any) -> list[str]:
        config = Config.model_validate({"data": str(tmp_path), "server": server})
        return [part.name for part in product_processes(config, tmp_path / "x.yaml", dashboard=False)]

    assert "server" not in names()
    assert names(port=8603)[-1] == "server"


@pytest.mark.process
def test_the_command_serves_until_it_is_told_to_end(data: Path, tmp_path: Path) -> None:
    """And a scrape that is under way at that moment is answered."""
    port = free_port()
    settings = tmp_path / "lagwise.yaml"
    settings.write_text(
        f"{{data: '{data}', state_dir: '{tmp_path}', server: {{metrics: {{stale_after_seconds: 3600}}}}}}"
    )
    command = [sys.executable, "-P", "-m", "lagwise", "--config", str(settings), "serve", "--port", str(port)]
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    served = Served(port, tmp_path)

    def answers() -> bool:
        assert process.poll() is None
        try:
            return served.get("/metrics")[0] == 200
        except OSError:
            return False

    try:
        until(answers)
        with socket.create_connection(("127.0.0.1", port)) as caller:
            caller.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            first = caller.recv(1)
            process.send_signal(signal.SIGTERM)
            answer = first + b"".join(iter(lambda: caller.recv(65536), b""))
        assert answer.startswith(b"HTTP/1.1 200 OK") and answer.endswith(b"# EOF\n")
        _, log = process.communicate(timeout=_SECONDS)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 0
    assert "Traceback" not in log
    assert f"answers on http://127.0.0.1:{port}/metrics" in log


def test_without_a_port_it_says_what_to_set(tmp_path: Path) -> None:
    ran = CliRunner().invoke(cli, ["serve", "--data", str(tmp_path)], prog_name="lagwise")
    assert ran.exit_code == 1
    assert "no port to listen on: add --port, or set `server.port`" in ran.stderr
