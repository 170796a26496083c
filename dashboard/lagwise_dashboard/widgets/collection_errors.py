"""What to do about an error of the collection."""

#: By the kind the collectors give an error. A kind that is not here explains itself by its example.
_ADVICE = {
    "timeout": "No broker answered in time. Check that the brokers are up and reachable; raise `timeout_seconds` if "
    "they are only slow.",
    "unreachable": "Nothing answers there. Check the bootstrap address and port, and whether the brokers run.",
    "host_not_found": "The host name cannot be resolved. Check the bootstrap address and the DNS.",
    "tls_failed": "The TLS handshake failed. Check `security.protocol` and the `ssl.*` settings.",
    "authentication_failed": "Authentication was rejected. Check `sasl.mechanism`, the user, and the secret.",
    "setting_refused": "librdkafka rejects a setting. Check the cluster's `librdkafka` settings.",
    "cluster_not_authorized": "Grant the account Describe on the cluster.",
    "group_not_authorized": "Grant the account Describe on these groups, or leave them out by `groups.exclude`.",
    "topic_not_authorized": "Grant the account Describe on these topics.",
    "config_topic_not_authorized": "Grant the account DescribeConfigs on these topics: without it there is no warning "
    "before retention deletes.",
    "leader_not_available": "These partitions have no leader: check the brokers. Their groups are evaluated "
    "without them.",
    "leader_moved": "A leader moved during the sample; the next one usually succeeds.",
    "coordinator_moved": "A coordinator moved during the sample; the next one usually succeeds.",
    "coordinator_loading": "A coordinator is still loading; the next sample usually succeeds.",
    "unknown_topic": "The topic was deleted, possibly between two requests. The error disappears by itself.",
    "group_gone": "The group was deleted between two requests; this resolves by itself.",
    "not_supported": "The brokers are too old for this request. Values that depend on it stay unknown.",
}


def advice(kind: str) -> str:
    """What to do about a kind of collection error; empty where only the example can say."""
    return _ADVICE.get(kind, "")
