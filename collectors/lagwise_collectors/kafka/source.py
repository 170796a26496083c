"""A Kafka cluster as a source: one sample is list, describe, commits, and only then watermarks."""

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path

from lagwise.config import Cluster
from lagwise.platform.errors import ConfigError
from lagwise.platform.log_events import LogEvent, event
from lagwise.tables.raw import TOPICS
from lagwise_collectors.external_offsets.merge_with_kafka import TopicNames, merge_with_kafka
from lagwise_collectors.external_offsets.sources import OffsetSources, check_offset_sources
from lagwise_collectors.kafka.access import check_access
from lagwise_collectors.kafka.cluster_facts import ClusterFacts
from lagwise_collectors.kafka.group_reader import GroupReader
from lagwise_collectors.kafka.next_record_column import next_record_column
from lagwise_collectors.kafka.own_path import OwnPath
from lagwise_collectors.kafka.requests.client import KafkaClient
from lagwise_collectors.kafka.requests.commit_columns import CommitColumns
from lagwise_collectors.kafka.requests.errors import KafkaTrouble
from lagwise_collectors.kafka.requests.group_members import GroupListing, topics_of
from lagwise_collectors.kafka.requests.next_records import (
    NextRecordCache,
    NextRecordFetcher,
    NextRecords,
    RecordFetcher,
)
from lagwise_collectors.kafka.requests.side_topics import SideTopics
from lagwise_collectors.kafka.requests.topic_columns import KafkaTopic
from lagwise_collectors.kafka.sample_rows import add_commits, add_groups, add_jobs, add_watermarks
from lagwise_collectors.kafka.topic_configs import CONFIG_REFRESH_SECONDS, TopicConfigs
from lagwise_collectors.kafka.topic_reader import TopicReader
from lagwise_collectors.protocol import Check, ErrorTally, Snapshot
from lagwise_collectors.sample_builder import SampleBuilder, SideTopicName

log = logging.getLogger("lagwise.collectors.kafka")

#: Errors of a topic that explain why nothing seems to be committed on it: it was deleted, or may not be described.
_DELETED, _FORBIDDEN = "unknown_topic", "topic_not_authorized"

#: Errors that a new session may be free of.
_OF_THE_CONNECTION = frozenset({"timeout", "unreachable"})
#: After so many samples in a row with such errors the session is replaced: at first, and at most.
_FIRST_PATIENCE, _MOST_PATIENCE = 2, 32


class KafkaSource:
    """Samples one Kafka cluster.

    librdkafka can crash its process, so outside tests and benchmarks this runs in a reader process of its own
    (:mod:`lagwise_collectors.reader_process.isolated_source`), or with our ``own_requests_only``: then NeedsLibrdkafka
    is raised where those are not enough. ``state`` is the file in which the offsets of next records survive that
    process; ``fetcher`` looks them up.
    """

    def __init__(
        self,
        cluster: Cluster,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        *,
        state: Path | None = None,
        own_requests_only: bool = False,
        fetcher: Callable[[Cluster], RecordFetcher] = NextRecordFetcher,
    ) -> None:
        self._cluster = cluster
        self._clock = clock
        self._own_requests_only = own_requests_only
        self._make_fetcher = fetcher
        self._next_record_cache = None if state is None else NextRecordCache(state)
        self._offset_sources = OffsetSources(
            cluster.external_offsets,
            state=None if state is None else state.with_suffix(".external_offsets"),
            clock=clock,
        )
        self._session: _Session | None = None
        self._renewal = _Renewal()

    def collect(self) -> Snapshot:
        """One sample. Where the cluster cannot be used at all, its ``samples`` row is all there is, and says why."""
        # In a process of its own, librdkafka's threads count as well; in the collector's, other clusters' do not.
        cpu_clock = time.thread_time if self._own_requests_only else time.process_time
        sample = SampleBuilder(self._cluster, self._clock, cpu_clock)
        try:
            self._read(sample)
        except (KafkaTrouble, ConfigError) as error:
            sample.errors.note(error.kind if isinstance(error, KafkaTrouble) else "setting_refused", str(error))
            self.close()
        else:
            if self._renewal.is_due(sample.errors.counts):
                self.close()
        return sample.finish()

    def check(self) -> list[Check]:
        """What ``lagwise doctor`` shows of this cluster."""
        return check_access(self._cluster) + check_offset_sources(self._cluster.external_offsets)

    def close(self) -> None:
        """Drop the connection; the next sample makes a new one."""
        session, self._session = self._session, None
        if session is not None:
            session.close()

    def abandon(self) -> None:
        """End a sample that is under way, from another thread."""
        session = self._session
        if session is not None:
            session.own.abandon()

    def _read(self, sample: SampleBuilder) -> None:
        if self._session is None:
            client = KafkaClient(self._cluster)
            own = OwnPath(self._cluster, client.clean, is_alone=self._own_requests_only)
            fetcher = self._make_fetcher(self._cluster) if self._cluster.skip_control_records else None
            self._session = _Session(
                self._cluster, self._clock, client, own, fetcher, self._next_record_cache, self._offset_sources
            )
        session, level = self._session, logging.DEBUG
        self._offset_sources.begin()
        try:
            session.read(sample)
            level = logging.WARNING  # otherwise the sample's own error explains it
        finally:
            session.client.serve()
            for facility, (count, last) in session.client.library_log.take().items():
                log.log(
                    level,
                    "%s: librdkafka %s, %d times: %s",
                    self._cluster.name,
                    facility,
                    count,
                    last,
                    extra=event(LogEvent.CLIENT_LIBRARY, cluster=self._cluster.name),
                )


