"""From the statuses of its partitions to the status of a group, and the sentence that says why."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from lagwise.domain.humanise import count, duration, rate
from lagwise.domain.vocabulary import Status, UnknownReason

N = TypeVar("N", int, float)


@dataclass(frozen=True, slots=True)
class PartitionsInStatus:
    """Those partitions of a group that share a status (and, where unknown, its reason), summed up.

    ``worst_*`` is the one with the oldest unread record, ``unmoved_seconds`` the longest time a committed offset has
    stayed where it is, ``owners`` the distinct "client on host" of their owners.
    """

    status: Status
    reason: UnknownReason | None
    partitions: int
    lag: int | None = None
    lag_seconds: float | None = None
    lag_seconds_is_lower_bound: bool = False
    unmoved_seconds: float | None = None
    produce_rate_per_second: float | None = None
    consume_rate_per_second: float | None = None
    lag_slope_per_second: float | None = None
    seconds_to_catch_up: float | None = None
    seconds_to_loss: float | None = None
    records_lost: int = 0
    worst_topic: str | None = None
    worst_partition: int | None = None
    topics: frozenset[str] = field(default_factory=frozenset)
    owners: frozenset[str] = field(default_factory=frozenset)


@dataclass(frozen=True, slots=True)
class GroupVerdict:
    """A group's status and the numbers over its partitions, unknown ones and ghosts left out of the sums."""

    status: Status
    reason: UnknownReason | None
    sentence: str
    partitions: int
    partitions_by_status: Mapping[Status, int]
    topics: tuple[str, ...]
    lag: int | None
    lag_seconds: float | None
    lag_seconds_is_lower_bound: bool
    produce_rate_per_second: float | None
    consume_rate_per_second: float | None
    seconds_to_catch_up: float | None
    seconds_to_loss: float | None
    records_lost: int
    worst_topic: str | None
    worst_partition: int | None


def status_of(parts: Iterable[PartitionsInStatus]) -> tuple[Status, UnknownReason | None]:
    """The worst status of the partitions, ghosts left out.

    Where that would be `ok` or `catching_up` while some partitions are unknown, the group is unknown, with the
    commonest reason: not knowing is never reported as well-being. A group without any partition has nothing
    committed.
    """
    counted = [p for p in parts if p.status is not Status.GHOST]
    known = sorted((p.status for p in counted if p.status is not Status.UNKNOWN), key=lambda s: s.rank)
    unknown = [p for p in counted if p.status is Status.UNKNOWN]
    if known and (known[0] not in (Status.OK, Status.CATCHING_UP) or not unknown):
        return known[0], None
    if unknown:
        order = list(UnknownReason)
        votes: dict[UnknownReason, int] = {}
        for part in unknown:
            if part.reason is not None:
                votes[part.reason] = votes.get(part.reason, 0) + part.partitions
        reason = min(votes, key=lambda r: (-votes[r], order.index(r)), default=UnknownReason.UNREADABLE)
        return Status.UNKNOWN, reason
    return Status.UNKNOWN, UnknownReason.NO_COMMIT


def verdict_of(parts: Sequence[PartitionsInStatus], *, members: int | None, idle_members: int) -> GroupVerdict:
    """The group's verdict from its partitions by status."""
    status, reason = status_of(parts)
    counted = [p for p in parts if p.status is not Status.GHOST]
    summed = [p for p in counted if p.status is not Status.UNKNOWN]
    oldest = max(summed, key=lambda p: p.lag_seconds or 0.0, default=None)
    worst = min(
        counted,
        key=lambda p: (p.status.rank, -(p.lag_seconds or 0.0)),
        default=None,
    )
    behind = [p for p in summed if p.lag]
    catch_up = [p.seconds_to_catch_up for p in behind if p.seconds_to_catch_up is not None]
    losses = [p.seconds_to_loss for p in counted if p.seconds_to_loss is not None]
    by_status: dict[Status, int] = {}
    for part in parts:
        by_status[part.status] = by_status.get(part.status, 0) + part.partitions
    return GroupVerdict(
        status=status,
        reason=reason,
        sentence=_sentence(status, reason, parts, members=members, idle_members=idle_members),
        partitions=sum(p.partitions for p in counted),
        partitions_by_status=by_status,
        topics=tuple(sorted({t for p in counted for t in p.topics})),
        lag=_sum(p.lag for p in summed),
        lag_seconds=oldest.lag_seconds if oldest else None,
        lag_seconds_is_lower_bound=bool(oldest and oldest.lag_seconds_is_lower_bound),
        produce_rate_per_second=_sum(p.produce_rate_per_second for p in summed),
        consume_rate_per_second=_sum(p.consume_rate_per_second for p in summed),
        seconds_to_catch_up=max(catch_up) if catch_up and status is Status.CATCHING_UP else None,
        seconds_to_loss=min(losses) if losses else None,
        records_lost=sum(p.records_lost for p in summed),
        worst_topic=worst.worst_topic if worst else None,
        worst_partition=worst.worst_partition if worst else None,
    )


