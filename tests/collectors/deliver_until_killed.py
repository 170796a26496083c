"""A process that delivers samples of several clusters through one writer, until it is killed or told the last number.

    python -m tests.collectors.deliver_until_killed LAKE SPOOLS JOURNAL FIRST COUNT

A line of the journal is a sample that the sink called safe: in the lake, or on disk.
"""

import sys
import threading
from pathlib import Path

from lagwise.tables.store import Lake
from lagwise_collectors.lake_delivery.lake_writer import LakeWriter
from lagwise_collectors.lake_delivery.sink import Sink
from lagwise_collectors.lake_delivery.spool import Spool
from tests.collectors.snapshots import sample

CLUSTERS = tuple(f"cluster-{number}" for number in range(5))


def main(lake: str, spools: str, journal: str, first: int, count: int) -> None:
    """Samples ``first`` to ``first + count`` of each cluster, as fast as they are taken."""
    writer = LakeWriter(Lake(lake), pause_seconds=0.05)
    threads = [
        threading.Thread(target=deliver, args=(writer, name, Path(spools), Path(journal), range(first, first + count)))
        for name in CLUSTERS
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def deliver(writer: LakeWriter, name: str, spools: Path, journal: Path, numbers: range) -> None:
    """Hand over a cluster's samples, and write down those that are safe."""
    sink = Sink(writer, Spool(spools / name), name)
    with journal.open("a", buffering=1, encoding="ascii") as lines:
        for number in numbers:
            commits = {("g", "t", partition): number for partition in range(4)}
            taken = sample(number, cluster=name, commits=commits, topics={"t": ("a", 4)})
            if sink.write(taken, patience_seconds=0.2).safe:
                lines.write(f"{name} {number}\n")
    sink.close(30)


if __name__ == "__main__":
    main(*sys.argv[1:4], *map(int, sys.argv[4:]))
