"""ListOffsets through librdkafka: watermarks, where our own requests are of no use."""

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from datetime import UTC, datetime
from typing import Any

import numpy as np
from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, IsolationLevel, KafkaError, TopicPartition
from numpy.typing import NDArray

from lagwise_collectors.kafka.requests.client import KafkaClient
from lagwise_collectors.kafka.requests.errors import KafkaTrouble, kind_of
from lagwise_collectors.kafka.requests.topic_columns import KafkaTopic
from lagwise_collectors.kafka.requests.watermark_columns import WatermarkColumns, without_offsets
from lagwise_collectors.protocol import ErrorTally

#: Partitions in one call: the cost of a call grows worse than linearly.
CHUNK = 250

_ALL = IsolationLevel.READ_UNCOMMITTED.value
_STABLE = IsolationLevel.READ_COMMITTED.value


def read_watermarks(
    client: KafkaClient,
    topics: Mapping[str, KafkaTopic],
    partitions_wanted: Mapping[str, Iterable[int]],
    errors: ErrorTally,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> WatermarkColumns:
    """A row for every partition of the topics.

    A partition without a leader is not asked for: the request would wait for one until it times out. Each leader's
    partitions are asked for by themselves, so that a broker that does not answer costs only its own.
    """
    marks = without_offsets(topics, partitions_wanted, errors)
    answered_at: list[datetime] = []

    def answered(future: "Future[Any]") -> None:
        if future.exception() is None:
            answered_at.append(clock())

    asked: list[tuple[NDArray[np.int64], dict[tuple[str, int], int], Future[Any]]] = []
    for column, offset, isolation in (
        (marks.log_start, OFFSET_BEGINNING, _ALL),
        (marks.high_watermark, OFFSET_END, _ALL),
        (marks.last_stable, OFFSET_END, _STABLE),
    ):
        for rows in marks.by_leader().values():
            for chunk in (rows[i : i + CHUNK].tolist() for i in range(0, len(rows), CHUNK)):
                pairs = {(marks.topics[marks.of_topic[row]], int(marks.partition[row])): row for row in chunk}
                specs = [TopicPartition(topic, number, offset) for topic, number in pairs]
                future = client.request("list_offsets", specs, isolation_level_value=isolation)
                future.add_done_callback(answered)
                asked.append((column, pairs, future))
    for column, pairs, future in asked:
        try:
            answer = client.wait(future)
        except KafkaTrouble as trouble:
            first = next(iter(pairs.values()))
            errors.note(trouble.kind, f"watermarks of {marks.named(first)} and others: {trouble}", len(pairs))
            for row in pairs.values():
                marks.error[row] = trouble.kind
            continue
        for tp, found in answer.items():
            row = pairs[tp.topic, tp.partition]
            if isinstance(found, KafkaError):
                marks.error[row] = kind_of(found)
                errors.note(kind_of(found), f"watermarks of {marks.named(row)}: {found.str()}")
            elif found.offset >= 0:
                column[row] = found.offset
    marks.read_at = max(answered_at, default=None)
    return marks
