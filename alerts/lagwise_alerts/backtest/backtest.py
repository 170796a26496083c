"""Evaluates rules over a history, as the alert process would have done. Pure; nothing is stored or sent."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Set
from dataclasses import dataclass, replace
from datetime import datetime

from lagwise_alerts.evaluate.rule_matching import match_rule
from lagwise_alerts.evaluate.rule_timers import TimerVerdict
from lagwise_alerts.model import (
    Alert,
    AlertEvent,
    AlertKind,
    AlertState,
    ClusterCondition,
    Condition,
    Decision,
    FreshnessCondition,
    GroupCondition,
    Notification,
    Situation,
)
from lagwise_alerts.notify.mute_state import MuteState
from lagwise_alerts.rules.rule_file import Rule, RuleBook
from lagwise_alerts.stages import decide_and_mute

#: Conditions on numbers that a history may lack, by their key in the file of rules.
LOSS_AHEAD = "seconds_to_loss_below"
CATCHING_UP = "seconds_to_catch_up_above"

#: The numbers that rules compare with a limit, and the key of the limit in the file of rules.
_LIMITS = {
    "lag_records": "lag_above",
    "lag_seconds": "lag_seconds_above",
    "seconds_to_loss": LOSS_AHEAD,
    "seconds_to_catch_up": CATCHING_UP,
}


@dataclass(frozen=True, slots=True)
class PastSituation:
    """The conditions at a moment of the past."""

    now: datetime
    situation: Situation


@dataclass(frozen=True, slots=True)
class Backtest:
    """The notifications between two times, and those of their alerts that would be firing at the end.

    ``moments`` is how often the rules were evaluated.
    """

    since: datetime
    until: datetime
    moments: int
    notifications: tuple[Notification, ...]
    firing: tuple[Alert, ...]
    #: Notifications of single groups, their ends too, that shared incidents replaced.
    covered: tuple[Notification, ...] = ()

    @property
    def incidents(self) -> dict[str, list[Notification]]:
        """The notifications by incident."""
        found: dict[str, list[Notification]] = {}
        for notification in self.notifications:
            found.setdefault(notification.alert.incident_id, []).append(notification)
        return found

    @property
    def shared_incidents(self) -> frozenset[str]:
        """The shared incidents that were notified, by their ids."""
        shared = (n.alert for n in self.notifications if n.alert.subject.kind is AlertKind.SHARED_INCIDENT)
        return frozenset(alert.incident_id for alert in shared)


def run_backtest(book: RuleBook, situations: Iterable[PastSituation], since: datetime, until: datetime) -> Backtest:
    """Evaluate the rules on each situation, in order."""
    is_of_interest = _Interest(book)
    alerts: dict[str, Alert] = {}
    ended: dict[str, Alert] = {}
    notifications: list[Notification] = []
    covered: list[Notification] = []
    moments = 0
    for past in situations:
        moments += 1
        # A subject without an alert that no rule matches cannot change anything.
        situation = _without_background(
            past.situation, lambda one: one.subject.fingerprint in alerts or is_of_interest(one)
        )
        # Silences and acknowledgements were answers to what was sent, which other rules may not send.
        result = decide_and_mute(book, situation, alerts, ended, MuteState(), past.now)
        _carry_out(result.decision, alerts, ended)
        notifications += filter(_is_sent, result.decision.notifications)
        covered += [*result.covered, *(one for one in result.decision.notifications if not _is_sent(one))]
    # Alerts of which a shared incident was notified instead are part of that one.
    notified = {notification.alert.incident_id for notification in notifications}
    firing = [alert for alert in alerts.values() if alert.state is AlertState.FIRING and alert.incident_id in notified]
    return Backtest(
        since,
        until,
        moments,
        tuple(notifications),
        tuple(sorted(firing, key=lambda a: (a.started_at, a.fingerprint))),
        tuple(covered),
    )


def _without_background(situation: Situation, is_of_interest: Callable[[Condition], bool]) -> Situation:
    """The same, but what no rule can match is only there to be compared with: most groups are well most of the time."""
    some: list[Condition] = []
    background: list[GroupCondition] = []
    for one in situation.conditions:
        if is_of_interest(one):
            some.append(one)
        elif isinstance(one, GroupCondition) and one.subject.kind is AlertKind.GROUP:
            background.append(one)
    return replace(situation, conditions=tuple(some), others=lambda: (*background, *situation.others()))


def _is_sent(notification: Notification) -> bool:
    """Whether anybody gets it: the end of an alert of which nobody has heard, because a shared incident was notified
    instead, goes to no channel."""
    return notification.event is not AlertEvent.RESOLVED or notification.alert.sequence > 1


def _carry_out(decision: Decision, alerts: dict[str, Alert], ended: dict[str, Alert]) -> None:
    cancelled = set(decision.cancelled)
    for fingerprint in [f for f, alert in alerts.items() if alert.incident_id in cancelled]:
        del alerts[fingerprint]
    for alert in decision.changed:
        if alert.state is AlertState.RESOLVED:
            alerts.pop(alert.fingerprint, None)
            ended[alert.fingerprint] = alert
        else:
            alerts[alert.fingerprint] = alert


class _Interest:
    """Whether any rule matches a condition. Results are cached by what rules can distinguish: histories repeat."""

    def __init__(self, book: RuleBook) -> None:
        self._book = book
        #: The limits in the rules, by number. 0 is one, too: rules may ask for unread records.
        self._limits = {
            number: sorted({0.0, *(limit for rule in book.rules if (limit := getattr(rule.when, key)) is not None)})
            for number, key in _LIMITS.items()
        }
        self._cache: dict[tuple[object, ...], bool] = {}

    def __call__(self, condition: Condition) -> bool:
        if isinstance(condition, FreshnessCondition):
            return True
        if isinstance(condition, ClusterCondition) or condition.subject.kind is not AlertKind.GROUP:
            return bool(condition.is_found)
        key = self._key(condition)
        if key not in self._cache:
            labels = self._book.labels_of(condition.subject)
            verdicts = (match_rule(rule, condition, condition.as_of, None, labels).verdict for rule in self._book.rules)
            self._cache[key] = TimerVerdict.MATCH in verdicts
        return self._cache[key]

    def _key(self, condition: GroupCondition) -> tuple[object, ...]:
        values = ((getattr(condition.numbers, number), limits) for number, limits in self._limits.items())
        return (
            condition.subject,
            condition.status,
            condition.reason,
            condition.seen_active,
            condition.is_getting_older,
            *(
                None if value is None else (bisect_left(limits, value), bisect_right(limits, value))
                for value, limits in values
            ),
        )


def untestable_rules(book: RuleBook, kinds: Set[AlertKind], numbers: Set[str]) -> dict[str, str]:
    """What the history lacks, by the name of the rule. ``kinds`` and ``numbers`` are what it holds."""
    found = {rule.name: _missing(rule, kinds, numbers) for rule in book.rules}
    return {name: missing for name, missing in found.items() if missing}


def _missing(rule: Rule, kinds: Set[AlertKind], numbers: Set[str]) -> str:
    asked = {LOSS_AHEAD: rule.when.seconds_to_loss_below, CATCHING_UP: rule.when.seconds_to_catch_up_above}
    missing = sorted(kind.value for kind in rule.when.kinds - kinds)
    missing += [name for name, limit in asked.items() if limit is not None and name not in numbers]
    return ", ".join(missing)
