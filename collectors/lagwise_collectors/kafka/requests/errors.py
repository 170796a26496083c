"""Kafka's errors as the short words of tables, logs and alerts."""

from confluent_kafka import KafkaError, KafkaException

from lagwise_collectors.protocol import Trouble

#: By librdkafka's name of an error. Others keep Kafka's own name, in lower case.
_KINDS = {
    "_TIMED_OUT": "timeout",
    "REQUEST_TIMED_OUT": "timeout",
    "_TRANSPORT": "unreachable",
    "_ALL_BROKERS_DOWN": "unreachable",
    "_RESOLVE": "host_not_found",
    "_SSL": "tls_failed",
    "_AUTHENTICATION": "authentication_failed",
    "SASL_AUTHENTICATION_FAILED": "authentication_failed",
    "_INVALID_ARG": "setting_refused",
    "_UNSUPPORTED_FEATURE": "not_supported",
    "GROUP_AUTHORIZATION_FAILED": "group_not_authorized",
    "TOPIC_AUTHORIZATION_FAILED": "topic_not_authorized",
    "CLUSTER_AUTHORIZATION_FAILED": "cluster_not_authorized",
    "UNKNOWN_TOPIC_OR_PART": "unknown_topic",
    "_UNKNOWN_TOPIC": "unknown_topic",
    "UNKNOWN_TOPIC_ID": "unknown_topic",
    "_NOENT": "leader_not_available",
    "NOT_LEADER_FOR_PARTITION": "leader_moved",
    "FENCED_LEADER_EPOCH": "leader_moved",
    "UNKNOWN_LEADER_EPOCH": "leader_moved",
    "NOT_COORDINATOR": "coordinator_moved",
    "COORDINATOR_LOAD_IN_PROGRESS": "coordinator_loading",
    "GROUP_ID_NOT_FOUND": "group_gone",
}

#: What to do about each kind.
ADVICE = {
    "timeout": "no broker answered in time: check the bootstrap address, firewalls, and the security settings",
    "unreachable": "nothing answers there: check the bootstrap address and port, and that the broker is running",
    "host_not_found": "the host name cannot be resolved: check the bootstrap address",
    "tls_failed": "the TLS handshake failed: check security.protocol and the ssl.* settings",
    "authentication_failed": "authentication failed: check sasl.mechanism, the user and the secret",
    "setting_refused": "librdkafka rejects a setting: check the cluster's librdkafka settings",
    "cluster_not_authorized": "the account may not do this: grant it Describe on the cluster",
    "group_not_authorized": "grant the account Describe on the groups (resource Group, name * or a prefix)",
    "topic_not_authorized": "grant the account Describe on the topics (resource Topic, name * or a prefix)",
    "coordinator_not_available": "the group's coordinator is down: check that all brokers are running",
    "leader_not_available": "some partitions have no leader: check that all brokers are running",
}


class KafkaTrouble(Trouble):
    """A request that failed as a whole."""


def kind_of(error: KafkaError) -> str:
    """The short word for an error."""
    name: str = error.name()
    return _KINDS.get(name, name.strip("_").lower())


def trouble_of(exception: BaseException) -> KafkaTrouble:
    """Any exception of the client as trouble with a kind."""
    if isinstance(exception, KafkaTrouble):
        return exception
    if isinstance(exception, KafkaException) and exception.args and isinstance(exception.args[0], KafkaError):
        error = exception.args[0]
        return KafkaTrouble(kind_of(error), error.str() or error.name())
    return KafkaTrouble("client_failed", f"{type(exception).__name__}: {exception}")
