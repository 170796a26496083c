"""The metrics of other exporters, with exactly their names and labels, so that boards and rules made for them go on
working. What Lagwise does not know (docs/metrics.md) is left out, and so is what is unknown at the moment."""

from collections.abc import Mapping
from dataclasses import dataclass

from lagwise.config.server import NameSet
from lagwise.domain.vocabulary import Status
from lagwise_app.server.metrics.exposition import Metric

#: Burrow's code of each status: 1 OK, 2 WARN, 3 ERR, 4 STOP, 5 STALL, 6 REWIND. Of groups whose status it does not
#: know, Burrow gives none. For groups it calls everything from 3 on ERR.
BURROW_CODES: Mapping[Status, int] = {
    Status.LOSING_DATA: 3,
    Status.AT_RISK: 2,
    Status.STOPPED: 4,
    Status.STALLED: 5,
    Status.REWOUND: 6,
    Status.FALLING_BEHIND: 2,
    Status.LAGGING: 2,
    Status.CATCHING_UP: 1,
    Status.OK: 1,
    Status.GHOST: 1,
}


@dataclass(frozen=True, slots=True)
class Exporter:
    """The metrics of one exporter."""

    metrics: tuple[Metric, ...]
    #: Whether a label names the cluster. One without is scraped by cluster.
    names_cluster: bool


class _Family:
    """Metrics whose names begin alike, of one table and with the same labels."""

    def __init__(self, prefix: str, rows: str, **labels: str) -> None:
        self.prefix, self.rows, self.labels = prefix, rows, labels

    def __call__(self, name: str, help: str, column: str | None) -> Metric:
        return Metric(self.prefix + name, help, self.rows, self.labels, column)


_TOPIC_PARTITION = {"topic": "topic", "partition": "partition"}

_of_topic = _Family("kafka_topic_", "topics", topic="topic")
_of_topic_partition = _Family("kafka_topic_partition_", "fresh_topic_partitions", **_TOPIC_PARTITION)
_of_pair = _Family("kafka_consumergroup_", "chosen_partitions", consumergroup="group", **_TOPIC_PARTITION)
_of_group_topic = _Family("kafka_consumergroup_", "group_topics", consumergroup="group", topic="topic")
_of_group = _Family("kafka_consumergroup_", "chosen_groups", consumergroup="group")

_KAFKA_EXPORTER = (
    _of_topic("partitions", "Partitions of the topic.", "partitions"),
    _of_topic_partition("current_offset", "High watermark of the partition.", "high_watermark"),
    _of_topic_partition("oldest_offset", "Log start offset of the partition.", "log_start"),
    _of_topic_partition("leader", "Node id of the leader of the partition.", "leader"),
    _of_topic_partition("leader_is_preferred", "1 if the preferred replica leads the partition.", "is_preferred"),
    _of_topic_partition("replicas", "Replicas of the partition.", "replicas"),
    _of_topic_partition("in_sync_replica", "Replicas of the partition that are in sync.", "isr"),
    _of_topic_partition("under_replicated_partition", "1 if a replica is not in sync.", "is_under_replicated"),
    _of_pair("current_offset", "Committed offset of the group.", "committed"),
    _of_pair("lag", "Records that the group has not read and that still exist.", "lag"),
    _of_group_topic("current_offset_sum", "Sum of the committed offsets of the group.", "committed"),
    _of_group_topic("lag_sum", "Records of the topic that the group has not read and that still exist.", "lag"),
    _of_group("members", "Members of the group.", "members"),
)

_of_kle_partition = _Family("kafka_partition_", "fresh_topic_partitions", cluster_name="cluster", **_TOPIC_PARTITION)
_of_kle_pair = _Family(
    "kafka_consumergroup_group_",
    "owned_partitions",
    cluster_name="cluster",
    group="group",
    **_TOPIC_PARTITION,
    member_host="member_host",
    consumer_id="consumer_id",
    client_id="known_client_id",
)
_of_kle_group = _Family("kafka_consumergroup_group_", "group_sums", cluster_name="cluster", group="group")

