"""What was read of a RocketMQ cluster, as rows of a sample."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from itertools import chain
from typing import Any

from lagwise.domain.capacity.service_times import MeasuredBy
from lagwise.tables.raw import COMMITS, GROUPS, MEMBERS, WATERMARKS
from lagwise.tables.service_times import SERVICE_TIMES
from lagwise_collectors.rocketmq.ask_members import MemberAnswers
from lagwise_collectors.rocketmq.broker_reader import BrokerView
from lagwise_collectors.rocketmq.broker_retention import BrokerStatusReader
from lagwise_collectors.rocketmq.broker_rows import BrokerRows
from lagwise_collectors.rocketmq.group_view import RocketmqGroup, RocketmqMember
from lagwise_collectors.rocketmq.partition_numbers import BrokerNumbers, partition_of
from lagwise_collectors.rocketmq.remoting.requests import CONSUME_STATS_SECONDS
from lagwise_collectors.sample_builder import DueTopicRows, SampleBuilder, SideTopicName, columns_of


def add_groups(sample: SampleBuilder, groups: Sequence[RocketmqGroup], numbers: BrokerNumbers, at: datetime) -> None:
    """Rows of ``groups`` and ``members``."""
    columns = columns_of(groups, "state", "type", "unacknowledged", "error", "source") | {
        "group": [g.name for g in groups],
        "member_count": [None if g.state is None else len(g.members) for g in groups],
        "subscriptions": [[s._asdict() for s in g.subscriptions] or None for g in groups],
    }
    sample.add(GROUPS, columns, at)
    members = [member for group in groups for member in group.members]
    columns = columns_of(members, "client_id", "host", "lag") | {
        "group": [group.name for group in groups for _ in group.members],
        "member_id": [m.client_id for m in members],
        "assignment": [_assignment(m, numbers) for m in members],
        "assigned_partitions": [len(m.queues) for m in members],
    }
    sample.add(MEMBERS, columns, at)


def add_service_times(
    sample: SampleBuilder,
    answers: MemberAnswers,
    groups: Mapping[str, RocketmqGroup],
    numbers: BrokerNumbers,
    at: datetime,
) -> None:
    """Rows of ``service_times``: what the members that were asked in this sample report of their last minute."""
    members = {(name, one.client_id): one for name, group in groups.items() for one in group.members}
    rows: list[dict[str, Any]] = []
    for (name, client), report, topic, stats in answers.latest_stats():
        if (member := members.get((name, client))) is None:
            continue  # it left since it was asked
        owned = [partition_of(numbers[q.broker], q.queue) for q in member.queues if q.topic == topic]
        if owned:
            rows.append(
                {
                    "measured_at": at,
                    "group": name,
                    "topic": topic,
                    "partition": min(owned),
                    "member_id": client,
                    "client_id": client,
                    "host": member.host,
                    "source": MeasuredBy.CONSUME_RT.value,
                    "seconds_per_message": stats.seconds_per_message,
                    "messages": stats.messages,
                    "threads": report.threads,
                    "window_seconds": CONSUME_STATS_SECONDS,
                }
            )
    sample.add_rows(SERVICE_TIMES, rows, at)


def add_commits(sample: SampleBuilder, brokers: Collection[BrokerRows], at: datetime) -> None:
    """Rows of ``commits``, dated by when they had been read."""
    sample.facts["commits_read_at"] = at
    sample.add(COMMITS, _joined([rows.commits for rows in brokers], BrokerRows().commits), at)


def add_watermarks(
    sample: SampleBuilder, brokers: Mapping[str, BrokerRows], numbers: BrokerNumbers, at: datetime
) -> None:
    """Rows of ``watermarks``, by broker."""
    sample.facts["watermarks_read_at"] = at
    columns = _joined([rows.watermarks for rows in brokers.values()], BrokerRows().watermarks)
    columns["leader"] = [numbers[name] for name, rows in brokers.items() for _ in rows.watermarks["topic"]]
    sample.add(WATERMARKS, columns, at)


class TopicRows:
    """Rows of ``raw/topics`` that are due."""

    def __init__(self) -> None:
        self._rows = DueTopicRows(_is_nearly_same)
        #: Queues by topic and broker. A broker that cannot be read keeps its own, so that no topic seems to shrink.
        self._queues: dict[str, dict[str, int]] = {}

    def due(
        self,
        wanted: Iterable[str],
        views: Iterable[BrokerView],
        side_topics: Mapping[str, SideTopicName],
        brokers: BrokerStatusReader,
        at: datetime,
    ) -> list[Mapping[str, Any]]:
        """Rows of these topics; ``side_topics`` are those of them that belong to a group."""
        read = [view for view in views if view.trouble is None]
        rows = []
        for name in sorted(wanted):
            queues = self._queues.setdefault(name, {})
            here = [view for view in read if name in view.topics]
            for view in read:
                queues.pop(view.broker.name, None)
            queues |= {view.broker.name: view.topics[name].queues for view in here}
            retentions = [brokers.of(broker).kept_seconds for broker in queues]
            known = [seconds for seconds in retentions if seconds is not None]
            row: dict[str, Any] = {
                "topic": name,
                "partitions": sum(queues.values()),
                "replication_factor": min((view.broker.replicas for view in here), default=None),
                # The shortest counts. Where one broker's is unknown, so is that of the topic.
                "retention_ms": round(min(known) * 1000) if known and len(known) == len(retentions) else None,
                "cleanup_policy": here[0].topics[name].cleanup_policy if here else None,
            }
            if queues and here:
                rows.append(row)
        return self._rows.due(rows, side_topics, at)


#: How long a disk lasts is an estimate that changes with each sample. One that differs by no more than this share from
#: the last one written counts as the same, or every topic would have a row in every sample.
_SAME = 0.1


def _is_nearly_same(before: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    """Whether a row has nothing new."""
    was, kept = before["retention_ms"], now["retention_ms"]
    is_near = was is not None and kept is not None and abs(kept - was) <= _SAME * was
    return {**before, "retention_ms": None} == {**now, "retention_ms": None} and (was == kept or is_near)


def _joined(parts: Iterable[Mapping[str, list[Any]]], names: Iterable[str]) -> dict[str, list[Any]]:
    """The columns of several parts, one after the other."""
    every = list(parts)
    return {name: list(chain.from_iterable(part[name] for part in every)) for name in names}


def _assignment(member: RocketmqMember, numbers: BrokerNumbers) -> list[dict[str, Any]]:
    by_topic: dict[str, list[int]] = {}
    for queue in member.queues:
        by_topic.setdefault(queue.topic, []).append(partition_of(numbers[queue.broker], queue.queue))
    return [{"topic": topic, "partitions": sorted(partitions)} for topic, partitions in sorted(by_topic.items())]
