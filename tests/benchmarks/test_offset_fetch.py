"""The prototype's reading of OffsetFetch as columns is that of the declarations, with and without metadata."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.offset_fetch import OFFSET_FETCH, columns_of_answers
from lagwise_collectors.kafka_protocol.schema import (
    INT16,
    INT32,
    INT64,
    NULLABLE_STRING,
    STRING,
    Field,
    rows_of,
    struct_of,
)
from lagwise_collectors.kafka_protocol.wire import MalformedAnswer, Writer

_ANSWER = struct_of(
    Field("throttle_time_ms", INT32),
    Field(
        "groups",
        rows_of(
            Field("group_id", STRING),
            Field(
                "topics",
                rows_of(
                    Field("name", STRING),
                    Field(
                        "partitions",
                        rows_of(
                            Field("partition_index", INT32),
                            Field("committed_offset", INT64),
                            Field("committed_leader_epoch", INT32),
                            Field("metadata", NULLABLE_STRING),
                            Field("error_code", INT16),
                        ),
                    ),
                ),
            ),
            Field("error_code", INT16),
        ),
    ),
)
_PARTITIONS = st.fixed_dictionaries(
    {
        "partition_index": st.integers(0, 2**31 - 1),
        "committed_offset": st.integers(-1, 2**63 - 1),
        "committed_leader_epoch": st.integers(-1, 2**31 - 1),
        "metadata": st.none() | st.just("") | st.text(max_size=200),
        "error_code": st.just(0),
    }
)
_TOPICS = st.fixed_dictionaries({"name": st.text(max_size=9), "partitions": st.lists(_PARTITIONS, max_size=4)})
_GROUPS = st.lists(
    st.fixed_dictionaries(
        {"group_id": st.text(max_size=9), "topics": st.lists(_TOPICS, min_size=1, max_size=3), "error_code": st.just(0)}
    ),
    min_size=1,
    max_size=3,
    unique_by=lambda group: group["group_id"],
)


def body_of(groups: list[dict[str, Any]]) -> bytes:
    writer = Writer()
    _ANSWER.write(writer, {"throttle_time_ms": 0, "groups": groups}, 8, is_flexible=True)
    return bytes(writer.data)


@settings(max_examples=100)
@given(_GROUPS)
def test_columns_are_the_rows_of_the_answer(groups: list[dict[str, Any]]) -> None:
    answer = OFFSET_FETCH.decode(body_of(groups), 8)
    columns = columns_of_answers({group["group_id"]: (1, group) for group in answer["groups"]})
    names = ("group", "topic", "partition", "committed", "leader_epoch", "metadata")
    seen = list(zip(*(columns[name].to_pylist() for name in names), strict=True))

    def known(number: int) -> int | None:
        return None if number < 0 else number

    assert seen == [
        (
            group["group_id"],
            topic["name"],
            one["partition_index"],
            known(one["committed_offset"]),
            known(one["committed_leader_epoch"]),
            one["metadata"] or None,
        )
        for group in groups
        for topic in group["topics"]
        for one in topic["partitions"]
    ]


@pytest.mark.parametrize("cut", [1, 5, 17])
def test_an_answer_that_ends_early_is_malformed(cut: int) -> None:
    partition = {
        "partition_index": 0,
        "committed_offset": 5,
        "committed_leader_epoch": 0,
        "metadata": "",
        "error_code": 0,
    }
    body = body_of([{"group_id": "g", "topics": [{"name": "t", "partitions": [partition] * 3}], "error_code": 0}])
    with pytest.raises(MalformedAnswer):
        OFFSET_FETCH.decode(body[:-cut], 8)
