"""What one sample of a big cluster costs: 10,000 partitions, 210 groups, 101,000 group-partitions, into the lake.

Starts the sandbox's broker, fills it, and takes samples the way ``lagwise collect`` does: by our own requests in one
process, or through librdkafka in a reader process, the comparison with the sample before, up to eight Delta tables.
Beside it, as a yardstick on the same machine in the same minute, the plain way to do the same with librdkafka: one
group after the other, one call for all partitions, a dictionary per row. Figures are of this machine in this hour; the
ratio means more than the seconds.

Two layouts, because librdkafka's cost grows with the square of a group's partitions: ``wide`` is 10 groups of 10,000
partitions and 200 of 5, ``narrow`` is 200 groups of 500 and 10 of 100. Each is read by our own requests and, as where a
broker does not let these in, through librdkafka. ``--million`` takes 1,000 groups of 1,000 partitions instead, by our
own requests only.

    python -m benchmarks sample [--samples 21] [--small | --million] [--json]
"""

import argparse
import contextlib
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import psutil
import pyarrow as pa
from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

from benchmarks.common import (
    cpu_seconds,
    in_child,
    machine,
    machine_line,
    opened_pipeline,
    options_parser,
    say,
    spread,
    spread_cell,
    timed_runs,
)
from lagwise.config import AnyCluster, Cluster, Config, NameFilter
from lagwise.tables.raw import COMMITS, RAW_TABLES, WATERMARKS
from lagwise.tables.store import Lake
from lagwise_collectors.kafka_in_process import KafkaInProcess
from lagwise_collectors.reader_process.isolated_source import IsolatedSource
from lagwise_collectors.run import source_of
from lagwise_sandbox.broker import KafkaBroker

#: Kafka refuses to create many more partitions in one request.
_PARTITIONS_PER_REQUEST = 2_000
#: Requests at the same time while the broker is filled; many more of them time out.
_CONCURRENCY = 8
_FILLING_TIMEOUT_SECONDS = 20.0
#: Settings of a cluster by the way in which it is read: one that only librdkafka knows changes nothing without TLS.
WAYS: dict[str, dict[str, Any]] = {"lagwise": {}, "librdkafka": {"librdkafka": {"ssl.cipher.suites": "DEFAULT"}}}


@dataclass(frozen=True)
class Size:
    """How much there is: topics × partitions, and per layout (groups, partitions of each)."""

    topics: int
    partitions: int
    layouts: dict[str, list[tuple[int, int]]]


FULL = Size(100, 100, {"wide": [(10, 10_000), (200, 5)], "narrow": [(200, 500), (10, 100)]})
MILLION = Size(100, 100, {"million": [(1_000, 1_000)]})
SMALL = Size(10, 10, {"wide": [(2, 100), (10, 5)], "narrow": [(5, 50), (2, 10)]})


