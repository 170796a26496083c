"""A group put together from the views of all brokers: state, type, members, and the owners of queues."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from lagwise.domain.subscription_findings import Subscription
from lagwise.domain.vocabulary import BROADCAST_HINT, BROADCASTING, LOCAL_FILES, ROCKETMQ_RETRY, GroupState
from lagwise_collectors.rocketmq.ask_members import MemberAnswers
from lagwise_collectors.rocketmq.broker_reader import BrokerView
from lagwise_collectors.rocketmq.remoting.requests import MemberReport, OnlineGroup, Queue, QueueRange


@dataclass(slots=True)
class RocketmqMember:
    """One member."""

    client_id: str
    host: str
    #: Queues that it owns, or shares.
    queues: list[Queue] = field(default_factory=list)
    #: Unread messages of a member of a broadcasting group; None: unknown, or the group is not broadcasting.
    lag: int | None = None


@dataclass(slots=True)
class RocketmqGroup:
    """One group."""

    name: str
    #: Stable with members online, Empty without; None: the group could not be read.
    state: GroupState | None = None
    #: concurrent, orderly, pop, pull, broadcasting or clustering (see :func:`_type`); None: it was never online.
    type: str | None = None
    #: Members that are online.
    members: list[RocketmqMember] = field(default_factory=list)
    #: Topics that its members subscribe to or, if only files of its clients are left, the topics in these.
    topics: frozenset[str] = frozenset()
    #: Owner by queue.
    owners: dict[Queue, str] = field(default_factory=dict)
    #: Offsets of a broadcasting group: those of the member furthest behind; None as a value: unknown.
    progress: dict[Queue, int | None] | None = None
    #: Offsets of each client of a broadcasting group; None: unknown.
    reached: dict[Queue, dict[str, int | None]] = field(default_factory=dict)
    #: Messages that members were handed and did not acknowledge yet; None: the group does not pop, or a member did
    #: not report them.
    unacknowledged: int | None = None
    #: Topics and filters that it subscribes to, and how many members report each.
    subscriptions: list[Subscription] = field(default_factory=list)
    #: The source of the progress; None: the members reported all of it.
    source: str | None = None
    #: Why the group could not be read.
    error: str | None = None

    def owners_on(self, broker: str) -> dict[str, dict[int, str]]:
        """Owners of the queues of one broker, by topic and queue."""
        found: dict[str, dict[int, str]] = {}
        for queue, owner in self.owners.items():
            if queue.broker == broker:
                found.setdefault(queue.topic, {})[queue.queue] = owner
        return found


def assemble_group(
    name: str,
    views: Sequence[BrokerView],
    answers: MemberAnswers,
    last: "RocketmqGroup | None",
    is_lost: bool,
    local: Mapping[str, Mapping[Queue, int]] | None = None,
    *,
    asks_members: bool = True,
) -> RocketmqGroup:
    """The group from the brokers' views.

    ``last`` is the group in the previous sample. ``is_lost``: a broker that had the group cannot be read, so a group
    that is not online on other brokers may still be online. ``local`` are the offsets in the files of a broadcasting
    group's clients. Where members are not asked, the brokers' hint counts. Where they are asked and one does not
    answer, it does not count: the group would leap ahead to what was fetched, and back again.
    """
    online = [found for view in views if (found := view.online.get(name)) is not None and found.members]
    if not online:
        troubles = [view.group_troubles[name] for view in views if name in view.group_troubles]
        if troubles or is_lost:
            return RocketmqGroup(
                name, type=last.type if last else None, error=troubles[0].kind if troubles else "unreachable"
            )
        group = RocketmqGroup(name, GroupState.EMPTY, type=last.type if last else None)
        if local:
            group.type = BROADCASTING
            group.topics = frozenset(queue.topic for progress in local.values() for queue in progress)
            group.source = LOCAL_FILES
            group.reached = _reached(_queues(views, group.topics), {}, local)
            group.progress = _slowest(group.reached, {}, group.owners, {})
        return group
    hosts = {client: host for one in online for client, host in one.members.items()}
    reports = {client: answers.of(name, client) for client in sorted(hosts)}
    topics = frozenset(topic for one in online for topic in one.topics)
    queues = _queues(views, topics)
    group = RocketmqGroup(name, GroupState.STABLE, _type(online, reports.values(), last), topics=topics)
    if group.type == BROADCASTING:
        group.reached = _reached(queues, reports, local or {})
        silent = [queue for queue, at in group.reached.items() if None in at.values() and not asks_members]
        fetched = {queue: at for queue in silent if (at := _fetched(name, queue, views)) is not None}
        group.progress = _slowest(group.reached, reports, group.owners, fetched)
        from_files = any(reports.get(client) is None for client in local or ())
        group.source = BROADCAST_HINT if fetched else LOCAL_FILES if from_files else None
        group.members = [RocketmqMember(client, hosts[client], list(queues)) for client in sorted(hosts)]
    else:
        # Pull consumers do not report what they own.
        reports = {
            client: None if group.type == "pull" and report and not report.progress else report
            for client, report in reports.items()
        }
        group.members = _sharing(queues, reports, hosts, group.owners)
    group.subscriptions = _subscriptions(online, [report for report in reports.values() if report is not None])
    if group.type == "pop":
        known = [one.unacknowledged for one in reports.values() if one is not None]
        group.unacknowledged = sum(known) if len(known) == len(hosts) else None
    return group


def _type(online: Iterable[OnlineGroup], reports: Iterable[MemberReport | None], last: "RocketmqGroup | None") -> str:
    """The type; ``clustering`` where no member reported more, unless the previous type is known."""
    online, known = list(online), [one for one in reports if one is not None]
    if any(one.is_broadcasting for one in online):
        return BROADCASTING
    if any(one.is_popping for one in known):
        return "pop"
    if all(one.is_pulling for one in online):
        return "pull"
    if known:
        return "orderly" if any(one.is_orderly for one in known) else "concurrent"
    before = last.type if last else None
    return before if before in ("pop", "orderly", "concurrent") else "clustering"


def _sharing(
    queues: Sequence[Queue],
    reports: Mapping[str, MemberReport | None],
    hosts: Mapping[str, str],
    owners: dict[Queue, str],
) -> list[RocketmqMember]:
    """Members of a group that shares out its queues. Queues that no member reported belong to those that did not answer
    or, in a group that pops, to all: each queue serves every member."""
    members = {client: RocketmqMember(client, hosts[client]) for client in reports}
    wanted = set(queues)
    for client, report in reports.items():
        for queue in sorted(report.progress) if report is not None else ():
            if queue in wanted:
                owners[queue] = client
                members[client].queues.append(queue)
    open_to = [client for client, report in reports.items() if report is None or report.is_popping]
    if open_to:
        owner = open_to[0] if len(open_to) == 1 else f"one of {len(open_to)} members"
        left = [queue for queue in queues if queue not in owners]
        owners |= dict.fromkeys(left, owner)
        for client in open_to:
            members[client].queues += left
    return list(members.values())


def _queues(views: Sequence[BrokerView], topics: frozenset[str]) -> list[Queue]:
    return [
        Queue(topic, view.broker.name, queue)
        for view in views
        for topic in sorted(topics & view.topics.keys())
        for queue in range(view.topics[topic].queues)
    ]


def _reached(
    queues: Sequence[Queue], reports: Mapping[str, MemberReport | None], local: Mapping[str, Mapping[Queue, int]]
) -> dict[Queue, dict[str, int | None]]:
    """Per queue the offset of each client (None: unknown). Where a member does not report one, its file counts; of a
    client that is offline, only the queues in its file."""
    #: Offsets of each client of a broadcasting group; None: unknown.
    reached: dict[Queue, dict[str, int | None]] = {}
    for queue in queues:
        if queue.topic.startswith(ROCKETMQ_RETRY):
            continue  # broadcasting members do not retry
        at = {client: report.progress.get(queue) if report is not None else None for client, report in reports.items()}
        for client, offsets in local.items():
            if at.get(client) is None and queue in offsets:
                at[client] = offsets[queue]
        reached[queue] = at
    return reached


def _fetched(group: str, queue: Queue, views: Sequence[BrokerView]) -> int | None:
    """The broker's hint: how far all members of a broadcasting group have fetched a queue; None: there is none."""
    for view in views:
        if view.broker.name == queue.broker:
            offset = view.fetched.get(group, {}).get(queue.topic, {}).get(str(queue.queue))
            return offset if type(offset) is int and 0 <= offset < 2**63 else None
    return None


