"""The groups of a cluster: listed, described, and what they have read."""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime

from lagwise.config import Cluster
from lagwise.domain.vocabulary import SHARE, SIMPLE
from lagwise.platform.errors import ConfigError
from lagwise.platform.log_events import LogEvent, event
from lagwise_collectors.kafka.own_path import TRY_AGAIN_SECONDS, OwnPath, Part
from lagwise_collectors.kafka.requests.client import KafkaClient
from lagwise_collectors.kafka.requests.commit_columns import CommitColumns
from lagwise_collectors.kafka.requests.committed_offsets import CommitReader
from lagwise_collectors.kafka.requests.errors import KafkaTrouble
from lagwise_collectors.kafka.requests.group_members import GroupListing, KafkaGroup, describe_groups, list_groups
from lagwise_collectors.kafka_protocol.committed_offsets import read_commits
from lagwise_collectors.kafka_protocol.consumer_groups import describe_consumer_groups
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
        self,
        client: KafkaClient,
        own: OwnPath,
        cluster: Cluster,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._client = client
        self._own = own
        self._cluster = cluster
        self._clock = clock
        self._librdkafkas = CommitReader(client, clock)
        #: Groups that only our own path shows, as it last did; None: it never has.
        self._shown: dict[str, str | None] | None = None
        #: Why our own path did not work the last time.
        self.refusal: KafkaTrouble | None = None
        self._try_again_at = 0.0

    def list_groups(self, selects: Callable[[str], bool], errors: ErrorTally) -> GroupListing:
        """The watched groups. Raises KafkaTrouble if no broker answered; some that did not are counted."""
        if self._shown is not None or time.monotonic() >= self._try_again_at:
            try:
                listing = list_every_group(self._own.opened(), selects, errors)
            except (KafkaTrouble, ConfigError) as trouble:  # ConfigError: a secret that is not there any more
                kind = trouble.kind if isinstance(trouble, KafkaTrouble) else "setting_refused"
                told = KafkaTrouble(kind, self._client.clean(str(trouble)))
                self._own.raise_if_alone(told)
                self._refused(told, errors)
            else:
                self.refusal = None
                found = {name: kind for name, kind in listing.types.items() if kind not in _OF_LIBRDKAFKA}
                self._shown = found if listing.complete else {**(self._shown or {}), **found}
                return listing
        listing = list_groups(self._client, selects, errors)
        self._client.answered()
        return GroupListing({**(self._shown or {}), **listing.types}, complete=listing.complete, seen=listing.seen)

    def describe_groups(self, types: Mapping[str, str | None], errors: ErrorTally) -> list[KafkaGroup]:
        """Every group of that name, described or with its error; those that were deleted meanwhile are left out."""
        others = {name: kind for name, kind in types.items() if kind not in _OF_LIBRDKAFKA}
        of_consumers = {name: kind for name, kind in types.items() if name not in others}
        groups = self._own.read(
            Part.DESCRIPTIONS,
            lambda client: describe_consumer_groups(client, of_consumers, errors),
            lambda: describe_groups(self._client, of_consumers, errors),
        )
        if not others:
            return groups
        if self._own.client is not None:
            return groups + describe_by_type(self._own.client, others, errors)
        trouble = self.refusal or KafkaTrouble("not_supported", "groups of this type")
        return groups + [g for name, kind in others.items() for g in unreadable([name], kind, trouble, errors)]

    def read_offsets(self, groups: Sequence[KafkaGroup], errors: ErrorTally) -> CommitColumns:
        """What the groups have read: the committed offsets, and of share groups, which commit nothing, the start
        offsets."""
        committing = [group for group in groups if group.type != SHARE]
        commits = self._own.read(
            Part.OFFSETS,
            lambda client: read_commits(client, committing, errors, self._clock),
            lambda: self._librdkafkas.read(committing, errors),
        )
        shares = [group for group in groups if group.type == SHARE and group.error is None]
        if shares and self._own.client is not None:
            add_share_offsets(self._own.client, shares, commits, errors, self._clock)
        return commits

    def _refused(self, trouble: KafkaTrouble, errors: ErrorTally) -> None:
        self._own.close()
        if self._shown is not None:
            errors.note(trouble.kind, f"listing groups of every type: {trouble}")
        else:  # no broker of this cluster has ever let us in: it is not worth a try in every sample
            self._try_again_at = time.monotonic() + TRY_AGAIN_SECONDS
            if self.refusal is None or self.refusal.kind != trouble.kind:
                log.warning(
                    "%s: only consumer groups are listed, no share group, streams group or group of Kafka Connect (%s)",
                    self._cluster.name,
                    trouble,
                    extra=event(LogEvent.GROUPS_NOT_LISTED, cluster=self._cluster.name),
                )
        self.refusal = trouble
