"""What a sample reports of the cluster itself: brokers, racks, replicas, the offsets topic, the controller's clock."""

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lagwise.domain.cluster_findings import BROKER, CONTROLLER
from lagwise.domain.replicas import Replicas, ReplicaTally
from lagwise.domain.vocabulary import OFFSETS_TOPIC
from lagwise_collectors.kafka.own_path import OwnPath
from lagwise_collectors.kafka.requests.commit_columns import NONE
from lagwise_collectors.kafka.requests.errors import KafkaTrouble
from lagwise_collectors.kafka.requests.topic_columns import KafkaTopic
from lagwise_collectors.kafka.topic_configs import CONFIG_REFRESH_SECONDS
from lagwise_collectors.kafka.topic_reader import TopicReader
from lagwise_collectors.kafka_protocol.controller_clock import ControllerClock, read_controller_clock
from lagwise_collectors.protocol import ErrorTally

_SMALL_NUMBER = re.compile("[0-9]{1,9}")
#: Errors of a topic that say something of the topic or of our rights. After any other its replicas are unknown.
_ABSENT = frozenset({"unknown_topic", "topic_not_authorized"})


class ClusterFacts:
    """Columns of ``samples`` about one cluster. Whatever cannot be read is null, and no error: ``lagwise doctor`` says
    which right is missing."""

    def __init__(self, reader: TopicReader, own: OwnPath, clock: Callable[[], datetime]) -> None:
        self._reader = reader
        self._own = own
        self._clock = clock
        self._offsets_min_isr: int | None = None
        self._controller: ControllerClock | None = None
        self._read_at = -CONFIG_REFRESH_SECONDS

    def columns(self, topics: Iterable[KafkaTopic], min_isr_of: Callable[[str], int | None]) -> dict[str, Any]:
        """The columns. ``topics`` are the watched ones, ``min_isr_of`` their min.insync.replicas where known."""
        offsets = self._reader.describe([OFFSETS_TOPIC], ErrorTally())[OFFSETS_TOPIC]
        try:
            nodes = self._reader.racks()
        except KafkaTrouble:
            return {}
        if not nodes:
            return {}
        self._refresh(offsets)
        return {
            "brokers": self._broker_rows(nodes),
            "replicas": self._replicas(offsets, list(topics), min_isr_of, nodes),
            "offsets_topic_replicas": int(_lengths(offsets.replicas).min()) if offsets.partitions else None,
            "offsets_topic_min_isr": self._offsets_min_isr,
        }

    def _broker_rows(self, racks: Mapping[int, str | None]) -> list[dict[str, Any]]:
        rows: dict[int, dict[str, Any]] = {
            node: {"name": str(node), "role": BROKER, "rack": rack} for node, rack in sorted(racks.items())
        }
        if self._controller is not None:
            node, ahead = self._controller
            rows.setdefault(node, {"name": str(node), "role": CONTROLLER, "rack": None})["clock_ahead_seconds"] = ahead
        return list(rows.values())

    def _replicas(
        self,
        offsets: KafkaTopic,
        topics: list[KafkaTopic],
        min_isr_of: Callable[[str], int | None],
        racks: Mapping[int, str | None],
    ) -> list[dict[str, Any]] | None:
        readable = [topic for topic in topics if topic.error is None]
        if offsets.error not in {None, *_ABSENT} or (
            not readable and any(topic.error not in _ABSENT for topic in topics)
        ):
            return None
        watched, of_offsets = ReplicaTally(racks), ReplicaTally(racks)
        for topic in readable:
            if topic.name != OFFSETS_TOPIC:
                least = min_isr_of(topic.name)
                watched.add(topic.name, _replicas_of(topic, least, watched.has_racks), least)
        of_offsets.add(OFFSETS_TOPIC, _replicas_of(offsets, None, True), self._offsets_min_isr)
        return [
            {"topic": topic, **asdict(trouble)}
            for topic, tally in ((OFFSETS_TOPIC, of_offsets), (None, watched))
            for trouble in tally.troubles()
        ]

    def _refresh(self, offsets: KafkaTopic) -> None:
        """Read anew what seldom changes."""
        now = time.monotonic()
        if now - self._read_at < CONFIG_REFRESH_SECONDS:
            return
        self._read_at = now
        client = self._own.client
        self._controller = None if client is None else read_controller_clock(client, self._clock)
        if offsets.error is None:
            settings = self._reader.topic_configs([OFFSETS_TOPIC])[OFFSETS_TOPIC]
            least = None if isinstance(settings, KafkaTrouble) else settings.get("min.insync.replicas")
            # A broker's answer: it may be no number.
            self._offsets_min_isr = int(least) if least is not None and _SMALL_NUMBER.fullmatch(least) else None


def _replicas_of(topic: KafkaTopic, least: int | None, all_of_them: bool) -> Iterator[Replicas]:
    """The replicas of partitions: of all of them, or only of those that lack a leader or a replica, since nearly all
    partitions are well, and there are many."""
    has, in_sync = _lengths(topic.replicas), _lengths(topic.isr)
    is_wanted = (topic.leader == NONE) | (in_sync < has) | (in_sync < (least or 0)) | all_of_them
    for at in np.flatnonzero(is_wanted).tolist():
        leader = int(topic.leader[at])
        yield Replicas(
            int(topic.partition[at]),
            None if leader == NONE else leader,
            topic.replicas[at].as_py(),
            topic.isr[at].as_py(),
        )


def _lengths(lists: pa.ListArray) -> NDArray[np.int32]:
    lengths: NDArray[np.int32] = np.diff(lists.offsets.to_numpy())
    return lengths
