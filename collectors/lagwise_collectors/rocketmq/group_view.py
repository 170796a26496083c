"""A group as all brokers together show it: state, type, members, and who owns which queue."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from lagwise.domain.subscriptions import Subscription
from lagwise.domain.vocabulary import BROADCAST_HINT, BROADCASTING, LOCAL_FILES, ROCKETMQ_RETRY, GroupState
from lagwise_collectors.rocketmq.ask_members import MemberAnswers
from lagwise_collectors.rocketmq.broker_reader import BrokerView
from lagwise_collectors.rocketmq.remoting.requests import Online, Queue, Range, Told


@dataclass(slots=True)
class RocketmqMember:
    """One member, and the queues that it owns, or has its share of. ``lag`` is what a member of a broadcasting group
    has not read of them (None: not known, or the group is another one)."""

    client_id: str
    host: str
    queues: list[Queue] = field(default_factory=list)
    lag: int | None = None


@dataclass(slots=True)
class RocketmqGroup:
    """One group. ``owners`` are by queue; ``progress`` is that of the broadcasting: of the member that is furthest
    behind (None: not known), and ``reached`` that of each client; ``source`` is where it comes from, unless the members
    said it all. With an ``error`` it could not be read."""

    name: str
    state: GroupState | None = None
    type: str | None = None
    members: list[RocketmqMember] = field(default_factory=list)
    topics: frozenset[str] = frozenset()
    owners: dict[Queue, str] = field(default_factory=dict)
    progress: dict[Queue, int | None] | None = None
    reached: dict[Queue, dict[str, int | None]] = field(default_factory=dict)
    unacknowledged: int | None = None
    subscriptions: list[Subscription] = field(default_factory=list)
    source: str | None = None
    error: str | None = None

    def owners_on(self, broker: str) -> dict[str, dict[int, str]]:
        """Owners of the queues of one broker, by topic and queue."""
        found: dict[str, dict[int, str]] = {}
        for queue, owner in self.owners.items():
            if queue.broker == broker:
                found.setdefault(queue.topic, {})[queue.queue] = owner
        return found


def put_together(
    name: str,
    views: Sequence[BrokerView],
    answers: MemberAnswers,
    last: "RocketmqGroup | None",
    is_lost: bool,
    local: Mapping[str, Mapping[Queue, int]] | None = None,
    *,
    asks_members: bool = True,
) -> RocketmqGroup:
    """The group from the brokers' views. ``last`` is what it was in the sample before; ``is_lost`` says that a broker
    that had it cannot be asked: then not being online anywhere else means nothing. ``local`` is how far clients are by
    the files that they keep where the group is broadcasting. Where nobody asks the members, the brokers' hint counts;
    where they are asked and one is silent, it does not: as often as that happened, the group would leap ahead to what
    was fetched, and back again."""
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
    told = {client: answers.of(name, client) for client in sorted(hosts)}
    topics = frozenset(topic for one in online for topic in one.topics)
    queues = _queues(views, topics)
    group = RocketmqGroup(name, GroupState.STABLE, _type(online, told.values(), last), topics=topics)
    if group.type == BROADCASTING:
        group.reached = _reached(queues, told, local or {})
        silent = [queue for queue, at in group.reached.items() if None in at.values() and not asks_members]
        fetched = {queue: at for queue in silent if (at := _fetched(name, queue, views)) is not None}
        group.progress = _slowest(group.reached, told, group.owners, fetched)
        from_files = any(told.get(client) is None for client in local or ())
        group.source = BROADCAST_HINT if fetched else LOCAL_FILES if from_files else None
        group.members = [RocketmqMember(client, hosts[client], list(queues)) for client in sorted(hosts)]
    else:
        # Pull consumers do not say what they own.
        told = {
            client: None if group.type == "pull" and said and not said.progress else said
            for client, said in told.items()
        }
        group.members = _sharing(queues, told, hosts, group.owners)
    group.subscriptions = _subscriptions(online, [said for said in told.values() if said is not None])
    if group.type == "pop":
        known = [one.unacknowledged for one in told.values() if one is not None]
        group.unacknowledged = sum(known) if len(known) == len(hosts) else None
    return group


def _type(online: Iterable[Online], told: Iterable[Told | None], last: "RocketmqGroup | None") -> str:
    """``clustering`` where no member said more; then what it was before is more likely still so."""
    online, known = list(online), [one for one in told if one is not None]
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
    queues: Sequence[Queue], told: Mapping[str, Told | None], hosts: Mapping[str, str], owners: dict[Queue, str]
) -> list[RocketmqMember]:
    """Members of a group that shares its queues out. What nobody says is theirs belongs to those who said nothing, or,
    where messages are popped, to all: each queue serves every member."""
    members = {client: RocketmqMember(client, hosts[client]) for client in told}
    wanted = set(queues)
    for client, said in told.items():
        for queue in sorted(said.progress) if said is not None else ():
            if queue in wanted:
                owners[queue] = client
                members[client].queues.append(queue)
    open_to = [client for client, said in told.items() if said is None or said.is_popping]
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
    queues: Sequence[Queue], told: Mapping[str, Told | None], local: Mapping[str, Mapping[Queue, int]]
) -> dict[Queue, dict[str, int | None]]:
    """Per queue how far each client is (None: it does not say). What a member does not say is taken from its file; of a
    client that is not there, only what its file names counts."""
    reached: dict[Queue, dict[str, int | None]] = {}
    for queue in queues:
        if queue.topic.startswith(ROCKETMQ_RETRY):
            continue  # what a broadcasting member could not process is not tried again
        at = {client: said.progress.get(queue) if said is not None else None for client, said in told.items()}
        for client, offsets in local.items():
            if at.get(client) is None and queue in offsets:
                at[client] = offsets[queue]
        reached[queue] = at
    return reached


def _fetched(group: str, queue: Queue, views: Sequence[BrokerView]) -> int | None:
    """The broker's hint how far all members of a broadcasting group have fetched a queue; None: it has none."""
    for view in views:
        if view.broker.name == queue.broker:
            offset = view.fetched.get(group, {}).get(queue.topic, {}).get(str(queue.queue))
            return offset if type(offset) is int and 0 <= offset < 2**63 else None
    return None


