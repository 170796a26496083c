"""Who is in a group and owns what; and what the difference between two memberships was, by the evidence there is."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from lagwise.domain.vocabulary import RebalanceCause
from lagwise_collectors.offsets_topic.records import Owned

#: A pause between commits may be this many of the usual ones before it says something.
_USUAL_PAUSES = 2
#: Timers fire up to about a second late, and so does the client's look at its poll interval.
_TIMERS_MS = 1_000
#: Clients are told to send a heartbeat at least this many times in a session timeout: only at a heartbeat do the others
#: learn of a rebalance, and only then can it end.
_HEARTBEATS_PER_SESSION = 3


@dataclass(frozen=True, slots=True)
class TrackedMember:
    """One member. ``owned`` goes by topic name, or by topic id in a KIP-848 group."""

    member_id: str
    label: str
    topics: tuple[str, ...]
    owned: Owned
    session_ms: int | None
    poll_ms: int | None


#: By static instance id where there is one (then it starts with "static "): such a member may come back under another
#: member id and is still the same.
Members = Mapping[str, TrackedMember]


class Committed(Protocol):
    """What is known of the commits on one partition by one group, in ms."""

    at_ms: int
    #: The usual time between two commits; 0 is unknown.
    pause_ms: int


#: The commits of the group on one of its partitions.
CommitsOn = Callable[[tuple[str, int]], Committed | None]


@dataclass(frozen=True, slots=True)
class MembershipChange:
    """Who came, who went and why; ``cause`` is None where nothing of it is known. Times in ms, see ``raw/events``."""

    cause: RebalanceCause | None
    joined: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    silent_ms: int | None = None
    session_ms: int | None = None
    poll_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Departure:
    """Why one member is gone, and for how long it had not committed (a lower bound; None: it never did)."""

    cause: RebalanceCause
    silent_ms: int | None


@dataclass(frozen=True, slots=True)
class Moves:
    """Partitions whose owner changed: how many, which of them were taken from somebody, how long uncommitted (ms)."""

    count: int
    taken: Owned
    uncommitted_ms: int | None


def key_of(member_id: str, instance_id: str | None) -> str:
    """The key of a member in :data:`Members`."""
    return f"static {instance_id}" if instance_id is not None else f"member {member_id}"


def label_of(client_id: str, host: str) -> str:
    """A member in words, as the samples have it."""
    return f"{client_id} ({host.removeprefix('/')})"


def change_of(
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
    """Compare the membership that was agreed on at ``since_ms`` with the one of ``at_ms``.

    ``exact`` and ``early_ms`` as for :func:`departure`. ``grown``: a topic that is read has
    more partitions than before.
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
    """Why a member is gone, as far as its commits tell.

    A commit, like having taken part in the last rebalance (``since_ms``), proves that a member was alive. One that
    proved it less than a session timeout ago cannot have timed out: it left. One that failed was silent for as long as
    its timeout, and for little more than that, because the coordinator acts when the timeout is over. A silence that
    fits neither, or fits both timeouts, or is not unusual for this member, tells nothing: it is gone.

    Unless ``exact``, ``at_ms`` is when the rebalance was over, which is later than the departure by as long as it
    lasted: until the others have sent a heartbeat, and by what else is known of it (``lasted_ms``, a lower bound).
    A session may end up to ``early_ms`` sooner after a commit than its timeout says: by as long as the last heartbeat
    can be older than the commit, where a commit is none (KIP-848; in the classic protocol it is one).
    """
    seen = [found for pair in member.owned if (found := commits(pair)) is not None]
    last_ms = max((found.at_ms for found in seen), default=None)
    silent = max(0, at_ms - max(since_ms, last_ms or 0))
    silent_ms = None if last_ms is None else silent
    session, poll = member.session_ms, member.poll_ms
    if session is not None and silent < session - early_ms:
        return Departure(RebalanceCause.MEMBER_LEFT, silent_ms)
    pause = min((found.pause_ms for found in seen if found.pause_ms), default=None)
    if pause is None:
        return Departure(RebalanceCause.MEMBER_GONE, silent_ms)
    usual = _USUAL_PAUSES * pause + _TIMERS_MS
    later = lasted_ms if exact or session is None else lasted_ms + session // _HEARTBEATS_PER_SESSION
    fits = []
    if silent > usual + later:
        if session is not None and session - early_ms <= silent - lasted_ms and silent <= session + usual + later:
            fits.append(RebalanceCause.MEMBER_FAILED)
        # A client may commit what it was given for a while after the poll that its poll interval counts from.
        if poll is not None and poll - usual <= silent - lasted_ms and silent <= poll + usual + later:
            fits.append(RebalanceCause.POLL_INTERVAL_EXCEEDED)
    return Departure(fits[0] if len(fits) == 1 else RebalanceCause.MEMBER_GONE, silent_ms)


def moves_of(before: Members, now: Members, *, at_ms: int, commits: CommitsOn) -> Moves:
    """Which partitions have another owner now."""
    # Sorted: should two ever claim the same partition, a restart must not change whose it is.
    owners_before = {pair: key for key in sorted(before) for pair in before[key].owned}
    owners_now = {pair: key for key in sorted(now) for pair in now[key].owned}
    moved = [p for p in owners_before.keys() | owners_now.keys() if owners_before.get(p) != owners_now.get(p)]
    seen = [found.at_ms for pair in moved if (found := commits(pair)) is not None]
    return Moves(
        len(moved),
        tuple(sorted(pair for pair in moved if pair in owners_before)),
        max(0, at_ms - min(seen)) if seen else None,
    )


def _lasted(before: Members, now: Members, at_ms: int, commits: CommitsOn) -> int:
    """How long the rebalance lasted at least: members that stay stop committing when they join it anew.

    Known only of those that commit regularly; 0 where nothing is known.
    """
    lasted = 0
    for key, member in before.items():
        if key in now:
            seen = [found for pair in member.owned if (found := commits(pair)) is not None and found.pause_ms]
            if seen:
                pause = min(found.pause_ms for found in seen)
                stood_ms = at_ms - max(found.at_ms for found in seen) - _USUAL_PAUSES * pause
                if member.poll_ms is None or stood_ms <= member.poll_ms:  # longer is a reader that has nothing to read
                    lasted = max(lasted, stood_ms)
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
