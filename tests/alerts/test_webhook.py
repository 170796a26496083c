"""The webhook against real receivers: what they get, what they can check, and every way in which they can fail."""

import hashlib
import hmac
import logging
import shutil
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from lagwise.config.channels import Webhook
from lagwise_alerts.channels.base import DeliveryOutcome, Message
from lagwise_alerts.channels.webhook import WebhookChannel
from tests.alerts.receiver import Answer, Receiver

NOW = datetime(2026, 11, 21, 3, 14, 15, tzinfo=UTC)
MESSAGE = Message("0123456789abcdef-20261121T031415.000000Z-1", '{"schema": "lagwise.alert.v1"}')
SECRET = "correct horse battery staple"


@pytest.fixture
def channel() -> Iterator[Callable[..., WebhookChannel]]:
    made = []

    def make(url: str, **settings: object) -> WebhookChannel:
        webhook = Webhook.model_validate({"name": "ops", "url": url, "timeout_seconds": 5.0, **settings})
        made.append(WebhookChannel(webhook, lambda: NOW))
        return made[-1]

    yield make
    for one in made:
        one.close()


Make = Callable[..., WebhookChannel]
Receivers = Callable[..., Receiver]


def test_the_receiver_can_verify_it(receiver: Receivers, channel: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAGWISE_SECRET_TEST", SECRET)
    to = receiver()
    assert channel(to.url, secret="${env:LAGWISE_SECRET_TEST}").send(MESSAGE) == DeliveryOutcome()
    (got,) = to.got
    assert got.path == "/hook"
    assert got.body == MESSAGE.body.encode()
    assert got.headers["content-type"] == "application/json"
    assert got.headers["idempotency-key"] == MESSAGE.idempotency_key
    assert got.headers["user-agent"].startswith("lagwise")
    assert got.headers["x-lagwise-timestamp"] == str(int(NOW.timestamp()))
    signed = got.headers["x-lagwise-timestamp"].encode() + b"." + got.body
    assert got.headers["x-lagwise-signature"] == "v1=" + hmac.new(SECRET.encode(), signed, hashlib.sha256).hexdigest()


def test_the_secret_may_be_in_a_file_and_may_change(receiver: Receivers, channel: Make, tmp_path: Path) -> None:
    file = tmp_path / "secret"
    to = receiver()
    one = channel(to.url, secret=f"${{file:{file}}}")
    for secret in ("first secret", "second secret"):
        file.write_text(secret + "\n", encoding="utf-8")
        assert one.send(MESSAGE) == DeliveryOutcome()
        signed = f"{int(NOW.timestamp())}.{MESSAGE.body}".encode()
        expected = hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()
        assert to.got[-1].headers["x-lagwise-signature"] == f"v1={expected}"


def test_without_a_secret_it_is_not_signed(receiver: Receivers, channel: Make) -> None:
    to = receiver()
    channel(to.url).send(MESSAGE)
    assert "x-lagwise-signature" not in to.got[0].headers


@pytest.mark.parametrize("status", [200, 201, 202, 204])
def test_2xx_is_delivered(receiver: Receivers, channel: Make, status: int) -> None:
    assert channel(receiver(Answer(status)).url).send(MESSAGE) == DeliveryOutcome()


@pytest.mark.parametrize(
    ("status", "refused"),
    [
        (301, True),
        (307, True),
        (400, True),
        (401, True),
        (404, True),
        (410, True),
        (422, True),
        (408, False),
        (425, False),
        (429, False),
        (500, False),
        (502, False),
        (503, False),
    ],
)
def test_what_is_refused_and_what_is_worth_another_try(
    receiver: Receivers, channel: Make, status: int, refused: bool
) -> None:
    outcome = channel(receiver(Answer(status)).url).send(MESSAGE)
    assert outcome.refused is refused
    assert str(status) in (outcome.error or "")


def test_a_redirect_is_not_followed(receiver: Receivers, channel: Make) -> None:
    other = receiver()
    outcome = channel(receiver(Answer(307, {"Location": other.url})).url).send(MESSAGE)
    assert "redirects are not followed" in (outcome.error or "")
    assert not other.got


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("30", 30.0),
        ("Sat, 21 Nov 2026 03:16:15 GMT", 120.0),
        ("Sat, 21 Nov 2026 03:00:00 GMT", 0.0),
        ("soon", None),
        ("-5", None),
        ("²", None),
    ],
)
def test_retry_after_is_a_number_or_a_date(
    receiver: Receivers, channel: Make, value: str, seconds: float | None
) -> None:
    headers = {"Retry-After": value.encode("utf-8").decode("latin-1")}
    outcome = channel(receiver(Answer(429, headers)).url).send(MESSAGE)
    assert outcome.retry_after_seconds == seconds