def _sum(values: Iterable[N | None]) -> N | None:
    known = [v for v in values if v is not None]
    return sum(known) if known else None


def _sentence(
    status: Status,
    reason: UnknownReason | None,
    parts: Sequence[PartitionsInStatus],
    *,
    members: int | None,
    idle_members: int,
) -> str:
    total = sum(p.partitions for p in parts if p.status is not Status.GHOST)
    ours = [p for p in parts if p.status is status and (reason is None or p.reason is reason)]
    n = sum(p.partitions for p in ours)
    of = f"{n} of {total} partitions" if total != 1 else "The only partition"
    lag = _sum(p.lag for p in ours) or 0
    age = max((p.lag_seconds for p in ours if p.lag_seconds is not None), default=None)
    bound = any(p.lag_seconds_is_lower_bound for p in ours)
    old = duration(age, lower_bound=bound)
    unmoved = duration(max((p.unmoved_seconds for p in ours if p.unmoved_seconds is not None), default=None))
    owners = sorted({o for p in ours for o in p.owners})
    owned = f"; their owner is {owners[0]}" if len(owners) == 1 else ""
    to_loss = min((p.seconds_to_loss for p in ours if p.seconds_to_loss is not None), default=None)
    produced = _sum(p.produce_rate_per_second for p in ours) or 0.0
    consumed = _sum(p.consume_rate_per_second for p in ours) or 0.0
    match status:
        case Status.LOSING_DATA:
            lost = sum(p.records_lost for p in ours)
            where = _where(ours)
            return f"{count(lost)} records were deleted before this group read them ({where}); the loss goes on while it is behind."
        case Status.AT_RISK:
            when = f"in {duration(to_loss)}" if to_loss else "at any moment"
            return f"{of}: unread records will be deleted, or the commits expire, {when} at today's rates; the oldest unread record is {old} old."
        case Status.STOPPED:
            who = "the group has no members" if not members else "no member owns them"
            return f"{of}: {who} and nothing has been committed for {unmoved}, with {count(lag)} records waiting."
        case Status.STALLED:
            return (
                f"{of}: owned, but nothing has been committed for {unmoved}, with {count(lag)} records waiting{owned}."
            )
        case Status.REWOUND:
            return f"{of}: the committed offset went back and is not yet past where it was; {count(lag)} records are read again or still to read."
        case Status.FALLING_BEHIND:
            grow = rate(max(0.0, produced - consumed))
            return f"{of}: lag grows by {grow} records/s ({rate(produced)}/s written, {rate(consumed)}/s read); the oldest unread record is {old} old."
        case Status.LAGGING:
            return (
                f"{of}: lag neither grows nor shrinks, and the oldest unread record is {old} old, beyond the objective."
            )
        case Status.CATCHING_UP:
            until = duration(
                max((p.seconds_to_catch_up for p in ours if p.seconds_to_catch_up is not None), default=None)
            )
            return f"Catching up: {count(lag)} records behind, gone in about {until} at today's rates."
        case Status.OK:
            waste = f"; {idle_members} of {members} members have nothing to do" if idle_members else ""
            return f"Keeps pace on all {total} partitions{waste}." if total != 1 else f"Keeps pace{waste}."
        case Status.GHOST | Status.UNKNOWN:
            return _UNKNOWN_SENTENCES[reason or UnknownReason.NO_COMMIT].format(of=of if total else "The group")
    raise AssertionError(status)


_UNKNOWN_SENTENCES = {
    UnknownReason.UNREADABLE: "{of} could not be read; the collector's health page says why.",
    UnknownReason.EXPIRED: "{of}: the committed offsets are gone (expired, deleted, or the group was).",
    UnknownReason.NO_COMMIT: "{of}: nothing has ever been committed, so there is no lag to tell.",
    UnknownReason.RECREATED: "{of}: the topic was deleted and created again; the commits belong to the old one.",
    UnknownReason.OUT_OF_RANGE: "{of}: the committed offset lies beyond the end of the log (truncated log, or a foreign commit).",
    UnknownReason.NOT_COMMITTING: "{of}: read by an engine that does not commit to the broker.",
    UnknownReason.REBALANCING: "{of}: the group keeps rebalancing, so who reads what is not settled.",
    UnknownReason.TOO_FEW_SAMPLES: "{of}: too few samples yet to tell whether the lag grows.",
}


def _where(parts: Sequence[PartitionsInStatus]) -> str:
    worst = max(parts, key=lambda p: p.records_lost)
    n = sum(p.partitions for p in parts)
    return f"{worst.worst_topic}-{worst.worst_partition}" + (f" and {n - 1} more" if n > 1 else "")
