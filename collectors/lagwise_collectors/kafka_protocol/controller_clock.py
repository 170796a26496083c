"""How far the clock of the active controller is ahead of ours: the one time of its own that a broker answers with.

DescribeQuorum reports when each controller was last up to date, by the leader's clock: of the leader itself, now.
"""

from collections.abc import Callable
from datetime import datetime
from typing import NamedTuple

from lagwise_collectors.kafka.requests.errors import KafkaTrouble
from lagwise_collectors.kafka_protocol.client import ProtocolClient
from lagwise_collectors.kafka_protocol.schema import (
    INT16,
    INT32,
    INT64,
    STRING,
    Api,
    Field,
    rows_of,
    struct_of,
)

_REPLICAS = rows_of(
    Field("replica_id", INT32),
    Field("log_end_offset", INT64),
    Field("last_fetch_timestamp", INT64, 1),
    Field("last_caught_up_timestamp", INT64, 1),
)
DESCRIBE_QUORUM = Api(
    "DescribeQuorum",
    key=55,
    lowest=1,
    highest=1,
    flexible_since=0,
    request=struct_of(
        Field(
            "topics",
            rows_of(Field("topic_name", STRING), Field("partitions", rows_of(Field("partition_index", INT32)))),
        )
    ),
    response=struct_of(
        Field("error_code", INT16),
        Field(
            "topics",
            rows_of(
                Field("topic_name", STRING),
                Field(
                    "partitions",
                    rows_of(
                        Field("partition_index", INT32),
                        Field("error_code", INT16),
                        Field("leader_id", INT32),
                        Field("leader_epoch", INT32),
                        Field("high_watermark", INT64),
                        Field("current_voters", _REPLICAS),
                        Field("observers", _REPLICAS),
                    ),
                ),
            ),
        ),
    ),
)
_METADATA_LOG = {"topics": [{"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}]}


class ControllerClock(NamedTuple):
    """The active controller, and by how much its clock is ahead of ours; negative is behind."""

    node: int
    ahead_seconds: float


def read_controller_clock(client: ProtocolClient, clock: Callable[[], datetime]) -> ControllerClock | None:
    """The controller's clock; None where the cluster does not report it (ZooKeeper, before Kafka 3.3, or without
    Describe on the cluster)."""
    deadline = client.deadline()
    try:
        node = client.read_brokers(deadline)[0]
        asked_at = clock()
        answer = client.ask_all(DESCRIBE_QUORUM, [(node, _METADATA_LOG)], deadline)[0]
    except (KafkaTrouble, IndexError):
        return None
    middle = asked_at + (clock() - asked_at) / 2
    if isinstance(answer, KafkaTrouble):
        return None
    for topic in answer["topics"]:
        for partition in topic["partitions"]:
            for voter in partition["current_voters"]:
                if voter["replica_id"] == partition["leader_id"] and voter["last_caught_up_timestamp"] > 0:
                    at = voter["last_caught_up_timestamp"] / 1000
                    return ControllerClock(voter["replica_id"], at - middle.timestamp())
    return None
