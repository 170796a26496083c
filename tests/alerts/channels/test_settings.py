"""What is said of settings of channels that cannot be used: the key, what to write, and never the secret."""

import re
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml

from lagwise.config import Config, load_config
from lagwise.config.channels import AnyChannel, Slack, Webhook
from lagwise.platform.errors import ConfigError


def load(folder: Path, *channels: dict[str, Any], **environment: str) -> Config:
    file = folder / "lagwise.yaml"
    file.write_text(yaml.safe_dump({"alerts": {"channels": list(channels)}}), encoding="utf-8")
    return load_config(file, environment=environment)


MAIL = {"name": "m", "type": "email", "host": "smtp.example", "sender": "a@b.example", "to": ["c@d.example"]}


@pytest.mark.parametrize(
    ("channel", "says"),
    [
        ({"name": "a", "type": "slack"}, "0.url: is required"),
        (
            {"name": "a", "type": "slack", "url": "https://hooks.slack.example/hunter2"},
            "0.url: is a secret: write ${env:",
        ),
        ({"name": "a", "type": "teams", "url": "https://x/hunter2"}, "0.url: is a secret: write ${env:"),
        ({"name": "a", "type": "apprise", "url": "tgram://hunter2"}, "0.url: is a secret: write ${env:"),
        ({"name": "a", "type": "pagerduty", "routing_key": "hunter2"}, "0.routing_key: is a secret: write ${env:"),
        (
            {"name": "a", "type": "webhook", "url": "http://h", "authorization": "hunter2"},
            "0.authorization: is a secret",
        ),
        (
            {"name": "a", "type": "slack", "url": "${env:X}", "chanel": "x"},
            "0.chanel: there is no such setting; known here: attempt_timeout_seconds, ca_file, name, timeout_seconds, "
            "type, url",
        ),
        ({"name": "a", "type": "smoke"}, "0.type: must be one of 'webhook', 'alertmanager_webhook', 'alertmanager',"),
        ({"name": "a b", "type": "slack", "url": "${env:X}"}, "0.name: must be 1 to 100 letters"),
        (MAIL | {"to": []}, "0.to: "),
        (MAIL | {"to": ["c@d.example\r\nBcc: x@y"]}, "0.to.0: must be a mail address, name@host"),
        (MAIL | {"sender": "Lagwise <a@b>"}, "0.sender: must be a mail address, name@host"),
        (MAIL | {"host": "http://smtp"}, "0.host: must be the name or address of a host"),
        (MAIL | {"username": "me"}, "0: username and password go together"),
        (MAIL | {"username": "me", "password": "hunter2"}, "0.password: is a secret: write ${env:"),
        (
            MAIL | {"username": "me", "password": "${env:X}", "security": "none"},
            "0: the password would be sent unencrypted: set security to starttls or tls",
        ),
        (MAIL | {"security": "ssl"}, "0.security: must be 'starttls', 'tls' or 'none', not 'ssl'"),
        (
            {"name": "a", "type": "alertmanager", "url": "http://h", "expire_seconds": 100},
            "0: expire_seconds must be at least three times repeat_seconds",
        ),
        (
            {"name": "a", "type": "alertmanager", "url": "http://h", "labels": {"my-team": "x"}},
            "0.labels: 'my-team' is not a valid label name",
        ),
    ],
)
def test_what_cannot_be_is_refused_with_what_to_write(tmp_path: Path, channel: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError) as refused:
        load(tmp_path, channel)
    assert f"alerts.channels.{says}" in str(refused.value)
    assert "hunter2" not in str(refused.value)


def test_without_a_type_it_is_the_webhook(tmp_path: Path) -> None:
    (channel,) = load(tmp_path, {"name": "a", "url": "http://h"}).alerts.channels
    assert isinstance(channel, Webhook)


def test_two_channels_have_two_names(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="the name 'a' is given twice"):
        load(tmp_path, {"name": "a", "url": "http://h"}, {"name": "a", "type": "slack", "url": "${env:X}"})


def test_a_channel_may_come_from_the_environment(tmp_path: Path) -> None:
    variables = {"NAME": "chat", "TYPE": "slack", "URL": "${env:LAGWISE_SECRET_SLACK}"}
    config = load(tmp_path, **{f"LAGWISE_ALERTS__CHANNELS__0__{key}": value for key, value in variables.items()})
    assert config.alerts.channels == (Slack(name="chat", type="slack", url="${env:LAGWISE_SECRET_SLACK}"),)


def test_settings_survive_being_written_and_read(tmp_path: Path) -> None:
    """As `lagwise up` hands them to its parts."""
    config = load(tmp_path, MAIL, {"name": "a", "url": "http://h"}, {"name": "s", "type": "slack", "url": "${env:X}"})
    assert Config.model_validate(config.model_dump(mode="json")) == config


def test_the_docs_have_an_example_of_each_type_that_can_be_used() -> None:
    docs = (Path(__file__).parents[3] / "docs" / "alerts" / "channels.md").read_text(encoding="utf-8")
    examples = [
        yaml.safe_load(text) for text in re.findall(r"^```yaml\n(- name:.*?)^```", docs, re.DOTALL | re.MULTILINE)
    ]
    used = Config.model_validate({"alerts": {"channels": [channel for example in examples for channel in example]}})
    types = [get_args(model.model_fields["type"].annotation)[0] for model in get_args(get_args(AnyChannel)[0])]
    assert [channel.type for channel in used.alerts.channels] == types
    assert [heading for heading in re.findall(r"^### (\w+)$", docs, re.MULTILINE) if heading in types] == types
    assert all(f"| `{kind}`" in docs for kind in types)
