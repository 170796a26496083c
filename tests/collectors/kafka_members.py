"""Members of groups that no client library here can be: a streams group's, a Connect worker, an election's.

Each speaks to the real coordinator over our own connections, by the messages that Kafka's definitions have for it.
"""

import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from lagwise.config import Cluster
from lagwise_collectors.kafka.requests.errors import KafkaTrouble
from lagwise_collectors.kafka_protocol.connection import Connection
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
    rows_of,
    struct_of,
)
from lagwise_collectors.kafka_protocol.security import reach_of

_TASKS = ArrayOf(struct_of(Field("subtopology_id", STRING), Field("partitions", ArrayOf(INT32))), is_nullable=True)
_PARTITIONS = rows_of(Field("topic", STRING), Field("partitions", ArrayOf(INT32)))
_PAIRS = ArrayOf(struct_of(Field("key", STRING), Field("value", STRING)), is_nullable=True)
_TASK_OFFSETS = rows_of(
    Field("subtopology_id", STRING), Field("partition", INT32), Field("offset", INT64), is_nullable=True
)
_TOPIC_INFO = rows_of(
    Field("name", STRING),
    Field("partitions", INT32),
    Field("replication_factor", INT16),
    Field("topic_configs", _PAIRS),
)
_ENDPOINT = struct_of(Field("host", STRING), Field("port", UINT16), is_nullable=True)

STREAMS_GROUP_HEARTBEAT = Api(
    "StreamsGroupHeartbeat",
    key=88,
    lowest=0,
    highest=0,
    flexible_since=0,
    request=struct_of(
        Field("group_id", STRING),
        Field("member_id", STRING),
        Field("member_epoch", INT32),
        Field("endpoint_information_epoch", INT32),
        Field("instance_id", NULLABLE_STRING),
        Field("rack_id", NULLABLE_STRING),
        Field("rebalance_timeout_ms", INT32),
        Field(
            "topology",
            struct_of(
                Field("epoch", INT32),
                Field(
                    "subtopologies",
                    rows_of(
                        Field("subtopology_id", STRING),
                        Field("source_topics", ArrayOf(STRING)),
                        Field("source_topic_regex", ArrayOf(STRING)),
                        Field("state_changelog_topics", _TOPIC_INFO),
                        Field("repartition_sink_topics", ArrayOf(STRING)),
                        Field("repartition_source_topics", _TOPIC_INFO),
                        Field(
                            "copartition_groups",
                            rows_of(
                                Field("source_topics", ArrayOf(INT16)),
                                Field("source_topic_regex", ArrayOf(INT16)),
                                Field("repartition_source_topics", ArrayOf(INT16)),
                            ),
                        ),
                    ),
                ),
                is_nullable=True,
            ),
        ),
        Field("active_tasks", _TASKS),
        Field("standby_tasks", _TASKS),
        Field("warmup_tasks", _TASKS),
        Field("process_id", NULLABLE_STRING),
        Field("user_endpoint", _ENDPOINT),
        Field("client_tags", _PAIRS),
        Field("task_offsets", _TASK_OFFSETS),
        Field("task_end_offsets", _TASK_OFFSETS),
        Field("shutdown_application", BOOL),
    ),
    response=struct_of(
        Field("throttle_time_ms", INT32),
        Field("error_code", INT16),
        Field("error_message", NULLABLE_STRING),
        Field("member_id", STRING),
        Field("member_epoch", INT32),
        Field("heartbeat_interval_ms", INT32),
        Field("acceptable_recovery_lag", INT32),
        Field("task_offset_interval_ms", INT32),
        Field("status", rows_of(Field("status_code", INT8), Field("status_detail", STRING), is_nullable=True)),
        Field("active_tasks", _TASKS),
        Field("standby_tasks", _TASKS),
        Field("warmup_tasks", _TASKS),
        Field("endpoint_information_epoch", INT32),
        Field(
            "partitions_by_user_endpoint",
            rows_of(
                Field("user_endpoint", struct_of(Field("host", STRING), Field("port", UINT16))),
                Field("active_partitions", _PARTITIONS),
                Field("standby_partitions", _PARTITIONS),
                is_nullable=True,
            ),
        ),
    ),
)

JOIN_GROUP = Api(
    "JoinGroup",
    key=11,
    lowest=5,
    highest=5,
    flexible_since=6,
    request=struct_of(
        Field("group_id", STRING),
        Field("session_timeout_ms", INT32),
        Field("rebalance_timeout_ms", INT32),
        Field("member_id", STRING),
        Field("group_instance_id", NULLABLE_STRING),
        Field("protocol_type", STRING),
        Field("protocols", rows_of(Field("name", STRING), Field("metadata", BYTES))),
    ),
    response=struct_of(
        Field("throttle_time_ms", INT32),
        Field("error_code", INT16),
        Field("generation_id", INT32),
        Field("protocol_name", STRING),
        Field("leader", STRING),
        Field("member_id", STRING),
        Field(
            "members",
            rows_of(Field("member_id", STRING), Field("group_instance_id", NULLABLE_STRING), Field("metadata", BYTES)),
        ),
    ),
)

SYNC_GROUP = Api(
    "SyncGroup",
    key=14,
    lowest=3,
    highest=3,
    flexible_since=4,
    request=struct_of(
        Field("group_id", STRING),
        Field("generation_id", INT32),
        Field("member_id", STRING),
        Field("group_instance_id", NULLABLE_STRING),
        Field("assignments", rows_of(Field("member_id", STRING), Field("assignment", BYTES))),
    ),
    response=struct_of(Field("throttle_time_ms", INT32), Field("error_code", INT16), Field("assignment", BYTES)),
)