class TestReceiversThatDoNotAnswer:
    def test_connection_refused(self, channel: Make) -> None:
        with socket.socket() as taken:  # bound but not listening: connections are refused, and nobody else gets it
            taken.bind(("127.0.0.1", 0))
            outcome = channel(f"http://127.0.0.1:{taken.getsockname()[1]}/hook").send(MESSAGE)
        assert "cannot connect" in (outcome.error or "")
        assert not outcome.refused

    def test_a_host_that_does_not_exist(self, channel: Make) -> None:
        outcome = channel("http://host.invalid/hook").send(MESSAGE)
        assert "cannot connect" in (outcome.error or "")

    def test_it_hangs(self, receiver: Receivers, channel: Make) -> None:
        began = time.monotonic()
        outcome = channel(receiver(Answer(hang=True)).url, timeout_seconds=0.3).send(MESSAGE)
        assert outcome.error == "no answer within 0.3 s"
        assert time.monotonic() - began < 5

    def test_it_closes_the_connection(self, receiver: Receivers, channel: Make) -> None:
        outcome = channel(receiver(Answer(drop=True)).url).send(MESSAGE)
        assert "the connection broke off" in (outcome.error or "")

    def test_it_comes_back(self, receiver: Receivers, channel: Make) -> None:
        to = receiver()
        to.answers.extend([Answer(drop=True), Answer(503)])
        one = channel(to.url)
        assert [one.send(MESSAGE).error is None for _ in range(3)] == [False, False, True]

    def test_it_says_2xx_and_then_never_ends(self, channel: Make) -> None:
        with socket.create_server(("127.0.0.1", 0)) as server:
            one = channel(f"http://127.0.0.1:{server.getsockname()[1]}/hook", timeout_seconds=0.5)

            def endless() -> None:
                connection, _ = server.accept()
                with connection:
                    connection.recv(65536)
                    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\nx")
                    connection.settimeout(10)
                    connection.recv(1)  # until the other side has had enough

            thread = threading.Thread(target=endless)
            thread.start()
            began = time.monotonic()
            assert one.send(MESSAGE) == DeliveryOutcome()
            assert time.monotonic() - began < 5
            one.close()
            thread.join(10)
            assert not thread.is_alive()


