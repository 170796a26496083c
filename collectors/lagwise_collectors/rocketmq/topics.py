"""What is known of topics: their size, whose retries or dead letters they are, and how long brokers keep messages."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any

from lagwise.domain.vocabulary import TopicRole
from lagwise_collectors.rocketmq.broker_reader import BrokerView
from lagwise_collectors.rocketmq.broker_retention import Brokers


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
        at: datetime,
    ) -> list[dict[str, Any]]:
        """Rows of these topics; ``sides`` are role and main topic of those that have one."""
        if self._written_on != at.date():
            self._written.clear()
            self._written_on = at.date()
        read = [view for view in views if view.trouble is None]
        rows = []
        for name in sorted(wanted):
            queues = self._queues.setdefault(name, {})
            here = [view for view in read if name in view.topics]
            for view in read:
                queues.pop(view.broker.name, None)
            queues |= {view.broker.name: view.topics[name].queues for view in here}
            keeping = [brokers.of(broker).kept_seconds for broker in queues]
            kept = [seconds for seconds in keeping if seconds is not None]
            role, main_topic = sides.get(name, (None, None))
            row: dict[str, Any] = {
                "topic": name,
                "role": None if role is None else str(role),
                "main_topic": main_topic,
                "partitions": sum(queues.values()),
                "replication_factor": min((view.broker.replicas for view in here), default=None),
                # The shortest counts: where it is not known of one broker, nobody can tell.
                "retention_ms": round(min(kept) * 1000) if kept and len(kept) == len(keeping) else None,
                "cleanup_policy": here[0].topics[name].cleanup_policy if here else None,
            }
            if queues and here and not _is_about(self._written.get(name), row):
                rows.append(row)
                self._written[name] = row
        return rows


#: How long a disk lasts is an estimate that is another one in each sample. One that differs by no more than this share
#: from the one that was written is the same, or every topic would have a row in every sample.
_SAME = 0.1


def _is_about(before: Mapping[str, Any] | None, now: Mapping[str, Any]) -> bool:
    """Whether there is nothing new in a row."""
    if before is None:
        return False
    was, kept = before["retention_ms"], now["retention_ms"]
    is_near = was is not None and kept is not None and abs(kept - was) <= _SAME * was
    return {**before, "retention_ms": None} == {**now, "retention_ms": None} and (was == kept or is_near)
