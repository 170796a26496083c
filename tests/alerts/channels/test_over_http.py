"""Every channel over HTTP against real servers: what arrives, how answers are read, TLS, and what stays secret."""

import gzip
import json
import logging
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lagwise_alerts.channels import Channel
from lagwise_alerts.channels.base import DeliveryOutcome
from tests.alerts.channels.documents import DOCUMENTS, message
from tests.alerts.channels.tls import Authority, authority
from tests.alerts.receiver import Answer, Receiver

pytestmark = pytest.mark.thorough

Make = Callable[..., Channel]
Receivers = Callable[..., Receiver]

TOKEN = "T0KEN-abcdefghijkl"
KEY = "0123456789abcdef0123456789abcdef"

#: Settings of each type, for a receiver at an address.
TYPES: dict[str, Callable[[str], dict[str, Any]]] = {
    "webhook": lambda url: {"url": url, "secret_secret": KEY, "secret_authorization": f"Bearer {TOKEN}"},
    "alertmanager_webhook": lambda url: {"url": url, "secret_authorization": f"Bearer {TOKEN}"},
    "alertmanager": lambda url: {"url": url, "secret_authorization": f"Bearer {TOKEN}"},
    "pagerduty": lambda url: {"url": url, "secret_routing_key": KEY},
    "slack": lambda url: {"secret_url": url},
    "teams": lambda url: {"secret_url": url},
}
EVERY = pytest.mark.parametrize("kind", TYPES)


def taken(kind: str) -> Answer:
    return Answer(202 if kind in ("pagerduty", "teams") else 200, body=b'{"status":"success"}')


def made(channel: Make, kind: str, to: Receiver, **more: Any) -> Channel:
    return channel(kind, **(TYPES[kind](f"{to.url}/{TOKEN}") | more))


@EVERY
def test_it_arrives_whole(receiver: Receivers, channel: Make, kind: str) -> None:
    to = receiver(taken(kind))
    outcome = made(channel, kind, to).send(message())
    assert outcome == DeliveryOutcome()
    assert "success" in outcome.answer
    (got,) = to.got
    assert got.headers["content-type"] == "application/json"
    assert got.headers["user-agent"].startswith("lagwise")
    assert DOCUMENTS["firing"]["summary"] in json.dumps(json.loads(got.body))
    assert got.path.startswith(f"/hook/{TOKEN}")


@EVERY
def test_hostile_names_arrive_as_valid_json(receiver: Receivers, channel: Make, kind: str) -> None:
    to = receiver(taken(kind))
    assert made(channel, kind, to).send(message("hostile")) == DeliveryOutcome()
    json.loads(to.got[0].body.decode("utf-8"))


@EVERY
@pytest.mark.parametrize(
    ("status", "refused"),
    [(301, True), (400, True), (401, True), (404, True), (408, False), (500, False), (503, False)],
)
def test_refusals_and_what_is_worth_another_try(
    receiver: Receivers, channel: Make, kind: str, status: int, refused: bool
) -> None:
    outcome = made(channel, kind, receiver(Answer(status, {"Location": "http://127.0.0.1:9/"}))).send(message())
    assert str(status) in (outcome.error or "")
    assert outcome.refused is refused


@EVERY
def test_too_many_requests_waits_as_long_as_asked(receiver: Receivers, channel: Make, kind: str) -> None:
    outcome = made(channel, kind, receiver(Answer(429, {"Retry-After": "17"}))).send(message())
    assert (outcome.refused, outcome.retry_after_seconds) == (False, 17.0)


@EVERY
def test_a_receiver_that_does_not_answer_is_given_up_in_time(receiver: Receivers, channel: Make, kind: str) -> None:
    began = time.monotonic()
    outcome = made(channel, kind, receiver(Answer(hang=True)), timeout_seconds=0.3).send(message())
    assert outcome.error == "no answer within 0.3 s"
    assert time.monotonic() - began < 5


@EVERY
def test_an_untrusted_certificate_is_refused(channel: Make, kind: str, trusted: Authority) -> None:
    to = Receiver()
    to.secure(trusted.server)
    with to:
        outcome = channel(kind, **TYPES[kind](to.url.replace("http:", "https:"))).send(message())
    assert "CERTIFICATE_VERIFY_FAILED" in (outcome.error or "")
    assert not to.got


