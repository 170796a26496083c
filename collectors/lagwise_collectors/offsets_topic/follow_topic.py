"""The second source of a Kafka cluster: a thread follows ``__consumer_offsets`` and hands over new events on request.

It runs in a reader process of its own (:mod:`lagwise_collectors.reader_process.isolated_source`), as sampling does.
"""

import logging
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa
from confluent_kafka import KafkaException

from lagwise.config import Cluster
from lagwise.platform.errors import ConfigError
from lagwise.platform.files import KeptFile
from lagwise.tables.raw import EVENTS
from lagwise_collectors.kafka.requests.errors import KafkaTrouble, trouble_of
from lagwise_collectors.offsets_topic import state_file
from lagwise_collectors.offsets_topic.commit_history import CADENCE, cadence_of
from lagwise_collectors.offsets_topic.records import OFFSETS_TOPIC
from lagwise_collectors.offsets_topic.session import Knowledge, LostPositionError, Session
from lagwise_collectors.protocol import EventSourceState, Snapshot
from lagwise_collectors.sample_builder import SampleBuilder
from lagwise_collectors.sample_diff.events import MOST_EVENTS, as_rows

log = logging.getLogger("lagwise.collectors.offsets_topic")

_RETRY_SECONDS = 2.0
_MOST_RETRY_SECONDS = 120.0
#: The state is kept after events were handed over, and otherwise this often.
_KEEP_SECONDS = 60.0

_WORDS = {
    "topic_not_authorized": "the account may not read the topic: grant it Read on the topic __consumer_offsets, or set "
    "offsets_topic to false; events come from the differences of samples meanwhile"
}
#: A cluster on which no group was ever used has no such topic: no trouble.
_NOT_YET = "unknown_topic"


class OffsetsTail:
    """The tail of one cluster, started when it is made. Requests come from another thread than the one that reads."""

    def __init__(self, cluster: Cluster, state: Path) -> None:
        self._cluster = cluster
        cost = f"after a restart, events of {OFFSETS_TOPIC} are repeated"
        self._file = KeptFile(state, log, cost)
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._known: Knowledge | None = None
        self._session: Session | None = None
        self._trouble: KafkaTrouble | None = None
        self._topics: dict[str, str] = {}
        self._candidate: bytes | None = None
        self._kept_at = time.monotonic()
        self._whole = True
        self._cpu_seconds = 0.0
        self._thread = threading.Thread(target=self._run, name="offsets-topic", daemon=True)
        self._thread.start()

    def take(self, topics: Mapping[str, str]) -> tuple[Snapshot, dict[str, Any]]:
        """What happened since the last time (events, commits, errors), and the :class:`EventSourceState` as
        a dictionary.

        ``topics`` are names by id, for groups whose partitions go by that.
        """
        sample = SampleBuilder(self._cluster)
        self._topics.update(topics)
        with self._lock:
            session, known, trouble = self._session, self._known, self._trouble
            if session is None or known is None:
                if trouble is not None:
                    sample.errors.note(trouble.kind, str(trouble))
                return self._finished(sample, {}), asdict(EventSourceState())
            known.ledger.groups.topics.update(self._topics)
            taken = known.ledger.take()
            left = session.left()
            live = left == 0 and not known.ledger.priming
            whole, fresh = live and self._whole, live and not known.counting
            pairs: Sequence[Any] = list(known.ledger.pairs.values()) if whole else taken.committed
            cadence = cadence_of(pairs, counted=known.counting)
            for pair in taken.committed:
                pair.commits = 0
            if live:
                known.counting, self._whole = True, False
            waited = time.monotonic() - self._kept_at >= _KEEP_SECONDS
            if not known.ledger.priming and (taken.events or self._candidate is not None or waited):
                self._candidate = state_file.dumped(known.ledger, known.identity)
        if not live:
            log.info("%s: %s is being read, %d records are left", self._cluster.name, OFFSETS_TOPIC, left)
        events, dropped = taken.events[:MOST_EVENTS], len(taken.events[MOST_EVENTS:])
        if dropped:
            taken.errors.note("events_dropped", "too many things happened at once to tell each", dropped)
        tables = {EVENTS.name: as_rows(events, self._cluster.name), CADENCE: cadence}
        sample.errors.add(taken.errors)
        return self._finished(sample, tables), asdict(EventSourceState(live, fresh, whole, left))

    def keep(self) -> None:
        """What was taken last is in safe hands: the next start goes on behind it."""
        with self._lock:
            candidate, self._candidate = self._candidate, None
        if candidate is not None and self._file.write(candidate, durable=True):
            self._kept_at = time.monotonic()

    def close(self) -> None:
        """Stop reading."""
        self._stop.set()
        self._thread.join(self._cluster.timeout_seconds)

    def _finished(self, sample: SampleBuilder, tables: Mapping[str, pa.Table]) -> Snapshot:
        """The snapshot with these tables. Its CPU time is that of the whole process since the last one."""
        cpu_seconds, before = time.process_time(), self._cpu_seconds
        self._cpu_seconds = cpu_seconds
        snapshot = sample.finish(cpu_seconds=cpu_seconds - before)
        return Snapshot(snapshot.cluster, snapshot.sample_id, {**tables, **snapshot.tables})

    def _run(self) -> None:
        """The life of the thread: one session after the other, with a rest after each that failed."""
        rest = _RETRY_SECONDS
        kept: Path | None = self._file.path
        while not self._stop.is_set():
            session: Session | None = None
            try:
                session = Session(self._cluster, self._known, kept)
                with self._lock:
                    self._whole = self._whole or session.known is not self._known
                    self._session, self._known, self._trouble = session, session.known, None
                rest, kept = _RETRY_SECONDS, None
                session.read(self._stop, self._lock)
            except LostPositionError as lost:
                log.warning("%s: %s is read anew: %s", self._cluster.name, OFFSETS_TOPIC, lost)
                self._end_session(None)
                self._known = None
            except (KafkaTrouble, KafkaException, ConfigError) as error:
                self._end_session(_told(trouble_of(error)))
            except Exception as error:  # a defect of ours must not end the tail in silence
                log.exception("%s: reading %s failed unexpectedly", self._cluster.name, OFFSETS_TOPIC)
                self._end_session(KafkaTrouble("offsets_topic_failed", f"{type(error).__name__}: {error}"))
            finally:
                if session is not None:
                    session.close()
            self._stop.wait(rest)
            rest = min(2 * rest, _MOST_RETRY_SECONDS)

    def _end_session(self, trouble: KafkaTrouble | None) -> None:
        with self._lock:
            self._session, self._trouble = None, trouble


def _told(trouble: KafkaTrouble) -> KafkaTrouble | None:
    """The trouble as an error of the sample."""
    if trouble.kind == _NOT_YET:
        return None
    kind = trouble.kind.removeprefix("topic_")
    return KafkaTrouble(f"offsets_topic_{kind}", _WORDS.get(trouble.kind, f"reading {OFFSETS_TOPIC}: {trouble}"))
