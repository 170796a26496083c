"""One cluster's way from source to lake: read, compare, write; and what each round cost, in figures and in a line."""

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass

from lagwise.config import Config
from lagwise.domain.humanise import plural
from lagwise.operational.leadership import Leadership
from lagwise.platform.program import program
from lagwise.tables.raw import EVENTS
from lagwise.tables.service_times import SERVICE_TIMES
from lagwise.tables.store import Lake
from lagwise_collectors.lake_delivery.deliver_from_spool import Delivery, Sink
from lagwise_collectors.lake_delivery.spool import Spool
from lagwise_collectors.merge_events import EventMerge, Tail
from lagwise_collectors.probe_service_times import Measurements, measurements
from lagwise_collectors.protocol import ErrorTally, Snapshot, Source
from lagwise_collectors.sample_diff.compare_samples import PreviousSample, differences

log = logging.getLogger("lagwise.collectors")

#: A kind of error that goes on is told again after so many samples.
_TELL_AGAIN = 40


@dataclass(frozen=True, slots=True)
class RunCost:
    """What one sample cost.

    ``cpu_seconds`` is that of the reader processes plus that of this process meanwhile (other clusters' included, where
    they are sampled at the same time). ``rows`` are by table, ``errors`` by kind. ``waiting`` is how many samples wait
    for the lake now, ``trouble`` why.
    """

    cluster: str
    wall_seconds: float
    cpu_seconds: float
    groups: int
    group_partitions: int
    partitions: int
    rows: Mapping[str, int]
    errors: Mapping[str, int]
    waiting: int
    trouble: str | None


class Pipeline:
    """Samples one cluster, round after round. For one thread."""

    def __init__(self, name: str, source: Source, sink: Sink, exact: EventMerge | None = None) -> None:
        self.name = name
        self._exact = exact
        self._source = source
        self._sink = sink
        self._known = PreviousSample()
        self._measured = Measurements(None, SERVICE_TIMES.arrow.empty_table())
        self._told: dict[str, int] = {}
        self.failures = 0

    def run(self) -> RunCost:
        """One round. ``failures`` then counts the rounds in a row in which nothing could be read."""
        wall, cpu = time.perf_counter(), time.process_time()
        snapshot = self._source.collect()
        header = snapshot.header
        failed = bool(header["errors"]) and header["groups"] == 0
        exact = self._exact
        if exact is not None:
            exact.take(snapshot, compared=not failed and self._known.commits is not None)
        leave_out = (lambda event: False) if exact is None else exact.told_elsewhere
        found = differences(self._known, snapshot, leave_out=leave_out)
        self._known = found.known
        if found.rows.num_rows:
            snapshot = snapshot.with_rows(EVENTS, found.rows)
        self._measured = measurements(self._measured.seen, snapshot)
        if self._measured.rows.num_rows:
            snapshot = snapshot.with_rows(SERVICE_TIMES, self._measured.rows)
        if exact is not None:
            snapshot = exact.complete(snapshot, self._known)
        if found.dropped:
            tally = ErrorTally()
            tally.note("events_dropped", "too many things happened at once to tell each", found.dropped)
            snapshot = snapshot.with_errors(tally)
        if exact is not None and header["groups"] + header["group_partitions"] + header["partitions"] > 0:
            # Nothing but errors in a sample means that the cluster is not being watched, which these do not mean.
            snapshot = snapshot.with_errors(exact.errors)
        delivery = self._sink.write(snapshot)
        if exact is not None and delivery.safe:
            exact.keep()
        self.failures = self.failures + 1 if failed else 0
        self._tell(snapshot, failed=failed)
        return self._cost(snapshot, delivery, time.perf_counter() - wall, time.process_time() - cpu)

    def close(self) -> None:
        """End the readers; keep for the next start what the lake has not taken."""
        self._source.close()
        if self._exact is not None:
            self._exact.close()
        self._sink.close()

    def _cost(self, snapshot: Snapshot, delivery: Delivery, wall_seconds: float, cpu_seconds: float) -> RunCost:
        header = snapshot.header
        return RunCost(
            cluster=self.name,
            wall_seconds=wall_seconds,
            cpu_seconds=header["cpu_seconds"] + cpu_seconds + (self._exact.cpu_seconds if self._exact else 0.0),
            groups=header["groups"],
            group_partitions=header["group_partitions"],
            partitions=header["partitions"],
            rows={name: rows.num_rows for name, rows in snapshot.tables.items()},
            errors=snapshot.errors,
            waiting=delivery.waiting,
            trouble=delivery.trouble,
        )

    def _tell(self, snapshot: Snapshot, *, failed: bool) -> None:
        """One line per kind of error: when it begins, now and then while it lasts, and when it is over."""
        errors = {error["kind"]: error for error in snapshot.header["errors"]}
        for kind, error in errors.items():
            rounds = self._told.get(kind, 0)
            self._told[kind] = rounds + 1
            if rounds % _TELL_AGAIN == 0:
                what = "cannot be read" if failed else f"{error['count']} errors"
                log.warning("%s: %s, %s: %s", self.name, what, kind, error["example"])
        for kind in [kind for kind in self._told if kind not in errors]:
            del self._told[kind]
            log.info("%s: %s is over", self.name, kind)


def pipeline_of(
    name: str, source: Source, config: Config, lake: Lake, turn: Leadership, tail: Tail | None = None
) -> Pipeline:
    """The pipeline of a cluster whose spool lies in the state folder; ``tail`` is its source of exact events."""
    # The prefix keeps a cluster called ".." inside the folder.
    spool = Spool(config.state / "spool" / f"cluster-{name}")
    return Pipeline(name, source, Sink(lake, spool, name, turn=turn), None if tail is None else EventMerge(tail))


def line_of(cost: RunCost) -> str:
    """A round in words, for the heartbeat and the terminal."""
    if cost.errors and not cost.groups:
        line = f"{cost.cluster}: cannot be read ({', '.join(cost.errors)}); its log and `{program()} doctor` say more"
    else:
        read = f"{plural(cost.groups, 'group')}, {plural(cost.partitions, 'partition')}"
        line = f"{cost.cluster}: {read} in {cost.wall_seconds:.2f} s, "
        line += f"{sum(cost.errors.values())} errors ({', '.join(cost.errors)})" if cost.errors else "no errors"
    if cost.waiting:
        line += f"; {cost.waiting} samples wait for the lake"
    return line
