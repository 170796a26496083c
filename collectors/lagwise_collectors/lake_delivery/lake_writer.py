"""The one writer of a collector: samples of all its clusters that are due go to the lake together.

A table has one commit for all of them. With a commit for each cluster, fifty clusters made hundreds in an interval, and
Delta's optimistic commits to the same table failed.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Protocol

import pyarrow as pa

from lagwise.platform.errors import LakeError
from lagwise.platform.log_events import LogEvent, event
from lagwise.tables.raw import RAW_TABLES, SAMPLES
from lagwise.tables.store import Lake
from lagwise_collectors.lake_delivery.append_samples import DueSample, append_samples, lease_mark_of

log = logging.getLogger("lagwise.collectors.writer")

#: Where there are more clusters than that, their samples wait for each other, so that no table has more commits in an
#: interval than that.
COMMITS_PER_INTERVAL = 8
#: How long a sample waits for others at most.
_MAX_PAUSE_SECONDS = 2.0
#: Samples of so many bytes go together at most; one that is larger goes alone.
_BATCH_BYTES = 64 * 1024**2


class Queue(Protocol):
    """What waits of one cluster."""

    cluster: str

    def next_due(self) -> DueSample | None:
        """The oldest sample that waits; None where none does, or none may be written now."""
        ...

    def saw_mark(self, mark: int | None) -> bool:
        """The lease under which the newest sample of the cluster in the lake was written. Returns whether the sample
        that is due is to be written; otherwise what waits is kept."""
        ...

    def written(self) -> bool:
        """The sample that was due is in the lake. Returns whether more wait."""
        ...

    def drop(self, reason: str) -> bool:
        """The sample that was due can never be written. Returns whether more wait."""
        ...

    def keep(self, reason: str) -> None:
        """Nothing can be written for now: keep what waits."""
        ...


class LakeWriter:
    """Writes the samples of several clusters. Safe to use from threads; it has a thread of its own while there is work.

    A lake that is slow or unreachable (an object store that retries for minutes) therefore never delays sampling.
    """

    def __init__(
        self, lake: Lake, *, pause_seconds: float = 0.0, clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        """``pause_seconds`` is the time from the start of one write to the next, see :func:`pause_for`."""
        self._lake = lake
        self._pause_seconds = pause_seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._waiting: deque[Queue] = deque()
        self._is_running = False
        self._began = float("-inf")
        self._hurried = threading.Event()
        self._has_tables = False

    @property
    def is_free(self) -> bool:
        """Whether a sample would be written at once, and not wait for others."""
        with self._lock:
            return not self._is_running and time.monotonic() >= self._began + self._pause_seconds

    def deliver(self, queue: Queue) -> None:
        """Write what waits in a queue, from the oldest on. Returns at once."""
        with self._lock:
            if queue not in self._waiting:
                self._waiting.append(queue)
            if not self._is_running:
                threading.Thread(target=self._run, name="lake-writer", daemon=True).start()
                self._is_running = True

    def hurry(self) -> None:
        """Write what waits now without waiting for others."""
        self._hurried.set()

    def _run(self) -> None:
        """Write until nothing is left to write."""
        unfinished: Sequence[Queue] = ()
        while True:
            if not unfinished:
                self._hurried.wait(max(0.0, self._began + self._pause_seconds - time.monotonic()))
            self._hurried.clear()
            with self._lock:
                turn = list(dict.fromkeys([*unfinished, *self._waiting]))
                self._waiting.clear()
                if not turn:
                    self._is_running = False
                    return
                self._began = time.monotonic()
            try:
                unfinished = self._write_turn(deque(turn))
            except Exception as error:  # a defect must not end this thread: nothing would be written any more
                self._keep(turn, _defect(error, turn[0]))
                unfinished = ()

    def _write_turn(self, turn: deque[Queue]) -> list[Queue]:
        """Write the oldest sample of each queue. Returns the queues that have more, or whose turn has not come."""
        batch: dict[Queue, DueSample] = {}
        size = 0
        while turn and size < _BATCH_BYTES:
            queue = turn.popleft()
            try:
                sample = queue.next_due()
            except Exception as error:
                self._keep([queue], _defect(error, queue))
                continue
            if sample is not None:
                batch[queue] = sample
                size += sum(rows.nbytes for rows in sample.snapshot.tables.values())
        try:
            batch = self._without_rivals(batch)
        except LakeError as error:
            self._keep(batch, str(error))
            return list(turn)
        return [*turn, *self._write(batch)]

    def _write(self, batch: dict[Queue, DueSample]) -> list[Queue]:
        """Write a sample of each queue. Returns the queues that have more."""
        if not batch:
            return []
        try:
            if not self._has_tables:
                self._lake.create(*RAW_TABLES)
                self._has_tables = True
            append_samples(self._lake, list(batch.values()), self._clock())
        except LakeError as error:
            self._keep(batch, str(error))
            return []
        except Exception as error:  # a defect, which one of the samples may have brought about
            if len(batch) > 1:
                alone = [{queue: replace(sample, maybe_written=True)} for queue, sample in batch.items()]
                return [queue for one in alone for queue in self._write(one)]
            [queue] = batch
            if isinstance(error, pa.ArrowException):
                return [queue] if queue.drop(str(error)) else []
            self._keep(batch, _defect(error, queue))  # it may be temporary: nothing is dropped
            return []
        return [queue for queue in batch if queue.written()]

    def _without_rivals(self, batch: dict[Queue, DueSample]) -> dict[Queue, DueSample]:
        """The samples but for those of clusters that this process leaves to another one. Raises LakeError."""
        samples = self._lake.open(SAMPLES) if batch else None
        if samples is None:
            return batch
        marks = {queue: samples.transaction_version(lease_mark_of(queue.cluster)) for queue in batch}
        return {queue: sample for queue, sample in batch.items() if queue.saw_mark(marks[queue])}

    def _keep(self, queues: Iterable[Queue], reason: str) -> None:
        self._has_tables = False
        for queue in queues:
            queue.keep(reason)


def _defect(error: Exception, queue: Queue) -> str:
    log.error(
        "%s: writing a sample failed unexpectedly",
        queue.cluster,
        exc_info=error,
        extra=event(LogEvent.DEFECT, cluster=queue.cluster),
    )
    return f"{type(error).__name__}: {error}"


def pause_for(intervals_seconds: Sequence[float]) -> float:
    """How long the writer of clusters with these intervals pauses between writes: not at all where there are few."""
    if len(intervals_seconds) <= COMMITS_PER_INTERVAL:
        return 0.0
    return min(_MAX_PAUSE_SECONDS, min(intervals_seconds) / COMMITS_PER_INTERVAL)
