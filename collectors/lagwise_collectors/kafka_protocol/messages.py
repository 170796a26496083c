"""Messages about connections and coordinators, after Kafka's own definitions (4.3).

They are the files ``NameRequest.json`` and ``NameResponse.json`` below ``clients/src/main/resources/common/message`` of
Kafka's sources. A test compares the two, field by field. Optional (tagged) fields are left out: none of them is needed.
"""

from lagwise_collectors.kafka_protocol.schema import (
    BYTES,
    INT8,
    INT16,
    INT32,
    INT64,
    LATEST,
    NULLABLE_STRING,
    STRING,
    Api,
    ArrayOf,
    Field,
    rows_of,
    struct_of,
)

API_VERSIONS = Api(
    "ApiVersions",
    key=18,
    lowest=0,
    highest=3,
    flexible_since=3,
    request=struct_of(Field("client_software_name", STRING, 3), Field("client_software_version", STRING, 3)),
    response=struct_of(
        Field("error_code", INT16),
        Field("api_keys", rows_of(Field("api_key", INT16), Field("min_version", INT16), Field("max_version", INT16))),
        Field("throttle_time_ms", INT32, 1),
    ),
)

SASL_HANDSHAKE = Api(
    "SaslHandshake",
    key=17,
    lowest=1,
    highest=1,
    flexible_since=LATEST,
    request=struct_of(Field("mechanism", STRING)),
    response=struct_of(Field("error_code", INT16), Field("mechanisms", ArrayOf(STRING))),
)

SASL_AUTHENTICATE = Api(
    "SaslAuthenticate",
    key=36,
    lowest=0,
    highest=2,
    flexible_since=2,
    request=struct_of(Field("auth_bytes", BYTES)),
    response=struct_of(
        Field("error_code", INT16),
        Field("error_message", NULLABLE_STRING),
        Field("auth_bytes", BYTES),
        Field("session_lifetime_ms", INT64, 1),
    ),
)

FIND_COORDINATOR = Api(
    "FindCoordinator",
    key=10,
    lowest=1,
    highest=6,
    flexible_since=3,
    request=struct_of(
        Field("key", STRING, 0, 3), Field("key_type", INT8, 1), Field("coordinator_keys", ArrayOf(STRING), 4)
    ),
    response=struct_of(
        Field("throttle_time_ms", INT32, 1),
        Field("error_code", INT16, 0, 3),
        Field("error_message", NULLABLE_STRING, 1, 3),
        Field("node_id", INT32, 0, 3),
        Field("host", STRING, 0, 3),
        Field("port", INT32, 0, 3),
        Field(
            "coordinators",
            rows_of(
                Field("key", STRING, 4),
                Field("node_id", INT32, 4),
                Field("host", STRING, 4),
                Field("port", INT32, 4),
                Field("error_code", INT16, 4),
                Field("error_message", NULLABLE_STRING, 4),
            ),
            4,
        ),
    ),
)
