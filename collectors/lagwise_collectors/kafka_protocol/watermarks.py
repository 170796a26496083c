"""ListOffsets: the watermarks of all partitions by three requests to each leader, straight into columns."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lagwise_collectors.kafka.requests.commit_columns import NONE
from lagwise_collectors.kafka.requests.errors import KafkaTrouble
from lagwise_collectors.kafka.requests.topic_columns import KafkaTopic
from lagwise_collectors.kafka.requests.watermark_columns import WatermarkColumns, without_offsets
from lagwise_collectors.kafka_protocol.client import REFUSALS, Answer, ProtocolClient
from lagwise_collectors.kafka_protocol.connection import trouble_of_code
from lagwise_collectors.kafka_protocol.offset_messages import LIST_OFFSETS
from lagwise_collectors.kafka_protocol.topics import describe_topics
from lagwise_collectors.kafka_protocol.wire import MalformedAnswer
from lagwise_collectors.protocol import ErrorTally

#: Timestamps with a special meaning.
_EARLIEST, _LATEST = -2, -1
#: Isolation levels.
_UNCOMMITTED, _COMMITTED = 0, 1
#: What is asked: name of the column, timestamp and isolation level.
_ASKED = (
    ("log_start", _EARLIEST, _UNCOMMITTED),
    ("high_watermark", _LATEST, _UNCOMMITTED),
    ("last_stable", _LATEST, _COMMITTED),
)
#: More than the partition numbers of a topic.
_PARTITION_NUMBERS = 1 << 31
#: Troubles after which another broker may be the leader.
_LEADER_MOVED = frozenset({"leader_moved", "unreachable"})


@dataclass(frozen=True, slots=True)
class _Failure:
    """Why some rows were not read."""

    trouble: KafkaTrouble
    rows: NDArray[np.int64]


def read_watermarks(
    client: ProtocolClient,
    topics: Mapping[str, KafkaTopic],
    partitions_wanted: Mapping[str, Iterable[int]],
    errors: ErrorTally,
    clock: Callable[[], datetime],
) -> WatermarkColumns:
    """A row for every partition of the topics. A broker that does not answer costs only its own partitions; where a
    leader has moved, the new one is asked, once.

    Raises KafkaTrouble, before anything is noted, where the brokers do not go together with our requests.
    """
    began = clock()
    noted = ErrorTally()
    marks = without_offsets(topics, partitions_wanted, noted)
    failures, is_any_read = _read(client, marks, marks.by_leader())
    moved = _moved(client, marks, failures)
    if len(moved):
        failures = [replace(one, rows=rows) for one in failures if len(rows := one.rows[~np.isin(one.rows, moved)])]
        of_leaders = {leader: rows[np.isin(rows, moved)] for leader, rows in marks.by_leader().items()}
        again, is_read_again = _read(client, marks, {leader: rows for leader, rows in of_leaders.items() if len(rows)})
        failures, is_any_read = failures + again, is_any_read or is_read_again
    errors.add(noted)
    for failure in failures:
        named = marks.named(int(failure.rows[0])) + (" and others" if len(failure.rows) > 1 else "")
        errors.note(failure.trouble.kind, f"watermarks of {named}: {failure.trouble}", len(failure.rows))
        for row in failure.rows.tolist():
            marks.error[row] = failure.trouble.kind
    if is_any_read and client.seconds_since_answer is not None:
        # No answer is older than its question, and so than the commits, even if the clock was set back meanwhile.
        marks.read_at = max(began, clock() - timedelta(seconds=client.seconds_since_answer))
    return marks


def _read(
    client: ProtocolClient, marks: WatermarkColumns, by_leader: Mapping[int, NDArray[np.int64]]
) -> tuple[list[_Failure], bool]:
    """Fill in what these leaders answer; what failed, and whether anything did not."""
    asked = [
        (name, leader, rows, timestamp, isolation)
        for name, timestamp, isolation in _ASKED
        for leader, rows in by_leader.items()
    ]
    requests = [
        (leader, _request(marks, rows, timestamp, isolation)) for _, leader, rows, timestamp, isolation in asked
    ]
    # One at a time to each broker: a request about many partitions fills the buffers of a connection, and a broker that
    # still writes an answer reads no other request.
    answers = client.ask_all(LIST_OFFSETS, requests, client.deadline(), under_way=1)
    failures: list[_Failure] = []
    for (name, _, rows, _, _), answer in zip(asked, answers, strict=True):
        if isinstance(answer, KafkaTrouble) and answer.kind in REFUSALS:
            raise answer
        failures += _fill(getattr(marks, name), marks, rows, answer)
    return failures, any(not isinstance(answer, KafkaTrouble) for answer in answers)


def _request(marks: WatermarkColumns, rows: NDArray[np.int64], timestamp: int, isolation: int) -> dict[str, Any]:
    # The rows are sorted by topic.
    numbers, counts = np.unique(marks.of_topic[rows], return_counts=True)
    columns = {
        "partition_index": marks.partition[rows],
        "current_leader_epoch": np.full(len(rows), NONE),
        "timestamp": np.full(len(rows), timestamp),
    }
    topics = {"name": [marks.topics[one] for one in numbers.tolist()], "rows": counts.tolist(), "partitions": columns}
    return {"replica_id": NONE, "isolation_level": isolation, "topics": topics}


def _fill(
    column: NDArray[np.int64], marks: WatermarkColumns, rows: NDArray[np.int64], answer: Answer
) -> list[_Failure]:
    """Fill in the offsets of one answer, whose partitions come in any order."""
    if isinstance(answer, KafkaTrouble):
        return [_Failure(answer, rows)]
    found, columns = answer["topics"], answer["topics"]["partitions"]
    numbers = {name: number for number, name in enumerate(marks.topics)}
    of_topic = np.repeat(np.array([numbers.get(name, NONE) for name in found["name"]], np.int64), found["rows"])
    keys = marks.of_topic[rows] * _PARTITION_NUMBERS + marks.partition[rows]
    found_keys = of_topic * _PARTITION_NUMBERS + columns["partition_index"]
    _, at, there = np.intersect1d(found_keys, keys, return_indices=True)
    failures = []
    if len(there) < len(rows):
        missing = MalformedAnswer("the broker's answer leaves them out")
        failures.append(_Failure(missing, np.delete(rows, there)))
    there, codes, offsets = rows[there], columns["error_code"][at], columns["offset"][at]
    column[there] = np.where(codes == 0, np.maximum(offsets, NONE), NONE)
    for code in np.unique(codes[codes != 0]).tolist():
        failures.append(_Failure(trouble_of_code(code, None, "ListOffsets"), there[codes == code]))
    return failures


def _moved(client: ProtocolClient, marks: WatermarkColumns, failures: list[_Failure]) -> NDArray[np.int64]:
    """The rows that failed and have another leader by now, which is filled in."""
    suspects = [one.rows for one in failures if one.trouble.kind in _LEADER_MOVED]
    if not suspects:
        return np.empty(0, np.int64)
    rows = np.unique(np.concatenate(suspects))
    names = {marks.topics[one] for one in np.unique(marks.of_topic[rows]).tolist()}
    topics = describe_topics(client, names, ErrorTally())
    moved = []
    for row in rows.tolist():
        topic = topics[marks.topics[marks.of_topic[row]]]
        place = int(np.searchsorted(topic.partition, marks.partition[row]))
        if place < topic.partitions and topic.partition[place] == marks.partition[row]:
            leader = topic.leader[place]
            if leader not in (NONE, marks.leader[row]):
                marks.leader[row] = leader
                moved.append(row)
    return np.array(moved, np.int64)
