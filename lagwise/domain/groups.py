"""From the statuses of its partitions to the status of a group. Why, in words: :mod:`lagwise.domain.explain`."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from lagwise.domain.causes import Cause, Place, cause_of
from lagwise.domain.explain import explain
from lagwise.domain.forecast import Forecast
from lagwise.domain.loss.records import Lost, of_partitions
from lagwise.domain.partition_rollup import PartitionsInStatus, first_loss, last_catch_up, soonest_breach, total
from lagwise.domain.vocabulary import LossCause, Status, UnknownReason


@dataclass(frozen=True, slots=True)
class GroupVerdict:
    """A group's status and the numbers over its partitions, unknown ones and ghosts left out of the sums. (The age of
    the oldest unread record is known of some partitions that are unknown otherwise.)"""

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
    commits_seen: int
    to_catch_up: Forecast | None
    to_breach: Forecast | None
    seconds_to_loss: float | None
    seconds_to_loss_is_upper_bound: bool
    seconds_to_loss_at_latest: float | None
    loss_cause: LossCause | None
    records_lost: int
    lost: Lost
    transaction_seconds: float | None
    worst_topic: str | None
    worst_partition: int | None
    cause: Cause | None = None
    #: Whether partitions of this status stand still, be it beside something worse: who owns them is then the question.
    stands_still: bool = False

    @property
    def seconds_to_catch_up(self) -> float | None:
        """Time until the lag of the last partition is gone; only while catching up."""
        return self.to_catch_up.seconds if self.to_catch_up is not None else None


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
    cause = cause_of(status, places)
    counted = [p for p in parts if p.status is not Status.GHOST]
    summed = [p for p in counted if p.status is not Status.UNKNOWN]
    # An age is no sum: where a partition is unknown though its lag was measured, its oldest record counts all the same.
    aged = [p for p in counted if p.lag_seconds is not None]
    oldest = max(aged, key=lambda p: (p.lag_seconds or 0.0, p.lag_seconds_is_lower_bound), default=None)
    worst = min((p for p in counted if (p.status, p.reason) == (status, reason)), key=_place, default=None)
    nearest = first_loss(counted)
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
        lag=total(p.lag for p in summed),
        lag_seconds=oldest.lag_seconds if oldest else None,
        lag_seconds_is_lower_bound=bool(oldest and oldest.lag_seconds_is_lower_bound),
        produce_rate_per_second=total(p.produce_rate_per_second for p in summed),
        consume_rate_per_second=total(p.consume_rate_per_second for p in summed),
        commits_seen=sum(p.commits_seen for p in counted),
        to_catch_up=last_catch_up(p.to_catch_up for p in summed) if status is Status.CATCHING_UP else None,
        to_breach=soonest_breach(p.to_breach for p in counted),
        seconds_to_loss=nearest.seconds_to_loss if nearest else None,
        seconds_to_loss_is_upper_bound=bool(nearest and nearest.seconds_to_loss_is_upper_bound),
        seconds_to_loss_at_latest=nearest.seconds_to_loss_at_latest if nearest else None,
        loss_cause=nearest.loss_cause if nearest else None,
        records_lost=sum(p.records_lost for p in summed),
        lost=of_partitions(p.lost for p in counted),
        transaction_seconds=max((p.transaction_seconds or 0.0 for p in summed), default=0.0) or None,
        worst_topic=worst.worst_topic if worst else None,
        worst_partition=worst.worst_partition if worst else None,
        cause=cause,
        stands_still=any(p.stopped or p.stalled for p in counted if (p.status, p.reason) == (status, reason)),
    )


def _place(part: PartitionsInStatus) -> tuple[float, str, int]:
    """The oldest unread record first, then by name: two runs over the same rows name the same partition."""
    return -(part.lag_seconds or 0.0), part.worst_topic or "", part.worst_partition or 0