class TestNothingSecretIsShown:
    TOKEN = "T0K3N-abcdefgh"

    def test_in_errors_that_echo_the_request(self, receiver: Receivers, channel: Make) -> None:
        to = receiver(Answer(400, body=f"no such hook: /hooks/{self.TOKEN}?k={SECRET}".encode()))
        url = f"http://me:pa55word@127.0.0.1:{to.port}/hooks/{self.TOKEN}?k=correct%20horse%20battery%20staple"
        outcome = channel(url).send(MESSAGE)
        assert "no such hook" in (outcome.error or "")
        for secret in (self.TOKEN, SECRET, "pa55word"):
            assert secret not in (outcome.error or "")

    def test_in_logs_even_when_debugging(
        self, receiver: Receivers, channel: Make, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("LAGWISE_SECRET_TEST", SECRET)
        caplog.set_level(logging.DEBUG)
        to = receiver()
        one = channel(f"{to.url}/{self.TOKEN}", secret="${env:LAGWISE_SECRET_TEST}")
        one.send(MESSAGE)
        assert self.TOKEN in to.got[0].path
        assert self.TOKEN not in caplog.text
        assert SECRET not in caplog.text

    def test_the_receiver_is_named_by_host_and_port(self, channel: Make) -> None:
        assert channel(f"https://me:pw@hooks.example/{self.TOKEN}").receiver == "hooks.example"
        assert channel(f"https://hooks.example:8443/{self.TOKEN}").receiver == "hooks.example:8443"

    def test_control_characters_of_an_answer_are_escaped(self, receiver: Receivers, channel: Make) -> None:
        outcome = channel(receiver(Answer(400, body=b"\x1b[2Jgone\r\nforged line")).url).send(MESSAGE)
        assert (outcome.error or "").isprintable()

    def test_an_endless_answer_is_cut(self, receiver: Receivers, channel: Make) -> None:
        outcome = channel(receiver(Answer(400, body=b"x" * 1_000_000)).url).send(MESSAGE)
        assert len(outcome.error or "") < 300


class TestSettingsThatDoNotWork:
    def test_a_secret_that_is_not_there_waits_for_it(
        self, receiver: Receivers, channel: Make, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delenv("LAGWISE_SECRET_TEST", raising=False)
        to = receiver()
        one = channel(to.url, secret="${env:LAGWISE_SECRET_TEST}")
        outcome = one.send(MESSAGE)
        assert "LAGWISE_SECRET_TEST" in (outcome.error or "")
        assert not outcome.refused
        assert not to.got
        monkeypatch.setenv("LAGWISE_SECRET_TEST", SECRET)
        assert one.send(MESSAGE) == DeliveryOutcome()

    @pytest.mark.parametrize("address", ["ftp://x/y", "nonsense", "http://", "http://[::1", "https://a b/c"])
    def test_an_address_that_is_none(self, channel: Make, monkeypatch: pytest.MonkeyPatch, address: str) -> None:
        monkeypatch.setenv("LAGWISE_SECRET_URL", address)
        outcome = channel("${env:LAGWISE_SECRET_URL}").send(MESSAGE)
        assert outcome.error
        assert not outcome.refused

    def test_a_ca_file_that_is_not_there(self, channel: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "none.pem"))
        outcome = channel("https://127.0.0.1:1/hook").send(MESSAGE)
        assert "cannot set up the connection" in (outcome.error or "")


class TestTls:
    @pytest.fixture
    def certificate(self, tmp_path: Path) -> tuple[Path, Path]:
        """A self-signed certificate for 127.0.0.1, made by the machine's openssl."""
        openssl = shutil.which("openssl")
        if openssl is None:
            pytest.skip("no openssl on this machine to make a certificate with")
        cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
        subprocess.run(
            [
                openssl,
                "req",
                "-x509",
                "-newkey",
                "rsa:2048",
                "-nodes",
                "-days",
                "2",
                "-subj",
                "/CN=127.0.0.1",
                "-addext",
                "subjectAltName=IP:127.0.0.1",
                "-keyout",
                str(key),
                "-out",
                str(cert),
            ],
            check=True,
            capture_output=True,
            timeout=60,
        )
        return cert, key

    @pytest.fixture
    def secure(self, certificate: tuple[Path, Path]) -> Iterator[Receiver]:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*certificate)
        to = Receiver()
        to.secure(context)
        with to:
            yield to

    def test_an_untrusted_certificate_is_refused(self, secure: Receiver, channel: Make) -> None:
        outcome = channel(f"https://127.0.0.1:{secure.port}/hook").send(MESSAGE)
        assert "CERTIFICATE_VERIFY_FAILED" in (outcome.error or "")
        assert not secure.got

    def test_one_that_the_named_authority_vouches_for_is_accepted(
        self, secure: Receiver, channel: Make, certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
        assert channel(f"https://127.0.0.1:{secure.port}/hook").send(MESSAGE) == DeliveryOutcome()
        assert len(secure.got) == 1
