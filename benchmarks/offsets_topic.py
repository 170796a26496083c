"""What following ``__consumer_offsets`` costs: records a second of CPU, the goal being 100,000 on one core.

Two measurements. *Understanding*: the records of 100,000 group-partitions (98 % commits, the rest groups that
rebalance) from memory into the state machine. *Reading*: the same records written into the ``__consumer_offsets`` of a
sandbox's broker, read by the product's own reader process: first from the beginning, as at a start, then as they come.
Beside each, as a yardstick in the same run, the same records taken and thrown away without a look at what they mean.

    python -m benchmarks.offsets_topic [--records 1000000] [--small] [--json]
"""

import argparse
import json
import os
import struct
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import psutil
import pyarrow as pa
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Producer, TopicPartition

from benchmarks.common import cpu_seconds, in_child, machine, machine_line, options_parser
from lagwise.config import Cluster
from lagwise.tables.raw import COMMITS
from lagwise_collectors.offsets_topic import state_file
from lagwise_collectors.offsets_topic.commit_history import CADENCE_TABLE, CommitCadence, cadence_rows
from lagwise_collectors.offsets_topic.ledger import Ledger
from lagwise_collectors.offsets_topic.records import OFFSETS_TOPIC
from lagwise_collectors.reader_process.isolated_source import IsolatedTail
from lagwise_collectors.sample_builder import rows_from_columns
from lagwise_sandbox.broker import KafkaBroker

_GOAL = 100_000
_GROUPS, _PARTITIONS = 200, 500
_OTHERS_PER_HUNDRED = 2
_BATCH = 5_000
_MARK = "the-last-of-all"
_START_MS = 1_795_230_000_000

Raw = tuple[bytes, bytes, int]


class Record:
    """A record as the client library has it."""

    __slots__ = ("_at_ms", "_key", "_offset", "_value")

    def __init__(self, key: bytes, value: bytes, at_ms: int, offset: int) -> None:
        self._key, self._value, self._at_ms, self._offset = key, value, at_ms, offset

    def key(self) -> bytes:
        return self._key

    def value(self) -> bytes:
        return self._value

    def partition(self) -> int:
        return 0

    def offset(self) -> int:
        return self._offset

    def timestamp(self) -> tuple[int, int]:
        return 1, self._at_ms