class _Renewal:
    """When a session that keeps failing in part is replaced.

    librdkafka may never recover by itself: with 2.16, a connection that was reset in the middle of an answer left every
    later description of a group to its timeout, on a cluster that was well again. Where brokers are really gone a new
    session helps nothing and reads everything anew, so it comes ever more rarely.
    """

    def __init__(self) -> None:
        self._failed, self._patience = 0, _FIRST_PATIENCE

    def is_due(self, errors: Mapping[str, int]) -> bool:
        """Whether the session is to be replaced after a sample with these errors."""
        if not _OF_THE_CONNECTION & errors.keys():
            self._failed, self._patience = 0, _FIRST_PATIENCE
            return False
        self._failed += 1
        if self._failed < self._patience:
            return False
        self._failed, self._patience = 0, min(2 * self._patience, _MOST_PATIENCE)
        return True


class _Session:
    """One connection, and the state that is kept from sample to sample while it lasts."""

    def __init__(
        self,
        cluster: Cluster,
        clock: Callable[[], datetime],
        client: KafkaClient,
        own: OwnPath,
        fetcher: RecordFetcher | None,
        next_record_cache: NextRecordCache | None,
        offset_sources: OffsetSources,
    ) -> None:
        self.client = client
        self.own = own
        self._cluster = cluster
        self._clock = clock
        self._offset_sources = offset_sources
        self._group_reader = GroupReader(self.client, self.own, cluster, clock)
        self._topic_reader = TopicReader(self.client, self.own, clock)
        self._topic_names = TopicNames(self._topic_reader.names)
        self._commits = CommitColumns()
        self._fetcher = fetcher
        self._next_records = None if fetcher is None else NextRecords(fetcher, next_record_cache)
        self._side_topics = SideTopics(cluster.side_topics, self._topic_reader.names)
        self._configs = TopicConfigs(self._topic_reader.topic_configs, cluster.interval_seconds)
        self._cluster_facts = ClusterFacts(self._topic_reader, self.own, clock)
        self._selected: dict[str, bool] = {}
        self._groups: dict[str, str | None] = {}
        self._topics: dict[str, KafkaTopic] = {}
        self._retention_seconds: float | None = None
        self._retention_read_at = -CONFIG_REFRESH_SECONDS
        self._retention_trouble: str | None = None

    def read(self, sample: SampleBuilder) -> None:
        """Read everything into the sample, commits strictly before watermarks."""
        self.own.begin_sample()
        listing = self._group_reader.list_groups(self._selects, sample.errors)
        groups = self._group_reader.describe_groups(self._with_unlisted(listing), sample.errors)
        described_at = self._clock()
        commits = self._group_reader.read_offsets(groups, sample.errors)
        types = {group.name: group.type for group in groups}
        external = self._offset_sources.finish(self._selects, sample.errors)
        merge_with_kafka(external, groups, commits, self._topic_names, sample.errors)
        wanted = commits.topics() | topics_of(groups)
        side_topics = self._side_topics_of(wanted, sample.errors)
        wanted |= set(side_topics)
        topics = self._described(wanted, sample.errors)
        forbidden = {name for name, topic in topics.items() if topic.error == _FORBIDDEN}
        wanted |= commits.keep_hidden(self._commits, forbidden, {group.name for group in groups})
        lost = [name for name, topic in topics.items() if topic.error is not None]
        marks = self._topic_reader.watermarks(topics, self._partitions(lost, commits), sample.errors)
        if self._next_records is not None:
            commits.next_record = next_record_column(self._next_records, commits, marks)
        add_groups(sample, groups, described_at)
        add_jobs(sample, external, commits.read_at or described_at)
        add_commits(sample, commits, self._clock())
        add_watermarks(sample, marks, self._clock())
        sample.add_rows(TOPICS, self._configs.rows(topics, side_topics, self._clock(), sample.errors), self._clock())
        sample.facts["offsets_retention_seconds"] = self._offsets_retention(topics)
        sample.facts |= self._cluster_facts.columns(topics.values(), self._configs.min_isr)
        self._groups = types
        self._topics = {
            name: topic for name, topic in topics.items() if name in wanted and topic.error in (None, _FORBIDDEN)
        }
        self._commits = commits

    def close(self) -> None:
        """Close what does not end by itself."""
        self.own.close()
        if self._fetcher is not None:
            self._fetcher.close()

    def _side_topics_of(self, read: set[str], errors: ErrorTally) -> dict[str, SideTopicName]:
        try:
            return self._side_topics.of(read)
        except KafkaTrouble as trouble:
            errors.note(trouble.kind, f"listing the names of all topics: {trouble}")
            return {}

    def _selects(self, name: str) -> bool:
        selected = self._selected.get(name)
        if selected is None:
            selected = self._selected[name] = self._cluster.groups.selects(name)
        return selected

    def _with_unlisted(self, listing: GroupListing) -> Mapping[str, str | None]:
        """Groups to read. Where a broker did not list its groups, those seen before are still asked for: a group that
        cannot be read is shown as unreadable, and not as gone."""
        return listing.types if listing.complete else {**self._groups, **listing.types}

    def _described(self, wanted: set[str], errors: ErrorTally) -> dict[str, KafkaTopic]:
        """The wanted topics; and of those wanted in the last sample only, the ones that were deleted or forbidden
        since."""
        topics = self._topic_reader.describe(wanted | self._topics.keys(), errors)
        return {
            name: topic for name, topic in topics.items() if name in wanted or topic.error in (_DELETED, _FORBIDDEN)
        }

    def _partitions(self, names: Iterable[str], commits: CommitColumns) -> dict[str, set[int]]:
        """The partitions of these topics that are committed, owned, or were there in the last sample."""
        partitions = {
            name: set(self._topics[name].partition.tolist()) if name in self._topics else set() for name in names
        }
        if partitions:
            for topic, numbers in commits.partitions_of(partitions):
                partitions[topic].update(numbers)
        return partitions

    def _offsets_retention(self, topics: Mapping[str, KafkaTopic]) -> float | None:
        now = time.monotonic()
        if now - self._retention_read_at < CONFIG_REFRESH_SECONDS:
            return self._retention_seconds
        brokers = {leader for topic in topics.values() for leader in topic.leaders}
        if not brokers:
            return self._retention_seconds
        self._retention_read_at = now
        answer = self._topic_reader.offsets_retention(min(brokers))
        if isinstance(answer, KafkaTrouble):
            self._retention_seconds = None
            if self._retention_trouble != answer.kind:
                self._retention_trouble = answer.kind
                log.warning(
                    "%s: the broker's offsets.retention.minutes cannot be read (%s), so the expiry of commits "
                    "cannot be predicted; grant the account DescribeConfigs on the cluster",
                    self._cluster.name,
                    answer,
                    extra=event(LogEvent.RIGHT_MISSING, cluster=self._cluster.name),
                )
        else:
            self._retention_seconds, self._retention_trouble = answer, None
        return self._retention_seconds
