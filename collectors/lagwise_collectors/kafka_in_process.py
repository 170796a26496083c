"""A Kafka cluster that is read in the collector's own process, where our own requests are all it takes."""

import logging
import time
from collections.abc import Sequence
from pathlib import Path

from lagwise.config import Cluster
from lagwise.platform.log_events import LogEvent, event
from lagwise_collectors.kafka.own_path import TRY_AGAIN_SECONDS, NeedsLibrdkafka
from lagwise_collectors.kafka.requests.next_records import LogPosition, NextRecord
from lagwise_collectors.kafka.source import KafkaSource
from lagwise_collectors.protocol import Check, Snapshot
from lagwise_collectors.reader_process.isolated_source import IsolatedSource
from lagwise_collectors.reader_process.kill_on_hang import ReaderAbandoned, ReaderLost, ReaderProcess
from lagwise_collectors.source_of_cluster import ReaderTask

log = logging.getLogger("lagwise.collectors")

#: Next records are looked up for a second, by a consumer that may have to be made and closed.
_FETCH_SECONDS = 30.0


class IsolatedRecordFetcher(ReaderProcess):
    """Looks up next records in a reader process, which starts with the first of them. After a crash or a hang they are
    looked up in the next sample."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(ReaderTask(reads="next_records", cluster=cluster, state=None), _FETCH_SECONDS)
        self._cluster = cluster

    def __call__(self, positions: Sequence[LogPosition]) -> dict[LogPosition, NextRecord]:
        """What comes next at these positions, as far as it arrives in time. Raises ReaderAbandoned."""
        try:
            answer, _ = self._ask("fetch", positions=positions)
        except ReaderLost as lost:
            log.warning(
                "%s: next records cannot be looked up: %s",
                self._cluster.name,
                lost,
                extra=event(LogEvent.NEXT_RECORDS_FAILED, cluster=self._cluster.name),
            )
            return {}
        return {
            LogPosition(*position): NextRecord(offset, is_record) for *position, offset, is_record in answer["found"]
        }


class KafkaInProcess:
    """Samples a Kafka cluster in this process, by our own requests. For one thread.

    librdkafka runs in reader processes only: in one that looks up next records, which starts when the first of them is
    needed, and in one that takes the samples, while the cluster refuses one of our requests or has not let us in yet.
    """

    def __init__(self, cluster: Cluster, *, state: Path | None = None) -> None:
        self._cluster = cluster
        self._state = state
        self._fetcher: IsolatedRecordFetcher | None = None
        self._source = KafkaSource(cluster, state=state, own_requests_only=True, fetcher=self._made_fetcher)
        self._has_worked = False
        self._isolated: IsolatedSource | None = None
        self._try_again_at = 0.0
        self._abandoned = False

    @property
    def pids(self) -> list[int]:
        """Ids of the reader processes that run."""
        readers = (self._isolated, self._fetcher)
        return [pid for reader in readers if reader is not None for pid in reader.pids]

    def collect(self) -> Snapshot:
        """One sample. Raises ReaderAbandoned if the source was abandoned meanwhile."""
        if self._isolated is None or time.monotonic() >= self._try_again_at:
            snapshot = self._own_sample()
            if self._abandoned:
                raise ReaderAbandoned("the collector is stopping")
            if snapshot is not None:
                if self._isolated is not None:
                    self._isolated.close()
                    self._isolated = None
                return snapshot
            self._source.close()
            self._try_again_at = time.monotonic() + TRY_AGAIN_SECONDS
        self._isolated = self._isolated or IsolatedSource(self._cluster, state=self._state)
        if self._abandoned:
            raise ReaderAbandoned("the collector is stopping")
        return self._isolated.collect()

    def check(self) -> list[Check]:
        """What ``lagwise doctor`` shows of this cluster, from a reader process: librdkafka is tried as well."""
        source = IsolatedSource(self._cluster)
        try:
            return source.check()
        finally:
            source.close()

    def close(self) -> None:
        """Close connections and end processes. May be called twice."""
        self._source.close()
        if self._isolated is not None:
            self._isolated.close()

    def abandon(self) -> None:
        """End a sample that is under way, and reader processes for good, from another thread."""
        self._abandoned = True
        for reader in (self._isolated, self._fetcher):
            if reader is not None:
                reader.abandon()
        self._source.abandon()

    def _own_sample(self) -> Snapshot | None:
        """A sample by our own requests; None: librdkafka may read what they do not."""
        try:
            snapshot = self._source.collect()
        except NeedsLibrdkafka as needed:
            log.info(
                "%s: read in a process of its own, by librdkafka (%s)",
                self._cluster.name,
                needed,
                extra=event(LogEvent.READ_THROUGH_LIBRDKAFKA, cluster=self._cluster.name),
            )
            return None
        header = snapshot.header
        if header["groups"] or not header["errors"]:
            self._has_worked = True
        # Whatever kept us out of a cluster that never let us in: librdkafka may get in, or have the better reason.
        return snapshot if self._has_worked else None

    def _made_fetcher(self, cluster: Cluster) -> IsolatedRecordFetcher:
        self._fetcher = IsolatedRecordFetcher(cluster)
        if self._abandoned:
            self._fetcher.abandon()
        return self._fetcher
