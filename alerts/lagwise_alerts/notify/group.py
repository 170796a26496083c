"""When many messages to a channel become one: pure, so that it can be proved in a table.

A channel is given at most so many messages within an interval, one by one and at once. Where more wait, they become one
summary. A summary uses up what is left of the interval: what comes after it waits and goes out together.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from lagwise.config.operating import Grouping


@dataclass(frozen=True, slots=True)
class SentMessage:
    """A message that was delivered: when, and whether it was a summary."""

    at: datetime
    is_summary: bool


@dataclass(frozen=True, slots=True)
class SendSingly:
    """The first so many of the queue go out one by one."""

    count: int


@dataclass(frozen=True, slots=True)
class SendSummary:
    """All that waits goes out as one."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing goes out before this moment."""

    until: datetime


NextSend = SendSingly | SendSummary | Wait


def next_send(waiting: int, sent: Sequence[SentMessage], policy: Grouping, now: datetime) -> NextSend:
    """What is to be done with ``waiting`` messages that nobody has tried to deliver yet, given what was delivered
    lately."""
    if policy.max_messages is None:
        return SendSingly(waiting)
    interval = timedelta(seconds=policy.interval_seconds)
    lately = sorted((one for one in sent if one.at > now - interval), key=lambda one: one.at)
    summaries = [one for one in lately if one.is_summary]
    if summaries:
        return Wait(summaries[-1].at + interval)
    left = policy.max_messages - len(lately)
    if left <= 0:
        return Wait(lately[len(lately) - policy.max_messages].at + interval)
    return SendSingly(waiting) if waiting <= left else SendSummary()
