"""Which of the events of a group is the likely cause of its backlog, as the analysis named it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from lagwise.domain.vocabulary import LEADER_EVENTS, EventClass, EventKind
from lagwise.domain.what_changed.change import ChangeKind
from lagwise_dashboard.pages.group.level_shifts import Quantity, Shift
from lagwise_dashboard.queries.base import Row, bucket_seconds
from lagwise_dashboard.queries.event_log import Noted
from lagwise_dashboard.widgets.time_range import TimeRange

#: The rise that such a change is.
_QUANTITIES = {
    ChangeKind.WAITING_ROSE: Quantity.T1,
    ChangeKind.CPU_ROSE: Quantity.T2,
    ChangeKind.WORK_ROSE: Quantity.TIME_PER_MESSAGE,
    ChangeKind.PRODUCE_RATE_ROSE: Quantity.WRITTEN,
}
#: The events that such a change began with, at the same moment.
_EVENTS: dict[ChangeKind, frozenset[EventKind]] = {
    **dict.fromkeys(
        (ChangeKind.DEPLOYMENT, ChangeKind.REBALANCES, ChangeKind.MEMBERS_LEFT), frozenset({EventKind.REBALANCE})
    ),
    ChangeKind.PARTITIONS_ADDED: frozenset({EventKind.PARTITIONS_ADDED}),
    ChangeKind.SETTING_CHANGED: frozenset({EventKind.CONFIG_CHANGED}),
    ChangeKind.LEADERS_MOVED: LEADER_EVENTS,
    **dict.fromkeys((ChangeKind.LEADERS_LOST, ChangeKind.LEADERS_WERE_LOST), frozenset({EventKind.LEADERS_LOST})),
}
_CAUSES = frozenset(ChangeKind) - {ChangeKind.ALREADY_BEHIND}
#: The page finds a rise in other steps than the analysis, so that they may be so far apart, or two steps of the page.
_SAME_RISE = timedelta(minutes=2)


@dataclass(frozen=True, slots=True)
class LikelyCause:
    """The change that is named as the likely cause of the backlog of a group."""

    kind: ChangeKind
    at: datetime
    sentence: str

    def is_event(self, event: Row) -> bool:
        """Whether it is this event of the lake. The sentence names the topic, where it is about one."""
        is_same = event["at"] == self.at and event["kind"] in _EVENTS.get(self.kind, ())
        return is_same and (event["topic"] is None or event["topic"] in self.sentence)


def of(row: Row) -> LikelyCause | None:
    """The likely cause in a row of `group_status`; None where the group is not behind, or its cause is not known
    or cannot be told."""
    at, word, sentence = row["what_changed_at"], row["what_changed"], row["what_changed_sentence"]
    if row["behind_since"] is None or at is None or not sentence or word not in _CAUSES:
        return None
    return LikelyCause(ChangeKind(word), at, sentence)


def noted(shifts: Sequence[Shift], cause: LikelyCause | None, span: TimeRange) -> list[Noted]:
    """The shifts of a span, that which is the cause marked as such. A cause that was measured and is none of them is
    noted besides, in its own words."""
    found = None if cause is None else _nearest(shifts, cause, span)
    result = [Noted(shift.at, EventClass.LEVEL, shift.text, shift is found) for shift in shifts]
    if cause and found is None and cause.kind not in _EVENTS and span.since <= cause.at <= span.until:
        result.append(Noted(cause.at, EventClass.LEVEL, cause.sentence, is_cause=True))
    return result


def _nearest(shifts: Sequence[Shift], cause: LikelyCause, span: TimeRange) -> Shift | None:
    """The rise that the cause is."""
    apart = max(_SAME_RISE, timedelta(seconds=2 * bucket_seconds(span.since, span.until)))
    rises = [s for s in shifts if s.rises and s.quantity == _QUANTITIES.get(cause.kind)]
    found = min(rises, key=lambda shift: abs(shift.at - cause.at), default=None)
    return found if found is not None and abs(found.at - cause.at) <= apart else None
