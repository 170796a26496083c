"""Committed offsets of all groups by our own requests, straight into columns, beside librdkafka's.

Librdkafka takes one request for each group (or slice of a big one), and makes an object for each group-partition. Our
own path sends one OffsetFetch for up to 200 groups of a coordinator (KIP-709) and reads the answer's bytes as columns.
Both make the same rows of ``commits``, which is compared; the lake, the watermarks and the descriptions of groups are
left out.

    python -m benchmarks offset-fetch [--samples 21] [--small] [--json]
"""

import argparse
import contextlib
import json
import os
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import psutil
import pyarrow as pa

from benchmarks.common import in_child, machine, machine_line, options_parser, say, spread_cell, timed_runs
from benchmarks.sample_kafka import FULL, SMALL, cluster_of, fill
from lagwise.tables.raw import COMMITS
from lagwise_collectors.kafka.requests.client import KafkaClient
from lagwise_collectors.kafka.requests.commit_columns import CommitColumns
from lagwise_collectors.kafka.requests.committed_offsets import CommitReader
from lagwise_collectors.kafka.requests.group_members import KafkaGroup
from lagwise_collectors.kafka.sample_rows import add_commits
from lagwise_collectors.kafka_protocol.client import ProtocolClient
from lagwise_collectors.kafka_protocol.committed_offsets import read_commits
from lagwise_collectors.kafka_protocol.group_listing import list_every_group
from lagwise_collectors.protocol import ErrorTally
from lagwise_collectors.sample_builder import SampleBuilder
from lagwise_sandbox.broker import KafkaBroker


def main() -> int:
    parser = options_parser(__doc__, "a hundredth of the size, to see that it works", has_json=True)
    parser.add_argument("--samples", type=int, default=21, help="samples to take of each layout (default 21)")
    parser.add_argument("--way", nargs=4, metavar=("NAME", "BOOTSTRAP", "LAYOUT", "SAMPLES"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.way:
        name, bootstrap, layout, samples = arguments.way
        print(json.dumps(measure(name, bootstrap, layout, int(samples))))
        return 0
    size = SMALL if arguments.small else FULL
    result: dict[str, Any] = {"machine": machine(), "layouts": {}}
    with KafkaBroker(heap_mb=512 if arguments.small else 1400) as broker:
        say(arguments, "filling the broker …")
        fill(broker.bootstrap, size)
        for layout, groups in size.layouts.items():
            say(arguments, f"{layout}: {arguments.samples} samples, twice …")
            found = {
                way: in_child("benchmarks.offset_fetch", "--way", way, broker.bootstrap, layout, str(arguments.samples))
                for way in WAYS
            }
            prints = {way: costs.pop("fingerprint") for way, costs in found.items()}
            expected = sum(count * width for count, width in groups)
            if len(set(prints.values())) != 1 or {costs["rows"] for costs in found.values()} != {expected}:
                raise SystemExit(f"the rows differ, or are not {expected}: {found} {prints}")
            result["layouts"][layout] = {"group_partitions": expected, **found}
    result["machine"]["load_after"] = os.getloadavg()[0]
    print(json.dumps(result, indent=2) if arguments.json else table(result))
    return 0


def measure(way: str, bootstrap: str, layout: str, samples: int) -> dict[str, Any]:
    """What so many reads cost, the first ones left out: librdkafka's learns in them which groups are big."""
    read = WAYS[way](bootstrap, layout)
    read()
    rows = read()
    costs = timed_runs(read, samples)
    return {
        **costs,
        "rss_mib": psutil.Process().memory_info().rss / 2**20,
        "rows": rows.num_rows,
        "fingerprint": fingerprint(rows),
    }


def fingerprint(rows: pa.Table) -> int:
    """The same for the same rows in any order."""
    columns = rows.select(["group", "topic", "partition", "committed", "leader_epoch", "metadata"]).to_pydict()
    return sum(hash_of(row) for row in zip(*columns.values(), strict=True)) % 2**61


def hash_of(row: tuple[Any, ...]) -> int:
    """The same in every process, unlike that of a text."""
    return int.from_bytes(repr(row).encode()[-64:], "big") % (2**61 - 1)


def watched(bootstrap: str, layout: str) -> tuple[ProtocolClient, list[str]]:
    cluster = cluster_of(bootstrap, layout)
    client = ProtocolClient(cluster)
    return client, sorted(list_every_group(client, cluster.groups.selects, ErrorTally()).types)


def librdkafkas_way(bootstrap: str, layout: str) -> Callable[[], pa.Table]:
    """librdkafka's answers, as the source reads them."""
    cluster = cluster_of(bootstrap, layout)
    reader = CommitReader(KafkaClient(cluster))
    client, names = watched(bootstrap, layout)
    client.close()

    def read() -> pa.Table:
        sample = SampleBuilder(cluster)
        commits = reader.read([KafkaGroup(name) for name in names], sample.errors)
        return rows_of(sample, commits)

    return read


def own_way(bootstrap: str, layout: str) -> Callable[[], pa.Table]:
    """Few requests for all groups of a coordinator, and their answers as columns."""
    cluster = cluster_of(bootstrap, layout)
    client, names = watched(bootstrap, layout)

    def read() -> pa.Table:
        sample = SampleBuilder(cluster)
        groups = [KafkaGroup(name) for name in names]
        commits = read_commits(client, groups, sample.errors, lambda: datetime.now(UTC))
        return rows_of(sample, commits)

    return read


def rows_of(sample: SampleBuilder, commits: CommitColumns) -> pa.Table:
    assert not sample.errors, sample.errors.counts
    add_commits(sample, commits, datetime.now(UTC))
    return sample.finish().rows(COMMITS)


WAYS: dict[str, Callable[[str, str], Callable[[], pa.Table]]] = {"librdkafka": librdkafkas_way, "own": own_way}


def table(result: dict[str, Any]) -> str:
    lines = [machine_line(result["machine"])]
    for layout, found in result["layouts"].items():
        lines += ["", f"{layout}: {found['group_partitions']:,} group-partitions"]
        lines.append(f"  {'':10}{'wall s (min / median / max)':>30}{'CPU s (min / median / max)':>30}{'RSS MiB':>12}")
        for way in WAYS:
            cells = [spread_cell(found[way][kind]) for kind in ("wall_seconds", "cpu_seconds")]
            lines.append(f"  {way:10}{cells[0]:>30}{cells[1]:>30}{found[way]['rss_mib']:>12.0f}")
    return "\n".join(lines)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        sys.exit(main())
