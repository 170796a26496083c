"""Our own requests to one cluster: what is read by them, and what the cluster leaves to librdkafka."""

import logging
import time
from collections.abc import Callable
from enum import StrEnum
from typing import TypeVar

from lagwise.config import Cluster
from lagwise.platform.log_events import LogEvent, event
from lagwise_collectors.kafka.requests.errors import KafkaTrouble
from lagwise_collectors.kafka_protocol.client import REFUSALS, ProtocolClient

log = logging.getLogger("lagwise.collectors.kafka")

_Read = TypeVar("_Read")

#: What a cluster has refused is tried again after this time.
TRY_AGAIN_SECONDS = 300.0


class Part(StrEnum):
    """What can be read either way, once groups are listed by our own requests."""

    DESCRIPTIONS = "descriptions of groups"
    OFFSETS = "committed offsets"
    TOPICS = "topics"
    WATERMARKS = "watermarks"
    SETTINGS = "settings"


class NeedsLibrdkafka(Exception):
    """Our own requests are of no use, where nothing else may be used."""


class OwnPath:
    """Our own connections to a cluster, and why librdkafka reads what they do not. For one thread.

    ``clean`` removes secrets from a text. Where the path ``is_alone``, NeedsLibrdkafka is raised in librdkafka's place.
    """

    def __init__(self, cluster: Cluster, clean: Callable[[str], str], *, is_alone: bool = False) -> None:
        self.is_alone = is_alone
        self._cluster = cluster
        self._clean = clean
        self._client: ProtocolClient | None = None
        self._is_sampling = False
        self._try_again_at: dict[Part, float] = {}
        #: By part, why it was not read by our own requests the last time, where those listed the groups.
        self.refusals: dict[Part, KafkaTrouble] = {}

    @property
    def client(self) -> ProtocolClient | None:
        """The client; None: the cluster has not let us in, or does not any more."""
        return self._client

    def opened(self) -> ProtocolClient:
        """The client, made if there is none. Raises as its class does."""
        if self._client is None:
            self._client = ProtocolClient(self._cluster)
            if self._is_sampling:
                self._client.begin_sample()
        return self._client

    def begin_sample(self) -> None:
        """What follows belongs to one sample, which a silent broker must not hold up for long."""
        self._is_sampling = True
        if self._client is not None:
            self._client.begin_sample()

    def close(self) -> None:
        """Close the connections. May be called twice."""
        client, self._client = self._client, None
        if client is not None:
            client.close()

    def abandon(self) -> None:
        """End what is under way, from another thread."""
        client = self._client
        if client is not None:
            client.abandon()

    def reads(self, part: Part) -> bool:
        """Whether a part was read by our own requests the last time."""
        return self._client is not None and part not in self.refusals

    def read(self, part: Part, own: Callable[[ProtocolClient], _Read], librdkafkas: Callable[[], _Read]) -> _Read:
        """Read by our own requests, and by librdkafka's where ``own`` raises KafkaTrouble: ours are of no use."""
        if self._client is not None and time.monotonic() >= self._try_again_at.get(part, 0.0):
            try:
                found = own(self._client)
            except KafkaTrouble as trouble:
                told = KafkaTrouble(trouble.kind, self._clean(str(trouble)))
                self.raise_if_alone(told)
                self._refused(part, told)
            else:
                self.refusals.pop(part, None)
                return found
        return librdkafkas()

    def raise_if_alone(self, trouble: KafkaTrouble) -> None:
        """Raise the trouble, or NeedsLibrdkafka if librdkafka may do better, where the path is alone."""
        if self.is_alone:
            raise NeedsLibrdkafka(str(trouble)) if trouble.kind in REFUSALS else trouble

    def _refused(self, part: Part, trouble: KafkaTrouble) -> None:
        if trouble.kind in REFUSALS:  # not worth a try in every sample
            self._try_again_at[part] = time.monotonic() + TRY_AGAIN_SECONDS
        before = self.refusals.get(part)
        if before is None or before.kind != trouble.kind:
            log.warning(
                "%s: %s are read through librdkafka, which costs more (%s)",
                self._cluster.name,
                part,
                trouble,
                extra=event(LogEvent.READ_THROUGH_LIBRDKAFKA, cluster=self._cluster.name),
            )
        self.refusals[part] = trouble
