"""Sources that run in reader processes (:mod:`lagwise_collectors.reader_process.kill_on_hang`): a crash or a hang costs
at most one sample."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path

from lagwise.config import AnyCluster, Cluster
from lagwise_collectors import snapshot_format
from lagwise_collectors.protocol import Check, ErrorTally, EventSourceState, Snapshot
from lagwise_collectors.reader_process.kill_on_hang import ReaderLost, ReaderProcess
from lagwise_collectors.reader_process.kill_on_hang import Stopped as Stopped
from lagwise_collectors.sample_builder import SampleBuilder
from lagwise_collectors.source_of_cluster import ReaderOrder

#: A sample has this many steps that can each take the cluster's timeout.
_STEPS = 8
_GRACE_SECONDS = 15.0
#: The tail has what it is asked for; it only has to finish the batch that it is busy with.
_TAIL_SECONDS = 60.0


class IsolatedSource(ReaderProcess):
    """Reads a cluster through a process of its own.

    A sample in which the process is lost is tried again with a new one, and if that fails too, it is a sample with an
    error. The same holds for a process that hangs, which is not tried again. ``state`` is the file in which what
    a source has to remember (next records, brokers' numbers) outlives the process.
    """

    def __init__(
        self,
        cluster: AnyCluster,
        *,
        state: Path | None = None,
        hang_seconds: float | None = None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        order = ReaderOrder("cluster", cluster, str(state or "")).as_json()
        places = cluster.external_offsets if isinstance(cluster, Cluster) else ()
        elsewhere = max((place.timeout_seconds for place in places), default=0.0)
        super().__init__(order, hang_seconds or _STEPS * (cluster.timeout_seconds + 2) + elsewhere + _GRACE_SECONDS)
        self._cluster = cluster
        self._clock = clock

    def collect(self) -> Snapshot:
        """One sample. A reader that crashes is replaced and asked once more; a second crash is the sample's error.

        Raises Stopped if the source was abandoned meanwhile.
        """
        failed = SampleBuilder(self._cluster, self._clock)
        errors = failed.errors
        while True:
            try:
                _, body = self._ask("collect")
                snapshot = snapshot_format.read(snapshot_format.buffer(body))
            except (ReaderLost, snapshot_format.BrokenSnapshot) as lost:
                kind = lost.kind if isinstance(lost, ReaderLost) else "reader_crashed"
                self.close()
                errors.note(kind, str(lost))
                if kind == "reader_crashed" and errors.counts[kind] == 1:
                    continue
                return failed.finish(cpu_seconds=0.0)
            return snapshot.with_errors(errors)

    def check(self) -> list[Check]:
        """The cluster's checks; one failed check where the reader was lost."""
        try:
            answer, _ = self._ask("check")
        except ReaderLost as lost:
            self.close()
            return [Check("reader", False, str(lost), advice="try again; if it persists, report it as a bug")]
        return [Check(**check) for check in answer["checks"]]


class IsolatedTail(ReaderProcess):
    """Follows a cluster's ``__consumer_offsets`` through a process of its own. Whatever becomes of that, what it had
    not handed over is read again by the next one, from the position in ``state``."""

    def __init__(self, cluster: Cluster, state: Path) -> None:
        super().__init__(ReaderOrder("offsets_topic", cluster, str(state)).as_json(), _TAIL_SECONDS)

    def take(self, topics: Mapping[str, str]) -> tuple[Snapshot | None, EventSourceState, ErrorTally]:
        """What happened since the last time, how the tail stands, and what went wrong. Raises Stopped.

        ``topics`` are names by id, as far as they are new.
        """
        errors = ErrorTally()
        try:
            answer, body = self._ask("take", topics=dict(topics))
            snapshot = snapshot_format.read(snapshot_format.buffer(body))
        except (ReaderLost, snapshot_format.BrokenSnapshot) as lost:
            self.close()
            errors.note(f"offsets_topic_{lost.kind if isinstance(lost, ReaderLost) else 'reader_crashed'}", str(lost))
            return None, EventSourceState(), errors
        errors.add(ErrorTally.of(snapshot.header["errors"]))
        return snapshot, EventSourceState(**answer["standing"]), errors

    def keep(self) -> None:
        """What was taken last is in safe hands. A process that is lost over it keeps its last position."""
        try:
            self._ask("keep")
        except ReaderLost:
            self.close()
