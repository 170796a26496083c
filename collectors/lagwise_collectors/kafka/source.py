"""A Kafka cluster as a source: one sample is list, describe, commits, and only then watermarks."""

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from lagwise.config import Cluster
from lagwise.errors import ConfigError
from lagwise.tables.raw import COMMITS, GROUPS, MEMBERS, SAMPLES, TOPICS, WATERMARKS
from lagwise.tables.schema import Table
from lagwise_collectors.kafka.access import check_access
from lagwise_collectors.kafka.client import Client
from lagwise_collectors.kafka.errors import KafkaTrouble
from lagwise_collectors.kafka.groups import Group, Listing, describe_groups, list_groups, topics_of
from lagwise_collectors.kafka.offsets import CommitReader, Commits
from lagwise_collectors.kafka.topics import (
    CONFIG_REFRESH_SECONDS,
    Topic,
    TopicConfigs,
    ask_topics,
    described_topics,
    read_offsets_retention,
)
from lagwise_collectors.kafka.watermarks import Watermarks, read_watermarks
from lagwise_collectors.protocol import Check, ErrorTally, Snapshot, encoded, new_sample_id, rows_of, run_row

log = logging.getLogger("lagwise.collectors.kafka")

SYSTEM = "kafka"

#: Errors of a topic that explain why nothing seems to be committed on it: it was deleted, or may not be described.
_DELETED, _FORBIDDEN = "unknown_topic", "topic_not_authorized"


