"""Messages about offsets, after Kafka's own definitions (4.3).

They are the files ``NameRequest.json`` and ``NameResponse.json`` below ``clients/src/main/resources/common/message`` of
Kafka's sources. A test compares the two, field by field. Optional (tagged) fields are left out: none of them is needed.
"""

from lagwise_collectors.kafka_protocol.columns import ColumnsOf
from lagwise_collectors.kafka_protocol.schema import (
    BOOL,
    INT8,
    INT16,
    INT32,
    INT64,
    NULLABLE_STRING,
    STRING,
    Api,
    ArrayOf,
    Field,
    rows_of,
    struct_of,
)

_COMMITTED = ColumnsOf(
    struct_of(
        Field("name", STRING),
        Field(
            "partitions",
            rows_of(
                Field("partition_index", INT32),
                Field("committed_offset", INT64),
                Field("committed_leader_epoch", INT32, 5),
                Field("metadata", NULLABLE_STRING),
                Field("error_code", INT16),
            ),
        ),
    )
)

# Version 10 has ids in the place of topic names.
OFFSET_FETCH = Api(
    "OffsetFetch",
    key=9,
    lowest=2,
    highest=9,
    flexible_since=6,
    request=struct_of(
        Field("group_id", STRING, 0, 7),
        Field(
            "topics",
            rows_of(Field("name", STRING), Field("partition_indexes", ArrayOf(INT32)), is_nullable=True),
            0,
            7,
        ),
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
            8,
        ),
        Field("require_stable", BOOL, 7),
    ),
    response=struct_of(
        Field("throttle_time_ms", INT32, 3),
        Field("topics", _COMMITTED, 0, 7),
        Field("error_code", INT16, 0, 7),
        Field(
            "groups",
            rows_of(
                Field("group_id", STRING),
                Field("topics", _COMMITTED),
                Field("error_code", INT16),
            ),
            8,
        ),
    ),
)

# Later versions add timestamps with a special meaning, and a timeout for tiered storage.
LIST_OFFSETS = Api(
    "ListOffsets",
    key=2,
    lowest=2,
    highest=7,
    flexible_since=6,
    request=struct_of(
        Field("replica_id", INT32),
        Field("isolation_level", INT8, 2),
        Field(
            "topics",
            ColumnsOf(
                struct_of(
                    Field("name", STRING),
                    Field(
                        "partitions",
                        rows_of(
                            Field("partition_index", INT32),
                            Field("current_leader_epoch", INT32, 4),
                            Field("timestamp", INT64),
                        ),
                    ),
                )
            ),
        ),
    ),
    response=struct_of(
        Field("throttle_time_ms", INT32, 2),
        Field(
            "topics",
            ColumnsOf(
                struct_of(
                    Field("name", STRING),
                    Field(
                        "partitions",
                        rows_of(
                            Field("partition_index", INT32),
                            Field("error_code", INT16),
                            Field("timestamp", INT64, 1),
                            Field("offset", INT64, 1),
                            Field("leader_epoch", INT32, 4),
                        ),
                    ),
                )
            ),
        ),
    ),
)
