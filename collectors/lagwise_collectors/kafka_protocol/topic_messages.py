"""Messages about brokers, topics and their partitions, after Kafka's own definitions (4.3).

They are the files ``NameRequest.json`` and ``NameResponse.json`` below ``clients/src/main/resources/common/message`` of
Kafka's sources. A test compares the two, field by field. Optional (tagged) fields are left out: none of them is needed.
"""

from lagwise_collectors.kafka_protocol.columns import ColumnsOf
from lagwise_collectors.kafka_protocol.schema import (
    BOOL,
    INT8,
    INT16,
    INT32,
    NULLABLE_STRING,
    STRING,
    UUID,
    Api,
    ArrayOf,
    Field,
    rows_of,
    struct_of,
)

METADATA = Api(
    "Metadata",
    key=3,
    lowest=4,
    highest=12,
    flexible_since=9,
    request=struct_of(
        Field("topics", rows_of(Field("topic_id", UUID, 10), Field("name", NULLABLE_STRING), is_nullable=True)),
        Field("allow_auto_topic_creation", BOOL, 4),
        Field("include_cluster_authorized_operations", BOOL, 8, 10),
        Field("include_topic_authorized_operations", BOOL, 8),
    ),
    response=struct_of(
        Field("throttle_time_ms", INT32, 3),
        Field(
            "brokers",
            rows_of(
                Field("node_id", INT32), Field("host", STRING), Field("port", INT32), Field("rack", NULLABLE_STRING, 1)
            ),
        ),
        Field("cluster_id", NULLABLE_STRING, 2),
        Field("controller_id", INT32, 1),
        Field(
            "topics",
            ColumnsOf(
                struct_of(
                    Field("error_code", INT16),
                    Field("name", NULLABLE_STRING),
                    Field("topic_id", UUID, 10),
                    Field("is_internal", BOOL, 1),
                    Field(
                        "partitions",
                        rows_of(
                            Field("error_code", INT16),
                            Field("partition_index", INT32),
                            Field("leader_id", INT32),
                            Field("leader_epoch", INT32, 7),
                            Field("replica_nodes", ArrayOf(INT32)),
                            Field("isr_nodes", ArrayOf(INT32)),
                            Field("offline_replicas", ArrayOf(INT32), 5),
                        ),
                    ),
                    Field("topic_authorized_operations", INT32, 8),
                )
            ),
        ),
        Field("cluster_authorized_operations", INT32, 8, 10),
    ),
)

DESCRIBE_CONFIGS = Api(
    "DescribeConfigs",
    key=32,
    lowest=1,
    highest=4,
    flexible_since=4,
    request=struct_of(
        Field(
            "resources",
            rows_of(
                Field("resource_type", INT8),
                Field("resource_name", STRING),
                Field("configuration_keys", ArrayOf(STRING, is_nullable=True)),
            ),
        ),
        Field("include_synonyms", BOOL, 1),
        Field("include_documentation", BOOL, 3),
    ),
    response=struct_of(
        Field("throttle_time_ms", INT32),
        Field(
            "results",
            rows_of(
                Field("error_code", INT16),
                Field("error_message", NULLABLE_STRING),
                Field("resource_type", INT8),
                Field("resource_name", STRING),
                Field(
                    "configs",
                    rows_of(
                        Field("name", STRING),
                        Field("value", NULLABLE_STRING),
                        Field("read_only", BOOL),
                        Field("config_source", INT8, 1),
                        Field("is_sensitive", BOOL),
                        Field(
                            "synonyms",
                            rows_of(Field("name", STRING), Field("value", NULLABLE_STRING), Field("source", INT8)),
                            1,
                        ),
                        Field("config_type", INT8, 3),
                        Field("documentation", NULLABLE_STRING, 3),
                    ),
                ),
            ),
        ),
    ),
)
