"""Changes that are events: rebalances, and what happened to the topics that a group reads."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import dropwhile

from lagwise.domain.humanise import clock, lower_first, plural
from lagwise.domain.rebalances.activity import Hour, stats_of_hour
from lagwise.domain.rebalances.explanation import Setup
from lagwise.domain.rebalances.model import Rebalance
from lagwise.domain.vocabulary import EventKind
from lagwise.domain.what_changed.change import Change, ChangeKind

#: What the explanation of rebalances amounts to, by its word. The others explain no backlog.
_OF_EXPLANATION = {
    "storm": ChangeKind.REBALANCES,
    "churn": ChangeKind.REBALANCES,
    "slow_processing": ChangeKind.REBALANCES,
    "failing_members": ChangeKind.REBALANCES,
    "gone": ChangeKind.MEMBERS_LEFT,
    "scaling": ChangeKind.MEMBERS_LEFT,
    "deployment": ChangeKind.DEPLOYMENT,
    "restart": ChangeKind.DEPLOYMENT,
    "replacement": ChangeKind.DEPLOYMENT,
    "static_member_returned": ChangeKind.DEPLOYMENT,
}
#: After these events a topic may be led worse than before; leaders that are back only end that.
_MOVES = frozenset({EventKind.LEADERS_MOVED, EventKind.LEADERS_LOST})
_LOST_OR_BACK = frozenset({EventKind.LEADERS_LOST, EventKind.LEADERS_RESTORED})


@dataclass(frozen=True, slots=True)
class TopicEvent:
    """A topic got partitions, another setting, or other leaders: ``before``, ``after`` and of leaders ``extent`` as
    `raw/events` has them (there ``cause``)."""

    at: datetime
    kind: EventKind
    topic: str
    before: str
    after: str
    extent: str = ""


@dataclass(frozen=True, slots=True)
class Leaderless:
    """So many of a topic's partitions have no leader now."""

    topic: str
    without_leader: int
    partitions: int


def of_rebalances(rebalances: Sequence[Rebalance], setup: Setup, now: datetime) -> Iterator[Change]:
    """What the rebalances of a group that is set up so, in order of time, amount to; nothing if they explain no
    backlog."""
    # Members that came before the first one went are no part of it.
    told = [*dropwhile(lambda rebalance: not rebalance.left, rebalances)] or rebalances
    if not told:
        return
    stats = stats_of_hour(Hour(tuple(told), tuple(told)), setup)
    kind = _OF_EXPLANATION.get(stats.finding.cause)
    if kind is ChangeKind.MEMBERS_LEFT and stats.left <= stats.joined:
        return
    if kind is not None:
        began = told[0].at
        since = f"Since {clock(began, now)}, " if len(told) > 1 else f"At {clock(began, now)}, "
        sentence = since + lower_first(stats.finding.sentence)
        yield Change(kind=kind, at=began, sentence=sentence, remedy=stats.finding.remedy)


def of_topic_events(events: Sequence[TopicEvent], since: datetime, now: datetime) -> Iterator[Change]:
    """Partitions that were added, settings that changed, and leaders that moved or were lost before ``since``, when the
    group fell behind."""
    for event in events:
        when = clock(event.at, now)
        if event.kind is EventKind.PARTITIONS_ADDED:
            yield Change(
                kind=ChangeKind.PARTITIONS_ADDED,
                at=event.at,
                sentence=f"The topic {event.topic} got partitions at {when}: {event.after} instead of {event.before}.",
            )
        elif event.kind is EventKind.CONFIG_CHANGED:
            yield Change(
                kind=ChangeKind.SETTING_CHANGED,
                at=event.at,
                sentence=f"Settings of the topic {event.topic} changed at {when}: {event.before} became {event.after}.",
            )
        elif event.kind in _MOVES and event.at <= since:
            yield Change(
                kind=ChangeKind.LEADERS_MOVED,
                at=event.at,
                sentence=(
                    f"{event.extent} of the topic {event.topic} changed leader at {when}, from {event.before} to "
                    f"{event.after}."
                ),
            )


def of_leaderless(
    topics: Sequence[Leaderless], events: Sequence[TopicEvent], since: datetime, now: datetime
) -> Iterator[Change]:
    """Topics with partitions that have no leader now. ``events``, in order of time, say when they lost it. Without such
    an event it is not known when: then the change is dated ``since``, and its sentence names no time."""
    for its in topics:
        ours = [event for event in events if event.topic == its.topic and event.kind in _LOST_OR_BACK]
        yield Change(
            kind=ChangeKind.LEADERS_LOST,
            at=_lost_at(ours) or since,
            sentence=(
                f"{_without_leader(its, ours, now)}: nobody can read or write "
                f"{'it' if its.without_leader == 1 else 'them'}."
            ),
            remedy="Start a broker that holds an in-sync replica. An unclean leader election would lose records.",
        )


def _lost_at(events: Sequence[TopicEvent]) -> datetime | None:
    """When a topic that has partitions without a leader lost the first of them, since leaders came back last. If none
    was lost after that, they came back in part only, and it was before."""
    lost = before = None
    for event in events:
        if event.kind is EventKind.LEADERS_RESTORED:
            lost, before = None, lost or before
        else:
            lost = lost or event.at
    return lost or before


def _without_leader(its: Leaderless, events: Sequence[TopicEvent], now: datetime) -> str:
    """How many have none, and since when as far as that is certain. Events do not list their partitions: of several
    losses, only those of the last one, if none is back since, are certain to have no leader now."""
    is_one = its.without_leader == 1
    told = f"{its.without_leader:,} of {plural(its.partitions, 'partition')} of the topic {its.topic}"
    told = f"{told} {'has' if is_one else 'have'}"
    losses = [event for event in events if event.kind is EventKind.LEADERS_LOST]
    if not losses:
        return f"{told} no leader"
    when = f"since {clock(losses[-1].at, now)}, before that {losses[-1].before}"
    if events[0] is losses[-1] or (is_one and events[-1] is losses[-1]):
        return f"{told} had no leader {when}"
    return f"{told} no leader, the last of them {when}" if events[-1] is losses[-1] else f"{told} no leader"
