"""Tries each step that collecting from a RocketMQ cluster needs, for ``lagwise doctor``."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from time import monotonic

from lagwise.config import RocketmqCluster
from lagwise.domain.humanise import duration, plural
from lagwise.platform.errors import ConfigError
from lagwise_collectors.protocol import Check, ErrorTally
from lagwise_collectors.rocketmq.broker_reader import BrokerReader, BrokerView
from lagwise_collectors.rocketmq.broker_retention import BrokerStatusReader
from lagwise_collectors.rocketmq.local_offsets import LocalOffsets
from lagwise_collectors.rocketmq.remoting.client import RocketmqBroker, RocketmqClient
from lagwise_collectors.rocketmq.remoting.errors import ADVICE, RocketmqTrouble

_TOPICS, _GROUPS, _CLUSTER = "Get, List on Topic:*", "Get, List on Group:*", "Get, List on Cluster:*"


def check_access(cluster: RocketmqCluster) -> list[Check]:
    """One check per step and broker. Steps that depend on a failed one are not tried."""
    try:
        client = RocketmqClient(cluster)
    except ConfigError as error:
        return [Check("connect", False, str(error), None, ADVICE["setting_refused"])]
    try:
        brokers = client.brokers()
        if not brokers:
            return [Check("connect", False, "the name servers know no broker", None, ADVICE["no_broker"])]
        found = f"{plural(len(brokers), 'broker')} known to {cluster.name_servers}"
        steps = [_Steps(client, cluster, broker).run() for broker in brokers]
        return [Check("connect", True, found), *(check for checks in steps for check in checks), *_local(cluster)]
    except RocketmqTrouble as trouble:
        return [Check("connect", False, str(trouble), None, ADVICE.get(trouble.kind, "see the name server's log"))]
    finally:
        client.close()


def _local(cluster: RocketmqCluster) -> list[Check]:
    """The check of local offset files, where the settings name them. Finding none is no error."""
    if cluster.local_offsets is None:
        return []
    local, errors = LocalOffsets(cluster.local_offsets, lambda: datetime.now(UTC)), ErrorTally()
    local.begin()
    found = local.finish(errors)
    name = "local offsets"
    if errors:
        example = errors.example(next(iter(errors.counts)))
        return [Check(name, False, example, None, "see local_offsets in docs/rocketmq.md", required=False)]
    clients = sum(map(len, found.values()))
    return [Check(name, True, f"{plural(clients, 'file')} of {plural(len(found), 'group')}", required=False)]


@dataclass
class _Steps:
    """The steps on one broker."""

    client: RocketmqClient
    cluster: RocketmqCluster
    broker: RocketmqBroker
    view: BrokerView = field(init=False)
    reader: BrokerReader = field(init=False)

    def __post_init__(self) -> None:
        self.view = BrokerView(self.broker)
        self.reader = BrokerReader(self.client, lambda: datetime.now(UTC))

    def run(self) -> list[Check]:
        names = self._try("topics and groups", _CLUSTER, self._names)
        if not names.ok:
            return [names]
        return [
            names,
            self._try("members", _GROUPS, self._members),
            self._try("committed offsets", _CLUSTER, self._offsets),
            self._try("queue ends", _TOPICS, self._ranges),
            *self._asking(),
            self._try(
                "broker settings",
                _CLUSTER,
                self._retention,
                "grant the user Get on Cluster:*: without it Lagwise cannot warn before unread messages are deleted",
            ),
        ]

    def _try(self, name: str, privilege: str, step: Callable[[], str], cost: str | None = None) -> Check:
        """Try a step. One with a ``cost`` is optional; ``cost`` says what is missing without it."""
        title = f"{name} of {self.broker.name}"
        try:
            return Check(title, True, step(), privilege, required=cost is None)
        except RocketmqTrouble as trouble:
            advice = cost or ADVICE.get(trouble.kind, "see the broker's log")
            needed = privilege if trouble.kind == "not_authorized" else None
            return Check(title, False, str(trouble), needed, advice, required=cost is None)

    def _names(self) -> str:
        self.reader.names(self.view)
        watched = [name for name in self.view.groups if self.cluster.groups.selects(name)]
        return f"{plural(len(self.view.topics), 'topic')}, {plural(len(watched), 'watched group')} at {self._where()}"

    def _where(self) -> str:
        return self.broker.address if self.broker.is_master else f"{self.broker.address}, a slave: there is no master"

    def _members(self) -> str:
        self.reader.members(self.view, [n for n in self.view.groups if self.cluster.groups.selects(n)])
        for trouble in self.view.group_troubles.values():
            raise trouble
        online = [found for found in self.view.online.values() if found is not None]
        return f"{len(online)} groups are online, with {plural(sum(len(o.members) for o in online), 'member')}"

    def _offsets(self) -> str:
        self.reader.offsets(self.view)
        return f"of {plural(len(self.view.offsets), 'group')}"

    def _ranges(self) -> str:
        topics = {topic for its in self.view.offsets.values() for topic in its} or set(sorted(self.view.topics)[:1])
        self.reader.ranges(self.view, topics)
        for trouble in self.view.topic_troubles.values():
            raise trouble
        return f"of {plural(len(self.view.ranges), 'topic')}"

    def _asking(self) -> list[Check]:
        members = [(name, client) for name, found in self.view.online.items() if found for client in found.members]
        if not self.cluster.ask_members or not members:
            return []
        cost = (
            "without it queue owners and the progress of broadcasting groups are unknown; set ask_members: false to "
            "stop asking"
        )
        return [self._try("asking members", _GROUPS, lambda: self._ask(members), cost)]

    def _ask(self, members: list[tuple[str, str]]) -> str:
        answers = self.reader.ask_members(self.view, members[:1])
        if isinstance(answers[0], RocketmqTrouble):
            raise answers[0]
        return f"{members[0][1]} answered for group {members[0][0]}"

    def _retention(self) -> str:
        retention = BrokerStatusReader(self.client, lambda: datetime.now(UTC), monotonic).read(self.broker)
        reserved, kept, used = retention.settings.reserved_seconds, retention.kept_seconds, retention.state.disk_used
        if reserved is None:
            raise RocketmqTrouble("malformed", "the broker does not report its fileReservedTime")
        said = f"messages are kept for {reserved / 3600:g} h"
        if kept is None or kept < reserved:
            said += ", and for less on this disk" if kept is None else f", and for {duration(kept)} on this disk"
        return said if used is None else f"{said}, which is {used:.0%} full"
