"""The ways out, one file each."""

from collections.abc import Callable
from datetime import datetime

from lagwise.alerts.channels.base import Channel, Message, Outcome
from lagwise.alerts.channels.webhook import WebhookChannel
from lagwise.config import Webhook

#: Types of channels that can be given a summary (``lagwise.alerts.v1``) in the place of many messages.
TAKE_SUMMARIES = frozenset({"webhook"})

__all__ = ["TAKE_SUMMARIES", "Channel", "Message", "Outcome", "make_channel"]


def make_channel(settings: Webhook, clock: Callable[[], datetime]) -> Channel:
    """The channel that the settings describe. Nothing is connected yet."""
    return WebhookChannel(settings, clock)
