"""Notification channels, one file each."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from lagwise.config.channels import AnyChannel
from lagwise_alerts.channels.alertmanager import AlertmanagerChannel
from lagwise_alerts.channels.alertmanager_webhook import AlertmanagerWebhookChannel
from lagwise_alerts.channels.apprise_url import AppriseChannel
from lagwise_alerts.channels.base import Channel, DeliveryOutcome, Message
from lagwise_alerts.channels.mail import MailChannel
from lagwise_alerts.channels.pagerduty import PagerDutyChannel
from lagwise_alerts.channels.slack import SlackChannel
from lagwise_alerts.channels.teams import TeamsChannel
from lagwise_alerts.channels.webhook import WebhookChannel

#: Types of channels that take a summary (``lagwise.alerts.v1``) instead of many messages. PagerDuty and Alertmanager
#: need every incident, and group by themselves.
TAKE_SUMMARIES = frozenset({"webhook", "alertmanager_webhook", "slack", "teams", "email", "apprise"})

__all__ = ["TAKE_SUMMARIES", "Channel", "DeliveryOutcome", "Message", "make_channel"]

_CHANNELS: dict[str, Callable[[Any, Callable[[], datetime]], Channel[Any]]] = {
    "webhook": WebhookChannel,
    "alertmanager_webhook": AlertmanagerWebhookChannel,
    "alertmanager": AlertmanagerChannel,
    "pagerduty": PagerDutyChannel,
    "slack": SlackChannel,
    "teams": TeamsChannel,
    "email": MailChannel,
    "apprise": AppriseChannel,
}


def make_channel(settings: AnyChannel, clock: Callable[[], datetime]) -> Channel[Any]:
    """The channel that the settings describe. Nothing is connected yet."""
    return _CHANNELS[settings.type](settings, clock)