def _subscriptions(online: Sequence[OnlineGroup], reports: Sequence[MemberReport]) -> list[Subscription]:
    """Subscriptions without the group's retry topic: as the members report them, otherwise as the brokers do."""
    filters_reported = [one.filters for one in reports if one.filters]
    wanted = Counter(pair for filters in filters_reported for pair in filters.items())
    if not filters_reported:
        wanted = Counter({pair for one in online for pair in one.filters.items()})
    return [
        Subscription(topic, expression, number if filters_reported else None, len(filters_reported) or None)
        for (topic, expression), number in sorted(wanted.items())
        if not topic.startswith(ROCKETMQ_RETRY)
    ]


def _slowest(
    reached: Mapping[Queue, Mapping[str, int | None]],
    reports: Collection[str],
    owners: dict[Queue, str],
    fetched: Mapping[Queue, int],
) -> dict[Queue, int | None]:
    """Per queue the progress of the client furthest behind, which is its owner if it is online.

    Where one member's progress is unknown, so is that of the slowest. But no member is further than what all have
    ``fetched``, so the lag is at least what is left from there.
    """
    progress: dict[Queue, int | None] = {}
    for queue, at in reached.items():
        known = {client: offset for client, offset in at.items() if offset is not None}
        slowest = min(known, key=lambda client: (known[client], client)) if known else min(at, default=None)
        if slowest is not None and slowest in reports:
            owners[queue] = slowest
        progress[queue] = known[slowest] if slowest is not None and len(known) == len(at) else None
        if queue in fetched:
            progress[queue] = min([fetched[queue], *known.values()])
    return progress


def add_member_lags(group: RocketmqGroup, ranges: Mapping[Queue, QueueRange]) -> None:
    """Set the lag of each member of a broadcasting group, where its progress and the ends of all its queues are
    known."""
    if group.progress is None:
        return
    for member in group.members:
        lags = []
        for queue, at in group.reached.items():
            offset, ends = at.get(member.client_id), ranges.get(queue)
            lags.append(None if offset is None or ends is None else max(0, ends.end - max(ends.start, offset)))
        known = [lag for lag in lags if lag is not None]
        member.lag = sum(known) if known and len(known) == len(lags) else None
