"""Sends a test message, to see whether a channel works: marked as a test, not through the outbox, one attempt."""

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from lagwise.config import Config
from lagwise.config.channels import AnyChannel
from lagwise.domain.group_record import GroupNumbers, sent_numbers
from lagwise.platform.error_codes import ErrorCode
from lagwise.platform.errors import ConfigError
from lagwise.platform.timestamps import timestamp
from lagwise_alerts.channels import Message, make_channel
from lagwise_alerts.model import AlertEvent, AlertKind, Resolution, Severity
from lagwise_alerts.notify.message import SCHEMA

#: Cluster and group of a test message: no real group has this name.
SUBJECT = "lagwise-test"


@dataclass(frozen=True, slots=True)
class ChannelTestResult:
    """The result of a test message. ``answer`` is the receiver's answer, or what went wrong."""

    channel: str
    type: str
    receiver: str
    delivered: bool
    answer: str


def unusable_channels(config: Config) -> Iterator[tuple[AnyChannel, str]]:
    """The channels whose settings cannot work, each with the reason. Contacts no receiver."""
    for settings in config.alerts.channels:
        try:
            make_channel(settings, lambda: datetime.now(UTC)).check()
        except ConfigError as error:
            yield settings, str(error)


def send_test(
    config: Config, name: str, clock: Callable[[], datetime], *, severity: Severity = Severity.INFO, over: bool = False
) -> ChannelTestResult:
    """Send one test message, or (``over``) the end of the test. Raises ConfigError where the channel does not exist."""
    settings = _channel_named(config, name)
    document = make_test_document(name, severity, clock(), config.alerts.dashboard_url, over=over)
    channel = make_channel(settings, clock)
    try:
        outcome = channel.send(Message(document["idempotency_key"], json.dumps(document)))
        return ChannelTestResult(
            name, settings.type, channel.receiver, outcome.error is None, outcome.error or outcome.answer
        )
    finally:
        channel.close()


def make_test_document(
    channel: str, severity: Severity, now: datetime, dashboard_url: str, *, over: bool = False
) -> dict[str, Any]:
    """The document of a test message. All tests of a channel are one incident, so that a later one can end it."""
    at = timestamp(now)
    incident_id = f"{SUBJECT}-{channel}"
    nothing_unread = GroupNumbers(lag_records=0, lag_seconds=0.0, lag_seconds_is_lower_bound=False)
    return {
        "schema": SCHEMA,
        "event": (AlertEvent.RESOLVED if over else AlertEvent.FIRING).value,
        "severity": severity.value,
        "summary": f"TEST of the channel {channel}, nothing is wrong",
        "kind": AlertKind.GROUP.value,
        "cluster": SUBJECT,
        "group": SUBJECT,
        "status": "ok",
        "reason": None,
        "previous_status": "ok" if over else None,
        "previous_severity": severity.value if over else None,
        "sentence": "This is a test, sent from the alerts page or the command line. No action is needed.",
        "outlook": "Nothing will happen.",
        "rule": "test",
        "resolution": Resolution.RECOVERED.value if over else None,
        "since": at,
        "started_at": at,
        "fired_at": at,
        "ended_at": at if over else None,
        "decided_at": at,
        **sent_numbers(nothing_unread),
        "worst_partition": None,
        "first_command": "lagwise status",
        "dashboard_url": dashboard_url,
        "fingerprint": hashlib.sha256(incident_id.encode("utf-8")).hexdigest()[:16],
        "incident_id": incident_id,
        "sequence": 2 if over else 1,
        "idempotency_key": f"{incident_id}-{now.astimezone(UTC):%Y%m%dT%H%M%S.%fZ}",
        "team": None,
        "labels": {},
        "flapping": False,
        "times_begun": 1,
        "shared_incident": None,
    }


def _channel_named(config: Config, name: str) -> AnyChannel:
    for channel in config.alerts.channels:
        if channel.name == name:
            return channel
    known = ", ".join(channel.name for channel in config.alerts.channels) or "none"
    raise ConfigError(
        f"the settings have no channel {name!r} under alerts.channels; known: {known}", code=ErrorCode.UNKNOWN_NAME
    )
