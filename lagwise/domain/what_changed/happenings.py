"""Changes that are events: rebalances, and what happened to the topics that a group reads."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import dropwhile

from lagwise.domain.humanise import clock, lower_first
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


@dataclass(frozen=True, slots=True)
class TopicEvent:
    """A topic got partitions, or another setting: ``before`` and ``after`` as `raw/events` has them."""

    at: datetime
    kind: EventKind
    topic: str
    before: str
    after: str


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


def of_topic_events(events: Sequence[TopicEvent], now: datetime) -> Iterator[Change]:
    """Partitions that were added, and settings that changed."""
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
