"""Whether collection, analysis and delivery are all fresh: pure. Only then may the dead man's switch be fed."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from lagwise.platform.durations import duration_words
from lagwise_alerts.model import AlertKind, FreshnessCondition, Situation

#: Data that is older than this (and than three of its intervals) is not fresh; the default rules page at that age, too.
OLDEST_DATA_SECONDS = 180.0
#: A message that has waited for longer than this, and than summaries are waited for, is not on its way any more.
LONGEST_WAIT_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class ChannelState:
    """How a channel is doing: since when its oldest message waits, when one was delivered last, and one given up."""

    channel: str
    waiting_since: datetime | None
    delivered_at: datetime | None
    gave_up_at: datetime | None


def unfit(
    observation: Situation, channels: Iterable[ChannelState], now: datetime, *, summary_seconds: float = 0.0
) -> str | None:
    """Why Lagwise cannot be relied on at the moment, in one line; None where it can.

    ``summary_seconds`` is for how long a message may wait for others.
    """
    late = [_late(condition, now) for condition in observation.conditions if isinstance(condition, FreshnessCondition)]
    if not observation.clusters:
        late.append("no cluster is watched")
    late += [_undelivered(channel, now, summary_seconds) for channel in channels]
    return "; ".join(reason for reason in late if reason is not None) or None


def _late(condition: FreshnessCondition, now: datetime) -> str | None:
    if condition.newest_at is None:
        return f"{condition.subject} has brought no data"
    age = (now - condition.newest_at).total_seconds()
    if age <= max(OLDEST_DATA_SECONDS, condition.floor_seconds):
        return None
    if condition.subject.kind is AlertKind.ANALYSIS:
        return f"samples have waited for the analysis for {duration_words(age)}"
    return f"{condition.subject} has brought no data for {duration_words(age)}"


def _undelivered(channel: ChannelState, now: datetime, summary_seconds: float) -> str | None:
    if channel.waiting_since is not None:
        waited = (now - channel.waiting_since).total_seconds()
        if waited > LONGEST_WAIT_SECONDS + summary_seconds:
            return f"messages to channel {channel.channel} have waited for {duration_words(waited)}"
    if channel.gave_up_at is not None and (channel.delivered_at is None or channel.delivered_at < channel.gave_up_at):
        return f"the last message to channel {channel.channel} was given up"
    return None
