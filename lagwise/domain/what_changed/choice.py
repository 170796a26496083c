"""Which of several changes is named as the likely cause of a backlog, and how."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from lagwise.domain.humanise import clock, lower_first
from lagwise.domain.what_changed.change import LAST_RESORTS, OCCASIONS, Change, ChangeKind

#: A backlog shows so much later than what caused it, at most: rates have to be measured, and records to become old.
LOOK_BACK = timedelta(minutes=10)
#: A deployment or another occasion has to do with a change if it came so long before it, or, as moments are known to
#: within some seconds, so shortly after.
_OCCASION_BEFORE, _OCCASION_AFTER = timedelta(minutes=10), timedelta(seconds=60)
#: Moments that are no further apart are the same: then the kind decides.
_SAME_MOMENT = timedelta(seconds=90)
#: What new code or another setting can be the occasion of.
_CAUSED_BY_PEOPLE = frozenset(
    {ChangeKind.CPU_ROSE, ChangeKind.WAITING_ROSE, ChangeKind.WORK_ROSE, ChangeKind.CONSUME_RATE_FELL}
)
#: What each occasion can be one of. Who leads a partition changes how it is fetched, and not what its records cost.
_CAUSED_BY = dict.fromkeys(OCCASIONS, _CAUSED_BY_PEOPLE) | {
    ChangeKind.LEADERS_MOVED: frozenset({ChangeKind.FETCHING_SLOWED, ChangeKind.CONSUME_RATE_FELL})
}
#: In each of these, members may have come back with other code.
_RESTARTS = frozenset({ChangeKind.DEPLOYMENT, ChangeKind.REBALANCES, ChangeKind.MEMBERS_LEFT})
_KINDS = tuple(ChangeKind)


def likely_cause(changes: Sequence[Change], now: datetime) -> Change | None:
    """The first change that explains a backlog, with its occasion; an occasion alone where nothing else changed; None
    where nothing did."""
    explains = [c for c in changes if c.kind not in OCCASIONS and c.kind not in LAST_RESORTS]
    explains = explains or [c for c in changes if c.kind in LAST_RESORTS]
    # The last one is named. Leaders also move by themselves, so what people did is preferred.
    occasions = sorted(
        (c for c in changes if c.kind in OCCASIONS), key=lambda c: (c.kind is not ChangeKind.LEADERS_MOVED, c.at)
    )
    if not explains:
        return _alone(occasions[-1]) if occasions else None
    first = min(c.at for c in explains)
    found = min((c for c in explains if c.at - first <= _SAME_MOMENT), key=lambda c: (_KINDS.index(c.kind), c.at))
    near = [c for c in occasions if -_OCCASION_AFTER <= found.at - c.at <= _OCCASION_BEFORE]
    fitting = [c for c in near if found.kind in _CAUSED_BY[c.kind]]
    if fitting:
        return _with_occasion(found, fitting[-1])
    if found.kind is ChangeKind.CPU_ROSE and not any(c.kind in _RESTARTS for c in changes):
        last = clock(now - LOOK_BACK, now)
        told = f"{found.sentence} No restart was seen since {last}: rather the input than the code."
        return replace(found, sentence=told)
    return found


def _with_occasion(found: Change, occasion: Change) -> Change:
    when = "Shortly before" if occasion.at <= found.at else "At about the same time"
    return replace(found, sentence=f"{found.sentence} {when}: {lower_first(occasion.sentence)}")


def _alone(occasion: Change) -> Change:
    return replace(occasion, sentence=f"It may have to do with this: {lower_first(occasion.sentence)}")
