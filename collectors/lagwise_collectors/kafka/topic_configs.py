"""Topic settings: read now and then, and the rows of ``raw/topics`` that they belong to."""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from lagwise_collectors.kafka.requests.errors import KafkaTrouble
from lagwise_collectors.kafka.requests.topic_columns import KafkaTopic
from lagwise_collectors.kafka.requests.topics import Configs
from lagwise_collectors.protocol import ErrorTally
from lagwise_collectors.sample_builder import DueTopicRows, SideTopicName

#: Configurations of every topic are read again within about this time.
CONFIG_REFRESH_SECONDS = 300.0

#: Column of ``raw/topics`` by Kafka's name of the setting.
CONFIG_COLUMNS = {
    "retention.ms": "retention_ms",
    "retention.bytes": "retention_bytes",
    "segment.ms": "segment_ms",
    "segment.bytes": "segment_bytes",
    "cleanup.policy": "cleanup_policy",
    "min.insync.replicas": "min_isr",
}
_TEXT_COLUMNS = frozenset({"cleanup_policy"})


class TopicConfigs:
    """Topic settings: those of all topics at first, then of a share of them in each sample.

    ``read`` reads those of some topics.
    """

    def __init__(self, read: Callable[[Sequence[str]], Mapping[str, Configs]], interval_seconds: float) -> None:
        self._read_of = read
        self._rounds = max(1, round(CONFIG_REFRESH_SECONDS / interval_seconds))
        self._samples = 0
        self._settings: dict[str, dict[str, Any]] = {}
        self._unreadable: dict[str, KafkaTrouble] = {}
        self._rows = DueTopicRows()

    def rows(
        self, topics: Mapping[str, KafkaTopic], sides: Mapping[str, SideTopicName], at: datetime, errors: ErrorTally
    ) -> list[Mapping[str, Any]]:
        """Rows of ``raw/topics`` that are due (without sample, cluster and time); ``sides`` are those of the topics
        that belong to another one."""
        present = {name: topic for name, topic in topics.items() if topic.error is None}
        for known in (self._settings, self._unreadable):
            for name in [name for name in known if name not in topics]:
                del known[name]
        self._rows.forget_all_but(topics)
        self._read(self._due(list(present)))
        for name, trouble in self._unreadable.items():
            errors.note(f"config_{trouble.kind}", f"configuration of topic {name}: {trouble}")
        rows = [
            {
                "topic": name,
                "topic_id": topic.topic_id,
                "partitions": topic.partitions,
                "replication_factor": topic.replication_factor,
                **dict.fromkeys(CONFIG_COLUMNS.values()),
                **self._settings.get(name, {}),
            }
            for name, topic in present.items()
        ]
        return self._rows.due(rows, sides, at)

    def min_isr(self, name: str) -> int | None:
        """``min.insync.replicas`` of a topic as last read; None is not known."""
        found: int | None = self._settings.get(name, {}).get("min_isr")
        return found

    def _due(self, names: list[str]) -> list[str]:
        step = self._samples % self._rounds
        self._samples += 1
        unseen = [name for name in names if name not in self._settings and name not in self._unreadable]
        seen = sorted(name for name in names if name in self._settings or name in self._unreadable)
        return unseen + [name for i, name in enumerate(seen) if i % self._rounds == step]

    def _read(self, names: list[str]) -> None:
        for name, answer in self._read_of(names).items():
            if isinstance(answer, KafkaTrouble):
                self._settings.pop(name, None)
                self._unreadable[name] = answer
            else:
                self._unreadable.pop(name, None)
                self._settings[name] = {
                    column: _value(column, answer.get(key)) for key, column in CONFIG_COLUMNS.items()
                }


def _value(column: str, text: str | None) -> str | int | None:
    if text is None or column in _TEXT_COLUMNS:
        return text
    return int(text) if re.fullmatch("-?[0-9]{1,18}", text) else None
