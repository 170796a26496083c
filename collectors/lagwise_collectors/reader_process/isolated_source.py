"""Sources that run in reader processes (:mod:`lagwise_collectors.reader_process.kill_on_hang`): a crash or a hang costs
at most one sample."""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from lagwise.config import AnyCluster, Cluster
from lagwise_collectors.protocol import Check, ErrorTally, EventSourceState, Snapshot
from lagwise_collectors.reader_process.kill_on_hang import ReaderLost, ReaderProcess
from lagwise_collectors.sample_builder import SampleBuilder
from lagwise_collectors.source_of_cluster import ReaderTask

#: A sample has this many steps that can each take the cluster's timeout.
_STEPS = 11
_GRACE_SECONDS = 15.0
#: The tail answers from memory, after the batch that it is reading.
_TAIL_SECONDS = 60.0


class IsolatedSource(ReaderProcess):
    """Samples a cluster in a reader process.

    A sample during which the process crashes is taken once more with a new process. After a second crash, or a hang, it
    is a sample with an error. ``state`` is the file in which next records or brokers' numbers survive the process.
    """

    def __init__(self, cluster: AnyCluster, *, state: Path | None = None) -> None:
        task = ReaderTask(reads="cluster", cluster=cluster, state=state)
        sources = cluster.external_offsets if isinstance(cluster, Cluster) else ()
        external_seconds = max((source.timeout_seconds for source in sources), default=0.0)
        steps_seconds = _STEPS * (cluster.timeout_seconds + 2)
        super().__init__(task, steps_seconds + external_seconds + _GRACE_SECONDS)
        self._cluster = cluster

    def collect(self) -> Snapshot:
        """One sample. A reader that crashes is restarted and asked once more; a second crash is the sample's error.

        Raises ReaderAbandoned if the source was abandoned meanwhile.
        """
        failed = SampleBuilder(self._cluster)
        errors = failed.errors
        while True:
            try:
                _, snapshot = self._ask_snapshot("collect")
            except ReaderLost as lost:
                errors.note(lost.kind, str(lost))
                if lost.kind == "reader_crashed" and errors.counts[lost.kind] == 1:
                    continue
                return failed.finish(cpu_seconds=0.0)
            return snapshot.with_errors(errors)

    def check(self) -> list[Check]:
        """The cluster's checks; one failed check where the reader was lost."""
        try:
            answer, _ = self._ask("check")
        except ReaderLost as lost:
            return [Check("reader", False, str(lost), advice="try again; if it persists, report it as a bug")]
        return [Check(**check) for check in answer["checks"]]


class IsolatedTail(ReaderProcess):
    """Follows a cluster's ``__consumer_offsets`` in a reader process. After a crash the next process reads again
    what was not acknowledged, from the position in the file ``state``."""

    def __init__(self, cluster: Cluster, state: Path) -> None:
        super().__init__(ReaderTask(reads="offsets_topic", cluster=cluster, state=state), _TAIL_SECONDS)

    def take(self, topics: Mapping[str, str]) -> tuple[Snapshot | None, EventSourceState, ErrorTally]:
        """Events since the last call, how far the tail is, and errors. Raises ReaderAbandoned.

        ``topics`` are the names by topic id that are new.
        """
        errors = ErrorTally()
        try:
            answer, snapshot = self._ask_snapshot("take", topics=dict(topics))
        except ReaderLost as lost:
            errors.note(f"offsets_topic_{lost.kind}", str(lost))
            return None, EventSourceState(), errors
        errors.add(ErrorTally.of(snapshot.header["errors"]))
        return snapshot, EventSourceState(**answer["state"]), errors

    def acknowledge(self) -> None:
        """What was taken last is stored. If the process crashes here, it reads from the earlier position again."""
        with suppress(ReaderLost):
            self._ask("acknowledge")
