"""Findings about a group besides its status: one sentence each, the most urgent first."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, NamedTuple

from lagwise.domain.humanise import clock, count, duration, plural, rate
from lagwise.domain.loss.records import Lost
from lagwise.domain.vocabulary import ROCKETMQ, TopicRole

#: The growth of a dead-letter topic is reported over this time.
GROWTH_SECONDS = 3600.0


class FindingKind(StrEnum):
    """Declared in the order of urgency."""

    LOSS = "loss"
    SKIPPED = "skipped"
    DEAD_LETTERS = "dead_letters"
    UNREAD_RETRIES = "unread_retries"
    LEFT_TOPICS = "left_topics"
    SUBSCRIPTIONS = "subscriptions"
    JOB = "job"
    RETRIES = "retries"
    REBALANCES = "rebalances"
    ASSIGNMENT = "assignment"


@dataclass(frozen=True, slots=True)
class Finding:
    """A sentence, and what would help (None where that follows from it)."""

    kind: FindingKind
    sentence: str
    remedy: str | None = None


def not_told_by(sentence: str, findings: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The stored findings without those whose sentence stands in that of the group already, as its likely cause."""
    return [finding for finding in findings if finding["sentence"][1:] not in sentence]


_GET_THEM = "They are no longer in the log: if they matter, restore them from their source."
#: Where consumers go on whose next record was deleted, and what to do about it: Kafka's where configured to,
#: RocketMQ's at the oldest there is (its broker answers OFFSET_TOO_SMALL with its own ``minOffset``).
_KAFKA_GOES_ON = (
    "A consumer whose next record was deleted skips to the end by default, past records that are still kept; with "
    "auto.offset.reset=earliest it continues at the oldest of them."
)
_ROCKETMQ_GOES_ON = "Its consumers continue at the oldest message that is still kept."


def loss_findings(lost: Lost, now: datetime, *, records_lost: int = 0, system: str | None = None) -> list[Finding]:
    """What was lost within a day, unless the sentence of the status reports the same as ``records_lost``: the number
    that is missing now."""
    is_in_sentence = lost.at_least == lost.at_most == records_lost
    if lost.first_seconds is None or lost.last_seconds is None or is_in_sentence:
        return []
    numbers = _bounds(lost.at_least, lost.at_most)
    first, last = (now - timedelta(seconds=s) for s in (lost.first_seconds, lost.last_seconds))
    when = f"in the minutes before {clock(last, now)}" if first == last else f"since {clock(first, now)}"
    when += f", most recently in the minutes before {clock(last, now)}" if first < last < now else ""
    sentence = f"{numbers} deleted before this group read {'it' if lost.at_most == 1 else 'them'}, {when}."
    return [
        Finding(
            FindingKind.LOSS,
            f"In all, {sentence[0].lower()}{sentence[1:]}" if records_lost else sentence,
            f"{_GET_THEM} {_ROCKETMQ_GOES_ON if system == ROCKETMQ else _KAFKA_GOES_ON}",
        )
    ]


def _bounds(at_least: int, at_most: int) -> str:
    """How many records were …, as the beginning of a sentence."""
    low, high = count(at_least), count(at_most)
    return _records(at_least) if low == high else f"Between {low} and {high} records were"


class Skip(NamedTuple):
    """Unread records that a group skipped, on one partition or on several of a topic together."""

    at: datetime
    topic: str
    records: int
    #: On how many partitions.
    partitions: int = 1
    #: The one partition, and its committed offset before and after; None where there are several.
    partition: int | None = None
    before: int | None = None
    after: int | None = None
    #: Whether the records before them had been deleted, and the group went on at the end.
    from_log_start: bool = False
    #: What the system calls the partition, where that is no number.
    label: str | None = None

    @property
    def where(self) -> str:
        """The partition in a word; the topic where there are several."""
        if self.partition is None:
            return self.topic
        return f"{self.topic}-{self.partition}" if self.label is None else f"{self.topic} {self.label}"


def skip_findings(skips: Iterable[Skip], now: datetime, system: str | None = None) -> list[Finding]:
    """What was skipped, and when: the last time on each topic, but all of what was skipped where records had been
    deleted, which goes on for as long as a reader is too slow for what is kept."""
    by_topic: dict[tuple[str, bool], list[Skip]] = {}
    for skip in sorted(skips, key=lambda s: (s.topic, s.at, s.partition or 0)):
        by_topic.setdefault((skip.topic, skip.from_log_start), []).append(skip)
    return [
        _skipped_to_end(its, now, system) if from_log_start else _skipped([s for s in its if s.at == its[-1].at], now)
        for (_, from_log_start), its in by_topic.items()
    ]


_SKIPS_AGAIN = (
    " With auto.offset.reset=latest, Kafka's default, it will skip again whenever its next record is deleted."
)


