"""A RocketMQ cluster as a source: one sample is brokers, names, members, commits, and only then where queues end."""

import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from lagwise.config import RocketmqCluster
from lagwise.platform.errors import ConfigError
from lagwise.tables.raw import TOPICS
from lagwise_collectors.protocol import Check, Snapshot
from lagwise_collectors.rocketmq.access import check_access
from lagwise_collectors.rocketmq.ask_members import Member, MemberAnswers, ReachableMembers
from lagwise_collectors.rocketmq.broker_presence import BrokerPresence
from lagwise_collectors.rocketmq.broker_reader import BrokerReader, BrokerView
from lagwise_collectors.rocketmq.broker_retention import BrokerStatusReader
from lagwise_collectors.rocketmq.broker_rows import BrokerRows, rows_of_broker
from lagwise_collectors.rocketmq.group_view import RocketmqGroup, add_member_lags, assemble_group
from lagwise_collectors.rocketmq.local_offsets import LocalOffsets
from lagwise_collectors.rocketmq.partition_numbers import BrokerNumbers
from lagwise_collectors.rocketmq.remoting.client import RocketmqBroker, RocketmqClient
from lagwise_collectors.rocketmq.remoting.errors import RocketmqTrouble
from lagwise_collectors.rocketmq.remoting.requests import MemberReport, Queue
from lagwise_collectors.rocketmq.retry_topics import dead_letter_topic, side_topics_of, topics_read
from lagwise_collectors.rocketmq.sample_rows import (
    TopicRows,
    add_commits,
    add_groups,
    add_service_times,
    add_watermarks,
)
from lagwise_collectors.sample_builder import SampleBuilder

#: A broker that the name servers no longer list counts as unreadable for this long: it may be down. After that it
#: counts as removed from the cluster.
_REMEMBERED_SECONDS = 600.0


