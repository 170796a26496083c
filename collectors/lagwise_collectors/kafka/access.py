"""Tries each step that collecting from a Kafka cluster needs, for ``lagwise doctor``."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lagwise.config import Cluster
from lagwise.domain.humanise import plural
from lagwise.platform.errors import ConfigError
from lagwise_collectors.kafka.group_reader import GroupReader
from lagwise_collectors.kafka.own_path import OwnPath, Part
from lagwise_collectors.kafka.requests.client import KafkaClient
from lagwise_collectors.kafka.requests.commit_columns import NONE
from lagwise_collectors.kafka.requests.errors import ADVICE, KafkaTrouble
from lagwise_collectors.kafka.requests.group_members import KafkaGroup, topics_of
from lagwise_collectors.kafka.requests.next_records import LogPosition, try_fetching
from lagwise_collectors.kafka.requests.topic_columns import KafkaTopic
from lagwise_collectors.kafka.topic_reader import TopicReader
from lagwise_collectors.offsets_topic.records import OFFSETS_TOPIC
from lagwise_collectors.offsets_topic.session import try_reading
from lagwise_collectors.protocol import Check, ErrorTally

_DESCRIBE_GROUPS = "Describe on Group"
_LIST_GROUPS = "Describe on Cluster, or Describe on each Group"
_DESCRIBE_TOPICS = "Describe on Topic"


def check_access(cluster: Cluster) -> list[Check]:
    """One check per step. Steps that depend on a failed one are not tried."""
    try:
        client = KafkaClient(cluster)
        node_count, first_broker = _connect(client)
    except (KafkaTrouble, ConfigError) as error:
        kind = error.kind if isinstance(error, KafkaTrouble) else "setting_refused"
        return [Check("connect", False, str(error), None, ADVICE.get(kind, "see the broker's log"))]
    own = OwnPath(cluster, client.clean)
    steps = _Steps(client, cluster, own, GroupReader(client, own, cluster), TopicReader(client, own))
    try:
        checks = steps.run(first_broker)
    finally:
        own.close()
    return [Check("connect", True, f"{plural(node_count, 'broker')} at {cluster.bootstrap}"), *checks]


@dataclass
class _Steps:
    client: KafkaClient
    cluster: Cluster
    own: OwnPath
    group_reader: GroupReader
    topic_reader: TopicReader
    types: Mapping[str, str | None] = field(default_factory=dict)
    groups: list[KafkaGroup] = field(default_factory=list)
    topics: dict[str, KafkaTopic] = field(default_factory=dict)
    #: A position at which there is a record.
    position: LogPosition | None = None

    def run(self, broker: int) -> list[Check]:
        return [
            self._try("list groups", _LIST_GROUPS, self._list),
            *self._every_type(),
            self._try("describe groups", _DESCRIBE_GROUPS, self._describe_groups),
            self._try("committed offsets", f"{_DESCRIBE_GROUPS}, {_DESCRIBE_TOPICS}", self._commits),
            self._try("describe topics", _DESCRIBE_TOPICS, self._describe_topics),
            self._try("watermarks", _DESCRIBE_TOPICS, self._watermarks),
            self._optional(
                "topic settings",
                "DescribeConfigs on Topic",
                self._topic_settings,
                "grant the account DescribeConfigs on the topics: without it retention is unknown, and Lagwise cannot "
                "warn before unread records are deleted",
            ),
            self._optional(
                "broker settings",
                "DescribeConfigs on Cluster",
                lambda: self._broker_settings(broker),
                "grant the account DescribeConfigs on the cluster: without it the expiry of committed offsets cannot "
                "be predicted",
            ),
            self._optional(
                "replicas of offsets",
                f"Describe and DescribeConfigs on Topic {OFFSETS_TOPIC}",
                self._offsets_replicas,
                f"grant the account Describe and DescribeConfigs on the topic {OFFSETS_TOPIC}: without them Lagwise "
                "cannot warn when committed offsets are at risk",
            ),
            *self._own_requests(),
            *self._records(),
            *self._exact_events(),
        ]

    def _records(self) -> list[Check]:
        if not self.cluster.skip_control_records or self.position is None:
            return []
        position = self.position
        return [
            self._optional(
                "next records",
                "Read on Topic",
                lambda: try_fetching(self.cluster, position),
                "grant the account Read on the topics: without it the commit markers of transactions count as lag (or "
                "set skip_control_records to false)",
            )
        ]

    def _exact_events(self) -> list[Check]:
        if not self.cluster.offsets_topic:
            return []
        return [
            self._optional(
                OFFSETS_TOPIC,
                f"Read on Topic {OFFSETS_TOPIC}",
                lambda: try_reading(self.client, self.cluster),
                f"grant the account Read on the topic {OFFSETS_TOPIC}, or set offsets_topic to false: without it "
                "rebalances are detected by comparing samples, without their causes",
            )
        ]

    def _try(self, name: str, privilege: str, step: Callable[[ErrorTally], str]) -> Check:
        errors = ErrorTally()
        try:
            detail = step(errors)
        except KafkaTrouble as trouble:
            errors.note(trouble.kind, str(trouble))
            detail = "failed"
        if not errors:
            return Check(name, True, detail, privilege)
        kind = next(iter(errors.counts))
        counted = ", ".join(f"{count} {kind}" for kind, count in errors.counts.items())
        return Check(
            name,
            False,
            f"{detail}; errors: {counted} ({errors.example(kind)})",
            privilege,
            ADVICE.get(kind, "see the broker's log"),
        )

    def _optional(self, name: str, privilege: str, step: Callable[[], str], advice: str) -> Check:
        try:
            return Check(name, True, step(), privilege, required=False)
        except KafkaTrouble as trouble:
            return Check(name, False, f"{trouble.kind}: {trouble}", privilege, advice, required=False)

    def _list(self, errors: ErrorTally) -> str:
        listing = self.group_reader.list_groups(self.cluster.groups.selects, errors)
        self.types = listing.types
        seen = sum(listing.seen.values())
        if not seen:
            return "no group is visible: there is none, or the account may not describe groups"
        by_type = ", ".join(
            f"{count} {kind or 'consumer or classic'}"
            for kind, count in sorted(listing.seen.items(), key=lambda item: (-item[1], item[0] or ""))
        )
        return f"{plural(seen, 'group')} visible ({by_type}), {len(listing.types)} of them watched"

    def _every_type(self) -> list[Check]:
        refusal = self.group_reader.refusal
        if refusal is None:
            return []
        return [
            Check(
                "groups of every type",
                False,
                f"only consumer groups can be listed; {refusal.kind}: {refusal}",
                _LIST_GROUPS,
                "share groups, streams groups and groups of Kafka Connect are not watched. Lagwise reads them by "
                "requests of its own: docs/group-types.md has the settings that these know",
                required=False,
            )
        ]

    def _own_requests(self) -> list[Check]:
        return [
            Check(
                f"{part} by Lagwise's own requests",
                False,
                f"{refusal.kind}: {refusal}",
                None,
                "nothing is missing: librdkafka reads them, which takes more CPU and memory",
                required=False,
            )
            for part, refusal in self.own.refusals.items()
        ]

    def _describe_groups(self, errors: ErrorTally) -> str:
        self.groups = self.group_reader.describe_groups(self.types, errors)
        members = sum(len(group.members) for group in self.groups)
        return f"{plural(sum(g.error is None for g in self.groups), 'group')} with {plural(members, 'member')}"

    def _commits(self, errors: ErrorTally) -> str:
        commits = self.group_reader.read_offsets(self.groups, errors)
        names = commits.topics() | topics_of(self.groups)
        self.topics = {name: KafkaTopic(name) for name in names}
        known = int((commits.numbers("committed", np.int64) > NONE).sum())
        way = "by Lagwise's own requests" if self.own.reads(Part.OFFSETS) else "through librdkafka"
        return f"{plural(known, 'committed offset')} on {plural(len(names), 'topic')}, read {way}"

    def _describe_topics(self, errors: ErrorTally) -> str:
        self.topics = self.topic_reader.describe(self.topics, errors)
        return plural(sum(t.error is None for t in self.topics.values()), "topic")

    def _watermarks(self, errors: ErrorTally) -> str:
        marks = self.topic_reader.watermarks(self.topics, {}, errors)
        with_records = ((marks.log_start > NONE) & (marks.high_watermark > marks.log_start)).nonzero()[0]
        if len(with_records):
            row = int(with_records[0])
            topic, partition = marks.topics[marks.of_topic[row]], int(marks.partition[row])
            self.position = LogPosition(topic, partition, int(marks.high_watermark[row]) - 1)
        return plural(marks.error.count(None), "partition")

    def _topic_settings(self) -> str:
        names = [name for name, topic in self.topics.items() if topic.error is None]
        answers = self.topic_reader.topic_configs(names)
        for name, answer in answers.items():
            if isinstance(answer, KafkaTrouble):
                raise KafkaTrouble(answer.kind, f"topic {name}: {answer}")
        return f"settings of {plural(len(answers), 'topic')}"

    def _broker_settings(self, broker: int) -> str:
        answer = self.topic_reader.offsets_retention(broker)
        if isinstance(answer, KafkaTrouble):
            raise answer
        return f"committed offsets of empty groups are kept for {answer / 3600:g} h"

    def _offsets_replicas(self) -> str:
        errors = ErrorTally()
        topic = self.topic_reader.describe([OFFSETS_TOPIC], errors)[OFFSETS_TOPIC]
        if topic.error == "unknown_topic":
            return f"there is no {OFFSETS_TOPIC} yet: no group has committed"
        if topic.error is not None:
            raise KafkaTrouble(topic.error, errors.example(topic.error))
        settings = self.topic_reader.topic_configs([OFFSETS_TOPIC])[OFFSETS_TOPIC]
        if isinstance(settings, KafkaTrouble):
            raise settings
        least = settings.get("min.insync.replicas")
        return f"{plural(topic.replication_factor, 'replica')} of a partition, min.insync.replicas {least}"


def _connect(client: KafkaClient) -> tuple[int, int]:
    """Number of brokers and the id of one. Raises KafkaTrouble."""
    described: Any = client.wait(client.admin.describe_cluster(request_timeout=client.timeout_seconds))
    client.answered()
    return len(described.nodes), min(node.id for node in described.nodes)
