"""What follows from what is the case: pure, so that every decision can be proved in a table and replayed.

One alert per subject (a group, the collection from a cluster, the analysis), whatever number of rules match: the worst
rule that is active gives it its severity. It is told when it begins, when it becomes worse, and when it ends.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from lagwise.alerts.clocks import Moment, Verdict, advance
from lagwise.alerts.matching import is_as_known, is_too_old, judge
from lagwise.alerts.model import (
    FRESH,
    STALE,
    Alert,
    Clock,
    Condition,
    Decision,
    Event,
    Freshness,
    GroupCondition,
    Kind,
    Notification,
    Numbers,
    Observation,
    Phase,
    Resolution,
)
from lagwise.alerts.rules import Rule, RuleBook
from lagwise.alerts.vanished import why_gone
from lagwise.domain.vocabulary import Status

#: Observations of the monitor itself that lie farther apart than this say nothing about the time in between.
LONGEST_STEP_SECONDS = 120.0


def decide(book: RuleBook, observation: Observation, alerts: Mapping[str, Alert], now: datetime) -> Decision:
    """The alerts that change, and what is to be told about them.

    ``alerts`` are the pending and firing ones by fingerprint. Deciding again on the same observation with the alerts
    that came out of it changes nothing and tells nothing. Notifications come loudest first.
    """
    changed: list[Alert] = []
    cancelled: list[str] = []
    told: list[Notification] = []
    seen = set()
    for condition in observation.conditions:
        fingerprint = condition.subject.fingerprint
        seen.add(fingerprint)
        before = alerts.get(fingerprint)
        after, notification = _step(book, condition, before, now)
        if after is None and before is not None:
            cancelled.append(before.incident_id)
        elif after is not None and after != before:
            changed.append(after)
        if notification is not None:
            told.append(notification)
    for fingerprint, alert in alerts.items():
        resolution = None if fingerprint in seen else why_gone(alert, observation, now)
        if resolution is None:
            continue
        if alert.phase is Phase.PENDING:
            cancelled.append(alert.incident_id)
            continue
        after, notification = _resolve(book, alert, None, resolution, now)
        changed.append(after)
        told.append(notification)
    told.sort(key=lambda n: (n.severity.rank, n.alert.subject.kind, n.alert.subject.cluster or "", n.alert.fingerprint))
    return Decision(tuple(changed), tuple(cancelled), tuple(told))


def _step(
    book: RuleBook, condition: Condition, before: Alert | None, now: datetime
) -> tuple[Alert | None, Notification | None]:
    if before is None and isinstance(condition, GroupCondition) and _is_absent(condition):
        return None, None  # most groups have no findings: nothing is to be judged
    judged = [(rule, *judge(rule, condition, now, _known_in_trouble(before))) for rule in book.rules]
    if before is None and not any(verdict is Verdict.MATCH for _, verdict, _ in judged):
        return None, None
    clocks, calm = _advance(condition, before, judged)
    active = [(rule, clock) for rule, clock in clocks if clock.active]
    kept = tuple(clock for _, clock in clocks)
    if not active:
        if before is not None and before.phase is Phase.FIRING:
            why = _why_over(book, before, condition)
            return _resolve(book, replace(before, clocks=(), calm=calm), condition, why, now)
        if not clocks:
            return None, None
    rule, clock = min(active or clocks, key=lambda pair: book.rank(pair[0].name, pair[0].severity))
    after = _updated(before, condition, rule, kept, calm, now, shows=clock.matching and not clock.held)
    return _tell_if_worse(book, before, after, rule, now) if active else (after, None)


def _is_absent(condition: GroupCondition) -> bool:
    return condition.subject.kind is not Kind.GROUP and not condition.is_found


def _known_in_trouble(alert: Alert | None) -> int | None:
    """How many partitions were known when the alert last matched; None where being unknown is itself the trouble."""
    return None if alert is None or alert.status == Status.UNKNOWN else alert.numbers.known_partitions


def _advance(
    condition: Condition, before: Alert | None, judged: list[tuple[Rule, Verdict, datetime]]
) -> tuple[list[tuple[Rule, Clock]], Clock | None]:
    """The clocks of the rules that still matter, and the clock of the calm in which no rule matches."""
    old = {clock.rule: clock for clock in before.clocks} if before else {}
    step = (condition.as_of - before.last_as_of).total_seconds() if before else None
    longest = condition.valid_for_seconds if isinstance(condition, GroupCondition) else LONGEST_STEP_SECONDS
    step = None if step is None or step > longest else max(0.0, step)

    def moment(since: datetime) -> Moment:
        return Moment(step, max(0.0, (condition.as_of - since).total_seconds()))

    clocks = []
    for rule, verdict, since in judged:
        clock = advance(old.get(rule.name), rule.name, verdict, moment(since), rule.for_seconds)
        if clock is not None:
            clocks.append((rule, clock))
    verdicts = {verdict for _, verdict, _ in judged}
    if Verdict.MATCH in verdicts:
        calm_verdict = Verdict.CLEAR
    else:
        calm_verdict = Verdict.HOLD if Verdict.HOLD in verdicts else Verdict.MATCH
    calm_since = judged[0][2] if judged else condition.as_of  # where no rule matches, all give the same
    calm = advance(before.calm if before else None, "", calm_verdict, moment(calm_since), float("inf"))
    calm_seconds = -1.0 if calm is None or calm.held else calm.seconds
    another_matches = {r.name for r, c in clocks if c.active and c.matching}
    return [
        (rule, clock)
        for rule, clock in clocks
        if not _is_done(rule, clock, calm_seconds, bool(another_matches - {rule.name}))
    ], calm


def _is_done(rule: Rule, clock: Clock, calm_seconds: float, another_matches: bool) -> bool:
    """Whether an active rule has not matched for so long that it lets go: into calm, or to another rule."""
    if not clock.active or clock.matching:
        return False
    keep = rule.keep_firing_seconds
    return calm_seconds >= keep or (another_matches and clock.seconds >= keep)


def _updated(
    before: Alert | None,
    condition: Condition,
    rule: Rule,
    clocks: tuple[Clock, ...],
    calm: Clock | None,
    now: datetime,
    *,
    shows: bool,
) -> Alert:
    """The alert after an observation; with ``shows`` it takes over what the condition says."""
    subject = condition.subject
    alert = before or Alert(
        fingerprint=subject.fingerprint,
        # Not from `since`: a rule that is taken out and put back would make the same incident twice.
        incident_id=f"{subject.fingerprint}-{now:%Y%m%dT%H%M%S.%fZ}",
        subject=subject,
        phase=Phase.PENDING,
        rule=rule.name,
        severity=rule.severity,
        status=STALE,
        reason=None,
        since=condition.as_of,
        started_at=now,
        last_as_of=condition.as_of,
        sentence=condition.sentence,
        numbers=Numbers(),
        clocks=clocks,
        calm=calm,
    )
    alert = replace(
        alert,
        subject=subject,  # as it is called now: a database may have had to change a character
        rule=rule.name,
        severity=rule.severity,
        clocks=clocks,
        calm=calm,
        last_as_of=max(alert.last_as_of, condition.as_of),
        on_hold=is_too_old(condition, now) or any(clock.held for clock in clocks),
    )
    if not shows:
        return alert
    if isinstance(condition, GroupCondition):
        return replace(
            alert,
            status=condition.status.value,
            reason=condition.reason.value if condition.reason else None,
            # Of a finding nobody says since when it has been there: since it was first seen.
            since=condition.since if condition.subject.kind is Kind.GROUP else alert.since,
            sentence=condition.sentence,
            numbers=condition.numbers,
        )
    since = condition.newest_at or condition.watching_since or now
    return replace(alert, status=STALE, since=since, sentence=condition.sentence)


def _tell_if_worse(
    book: RuleBook, before: Alert | None, after: Alert, rule: Rule, now: datetime
) -> tuple[Alert, Notification | None]:
    """Tell that the alert fires, or that it has become worse than what was told so far."""
    if before is None or before.phase is Phase.PENDING:
        event = Event.FIRING
        after = replace(after, phase=Phase.FIRING, fired_at=now)
    else:
        louder = after.severity.rank < before.severity.rank
        worse = book.rank(after.rule, after.severity) < book.rank(before.rule, before.severity)
        if not louder and (not worse or rule.name in after.told):
            return after, None
        event = Event.ESCALATED
    channels = book.channels_of(rule)
    after = replace(
        after,
        told=tuple(dict.fromkeys((*after.told, rule.name))),
        peak_severity=min(after.peak_severity or after.severity, after.severity, key=lambda s: s.rank),
        channels=tuple(dict.fromkeys((*after.channels, *channels))),
        sequence=after.sequence + 1,
    )
    return after, Notification(
        event=event,
        decided_at=now,
        alert=after,
        status=after.status,
        reason=after.reason,
        severity=after.severity,
        sentence=after.sentence,
        numbers=after.numbers,
        previous_status=before.status if before and event is Event.ESCALATED else None,
        previous_severity=before.severity if before and event is Event.ESCALATED else None,
        channels=channels,
    )


def _why_over(book: RuleBook, alert: Alert, condition: Condition) -> Resolution:
    """Recovered, unless that is not known, or it is the rules that changed and not the subject."""
    rule = next((r for r in book.rules if r.name == alert.rule), None)
    if rule is None:
        return Resolution.RULE_CHANGED
    if not isinstance(condition, GroupCondition):
        return Resolution.RECOVERED
    if condition.is_found or (condition.subject.kind is Kind.GROUP and condition.status in rule.when.statuses):
        return Resolution.RULE_CHANGED
    is_unknown = condition.status is Status.UNKNOWN and not is_as_known(condition, _known_in_trouble(alert))
    return Resolution.UNKNOWN if is_unknown else Resolution.RECOVERED


_ENDINGS = {
    Resolution.GROUP_GONE: "The group no longer exists, or is no longer watched.",
    Resolution.CLUSTER_REMOVED: "The cluster is no longer among the clusters that are watched.",
    Resolution.RULE_CHANGED: "The rule that raised the alert was changed or removed.",
}


def _resolve(
    book: RuleBook, alert: Alert, condition: Condition | None, resolution: Resolution, now: datetime
) -> tuple[Alert, Notification]:
    ended = replace(
        alert,
        phase=Phase.RESOLVED,
        resolved_at=now,
        resolution=resolution,
        on_hold=False,
        sequence=alert.sequence + 1,
    )
    status: str | None = None
    if isinstance(condition, Freshness):
        status = FRESH
    elif condition is not None:
        status = condition.status.value
    group = condition if isinstance(condition, GroupCondition) else None
    sentence = _ENDINGS.get(resolution, group.sentence if group else "New data is coming in again.")
    return ended, Notification(
        event=Event.RESOLVED,
        decided_at=now,
        alert=ended,
        status=status,
        reason=group.reason.value if group and group.status is Status.UNKNOWN and group.reason else None,
        severity=alert.peak_severity or alert.severity,
        sentence=sentence,
        numbers=group.numbers if group else Numbers(),
        previous_status=alert.status,
        previous_severity=alert.severity,
        channels=tuple(name for name in alert.channels if name in book.channels),
    )