_KAFKA_LAG_EXPORTER = (
    _of_kle_partition("latest_offset", "High watermark of the partition.", "high_watermark"),
    _of_kle_partition("earliest_offset", "Log start offset of the partition.", "log_start"),
    _of_kle_pair("offset", "Committed offset of the group.", "committed"),
    _of_kle_pair("lag", "Records that the group has not read and that still exist.", "lag"),
    _of_kle_pair("lag_seconds", "Age of the oldest record that the group has not read.", "lag_seconds"),
    _of_kle_group("max_lag", "The largest lag of a partition.", "max_lag"),
    _of_kle_group("max_lag_seconds", "Age of the oldest record that the group has not read.", "max_lag_seconds"),
    _of_kle_group("sum_lag", "Records that the group has not read and that still exist.", "lag"),
    _Family("kafka_consumergroup_group_", "group_topics", cluster_name="cluster", group="group", topic="topic")(
        "topic_sum_lag", "Records of the topic that the group has not read and that still exist.", "lag"
    ),
    _Family("kafka_consumergroup_", "fresh_collections", cluster_name="cluster")(
        "poll_time_ms", "How long the newest collection run of the cluster took.", "wall_ms"
    ),
)

_kminion = "kminion_kafka_"
_of_kminion_partition = _Family(
    f"{_kminion}topic_partition_", "fresh_topic_partitions", partition_id="partition", topic_name="topic"
)
_of_kminion_topic = _Family(f"{_kminion}topic_", "topics", topic_name="topic")
_of_kminion_group = _Family(f"{_kminion}consumer_group_", "chosen_groups", group_id="group")
_of_kminion_group_topic = _Family(
    f"{_kminion}consumer_group_topic_", "group_topics", group_id="group", topic_name="topic"
)

_KMINION = (
    Metric(
        "kminion_exporter_up",
        "1 if the lake can be read and the verdicts on the cluster are fresh; the version is that of Lagwise.",
        "kminion",
        {"version": "version"},
        "is_up",
    ),
    _of_kminion_partition("high_water_mark", "High watermark of the partition.", "high_watermark"),
    _of_kminion_partition("low_water_mark", "Log start offset of the partition.", "log_start"),
    _of_kminion_topic("high_water_mark_sum", "Sum of the high watermarks of the topic.", "high_watermark"),
    _of_kminion_topic("low_water_mark_sum", "Sum of the log start offsets of the topic.", "log_start"),
    _Family(
        f"{_kminion}consumer_group_",
        "described_groups",
        coordinator_id="coordinator",
        group_id="group",
        protocol="assignor",
        protocol_type="protocol_type",
        state="state",
    )("info", "1 if the state of the group is Stable.", "is_stable"),
    _of_kminion_group("members", "Members of the group.", "members"),
    _of_kminion_group("empty_members", "Members of the group that own no partition.", "idle_members"),
    _of_kminion_group_topic("members", "Members of the group that own partitions of the topic.", "members"),
    _of_kminion_group_topic("assigned_partitions", "Partitions of the topic with an owner.", "assigned_partitions"),
    _of_kminion_group_topic("offset_sum", "Sum of the committed offsets of the group.", "committed"),
    _of_kminion_group_topic("lag", "Records of the topic that the group has not read and that still exist.", "lag"),
    _Family(
        f"{_kminion}consumer_group_topic_partition_",
        "chosen_partitions",
        group_id="group",
        partition_id="partition",
        topic_name="topic",
    )("lag", "Records that the group has not read and that still exist.", "lag"),
)

_of_burrow_group = _Family("burrow_kafka_consumer_", "burrow_groups", cluster="cluster", consumer_group="group")
_OF_BURROW_PARTITION = {"cluster": "cluster", "consumer_group": "group", **_TOPIC_PARTITION}
_of_burrow_partition = _Family("burrow_kafka_consumer_", "chosen_partitions", **_OF_BURROW_PARTITION)

_BURROW = (
    _of_burrow_group("lag_total", "Records that the group has not read and that still exist.", "lag"),
    _of_burrow_group("status", "1 OK, 2 WARN, 3 ERR.", "burrow_code"),
    _of_burrow_partition("current_offset", "Committed offset of the group.", "committed"),
    _of_burrow_partition("partition_lag", "Records that the group has not read and that still exist.", "lag"),
    Metric(
        "burrow_kafka_topic_partition_status",
        "1 OK, 2 WARN, 3 ERR, 4 STOP, 5 STALL, 6 REWIND.",
        "chosen_partitions",
        _OF_BURROW_PARTITION,
        "burrow_code",
    ),
    _Family("burrow_kafka_topic_partition_", "fresh_topic_partitions", cluster="cluster", **_TOPIC_PARTITION)(
        "offset", "High watermark of the partition.", "high_watermark"
    ),
)

EXPORTERS: Mapping[NameSet, Exporter] = {
    "kafka_exporter": Exporter(_KAFKA_EXPORTER, names_cluster=False),
    "kafka_lag_exporter": Exporter(_KAFKA_LAG_EXPORTER, names_cluster=True),
    "kminion": Exporter(_KMINION, names_cluster=False),
    "burrow": Exporter(_BURROW, names_cluster=True),
}
