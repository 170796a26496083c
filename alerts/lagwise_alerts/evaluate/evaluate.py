"""Stage 1, evaluate: which alerts begin, change and end by the rules. Pure, so that a table of cases can prove it.

A subject (a group, a finding on a group, a cluster, the collection from one, the analysis) has one alert, however many
rules match. The worst active rule gives the alert its severity.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from lagwise.domain.findings import FindingKind
from lagwise.domain.group_record import GroupNumbers
from lagwise.domain.vocabulary import Status
from lagwise_alerts.evaluate.rule_matching import RuleMatch, condition_matches, is_as_known, is_too_old, match_rule
from lagwise_alerts.evaluate.rule_timers import TimerMoment, TimerVerdict, advance_timer
from lagwise_alerts.model import (
    DEGRADED,
    STALE,
    Alert,
    AlertEvent,
    AlertKind,
    AlertState,
    ClusterCondition,
    Condition,
    FreshnessCondition,
    GroupCondition,
    Resolution,
    RuleTimer,
    Situation,
    Transition,
)
from lagwise_alerts.rules import flapping
from lagwise_alerts.rules.rule_file import Rule, RuleBook

_FINDINGS = frozenset(kind.value for kind in FindingKind)
#: Between two observations of the monitor itself that are farther apart, anything may have happened.
LONGEST_STEP_SECONDS = 120.0
#: A group that is missing for this long, in the time of the data, is gone.
GONE_AFTER_SECONDS = 60.0
#: A group that is missing for this long is gone although reading its cluster met errors. Shorter, it may just not have
#: been listed.
GONE_DESPITE_ERRORS_AFTER_SECONDS = 600.0
#: Kinds are evaluated in this order, all others afterwards: an alert that may inhibit others comes before them.
_ORDER = {AlertKind.ANALYSIS: 0, AlertKind.COLLECTION: 1, AlertKind.GROUP: 2}


def evaluate(
    book: RuleBook, situation: Situation, alerts: Mapping[str, Alert], ended: Mapping[str, Alert], now: datetime
) -> Iterator[Transition]:
    """What becomes of each alert.

    ``alerts`` are the pending and firing alerts by fingerprint, ``ended`` the latest one of each subject that ended
    recently.
    """
    seen = set()
    for condition in sorted(situation.conditions, key=lambda c: _ORDER.get(c.subject.kind, len(_ORDER))):
        fingerprint = condition.subject.fingerprint
        seen.add(fingerprint)
        before = alerts.get(fingerprint)
        if before is None and _is_absent(condition):
            continue  # most groups and clusters have no findings: there is nothing to evaluate
        transition = _evaluate_subject(book, condition, before, ended.get(fingerprint), now)
        if transition is not None:
            yield transition
    for fingerprint, alert in alerts.items():
        resolution = None if fingerprint in seen else _resolution_if_gone(alert, situation, now)
        if resolution is None:
            continue
        if alert.state is AlertState.PENDING:
            yield Transition(alert, alert, is_cancelled=True)
        else:
            yield _end(alert, alert, resolution, now)


def _resolution_if_gone(alert: Alert, situation: Situation, now: datetime) -> Resolution | None:
    """Why the alert of a subject that was not observed ends now; None while it does not end."""
    subject = alert.subject
    if subject.cluster is not None and subject.cluster not in situation.clusters:
        return Resolution.CLUSTER_REMOVED
    if subject.group is None or subject.cluster is None:
        return None
    view = situation.clusters[subject.cluster]
    if view.judged_until is None or (now - view.judged_until).total_seconds() > view.valid_for_seconds:
        return None
    patience = GONE_AFTER_SECONDS if view.without_errors else GONE_DESPITE_ERRORS_AFTER_SECONDS
    missing_seconds = (view.judged_until - alert.last_as_of).total_seconds()
    return Resolution.GROUP_GONE if missing_seconds >= patience else None


def _evaluate_subject(
    book: RuleBook, condition: Condition, before: Alert | None, ended: Alert | None, now: datetime
) -> Transition | None:
    """The transition of one subject's alert; None where there is no alert before or after."""
    labels = book.labels_of(condition.subject)
    matches = [match_rule(rule, condition, now, _known_in_trouble(before), labels) for rule in book.rules]
    if before is None and not any(match.verdict is TimerVerdict.MATCH for match in matches):
        return None
    timers, clear_timer = _advance_timers(book, condition, before, matches)
    active = [(rule, timer) for rule, timer in timers if timer.active]
    if not active and before is not None and before.state is AlertState.FIRING:
        why = _why_over(book, before, condition)
        return _end(before, replace(before, rule_timers=(), clear_timer=clear_timer), why, now, condition)
    if not timers:
        return None if before is None else Transition(before, before, is_cancelled=True)
    rule, timer = min(active or timers, key=lambda pair: book.rank(pair[0].name, pair[0].severity))
    matches_now = timer.matching and not timer.held
    after = _updated(
        before or _opened(book, condition, rule, ended, now), condition, rule, now, matches_now=matches_now
    )
    after = replace(
        after,
        rule_timers=tuple(timer for _, timer in timers),
        clear_timer=clear_timer,
        on_hold=is_too_old(condition, now) or any(timer.held for _, timer in timers),
        labels=labels,
    )
    event = _event(book, before, after, rule, now) if active else None
    if event in (AlertEvent.FIRING, AlertEvent.ESCALATED):
        after = replace(after, worsened_at=condition.as_of - timedelta(seconds=timer.seconds))
    return Transition(
        before,
        after,
        event=event,
        channels=book.channels_of(rule, after.subject),
        matches_now=matches_now,
        condition=condition,
    )


