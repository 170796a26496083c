"""Lagwise's own metrics. What is not known has no sample: never 0, never NaN."""

from lagwise_app.server.metrics.exposition import Metric

_GROUP = {"cluster": "cluster", "group": "group"}
_GROUP_TOPIC = {**_GROUP, "topic": "topic"}
_PARTITION = {**_GROUP_TOPIC, "partition": "partition"}
_CLUSTER = {"cluster": "cluster"}


def _of_group(name: str, help: str, column: str | None, **labels: str) -> Metric:
    return Metric(f"lagwise_group_{name}", help, "chosen_groups", {**_GROUP, **labels}, column)


def _of_topic(name: str, help: str, column: str | None, **labels: str) -> Metric:
    return Metric(f"lagwise_group_topic_{name}", help, "chosen_capacity", {**_GROUP_TOPIC, **labels}, column)


OWN_METRICS = (
    Metric("lagwise_build_info", "The version of Lagwise; always 1.", "build", {"version": "version"}, None),
    Metric(
        "lagwise_lake_readable", "Whether the lake could be read the last time, 1 or 0.", "build", {}, "lake_readable"
    ),
    Metric(
        "lagwise_metrics_left_out",
        "What has no metrics, by kind and reason: stale (the newest verdict is too old) or limit (of the settings).",
        "left_out",
        {"kind": "kind", "reason": "reason"},
        "number",
    ),
    Metric(
        "lagwise_cluster_watched",
        "1 for every cluster of the settings; if they name none, for every cluster in the lake.",
        "watched_clusters",
        _CLUSTER,
        None,
    ),
    Metric(
        "lagwise_stale_after_seconds",
        "Age from which verdicts on the cluster, and its collection, have no metrics.",
        "watched_clusters",
        _CLUSTER,
        "stale_after_seconds",
    ),
    Metric(
        "lagwise_judged_timestamp_seconds",
        "The moment that the newest verdicts on the cluster describe.",
        "judged_clusters",
        _CLUSTER,
        "as_of",
    ),
    Metric(
        "lagwise_collection_timestamp_seconds",
        "When the newest collection run of the cluster ended.",
        "collections",
        _CLUSTER,
        "finished_at",
    ),
    Metric(
        "lagwise_collection_duration_seconds",
        "How long the newest collection run of the cluster took.",
        "fresh_collections",
        _CLUSTER,
        "wall_seconds",
    ),
    Metric(
        "lagwise_collection_errors", "Errors of the newest collection run of the cluster.", "fresh_collections",
        _CLUSTER, "errors",
    ),
    Metric(
        "lagwise_analysis_timestamp_seconds", "When the newest round of the analysis ended.", "rounds", {},
        "finished_at",
    ),
    Metric(
        "lagwise_analysis_duration_seconds", "How long the newest round of the analysis took.", "rounds", {},
        "wall_seconds",
    ),
    Metric(
        "lagwise_analysis_group_partitions",
        "Partitions of groups that the newest round of the analysis judged.",
        "rounds",
        {},
        "group_partitions",
    ),
    _of_group("status", "The status of the group, as a label; always 1.", None, status="status"),
    _of_group("status_since_timestamp_seconds", "Since when the group has had its status.", "since"),
    _of_group("lag_records", "Records that the group has not read and that still exist.", "lag"),
    _of_group("lag_seconds", "Age of the oldest record that the group has not read, at least; 0 if it has read all.",
              "lag_seconds"),
    _of_group("time_to_loss_seconds", "Time until unread records are deleted, or committed offsets expire.",
              "seconds_to_loss"),
    _of_group("time_to_catch_up_seconds", "Time until the group has no lag, while it is catching up.",
              "seconds_to_catch_up"),
    _of_group("lost_records", "Records that were deleted unread, between the committed offset and the log start.",
              "records_lost"),
    _of_group("written_records_per_second", "Records written per second to the topics that the group reads.",
              "produce_rate_per_second"),
    _of_group("read_records_per_second", "Records that the group commits per second.", "consume_rate_per_second"),
    _of_group("members", "Members of the group.", "members"),
    _of_group("idle_members", "Members of the group that own no partition.", "idle_members"),
    _of_group("partitions", "Partitions that the group reads.", "partitions"),
    _of_topic("capacity_verdict", "Whether the group can do what the topic takes, as a label; always 1.", None,
              verdict="verdict"),
    _of_topic("demand_records_per_second", "Records per second that the group must be able to read of the topic.",
              "demand_per_second"),
    _of_topic("capacity_records_per_second", "Records per second of the topic that the group can read, at least.",
              "capacity_low_per_second"),
    _of_topic("enough_until_timestamp_seconds", "When the forecast goes above what the group can read of the topic.",
              "enough_until"),
    Metric("lagwise_partition_lag_records", "Records of the partition that the group has not read and that still "
           "exist.", "chosen_partitions", _PARTITION, "lag"),
    Metric("lagwise_partition_lag_seconds", "Age of the oldest record of the partition that the group has not read; 0 "
           "if it has read all.", "chosen_partitions", _PARTITION, "lag_seconds"),
)  # fmt: skip
