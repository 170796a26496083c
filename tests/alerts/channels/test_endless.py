"""Receivers that keep a channel busy and never come to an end: an attempt has a time, and fails when that is over."""

from collections.abc import Callable

import pytest

from lagwise.config.operating import Heartbeat
from lagwise_alerts.channels import Channel
from lagwise_alerts.channels.alertmanager import AlertmanagerChannel
from lagwise_alerts.channels.base import DeliveryOutcome
from lagwise_alerts.dead_mans_switch import ping
from tests.alerts.channels.documents import message
from tests.alerts.channels.tls import Authority
from tests.alerts.endless import endless_server

Make = Callable[..., Channel]

pytestmark = [
    pytest.mark.timeout(60),  # each of them would go on for as long as it is let
    pytest.mark.filterwarnings("ignore:'imghdr' is deprecated:DeprecationWarning"),  # of a library of Apprise's
]

LIMIT = {"attempt_timeout_seconds": 0.5}
OVER = DeliveryOutcome("not done within 0.5 s")
#: What a TLS record of 16 KB begins with.
TLS = b"\x16\x03\x03\x40\x00"
HINT = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
MAIL = {"host": "127.0.0.1", "sender": "lagwise@shop.example", "to": ["a@shop.example"], "security": "none"}


@pytest.mark.parametrize(
    ("first", "drop"),
    [
        pytest.param(b"HTTP/1.1 200 OK\r\nX: ", b"a", id="a header, byte by byte"),
        pytest.param(b"", b"H", id="the status, byte by byte"),
        pytest.param(b"", HINT, id="early hints"),
    ],
)
@pytest.mark.parametrize("kind", ["webhook", "alertmanager"])
def test_an_answer_that_does_not_begin(channel: Make, kind: str, first: bytes, drop: bytes) -> None:
    with endless_server(first, drop) as port:
        one = channel(kind, url=f"http://127.0.0.1:{port}", **LIMIT)
        assert one.send(message()) == OVER
        assert one.send(message()) == OVER, "the next attempt has a time of its own"
        if isinstance(one, AlertmanagerChannel):
            assert one.repeat([message().body]) == OVER


def test_early_hints_as_fast_as_they_are_read(channel: Make) -> None:
    with endless_server(b"", HINT * 100, pause_seconds=0) as port:
        assert channel("webhook", url=f"http://127.0.0.1:{port}", **LIMIT).send(message()) == OVER


def test_headers_of_any_size_are_not_read(channel: Make) -> None:
    with endless_server(b"HTTP/1.1 200 OK\r\n", b"X: " + b"a" * 65_536 + b"\r\n", pause_seconds=0) as port:
        outcome = channel("webhook", url=f"http://127.0.0.1:{port}", attempt_timeout_seconds=30).send(message())
    assert outcome == DeliveryOutcome("the connection broke off (RemoteProtocolError)")


@pytest.mark.parametrize(
    ("status", "error", "pause_seconds"), [("200 OK", "", 0.0), ("503 Busy", "answered 503 Busy: b", 0.02)]
)
def test_a_body_that_does_not_end_changes_nothing_about_the_status(
    channel: Make, status: str, error: str, pause_seconds: float
) -> None:
    with endless_server(f"HTTP/1.1 {status}\r\n\r\n".encode(), b"b", pause_seconds) as port:
        outcome = channel("webhook", url=f"http://127.0.0.1:{port}", timeout_seconds=2).send(message())
    assert (outcome.error or "")[:20] == error


@pytest.mark.parametrize("security", ["https", "tls", "starttls"])
def test_a_handshake_that_does_not_end(channel: Make, trusted: Authority, security: str) -> None:
    spoken = b"220 hello\r\n250-me\r\n250 STARTTLS\r\n220 go on\r\n" if security == "starttls" else b""
    with endless_server(spoken, TLS) as port:
        if security == "https":
            one = channel("webhook", url=f"https://127.0.0.1:{port}", ca_file=trusted.file, **LIMIT)
        else:
            one = channel("email", **MAIL | {"port": port, "security": security, "ca_file": trusted.file} | LIMIT)
        outcome = one.send(message())
    assert outcome.error in (OVER.error, "no answer within 0.5 s")
    assert not outcome.refused


@pytest.mark.parametrize(
    ("first", "drop", "pause_seconds"),
    [
        pytest.param(b"", b"2", 0.02, id="its first word, byte by byte"),
        pytest.param(b"", b"220-hello\r\n", 0.02, id="a greeting without an end"),
        pytest.param(b"220 hello\r\n", b"250-SIZE\r\n", 0.02, id="abilities without an end"),
    ],
)
def test_a_mail_server_that_talks_on(channel: Make, first: bytes, drop: bytes, pause_seconds: float) -> None:
    with endless_server(first, drop, pause_seconds) as port:
        assert channel("email", **MAIL, port=port, **LIMIT).send(message()) == OVER


def test_the_answer_of_a_mail_server_is_kept_up_to_a_limit(channel: Make) -> None:
    with endless_server(b"", b"220-hello\r\n" * 1000, pause_seconds=0) as port:
        outcome = channel("email", **MAIL, port=port, attempt_timeout_seconds=30).send(message())
    assert outcome == DeliveryOutcome("the connection broke off")


def test_a_mail_that_was_taken_is_not_sent_again_for_a_farewell(channel: Make) -> None:
    taken = b"220 hello\r\n250 ok\r\n250 ok\r\n250 ok\r\n354 go on\r\n250 taken\r\n"
    with endless_server(taken, b"2") as port:
        assert channel("email", **MAIL, port=port, attempt_timeout_seconds=3).send(message()) == DeliveryOutcome()


@pytest.mark.process
@pytest.mark.parametrize(
    ("first", "drop", "pause_seconds"),
    [
        pytest.param(b"HTTP/1.1 200 OK\r\nX: ", b"a", 0.02, id="a header, byte by byte"),
        pytest.param(b"HTTP/1.1 200 OK\r\n\r\n", b"b" * 65_536, 0.0, id="a body, as fast as it is read"),
    ],
)
def test_through_apprise(channel: Make, first: bytes, drop: bytes, pause_seconds: float) -> None:
    with endless_server(first, drop, pause_seconds) as port:
        one = channel("apprise", secret_url=f"json://127.0.0.1:{port}/", attempt_timeout_seconds=3)
        assert one.send(message()) == DeliveryOutcome("not done within 3 s")


def test_the_dead_mans_switch(monkeypatch: pytest.MonkeyPatch) -> None:
    def settings(port: int, timeout_seconds: float) -> Heartbeat:
        monkeypatch.setenv("LAGWISE_SECRET_TEST", f"http://127.0.0.1:{port}/ping")
        return Heartbeat.model_validate({"url": "${env:LAGWISE_SECRET_TEST}", "timeout_seconds": timeout_seconds})

    with endless_server(b"", HINT) as port:
        assert ping(settings(port, 0.5)) == "127.0.0.1: not done within 0.5 s"
    with endless_server(b"HTTP/1.1 200 OK\r\n\r\n", b"b" * 65_536, pause_seconds=0) as port:
        assert ping(settings(port, 30)) is None
