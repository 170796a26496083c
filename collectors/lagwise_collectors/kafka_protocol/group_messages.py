"""Messages about groups, after Kafka's own definitions (4.3).

They are the files ``NameRequest.json`` and ``NameResponse.json`` below ``clients/src/main/resources/common/message`` of
Kafka's sources. A test compares the two, field by field. Optional (tagged) fields are left out: none of them is needed.
"""

from lagwise_collectors.kafka_protocol.schema import (
    BOOL,
    BYTES,
    INT8,
    INT16,
    INT32,
    INT64,
    NULLABLE_STRING,
    STRING,
    UINT16,
    UUID,
    Api,
    ArrayOf,
    Field,
    Struct,
    rows_of,
    struct_of,
)

LIST_GROUPS = Api(
    "ListGroups",
    key=16,
    lowest=0,
    highest=5,
    flexible_since=3,
    request=struct_of(Field("states_filter", ArrayOf(STRING), 4), Field("types_filter", ArrayOf(STRING), 5)),
    response=struct_of(
        Field("throttle_time_ms", INT32, 1),
        Field("error_code", INT16),
        Field(
            "groups",
            rows_of(
                Field("group_id", STRING),
                Field("protocol_type", STRING),
                Field("group_state", STRING, 4),
                Field("group_type", STRING, 5),
            ),
        ),
    ),
)

#: Groups of the classic protocol, of whatever protocol type.
DESCRIBE_GROUPS = Api(
    "DescribeGroups",
    key=15,
    lowest=0,
    highest=6,
    flexible_since=5,
    request=struct_of(Field("groups", ArrayOf(STRING)), Field("include_authorized_operations", BOOL, 3)),
    response=struct_of(
        Field("throttle_time_ms", INT32, 1),
        Field(
            "groups",
            rows_of(
                Field("error_code", INT16),
                Field("error_message", NULLABLE_STRING, 6),
                Field("group_id", STRING),
                Field("group_state", STRING),
                Field("protocol_type", STRING),
                Field("protocol_data", STRING),
                Field(
                    "members",
                    rows_of(
                        Field("member_id", STRING),
                        Field("group_instance_id", NULLABLE_STRING, 4),
                        Field("client_id", STRING),
                        Field("client_host", STRING),
                        Field("member_metadata", BYTES),
                        Field("member_assignment", BYTES),
                    ),
                ),
                Field("authorized_operations", INT32, 3),
            ),
        ),
    ),
)

_CONSUMER_ASSIGNMENT = struct_of(
    Field(
        "topic_partitions",
        rows_of(Field("topic_id", UUID), Field("topic_name", STRING), Field("partitions", ArrayOf(INT32))),
    )
)

#: Groups of the protocol of KIP-848.
CONSUMER_GROUP_DESCRIBE = Api(
    "ConsumerGroupDescribe",
    key=69,
    lowest=0,
    highest=1,
    flexible_since=0,
    request=struct_of(Field("group_ids", ArrayOf(STRING)), Field("include_authorized_operations", BOOL)),
    response=struct_of(
        Field("throttle_time_ms", INT32),
        Field(
            "groups",
            rows_of(
                Field("error_code", INT16),
                Field("error_message", NULLABLE_STRING),
                Field("group_id", STRING),
                Field("group_state", STRING),
                Field("group_epoch", INT32),
                Field("assignment_epoch", INT32),
                Field("assignor_name", STRING),
                Field(
                    "members",
                    rows_of(
                        Field("member_id", STRING),
                        Field("instance_id", NULLABLE_STRING),
                        Field("rack_id", NULLABLE_STRING),
                        Field("member_epoch", INT32),
                        Field("client_id", STRING),
                        Field("client_host", STRING),
                        Field("subscribed_topic_names", ArrayOf(STRING)),
                        Field("subscribed_topic_regex", NULLABLE_STRING),
                        Field("assignment", _CONSUMER_ASSIGNMENT),
                        Field("target_assignment", _CONSUMER_ASSIGNMENT),
                        Field("member_type", INT8, 1),
                    ),
                ),
                Field("authorized_operations", INT32),
            ),
        ),
    ),
)

_SHARE_TOPIC_PARTITIONS = struct_of(
    Field("topic_id", UUID), Field("topic_name", STRING), Field("partitions", ArrayOf(INT32))
)
_SHARE_ASSIGNMENT = struct_of(Field("topic_partitions", ArrayOf(_SHARE_TOPIC_PARTITIONS)))
SHARE_GROUP_DESCRIBE = Api(
    "ShareGroupDescribe",
    key=77,
    lowest=1,
    highest=1,
    flexible_since=0,
    request=struct_of(Field("group_ids", ArrayOf(STRING)), Field("include_authorized_operations", BOOL)),
    response=struct_of(
        Field("throttle_time_ms", INT32),
        Field(
            "groups",
            rows_of(
                Field("error_code", INT16),
                Field("error_message", NULLABLE_STRING),
                Field("group_id", STRING),
                Field("group_state", STRING),
                Field("group_epoch", INT32),
                Field("assignment_epoch", INT32),
                Field("assignor_name", STRING),
                Field(
                    "members",
                    rows_of(
                        Field("member_id", STRING),
                        Field("rack_id", NULLABLE_STRING),
                        Field("member_epoch", INT32),
                        Field("client_id", STRING),
                        Field("client_host", STRING),
                        Field("subscribed_topic_names", ArrayOf(STRING)),
                        Field("assignment", _SHARE_ASSIGNMENT),
                    ),
                ),
                Field("authorized_operations", INT32),
            ),
        ),
    ),
)

