"""``lagwise alert backtest``: which alerts the rules would have raised in the lake's history or in a trace."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from lagwise.config import Config
from lagwise.domain.correlation import ThingKind
from lagwise.domain.humanise import plural
from lagwise.platform.logs import clean
from lagwise.tables.store import Lake
from lagwise.traces.trace import moment, read_trace
from lagwise_alerts.backtest import lake_comparison, lake_history, trace_history
from lagwise_alerts.backtest.backtest import Backtest, run_backtest, untestable_rules
from lagwise_alerts.evaluate.group_traits import MEMBERS_LOOKBACK
from lagwise_alerts.evaluate.lake_reader import LakeReader
from lagwise_alerts.evaluate.unread_ages import objectives_of
from lagwise_alerts.model import AlertKind, AlertSubject, Notification, Severity
from lagwise_alerts.notify.message import shared_incident_document, summary
from lagwise_alerts.operate import queries
from lagwise_alerts.rules.owners import TEAM
from lagwise_alerts.rules.rule_file import RuleBook
from lagwise_app.replay.trace_events import events_of

_TIME = "%Y-%m-%d %H:%M:%S"


@dataclass(frozen=True, slots=True)
class NotCompared:
    """What groups may share that the history lacks.

    ``clusters`` are those of which the lake lacks any of it; a trace does not name them. From ``until`` on all of it is
    there; never where that is None.
    """

    kinds: tuple[ThingKind, ...]
    clusters: tuple[str, ...] = ()
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class BacktestOutcome:
    """A backtest and its subject.

    ``trace`` is the name of a trace, None for the lake. ``not_tried`` are rules, each with the input that the history
    lacks. ``not_compared`` is None where the history says everything that groups may share, or nothing is compared.
    """

    backtest: Backtest
    trace: str | None
    rules: int
    not_tried: dict[str, str]
    not_compared: NotCompared | None = None


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
    not_tried = untestable_rules(book, lake_history.KINDS, frozenset())
    not_compared = _not_compared(lake, since, until) if book.shared_incidents else None
    return BacktestOutcome(found, None, len(book.rules), not_tried, not_compared)


def _not_compared(lake: Lake, since: datetime, until: datetime) -> NotCompared | None:
    """What the lake does not say of what groups had in common: samples are deleted before the history is."""
    began = lake_history.first_judged(lake, since, until)
    kinds: list[ThingKind] = []
    late: list[tuple[str, datetime | None]] = []
    for table, its in lake_comparison.KINDS_BY_TABLE:
        known = lake_comparison.sampled_since(lake, table, since, until)
        of_table = [name for name, at in began.items() if name not in known or known[name] > at + MEMBERS_LOOKBACK]
        if of_table:
            kinds += its
            late += ((name, known.get(name)) for name in of_table)
    if not late:
        return None
    times = [at for _, at in late if at is not None]
    clusters = tuple(sorted({name for name, _ in late}))
    return NotCompared(tuple(kinds), clusters, max(times) if len(times) == len(late) else None)


def of_trace(folder: Path, book: RuleBook, cluster: str) -> BacktestOutcome:
    """Backtest the rules on a trace. ``cluster`` is the name of its cluster. Raises TraceError."""
    trace = read_trace(folder)
    situations = trace_history.situations(trace, events_of(trace), cluster)
    ends = (moment(trace.evaluation_times[0]), moment(trace.evaluation_times[-1]))
    found = run_backtest(book, situations, *ends)
    not_tried = untestable_rules(book, trace_history.KINDS, trace_history.NUMBERS)
    not_compared = NotCompared(trace_history.missing_traits(trace)) if book.shared_incidents else None
    return BacktestOutcome(found, trace.name, len(book.rules), not_tried, not_compared)


def as_json(outcome: BacktestOutcome) -> dict[str, Any]:
    missing = outcome.not_compared
    return {
        "trace": outcome.trace,
        "since": outcome.backtest.since,
        "until": outcome.backtest.until,
        "rules": outcome.rules,
        "not_tried": outcome.not_tried,
        "not_compared": None if missing is None else _not_compared_document(missing),
        "moments": outcome.backtest.moments,
        "alerts": len(outcome.backtest.incidents),
        "messages": len(outcome.backtest.notifications),
        "shared_incidents": len(outcome.backtest.shared_incidents),
        "covered": len(outcome.backtest.covered),
        "firing": [alert.incident_id for alert in outcome.backtest.firing],
        "events": [_event(outcome, notification) for notification in outcome.backtest.notifications],
    }


def _not_compared_document(missing: NotCompared) -> dict[str, Any]:
    return {"kinds": list(missing.kinds), "clusters": list(missing.clusters), "until": missing.until}


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
        "shared_incident": shared_incident_document(notification.shared_incident),
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
    if outcome.not_compared is not None and found.moments:
        yield _without(outcome.not_compared, outcome.trace is not None)


def _without(missing: NotCompared, is_trace: bool) -> str:
    names = _listed([f"{kind.value.replace('_', ' ')}s" for kind in missing.kinds])
    if is_trace:
        return f"Groups are compared without {names}: the trace does not have them."
    clusters = _listed([clean(cluster) for cluster in missing.clusters])
    until = "" if missing.until is None else f" until {missing.until:{_TIME}} UTC"
    return f"Groups of {clusters} are compared without {names}{until}: the lake does not have them."


def _listed(words: Sequence[str]) -> str:
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


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
    return text + _shared(found) + _most(list(incidents.values()))


def _shared(found: Backtest) -> str:
    """How many messages the shared incidents saved."""
    if not found.shared_incidents:
        return ""
    number = len(found.shared_incidents)
    replace = "replaces" if number == 1 else "replace"
    return f" {plural(number, 'shared incident')} {replace} {plural(len(found.covered), 'message')} on single groups."


def _most(incidents: Sequence[Sequence[Notification]]) -> str:
    """The subject with the most alerts: the first place to tune the rules."""
    by_subject: dict[AlertSubject, int] = {}
    for its in incidents:
        by_subject[its[0].alert.subject] = by_subject.get(its[0].alert.subject, 0) + 1
    subject, number = max(by_subject.items(), key=lambda item: item[1])
    return f" Most often, {number} times: {clean(str(subject))}." if number > 1 else ""