LEAVE_GROUP = Api(
    "LeaveGroup",
    key=13,
    lowest=2,
    highest=2,
    flexible_since=4,
    request=struct_of(Field("group_id", STRING), Field("member_id", STRING)),
    response=struct_of(Field("throttle_time_ms", INT32), Field("error_code", INT16)),
)

ALTER_SHARE_GROUP_OFFSETS = Api(
    "AlterShareGroupOffsets",
    key=91,
    lowest=0,
    highest=0,
    flexible_since=0,
    request=struct_of(
        Field("group_id", STRING),
        Field(
            "topics",
            rows_of(
                Field("topic_name", STRING),
                Field("partitions", rows_of(Field("partition_index", INT32), Field("start_offset", INT64))),
            ),
        ),
    ),
    response=struct_of(
        Field("throttle_time_ms", INT32),
        Field("error_code", INT16),
        Field("error_message", NULLABLE_STRING),
        Field(
            "responses",
            rows_of(
                Field("topic_name", STRING),
                Field("topic_id", UUID),
                Field(
                    "partitions",
                    rows_of(
                        Field("partition_index", INT32),
                        Field("error_code", INT16),
                        Field("error_message", NULLABLE_STRING),
                    ),
                ),
            ),
        ),
    ),
)

_SECONDS = 60.0
_HEARTBEAT_SECONDS = 0.2
#: The coordinator does not know a new topic yet, or loads.
_NOT_YET = frozenset({3, 14, 15, 16})


def ask(cluster: Cluster, api: Api, value: Mapping[str, Any]) -> dict[str, Any]:
    """The answer of the only broker; asked again while its coordinator is not ready."""
    deadline = time.monotonic() + _SECONDS
    host, _, port = cluster.bootstrap.rpartition(":")
    connection = Connection(host, int(port), reach_of(cluster), deadline)
    try:
        while True:
            answer = connection.ask(api, value, deadline)
            if answer["error_code"] not in _NOT_YET:
                return answer
            assert time.monotonic() < deadline, f"{api.name}: {answer}"
            time.sleep(0.05)
    finally:
        connection.close()


@contextmanager
def classic_member(cluster: Cluster, group: str, protocol_type: str) -> Iterator[str]:
    """The only member of a classic group of this protocol type; its id."""
    joining = {
        "group_id": group,
        "session_timeout_ms": 600_000,
        "rebalance_timeout_ms": 60_000,
        "member_id": "",
        "group_instance_id": None,
        "protocol_type": protocol_type,
        "protocols": [{"name": "v0", "metadata": b"whoever"}],
    }
    member: str = ask(cluster, JOIN_GROUP, joining)["member_id"]  # which only says the id, since version 4
    joined = ask(cluster, JOIN_GROUP, {**joining, "member_id": member})
    assert joined["error_code"] == 0
    syncing = {
        "group_id": group,
        "generation_id": joined["generation_id"],
        "member_id": member,
        "group_instance_id": None,
        "assignments": [{"member_id": member, "assignment": b"whatever"}],
    }
    assert ask(cluster, SYNC_GROUP, syncing)["error_code"] == 0
    try:
        yield member
    finally:
        ask(cluster, LEAVE_GROUP, {"group_id": group, "member_id": member})


class StreamsMember:
    """A member of a streams group with one subtopology; what it is given is its own at once."""

    def __init__(self, cluster: Cluster, group: str, sources: list[str]) -> None:
        self._cluster = cluster
        self.id = f"{group}-member"
        self._sources = sources
        self._group = group
        self._epoch = 0
        self._tasks: list[dict[str, Any]] = []

    def heartbeat(self, *, leaves: bool = False) -> None:
        """Join, stay, or leave."""
        is_first = self._epoch == 0
        subtopology = {
            "subtopology_id": "0",
            "source_topics": self._sources,
            "source_topic_regex": [],
            "state_changelog_topics": [],
            "repartition_sink_topics": [],
            "repartition_source_topics": [],
            "copartition_groups": [],
        }
        answer = ask(
            self._cluster,
            STREAMS_GROUP_HEARTBEAT,
            {
                "group_id": self._group,
                "member_id": self.id,
                "member_epoch": -1 if leaves else self._epoch,
                "endpoint_information_epoch": 0,
                "instance_id": None,
                "rack_id": None,
                "rebalance_timeout_ms": 60_000 if is_first else -1,
                "topology": {"epoch": 0, "subtopologies": [subtopology]} if is_first else None,
                "active_tasks": self._tasks,
                "standby_tasks": [],
                "warmup_tasks": [],
                "process_id": "process" if is_first else None,
                "user_endpoint": None,
                "client_tags": [] if is_first else None,
                "task_offsets": None,
                "task_end_offsets": None,
                "shutdown_application": False,
            },
        )
        if answer["error_code"]:
            raise KafkaTrouble("refused", str(answer["error_message"]))
        self._epoch = answer["member_epoch"]
        if answer["active_tasks"] is not None:
            self._tasks = answer["active_tasks"]


@contextmanager
def join_as_streams(cluster: Cluster, group: str, sources: list[str]) -> Iterator[StreamsMember]:
    """The only member of a streams group: it joins, stays whatever else takes its time, and leaves in the end."""
    member = StreamsMember(cluster, group, sources)
    stop = threading.Event()
    member.heartbeat()

    def stay() -> None:
        while not stop.wait(_HEARTBEAT_SECONDS):
            member.heartbeat()

    with ThreadPoolExecutor(1) as pool:
        stayed = pool.submit(stay)
        try:
            yield member
        finally:
            stop.set()
            stayed.result()
            member.heartbeat(leaves=True)