#: KIP-932; with the lag since KIP-1226.
DESCRIBE_SHARE_GROUP_OFFSETS = Api(
    "DescribeShareGroupOffsets",
    key=90,
    lowest=0,
    highest=1,
    flexible_since=0,
    request=struct_of(
        Field(
            "groups",
            rows_of(
                Field("group_id", STRING),
                Field(
                    "topics",
                    rows_of(Field("topic_name", STRING), Field("partitions", ArrayOf(INT32)), is_nullable=True),
                ),
            ),
        )
    ),
    response=struct_of(
        Field("throttle_time_ms", INT32),
        Field(
            "groups",
            rows_of(
                Field("group_id", STRING),
                Field(
                    "topics",
                    rows_of(
                        Field("topic_name", STRING),
                        Field("topic_id", UUID),
                        Field(
                            "partitions",
                            rows_of(
                                Field("partition_index", INT32),
                                Field("start_offset", INT64),
                                Field("leader_epoch", INT32),
                                Field("lag", INT64, 1),
                                Field("error_code", INT16),
                                Field("error_message", NULLABLE_STRING),
                            ),
                        ),
                    ),
                ),
                Field("error_code", INT16),
                Field("error_message", NULLABLE_STRING),
            ),
        ),
    ),
)

_STREAMS_ENDPOINT = struct_of(Field("host", STRING), Field("port", UINT16))
_STREAMS_TASK_OFFSET = struct_of(Field("subtopology_id", STRING), Field("partition", INT32), Field("offset", INT64))
_STREAMS_TASK_IDS = struct_of(Field("subtopology_id", STRING), Field("partitions", ArrayOf(INT32)))
_STREAMS_ASSIGNMENT = struct_of(
    Field("active_tasks", ArrayOf(_STREAMS_TASK_IDS)),
    Field("standby_tasks", ArrayOf(_STREAMS_TASK_IDS)),
    Field("warmup_tasks", ArrayOf(_STREAMS_TASK_IDS)),
)
_STREAMS_KEY_VALUE = struct_of(Field("key", STRING), Field("value", STRING))
_STREAMS_TOPIC_INFO = struct_of(
    Field("name", STRING),
    Field("partitions", INT32),
    Field("replication_factor", INT16),
    Field("topic_configs", ArrayOf(_STREAMS_KEY_VALUE)),
)
STREAMS_GROUP_DESCRIBE = Api(
    "StreamsGroupDescribe",
    key=89,
    lowest=0,
    highest=0,
    flexible_since=0,
    request=struct_of(Field("group_ids", ArrayOf(STRING)), Field("include_authorized_operations", BOOL)),
    response=struct_of(
        Field("throttle_time_ms", INT32),
        Field(
            "groups",
            rows_of(
                Field("error_code", INT16),
                Field("error_message", NULLABLE_STRING),
                Field("group_id", STRING),
                Field("group_state", STRING),
                Field("group_epoch", INT32),
                Field("assignment_epoch", INT32),
                Field(
                    "topology",
                    struct_of(
                        Field("epoch", INT32),
                        Field(
                            "subtopologies",
                            rows_of(
                                Field("subtopology_id", STRING),
                                Field("source_topics", ArrayOf(STRING)),
                                Field("repartition_sink_topics", ArrayOf(STRING)),
                                Field("state_changelog_topics", ArrayOf(_STREAMS_TOPIC_INFO)),
                                Field("repartition_source_topics", ArrayOf(_STREAMS_TOPIC_INFO)),
                                is_nullable=True,
                            ),
                        ),
                        is_nullable=True,
                    ),
                ),
                Field(
                    "members",
                    rows_of(
                        Field("member_id", STRING),
                        Field("member_epoch", INT32),
                        Field("instance_id", NULLABLE_STRING),
                        Field("rack_id", NULLABLE_STRING),
                        Field("client_id", STRING),
                        Field("client_host", STRING),
                        Field("topology_epoch", INT32),
                        Field("process_id", STRING),
                        Field("user_endpoint", Struct(_STREAMS_ENDPOINT.fields, is_nullable=True)),
                        Field("client_tags", ArrayOf(_STREAMS_KEY_VALUE)),
                        Field("task_offsets", ArrayOf(_STREAMS_TASK_OFFSET)),
                        Field("task_end_offsets", ArrayOf(_STREAMS_TASK_OFFSET)),
                        Field("assignment", _STREAMS_ASSIGNMENT),
                        Field("target_assignment", _STREAMS_ASSIGNMENT),
                        Field("is_classic", BOOL),
                    ),
                ),
                Field("authorized_operations", INT32),
            ),
        ),
    ),
)
