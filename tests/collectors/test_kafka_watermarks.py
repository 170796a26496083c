"""Answers of brokers on watermarks become the right rows, whatever their order and whatever they leave out."""

import random

import numpy as np
import pyarrow as pa
import pytest

from lagwise_collectors.kafka.requests.errors import KafkaTrouble
from lagwise_collectors.kafka.requests.topic_columns import NODES, KafkaTopic
from lagwise_collectors.kafka.requests.watermark_columns import WatermarkColumns, without_offsets
from lagwise_collectors.kafka_protocol import watermarks
from lagwise_collectors.kafka_protocol.offset_messages import LIST_OFFSETS
from lagwise_collectors.kafka_protocol.schema import Row
from lagwise_collectors.protocol import ErrorTally
from tests.collectors.test_kafka_protocol import encoded

PARTITIONS = 40


def topic(name: str, leaders: list[int]) -> KafkaTopic:
    nodes = pa.array([[1, 2]] * len(leaders), NODES)
    return KafkaTopic(
        name, f"id-of-{name}", np.arange(len(leaders), dtype=np.int32), np.array(leaders, np.int32), nodes, nodes
    )


@pytest.fixture
def marks() -> WatermarkColumns:
    topics = {name: topic(name, [1, 2] * (PARTITIONS // 2)) for name in ("a", "b")}
    return without_offsets(topics, {}, ErrorTally())


def answer(partitions: dict[str, dict[int, tuple[int, int]]]) -> Row:
    """An answer with the error and the offset of each partition, in an order of its own."""
    chance = random.Random(7)
    topics = [
        {
            "name": name,
            "partitions": [
                {
                    "partition_index": number,
                    "error_code": error,
                    "timestamp": -1,
                    "offset": offset,
                    "leader_epoch": 0,
                }
                for number, (error, offset) in chance.sample(sorted(those.items()), len(those))
            ],
        }
        for name, those in chance.sample(sorted(partitions.items()), len(partitions))
    ]
    return LIST_OFFSETS.decode(encoded(LIST_OFFSETS, 7, {"throttle_time_ms": 0, "topics": topics}), 7)


def test_an_answer_in_any_order_fills_the_rows_of_its_leader(marks: WatermarkColumns) -> None:
    rows = marks.by_leader()[2]
    everything = {name: {p: (0, 100 * p + (name == "b")) for p in range(1, PARTITIONS, 2)} for name in ("a", "b")}
    assert watermarks._fill(marks.high_watermark, marks, rows, answer(everything)) == []
    expected = [(-1 if p % 2 == 0 else 100 * p + is_b) for is_b in (0, 1) for p in range(PARTITIONS)]
    assert marks.high_watermark.tolist() == expected
    assert marks.log_start.tolist() == [-1] * 2 * PARTITIONS


def test_what_failed_was_left_out_or_was_not_asked_for(marks: WatermarkColumns) -> None:
    rows = marks.by_leader()[1]
    some = {p: (0, p) for p in range(0, PARTITIONS, 2)}
    lying = {"a": {**some, 2: (6, 5), 4: (6, -1), 7: (0, 7), 99: (0, 9)}, "b": {0: (0, 0)}, "never": {0: (0, 1)}}
    failures = watermarks._fill(marks.log_start, marks, rows, answer(lying))
    found = {one.trouble.kind: [marks.named(row) for row in one.rows.tolist()] for one in failures}
    assert found == {
        "malformed": [f"b[{p}]" for p in range(2, PARTITIONS, 2)],
        "leader_moved": ["a[2]", "a[4]"],
    }
    read = {marks.named(row): int(marks.log_start[row]) for row in range(len(marks)) if marks.log_start[row] >= 0}
    assert read == {**{f"a[{p}]": p for p in range(0, PARTITIONS, 2) if p not in (2, 4)}, "b[0]": 0}


def test_a_leader_that_does_not_answer_costs_its_own_rows(marks: WatermarkColumns) -> None:
    rows = marks.by_leader()[1]
    [failure] = watermarks._fill(marks.log_start, marks, rows, KafkaTrouble("timeout", "silent"))
    assert (failure.trouble.kind, failure.rows.tolist()) == ("timeout", rows.tolist())


def test_topics_that_could_not_be_described_and_partitions_without_a_leader_have_their_error() -> None:
    errors = ErrorTally()
    topics = {"lost": KafkaTopic("lost", error="unknown_topic"), "half": topic("half", [1, -1])}
    marks = without_offsets(topics, {"lost": {5, 2}}, errors)
    assert [marks.named(row) for row in range(len(marks))] == ["half[0]", "half[1]", "lost[2]", "lost[5]"]
    assert marks.error == [None, "leader_not_available", "unknown_topic", "unknown_topic"]
    assert marks.replicas.to_pylist() == [[1, 2], [1, 2], None, None]
    assert {node: rows.tolist() for node, rows in marks.by_leader().items()} == {1: [0]}
    assert errors.counts == {"leader_not_available": 1}