class RocketmqSource:
    """Samples one RocketMQ cluster. ``state`` is the file in which the brokers' numbers outlive the process; when they
    were last listed is in another one beside it."""

    def __init__(
        self,
        cluster: RocketmqCluster,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        *,
        state: Path | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._cluster = cluster
        self._clock = clock
        self._monotonic = monotonic
        self._numbers = BrokerNumbers(state)
        self._presence = BrokerPresence(None if state is None else state.with_name(f"{state.name}.listed"))
        self._answers = MemberAnswers(monotonic)
        self._local_offsets = LocalOffsets(cluster.local_offsets, clock) if cluster.local_offsets else None
        self._topic_rows = TopicRows()
        self._client: RocketmqClient | None = None
        self._brokers: BrokerStatusReader | None = None
        self._seen: dict[str, tuple[float, RocketmqBroker]] = {}
        self._groups: dict[str, RocketmqGroup] = {}
        self._rows: dict[str, BrokerRows] = {}
        self._groups_of: dict[str, set[str]] = {}

    def collect(self) -> Snapshot:
        """One sample. Where the cluster cannot be used at all, its ``samples`` row is all there is, and says why."""
        sample = SampleBuilder(self._cluster, self._clock)
        try:
            self._read(sample)
        except RocketmqTrouble as trouble:
            sample.errors.note(trouble.kind, str(trouble))
        except ConfigError as error:
            sample.errors.note("setting_refused", str(error))
        return sample.finish()

    def check(self) -> list[Check]:
        """What ``lagwise doctor`` shows of this cluster."""
        return check_access(self._cluster)

    def close(self) -> None:
        """Drop the connections; the next sample makes new ones."""
        client, self._client = self._client, None
        if client is not None:
            client.close()

    def _read(self, sample: SampleBuilder) -> None:
        if self._client is None:
            self._client = RocketmqClient(self._cluster)
            self._brokers = BrokerStatusReader(self._client, self._clock, self._monotonic)
        client, brokers = self._client, self._brokers
        assert brokers is not None
        views = self._views(client, sample)
        reader = BrokerReader(client, self._clock)
        if self._local_offsets is not None:
            self._local_offsets.begin()
        reader.on_each(views, reader.names)
        if all(view.trouble is not None for view in views):
            raise next((view.trouble for view in views if view.trouble), _no_broker())
        names = sorted({name for view in views for name in view.groups if self._cluster.groups.selects(name)})
        reader.on_each(views, partial(reader.members, groups=names))
        if self._cluster.ask_members:
            self._ask_members(reader, views, names, sample)
        described_at = self._clock()
        reader.on_each(views, reader.offsets)
        local = self._local_offsets.finish(sample.errors) if self._local_offsets is not None else {}
        groups = [self._group(name, views, local.get(name)) for name in self._with_unlisted(names, views)]
        wanted = {
            view.broker.name: {topic for group in groups for topic in topics_read(group, view)}
            | {dead_letter_topic(group.name) for group in groups}
            for view in views
        }
        reader.on_each(views, lambda view: reader.ranges(view, wanted[view.broker.name]))
        self._read_retention(client, brokers, views, sample)
        sample.facts["brokers"] = self._presence.rows(brokers)
        self._keep(sample, views, groups, wanted, described_at)
        self._keep_topics(sample, views, groups, wanted, brokers)

    def _views(self, client: RocketmqClient, sample: SampleBuilder) -> list[BrokerView]:
        """A view of each broker, including those that were listed until recently."""
        now = self._monotonic()
        listed = client.brokers()
        self._presence.see([broker.name for broker in listed], self._clock())
        self._numbers.add(broker.name for broker in listed)
        self._seen |= {broker.name: (now, broker) for broker in listed}
        views = [BrokerView(broker) for broker in listed]
        for broker in listed:
            if not broker.is_master:
                sample.errors.note("no_master", f"{broker.name}: it has no master; a slave is read instead")
        for name, (seen_at, broker) in list(self._seen.items()):
            if now - seen_at >= _REMEMBERED_SECONDS:
                for known in (self._seen, self._rows, self._groups_of):
                    known.pop(name, None)
            elif seen_at < now:
                gone = RocketmqTrouble("broker_gone", f"the name servers no longer list {name}: it may be down")
                views.append(BrokerView(broker, trouble=gone))
        if not views:
            raise _no_broker()
        return views

    def _ask_members(
        self, reader: BrokerReader, views: Sequence[BrokerView], names: Sequence[str], sample: SampleBuilder
    ) -> None:
        present = {}
        for name in names:
            online = [(view.broker.name, found) for view in views if (found := view.online.get(name)) is not None]
            through = {client: broker for broker, found in reversed(online) for client in found.members}
            if through:
                present[name] = ReachableMembers(through, any(found.is_broadcasting for _, found in online))
        due = self._answers.due(present)
        by_broker: dict[str, list[Member]] = {}
        for group, client in due:
            by_broker.setdefault(present[group].brokers[client], []).append((group, client))
        answers: dict[Member, MemberReport | RocketmqTrouble] = {}

        def ask(view: BrokerView) -> None:
            members = by_broker.get(view.broker.name, [])
            answers.update(zip(members, reader.ask_members(view, members), strict=True))

        reader.on_each(views, ask)
        asked = [member for member in due if member in answers]
        self._answers.take(asked, [answers[member] for member in asked], sample.errors)

    def _with_unlisted(self, names: Sequence[str], views: Sequence[BrokerView]) -> list[str]:
        """The groups to show: a group is not gone while a broker that had it cannot be read."""
        unlisted = {name for view in views if view.trouble for name in self._groups_of.get(view.broker.name, ())}
        return sorted(set(names) | unlisted)

    def _group(
        self, name: str, views: Sequence[BrokerView], local: Mapping[str, Mapping[Queue, int]] | None
    ) -> RocketmqGroup:
        lost = any(view.trouble and name in self._groups_of.get(view.broker.name, ()) for view in views)
        readable = [view for view in views if view.trouble is None]
        before, asks = self._groups.get(name), self._cluster.ask_members
        return assemble_group(name, readable, self._answers, before, lost, local, asks_members=asks)

    def _read_retention(
        self, client: RocketmqClient, brokers: BrokerStatusReader, views: Sequence[BrokerView], sample: SampleBuilder
    ) -> None:
        """Read the state and retention of brokers. An error costs nothing else."""
        readable = [view.broker for view in views if view.trouble is None]
        for outcome in client.on_each(readable, brokers.read).values():
            if isinstance(outcome, RocketmqTrouble):
                sample.errors.note(f"config_{outcome.kind}", str(outcome))

    def _keep(
        self,
        sample: SampleBuilder,
        views: Sequence[BrokerView],
        groups: Sequence[RocketmqGroup],
        wanted: dict[str, set[str]],
        described_at: datetime,
    ) -> None:
        rows: dict[str, BrokerRows] = {}
        for view in views:
            name = view.broker.name
            if view.trouble is not None:
                sample.errors.note(view.trouble.kind, f"{name}: {view.trouble}")
                rows[name] = self._rows.get(name, BrokerRows()).unread(view.trouble.kind)
                continue
            for trouble in view.group_troubles.values():
                sample.errors.note(trouble.kind, str(trouble))
            rows[name] = rows_of_broker(view, self._numbers[name], groups, wanted[name], sample.errors)
            self._rows[name] = rows[name]
            self._groups_of[name] = {group.name for group in groups if group.name in view.groups}
        self._groups = {group.name: group for group in groups}
        ranges = {
            Queue(topic, view.broker.name, queue): ends
            for view in views
            for topic, queues in view.ranges.items()
            for queue, ends in queues.items()
        }
        for group in groups:
            add_member_lags(group, ranges)
        add_groups(sample, groups, self._numbers, described_at)
        add_service_times(sample, self._answers, self._groups, self._numbers, described_at)
        now = self._clock()
        commits_at = [view.offsets_read_at for view in views if view.offsets_read_at is not None]
        marks_at = [view.ranges_read_at for view in views if view.ranges_read_at is not None]
        add_commits(sample, rows.values(), min(commits_at, default=now))
        add_watermarks(sample, rows, self._numbers, max(marks_at, default=now))

    def _keep_topics(
        self,
        sample: SampleBuilder,
        views: Sequence[BrokerView],
        groups: Sequence[RocketmqGroup],
        wanted: dict[str, set[str]],
        brokers: BrokerStatusReader,
    ) -> None:
        at = self._clock()
        topics = {topic for view in views for topic in wanted[view.broker.name] & view.topics.keys()}
        side_topics = side_topics_of([group.name for group in groups], topics)
        sample.add_rows(TOPICS, self._topic_rows.due(topics, views, side_topics, brokers, at), at)
        brokers.count_troubles([view.broker.name for view in views if view.trouble is None], sample.errors)


def _no_broker() -> RocketmqTrouble:
    return RocketmqTrouble("no_broker", "the name servers know no broker")