def _skipped_to_end(skips: Sequence[Skip], now: datetime, system: str | None) -> Finding:
    """All that was skipped of a topic by one whose next record was deleted, in order of time."""
    first, last = skips[0], skips[-1]
    when = f"in the moments before {clock(last.at, now)}"
    if first.at < last.at:
        when = f"since {clock(first.at, now)}, most recently {when}"
    return Finding(
        FindingKind.SKIPPED,
        f"Up to {count(sum(skip.records for skip in skips))} records that were still kept were skipped {when}: "
        f"earlier records on {last.where} had been deleted, and the committed offset jumped to near the end.",
        "They can still be read until they are deleted: reset the offsets to the earliest."
        + ("" if system == ROCKETMQ else _SKIPS_AGAIN),
    )


def _skipped(skips: Sequence[Skip], now: datetime) -> Finding:
    """The skips of a topic at one moment."""
    one, number = skips[-1], sum(skip.partitions for skip in skips)
    jump = f"the committed offsets of {plural(number, 'partition')} of {one.topic} jumped to near the end"
    if number == 1 and one.before is not None and one.after is not None:
        jump = f"the committed offset of {one.where} jumped from {one.before:,} to {one.after:,}"
    return Finding(
        FindingKind.SKIPPED,
        f"Up to {count(sum(skip.records for skip in skips))} records were skipped in the moments before "
        f"{clock(one.at, now)}: {jump}, many times faster than it was ever seen to read.",
        "If nobody set the offsets forward, check whether its consumer seeks to the end. To read the records, reset "
        "the offsets to their earlier position while the records are kept.",
    )


@dataclass(frozen=True, slots=True)
class SideTopic:
    """A retry or dead-letter topic now. None is not known."""

    name: str
    role: TopicRole
    #: Records that it holds.
    records: int | None
    #: Records that were added within ``added_within_seconds``.
    added: int | None
    added_within_seconds: float
    #: Groups that read it.
    readers: int = 0
    #: Records that wait for these; None also where none reads.
    lag: int | None = None


def side_topic_findings(topics: Iterable[SideTopic]) -> list[Finding]:
    """What retry and dead-letter topics show about the groups that read their main topic."""
    found = []
    for topic in sorted(topics, key=lambda t: (-(t.added or 0), t.name)):
        if topic.role is TopicRole.DEAD_LETTER:
            found += _dead_letters(topic)
        else:
            found += _retries(topic)
    return in_order(found)


@dataclass(frozen=True, slots=True)
class LeftTopic:
    """A topic that a group is assigned no more but has commits on."""

    name: str
    #: Partitions with commits.
    partitions: int
    #: Records that wait there.
    unread: int
    #: Records that arrive there.
    produce_rate_per_second: float
    #: Time since the last commit.
    unmoved_seconds: float
    #: Until the broker forgets the offsets: in a group that lives it forgets those of a topic that no member subscribes
    #: to ``offsets.retention.minutes`` after the commit (KIP-211). None is not known.
    seconds_to_expiry: float | None = None


def left_topic_findings(topics: Iterable[LeftTopic]) -> list[Finding]:
    """Topics that were left while records go on coming: mostly that is meant, but a consumer that died in a group that
    two services share looks just the same. Nothing where none come."""
    return [
        Finding(
            FindingKind.LEFT_TOPICS,
            f"Topic {topic.name} is no longer assigned to it: no commits on {plural(topic.partitions, 'partition')} "
            f"for {duration(topic.unmoved_seconds)}, {count(topic.unread)} records are unread, and "
            f"{rate(topic.produce_rate_per_second)} arrive per second.{_forgotten(topic.seconds_to_expiry)}",
            "If this is not intended, its consumer is gone while other members of the group live; otherwise delete the "
            "old offsets.",
        )
        for topic in sorted(topics, key=lambda t: (-t.unread, t.name))
        if topic.unread > 0 and topic.produce_rate_per_second > 0
    ]


def _forgotten(seconds: float | None) -> str:
    if seconds is None:
        return ""
    when = f"in {duration(seconds)}" if seconds > 0 else "at any moment"
    return f" The offsets expire {when}: a consumer that starts later begins where auto.offset.reset says."


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
            "Check the newest of them for what could not be processed; they stay there until somebody replays them.",
        )
    ]


def _retries(topic: SideTopic) -> list[Finding]:
    within = duration(topic.added_within_seconds)
    if not topic.readers and topic.records and topic.added:
        return [
            Finding(
                FindingKind.UNREAD_RETRIES,
                f"{_records(topic.added)} sent to be retried within {within}, but no group reads {topic.name}.",
                "Start the consumer of that topic.",
            )
        ]
    if topic.lag:
        grew = f", and {count(topic.added)} arrived within {within}" if topic.added else ""
        waits = "1 record waits" if topic.lag == 1 else f"{count(topic.lag)} records wait"
        return [Finding(FindingKind.RETRIES, f"{waits} in {topic.name} to be retried{grew}.")]
    return []


def _records(number: int) -> str:
    return "1 record was" if number == 1 else f"{count(number)} records were"
