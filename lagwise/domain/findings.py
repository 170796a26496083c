"""What is worth knowing about a group beside its status: one sentence each, the most urgent first."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from lagwise.domain.humanise import clock, count, duration, plural, rate
from lagwise.domain.vocabulary import TopicRole

#: Growth of a dead-letter topic is told over this time.
GROWTH_SECONDS = 3600.0
#: A loss that is over is told for so long.
LOSS_TOLD_FOR = timedelta(hours=24)


class FindingKind(StrEnum):
    """Declared in the order of urgency."""

    LOSS = "loss"
    DEAD_LETTERS = "dead_letters"
    UNREAD_RETRIES = "unread_retries"
    LEFT_TOPICS = "left_topics"
    RETRIES = "retries"
    REBALANCES = "rebalances"
    ASSIGNMENT = "assignment"


@dataclass(frozen=True, slots=True)
class Finding:
    """A sentence, and what would help (None where that follows from it)."""

    kind: FindingKind
    sentence: str
    remedy: str | None = None


class Loss(NamedTuple):
    """Records that were deleted before a group read them: when a sample last showed it, and the most that were missing
    at any sample since it began."""

    last_at: datetime
    records: int


def last_loss(before: Loss | None, records_lost: int, now: datetime, *, was_losing: bool) -> Loss | None:
    """A group's last loss, from what it was a round ago and how many records are missing now."""
    if not records_lost:
        return before
    return Loss(now, max(records_lost, before.records if before is not None and was_losing else 0))


def loss_findings(loss: Loss | None, now: datetime) -> list[Finding]:
    """What was lost, for a day after it was; while it goes on, the sentence of the status says it."""
    if loss is None or not timedelta(0) < now - loss.last_at <= LOSS_TOLD_FOR:
        return []
    return [
        Finding(
            FindingKind.LOSS,
            f"At least {_records(loss.records)} deleted before this group read "
            f"{'it' if loss.records == 1 else 'them'}, most recently in the minutes before {clock(loss.last_at, now)}.",
            "Kafka has them no more: if they matter, get them from where they came from.",
        )
    ]


@dataclass(frozen=True, slots=True)
class SideTopic:
    """A retry or dead-letter topic now.

    ``records`` it holds, ``added`` were added within ``added_within_seconds`` (None: not known yet), ``lag`` waits for
    those groups that read it (``readers``; None: not known, or nobody reads).
    """

    name: str
    role: TopicRole
    records: int | None
    added: int | None
    added_within_seconds: float
    readers: int = 0
    lag: int | None = None


def side_topic_findings(topics: Iterable[SideTopic]) -> list[Finding]:
    """What retry and dead-letter topics tell of the groups that read their main topic; nothing where they are quiet."""
    found = []
    for topic in sorted(topics, key=lambda t: (-(t.added or 0), t.name)):
        if topic.role is TopicRole.DEAD_LETTER:
            found += _dead_letters(topic)
        else:
            found += _retries(topic)
    return in_order(found)


@dataclass(frozen=True, slots=True)
class LeftTopic:
    """A topic that a group is assigned no more but has commits on: ``unread`` records wait, and more come at
    ``produce_rate_per_second``; the last commit was ``unmoved_seconds`` ago.

    In a group that lives, the broker forgets what was committed on a topic that no member subscribes to
    ``offsets.retention.minutes`` after that commit (KIP-211): ``seconds_to_expiry``, None where it does not tell.
    """

    name: str
    partitions: int
    unread: int
    produce_rate_per_second: float
    unmoved_seconds: float
    seconds_to_expiry: float | None = None


def left_topic_findings(topics: Iterable[LeftTopic]) -> list[Finding]:
    """Topics that were left while records go on coming: mostly that is meant, but a consumer that died in a group that
    two services share looks just the same. Nothing where none come."""
    return [
        Finding(
            FindingKind.LEFT_TOPICS,
            f"It is assigned {topic.name} no more: on {plural(topic.partitions, 'partition')} nothing was committed "
            f"for {duration(topic.unmoved_seconds)}, {count(topic.unread)} records are unread, and "
            f"{rate(topic.produce_rate_per_second)} come per second.{_forgotten(topic.seconds_to_expiry)}",
            "If that is not meant, its consumer is gone while others of the same group live; if it is, delete the old "
            "offsets.",
        )
        for topic in sorted(topics, key=lambda t: (-t.unread, t.name))
        if topic.unread > 0 and topic.produce_rate_per_second > 0
    ]


def _forgotten(seconds: float | None) -> str:
    if seconds is None:
        return ""
    when = f"in {duration(seconds)}" if seconds > 0 else "at any moment"
    return f" The offsets expire {when}: after that a consumer begins where auto.offset.reset says."


def in_order(findings: Iterable[Finding]) -> list[Finding]:
    """The most urgent first, otherwise as they came."""
    order = list(FindingKind)
    return sorted(findings, key=lambda finding: order.index(finding.kind))


def _dead_letters(topic: SideTopic) -> list[Finding]:
    if not topic.added:
        return []
    holds = "" if topic.records is None else f"; it holds {count(topic.records)}"
    return [
        Finding(
            FindingKind.DEAD_LETTERS,
            f"{_records(topic.added)} given up within {duration(topic.added_within_seconds)}: "
            f"{'it went' if topic.added == 1 else 'they went'} to {topic.name}{holds}.",
            "Look at the newest of them for what could not be processed; they wait there until somebody replays them.",
        )
    ]


def _retries(topic: SideTopic) -> list[Finding]:
    within = duration(topic.added_within_seconds)
    if not topic.readers and topic.records and topic.added:
        return [
            Finding(
                FindingKind.UNREAD_RETRIES,
                f"{_records(topic.added)} sent to be tried again within {within}, but no group reads {topic.name}.",
                "Start the consumer of that topic.",
            )
        ]
    if topic.lag:
        grew = f", and {count(topic.added)} came within {within}" if topic.added else ""
        waits = "1 record waits" if topic.lag == 1 else f"{count(topic.lag)} records wait"
        return [Finding(FindingKind.RETRIES, f"{waits} in {topic.name} to be tried again{grew}.")]
    return []


def _records(number: int) -> str:
    return "1 record was" if number == 1 else f"{count(number)} records were"