def _event(book: RuleBook, before: Alert | None, after: Alert, rule: Rule, now: datetime) -> AlertEvent | None:
    """What happened to an alert that fires: it began, became worse than what was notified, or has lasted for long."""
    if before is None or before.state is AlertState.PENDING:
        return AlertEvent.FIRING
    is_louder = after.severity.rank < before.severity.rank
    is_worse = book.rank(after.rule, after.severity) < book.rank(before.rule, before.severity)
    if is_louder or (is_worse and rule.name not in after.notified_rules):
        return AlertEvent.ESCALATED
    notified_at = before.notified_at or before.fired_at or before.started_at
    return AlertEvent.REPEATED if (now - notified_at).total_seconds() >= book.repeat_seconds_of(rule) else None


def _end(
    before: Alert, after: Alert, resolution: Resolution, now: datetime, condition: Condition | None = None
) -> Transition:
    """The end of a firing alert. ``condition`` is that of its subject now; None where there is none."""
    ended = replace(
        after,
        state=AlertState.RESOLVED,
        resolved_at=now,
        resolution=resolution,
        on_hold=False,
        inhibited_by=None,
    )
    return Transition(before, ended, AlertEvent.RESOLVED, channels=after.channels, condition=condition)


def _is_absent(condition: Condition) -> bool:
    if isinstance(condition, FreshnessCondition):
        return False
    return condition.subject.kind is not AlertKind.GROUP and not condition.is_found


def _known_in_trouble(alert: Alert | None) -> int | None:
    """How many partitions were known when the alert last matched; None where being unknown is itself the trouble."""
    return None if alert is None or alert.status == Status.UNKNOWN else alert.numbers.known_partitions


def _advance_timers(
    book: RuleBook, condition: Condition, before: Alert | None, matches: list[RuleMatch]
) -> tuple[list[tuple[Rule, RuleTimer]], RuleTimer | None]:
    """The timers of the rules that still count, and the timer of the time in which no rule matches."""
    old = {timer.rule: timer for timer in before.rule_timers} if before else {}
    step = (condition.as_of - before.last_as_of).total_seconds() if before else None
    longest = LONGEST_STEP_SECONDS if isinstance(condition, FreshnessCondition) else condition.valid_for_seconds
    step = None if step is None or step > longest else max(0.0, step)

    def moment(since: datetime) -> TimerMoment:
        return TimerMoment(step, max(0.0, (condition.as_of - since).total_seconds()))

    timers = []
    for rule, verdict, since in matches:
        timer = advance_timer(old.get(rule.name), rule.name, verdict, moment(since), rule.for_seconds)
        if timer is not None:
            timers.append((rule, timer))
    verdicts = {match.verdict for match in matches}
    if TimerVerdict.MATCH in verdicts:
        clear_verdict = TimerVerdict.CLEAR
    else:
        clear_verdict = TimerVerdict.HOLD if TimerVerdict.HOLD in verdicts else TimerVerdict.MATCH
    clear_since = max((match.since for match in matches if match.rule.name in old), default=condition.as_of)
    clear_timer = advance_timer(
        before.clear_timer if before else None, "", clear_verdict, moment(clear_since), float("inf")
    )
    clear_seconds = -1.0 if clear_timer is None or clear_timer.held else clear_timer.seconds
    calm_seconds = book.flapping.calm if before is not None and before.flapping and book.flapping is not None else 0.0
    matching = {rule.name for rule, timer in timers if timer.active and timer.matching}
    return [
        (rule, timer)
        for rule, timer in timers
        if not _is_done(
            timer,
            clear_seconds,
            max(rule.keep_firing_seconds, calm_seconds),
            another_matches=bool(matching - {rule.name}),
        )
    ], clear_timer


