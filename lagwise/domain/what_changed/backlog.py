"""Since when a group has been behind, and what likely made it so: carried from round to round."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from lagwise.domain.causes import STANDING, TROUBLE
from lagwise.domain.vocabulary import Status
from lagwise.domain.what_changed.change import LAST_RESORTS, Change, ChangeKind
from lagwise.domain.what_changed.choice import likely_cause

#: Statuses with which the cause of the backlog is told: what a rewound group has to read again explains itself.
TOLD_WITH = (TROUBLE | {Status.CATCHING_UP}) - {Status.REWOUND}
#: Records that had waited for longer when their group last committed, or for longer than two samples, are a backlog
#: before any status says so: then the cause is known when one does.
_LONG_SECONDS, _LONG_INTERVALS = 15.0, 2.0
#: The cause is looked for until so long after the group fell behind; after that what was found stays.
_DECIDED_AFTER = timedelta(minutes=10)
#: Of a group that reads nothing at all, less reading is no cause.
_NO_CAUSE_OF_STANDING = LAST_RESORTS | {ChangeKind.FETCHING_SLOWED}


@dataclass(frozen=True, slots=True)
class Backlog:
    """A group is behind ``since`` a moment; ``cause`` is None where none was found, or not yet."""

    since: datetime
    cause: Change | None = None

    def is_decided(self, now: datetime) -> bool:
        """Whether its cause is looked for no more."""
        return now - self.since > _DECIDED_AFTER

    def explained(self, changes: Sequence[Change], status: Status, now: datetime) -> "Backlog":
        """With what is found now; what was found before stays where nothing is."""
        before = self.cause
        if status in STANDING:
            changes = [change for change in changes if change.kind not in _NO_CAUSE_OF_STANDING]
            before = None if before is not None and before.kind in _NO_CAUSE_OF_STANDING else before
        return replace(self, cause=likely_cause(changes, now) or before)


def backlog_now(
    before: Backlog | None, status: Status, lag_seconds_at_commit: float, interval_seconds: float, now: datetime
) -> Backlog | None:
    """The backlog of a group from that of the round before, its status, and how old its oldest unread record was when
    it last committed; None where it has none. While nothing is known of the group it keeps what it had."""
    if status is Status.UNKNOWN and before is not None:
        return before
    if status is Status.REWOUND:
        return None
    waits = lag_seconds_at_commit >= max(_LONG_SECONDS, _LONG_INTERVALS * interval_seconds)
    if status not in TOLD_WITH and not waits:
        return None
    return before or Backlog(now)
