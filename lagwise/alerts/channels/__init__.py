"""The ways out, one file each."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from lagwise.alerts.channels.alertmanager import AlertmanagerChannel
from lagwise.alerts.channels.alertmanager_webhook import AlertmanagerWebhookChannel
from lagwise.alerts.channels.apprise_url import AppriseChannel
from lagwise.alerts.channels.base import Channel, Message, Outcome, Repeating
from lagwise.alerts.channels.mail import MailChannel
from lagwise.alerts.channels.pagerduty import PagerDutyChannel
from lagwise.alerts.channels.slack import SlackChannel
from lagwise.alerts.channels.teams import TeamsChannel
from lagwise.alerts.channels.webhook import WebhookChannel
from lagwise.config import AnyChannel

#: Types of channels that can be given a summary (``lagwise.alerts.v1``) in the place of many messages. PagerDuty and
#: Alertmanager keep each incident by itself, and group by themselves.
TAKE_SUMMARIES = frozenset({"webhook", "alertmanager_webhook", "slack", "teams", "email", "apprise"})

__all__ = ["TAKE_SUMMARIES", "Channel", "Message", "Outcome", "Repeating", "make_channel"]

_CHANNELS: dict[str, Callable[[Any, Callable[[], datetime]], Channel]] = {
    "webhook": WebhookChannel,
    "alertmanager_webhook": AlertmanagerWebhookChannel,
    "alertmanager": AlertmanagerChannel,
    "pagerduty": PagerDutyChannel,
    "slack": SlackChannel,
    "teams": TeamsChannel,
    "email": MailChannel,
    "apprise": AppriseChannel,
}


def make_channel(settings: AnyChannel, clock: Callable[[], datetime]) -> Channel:
    """The channel that the settings describe. Nothing is connected yet."""
    return _CHANNELS[settings.type](settings, clock)
