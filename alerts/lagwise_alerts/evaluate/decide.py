"""What follows from what is the case: pure, so that every decision can be proved in a table and replayed.

One alert per subject (a group, the collection from a cluster, the analysis), whatever number of rules match: the worst
rule that is active gives it its severity. It is told when it begins, when it becomes worse, and when it ends.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from types import MappingProxyType

from lagwise.domain.findings import FindingKind
from lagwise.domain.group_record import GroupNumbers
from lagwise.domain.vocabulary import Status
from lagwise_alerts.evaluate.gone import why_gone
from lagwise_alerts.evaluate.rule_matching import holds, is_as_known, is_too_old, judge
from lagwise_alerts.evaluate.rule_timers import TimerMoment, TimerVerdict, advance
from lagwise_alerts.model import (
    STALE,
    Alert,
    AlertKind,
    AlertSubject,
    Clock,
    Condition,
    Decision,
    GroupCondition,
    Notification,
    Phase,
    Resolution,
    Situation,
)
from lagwise_alerts.notify.notify import counting, resolve, tell
from lagwise_alerts.rules.rule_file import Rule, RuleBook

_FINDINGS = frozenset(kind.value for kind in FindingKind)
#: Observations of the monitor itself that lie farther apart than this say nothing about the time in between.
LONGEST_STEP_SECONDS = 120.0


def decide(
    book: RuleBook,
    observation: Situation,
    alerts: Mapping[str, Alert],
    now: datetime,
    ended: Mapping[str, Alert] = MappingProxyType({}),
) -> Decision:
    """The alerts that change, and what is to be told about them.

    ``alerts`` are the pending and firing ones by fingerprint, ``ended`` those that ended lately, the latest of each.
    Deciding again on the same observation with the alerts that came out of it changes nothing and tells nothing.
    Notifications come loudest first.
    """
    changed: list[Alert] = []
    cancelled: list[str] = []
    told: list[Notification] = []
    seen = set()
    # Those that may tell the trouble of others come first: the cluster, then the group, then what stands beside it.
    standing = {alert.subject: alert for alert in alerts.values()}
    for condition in sorted(observation.conditions, key=lambda c: _STAGES.get(c.subject.kind, len(_STAGES))):
        fingerprint = condition.subject.fingerprint
        seen.add(fingerprint)
        before = alerts.get(fingerprint)
        if before is None and isinstance(condition, GroupCondition) and _is_absent(condition):
            continue  # most groups have no findings: nothing is to be judged
        after, notification = _step(book, condition, before, ended.get(fingerprint), standing, now)
        if after is not None:
            standing[condition.subject] = after
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
        after, notification = resolve(book, alert, None, resolution, now)
        changed.append(after)
        told.append(notification)
    told.sort(key=lambda n: (n.severity.rank, n.alert.subject.kind, n.alert.subject.cluster or "", n.alert.fingerprint))
    return Decision(tuple(changed), tuple(cancelled), tuple(told))


#: In which order kinds of conditions are decided on; all others follow.
_STAGES = {AlertKind.ANALYSIS: 0, AlertKind.COLLECTION: 1, AlertKind.GROUP: 2}


def _step(
    book: RuleBook,
    condition: Condition,
    before: Alert | None,
    ended: Alert | None,
    standing: Mapping[AlertSubject, Alert],
    now: datetime,
) -> tuple[Alert | None, Notification | None]:
    labels = book.labels_of(condition.subject)
    judged = [(rule, *judge(rule, condition, now, _known_in_trouble(before), labels)) for rule in book.rules]
    if before is None and not any(verdict is TimerVerdict.MATCH for _, verdict, _ in judged):
        return None, None
    calm_for = book.flapping.calm if before is not None and before.flapping and book.flapping is not None else 0.0
    clocks, calm = _advance(condition, before, judged, calm_for)
    active = [(rule, clock) for rule, clock in clocks if clock.active]
    kept = tuple(clock for _, clock in clocks)
    if not active:
        if before is not None and before.phase is Phase.FIRING:
            why = _why_over(book, before, condition)
            return resolve(book, replace(before, clocks=(), calm=calm), condition, why, now)
        if not clocks:
            return None, None
    rule, clock = min(active or clocks, key=lambda pair: book.rank(pair[0].name, pair[0].severity))
    shows = clock.matching and not clock.held
    after = _updated(
        before or _opened(book, condition, rule, ended, now), condition, rule, kept, calm, now, shows=shows
    )
    after = replace(after, labels=labels)
    return tell(book, before, after, rule, now, standing, shows=shows) if active else (after, None)


def _is_absent(condition: GroupCondition) -> bool:
    return condition.subject.kind is not AlertKind.GROUP and not condition.is_found


def _known_in_trouble(alert: Alert | None) -> int | None:
    """How many partitions were known when the alert last matched; None where being unknown is itself the trouble."""
    return None if alert is None or alert.status == Status.UNKNOWN else alert.numbers.known_partitions


def _advance(
    condition: Condition,
    before: Alert | None,
    judged: list[tuple[Rule, TimerVerdict, datetime]],
    calm_for: float,
) -> tuple[list[tuple[Rule, Clock]], Clock | None]:
    """The clocks of the rules that still matter, and the clock of the calm in which no rule matches, which must last
    for ``calm_for`` at least."""
    old = {clock.rule: clock for clock in before.clocks} if before else {}
    step = (condition.as_of - before.last_as_of).total_seconds() if before else None
    longest = condition.valid_for_seconds if isinstance(condition, GroupCondition) else LONGEST_STEP_SECONDS
    step = None if step is None or step > longest else max(0.0, step)

    def moment(since: datetime) -> TimerMoment:
        return TimerMoment(step, max(0.0, (condition.as_of - since).total_seconds()))

    clocks = []
    for rule, verdict, since in judged:
        clock = advance(old.get(rule.name), rule.name, verdict, moment(since), rule.for_seconds)
        if clock is not None:
            clocks.append((rule, clock))
    verdicts = {verdict for _, verdict, _ in judged}
    if TimerVerdict.MATCH in verdicts:
        calm_verdict = TimerVerdict.CLEAR
    else:
        calm_verdict = TimerVerdict.HOLD if TimerVerdict.HOLD in verdicts else TimerVerdict.MATCH
    calm_since = max((since for rule, _, since in judged if rule.name in old), default=condition.as_of)
    calm = advance(before.calm if before else None, "", calm_verdict, moment(calm_since), float("inf"))
    calm_seconds = -1.0 if calm is None or calm.held else calm.seconds
    another_matches = {r.name for r, c in clocks if c.active and c.matching}
    return [
        (rule, clock)
        for rule, clock in clocks
        if not _is_done(
            clock, calm_seconds, bool(another_matches - {rule.name}), max(rule.keep_firing_seconds, calm_for)
        )
    ], calm


def _is_done(clock: Clock, calm_seconds: float, another_matches: bool, keep: float) -> bool:
    """Whether an active rule has not matched for so long that it lets go: into calm, or to another rule."""
    if not clock.active or clock.matching:
        return False
    return calm_seconds >= keep or (another_matches and clock.seconds >= keep)


def _opened(book: RuleBook, condition: Condition, rule: Rule, ended: Alert | None, now: datetime) -> Alert:
    subject = condition.subject
    return Alert(
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
        numbers=GroupNumbers(),
        clocks=(),
        calm=None,
        begun_at=counting(book, ended.begun_at, now) if ended is not None else (),
    )


def _updated(
    alert: Alert,
    condition: Condition,
    rule: Rule,
    clocks: tuple[Clock, ...],
    calm: Clock | None,
    now: datetime,
    *,
    shows: bool,
) -> Alert:
    """The alert after an observation; with ``shows`` it takes over what the condition says."""
    alert = replace(
        alert,
        subject=condition.subject,  # as it is called now: a database may have had to change a character
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
            since=condition.since if condition.subject.kind is AlertKind.GROUP else alert.since,
            sentence=condition.sentence,
            numbers=condition.numbers,
        )
    since = condition.newest_at or condition.watching_since or now
    return replace(alert, status=STALE, since=since, sentence=condition.sentence)


def _why_over(book: RuleBook, alert: Alert, condition: Condition) -> Resolution:
    """Recovered, unless that is not known, or it is the rules that changed and not the subject."""
    rule = next((r for r in book.rules if r.name == alert.rule), None)
    if rule is None:
        return Resolution.RULE_CHANGED
    if not isinstance(condition, GroupCondition):
        return Resolution.RECOVERED
    # Calm, though all is as the rule describes it, or is still found: then the rule has come to mean other groups.
    is_finding = condition.subject.kind.value in _FINDINGS
    if holds(rule.when, condition) or (is_finding and condition.is_found):
        return Resolution.RULE_CHANGED
    is_unknown = condition.status is Status.UNKNOWN and not is_as_known(condition, _known_in_trouble(alert))
    return Resolution.UNKNOWN if is_unknown else Resolution.RECOVERED