@EVERY
def test_one_of_the_named_authority_is_accepted(channel: Make, kind: str, trusted: Authority) -> None:
    to = Receiver(taken(kind))
    to.secure(trusted.server)
    with to:
        address = to.url.replace("http:", "https:")
        one = channel(kind, **TYPES[kind](address), ca_file=trusted.file)
        assert one.send(message()) == DeliveryOutcome()
        one.close()
    assert len(to.got) == 1


def test_the_name_in_the_certificate_counts(channel: Make, tmp_path: Path) -> None:
    other = authority(tmp_path, "elsewhere.example")
    to = Receiver()
    to.secure(other.server)
    with to:
        outcome = channel("slack", secret_url=to.url.replace("http:", "https:"), ca_file=other.file).send(message())
    assert "CERTIFICATE_VERIFY_FAILED" in (outcome.error or "")


@pytest.mark.parametrize(("content", "says"), [(None, "cannot read the file"), ("nonsense", "no certificate in")])
def test_an_authority_file_that_is_none(channel: Make, tmp_path: Path, content: str | None, says: str) -> None:
    file = tmp_path / "ca.pem"
    if content is not None:
        file.write_text(content)
    outcome = channel("slack", secret_url="https://127.0.0.1:1/x", ca_file=file).send(message())
    assert says in (outcome.error or "")
    assert not outcome.refused


@EVERY
def test_secrets_are_neither_logged_nor_repeated(
    receiver: Receivers, channel: Make, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    to = receiver()
    key = KEY if kind in ("webhook", "pagerduty") else ""
    echo = f"bad request: {key} Bearer {TOKEN} /hook/{TOKEN} \x1b[2J\r\nforged".encode()
    to.answers.extend([taken(kind), Answer(400, {"X-Echo": TOKEN}, echo), Answer(200, {}, echo), Answer(drop=True)])
    one = made(channel, kind, to)
    outcomes = [one.send(message()) for _ in range(4)]
    assert "bad request" in (outcomes[1].error or "")
    shown = caplog.text + one.receiver + one.name + repr(outcomes)
    assert TOKEN not in shown
    assert KEY not in shown
    assert all((outcome.error or outcome.answer).isprintable() for outcome in outcomes)


@EVERY
def test_a_missing_secret_is_reported_and_waited_for(
    receiver: Receivers, channel: Make, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    to = receiver()
    one = made(channel, kind, to)
    one.check()
    for variable in [name for name in os.environ if name.startswith("LAGWISE_SECRET_TEST")]:
        monkeypatch.delenv(variable)
    outcome = one.send(message())
    assert "is not set" in (outcome.error or "")
    assert not outcome.refused
    assert not to.got


def test_a_header_is_one_line(receiver: Receivers, channel: Make) -> None:
    to = receiver()
    outcome = channel("webhook", url=to.url, secret_authorization="Bearer x\r\nX-Evil: 1").send(message())
    assert "is not a valid header" in (outcome.error or "")
    assert not to.got


def test_an_answer_is_not_unpacked(receiver: Receivers, channel: Make) -> None:
    packed = gzip.compress(b"x" * 50_000_000)
    to = receiver(Answer(400, {"Content-Encoding": "gzip"}, packed))
    outcome = channel("webhook", url=to.url).send(message())
    assert len(outcome.error or "") < 600  # escapes of what it is packed into
    assert to.got[0].headers["accept-encoding"] == "identity"


def test_pagerduty_has_accepted_it_only_where_it_says_so(receiver: Receivers, channel: Make) -> None:
    """A proxy's sign-in page is 200, too."""
    outcome = made(channel, "pagerduty", receiver(Answer(200, body=b"<html>sign in"))).send(message())
    assert "answered 200" in (outcome.error or "")
    assert not outcome.refused


def test_the_error_of_pagerduty_is_reported(receiver: Receivers, channel: Make) -> None:
    body = b'{"status":"invalid event","message":"Event object is invalid","errors":["Length of \'routing_key\'"]}'
    outcome = made(channel, "pagerduty", receiver(Answer(400, body=body))).send(message())
    assert "Event object is invalid" in (outcome.error or "")
    assert outcome.refused


def test_the_address_of_an_alertmanager_may_have_a_path(receiver: Receivers, channel: Make) -> None:
    to = receiver()
    for address in (f"http://127.0.0.1:{to.port}", f"http://127.0.0.1:{to.port}/am/"):
        channel("alertmanager", url=address).send(message())
    assert [got.path for got in to.got] == ["/api/v2/alerts", "/am/api/v2/alerts"]
