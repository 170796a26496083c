"""A test message by hand: marked as one, obeying the schema, through every channel and from the command line."""

import json
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result
from jsonschema import Draft202012Validator

from lagwise.config import Config
from lagwise.platform.errors import ConfigError
from lagwise_alerts import run
from lagwise_alerts.model import Severity
from lagwise_alerts.operate.test_message import make_test_document, send_test, unusable_channels
from lagwise_app.cli import cli
from tests.alerts.receiver import Answer, Receiver

NOW = datetime(2026, 11, 21, 3, 14, 15, tzinfo=UTC)
Receivers = Callable[..., Receiver]


def config(*channels: dict[str, Any]) -> Config:
    return Config.model_validate({"alerts": {"channels": channels, "dashboard_url": "https://lagwise.example"}})


@pytest.mark.parametrize("over", [False, True])
@pytest.mark.parametrize("severity", Severity)
def test_the_document_obeys_the_published_schema(over: bool, severity: Severity) -> None:
    text = resources.files("lagwise_alerts.notify").joinpath("lagwise.alert.v1.schema.json").read_text(encoding="utf-8")
    document = make_test_document("ops", severity, NOW, "https://lagwise.example", over=over)
    Draft202012Validator(json.loads(text) | {"additionalProperties": False}).validate(document)


def test_the_end_belongs_to_the_test_and_each_message_has_a_key_of_its_own() -> None:
    begin, end = (make_test_document("ops", Severity.PAGE, NOW, "https://x", over=over) for over in (False, True))
    later = make_test_document("ops", Severity.PAGE, NOW.replace(minute=30), "https://x")
    assert begin["incident_id"] == end["incident_id"] == later["incident_id"]
    assert begin["idempotency_key"] != later["idempotency_key"]


@pytest.mark.parametrize("kind", ["webhook", "alertmanager_webhook", "alertmanager", "pagerduty", "slack", "teams"])
def test_through_every_channel(receiver: Receivers, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    to = receiver(Answer(202, body=b"thanks"))
    monkeypatch.setenv("LAGWISE_SECRET_URL", to.url)
    key = {"routing_key": "${env:LAGWISE_SECRET_URL}"} if kind == "pagerduty" else {}
    answer = send_test(
        config({"name": "ops", "type": kind, "url": "${env:LAGWISE_SECRET_URL}", **key}), "ops", lambda: NOW
    )
    assert (answer.delivered, answer.answer) == (True, "202 Accepted: thanks")
    assert "TEST of the channel ops, nothing is wrong" in to.got[0].body.decode("utf-8")


def test_a_channel_that_is_not_there() -> None:
    with pytest.raises(ConfigError, match=r"no channel .opps. under alerts\.channels; known: ops"):
        send_test(config({"name": "ops", "url": "http://h"}), "opps", lambda: NOW)


def test_what_cannot_be_used_is_known_without_asking_anybody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAGWISE_SECRET_NONSENSE", "nonsense")
    found = unusable_channels(
        config(
            {"name": "good", "url": "https://127.0.0.1:1/"},
            {"name": "unset", "type": "slack", "url": "${env:LAGWISE_SECRET_NOWHERE}"},
            {"name": "ca", "url": "https://127.0.0.1:1/", "ca_file": str(tmp_path / "none.pem")},
            {"name": "address", "type": "teams", "url": "${env:LAGWISE_SECRET_NONSENSE}"},
            {"name": "service", "type": "apprise", "url": "${env:LAGWISE_SECRET_NONSENSE}"},
        )
    )
    problems = {channel.name: problem for channel, problem in found}
    assert list(problems) == ["unset", "ca", "address", "service"]
    assert "LAGWISE_SECRET_NOWHERE" in problems["unset"]
    assert "none.pem" in problems["ca"]
    assert "begins with https://" in problems["address"]
    assert "one URL of a service that Apprise knows" in problems["service"]


def test_the_start_says_what_cannot_be_used(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    channel = {"name": "chat", "type": "slack", "url": "${env:LAGWISE_SECRET_NOWHERE}"}
    settings = Config.model_validate({"data": str(tmp_path), "alerts": {"channels": [channel]}})
    stopped = threading.Event()
    stopped.set()
    run.alert_forever(settings, stopped, tmp_path)
    assert "channel chat does not work: the environment variable LAGWISE_SECRET_NOWHERE" in caplog.text


class TestTheCommand:
    def invoke(self, folder: Path, to: Receiver, *arguments: str) -> Result:
        file = folder / "lagwise.yaml"
        file.write_text(yaml.safe_dump({"alerts": {"channels": [{"name": "ops", "url": to.url}]}}), encoding="utf-8")
        return CliRunner().invoke(cli, ["--config", str(file), "alert", "test-channel", *arguments])

    def test_it_prints_the_answer(self, tmp_path: Path, receiver: Receivers) -> None:
        to = receiver(Answer(200, body=b"got it"))
        ran = self.invoke(tmp_path, to, "ops", "--severity", "page")
        assert (ran.exit_code, ran.stdout) == (0, f"ops (webhook, 127.0.0.1:{to.port}) accepted it: 200 OK: got it\n")
        assert to.got[0].document["severity"] == "page"

    def test_it_ends_the_test(self, tmp_path: Path, receiver: Receivers) -> None:
        to = receiver()
        assert self.invoke(tmp_path, to, "ops", "--over").exit_code == 0
        assert to.got[0].document["event"] == "resolved"

    def test_a_refusal_is_a_failure(self, tmp_path: Path, receiver: Receivers) -> None:
        ran = self.invoke(tmp_path, receiver(Answer(403, body=b"\x1b[2Jwho are you")), "ops", "--json")
        assert ran.exit_code == 1
        answer = json.loads(ran.stdout)
        assert not answer["delivered"]
        assert "answered 403 Forbidden" in answer["answer"]
        assert set(answer) == {"channel", "type", "receiver", "delivered", "answer"}

    def test_a_channel_that_is_not_there(self, tmp_path: Path, receiver: Receivers) -> None:
        ran = self.invoke(tmp_path, receiver(), "other")
        assert ran.exit_code == 1
        assert "no channel 'other'" in ran.stderr