class KafkaSource:
    """Samples one Kafka cluster.

    librdkafka can end the process it runs in (see :mod:`lagwise_collectors.isolation`): outside of tests and
    benchmarks this runs in a process of its own.
    """

    def __init__(self, cluster: Cluster, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._cluster = cluster
        self._clock = clock
        self._session: _Session | None = None

    def collect(self) -> Snapshot:
        """One sample. Where the cluster cannot be used at all, its ``samples`` row is all there is, and says why."""
        started_at, wall, cpu = self._clock(), time.perf_counter(), time.process_time()
        run = _Run(self._cluster, new_sample_id(started_at))
        try:
            self._read(run)
        except (KafkaTrouble, ConfigError) as error:
            run.errors.note(error.kind if isinstance(error, KafkaTrouble) else "setting_refused", str(error))
            self.close()
        run.finish(started_at, self._clock(), time.perf_counter() - wall, time.process_time() - cpu)
        return run.snapshot()

    def check(self) -> list[Check]:
        """What ``lagwise doctor`` shows of this cluster."""
        return check_access(self._cluster)

    def close(self) -> None:
        """Drop the connection; the next sample makes a new one."""
        self._session = None

    def _read(self, run: "_Run") -> None:
        if self._session is None:
            self._session = _Session(self._cluster, self._clock)
        session, level = self._session, logging.DEBUG
        try:
            session.read(run)
            level = logging.WARNING  # else the sample's own error says it better
        finally:
            session.client.serve()
            for facility, (count, last) in session.client.said.take().items():
                log.log(level, "%s: librdkafka %s, %d times: %s", self._cluster.name, facility, count, last)


class _Session:
    """One connection, and what is remembered from sample to sample as long as it lasts."""

    def __init__(self, cluster: Cluster, clock: Callable[[], datetime]) -> None:
        self.client = Client(cluster)
        self._cluster = cluster
        self._clock = clock
        self._reader = CommitReader(self.client, clock)
        self._commits = Commits()
        self._configs = TopicConfigs(self.client, cluster.interval_seconds)
        self._selected: dict[str, bool] = {}
        self._groups: dict[str, str | None] = {}
        self._topics: dict[str, Topic] = {}
        self._retention_seconds: float | None = None
        self._retention_read_at = -CONFIG_REFRESH_SECONDS
        self._retention_trouble: str | None = None

    def read(self, run: "_Run") -> None:
        """Read everything into the run, commits strictly before watermarks."""
        listing = list_groups(self.client, self._selects, run.errors)
        self.client.answered()
        groups = describe_groups(self.client, self._with_unlisted(listing), run.errors)
        described_at = self._clock()
        # Nearly all topics are those of the last sample: the broker describes them while the commits come in.
        asked = ask_topics(self.client, self._topics)
        commits = self._reader.read(groups, run.errors)
        wanted = set(commits.topic) | topics_of(groups)
        topics = self._described(wanted, asked, run.errors)
        forbidden = {name for name, topic in topics.items() if topic.error == _FORBIDDEN}
        wanted |= commits.keep_hidden(self._commits, forbidden, {group.name for group in groups})
        lost = [name for name, topic in topics.items() if topic.error is not None]
        marks = read_watermarks(self.client, topics, self._partitions(lost, commits), run.errors, self._clock)
        run.keep_groups(groups, described_at)
        run.keep_commits(commits, self._clock())
        run.keep_watermarks(marks, self._clock())
        run.keep_topics(self._configs.rows(topics, self._clock(), run.errors), self._clock())
        run.offsets_retention_seconds = self._offsets_retention(topics)
        self._groups = {group.name: group.type for group in groups}
        self._topics = {
            name: topic for name, topic in topics.items() if name in wanted and topic.error in (None, _FORBIDDEN)
        }
        self._commits = commits

    def _selects(self, name: str) -> bool:
        selected = self._selected.get(name)
        if selected is None:
            selected = self._selected[name] = self._cluster.groups.selects(name)
        return selected

    def _with_unlisted(self, listing: Listing) -> Mapping[str, str | None]:
        """Groups to read. Where a broker did not list its groups, those seen before are still asked for: a group that
        cannot be read is shown as such, it is not gone."""
        return listing.types if listing.complete else {**self._groups, **listing.types}

    def _described(self, wanted: set[str], asked: Mapping[str, "Future[Any]"], errors: ErrorTally) -> dict[str, Topic]:
        """The wanted topics; and of those wanted in the last sample only, the ones that were deleted or forbidden
        since."""
        new = ask_topics(self.client, wanted - set(asked))
        topics = described_topics(self.client, {**asked, **new}, errors)
        return {
            name: topic for name, topic in topics.items() if name in wanted or topic.error in (_DELETED, _FORBIDDEN)
        }

    def _partitions(self, names: Iterable[str], commits: Commits) -> dict[str, set[int]]:
        """The partitions of these topics that are committed, owned, or were there in the last sample."""
        found = {
            name: {p.number for p in self._topics[name].partitions} if name in self._topics else set() for name in names
        }
        if found:
            for topic, partition in zip(commits.topic, commits.partition, strict=True):
                if topic in found:
                    found[topic].add(partition)
        return found

    def _offsets_retention(self, topics: Mapping[str, Topic]) -> float | None:
        now = time.monotonic()
        if now - self._retention_read_at < CONFIG_REFRESH_SECONDS:
            return self._retention_seconds
        brokers = {p.leader for t in topics.values() for p in t.partitions if p.leader is not None}
        if not brokers:
            return self._retention_seconds
        self._retention_read_at = now
        answer = read_offsets_retention(self.client, min(brokers))
        if isinstance(answer, KafkaTrouble):
            self._retention_seconds = None
            if self._retention_trouble != answer.kind:
                self._retention_trouble = answer.kind
                log.warning(
                    "%s: the broker's offsets.retention.minutes cannot be read (%s), so nothing can be said about "
                    "commits that are going to expire; granting DescribeConfigs on the cluster allows it",
                    self._cluster.name,
                    answer,
                )
        else:
            self._retention_seconds, self._retention_trouble = answer, None
        return self._retention_seconds


class _Run:
    """The rows of one sample while they come together."""

    def __init__(self, cluster: Cluster, sample_id: str) -> None:
        self._cluster = cluster
        self._sample_id = sample_id
        self._tables: dict[str, pa.Table] = {}
        self._counts = {"groups": 0, "group_partitions": 0, "partitions": 0}
        self._commits_read_at: datetime | None = None
        self._watermarks_read_at: datetime | None = None
        self.errors = ErrorTally()
        self.offsets_retention_seconds: float | None = None

    def snapshot(self) -> Snapshot:
        return Snapshot(self._cluster.name, self._sample_id, self._tables)

    def keep_groups(self, groups: list[Group], at: datetime) -> None:
        """Rows of ``groups`` and ``members``. Called after the commits were read, which may add an error."""
        readable = [group for group in groups if group.error is None]
        self._counts["groups"] = len(readable)
        columns: dict[str, Any] = {
            "group": [g.name for g in groups],
            "state": encoded([g.state for g in groups]),
            "type": encoded([g.type for g in groups]),
            "assignor": encoded([g.assignor for g in groups]),
            "coordinator": [g.coordinator for g in groups],
            "member_count": [None if g.state is None else len(g.members) for g in groups],
            "error": encoded([g.error for g in groups]),
        }
        self._keep(GROUPS, columns, at)
        members = [(group.name, member) for group in groups for member in group.members]
        columns = {
            "group": encoded([name for name, _ in members]),
            "member_id": [m.member_id for _, m in members],
            "client_id": [m.client_id for _, m in members],
            "host": encoded([m.host for _, m in members]),
            "static_instance_id": [m.static_instance_id for _, m in members],
            "assignment": [
                [{"topic": t, "partitions": p} for t, p in sorted(m.assignment.items())] for _, m in members
            ],
            "assigned_partitions": [sum(map(len, m.assignment.values())) for _, m in members],
        }
        self._keep(MEMBERS, columns, at)

    def keep_commits(self, commits: Commits, now: datetime) -> None:
        self._commits_read_at = commits.read_at
        self._counts["group_partitions"] = len(commits.committed) - commits.committed.count(None)
        indices: list[int] = []
        for position, rows in enumerate(commits.rows):
            indices += [position] * rows
        columns = {
            "group": pa.DictionaryArray.from_arrays(
                pa.array(indices, pa.int32()), pa.array(commits.group, pa.string())
            ),
            "topic": encoded(commits.topic),
            "partition": commits.partition,
            "committed": commits.committed,
            "leader_epoch": commits.leader_epoch,
            "metadata": encoded(commits.metadata),
            "owner": encoded(commits.owner),
        }
        self._keep(COMMITS, columns, commits.read_at or now)

    def keep_watermarks(self, marks: Watermarks, now: datetime) -> None:
        """Rows of ``watermarks``; ``now`` dates them where not one of them could be read."""
        self._watermarks_read_at = marks.read_at
        self._counts["partitions"] = marks.error.count(None)
        columns = {
            "topic": encoded(marks.topic),
            "topic_id": encoded(marks.topic_id),
            "partition": marks.partition,
            "log_start": marks.log_start,
            "high_watermark": marks.high_watermark,
            "last_stable": marks.last_stable,
            "leader": marks.leader,
            "replicas": marks.replicas,
            "isr": marks.isr,
            "error": encoded(marks.error),
        }
        self._keep(WATERMARKS, columns, marks.read_at or now)

    def keep_topics(self, rows: list[dict[str, Any]], at: datetime) -> None:
        if rows:
            self._keep(TOPICS, {name: [row[name] for row in rows] for name in rows[0]}, at)

    def finish(self, started_at: datetime, finished_at: datetime, wall_seconds: float, cpu_seconds: float) -> None:
        """The ``samples`` row, after everything else."""
        self._tables[SAMPLES.name] = run_row(
            sample_id=self._sample_id,
            cluster=self._cluster.name,
            system=SYSTEM,
            started_at=started_at,
            finished_at=finished_at,
            interval_seconds=self._cluster.interval_seconds,
            wall_seconds=wall_seconds,
            cpu_seconds=cpu_seconds,
            errors=self.errors,
            commits_read_at=self._commits_read_at,
            watermarks_read_at=self._watermarks_read_at,
            offsets_retention_seconds=self.offsets_retention_seconds,
            **self._counts,
        )

    def _keep(self, table: Table, columns: Mapping[str, Any], at: datetime) -> None:
        if len(next(iter(columns.values()))):
            self._tables[table.name] = rows_of(
                table, columns, sample_id=self._sample_id, cluster=self._cluster.name, at=at
            )
