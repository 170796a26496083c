"""How a consumer of ``__consumer_offsets`` is set up, and whether the account may be one.

Read-only: nothing is subscribed to, nothing is committed. Isolation is ``read_committed``: the commits of a transaction
count when it is committed, and not at all when it is aborted; while one is open, what was written behind it waits.
"""

import time
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition

from lagwise.config import Cluster
from lagwise_collectors.kafka.requests.client import KafkaClient, LibrarySayings, librdkafka_settings
from lagwise_collectors.kafka.requests.errors import KafkaTrouble, kind_of
from lagwise_collectors.offsets_topic.records import OFFSETS_TOPIC

_FETCH_BYTES = 8 * 1024**2
#: Records that may wait in librdkafka, in KiB: what is read faster than it is understood.
_QUEUE_KIB = 32 * 1024


#: The library looks for the coordinator of the group that is never used. That it may not is nothing to us.
IGNORED = (KafkaError.GROUP_AUTHORIZATION_FAILED,)


def settings_of(cluster: Cluster) -> dict[str, Any]:
    """librdkafka settings of the consumer. Raises ConfigError if a reference points at nothing."""
    settings, _ = librdkafka_settings(cluster)
    return {
        **settings,
        # A group.id must be there, and is never used.
        "group.id": "lagwise-reader",
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "auto.offset.reset": "error",
        "isolation.level": "read_committed",
        "enable.partition.eof": True,
        "check.crcs": False,
        "max.partition.fetch.bytes": _FETCH_BYTES,
        "queued.max.messages.kbytes": _QUEUE_KIB,
    }


def try_reading(client: KafkaClient, cluster: Cluster) -> str:
    """Read a record, or find that there is none. Returns a word on it; raises KafkaTrouble where it is refused."""
    consumer = Consumer(settings_of(cluster), logger=LibrarySayings(client.clean).logger)
    try:
        consumer.assign([TopicPartition(OFFSETS_TOPIC, 0, OFFSET_BEGINNING)])
        deadline = time.monotonic() + client.timeout_seconds
        while time.monotonic() < deadline:
            message = consumer.poll(0.2)
            error = None if message is None else message.error()
            if message is None or (error is not None and error.code() in IGNORED):
                continue
            if error is None or error.code() == KafkaError._PARTITION_EOF:
                return "can be read"
            raise KafkaTrouble(kind_of(error), client.clean(error.str()))
        raise KafkaTrouble("timeout", f"no answer after {client.timeout_seconds:g} s")
    finally:
        consumer.close()
