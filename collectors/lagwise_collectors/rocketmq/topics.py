"""What is known of topics: their size, whose retries or dead letters they are, and how long the broker keeps messages.

A broker keeps the messages of all topics in one commit log. It deletes whole files of it, ``fileReservedTime`` hours
after the last write to one, and sooner, whatever their age, while the disk is fuller than ``diskMaxUsedSpaceRatio``.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from lagwise.domain.vocabulary import TopicRole
from lagwise_collectors.protocol import ErrorTally
from lagwise_collectors.rocketmq import requests
from lagwise_collectors.rocketmq.client import Broker, Client
from lagwise_collectors.rocketmq.errors import RocketmqTrouble
from lagwise_collectors.rocketmq.groups import RETRY
from lagwise_collectors.rocketmq.reading import BrokerView
from lagwise_collectors.rocketmq.rows import dead_letter_topic

#: A broker's settings are read again after so long.
CONFIG_SECONDS = 300.0
_HOUR_MS = 3_600_000


@dataclass(slots=True)
class Keeping:
    """How a broker keeps messages; None is not known. A disk fuller than its limit makes it delete at any age."""

    retention_ms: int | None = None
    disk_limit: float = 0.75
    disk_used: float | None = None
    read_at: float = float("-inf")

    @property
    def holds(self) -> bool:
        """Whether nothing is deleted before its time."""
        return self.disk_used is None or self.disk_used < self.disk_limit


class Brokers:
    """How each broker keeps messages, read in turns."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._keeping: dict[str, Keeping] = {}

    def read(self, broker: Broker, now: float) -> Keeping:
        """Its disk now, and its settings where they were not read lately. Raises RocketmqTrouble."""
        keeping = self._keeping.setdefault(broker.name, Keeping())
        asked = [requests.BROKER_RUNTIME]
        if now - keeping.read_at >= CONFIG_SECONDS:
            asked.append(requests.BROKER_CONFIG)
        runtime, *config = self._client.ask_all(broker.address, asked)
        for answer in config:
            if isinstance(answer, RocketmqTrouble):
                raise answer
            settings = requests.config_of(answer.body)
            hours, limit = settings.get("fileReservedTime", ""), settings.get("diskMaxUsedSpaceRatio", "")
            keeping.retention_ms = int(hours) * _HOUR_MS if hours.isdecimal() and len(hours) < 9 else None
            keeping.disk_limit = min(max(int(limit), 10), 95) / 100 if limit.isdecimal() else 0.75
            keeping.read_at = now
        if isinstance(runtime, RocketmqTrouble):
            raise runtime
        keeping.disk_used = _share(requests.runtime_of(runtime.body).get("commitLogDiskRatio"))
        return keeping

    def of(self, name: str) -> Keeping:
        """What is known of a broker."""
        return self._keeping.get(name, Keeping())

    def tell(self, names: Iterable[str], errors: ErrorTally) -> None:
        """Count the brokers whose disks are so full that messages are not kept for their time."""
        for name in names:
            keeping = self.of(name)
            if keeping.disk_used is not None and not keeping.holds:
                errors.note(
                    "disk_too_full",
                    f"{name}: its commit log's disk is {keeping.disk_used:.0%} full; from {keeping.disk_limit:.0%} on "
                    "it deletes the oldest messages whatever their age, and refuses new ones at 90%",
                )


def _share(text: str | None) -> float | None:
    try:
        share = float(text or "")
    except ValueError:
        return None
    return share if 0 <= share <= 1 else None


@dataclass(slots=True)
class TopicRows:
    """Rows of ``raw/topics`` that are due: where something changed, and once on every UTC day, so that no retention of
    the table can ever remove the only row about a topic."""

    _written: dict[str, dict[str, Any]] = field(default_factory=dict)
    _written_on: date | None = None
    #: Queues by topic and broker. A broker that cannot be asked keeps its own, so that no topic seems to shrink.
    _queues: dict[str, dict[str, int]] = field(default_factory=dict)

    def due(
        self,
        wanted: Iterable[str],
        views: Iterable[BrokerView],
        sides: Mapping[str, tuple[TopicRole, str]],
        brokers: Brokers,
        today: date,
    ) -> list[dict[str, Any]]:
        """Rows of these topics; ``sides`` are role and main topic of those that have one."""
        if self._written_on != today:
            self._written.clear()
            self._written_on = today
        read = [view for view in views if view.trouble is None]
        rows = []
        for name in sorted(wanted):
            queues = self._queues.setdefault(name, {})
            here = [view for view in read if name in view.topics]
            for view in read:
                queues.pop(view.broker.name, None)
            queues |= {view.broker.name: view.topics[name].queues for view in here}
            keeping = [brokers.of(broker) for broker in queues]
            kept = [one.retention_ms for one in keeping if one.retention_ms is not None and one.holds]
            role, main_topic = sides.get(name, (None, None))
            row: dict[str, Any] = {
                "topic": name,
                "role": None if role is None else str(role),
                "main_topic": main_topic,
                "partitions": sum(queues.values()),
                "replication_factor": min((view.broker.replicas for view in here), default=None),
                # The shortest counts: where it is not known of one broker, nobody can tell.
                "retention_ms": min(kept) if kept and len(kept) == len(keeping) else None,
                "cleanup_policy": here[0].topics[name].cleanup_policy if here else None,
            }
            if queues and here and self._written.get(name) != row:
                rows.append(row)
                self._written[name] = row
        return rows


def sides_of(groups: Iterable[str], topics: Iterable[str]) -> dict[str, tuple[TopicRole, str]]:
    """Role and main topic of the retry and dead-letter topics of groups.

    They belong to a group and not to a topic. Their main topic is what only this group reads: its retry topic, which so
    is its own main topic. Whoever reads a main topic is told of its side topics, and that must be nobody else.
    """
    there = set(topics)
    sides = {topic: (TopicRole.RETRY, topic) for topic in there if topic.startswith(RETRY)}
    own = {dead_letter_topic(group): (TopicRole.DEAD_LETTER, f"{RETRY}{group}") for group in groups}
    return sides | {topic: side for topic, side in own.items() if topic in there}
