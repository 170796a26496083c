"""Next records of all commits: numpy finds the few commits to which one may matter."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lagwise_collectors.kafka.requests.commit_columns import NONE, CommitColumns
from lagwise_collectors.kafka.requests.next_records import NEAR, LogPosition, NextRecords
from lagwise_collectors.kafka.requests.watermark_columns import WatermarkColumns

#: More than the partition numbers of a topic.
_PARTITION_NUMBERS = 1 << 31


def next_record_column(records: NextRecords, commits: CommitColumns, marks: WatermarkColumns) -> NDArray[np.int64]:
    """The offset of the next record (or the end) after each commit; NONE where it was not looked up."""
    numbers, names = commits.numbered_topics()
    topics = {name: number for number, name in enumerate(names)}
    keys = numbers.astype(np.int64) * _PARTITION_NUMBERS + commits.numbers("partition", np.int64)
    committed = commits.numbers("committed", np.int64)
    start, end = _ends(keys, topics, marks)
    distance = end - np.maximum(committed, start)
    is_near = (distance > 0) & (distance <= NEAR)
    is_marker_deleted = (start == end) & (end == committed + 1)
    is_known = np.isin(keys, _keys(topics, [(position.topic, position.partition) for position in records.known]))
    rows = ((committed > NONE) & (is_known | (end > NONE) & (is_near | is_marker_deleted))).nonzero()[0].tolist()
    positions = [
        LogPosition(names[key // _PARTITION_NUMBERS], key % _PARTITION_NUMBERS, offset)
        for key, offset in zip(keys[rows].tolist(), committed[rows].tolist(), strict=True)
    ]
    ends = {
        (position.topic, position.partition): (first, last)
        for position, first, last in zip(positions, start[rows].tolist(), end[rows].tolist(), strict=True)
        if last > NONE
    }
    column = np.full(len(keys), NONE, np.int64)
    column[rows] = [NONE if offset is None else offset for offset in records.after(positions, ends)]
    return column


def _ends(
    keys: NDArray[Any], topics: Mapping[str, int], marks: WatermarkColumns
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Log start and readable end of the partition of each key; NONE where they were not read."""
    numbers = np.array([topics.get(name, NONE) for name in marks.topics], np.int64)[marks.of_topic]
    is_read = (marks.log_start > NONE) & (marks.high_watermark > NONE) & (numbers > NONE)
    nothing = np.full(len(keys), NONE, np.int64)
    if not is_read.any():
        return nothing, nothing
    of_marks = (numbers * _PARTITION_NUMBERS + marks.partition)[is_read]
    is_stable_known = marks.last_stable > NONE
    readable = np.where(is_stable_known, np.minimum(marks.last_stable, marks.high_watermark), marks.high_watermark)
    starts, ends = marks.log_start[is_read], readable[is_read]
    order = of_marks.argsort()
    place = order[np.searchsorted(of_marks, keys, sorter=order).clip(max=len(order) - 1)]
    is_there = of_marks[place] == keys
    return np.where(is_there, starts[place], NONE), np.where(is_there, ends[place], NONE)


def _keys(topics: Mapping[str, int], pairs: Sequence[tuple[str, int]]) -> NDArray[np.int64]:
    """One number for each topic and partition, of those topics that have a number."""
    return np.array(
        [topics[topic] * _PARTITION_NUMBERS + partition for topic, partition in pairs if topic in topics], np.int64
    )
