"""Since when a group has been behind, and what likely made it so: carried from round to round."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from lagwise.domain.causes import STANDING, TROUBLE
from lagwise.domain.humanise import clock
from lagwise.domain.vocabulary import Status, UnknownReason
from lagwise.domain.what_changed.change import LAST_RESORTS, OCCASIONS, Change, ChangeKind
from lagwise.domain.what_changed.choice import likely_cause

#: Statuses with which the cause of the backlog is told: what a rewound group has to read again explains itself.
TOLD_WITH = (TROUBLE | {Status.CATCHING_UP}) - {Status.REWOUND}
#: Records that had waited for longer when their group last committed, or for longer than two samples, are a backlog
#: before any status says so: then the cause is known when one does.
_LONG_SECONDS, _LONG_INTERVALS = 15.0, 2.0
#: The cause is looked for until so long after the group fell behind; after that what was found stays.
_DECIDED_AFTER = timedelta(minutes=10)
#: Statuses with which it is told that the cause cannot be: what is not read says itself why, and a group that catches
#: up may be new.
_TOLD_WITHOUT_CAUSE = TROUBLE - STANDING - {Status.REWOUND}
#: Of a group that reads nothing at all, less reading is no cause.
_NO_CAUSE_OF_STANDING = LAST_RESORTS | {ChangeKind.FETCHING_SLOWED}


@dataclass(frozen=True, slots=True)
class Backlog:
    """A group is behind ``since`` a moment; ``cause`` is None where none was found, or not yet."""

    since: datetime
    cause: Change | None = None

    @property
    def is_without_leader(self) -> bool:
        """Whether the group could not be read because partitions had no leader."""
        return self.cause is not None and self.cause.kind is ChangeKind.LEADERS_LOST

    def is_decided(self, now: datetime) -> bool:
        """Whether its cause is looked for no more."""
        return now - self.since > _DECIDED_AFTER

    def explained(self, changes: Sequence[Change], status: Status, now: datetime) -> "Backlog":
        """With what is found now; what was found before stays where nothing is. Leaders that were lost count as one of
        the changes, unless lag grows although they are back."""
        before = self.cause
        if before is not None and before.kind is ChangeKind.LEADERS_WERE_LOST and status is not Status.FALLING_BEHIND:
            changes = [*changes, before]
        if (
            before is not None
            and before.kind is ChangeKind.ALREADY_BEHIND
            and all(c.kind in OCCASIONS for c in changes)
        ):
            # They came after it lagged.
            changes = []
        if status in STANDING:
            changes = [change for change in changes if change.kind not in _NO_CAUSE_OF_STANDING]
            before = None if before is not None and before.kind in _NO_CAUSE_OF_STANDING else before
        return replace(self, cause=likely_cause(changes, now) or before)


def already_behind(first_seen_at: datetime, now: datetime) -> Change:
    """What is told in the place of a cause about a group that lagged in the first sample of it."""
    sentence = f"The cause cannot be told: it already lagged when Lagwise first saw it at {clock(first_seen_at, now)}."
    return Change(kind=ChangeKind.ALREADY_BEHIND, at=first_seen_at, sentence=sentence)


def is_told(cause: Change, status: Status) -> bool:
    """Whether the sentence tells the cause with this status. Partitions without a leader are unknown, and those in
    trouble have one."""
    if cause.kind is ChangeKind.ALREADY_BEHIND:
        return status in _TOLD_WITHOUT_CAUSE
    return status is Status.UNKNOWN if cause.kind is ChangeKind.LEADERS_LOST else status in TOLD_WITH


def backlog_now(
    before: Backlog | None,
    status: Status,
    lag_seconds_at_commit: float,
    interval_seconds: float,
    now: datetime,
    *,
    reason: UnknownReason | None = None,
    has_leaderless: bool = False,
) -> Backlog | None:
    """The backlog of a group from that of the round before, its status with the reason of an unknown one, how old its
    oldest unread record was when it last committed, and whether partitions of an unreadable group have no leader now;
    None where it has none.

    While nothing is known of the group it keeps what it had. Partitions that lose their leader begin another backlog,
    which goes on when they have one again: what was written meanwhile is still to be read.
    """
    is_unread = has_leaderless and status is Status.UNKNOWN
    was_unread = before is not None and before.is_without_leader
    if is_unread and not was_unread:
        return Backlog(now)
    if before is not None and was_unread and not is_unread:
        before = _after_loss(before, reason, now, has_leaderless=has_leaderless)
    if status is Status.UNKNOWN and before is not None:
        return before
    if status is Status.REWOUND:
        return None
    waits = lag_seconds_at_commit >= max(_LONG_SECONDS, _LONG_INTERVALS * interval_seconds)
    if status not in TOLD_WITH and not waits:
        return None
    return before or Backlog(now)


def _after_loss(
    before: Backlog, reason: UnknownReason | None, now: datetime, *, has_leaderless: bool
) -> Backlog | None:
    """The backlog of a group that was unknown because partitions had no leader, when it is that no more."""
    if has_leaderless:
        # Other partitions are in trouble, and they have a leader.
        return None
    if reason is UnknownReason.UNREADABLE or before.cause is None:
        # Their leaders may not have been read either.
        return replace(before, cause=None)
    sentence = f"Until {clock(now, now)}, partitions that it reads had no leader, and nobody could read or write them."
    return replace(before, cause=Change(kind=ChangeKind.LEADERS_WERE_LOST, at=before.cause.at, sentence=sentence))
