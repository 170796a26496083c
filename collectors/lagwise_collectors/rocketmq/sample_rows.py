"""The rows of one sample of a RocketMQ cluster while they come together."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import chain
from typing import Any

import pyarrow as pa

from lagwise.config import RocketmqCluster
from lagwise.domain.capacity.service_times import MeasuredBy
from lagwise.domain.vocabulary import ROCKETMQ
from lagwise.tables.raw import COMMITS, GROUPS, MEMBERS, SAMPLES, TOPICS, WATERMARKS
from lagwise.tables.schema import Table
from lagwise.tables.service_times import SERVICE_TIMES
from lagwise_collectors.protocol import ErrorTally, Snapshot, encoded, rows_of, run_row
from lagwise_collectors.rocketmq.ask_members import MemberAnswers
from lagwise_collectors.rocketmq.broker_rows import BrokerRows
from lagwise_collectors.rocketmq.group_view import RocketmqGroup, RocketmqMember
from lagwise_collectors.rocketmq.partition_numbers import BrokerNumbers, partition_of
from lagwise_collectors.rocketmq.remoting.requests import WORK_SECONDS


class RocketmqSampleRows:
    """One sample: tables are kept as they are read, :meth:`finish` comes last."""

    def __init__(self, cluster: RocketmqCluster, sample_id: str) -> None:
        self._cluster = cluster
        self._sample_id = sample_id
        self._tables: dict[str, pa.Table] = {}
        self._facts: dict[str, Any] = {}
        self.errors = ErrorTally()

    def snapshot(self) -> Snapshot:
        """What has been kept."""
        return Snapshot(self._cluster.name, self._sample_id, self._tables)

    def keep_groups(self, groups: Sequence[RocketmqGroup], numbers: BrokerNumbers, at: datetime) -> None:
        """Rows of ``groups`` and ``members``."""
        self._facts["groups"] = sum(group.error is None for group in groups)
        columns: dict[str, Any] = {
            "group": [g.name for g in groups],
            "state": encoded([g.state for g in groups]),
            "type": encoded([g.type for g in groups]),
            "member_count": [None if g.state is None else len(g.members) for g in groups],
            "unacknowledged": [g.unacknowledged for g in groups],
            "error": encoded([g.error for g in groups]),
            "source": encoded([g.source for g in groups]),
            "subscriptions": [[s._asdict() for s in g.subscriptions] or None for g in groups],
        }
        self._keep(GROUPS, columns, at)
        members = [(group.name, member) for group in groups for member in group.members]
        columns = {
            "group": encoded([name for name, _ in members]),
            "member_id": [m.client_id for _, m in members],
            "client_id": [m.client_id for _, m in members],
            "host": encoded([m.host for _, m in members]),
            "assignment": [_assignment(m, numbers) for _, m in members],
            "assigned_partitions": [len(m.queues) for _, m in members],
            "lag": [m.lag for _, m in members],
        }
        self._keep(MEMBERS, columns, at)

    def keep_work(
        self, answers: MemberAnswers, groups: Mapping[str, RocketmqGroup], numbers: BrokerNumbers, at: datetime
    ) -> None:
        """Rows of ``service_times``: what the members that were asked in this sample say of their last minute."""
        members = {(name, one.client_id): one for name, group in groups.items() for one in group.members}
        rows: list[dict[str, Any]] = []
        for (name, client), told, topic, work in answers.fresh_work():
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
                        "seconds_per_message": work.seconds_per_message,
                        "messages": work.messages,
                        "threads": told.threads,
                        "window_seconds": WORK_SECONDS,
                    }
                )
        self._keep_rows(SERVICE_TIMES, rows, at)

    def keep_commits(self, rows: Iterable[BrokerRows], at: datetime) -> None:
        """Rows of ``commits``, dated by when they had been read."""
        columns = _joined(rows, ("group", "topic", "partition", "committed", "owner"))
        self._facts["group_partitions"] = len(columns["committed"]) - columns["committed"].count(None)
        self._facts["commits_read_at"] = at
        for name in ("group", "topic", "owner"):
            columns[name] = encoded(columns[name])
        self._keep(COMMITS, columns, at)

    def keep_watermarks(self, rows: Mapping[str, BrokerRows], numbers: BrokerNumbers, at: datetime) -> None:
        """Rows of ``watermarks``, by broker."""
        columns = _joined(rows.values(), ("label", "log_start", "high_watermark", "newest_record_at", "error"))
        columns["topic"] = encoded(list(chain.from_iterable(one.mark_topic for one in rows.values())))
        columns["partition"] = list(chain.from_iterable(one.mark_partition for one in rows.values()))
        columns["leader"] = [numbers[name] for name, one in rows.items() for _ in one.mark_topic]
        self._facts["partitions"] = columns["error"].count(None)
        self._facts["watermarks_read_at"] = at
        columns["error"] = encoded(columns["error"])
        self._keep(WATERMARKS, columns, at)

    def keep_topics(self, rows: Sequence[Mapping[str, Any]], at: datetime) -> None:
        """Rows of ``topics``, where there are any."""
        self._keep_rows(TOPICS, rows, at)

    def finish(self, started_at: datetime, finished_at: datetime, wall_seconds: float, cpu_seconds: float) -> None:
        """The ``samples`` row, after everything else."""
        self._tables[SAMPLES.name] = run_row(
            sample_id=self._sample_id,
            cluster=self._cluster.name,
            system=ROCKETMQ,
            started_at=started_at,
            finished_at=finished_at,
            interval_seconds=self._cluster.interval_seconds,
            wall_seconds=wall_seconds,
            cpu_seconds=cpu_seconds,
            errors=self.errors,
            **self._facts,
        )

    def _keep_rows(self, table: Table, rows: Sequence[Mapping[str, Any]], at: datetime) -> None:
        if rows:
            self._keep(table, {name: [row[name] for row in rows] for name in rows[0]}, at)

    def _keep(self, table: Table, columns: Mapping[str, Any], at: datetime) -> None:
        if len(next(iter(columns.values()))):
            self._tables[table.name] = rows_of(
                table, columns, sample_id=self._sample_id, cluster=self._cluster.name, at=at
            )


def _joined(rows: Iterable[BrokerRows], names: Sequence[str]) -> dict[str, Any]:
    every = list(rows)
    return {name: list(chain.from_iterable(getattr(one, name) for one in every)) for name in names}


def _assignment(member: RocketmqMember, numbers: BrokerNumbers) -> list[dict[str, Any]]:
    by_topic: dict[str, list[int]] = {}
    for queue in member.queues:
        by_topic.setdefault(queue.topic, []).append(partition_of(numbers[queue.broker], queue.queue))
    return [{"topic": topic, "partitions": sorted(partitions)} for topic, partitions in sorted(by_topic.items())]
