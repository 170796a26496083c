"""From the statuses of its partitions to the status of a group. Why, in words: :mod:`lagwise.domain.explain`."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from lagwise.domain.causes import Cause, Place, cause_of
from lagwise.domain.explain import explain
from lagwise.domain.findings import Finding
from lagwise.domain.group_record import GroupNumbers, GroupRecord, known_partitions
from lagwise.domain.lag_forecast import Forecast
from lagwise.domain.loss.records import Lost, of_partitions
from lagwise.domain.partition_rollup import PartitionsInStatus, first_loss, last_catch_up, soonest_breach, total
from lagwise.domain.vocabulary import NOT_READING, Status, UnknownReason
from lagwise.domain.what_changed.backlog import Backlog, is_told


@dataclass(frozen=True, slots=True)
class GroupVerdict:
    """A group's status, and what is known over its partitions."""

    status: Status
    #: Why it is unknown; None for every other status.
    reason: UnknownReason | None
    #: Why, in one sentence with numbers.
    sentence: str
    #: Ghosts left out.
    partitions: int
    partitions_by_status: Mapping[Status, int]
    #: Topics of its partitions, ghosts left out, by name.
    topics: tuple[str, ...]
    #: Unknown partitions and ghosts are left out of the sums. The age of the oldest unread record is known of some
    #: partitions that are unknown otherwise.
    numbers: GroupNumbers
    #: How often its committed offsets were seen to move within the longest window.
    commits_seen: int
    #: When its last partition has no lag; only while catching up.
    to_catch_up: Forecast | None
    #: When the first of its partitions breaches the objective; None where that is not to be expected.
    to_breach: Forecast | None
    #: When unread records are deleted by age at the latest; None where that is not known.
    seconds_to_loss_at_latest: float | None
    #: What was lost within a day.
    lost: Lost
    #: Where its trouble sits; None is no trouble.
    cause: Cause | None = None
    #: How old the oldest unread record was at the last commit, at least: a long time between commits does not count.
    lag_seconds_at_commit: float = 0.0


def record_of_verdict(
    verdict: GroupVerdict,
    *,
    cluster: str,
    group: str,
    as_of: datetime,
    since: datetime,
    state: str | None,
    group_type: str | None,
    idle_members: int | None,
    findings: Iterable[Finding],
    backlog: Backlog | None = None,
) -> GroupRecord:
    """The group as it stands by this verdict on the sample of ``as_of``; ``since`` is when its status began."""
    to_catch_up, to_breach, lost = verdict.to_catch_up, verdict.to_breach, verdict.lost
    cause = backlog.cause if backlog else None
    return GroupRecord(
        cluster=cluster,
        group=group,
        as_of=as_of,
        status=verdict.status,
        reason=verdict.reason,
        since=since,
        sentence=f"{verdict.sentence} {cause.sentence}"
        if cause and is_told(cause, verdict.status)
        else verdict.sentence,
        state=state,
        type=group_type,
        idle_members=idle_members,
        topics=verdict.topics,
        partitions=verdict.partitions,
        partitions_by_status={str(status): number for status, number in verdict.partitions_by_status.items()},
        numbers=replace(
            verdict.numbers,
            what_changed=cause.kind if cause else None,
            what_changed_sentence=cause.sentence if cause else None,
            what_changed_remedy=cause.remedy if cause else None,
        ),
        commits_seen=verdict.commits_seen,
        seconds_to_catch_up_low=to_catch_up.low if to_catch_up else None,
        seconds_to_catch_up_high=to_catch_up.high if to_catch_up else None,
        seconds_to_breach=to_breach.seconds if to_breach else None,
        seconds_to_breach_low=to_breach.low if to_breach else None,
        seconds_to_breach_high=to_breach.high if to_breach else None,
        seconds_to_loss_at_latest=verdict.seconds_to_loss_at_latest,
        lost_at_least=lost.at_least,
        lost_at_most=lost.at_most,
        first_lost_at=_ago(as_of, lost.first_seconds),
        last_lost_at=_ago(as_of, lost.last_seconds),
        cause=verdict.cause.scope if verdict.cause else None,
        findings=tuple(findings),
        cause_name=verdict.cause.name if verdict.cause else None,
        behind_since=backlog.since if backlog else None,
        what_changed_at=cause.at if cause else None,
    )


def _ago(now: datetime, seconds: float | None) -> datetime | None:
    return None if seconds is None else now - timedelta(seconds=seconds)