def main() -> int:
    parser = options_parser(__doc__, "a hundredth of the size, to see that it works", has_json=True)
    parser.add_argument("--samples", type=int, default=21, help="samples to take of each layout (default 21)")
    parser.add_argument("--million", action="store_true", help="1,000,000 group-partitions, by our own requests only")
    parser.add_argument("--plain", nargs=3, metavar=("BOOTSTRAP", "LAYOUT", "SAMPLES"), help=argparse.SUPPRESS)
    parser.add_argument("--ours", nargs=4, metavar=("WAY", "BOOTSTRAP", "LAYOUT", "SAMPLES"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.ours:
        way, bootstrap, layout, samples = arguments.ours
        print(json.dumps(measure_ours(cluster_of(bootstrap, layout, **WAYS[way]), int(samples))))
        return 0
    if arguments.plain:
        bootstrap, layout, samples = arguments.plain
        print(json.dumps(measure_plain(bootstrap, layout, int(samples))))
        return 0
    size = MILLION if arguments.million else SMALL if arguments.small else FULL
    result: dict[str, Any] = {"machine": machine(), "layouts": {}}
    with KafkaBroker(heap_mb=512 if arguments.small else 1400) as broker:
        say(arguments, "filling the broker …")
        names = fill(broker.bootstrap, size)
        wait_until_served(broker.bootstrap)
        for layout, groups in size.layouts.items():
            samples = str(arguments.samples)
            say(arguments, f"{layout}: {samples} samples …")
            found = {
                way: in_child("benchmarks.sample_kafka", "--ours", way, broker.bootstrap, layout, samples)
                for way in (["lagwise"] if arguments.million else WAYS)
            }
            expected = {"groups": sum(n for n, _ in groups), "commits": sum(n * w for n, w in groups)}
            for ours in found.values():
                seen = {name: ours["rows"].get(name, 0) for name in expected}
                if seen != expected or ours["rows"].get("watermarks") != len(names):
                    raise SystemExit(
                        f"the samples hold {ours['rows']}, but there are {expected} and {len(names)} partitions"
                    )
            if not arguments.million:
                say(arguments, f"{layout}: the plain way …")
                few = str(max(2, arguments.samples // 5))
                found["plain"] = in_child("benchmarks.sample_kafka", "--plain", broker.bootstrap, layout, few)
            result["layouts"][layout] = {
                "groups": sum(count for count, _ in groups),
                "group_partitions": sum(count * width for count, width in groups),
                "partitions": len(names),
                **found,
                "ratio": {
                    way: {
                        kind: costs[f"{kind}_seconds"]["median"] / found["lagwise"][f"{kind}_seconds"]["median"]
                        for kind in ("wall", "cpu")
                    }
                    for way, costs in found.items()
                    if way != "lagwise"
                },
            }
    result["machine"]["load_after"] = os.getloadavg()[0]
    print(json.dumps(result, indent=2) if arguments.json else table(result))
    return 0


def fill(bootstrap: str, size: Size) -> list[tuple[str, int]]:
    """Create the topics, and groups of every layout, named ``layout-N``."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    topics = [f"bench-{n:03d}" for n in range(size.topics)]
    share = max(1, _PARTITIONS_PER_REQUEST // size.partitions)
    for start in range(0, len(topics), share):
        new = [NewTopic(name, size.partitions, 1) for name in topics[start : start + share]]
        for future in admin.create_topics(new, operation_timeout=60, request_timeout=60).values():
            future.result()
    pairs = [(name, p) for name in topics for p in range(size.partitions)]
    jobs: list[tuple[str, list[tuple[str, int]]]] = []
    for layout, groups in size.layouts.items():
        number = 0
        for count, width in groups:
            for _ in range(count):
                start = number * width % len(pairs)
                jobs.append((f"{layout}-{number:03d}", [pairs[(start + i) % len(pairs)] for i in range(width)]))
                number += 1
    with ThreadPoolExecutor(_CONCURRENCY) as pool:
        for _ in pool.map(lambda job: commit(admin, *job), jobs):
            pass
    return pairs


def commit(admin: AdminClient, group: str, pairs: list[tuple[str, int]]) -> None:
    """Commit offsets that do not compress well; a coordinator that does not know the topics yet is asked again."""
    random = Random(group)  # the same in every run
    offsets = [TopicPartition(topic, p, random.randrange(10**9)) for topic, p in pairs]
    request = ConsumerGroupTopicPartitions(group, offsets)
    for attempt in range(100):
        try:
            futures = admin.alter_consumer_group_offsets([request], request_timeout=_FILLING_TIMEOUT_SECONDS)
            refused = [tp for tp in futures[group].result().topic_partitions if tp.error is not None]
            if not refused:
                return
            raise KafkaException(refused[0].error)
        except KafkaException:
            if attempt == 99:
                raise
            time.sleep(0.5)


def wait_until_served(bootstrap: str) -> None:
    """Wait until every new partition has a leader that knows it is one."""
    source = IsolatedSource(cluster_of(bootstrap, ".*"))
    try:
        deadline = time.monotonic() + 120
        while errors := source.collect().errors:
            if time.monotonic() > deadline:
                raise SystemExit(f"the broker does not serve all partitions: {errors}")
            time.sleep(0.5)
    finally:
        source.close()


def cluster_of(bootstrap: str, layout: str, **more: Any) -> Cluster:
    groups = NameFilter(include=(f"{layout}-.*",))
    return Cluster(name="bench", bootstrap=bootstrap, groups=groups, timeout_seconds=60, **more)


def measure_ours(cluster: AnyCluster, samples: int) -> dict[str, Any]:
    """Samples as ``lagwise collect`` takes them. The first, which connects and learns, counts by itself."""
    with tempfile.TemporaryDirectory(prefix="lagwise-bench-") as folder:
        config = Config(data=folder, clusters=(cluster,))
        lake = Lake(config.lake_uri)
        lake.create(*RAW_TABLES)
        source = source_of(cluster, config)
        with opened_pipeline(source, cluster, config, lake) as pipeline:
            walls, cpus, written = [], [], []

            def one() -> None:
                cost = pipeline.run()
                assert not cost.errors, cost.errors
                assert cost.waiting == 0, cost.trouble
                written.append(cost.rows)

            first = timed(one, source)
            for _ in range(samples):
                wall, cpu = timed(one, source)
                walls.append(wall)
                cpus.append(cpu)
            rss = [psutil.Process(pid).memory_info().rss / 2**20 for pid in (os.getpid(), *source.pids)]
            disk = sum(path.stat().st_size for path in Path(folder).rglob("*.parquet"))
    return {
        "first": {"wall_seconds": first[0], "cpu_seconds": first[1]},
        "wall_seconds": spread(walls),
        "cpu_seconds": spread(cpus),
        "rss_mib": {"collector": rss[0]} | ({"reader": sum(rss[1:])} if rss[1:] else {}),
        "rows": written[-1],
        "disk_bytes_per_sample": disk / (samples + 1),
    }


def timed(work: Callable[[], None], source: IsolatedSource | KafkaInProcess) -> tuple[float, float]:
    """Wall and CPU seconds of the work: this process's and its readers', tidying up after the answer included."""

    def cpu() -> float:
        return time.process_time() + sum(cpu_seconds(psutil.Process(pid)) for pid in source.pids)

    before, began = cpu(), time.perf_counter()
    work()
    wall = time.perf_counter() - began
    settled = cpu()
    while True:  # the reader collects garbage after it has answered; the kernel counts in hundredths
        time.sleep(0.05)
        now = cpu()
        if now - settled < 0.005:
            return wall, now - before
        settled = now


def measure_plain(bootstrap: str, layout: str, samples: int) -> dict[str, Any]:
    """The same rows in the plain way: one request after the other, a dictionary per row."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    with tempfile.TemporaryDirectory(prefix="lagwise-bench-") as folder:
        lake = Lake(folder)
        lake.create(*RAW_TABLES)
        costs = timed_runs(lambda: plain_sample(admin, layout, lake), samples)
    return {**costs, "rss_mib": {"collector": psutil.Process().memory_info().rss / 2**20}}


def plain_sample(admin: AdminClient, layout: str, lake: Lake) -> None:
    common: dict[str, Any] = {"sample_id": "plain", "cluster": "bench", "sampled_at": datetime.now(UTC)}
    groups = [g.group_id for g in admin.list_consumer_groups().result().valid if g.group_id.startswith(f"{layout}-")]
    for future in admin.describe_consumer_groups(groups).values():
        future.result()
    commits = []
    for group in groups:
        answer = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])[group].result()
        for tp in answer.topic_partitions:
            row = {"group": group, "topic": tp.topic, "partition": tp.partition, "committed": tp.offset}
            commits.append({**common, **row, "leader_epoch": tp.leader_epoch, "metadata": tp.metadata, "owner": None})
    metadata = admin.list_topics(timeout=60).topics
    wanted = {row["topic"] for row in commits}
    partitions = [TopicPartition(name, p) for name in sorted(wanted) for p in metadata[name].partitions]
    ends: dict[tuple[str, int], dict[str, int]] = {}
    earliest = OffsetSpec.earliest()  # type: ignore[no-untyped-call]  # the package types only part of itself
    latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]  # likewise
    for column, spec in (("log_start", earliest), ("high_watermark", latest)):
        for tp, future in admin.list_offsets(dict.fromkeys(partitions, spec)).items():
            ends.setdefault((tp.topic, tp.partition), {})[column] = future.result().offset
    marks = [{**common, "topic": topic, "partition": p, **offsets} for (topic, p), offsets in ends.items()]
    for table_, rows in ((COMMITS, commits), (WATERMARKS, marks)):
        lake.append(table_, pa.Table.from_pylist(rows, schema=table_.without_day))


def table(result: dict[str, Any]) -> str:
    lines = [machine_line(result["machine"])]
    for layout, found in result["layouts"].items():
        lines += [
            "",
            f"{layout}: {found['groups']} groups, {found['group_partitions']:,} group-partitions, "
            f"{found['partitions']:,} partitions",
            f"  {'':10}{'wall s (min / median / max)':>30}{'CPU s (min / median / max)':>30}{'RSS MiB':>12}",
        ]
        for way in ("lagwise", *found["ratio"]):
            costs = found[way]
            cells = [spread_cell(costs[kind]) for kind in ("wall_seconds", "cpu_seconds")]
            rss = " + ".join(f"{value:.0f}" for value in costs["rss_mib"].values())
            lines.append(f"  {way:10}{cells[0]:>30}{cells[1]:>30}{rss:>12}")
        first = found["lagwise"]["first"]
        lines.append(f"  first sample {first['wall_seconds']:.2f} s wall, {first['cpu_seconds']:.2f} s CPU")
        for way, ratio in found["ratio"].items():
            lines.append(f"  {way} / lagwise: {ratio['wall']:.1f} × wall, {ratio['cpu']:.1f} × CPU")
        lines.append(f"  on disk {found['lagwise']['disk_bytes_per_sample'] / 1e6:.2f} MB a sample before compaction")
    return "\n".join(lines)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        sys.exit(main())
