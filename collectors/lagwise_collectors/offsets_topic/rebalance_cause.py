"""The cause of a rebalance: compares two memberships, and judges by commits and timeouts why members are gone."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from lagwise.domain.vocabulary import RebalanceCause
from lagwise_collectors.offsets_topic.commit_history import CommitHistory
from lagwise_collectors.offsets_topic.records import OwnedPartitions

#: A pause between commits must exceed this many usual ones to be evidence.
_USUAL_PAUSES = 2
#: Timers fire up to about a second late, and so does the client's look at its poll interval.
_TIMERS_MS = 1_000
#: Clients send a heartbeat at least this many times in a session timeout: only at a heartbeat do the others learn of a
#: rebalance, and only then can it end.
_HEARTBEATS_PER_SESSION = 3


@dataclass(frozen=True, slots=True)
class TrackedMember:
    """One member."""

    member_id: str
    #: Client id and host, as text.
    label: str
    #: Topics that it subscribes to.
    topics: tuple[str, ...]
    #: By topic name, or by topic id in a KIP-848 group.
    owned: OwnedPartitions
    session_ms: int | None
    poll_ms: int | None


#: By static instance id where there is one (then it starts with "static "): such a member may come back under another
#: member id and is still the same.
Members = Mapping[str, TrackedMember]


#: The commits of the group on one of its partitions.
CommitsOn = Callable[[tuple[str, int]], CommitHistory | None]


@dataclass(frozen=True, slots=True)
class MembershipChange:
    """Who joined, who left and why. The fields mean what the columns of ``raw/events`` do; times are in ms."""

    #: None: unknown.
    cause: RebalanceCause | None
    joined: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    silent_ms: int | None = None
    session_ms: int | None = None
    poll_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Departure:
    """Why one member is gone."""

    cause: RebalanceCause
    #: For how long it had not committed: a lower bound; None: it never committed.
    silent_ms: int | None


@dataclass(frozen=True, slots=True)
class PartitionMoves:
    """Partitions whose owner changed."""

    count: int
    #: Those of them that had an owner before.
    revoked: OwnedPartitions
    #: For how long no commit was made on one of them, at most.
    uncommitted_ms: int | None


def key_of(member_id: str, instance_id: str | None) -> str:
    """The key of a member in :data:`Members`."""
    return f"static {instance_id}" if instance_id is not None else f"member {member_id}"


def label_of(client_id: str, host: str) -> str:
    """A member as text, the same as in samples."""
    return f"{client_id} ({host.removeprefix('/')})"


def membership_change(
    before: Members,
    now: Members,
    *,
    since_ms: int,
    at_ms: int,
    commits: CommitsOn,
    exact: bool,
    early_ms: int = 0,
    grown: bool = False,
) -> MembershipChange:
    """Compare the membership of ``since_ms`` with the one of ``at_ms``.

    ``exact`` and ``early_ms`` are those of :func:`departure`. ``grown``: a topic that is read has more partitions than
    before.
    """
    joined = tuple(sorted(member.label for key, member in now.items() if key not in before))
    gone = sorted((member for key, member in before.items() if key not in now), key=lambda member: member.label)
    lasted_ms = 0 if exact or not gone else _lasted(before, now, at_ms, commits)
    departures = [
        departure(
            m, since_ms=since_ms, at_ms=at_ms, lasted_ms=lasted_ms, commits=commits, exact=exact, early_ms=early_ms
        )
        for m in gone
    ]
    causes = {d.cause for d in departures}
    if joined:
        causes.add(RebalanceCause.MEMBER_JOINED if before else RebalanceCause.GROUP_APPEARED)
    if any(before[key].topics != member.topics for key, member in now.items() if key in before):
        causes.add(RebalanceCause.SUBSCRIPTION_CHANGED)
    if grown:
        causes.add(RebalanceCause.PARTITIONS_ADDED)
    if any(before[key].member_id != member.member_id for key, member in now.items() if key in before):
        causes.add(RebalanceCause.STATIC_MEMBER_RETURNED)
    failed = (RebalanceCause.MEMBER_FAILED, RebalanceCause.POLL_INTERVAL_EXCEEDED)
    return MembershipChange(
        cause=next((cause for cause in RebalanceCause if cause in causes), None),
        joined=joined,
        left=tuple(member.label for member in gone),
        failed=tuple(m.label for m, d in zip(gone, departures, strict=True) if d.cause in failed),
        silent_ms=_most(d.silent_ms for d in departures),
        session_ms=_most(m.session_ms for m in gone or now.values()),
        poll_ms=_most(m.poll_ms for m in gone or now.values()),
    )


def departure(
    member: TrackedMember,
    *,
    since_ms: int,
    at_ms: int,
    lasted_ms: int,
    commits: CommitsOn,
    exact: bool,
    early_ms: int,
) -> Departure:
    """Why a member is gone, judged by its commits.

    A commit, like having taken part in the last rebalance (``since_ms``), proves that a member was alive. One that
    proved it less than a session timeout ago cannot have timed out: it left. One that failed was silent for as long as
    its timeout, and for little more than that, because the coordinator acts when the timeout is over. A silence that
    fits neither or both timeouts, or is usual for this member, is no evidence: the cause is that the member is gone.

    Unless ``exact``, ``at_ms`` is when the rebalance was over, which is later than the departure by as long as it
    lasted: until the others have sent a heartbeat, and by what else is known of it (``lasted_ms``, a lower bound).
    A session may end up to ``early_ms`` sooner after a commit than its timeout says: by as long as the last heartbeat
    can be older than the commit, where a commit is none (KIP-848; in the classic protocol it is one).
    """
    committed = [times for pair in member.owned if (times := commits(pair)) is not None]
    last_ms = max((times.at_ms for times in committed), default=None)
    silent = max(0, at_ms - max(since_ms, last_ms or 0))
    silent_ms = None if last_ms is None else silent
    session, poll = member.session_ms, member.poll_ms
    if session is not None and silent < session - early_ms:
        return Departure(RebalanceCause.MEMBER_LEFT, silent_ms)
    pause_ms = min((times.pause_ms for times in committed if times.pause_ms), default=None)
    if pause_ms is None:
        return Departure(RebalanceCause.MEMBER_GONE, silent_ms)
    usual_ms = _USUAL_PAUSES * pause_ms + _TIMERS_MS
    late_ms = lasted_ms if exact or session is None else lasted_ms + session // _HEARTBEATS_PER_SESSION
    fitting = []
    if silent > usual_ms + late_ms:
        if session is not None and session - early_ms <= silent - lasted_ms and silent <= session + usual_ms + late_ms:
            fitting.append(RebalanceCause.MEMBER_FAILED)
        # A client may go on committing after the poll from which its poll interval counts.
        if poll is not None and poll - usual_ms <= silent - lasted_ms and silent <= poll + usual_ms + late_ms:
            fitting.append(RebalanceCause.POLL_INTERVAL_EXCEEDED)
    return Departure(fitting[0] if len(fitting) == 1 else RebalanceCause.MEMBER_GONE, silent_ms)


def partition_moves(before: Members, now: Members, *, at_ms: int, commits: CommitsOn) -> PartitionMoves:
    """Partitions that have another owner now."""
    # Sorted: if two members claim the same partition, a restart must not change its owner.
    owners_before = {pair: key for key in sorted(before) for pair in before[key].owned}
    owners_now = {pair: key for key in sorted(now) for pair in now[key].owned}
    moved = [p for p in owners_before.keys() | owners_now.keys() if owners_before.get(p) != owners_now.get(p)]
    committed = [times.at_ms for pair in moved if (times := commits(pair)) is not None]
    return PartitionMoves(
        len(moved),
        tuple(sorted(pair for pair in moved if pair in owners_before)),
        max(0, at_ms - min(committed)) if committed else None,
    )


def _lasted(before: Members, now: Members, at_ms: int, commits: CommitsOn) -> int:
    """A lower bound of the rebalance's duration: members that stay stop committing while they rejoin.

    It is known only from members that commit regularly; otherwise 0.
    """
    lasted = 0
    for key, member in before.items():
        if key in now:
            committed = [times for pair in member.owned if (times := commits(pair)) is not None and times.pause_ms]
            if committed:
                pause_ms = min(times.pause_ms for times in committed)
                stopped_ms = at_ms - max(times.at_ms for times in committed) - _USUAL_PAUSES * pause_ms
                # A longer pause is that of a consumer without records to read.
                if member.poll_ms is None or stopped_ms <= member.poll_ms:
                    lasted = max(lasted, stopped_ms)
    return lasted


def widths_of(members: Iterable[Sequence[tuple[str, int]]]) -> dict[str, int]:
    """Partitions of each topic, as far as they are assigned."""
    widths: dict[str, int] = {}
    for owned in members:
        for topic, partition in owned:
            if partition >= widths.get(topic, 0):
                widths[topic] = partition + 1
    return widths


def _most(values: Iterable[int | None]) -> int | None:
    return max((value for value in values if value is not None), default=None)
