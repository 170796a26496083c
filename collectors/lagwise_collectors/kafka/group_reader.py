"""The groups of a cluster: listed over our own protocol path, and described by whichever client knows their type."""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime

from lagwise.config import Cluster
from lagwise.domain.vocabulary import SHARE, SIMPLE
from lagwise.platform.errors import ConfigError
from lagwise.platform.log_events import LogEvent, event
from lagwise_collectors.kafka.requests.client import KafkaClient
from lagwise_collectors.kafka.requests.commit_columns import CommitColumns
from lagwise_collectors.kafka.requests.committed_offsets import CommitReader
from lagwise_collectors.kafka.requests.errors import KafkaTrouble
from lagwise_collectors.kafka.requests.group_members import GroupListing, KafkaGroup, describe_groups, list_groups
from lagwise_collectors.kafka.requests.topics import CONFIG_REFRESH_SECONDS
from lagwise_collectors.kafka_protocol.client import ProtocolClient
from lagwise_collectors.kafka_protocol.committed_offsets import REFUSALS, read_commits
from lagwise_collectors.kafka_protocol.group_listing import list_every_group
from lagwise_collectors.kafka_protocol.group_types import add_share_offsets, describe_by_type, unreadable
from lagwise_collectors.protocol import ErrorTally

log = logging.getLogger("lagwise.collectors.kafka")

#: Types that librdkafka describes; None is a consumer group of a broker that does not say which protocol it has.
_OF_LIBRDKAFKA = frozenset({None, "classic", "consumer", SIMPLE})


class GroupReader:
    """Reads groups of every type where the cluster lets our own requests in, and otherwise those that librdkafka lists.

    Groups that were seen once do not vanish when our own path fails: they are unreadable until it works again.
    """

    def __init__(
        self, client: KafkaClient, cluster: Cluster, clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self._client = client
        self._cluster = cluster
        self._clock = clock
        self._librdkafkas = CommitReader(client, clock)
        self._protocol: ProtocolClient | None = None
        #: Groups that only our own path shows, as it last did; None: it never has.
        self._own: dict[str, str | None] | None = None
        #: Why our own path did not work the last time.
        self.refusal: KafkaTrouble | None = None
        self._try_again_at = 0.0
        #: Why committed offsets were not read over our own path the last time, where the listing was.
        self.offsets_refusal: KafkaTrouble | None = None
        self._try_offsets_at = 0.0

    def close(self) -> None:
        """Close what does not end by itself. May be called twice."""
        if self._protocol is not None:
            self._protocol.close()
        self._protocol = None

    def list_groups(self, selects: Callable[[str], bool], errors: ErrorTally) -> GroupListing:
        """The watched groups. Raises KafkaTrouble if no broker answered; some that did not are counted."""
        if self._own is not None or time.monotonic() >= self._try_again_at:
            try:
                self._protocol = self._protocol or ProtocolClient(self._cluster)
                listing = list_every_group(self._protocol, selects, errors)
            except (KafkaTrouble, ConfigError) as trouble:  # ConfigError: a secret that is not there any more
                kind = trouble.kind if isinstance(trouble, KafkaTrouble) else "setting_refused"
                self._refused(KafkaTrouble(kind, self._client.clean(str(trouble))), errors)
            else:
                self.refusal = None
                found = {name: kind for name, kind in listing.types.items() if kind not in _OF_LIBRDKAFKA}
                self._own = found if listing.complete else {**(self._own or {}), **found}
                return listing
        listing = list_groups(self._client, selects, errors)
        return GroupListing({**(self._own or {}), **listing.types}, complete=listing.complete, seen=listing.seen)

    def describe_groups(self, types: Mapping[str, str | None], errors: ErrorTally) -> list[KafkaGroup]:
        """Every group of that name, described or with its error; those that were deleted meanwhile are left out."""
        others = {name: kind for name, kind in types.items() if kind not in _OF_LIBRDKAFKA}
        groups = describe_groups(
            self._client, {name: kind for name, kind in types.items() if name not in others}, errors
        )
        if not others:
            return groups
        if self._protocol is not None and self.refusal is None:
            return groups + describe_by_type(self._protocol, others, errors)
        trouble = self.refusal or KafkaTrouble("not_supported", "groups of this type")
        return groups + [g for name, kind in others.items() for g in unreadable([name], str(kind), trouble, errors)]

    def read_offsets(self, groups: Sequence[KafkaGroup], errors: ErrorTally) -> CommitColumns:
        """What the groups have read: the committed offsets, and of share groups, which commit nothing, the start
        offsets."""
        commits = self._committed([group for group in groups if group.type != SHARE], errors)
        shares = [group for group in groups if group.type == SHARE and group.error is None]
        if shares and self._protocol is not None:
            add_share_offsets(self._protocol, shares, commits, errors, self._clock)
        return commits

    @property
    def protocol(self) -> ProtocolClient | None:
        """Our own path, where the cluster let it in the last time."""
        return self._protocol if self.refusal is None else None

    @property
    def reads_offsets_itself(self) -> bool:
        """Whether committed offsets were read over our own path the last time."""
        return self._protocol is not None and self.offsets_refusal is None

    def _committed(self, groups: Sequence[KafkaGroup], errors: ErrorTally) -> CommitColumns:
        if self._protocol is not None and time.monotonic() >= self._try_offsets_at:
            try:
                commits = read_commits(self._protocol, groups, errors, self._clock)
            except KafkaTrouble as trouble:
                self._offsets_refused(KafkaTrouble(trouble.kind, self._client.clean(str(trouble))))
            else:
                self.offsets_refusal = None
                return commits
        return self._librdkafkas.read(groups, errors)

    def _offsets_refused(self, trouble: KafkaTrouble) -> None:
        if trouble.kind in REFUSALS:  # not worth a try in every sample
            self._try_offsets_at = time.monotonic() + CONFIG_REFRESH_SECONDS
        if self.offsets_refusal is None or self.offsets_refusal.kind != trouble.kind:
            log.warning(
                "%s: committed offsets are read through librdkafka, which costs more (%s)",
                self._cluster.name,
                trouble,
                extra=event(LogEvent.OFFSETS_THROUGH_LIBRDKAFKA, cluster=self._cluster.name),
            )
        self.offsets_refusal = trouble

    def _refused(self, trouble: KafkaTrouble, errors: ErrorTally) -> None:
        self.close()
        if self._own is not None:
            errors.note(trouble.kind, f"listing groups of every type: {trouble}")
        else:  # no broker of this cluster has ever let us in: it is not worth a try in every sample
            self._try_again_at = time.monotonic() + CONFIG_REFRESH_SECONDS
            if self.refusal is None or self.refusal.kind != trouble.kind:
                log.warning(
                    "%s: only consumer groups are listed, no share group, streams group or group of Kafka Connect (%s)",
                    self._cluster.name,
                    trouble,
                    extra=event(LogEvent.GROUPS_NOT_LISTED, cluster=self._cluster.name),
                )
        self.refusal = trouble
