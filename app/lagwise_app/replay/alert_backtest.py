"""``lagwise alert backtest``: which alerts the rules would have raised in the lake's history or in a trace."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from lagwise.config import Config
from lagwise.domain.humanise import plural
from lagwise.platform.logs import clean
from lagwise.tables.store import Lake
from lagwise.traces.trace import moment, read_trace
from lagwise_alerts.backtest import lake_history, trace_history
from lagwise_alerts.backtest.backtest import Backtest, run_backtest, untestable_rules
from lagwise_alerts.evaluate.lake_reader import LakeReader
from lagwise_alerts.evaluate.unread_ages import objectives_of
from lagwise_alerts.model import AlertKind, AlertSubject, Notification, Severity
from lagwise_alerts.notify.message import summary
from lagwise_alerts.operate import queries
from lagwise_alerts.rules.owners import TEAM
from lagwise_alerts.rules.rule_file import RuleBook
from lagwise_app.replay.trace_events import events_of

_TIME = "%Y-%m-%d %H:%M:%S"


@dataclass(frozen=True, slots=True)
class BacktestOutcome:
    """A backtest and its subject.

    ``trace`` is the name of a trace, None for the lake. ``not_tried`` are rules, each with the input that the history
    lacks.
    """

    backtest: Backtest
    trace: str | None
    rules: int
    not_tried: dict[str, str]


def of_lake(config: Config, book: RuleBook, since: datetime, until: datetime) -> BacktestOutcome:
    """Backtest the rules on a time range of the lake. Raises LakeError and DatabaseError."""
    lake = Lake(config.lake_uri, config.lake.resolved_storage_options())
    reader = LakeReader(lake)
    try:
        now = reader.read(until)
    finally:
        reader.close()
    engine = queries.connect(config)
    try:
        alive = queries.active_groups(engine)
    finally:
        engine.dispose()
    before = {AlertSubject(AlertKind.GROUP, *group).fingerprint for group in now.active_before or ()}
    span = lake_history.HistorySpan(
        since=since,
        until=until,
        analysis_interval_seconds=config.analysis.interval_seconds,
        alive=alive | before,
        mirrored=frozenset(row.subject.fingerprint for row in now.groups if row.is_mirrored),
        objective_of=objectives_of(config),
    )
    found = run_backtest(book, lake_history.situations(lake, span, book), since, until)
    return BacktestOutcome(found, None, len(book.rules), untestable_rules(book, lake_history.KINDS, frozenset()))


def of_trace(folder: Path, book: RuleBook, cluster: str) -> BacktestOutcome:
    """Backtest the rules on a trace. ``cluster`` is the name of its cluster. Raises TraceError."""
    trace = read_trace(folder)
    situations = trace_history.situations(trace, events_of(trace), cluster)
    ends = (moment(trace.evaluation_times[0]), moment(trace.evaluation_times[-1]))
    found = run_backtest(book, situations, *ends)
    return BacktestOutcome(
        found, trace.name, len(book.rules), untestable_rules(book, trace_history.KINDS, trace_history.NUMBERS)
    )


def as_json(outcome: BacktestOutcome) -> dict[str, Any]:
    return {
        "trace": outcome.trace,
        "since": outcome.backtest.since,
        "until": outcome.backtest.until,
        "rules": outcome.rules,
        "not_tried": outcome.not_tried,
        "moments": outcome.backtest.moments,
        "alerts": len(outcome.backtest.incidents),
        "messages": len(outcome.backtest.notifications),
        "firing": [alert.incident_id for alert in outcome.backtest.firing],
        "events": [_event(outcome, notification) for notification in outcome.backtest.notifications],
    }


def _event(outcome: BacktestOutcome, notification: Notification) -> dict[str, Any]:
    alert = notification.alert
    return {
        "at": notification.decided_at,
        "at_seconds": _seconds(outcome, notification.decided_at),
        "event": notification.event.value,
        "severity": notification.severity.value,
        "rule": alert.rule,
        "kind": alert.subject.kind.value,
        "cluster": alert.subject.cluster,
        "group": alert.subject.group,
        "team": alert.labels.get(TEAM),
        "status": notification.status,
        "reason": notification.reason,
        "flapping": alert.flapping,
        "channels": list(notification.channels),
        "summary": summary(notification),
        "sentence": notification.sentence,
        "incident_id": alert.incident_id,
    }


def _seconds(outcome: BacktestOutcome, at: datetime) -> float | None:
    """Seconds since the beginning of a trace; None for the lake."""
    return None if outcome.trace is None else round((at - moment(0.0)).total_seconds(), 3)


def lines(outcome: BacktestOutcome, rules: str) -> Iterator[str]:
    """A backtest as text. ``rules`` is the name of the rules."""
    found = outcome.backtest
    by = f"{plural(outcome.rules, 'rule')} of {clean(rules)}"
    if outcome.trace is None:
        yield f"{found.since:{_TIME}} to {found.until:{_TIME}} UTC, {by}:"
    else:
        yield f"{clean(outcome.trace)}, {by}:"
    for notification in found.notifications:
        at = _seconds(outcome, notification.decided_at)
        when = f"{notification.decided_at:{_TIME}}" if at is None else f"{at:>9g} s"
        to = f" to {', '.join(notification.channels)}" if notification.channels else ""
        what = f"{notification.event.value:<9}  {notification.severity.value:<4}  {clean(summary(notification))}"
        yield f"  {when}  {what} ({notification.alert.rule}{to})"
    yield _in_all(found)
    if outcome.not_tried:
        names = "; ".join(
            name if name == missing else f"{name} ({missing})" for name, missing in outcome.not_tried.items()
        )
        history = "lake keeps no history" if outcome.trace is None else "trace has no data"
        yield f"Not tested, because the {history} for them: {names}."


def _in_all(found: Backtest) -> str:
    if not found.moments:
        return "The lake has no history of that time."
    incidents = found.incidents
    if not incidents:
        return "No alert would have been sent."
    loudest = [min((notification.severity for notification in its), key=lambda s: s.rank) for its in incidents.values()]
    each = ", ".join(f"{loudest.count(severity)} {severity.value}" for severity in Severity if severity in loudest)
    lasting = f"; {len(found.firing)} still firing at the end" if found.firing else ""
    text = f"{plural(len(incidents), 'alert')} ({each}), {plural(len(found.notifications), 'message')}{lasting}."
    return text + _most(list(incidents.values()))


def _most(incidents: Sequence[Sequence[Notification]]) -> str:
    """The subject with the most alerts: the first place to tune the rules."""
    by_subject: dict[AlertSubject, int] = {}
    for its in incidents:
        by_subject[its[0].alert.subject] = by_subject.get(its[0].alert.subject, 0) + 1
    subject, number = max(by_subject.items(), key=lambda item: item[1])
    return f" Most often, {number} times: {clean(str(subject))}." if number > 1 else ""
