"""A prototype: committed offsets of all groups by our own requests, straight into columns, beside today's way.

Today's way is librdkafka's: one request for each group (or slice of a big one), an object for each group-partition,
lists of them, Arrow arrays. The prototype sends one OffsetFetch for all groups of a coordinator (KIP-709) and reads the
answer's bytes as columns: a partition without metadata takes 20 bytes, so that those of a topic are one array of numpy.
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
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
import psutil
import pyarrow as pa

from benchmarks.common import in_child, machine, machine_line, options_parser, say, spread_cell, timed_runs
from benchmarks.sample_kafka import FULL, SMALL, cluster_of, fill
from lagwise.tables.raw import COMMITS
from lagwise_collectors.kafka.requests.client import KafkaClient
from lagwise_collectors.kafka.requests.committed_offsets import CommitReader
from lagwise_collectors.kafka.requests.errors import KafkaTrouble
from lagwise_collectors.kafka.requests.group_members import KafkaGroup
from lagwise_collectors.kafka.sample_rows import add_commits
from lagwise_collectors.kafka_protocol import wire
from lagwise_collectors.kafka_protocol.client import ProtocolClient
from lagwise_collectors.kafka_protocol.group_listing import list_every_group
from lagwise_collectors.kafka_protocol.schema import (
    BOOL,
    INT16,
    INT32,
    INT64,
    NULLABLE_STRING,
    STRING,
    Api,
    ArrayOf,
    Field,
    Row,
    rows_of,
    struct_of,
)
from lagwise_collectors.kafka_protocol.wire import MalformedAnswer, Reader
from lagwise_collectors.protocol import ErrorTally
from lagwise_collectors.sample_builder import SampleBuilder
from lagwise_sandbox.broker import KafkaBroker

#: A partition of an answer where its metadata is empty (a length of 1) or null (0), and no field is tagged.
_PARTITION = np.dtype(
    [("partition", ">i4"), ("committed", ">i8"), ("epoch", ">i4"), ("metadata", "u1"), ("error", ">i2"), ("tags", "u1")]
)
_PARTITION_FIELDS = struct_of(
    Field("partition_index", INT32),
    Field("committed_offset", INT64),
    Field("committed_leader_epoch", INT32),
    Field("metadata", NULLABLE_STRING),
    Field("error_code", INT16),
)
#: A topic's columns: name, partitions, committed offsets, leader epochs, error codes, metadata (None: none anywhere).
TopicColumns = tuple[str, Any, Any, Any, Any, list[str | None] | None]


class PeekingReader(Reader):
    """A reader that can look ahead."""

    def peek(self, count: int) -> bytes:
        """The next bytes, which stay to be read."""
        return self._data[self._at : self._at + count]


@dataclass(frozen=True, slots=True)
class OffsetFetch(Api):
    """OffsetFetch whose answer is read as columns."""

    def decode(self, body: bytes, version: int) -> Row:
        reader = PeekingReader(body)
        reader.fixed(wire.INT32)  # the throttle time
        groups = []
        for _ in range(reader.count(5, is_compact=True) or 0):
            name = reader.text(is_compact=True)
            topics = [_topic(reader, version) for _ in range(reader.count(3, is_compact=True) or 0)]
            groups.append({"group_id": name, "topics": topics, "error_code": reader.fixed(wire.INT16)})
            reader.skip_tagged_fields()
        reader.skip_tagged_fields()
        if reader.left:
            raise MalformedAnswer(f"{reader.left} bytes too many")
        return {"groups": groups}


def _topic(reader: PeekingReader, version: int) -> TopicColumns:
    name = reader.text(is_compact=True) or ""
    count = reader.count(_PARTITION.itemsize, is_compact=True) or 0
    # Every byte that can be of any length is looked at: the columns are right if each of them says "nothing".
    block = np.frombuffer(reader.peek(count * _PARTITION.itemsize), _PARTITION)
    if (block["metadata"] <= 1).all() and not block["tags"].any():
        reader.take(count * _PARTITION.itemsize)
        columns: TopicColumns = (name, block["partition"], block["committed"], block["epoch"], block["error"], None)
    else:
        rows = [_PARTITION_FIELDS.read(reader, version, is_flexible=True) or {} for _ in range(count)]
        numbers = (
            np.array([row[of] for row in rows], np.int64)
            for of in ("partition_index", "committed_offset", "committed_leader_epoch", "error_code")
        )
        columns = (name, *numbers, [row["metadata"] or None for row in rows])  # type: ignore[assignment]  # four numbers
    reader.skip_tagged_fields()
    return columns


OFFSET_FETCH = OffsetFetch(
    "OffsetFetch",
    key=9,
    lowest=8,
    highest=9,
    flexible_since=6,
    request=struct_of(
        Field(
            "groups",
            rows_of(
                Field("group_id", STRING),
                Field("member_id", NULLABLE_STRING, 9),
                Field("member_epoch", INT32, 9),
                Field(
                    "topics",
                    rows_of(Field("name", STRING), Field("partition_indexes", ArrayOf(INT32)), is_nullable=True),
                ),
            ),
        ),
        Field("require_stable", BOOL, 7),
    ),
    response=struct_of(),  # read by hand
)


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
    """What so many reads cost, the first ones left out: today's way learns in them which groups are big."""
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


