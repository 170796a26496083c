"""The topics of a cluster: described, their watermarks and their settings."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime

from confluent_kafka.admin import ResourceType

from lagwise_collectors.kafka.own_path import OwnPath, Part
from lagwise_collectors.kafka.requests import topics as librdkafkas_topics
from lagwise_collectors.kafka.requests import watermarks as librdkafkas_watermarks
from lagwise_collectors.kafka.requests.client import KafkaClient
from lagwise_collectors.kafka.requests.errors import KafkaTrouble
from lagwise_collectors.kafka.requests.topic_columns import KafkaTopic
from lagwise_collectors.kafka.requests.topics import Configs, read_configs
from lagwise_collectors.kafka.requests.watermark_columns import WatermarkColumns
from lagwise_collectors.kafka.topic_configs import CONFIG_COLUMNS
from lagwise_collectors.kafka_protocol import topics as own_topics
from lagwise_collectors.kafka_protocol import watermarks as own_watermarks
from lagwise_collectors.protocol import ErrorTally

_OFFSETS_RETENTION = "offsets.retention.minutes"


class TopicReader:
    """Reads by our own requests where the cluster lets them in, and otherwise through librdkafka."""

    def __init__(
        self, client: KafkaClient, own: OwnPath, clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self._client = client
        self._own = own
        self._clock = clock

    def names(self) -> list[str]:
        """The names of all topics. Raises KafkaTrouble."""
        return self._own.read(Part.TOPICS, own_topics.topic_names, lambda: librdkafkas_topics.topic_names(self._client))

    def describe(self, names: Iterable[str], errors: ErrorTally) -> dict[str, KafkaTopic]:
        """Every topic of that name, described or with its error (``unknown_topic`` where there is none any more)."""
        wanted = list(names)
        return self._own.read(
            Part.TOPICS,
            lambda client: own_topics.describe_topics(client, wanted, errors),
            lambda: librdkafkas_topics.describe_topics(self._client, wanted, errors),
        )

    def racks(self) -> Mapping[int, str | None]:
        """The rack of every broker that is in the cluster, by node id; None where it has none. For after
        :meth:`describe`. Raises KafkaTrouble."""
        return self._own.read(Part.TOPICS, lambda client: client.racks, lambda: librdkafkas_topics.racks(self._client))

    def watermarks(
        self, topics: Mapping[str, KafkaTopic], partitions_wanted: Mapping[str, Iterable[int]], errors: ErrorTally
    ) -> WatermarkColumns:
        """A row for every partition of the topics, and for the ``partitions_wanted`` of those that could not be
        described."""
        return self._own.read(
            Part.WATERMARKS,
            lambda client: own_watermarks.read_watermarks(client, topics, partitions_wanted, errors, self._clock),
            lambda: librdkafkas_watermarks.read_watermarks(
                self._client, topics, partitions_wanted, errors, self._clock
            ),
        )

    def topic_configs(self, names: Sequence[str]) -> Mapping[str, Configs]:
        """The settings of topics that become columns of ``raw/topics``."""
        return self._own.read(
            Part.SETTINGS,
            lambda client: own_topics.read_topic_configs(client, names, list(CONFIG_COLUMNS)),
            lambda: read_configs(self._client, ResourceType.TOPIC, names),
        )

    def offsets_retention(self, broker: int) -> float | KafkaTrouble:
        """The broker's ``offsets.retention.minutes`` in seconds, or why it cannot be read."""
        answer = self._own.read(
            Part.SETTINGS,
            lambda client: own_topics.read_broker_configs(client, broker, [_OFFSETS_RETENTION]),
            lambda: read_configs(self._client, ResourceType.BROKER, [str(broker)])[str(broker)],
        )
        if isinstance(answer, KafkaTrouble):
            return answer
        minutes = answer.get(_OFFSETS_RETENTION) or ""
        if not minutes.isdecimal():
            return KafkaTrouble("not_supported", "the broker does not report it")
        return float(minutes) * 60
