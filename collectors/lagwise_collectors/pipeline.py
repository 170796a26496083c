"""The pipeline of one cluster: take a sample, compare it with the one before, write it; and what each round cost."""

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass

from lagwise.config import Config
from lagwise.domain.humanise import plural
from lagwise.operational.leadership import Leadership
from lagwise.platform.log_events import LogEvent, event
from lagwise.platform.program import program
from lagwise.tables.raw import EVENTS
from lagwise.tables.schema import no_rows
from lagwise.tables.service_times import SERVICE_TIMES
from lagwise_collectors.lake_delivery.lake_writer import LakeWriter
from lagwise_collectors.lake_delivery.rivalry import Rivalry
from lagwise_collectors.lake_delivery.sink import Delivery, Sink
from lagwise_collectors.lake_delivery.spool import MEMORY_BYTES, Spool
from lagwise_collectors.merge_events import EventMerge, EventTail
from lagwise_collectors.probe_service_times import ProbeMeasurements, new_measurements
from lagwise_collectors.protocol import Snapshot, Source, code_of_kind
from lagwise_collectors.sample_diff.compare_samples import PreviousSample, compare_samples

log = logging.getLogger("lagwise.collectors")

#: A kind of error that lasts is logged again after this many samples.
_LOG_AGAIN_AFTER = 40


@dataclass(frozen=True, slots=True)
class RunCost:
    """What one sample cost."""

    cluster: str
    #: Until it was in the lake, where it may have waited for other clusters' samples to be written with it.
    wall_seconds: float
    #: Until everything was read.
    read_seconds: float
    #: Of the sample, wherever it was read, plus that of this process from then on. The latter includes other clusters'
    #: work where they are sampled at the same time.
    cpu_seconds: float
    groups: int
    group_partitions: int
    partitions: int
    #: Rows by table.
    rows: Mapping[str, int]
    #: Errors by kind.
    errors: Mapping[str, int]
    #: Samples that wait for the lake.
    waiting: int
    #: Why they wait; None while the lake takes them.
    trouble: str | None

    @property
    def is_well(self) -> bool:
        """Everything was read, and the lake took it."""
        return not self.errors and self.trouble is None


