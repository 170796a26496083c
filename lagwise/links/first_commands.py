"""Commands to copy (Kafka's own tools and Lagwise's, quoted for bash and zsh): all harmless.

Names in them are strangers' input: what a terminal would obey is spelled out as an escape.
"""

import shlex
from collections.abc import Sequence

from lagwise.config import AnyCluster, Cluster, RocketmqCluster
from lagwise.domain.causes import STANDING
from lagwise.domain.vocabulary import LossCause, Status, UnknownReason
from lagwise.platform.logs import escape


def shell_word(text: str) -> str:
    """Text as one word for bash or zsh."""
    if escape(text) == text:
        return shlex.quote(text)
    return "$'" + "".join(_ansi_c(character) for character in text) + "'"


def option(name: str, value: str) -> str:
    """``--name=value``: with an equals sign, so that a value that begins with a dash is not an option itself."""
    return f"{name}={shell_word(value)}"


def kafka_tool(tool: str, cluster: str | None, clusters: Sequence[AnyCluster]) -> str:
    """The beginning of a command of Kafka's: the tool and how it reaches the cluster of that name."""
    known = next((c for c in clusters if c.name == cluster and isinstance(c, Cluster)), None)
    words = [tool, "--bootstrap-server", shell_word(known.bootstrap) if known else "HOST:PORT"]
    protocol = str(known.librdkafka.get("security.protocol", "plaintext")) if known else "plaintext"
    if protocol.lower() != "plaintext":
        words += ["--command-config", "client.properties"]
    return " ".join(words)


def mqadmin(command: str, cluster: RocketmqCluster) -> str:
    """The beginning of a command of RocketMQ's tool, which asks all name servers in turn."""
    return f"mqadmin {command} {option('--namesrvAddr', ';'.join(cluster.name_server_list))}"


def rocketmq_named(cluster: str | None, clusters: Sequence[AnyCluster]) -> RocketmqCluster | None:
    """The cluster of that name, if it is RocketMQ."""
    return next((c for c in clusters if c.name == cluster and isinstance(c, RocketmqCluster)), None)


def first_command(
    cluster: str | None,
    group: str,
    clusters: Sequence[AnyCluster],
    *,
    status: str | None = None,
    reason: str | None = None,
    loss_cause: str | None = None,
    topic: str | None = None,
    transaction_seconds: float | None = None,
    stands_still: bool | None = None,
) -> str:
    """What to run first about a group of this status: the command that shows most of its causes. Where partitions
    stand still (``stands_still``, even if something worse holds, too), their owner is the first question."""
    if reason == UnknownReason.UNREADABLE:
        return "lagwise doctor"
    rocketmq = rocketmq_named(cluster, clusters)
    if rocketmq is not None:
        if status == Status.LOSING_DATA and topic is not None:
            return f"{mqadmin('topicStatus', rocketmq)} {option('--topic', topic)}"
        # Asks the members which queues each owns, too.
        return f"{mqadmin('consumerProgress', rocketmq)} --showClientIP=true {option('--groupName', group)}"
    if transaction_seconds is not None and topic is not None:
        return f"{kafka_tool('kafka-transactions', cluster, clusters)} find-hanging {option('--topic', topic)}"
    groups = kafka_tool("kafka-consumer-groups", cluster, clusters)
    named = option("--group", group)
    will_expire = status == Status.AT_RISK and loss_cause == LossCause.EXPIRY
    if status in STANDING or (stands_still and not will_expire) or reason == UnknownReason.REBALANCING:
        return f"{groups} --describe --members --verbose {named}"
    loses_records = status == Status.LOSING_DATA or (status == Status.AT_RISK and loss_cause == LossCause.DELETION)
    if loses_records and topic is not None:
        configs = kafka_tool("kafka-configs", cluster, clusters)
        return f"{configs} --describe --all --entity-type topics {option('--entity-name', topic)}"
    return f"{groups} --describe {named}"


def _ansi_c(character: str) -> str:
    """One character inside ``$'…'`` (bash: ANSI-C quoting)."""
    if character in "'\\":
        return f"\\{character}"
    if escape(character) == character:
        return character
    code = ord(character)
    if code > 0xFFFF:
        return f"\\U{code:08x}"
    return f"\\u{code:04x}" if code > 0x7F else f"\\{code:03o}"
