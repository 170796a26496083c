"""The collector of :mod:`benchmarks.clusters`, in a process of its own: its memory and CPU are nobody else's.

    python -m benchmarks.clusters_collector FOLDER CLUSTERS INTERVAL [--former]

Prints a line once each cluster has had its first sample, or has had the time for it, and on a line from stdin stops and
prints what it counted.
"""

import argparse
import json
import logging
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from benchmarks.made_up_cluster import MadeUpSource
from benchmarks.synthetic_lake import Shape
from lagwise.config import AnyCluster, Cluster, Config
from lagwise.platform.errors import LakeError
from lagwise.platform.log_events import ATTRIBUTE, LogEvent
from lagwise.tables.raw import RAW_TABLES, SAMPLES
from lagwise.tables.schema import Table
from lagwise.tables.store import Lake
from lagwise_collectors import run
from lagwise_collectors.lake_delivery.lake_writer import LakeWriter
from lagwise_collectors.pipeline import Pipeline, pipeline_of
from lagwise_collectors.protocol import Source
from lagwise_collectors.sampling_schedule import FixedRate

#: 2,000 group-partitions.
_SHAPE = Shape(partitions=100, wide=20, narrow=0)
_START_SECONDS = 60.0
_STOP_SECONDS = 60.0


class Counts(logging.Handler):
    """Appends, those that failed, and samples that were skipped."""

    def __init__(self) -> None:
        super().__init__()
        self.appends = self.failed_appends = self.skipped = 0
        self._count = threading.Lock()

    def emit(self, record: logging.LogRecord) -> None:
        if getattr(record, ATTRIBUTE, {}).get("event") == LogEvent.SAMPLES_SKIPPED:
            self.skipped += 1

    def watch(self) -> None:
        """Count what every lake of this process appends."""
        append, counts = Lake.append, self

        def counted(lake: Lake, table: Table, rows: pa.Table, *, transactions: Mapping[str, int] | None = None) -> None:
            with counts._count:
                counts.appends += 1
            try:
                append(lake, table, rows, transactions=transactions)
            except LakeError as error:
                with counts._count:
                    counts.failed_appends += 1
                print(error, file=sys.stderr)
                raise

        Lake.append = counted  # type: ignore[method-assign, assignment]  # of the same parameters


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("clusters", type=int)
    parser.add_argument("interval", type=float)
    parser.add_argument("--former", action="store_true")
    options = parser.parse_args()
    counts, stop = Counts(), threading.Event()
    counts.watch()
    logging.getLogger("lagwise").addHandler(counts)
    names = [f"cluster-{number:02}" for number in range(options.clusters)]
    clusters = [Cluster(name=name, bootstrap="127.0.0.1:9", interval_seconds=options.interval) for name in names]
    config = Config(data=str(options.folder), clusters=tuple(clusters))
    lake, deadline = Lake(config.lake_uri), time.monotonic() + _START_SECONDS
    lake.create(*RAW_TABLES)
    if options.former:
        work_in_the_former_way(options.interval)
    collector = threading.Thread(target=run.collect_forever, args=(config, stop, config.state, source_of), daemon=True)
    collector.start()
    # One that cannot keep up is measured all the same.
    while len(set(lake.read(SAMPLES)["cluster"].to_pylist())) < len(names) and time.monotonic() < deadline:
        time.sleep(0.5)
    print("started", flush=True)
    sys.stdin.readline()
    stop.set()
    collector.join(_STOP_SECONDS)
    print(json.dumps({name: getattr(counts, name) for name in ("appends", "failed_appends", "skipped")}))


def work_in_the_former_way(interval: float) -> None:
    """A writer for each cluster, and all of them sample at the same moment."""
    start = time.monotonic() + 5

    def with_a_writer_of_its_own(
        name: str, source: Source, config: Config, _writer: LakeWriter, *others: Any
    ) -> Pipeline:
        return pipeline_of(name, source, config, LakeWriter(Lake(config.lake_uri)), *others)

    run.pipeline_of = with_a_writer_of_its_own  # type: ignore[attr-defined, assignment]  # of the same parameters
    run._schedule_of = lambda *_: FixedRate(interval, start)


def source_of(cluster: AnyCluster, _config: Config) -> MadeUpSource:
    return MadeUpSource(cluster, _SHAPE)


if __name__ == "__main__":
    main()