def todays_way(bootstrap: str, layout: str) -> Callable[[], pa.Table]:
    """librdkafka's answers, as the source reads them."""
    cluster = cluster_of(bootstrap, layout)
    reader = CommitReader(KafkaClient(cluster))
    client, names = watched(bootstrap, layout)
    client.close()

    def read() -> pa.Table:
        sample = SampleBuilder(cluster)
        commits = reader.read([KafkaGroup(name) for name in names], sample.errors)
        assert not sample.errors, sample.errors.counts
        commits.next_record = [None] * len(commits.committed)
        add_commits(sample, commits, datetime.now(UTC))
        return sample.finish().rows(COMMITS)

    return read


def own_way(bootstrap: str, layout: str) -> Callable[[], pa.Table]:
    """One request for all groups of a coordinator, and its answer as columns."""
    cluster = cluster_of(bootstrap, layout)
    client, names = watched(bootstrap, layout)

    def request(some: list[str]) -> Row:
        groups = [{"group_id": name, "member_id": None, "member_epoch": -1, "topics": None} for name in some]
        return {"groups": groups, "require_stable": False}

    def read() -> pa.Table:
        sample = SampleBuilder(cluster)
        answers = client.ask_coordinators(
            OFFSET_FETCH, names, request, lambda answer: answer["groups"], client.deadline()
        )
        sample.add(COMMITS, columns_of_answers(answers), datetime.now(UTC))
        return sample.finish().rows(COMMITS)

    return read


def columns_of_answers(answers: dict[str, tuple[int, Row | KafkaTrouble]]) -> dict[str, pa.Array]:
    """The columns of ``commits``; topics and groups are dictionaries, whose numbers are repeated by numpy."""
    parts: list[tuple[int, int, TopicColumns]] = []
    topics: dict[str, int] = {}
    for number, (_, answer) in enumerate(answers.values()):
        if isinstance(answer, KafkaTrouble):
            raise answer
        for topic in answer["topics"]:
            if topic[4].any():
                raise SystemExit(f"topic {topic[0]} has errors")
            parts.append((number, topics.setdefault(topic[0], len(topics)), topic))
    sizes = [len(topic[1]) for _, _, topic in parts]
    committed = np.concatenate([topic[2] for _, _, topic in parts]).astype(np.int64)
    epochs = np.concatenate([topic[3] for _, _, topic in parts]).astype(np.int32)
    rows = len(committed)
    metadata = pa.nulls(rows, pa.string())
    if any(topic[5] is not None for _, _, topic in parts):
        texts = [topic[5] or [None] * len(topic[1]) for _, _, topic in parts]
        metadata = pa.array([text for some in texts for text in some], pa.string())

    def named(numbers: list[int], names: list[str]) -> pa.Array:
        return pa.DictionaryArray.from_arrays(pa.array(np.repeat(np.array(numbers, np.int32), sizes)), pa.array(names))

    return {
        "group": named([group for group, _, _ in parts], list(answers)),
        "topic": named([topic for _, topic, _ in parts], list(topics)),
        "partition": pa.array(np.concatenate([topic[1] for _, _, topic in parts]).astype(np.int32)),
        "committed": pa.array(committed, mask=committed < 0),
        "leader_epoch": pa.array(epochs, mask=epochs < 0),
        "metadata": metadata,
        "next_record": pa.nulls(rows, pa.int64()),
        "owner": pa.nulls(rows, pa.string()),
        "committed_at": pa.nulls(rows, pa.timestamp("us", "UTC")),
    }


WAYS: dict[str, Callable[[str, str], Callable[[], pa.Table]]] = {"today": todays_way, "own": own_way}


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
