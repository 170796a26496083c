"""The dead man's switch: when it may be fed (a proof table), and that it is, against a real server."""

import logging
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from lagwise.config import Config
from lagwise.config.operating import Heartbeat
from lagwise.tables import ALL_TABLES
from lagwise.tables.store import Lake
from lagwise_alerts.dead_mans_switch import DeadMansSwitch, ping, self_check
from lagwise_alerts.model import AlertKind, FreshnessCondition
from lagwise_alerts.operate.queries import ChannelState
from lagwise_alerts.run import alert_once
from tests.alerts.support import LakeWriter, at, freshness, observation

FRESH = [freshness(600, 590), freshness(600, 600, kind=AlertKind.ANALYSIS)]


@pytest.mark.parametrize(
    ("late", "channels", "said", "why"),
    [
        ([], [], None, "all is fresh"),
        ([freshness(600, 420)], [], None, "three minutes are fresh"),
        ([freshness(600, 419)], [], "the collection from kafka has brought no data for 3 min 1 s", "more are not"),
        ([freshness(600, None)], [], "has brought no data", "never is not fresh, also right after the start"),
        ([freshness(600, 300, floor=300.0)], [], None, "where it is sampled every 100 s, five minutes are"),
        (
            [freshness(600, 0, kind=AlertKind.ANALYSIS)],
            [],
            "waited for the analysis for 10 min",
            "the analysis is late",
        ),
        ([], [ChannelState("ops", None, None, None)], None, "there was nothing to deliver yet"),
        ([], [ChannelState("ops", at(250), at(10), None)], None, "a retry or two"),
        (
            [],
            [ChannelState("ops", at(200), None, None)],
            "to channel ops have waited for 6 min 40 s",
            "a dead receiver",
        ),
        ([], [ChannelState("ops", None, at(10), at(20))], "last message to channel ops was given up", "it refuses"),
        ([], [ChannelState("ops", None, at(30), at(20))], None, "it took one since"),
    ],
)
def test_when_all_is_fresh(
    late: list[FreshnessCondition], channels: list[ChannelState], said: str | None, why: str
) -> None:
    found = self_check(observation(*(late or FRESH)), channels, at(600), summary_seconds=60.0)
    assert (found is None) if said is None else (found is not None and said in found), why


def test_where_nothing_is_watched_nothing_is_well() -> None:
    assert self_check(observation(clusters=()), [], at(600)) == "no cluster is watched"


class Server:
    """Counts what is fetched, and answers with ``status``."""

    def __init__(self) -> None:
        self.paths: list[str] = []
        self.status = 200
        self.arrived = threading.Condition()
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                with server.arrived:
                    server.paths.append(self.path)
                    server.arrived.notify_all()
                self.send_response(server.status)
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                """Quiet."""

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.02})

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.http.server_address[1]}/ping/token-123"

    def wait_for(self, count: int) -> None:
        with self.arrived:
            assert self.arrived.wait_for(lambda: len(self.paths) >= count, 10.0)


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    made.thread.start()
    yield made
    made.http.shutdown()
    made.thread.join()
    made.http.server_close()


def test_it_is_fed_from_the_first_good_round_on(server: Server) -> None:
    switch = DeadMansSwitch(Heartbeat(url=server.url, interval_seconds=5), round_seconds=5.0)
    switch.start()
    switch.update(None)
    server.wait_for(1)
    assert server.paths == ["/ping/token-123"]
    switch.stop(5.0)


def test_it_is_not_fed_while_something_is_late(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    switch = DeadMansSwitch(Heartbeat(url=server.url), round_seconds=5.0)
    switch.fetch_if_healthy()
    for reason in ("late for 1 min", "late for 2 min"):
        switch.update(reason)
        switch.fetch_if_healthy()
    assert server.paths == []
    assert [r.message for r in caplog.records] == ["no heartbeat is sent: late for 1 min"]
    switch.update(None)
    switch.fetch_if_healthy()
    assert len(server.paths) == 1


def test_a_round_that_hangs_feeds_nothing(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    switch = DeadMansSwitch(Heartbeat(url=server.url), round_seconds=5.0)
    switch.update(None)
    later = time.monotonic() + 46.0
    monkeypatch.setattr(time, "monotonic", lambda: later)
    switch.fetch_if_healthy()
    assert server.paths == []


def test_errors_are_logged_without_the_address(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    server.status = 404
    caplog.set_level(logging.DEBUG)
    assert ping(Heartbeat(url=server.url)) == "127.0.0.1: answered 404"
    assert ping(Heartbeat(url="http://127.0.0.1:1/token-123")) == "127.0.0.1: ConnectError"
    switch = DeadMansSwitch(Heartbeat(url=server.url), round_seconds=5.0)
    switch.update(None)
    switch.fetch_if_healthy()
    assert "token" not in "".join(r.getMessage() for r in caplog.records if r.name.startswith("lagwise"))
    assert [r for r in caplog.records if r.name == "lagwise.alerts"][-1].getMessage() == (
        "the heartbeat failed (127.0.0.1: answered 404)"
    )


def test_a_round_by_hand_feeds_it_too(server: Server, tmp_path: Path) -> None:
    lake = Lake(str(tmp_path / "data" / "lake"))
    lake.create(*ALL_TABLES)
    config = Config.model_validate(
        {
            "data": str(tmp_path / "data"),
            "clusters": [{"name": "kafka", "bootstrap": "127.0.0.1:9"}],
            "alerts": {"heartbeat": {"url": server.url}},
        }
    )
    writer = LakeWriter(lake)
    writer.all_well(at(0), {"orders": "ok"})
    assert alert_once(config, at(60)).self_check is None
    assert len(server.paths) == 1
    report = alert_once(config, at(600))
    assert report.self_check == "the collection from kafka has brought no data for 10 min"
    assert len(server.paths) == 1
