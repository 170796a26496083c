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
from lagwise.platform.files import BestEffortFile
from lagwise.platform.log_events import LogEvent, event
from lagwise.tables.raw import EVENTS
from lagwise_collectors.kafka.requests.errors import KafkaTrouble, trouble_of
from lagwise_collectors.offsets_topic import state_file
from lagwise_collectors.offsets_topic.commit_history import CADENCE_TABLE, cadence_rows
from lagwise_collectors.offsets_topic.records import OFFSETS_TOPIC
from lagwise_collectors.offsets_topic.session import LedgerState, LostPositionError, OffsetsTopicSession
from lagwise_collectors.protocol import EventSourceState, Snapshot
from lagwise_collectors.sample_builder import SampleBuilder
from lagwise_collectors.sample_diff.events import as_rows, bounded

log = logging.getLogger("lagwise.collectors.offsets_topic")

_RETRY_SECONDS = 2.0
_MAX_RETRY_SECONDS = 120.0
#: The state file is written after events were handed over, and otherwise this often.
_SAVE_SECONDS = 60.0

_DETAILS = {
    "topic_not_authorized": "the account may not read the topic: grant it Read on the topic __consumer_offsets, or set "
    "offsets_topic to false; until then events come from comparing samples"
}
#: A cluster on which no group was ever used has no such topic, which is no error.
_NOT_YET = "unknown_topic"


class OffsetsTail:
    """Follows the topic of one cluster in a thread of its own, from its construction on."""

    def __init__(self, cluster: Cluster, state: Path) -> None:
        self._cluster = cluster
        loss = f"after a restart, events of {OFFSETS_TOPIC} are repeated"
        self._file = BestEffortFile(state, log, loss)
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._state: LedgerState | None = None
        self._session: OffsetsTopicSession | None = None
        self._trouble: KafkaTrouble | None = None
        self._topics: dict[str, str] = {}
        self._unsaved_state: bytes | None = None
        self._saved_at = time.monotonic()
        self._all_commits_due = True
        self._cpu_seconds = 0.0
        self._thread = threading.Thread(target=self._run, name="offsets-topic", daemon=True)
        self._thread.start()

    def take(self, topics: Mapping[str, str]) -> tuple[Snapshot, dict[str, Any]]:
        """Events, commits and errors since the last call, and the :class:`EventSourceState` as a dictionary.

        ``topics`` are names by id, for groups whose records have topic ids.
        """
        sample = SampleBuilder(self._cluster)
        self._topics.update(topics)
        with self._lock:
            session, state, trouble = self._session, self._state, self._trouble
            if session is None or state is None:
                if trouble is not None:
                    sample.errors.note(trouble.kind, str(trouble))
                return self._finished(sample, {}), asdict(EventSourceState())
            state.ledger.groups.topics.update(self._topics)
            changes = state.ledger.take()
            records_left = session.records_left()
            is_caught_up = records_left == 0 and not state.ledger.priming
            all_commits, is_first_time = is_caught_up and self._all_commits_due, is_caught_up and not state.counting
            pairs: Sequence[Any] = list(state.ledger.pairs.values()) if all_commits else changes.committed
            cadence = cadence_rows(pairs, counted=state.counting)
            for pair in changes.committed:
                pair.commits = 0
            if is_caught_up:
                state.counting, self._all_commits_due = True, False
            save_due = time.monotonic() - self._saved_at >= _SAVE_SECONDS
            if not state.ledger.priming and (changes.events or self._unsaved_state is not None or save_due):
                self._unsaved_state = state_file.serialise(state.ledger, state.identity)
        if not is_caught_up:
            log.info(
                "%s: %s is still being read, %d records are left",
                self._cluster.name,
                OFFSETS_TOPIC,
                records_left,
                extra=event(LogEvent.OFFSETS_TOPIC_READING, cluster=self._cluster.name),
            )
        events = bounded(changes.events, changes.errors)
        tables = {EVENTS.name: as_rows(events, self._cluster.name), CADENCE_TABLE: cadence}
        sample.errors.add(changes.errors)
        return self._finished(sample, tables), asdict(
            EventSourceState(is_caught_up, is_first_time, all_commits, records_left)
        )

    def acknowledge(self) -> None:
        """What was taken last is stored: the next start continues after it."""
        with self._lock:
            unsaved, self._unsaved_state = self._unsaved_state, None
        if unsaved is not None and self._file.write(unsaved, durable=True):
            self._saved_at = time.monotonic()

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
        """Run one session after the other, with a pause after each that failed."""
        pause_seconds = _RETRY_SECONDS
        state_path: Path | None = self._file.path
        while not self._stop.is_set():
            session: OffsetsTopicSession | None = None
            try:
                session = OffsetsTopicSession(self._cluster, self._state, state_path)
                with self._lock:
                    self._all_commits_due = self._all_commits_due or session.state is not self._state
                    self._session, self._state, self._trouble = session, session.state, None
                pause_seconds, state_path = _RETRY_SECONDS, None
                session.read(self._stop, self._lock)
            except LostPositionError as lost:
                log.warning(
                    "%s: %s is read from the beginning: %s",
                    self._cluster.name,
                    OFFSETS_TOPIC,
                    lost,
                    extra=event(LogEvent.OFFSETS_TOPIC_READ_AGAIN, cluster=self._cluster.name),
                )
                self._end_session(None)
                self._state = None
            except (KafkaTrouble, KafkaException, ConfigError) as error:
                self._end_session(_sample_error(trouble_of(error)))
            except Exception as error:  # a bug of Lagwise must not end the thread silently
                log.exception(
                    "%s: reading %s failed unexpectedly",
                    self._cluster.name,
                    OFFSETS_TOPIC,
                    extra=event(LogEvent.DEFECT, cluster=self._cluster.name),
                )
                self._end_session(KafkaTrouble("offsets_topic_failed", f"{type(error).__name__}: {error}"))
            finally:
                if session is not None:
                    session.close()
            self._stop.wait(pause_seconds)
            pause_seconds = min(2 * pause_seconds, _MAX_RETRY_SECONDS)

    def _end_session(self, trouble: KafkaTrouble | None) -> None:
        with self._lock:
            self._session, self._trouble = None, trouble


def _sample_error(trouble: KafkaTrouble) -> KafkaTrouble | None:
    """The trouble as an error of the sample; None where it is none."""
    if trouble.kind == _NOT_YET:
        return None
    kind = trouble.kind.removeprefix("topic_")
    return KafkaTrouble(f"offsets_topic_{kind}", _DETAILS.get(trouble.kind, f"reading {OFFSETS_TOPIC}: {trouble}"))