def status_of(parts: Iterable[PartitionsInStatus], error: str | None = None) -> tuple[Status, UnknownReason | None]:
    """The worst status of the partitions, ghosts left out.

    Where that would be `ok` or `catching_up` while some partitions are unknown, the group is unknown, with the
    commonest reason: not knowing is never reported as well-being. A group without any partition has nothing
    committed, as far as anybody can tell: with an ``error``, which kept it from being read, nobody can.
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
    return Status.UNKNOWN, UnknownReason.NO_COMMIT if error is None else UnknownReason.UNREADABLE


def verdict_of(
    parts: Sequence[PartitionsInStatus],
    *,
    members: int | None,
    idle_members: int,
    state: str | None = None,
    group_type: str | None = None,
    error: str | None = None,
    places: Iterable[Place] = (),
    lag_objective_seconds: float | None = None,
) -> GroupVerdict:
    """The group's verdict from its partitions by status; ``error`` is the kind of what kept the group or its offsets
    from being read, ``places`` say whose the partitions are and where they lie. ``state`` and ``group_type`` are the
    group's, as its coordinator and the collector name them. ``lag_objective_seconds`` is only named."""
    status, reason = status_of(parts, error)
    if not parts and error is None and group_type in NOT_READING:
        reason = UnknownReason.NO_TOPICS
    cause = cause_of(status, places)
    counted = [p for p in parts if p.status is not Status.GHOST]
    summed = [p for p in counted if p.status is not Status.UNKNOWN]
    # An age is no sum: where a partition is unknown though its lag was measured, its oldest record counts all the same.
    aged = [p for p in counted if p.lag_seconds is not None]
    oldest = max(aged, key=lambda p: (p.lag_seconds or 0.0, p.lag_seconds_is_lower_bound), default=None)
    worst = min((p for p in counted if (p.status, p.reason) == (status, reason)), key=_place, default=None)
    nearest = first_loss(counted)
    to_catch_up = last_catch_up(p.to_catch_up for p in summed) if status is Status.CATCHING_UP else None
    by_status: dict[Status, int] = {}
    for part in parts:
        by_status[part.status] = by_status.get(part.status, 0) + part.partitions
    return GroupVerdict(
        status=status,
        reason=reason,
        sentence=explain(
            status,
            reason,
            parts,
            members=members,
            idle_members=idle_members,
            state=state,
            group_type=group_type,
            error=error,
            cause=cause,
            lag_objective_seconds=lag_objective_seconds,
        ),
        partitions=sum(p.partitions for p in counted),
        partitions_by_status=by_status,
        topics=tuple(sorted({t for p in counted for t in p.topics})),
        numbers=GroupNumbers(
            lag_records=total(p.lag for p in summed),
            lag_seconds=oldest.lag_seconds if oldest else None,
            lag_seconds_is_lower_bound=bool(oldest and oldest.lag_seconds_is_lower_bound),
            produce_rate_per_second=total(p.produce_rate_per_second for p in summed),
            consume_rate_per_second=total(p.consume_rate_per_second for p in summed),
            seconds_to_catch_up=to_catch_up.seconds if to_catch_up else None,
            seconds_to_loss=nearest.seconds_to_loss if nearest else None,
            seconds_to_loss_is_upper_bound=bool(nearest and nearest.seconds_to_loss_is_upper_bound),
            loss_cause=nearest.loss_cause if nearest else None,
            records_lost=sum(p.records_lost for p in summed),
            transaction_seconds=max((p.transaction_seconds or 0.0 for p in summed), default=0.0) or None,
            members=members,
            worst_topic=worst.worst_topic if worst else None,
            worst_partition=worst.worst_partition if worst else None,
            stands_still=any(p.stopped or p.stalled for p in counted if (p.status, p.reason) == (status, reason)),
            known_partitions=known_partitions(by_status),
        ),
        commits_seen=sum(p.commits_seen for p in counted),
        to_catch_up=to_catch_up,
        to_breach=soonest_breach(p.to_breach for p in counted),
        seconds_to_loss_at_latest=nearest.seconds_to_loss_at_latest if nearest else None,
        lost=of_partitions(p.lost for p in counted),
        cause=cause,
        lag_seconds_at_commit=max(((p.lag_seconds or 0.0) - (p.unmoved_seconds or 0.0) for p in counted), default=0.0),
    )


def _place(part: PartitionsInStatus) -> tuple[float, str, int]:
    """The oldest unread record first, then by name: two runs over the same rows name the same partition."""
    return -(part.lag_seconds or 0.0), part.worst_topic or "", part.worst_partition or 0
