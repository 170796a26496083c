"""Apprise against real servers: what arrives, what it says of failures, and that its log keeps our secrets."""

import json
import logging
import sys
from collections.abc import Callable

import pytest

from lagwise_alerts.channels import Channel
from lagwise_alerts.channels.base import DeliveryOutcome
from tests.alerts.channels.documents import DOCUMENTS, message
from tests.alerts.receiver import Answer, Receiver

Make = Callable[..., Channel]
Receivers = Callable[..., Receiver]
#: Of a library of one of its services; a newer Python has it no more.
pytestmark = [
    pytest.mark.process,
    pytest.mark.filterwarnings("ignore:'imghdr' is deprecated:DeprecationWarning"),
]

TOKEN = "T0KEN-abcdefghijkl"


def address(to: Receiver) -> str:
    """Apprise's URL of a generic JSON receiver."""
    return f"json://someone:{TOKEN}@127.0.0.1:{to.port}/hooks/{TOKEN}"


@pytest.mark.parametrize(("name", "kind"), [("firing", "warning"), ("escalated", "failure"), ("resolved", "success")])
def test_it_arrives(receiver: Receivers, channel: Make, name: str, kind: str) -> None:
    to = receiver()
    outcome = channel("apprise", secret_url=address(to)).send(message(name))
    assert outcome == DeliveryOutcome()
    (got,) = to.got
    assert got.path.startswith(f"/hooks/{TOKEN}")
    arrived = json.loads(got.body)
    assert DOCUMENTS[name]["summary"] in arrived["title"]
    assert DOCUMENTS[name]["first_command"] in arrived["message"]
    assert arrived["type"] == kind


def test_nothing_in_a_hostile_name_is_interpreted(receiver: Receivers, channel: Make) -> None:
    to = receiver()
    assert channel("apprise", secret_url=address(to)).send(message("hostile")) == DeliveryOutcome()
    arrived = json.loads(to.got[0].body)
    assert r"\x1b[2J\u202egnp.exe" in arrived["message"]
    assert "\x1b" not in arrived["message"] + arrived["title"]


@pytest.mark.parametrize("answer", [Answer(400, body=TOKEN.encode()), Answer(503), Answer(drop=True)])
def test_a_failure_is_worth_another_try_and_names_no_secret(
    receiver: Receivers, channel: Make, caplog: pytest.LogCaptureFixture, answer: Answer
) -> None:
    caplog.set_level(logging.DEBUG)
    one = channel("apprise", secret_url=address(receiver(answer)))
    outcome = one.send(message())
    assert (outcome.error or "").startswith("Apprise could not send it: ")
    assert not outcome.refused
    assert TOKEN not in (outcome.error or "") + caplog.text + one.receiver


def test_it_waits_no_longer_than_its_timeout(receiver: Receivers, channel: Make) -> None:
    outcome = channel("apprise", secret_url=address(receiver(Answer(hang=True))), timeout_seconds=0.3).send(message())
    assert outcome.error


def test_a_redirect_is_not_followed(receiver: Receivers, channel: Make) -> None:
    other = receiver()
    outcome = channel("apprise", secret_url=address(receiver(Answer(307, {"Location": other.url})))).send(message())
    assert outcome.error
    assert not other.got


@pytest.mark.parametrize("url", ["nonsense", f"nosuchservice://{TOKEN}", "json://a/, json://b/", "json://"])
def test_an_address_of_no_service(channel: Make, caplog: pytest.LogCaptureFixture, url: str) -> None:
    outcome = channel("apprise", secret_url=url).send(message())
    assert "is not one URL of a service that Apprise knows" in (outcome.error or "")
    assert TOKEN not in caplog.text + (outcome.error or "")


def test_without_apprise_it_says_what_to_install(channel: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "apprise", None)
    assert "install lagwise[apprise]" in (channel("apprise", secret_url="json://localhost").send(message()).error or "")