class Pipeline:
    """Samples one cluster, round after round. For one thread."""

    def __init__(self, name: str, source: Source, sink: Sink, events: EventMerge | None = None) -> None:
        self.name = name
        self._event_merge = events
        self._source = source
        self._sink = sink
        self._previous = PreviousSample()
        self._measurements = ProbeMeasurements(None, no_rows(SERVICE_TIMES.arrow))
        self._samples_with_error: dict[str, int] = {}
        self.failures = 0

    def run(self) -> RunCost:
        """One round. ``failures`` then counts the rounds in a row in which nothing could be read."""
        wall = time.perf_counter()
        snapshot = self._source.collect()
        read_seconds = time.perf_counter() - wall
        cpu = time.process_time()
        header = snapshot.header
        failed = bool(header["errors"]) and header["groups"] == 0
        merge = self._event_merge
        if merge is not None:
            merge.take(snapshot, compared=not failed and self._previous.commits is not None)
        leave_out = (lambda event: False) if merge is None else merge.reports
        diff = compare_samples(self._previous, snapshot, leave_out=leave_out)
        self._previous = diff.latest
        if diff.rows.num_rows:
            snapshot = snapshot.with_rows(EVENTS, diff.rows)
        self._measurements = new_measurements(self._measurements.seen, snapshot)
        if self._measurements.rows.num_rows:
            snapshot = snapshot.with_rows(SERVICE_TIMES, self._measurements.rows)
        if merge is not None:
            snapshot = merge.complete(snapshot, self._previous)
        snapshot = snapshot.with_errors(diff.errors)
        if merge is not None and header["groups"] + header["group_partitions"] + header["partitions"] > 0:
            # A sample with errors and nothing else means that the cluster cannot be read. Errors of the tail alone must
            # not look like that.
            snapshot = snapshot.with_errors(merge.errors)
        delivery = self._sink.write(snapshot)
        if merge is not None and delivery.safe:
            merge.acknowledge()
        self.failures = self.failures + 1 if failed else 0
        self._log_errors(snapshot, failed=failed)
        seconds = time.perf_counter() - wall, read_seconds, time.process_time() - cpu
        return self._cost(snapshot, delivery, *seconds)

    def close(self) -> None:
        """End the readers. Samples that the lake has not taken stay on disk for the next start."""
        self._source.close()
        if self._event_merge is not None:
            self._event_merge.close()
        self._sink.close()

    def _cost(
        self, snapshot: Snapshot, delivery: Delivery, wall_seconds: float, read_seconds: float, cpu_seconds: float
    ) -> RunCost:
        header = snapshot.header
        return RunCost(
            cluster=self.name,
            wall_seconds=wall_seconds,
            read_seconds=read_seconds,
            cpu_seconds=header["cpu_seconds"]
            + cpu_seconds
            + (self._event_merge.cpu_seconds if self._event_merge else 0.0),
            groups=header["groups"],
            group_partitions=header["group_partitions"],
            partitions=header["partitions"],
            rows={name: rows.num_rows for name, rows in snapshot.tables.items()},
            errors=snapshot.errors,
            waiting=delivery.waiting,
            trouble=delivery.trouble,
        )

    def _log_errors(self, snapshot: Snapshot, *, failed: bool) -> None:
        """One line per kind of error: when it begins, now and then while it lasts, and when it is over."""
        errors = {error["kind"]: error for error in snapshot.header["errors"]}
        for kind, error in errors.items():
            samples = self._samples_with_error.get(kind, 0)
            self._samples_with_error[kind] = samples + 1
            if samples % _LOG_AGAIN_AFTER == 0:
                outcome = "cannot be read" if failed else f"{error['count']} errors"
                log.warning(
                    "%s: %s, %s: %s",
                    self.name,
                    outcome,
                    kind,
                    error["example"],
                    extra=event(
                        LogEvent.CLUSTER_READ_FAILED, cluster=self.name, kind=kind, code=code_of_kind(kind).value
                    ),
                )
        for kind in [kind for kind in self._samples_with_error if kind not in errors]:
            del self._samples_with_error[kind]
            log.info(
                "%s: %s is over",
                self.name,
                kind,
                extra=event(LogEvent.CLUSTER_READ_FAILED, over=True, cluster=self.name, kind=kind),
            )


def pipeline_of(
    name: str,
    source: Source,
    config: Config,
    writer: LakeWriter,
    leadership: Leadership,
    tail: EventTail | None = None,
    rivalry: Rivalry | None = None,
) -> Pipeline:
    """The pipeline of a cluster, with its spool in the state folder; ``tail`` is its source of exact events."""
    # The prefix keeps a cluster called ".." inside the folder.
    folder = config.state / "spool" / f"cluster-{name}"
    spool = Spool(folder, memory_bytes=MEMORY_BYTES // max(1, len(config.clusters)))
    sink = Sink(writer, spool, name, leadership=leadership, rivalry=rivalry)
    return Pipeline(name, source, sink, None if tail is None else EventMerge(tail))


def summary_of(cost: RunCost) -> str:
    """One round as a sentence, for the heartbeat and the terminal."""
    if cost.errors and not cost.groups:
        line = f"{cost.cluster}: cannot be read ({', '.join(cost.errors)}); see the log and `{program()} doctor`"
    else:
        read = f"{plural(cost.groups, 'group')}, {plural(cost.partitions, 'partition')}"
        line = f"{cost.cluster}: {read} in {cost.read_seconds:.2f} s, "
        line += f"{sum(cost.errors.values())} errors ({', '.join(cost.errors)})" if cost.errors else "no errors"
    if cost.waiting:
        line += f"; {cost.waiting} samples wait for the lake"
    return line