def _subscriptions(online: Sequence[Online], told: Sequence[Told]) -> list[Subscription]:
    """What is subscribed to, without the group's retries: by the members themselves, or as brokers have it."""
    said = [one.filters for one in told if one.filters]
    wanted = Counter(pair for filters in said for pair in filters.items())
    if not said:
        wanted = Counter({pair for one in online for pair in one.filters.items()})
    return [
        Subscription(topic, expression, number if said else None, len(said) or None)
        for (topic, expression), number in sorted(wanted.items())
        if not topic.startswith(ROCKETMQ_RETRY)
    ]


def _slowest(
    reached: Mapping[Queue, Mapping[str, int | None]],
    told: Collection[str],
    owners: dict[Queue, str],
    fetched: Mapping[Queue, int],
) -> dict[Queue, int | None]:
    """Per queue the progress of the client that is furthest behind, who stands as its owner if it is online. Where one
    member's progress is not known, nobody knows which is furthest; but none is further than it was ``fetched`` by all,
    so that lag is at least what is left from there on."""
    progress: dict[Queue, int | None] = {}
    for queue, at in reached.items():
        known = {client: offset for client, offset in at.items() if offset is not None}
        slowest = min(known, key=lambda client: (known[client], client)) if known else min(at, default=None)
        if slowest is not None and slowest in told:
            owners[queue] = slowest
        progress[queue] = known[slowest] if slowest is not None and len(known) == len(at) else None
        if queue in fetched:
            progress[queue] = min([fetched[queue], *known.values()])
    return progress


def measure_members(group: RocketmqGroup, ranges: Mapping[Queue, Range]) -> None:
    """What each member of a broadcasting group has not read, where its progress and the queues' ends are known of all
    its queues."""
    if group.progress is None:
        return
    for member in group.members:
        lags = []
        for queue, at in group.reached.items():
            offset, ends = at.get(member.client_id), ranges.get(queue)
            lags.append(None if offset is None or ends is None else max(0, ends.end - max(ends.start, offset)))
        known = [lag for lag in lags if lag is not None]
        member.lag = sum(known) if known and len(known) == len(lags) else None
