"""Which alerts become members of which shared incident. Pure; the first half of stage 5, correlate."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from lagwise.domain.correlation import (
    GroupKey,
    GroupTraits,
    SharedThing,
    ThingKind,
    find_shared,
)
from lagwise.domain.correlation_text import correlation_sentence
from lagwise.domain.group_record import GroupNumbers
from lagwise.domain.vocabulary import Status
from lagwise_alerts.evaluate.rule_matching import is_too_old
from lagwise_alerts.model import Alert, AlertKind, AlertState, AlertSubject, GroupCondition, Notification, Situation
from lagwise_alerts.rules.rule_file import RuleBook
from lagwise_alerts.rules.shared_incidents import SharedIncidents

#: What is found in the first minutes of watching a cluster began before, at any time: it did not get worse together.
_WATCHED_FOR = timedelta(minutes=15)
#: In a round, what groups share is sought around so many moments: each takes long where there are many groups.
_MOST_MOMENTS = 10
#: A group with one of these statuses and without an alert is well.
_WELL = frozenset({Status.OK, Status.CATCHING_UP})


@dataclass(slots=True)
class RoundIncident:
    """A shared incident while it is decided on."""

    alert: Alert
    #: The alerts in it that fire.
    members: list[Alert] = field(default_factory=list)
    #: Those of them that neither a mute nor an acknowledgement keeps from notifying.
    audible: list[Alert] = field(default_factory=list)
    #: Notifications of members that it replaces.
    covered: list[Notification] = field(default_factory=list)
    #: Several groups have joined at once, or a member has got worse, long after the others: another trouble.
    is_back: bool = False
    #: An acknowledgement does not withhold its notification.
    is_past_acknowledgement: bool = False


def find_members(
    open_alerts: Mapping[str, Alert],
    before: Mapping[str, Alert],
    incidents: dict[str, RoundIncident],
    situation: Situation,
    book: RuleBook,
    now: datetime,
) -> Iterable[Alert]:
    """The alerts that become members now. What they join is in ``incidents`` afterwards.

    ``open_alerts`` are those after the decision, ``before`` those before it, by the ids of their incidents.
    """
    rules = book.shared_incidents
    alone = {
        _key(alert): alert
        for alert in open_alerts.values()
        if alert.subject.kind is AlertKind.GROUP
        and alert.state is AlertState.FIRING
        and alert.shared_incident is None
        and alert.worsened_at is not None
    }
    new = {key for key, alert in alone.items() if _is_new(alert, before.get(alert.incident_id))}
    if rules is None:
        return []
    may_join = any(_in_time_to_join(incident.alert, alone, new, rules, now) for incident in incidents.values())
    # What groups share takes long to read and to compare.
    if not may_join and not _are_together(alone, new, rules):
        return []
    groups = _groups(situation)
    traits = _traits(groups, situation.traits, book)
    well = _well(groups, traits, {alert.fingerprint for alert in open_alerts.values()}, now)
    alone = {key: alert for key, alert in alone.items() if key in traits}
    found: list[Alert] = []

    def join(incident: RoundIncident, keys: Iterable[GroupKey]) -> None:
        joined = [replace(alone.pop(key), shared_incident=incident.alert.incident_id) for key in sorted(keys)]
        found.extend(joined)
        if joined:
            firing = [one for one in open_alerts.values() if one.state is AlertState.FIRING]
            members = [one for one in firing if one.shared_incident == incident.alert.incident_id]
            incident.alert = _grown(incident.alert, [*members, *joined], traits, well)

    for incident in incidents.values():
        things = incident.alert.subject.things
        in_time = _in_time_to_join(incident.alert, alone, new, rules, now)
        join(incident, [key for key in in_time if _may_join(traits[key], things)])
    set_aside: set[GroupKey] = set()
    for _ in range(_MOST_MOMENTS):
        left = (new & alone.keys()) - set_aside
        if not left:
            break
        latest = max(worsened_at(alone[key]) for key in left)
        together = {
            key: traits[key]
            for key, alert in alone.items()
            if abs(worsened_at(alert) - latest).total_seconds() <= rules.within and _was_watched(alert, situation)
        }
        correlation = find_shared(together, well, rules.groups, traits.keys())
        if correlation is None:
            # Something else may have happened before it.
            set_aside |= {key for key in left if worsened_at(alone[key]) == latest}
            continue
        earliest = min((alone[key] for key in correlation.groups), key=worsened_at)
        incident = _incident_of(correlation.things, earliest, incidents, now)
        # Who joins without this evidence does not put it off: otherwise a busy fleet would join an incident for ever.
        latest = max(worsened_at(alone[key]) for key in correlation.groups)
        join(incident, correlation.groups)
        incident.alert = replace(incident.alert, worsened_at=latest)
    return found


def _in_time_to_join(
    incident: Alert, alone: Mapping[GroupKey, Alert], new: Iterable[GroupKey], rules: SharedIncidents, now: datetime
) -> list[GroupKey]:
    """The groups with a new alert that got worse at such a time that they may join a shared incident."""
    first = incident.since - timedelta(seconds=rules.within)
    last = worsened_at(incident) + timedelta(seconds=rules.join_within)
    if now > last + timedelta(seconds=rules.within):
        # An alert whose rule asks for hours of trouble is dated back by these: it is news all the same.
        return []
    return [key for key in new if key in alone and first <= worsened_at(alone[key]) <= last]


def _may_join(traits: GroupTraits, things: tuple[SharedThing, ...]) -> bool:
    """Whether a group that got worse later may have the trouble of a shared incident about these things.

    Nobody is notified of who joins. Having any trouble on a broker or a cluster, as every group may, is too little.
    """
    brokers = sum(thing.kind is ThingKind.BROKER for thing in traits.things)

    def has(thing: SharedThing) -> bool:
        if thing.kind is ThingKind.CLUSTER or thing not in traits.things:
            return False
        return thing.kind is not ThingKind.BROKER or brokers == 1 or traits.only_broker == thing

    return any(map(has, things))


def _key(about: Alert | GroupCondition) -> GroupKey:
    """Cluster and name of the group that an alert or a condition is about."""
    return about.subject.cluster or "", about.subject.group or ""


def _are_together(alone: Mapping[GroupKey, Alert], new: Iterable[GroupKey], rules: SharedIncidents) -> bool:
    """Whether enough groups got worse at the time of a new trouble. Anything else need not be looked at."""
    times = sorted(map(worsened_at, alone.values()))
    within = timedelta(seconds=rules.within)
    return any(
        bisect_right(times, at + within) - bisect_left(times, at - within) >= rules.groups
        for at in {worsened_at(alone[key]) for key in new}
    )


def _is_new(alert: Alert, former: Alert | None) -> bool:
    """Whether an alert has begun to fire, or has become worse, in this round."""
    return former is None or former.state is not AlertState.FIRING or former.worsened_at != alert.worsened_at


def worsened_at(alert: Alert) -> datetime:
    """When an alert got worse, in the time of the data."""
    return alert.worsened_at or alert.started_at


def _was_watched(alert: Alert, situation: Situation) -> bool:
    """Whether the cluster had been watched for long enough when the group got worse."""
    view = situation.clusters.get(alert.subject.cluster or "")
    return (
        view is not None and view.watched_since is not None and worsened_at(alert) - view.watched_since >= _WATCHED_FOR
    )


def _traits(
    groups: Iterable[GroupCondition], known: Mapping[GroupKey, GroupTraits], book: RuleBook
) -> dict[GroupKey, GroupTraits]:
    """What each observed group may share with others."""
    found = {}
    for condition in groups:
        key = _key(condition)
        cluster = key[0]
        things = {SharedThing(ThingKind.TOPIC, topic, cluster) for topic in condition.topics}
        things.add(SharedThing(ThingKind.CLUSTER, cluster, cluster))
        downstream = book.downstream_of(condition.subject)
        if downstream is not None:
            things.add(SharedThing(ThingKind.DOWNSTREAM, downstream))
        more = known.get(key, GroupTraits(frozenset()))
        found[key] = replace(more, things=more.things | things)
    return found


def _well(
    groups: Iterable[GroupCondition], traits: Mapping[GroupKey, GroupTraits], in_trouble: set[str], now: datetime
) -> dict[GroupKey, GroupTraits]:
    """The traits of the groups that are known to be well. ``in_trouble`` are fingerprints."""
    return {
        _key(condition): traits[_key(condition)]
        for condition in groups
        if condition.status in _WELL
        and condition.subject.fingerprint not in in_trouble
        and not is_too_old(condition, now)
    }


def _groups(situation: Situation) -> tuple[GroupCondition, ...]:
    """All observed groups."""
    known = (
        condition
        for condition in situation.conditions
        if isinstance(condition, GroupCondition) and condition.subject.kind is AlertKind.GROUP
    )
    return (*known, *situation.others())


def _incident_of(
    things: tuple[SharedThing, ...], first: Alert, incidents: dict[str, RoundIncident], now: datetime
) -> RoundIncident:
    """The open shared incident about these things, or a new one."""
    clusters = {thing.cluster for thing in things}
    subject = AlertSubject(
        AlertKind.SHARED_INCIDENT, cluster=clusters.pop() if len(clusters) == 1 else None, things=things
    )
    for incident in incidents.values():
        if incident.alert.fingerprint == subject.fingerprint:
            incident.is_back = True
            return incident
    made = replace(
        first,
        fingerprint=subject.fingerprint,
        incident_id=f"{subject.fingerprint}-{now:%Y%m%dT%H%M%S.%fZ}",
        subject=subject,
        since=worsened_at(first),
        started_at=now,
        numbers=GroupNumbers(),
        clear_timer=None,
        fired_at=None,
        notified_rules=(),
        peak_severity=None,
        channels=(),
        sequence=0,
        notified_at=None,
        recent_starts=(now,),
        flapping=False,
    )
    incidents[made.incident_id] = RoundIncident(made)
    return incidents[made.incident_id]


def _grown(
    shared: Alert,
    members: Sequence[Alert],
    traits: Mapping[GroupKey, GroupTraits],
    well: Mapping[GroupKey, GroupTraits],
) -> Alert:
    """The shared incident with these members, and a sentence on all of them."""
    began = {_key(alert): worsened_at(alert) for alert in members}
    worse = {key: traits[key] for key in began if key in traits}
    return replace(
        shared,
        since=min(shared.since, *began.values()),
        sentence=correlation_sentence(shared.subject.things, began, well, worse),
    )