def main() -> int:
    parser = options_parser(__doc__, "20,000 records, to see that it works", has_json=True)
    parser.add_argument(
        "--records", type=int, default=1_000_000, help="records of each measurement (default 1,000,000)"
    )
    parser.add_argument("--plain", metavar="BOOTSTRAP", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.plain:
        print(json.dumps(consume_plainly(arguments.plain)))
        return 0
    count = 20_000 if arguments.small else arguments.records
    result: dict[str, Any] = {
        "machine": machine(),
        "records": count,
        "group_partitions": _GROUPS * _PARTITIONS,
        "goal_per_cpu_second": _GOAL,
        "understanding": understand(count),
        "rows": fill_rows(),
    }
    with KafkaBroker(heap_mb=768) as broker:
        result["reading"] = read(broker.bootstrap, count)
    result["machine"]["load_after"] = os.getloadavg()[0]
    print(json.dumps(result, indent=2) if arguments.json else table(result))
    return 0


def records(count: int) -> Iterator[Raw]:
    """Records as a coordinator writes them: every pair once, then commits on pairs at random, and rebalances."""
    random = Random(4)
    topics = [f"topic-{n:02d}" for n in range(_PARTITIONS // 10)]
    keys = [
        b"\0\1" + text(f"group-{g:03d}") + text(topic) + struct.pack(">i", p)
        for g in range(_GROUPS)
        for topic in topics
        for p in range(10)
    ]
    offsets = [0] * len(keys)
    generations = [0] * _GROUPS
    value = struct.Struct(">hqibqb").pack
    for n in range(count):
        at_ms = _START_MS + n // 10
        if n >= len(keys) and n % 100 < _OTHERS_PER_HUNDRED:
            group = random.randrange(_GROUPS)
            generations[group] += 1
            key = b"\0\2" + text(f"group-{group:03d}")
            yield key, group_value(generations[group], random.randrange(2, 6), topics[:4]), at_ms
            continue
        pair = n if n < len(keys) else random.randrange(len(keys))
        offsets[pair] += random.randrange(1, 1000)
        yield keys[pair], value(4, offsets[pair], 0, 1, at_ms, 0), at_ms


def text(value: str) -> bytes:
    return struct.pack(">h", len(value)) + value.encode()


def group_value(generation: int, members: int, topics: list[str]) -> bytes:
    subscription = struct.pack(">hi", 1, len(topics)) + b"".join(map(text, topics)) + struct.pack(">i", 0)
    body = b""
    for member in range(members):
        owned = b"".join(
            text(topic)
            + struct.pack(
                f">i{len(range(member, 10, members))}i", len(range(member, 10, members)), *range(member, 10, members)
            )
            for topic in topics
        )
        assignment = struct.pack(">hi", 1, len(topics)) + owned
        body += text(f"client-{member}-id") + struct.pack(">h", -1) + text(f"client-{member}") + text("/10.0.0.1")
        body += struct.pack(">ii", 300_000, 45_000)
        body += struct.pack(">i", len(subscription)) + subscription + struct.pack(">i", len(assignment)) + assignment
    head = struct.pack(">h", 3) + text("consumer") + struct.pack(">i", generation) + text("range") + text("leader")
    return head + struct.pack(">qi", 0, members) + body


def understand(count: int) -> dict[str, Any]:
    """Records from memory into the ledger, and what saving and reporting the state costs then."""
    made = [Record(*raw, n) for n, raw in enumerate(records(count))]
    batches = [made[i : i + _BATCH] for i in range(0, count, _BATCH)]

    def look() -> None:
        for batch in batches:
            for record in batch:
                record.key(), record.value(), record.partition(), record.offset()

    plain = timed(look)
    ledger = Ledger(lambda name: True)
    before = psutil.Process().memory_info().rss

    def feed() -> None:
        for batch in batches:
            ledger.feed(batch)

    ours = timed(feed)
    memory = psutil.Process().memory_info().rss - before
    taken = ledger.take()
    rows: list[Any] = []
    reporting = timed(lambda: rows.append(cadence_rows(list(ledger.pairs.values()), counted=True)))
    kept: list[bytes] = []
    keeping = timed(lambda: kept.append(state_file.serialise(ledger, {})))
    return {
        "per_cpu_second": count / ours,
        "plain_per_cpu_second": count / plain,
        "events": len(taken.events),
        "memory_mib": memory / 2**20,
        "reporting_all_pairs_seconds": reporting,
        "keeping_seconds": keeping,
        "kept_mb": len(kept[0]) / 1e6,
    }


def fill_rows() -> dict[str, float]:
    """The two columns of ``raw/commits``, for all pairs and for 2,000 of them."""
    from datetime import UTC, datetime

    pairs = [(f"group-{g:03d}", f"topic-{p // 10:02d}", p % 10) for g in range(_GROUPS) for p in range(_PARTITIONS)]
    columns: dict[str, Any] = {
        "group": pa.array([g for g, _, _ in pairs]).dictionary_encode(),
        "topic": pa.array([t for _, t, _ in pairs]).dictionary_encode(),
        "partition": [p for _, _, p in pairs],
        "committed": list(range(len(pairs))),
    }
    rows = rows_from_columns(COMMITS, columns, sample_id="1", cluster="bench", at=datetime.now(UTC))
    from lagwise_collectors.offsets_topic.commit_history import CommitHistory

    everything = cadence_rows([CommitHistory(*pair, 1, _START_MS) for pair in pairs], counted=True)
    some = everything.slice(0, 2_000)
    cadence = CommitCadence()
    first = timed(lambda: cadence.fill(rows, everything, all_commits=True))
    later = timed(lambda: cadence.fill(rows, some, all_commits=False))
    busy = timed(lambda: cadence.fill(rows, everything, all_commits=False))
    return {"first_seconds": first, "few_changed_seconds": later, "all_changed_seconds": busy}


def read(bootstrap: str, count: int) -> dict[str, Any]:
    """The product's reader on a broker's own topic."""
    write(bootstrap, records(count))
    plain = in_child("benchmarks.offsets_topic", "--plain", bootstrap)
    with tempfile.TemporaryDirectory(prefix="lagwise-bench-") as folder:
        cluster = Cluster(name="bench", bootstrap=bootstrap, offsets_topic=True)
        tail = IsolatedTail(cluster, Path(folder) / "kept.state")
        try:
            began = time.perf_counter()
            while not tail.take({})[1].is_caught_up:
                time.sleep(0.1)
            wall, first_cpu = time.perf_counter() - began, cpu_of(tail)
            write(bootstrap, records(count))
            mark(bootstrap)
            seen = 0
            while seen == 0:
                time.sleep(1)
                snapshot, _, errors = tail.take({})
                assert set(errors.counts) <= {"events_dropped"}, errors.counts  # more at once than is reported
                assert snapshot is not None
                tail.acknowledge()
                seen = snapshot.tables[CADENCE_TABLE].column("group").to_pylist().count(_MARK)
            later_cpu = cpu_of(tail) - first_cpu
            assert tail.pid is not None
            rss = psutil.Process(tail.pid).memory_info().rss / 2**20
        finally:
            tail.close()
    return {
        "from_the_beginning_per_cpu_second": count / first_cpu,
        "from_the_beginning_seconds": wall,
        "as_they_come_per_cpu_second": count / later_cpu,
        "plain_per_cpu_second": plain["records"] / plain["cpu_seconds"],
        "rss_mib": rss,
    }


def cpu_of(tail: IsolatedTail) -> float:
    """CPU seconds of the reader process so far, its start included."""
    assert tail.pid is not None
    return cpu_seconds(psutil.Process(tail.pid))


def write(bootstrap: str, made: Iterator[Raw]) -> None:
    """Write records into the broker's own topic, which brokers allow under this client id alone."""
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "client.id": "__admin_client",
            "linger.ms": 50,
            "queue.buffering.max.messages": 200_000,
            "partitioner": "murmur2",
        }
    )
    refused: list[str] = []

    def delivered(error: KafkaError | None, _message: object) -> None:
        if error is not None:
            refused.append(error.str())

    for key, value, at_ms in made:
        # What belongs to a group lies in one partition.
        partition = int.from_bytes(key[3:15], "big") % 8
        while True:
            try:
                producer.produce(OFFSETS_TOPIC, value, key, partition=partition, timestamp=at_ms, on_delivery=delivered)
                break
            except BufferError:
                producer.poll(0.1)
        producer.poll(0)
    producer.flush(120)
    if refused:
        raise SystemExit(f"the broker refused {len(refused)} records: {refused[0]}")


def mark(bootstrap: str) -> None:
    """One record for each partition that comes behind all others."""
    value = struct.Struct(">hqibqb").pack(4, 1, 0, 1, _START_MS, 0)
    keys = [b"\0\1" + text(_MARK) + text("t") + struct.pack(">i", n) for n in range(1)]
    write(bootstrap, iter([(key, value, _START_MS) for key in keys]))


def consume_plainly(bootstrap: str) -> dict[str, Any]:
    """The same records taken from the broker with the same settings, and thrown away."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "plain",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
            "check.crcs": False,
            "max.partition.fetch.bytes": 8 * 1024**2,
        }
    )
    partitions = list(consumer.list_topics(OFFSETS_TOPIC, timeout=20).topics[OFFSETS_TOPIC].partitions)
    consumer.assign([TopicPartition(OFFSETS_TOPIC, p, OFFSET_BEGINNING) for p in partitions])
    count, cpu = 0, time.process_time()
    ended: set[int | None] = set()
    while len(ended) < len(partitions):
        for message in consumer.consume(_BATCH, 0.1):
            if message.error() is None:
                message.key(), message.value(), message.partition(), message.offset()
                count += 1
            else:
                ended.add(message.partition())
    spent = time.process_time() - cpu
    consumer.close()
    return {"records": count, "cpu_seconds": spent}


def timed(work: Callable[[], object]) -> float:
    """CPU seconds of the work."""
    before = time.process_time()
    work()
    return time.process_time() - before


def table(result: dict[str, Any]) -> str:
    understanding, reading, rows = result["understanding"], result["reading"], result["rows"]

    def line(what: str, ours: float, plain: float) -> str:
        return f"  {what:24}{ours:>12,.0f}{plain:>14,.0f}{plain / ours:>8.1f} ×{ours / _GOAL:>10.1f} ×"

    return "\n".join(
        [
            machine_line(result["machine"]),
            f"{result['records']:,} records, {result['group_partitions']:,} group-partitions",
            f"  {'records per CPU second':24}{'lagwise':>12}{'thrown away':>14}{'ratio':>10}{'of the goal':>12}",
            line("understanding", understanding["per_cpu_second"], understanding["plain_per_cpu_second"]),
            line("from the beginning", reading["from_the_beginning_per_cpu_second"], reading["plain_per_cpu_second"]),
            line("as they come", reading["as_they_come_per_cpu_second"], reading["plain_per_cpu_second"]),
            f"  all was known {reading['from_the_beginning_seconds']:.1f} s after the start; reader "
            f"{reading['rss_mib']:.0f} MiB",
            f"  keeping the state {understanding['keeping_seconds']:.2f} s CPU, {understanding['kept_mb']:.1f} MB",
            f"  rows of raw/commits {rows['few_changed_seconds']:.3f} s (few changed), "
            f"{rows['all_changed_seconds']:.3f} s (all changed)",
        ]
    )


if __name__ == "__main__":
    sys.exit(main())