def _is_done(timer: RuleTimer, clear_seconds: float, keep_seconds: float, *, another_matches: bool) -> bool:
    """Whether an active rule has not matched for so long that it stops firing, or leaves the alert to another rule."""
    if not timer.active or timer.matching:
        return False
    return clear_seconds >= keep_seconds or (another_matches and timer.seconds >= keep_seconds)


def _opened(book: RuleBook, condition: Condition, rule: Rule, ended: Alert | None, now: datetime) -> Alert:
    subject = condition.subject
    return Alert(
        fingerprint=subject.fingerprint,
        # Not from `since`: a rule that is removed and put back would make the same incident twice.
        incident_id=f"{subject.fingerprint}-{now:%Y%m%dT%H%M%S.%fZ}",
        subject=subject,
        state=AlertState.PENDING,
        rule=rule.name,
        severity=rule.severity,
        status=STALE,
        reason=None,
        since=condition.as_of,
        started_at=now,
        last_as_of=condition.as_of,
        sentence=condition.sentence,
        numbers=GroupNumbers(),
        rule_timers=(),
        clear_timer=None,
        recent_starts=flapping.recent_starts(book.flapping, ended.recent_starts, now) if ended is not None else (),
    )


def _updated(alert: Alert, condition: Condition, rule: Rule, now: datetime, *, matches_now: bool) -> Alert:
    """The alert after an observation. Where the rule matches now, the alert takes over the condition."""
    alert = replace(
        alert,
        subject=condition.subject,  # as it is called now: a database may have had to change a character
        rule=rule.name,
        severity=rule.severity,
        last_as_of=max(alert.last_as_of, condition.as_of),
    )
    if not matches_now:
        return alert
    if isinstance(condition, GroupCondition):
        return replace(
            alert,
            status=condition.status.value,
            reason=condition.reason.value if condition.reason else None,
            # A finding does not record when it began: it counts from when it was first seen.
            since=condition.since if condition.subject.kind is AlertKind.GROUP else alert.since,
            sentence=condition.sentence,
            numbers=condition.numbers,
        )
    if isinstance(condition, ClusterCondition):
        return replace(alert, status=DEGRADED, sentence=condition.sentence)
    since = condition.newest_at or condition.watching_since or now
    return replace(alert, status=STALE, since=since, sentence=condition.sentence)


def _why_over(book: RuleBook, alert: Alert, condition: Condition) -> Resolution:
    """Recovered, unless that is unknown, or the rules changed and not the subject."""
    rule = next((r for r in book.rules if r.name == alert.rule), None)
    if rule is None:
        return Resolution.RULE_CHANGED
    if isinstance(condition, ClusterCondition):
        return Resolution.RULE_CHANGED if condition.is_found else Resolution.RECOVERED
    if not isinstance(condition, GroupCondition):
        return Resolution.RECOVERED
    # The rule has ended although its condition is still met, or the finding is still there: its scope has changed.
    is_finding = condition.subject.kind.value in _FINDINGS
    if condition_matches(rule.when, condition) or (is_finding and condition.is_found):
        return Resolution.RULE_CHANGED
    is_unknown = condition.status is Status.UNKNOWN and not is_as_known(condition, _known_in_trouble(alert))
    return Resolution.UNKNOWN if is_unknown else Resolution.RECOVERED
