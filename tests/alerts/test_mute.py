"""The proof table of what is told of decisions. Every row says why its outcome is right; a row is only changed with a
reason.

Histories are those of the proof table: (second, status) of the group ``orders``, decided five seconds later. Orders are
("silence", from, until, matcher), ("window", from, until) and ("take", second) or ("release", second), in seconds of
the same clock, given before the decision of that second. Expected are (second, event, severity, status): all that goes
out.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lagwise.config.operating import MaintenanceWindow
from lagwise_alerts.model import Alert, AlertEvent, AlertKind, AlertSubject, Notification, Severity
from lagwise_alerts.notify.mute import mute
from lagwise_alerts.notify.mute_state import (
    Acknowledgement,
    Matcher,
    MuteCause,
    MuteState,
    Silence,
    Withheld,
    literal_pattern,
)
from lagwise_alerts.rules.rule_file import RuleBook, load_rules
from lagwise_alerts.stages import decide
from tests.alerts.support import CLUSTER, at, book, carried_out, group_condition, observation, write_yaml

pytestmark = pytest.mark.thorough

History = list[tuple[float, str]]
Told = list[tuple[float, str, str, str | None]]
ANY = Matcher(group=".*")


def steps(status: str, first: int, last: int, step: int = 15) -> History:
    return [(float(second), status) for second in range(first, last + 1, step)]


def silence(first: float, last: float, matcher: Matcher = ANY) -> Silence:
    return Silence(1, matcher, at(first), at(last), "because", "jo", at(first))


def window(first: float, last: float, **changes: Any) -> MaintenanceWindow:
    return MaintenanceWindow.model_validate({"name": "w", "starts_at": at(first), "ends_at": at(last), **changes})


@dataclass
class Operated:
    """Keeps alerts, debts and acknowledgements from decision to decision, as the database does."""

    rules: RuleBook = field(default_factory=lambda: book(("ops",)))
    silences: list[Silence] = field(default_factory=list)
    windows: list[MaintenanceWindow] = field(default_factory=list)
    taken: dict[str, Acknowledgement] = field(default_factory=dict)
    withheld: dict[str, Withheld] = field(default_factory=dict)
    alerts: dict[str, Alert] = field(default_factory=dict)
    ended: list[Alert] = field(default_factory=list)
    notified: list[tuple[float, Notification]] = field(default_factory=list)

    def see(self, second: float, status: str) -> None:
        """``falling_behind@-600`` is a status that has held since that second."""
        now = at(second + 5)
        word, _, since = status.partition("@")
        seen = group_condition(second, word, since=float(since) if since else None)
        known = {alert.incident_id: alert for alert in self.alerts.values()}
        orders = MuteState(tuple(self.silences), tuple(self.windows), self.taken, self.withheld)
        decision = decide(self.rules, observation(seen), self.alerts, now, {})
        telling = mute(decision, self.alerts, orders, now)
        self.alerts, ended = carried_out(self.alerts, telling.decision.changed, telling.decision.cancelled)
        self.ended += ended
        assert not set(telling.no_longer_withheld) & {debt.incident_id for debt in telling.withheld}
        self.withheld = {key: debt for key, debt in self.withheld.items() if key not in telling.no_longer_withheld}
        self.withheld |= {debt.incident_id: debt for debt in telling.withheld}
        for notification in telling.decision.notifications:
            if notification.channels:
                before = known.get(notification.alert.incident_id)
                assert notification.alert.sequence == (before.sequence if before else 0) + 1, "no number is left out"
                self.notified.append((second, notification))

    def take(self) -> None:
        for alert in self.alerts.values():
            self.taken[alert.incident_id] = Acknowledgement(alert.incident_id, alert.severity, "jo", at(0), "mine")

    def play(self, history: History, orders: list[tuple[Any, ...]]) -> Told:
        for kind, *given_ in orders:
            if kind == "silence":
                self.silences.append(silence(*given_))
            elif kind == "window":
                self.windows.append(window(*given_))
        for second, status in history:
            if ("take", second) in orders:
                self.take()
            if ("release", second) in orders:
                self.taken.clear()
            self.see(second, status)
        return [(s, n.event.value, n.severity.value, n.status) for s, n in self.notified]


@dataclass(frozen=True)
class Row:
    name: str
    why: str
    history: History
    orders: list[tuple[Any, ...]]
    notified: Told


ROWS = [
    Row(
        "silenced from beginning to end",
        "nobody was told of the beginning, so nobody is told of the end",
        [(0, "ok"), (15, "stopped"), *steps("ok", 30, 105)],
        [("silence", 0, 600)],
        [],
    ),
    Row(
        "the silence ends while it still holds",
        "what fires then is news, and is told as the beginning that it is for people",
        steps("stopped", 0, 120),
        [("silence", 0, 60)],
        [(60, "firing", "page", "stopped")],
    ),
    Row(
        "the silence ends after it was over",
        "there is nothing to tell any more",
        [(0, "stopped"), *steps("ok", 15, 150)],
        [("silence", 0, 100)],
        [],
    ),
    Row(
        "the silence ends in the calm that is its end",
        "a beginning and an end within a minute would wake somebody for nothing: it is waited for what comes of it",
        [(0, "stopped"), *steps("ok", 15, 90)],
        [("silence", 0, 40)],
        [],
    ),
    Row(
        "the silence ends in a calm that does not last",
        "it holds again, and nobody has been told of it",
        [(0, "stopped"), *steps("ok", 15, 45), *steps("stopped", 60, 90)],
        [("silence", 0, 40)],
        [(60, "firing", "page", "stopped")],
    ),
    Row(
        "silenced after it was told",
        "its end is told: it wakes nobody, and without it a receiver would show the alert for ever",
        [(0, "stopped"), *steps("ok", 15, 90)],
        [("silence", 10, 600)],
        [(0, "firing", "page", "stopped"), (75, "resolved", "page", "ok")],
    ),
    Row(
        "worse while silenced, and still so at its end",
        "people know the milder half: now they hear the other",
        [(0, "falling_behind@-600"), (15, "falling_behind@-600"), *steps("stopped", 30, 90)],
        [("silence", 10, 70)],
        [(0, "firing", "warn", "falling_behind"), (75, "escalated", "page", "stopped")],
    ),
    Row(
        "worse while silenced, and mild again at its end",
        "what people know is what is the case",
        [
            (0, "falling_behind@-600"),
            *steps("losing_data", 15, 30),
            *steps("falling_behind", 45, 405),
        ],
        [("silence", 10, 380)],
        [(0, "firing", "warn", "falling_behind")],
    ),
    Row(
        "worse in the same round in which the silence ends",
        "nobody was told of the beginning, so this is one message and the beginning, as bad as it is",
        [*steps("stopped", 0, 45), (60, "losing_data")],
        [("silence", 0, 60)],
        [(60, "firing", "page", "losing_data")],
    ),
    Row(
        "worse after a silence that somebody lifted in time",
        "told when the silence ends, and told again when it gets worse: nothing of the silence is left",
        [*steps("stopped", 0, 45), (60, "losing_data")],
        [("silence", 0, 30)],
        [(30, "firing", "page", "stopped"), (60, "escalated", "page", "losing_data")],
    ),
    Row(
        "a silence for warnings does not hold back a page",
        "who silenced the mild trouble did not mean the outage",
        [(0, "falling_behind@-600"), (15, "falling_behind@-600"), (30, "stopped")],
        [("silence", 0, 600, Matcher(group=".*", severity="warn|info"))],
        [(30, "firing", "page", "stopped")],
    ),
    Row(
        "a silence for another group",
        "is none of its business",
        [(0, "stopped")],
        [("silence", 0, 600, Matcher(group="orders-.*"))],
        [(0, "firing", "page", "stopped")],
    ),
    Row(
        "maintenance",
        "is a silence that the settings know of: the same holds",
        steps("stopped", 0, 120),
        [("window", 0, 60)],
        [(60, "firing", "page", "stopped")],
    ),
    Row(
        "a silence within a maintenance window",
        "only when nothing mutes it any more is it told",
        steps("stopped", 0, 120),
        [("window", 0, 45), ("silence", 30, 90)],
        [(90, "firing", "page", "stopped")],
    ),
    Row(
        "acknowledged, and worse without being louder",
        "somebody has it: the same person would be called a second time",
        [(0, "stopped"), (15, "stopped"), *steps("losing_data", 30, 60)],
        [("take", 15)],
        [(0, "firing", "page", "stopped")],
    ),
    Row(
        "acknowledged as a warning, and louder",
        "who took a warning on did not take a page on",
        [(0, "falling_behind@-600"), (15, "falling_behind@-600"), *steps("stopped", 30, 60)],
        [("take", 15)],
        [(0, "firing", "warn", "falling_behind"), (30, "escalated", "page", "stopped")],
    ),
    Row(
        "acknowledged, and over",
        "the end is told, and ends the acknowledgement with the alert: the next outage is told",
        [(0, "stopped"), *steps("ok", 15, 75), (90, "stopped")],
        [("take", 15)],
        [(0, "firing", "page", "stopped"), (75, "resolved", "page", "ok"), (90, "firing", "page", "stopped")],
    ),
    Row(
        "acknowledged while silenced",
        "somebody saw it on the page and has it: when the silence ends there is nobody to call",
        steps("stopped", 0, 120),
        [("silence", 0, 60), ("take", 30)],
        [],
    ),
    Row(
        "acknowledged while silenced, and louder after it",
        "nobody was told of its beginning, so that is what it is now",
        [*steps("falling_behind@-600", 0, 75), (90, "stopped")],
        [("silence", 0, 60), ("take", 30)],
        [(90, "firing", "page", "stopped")],
    ),
    Row(
        "an acknowledgement that was taken back",
        "what gets worse afterwards is told",
        [(0, "stopped"), (15, "stopped"), (30, "stopped"), (45, "losing_data")],
        [("take", 15), ("release", 30)],
        [(0, "firing", "page", "stopped"), (45, "escalated", "page", "losing_data")],
    ),
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_what_is_notified(row: Row) -> None:
    """The correctness proof of mutes."""
    assert Operated().play(row.history, row.orders) == row.notified, row.why


WORDS = st.sampled_from(["ok", "falling_behind@-600", "stopped", "losing_data", "unknown"])


@settings(max_examples=300, deadline=None)
@given(st.lists(WORDS, min_size=1, max_size=25), st.sets(st.integers(0, 25)), st.sets(st.integers(0, 25), max_size=3))
def test_whatever_is_ordered(statuses: list[str], muted: set[int], taken: set[int]) -> None:
    """In every history: beginnings and ends alternate, nothing goes out while muted but ends, and nothing stays owed
    once nothing mutes it, unless it is calm."""
    operated = Operated()
    operated.silences = [silence(15 * i, 15 * i + 15) for i in muted]
    for i, status in enumerate(statuses):
        if i in taken:
            operated.take()
        operated.see(15.0 * i, status)
    open_incidents: set[str] = set()
    for second, notified in operated.notified:
        incident = notified.alert.incident_id
        if notified.event is AlertEvent.FIRING:
            assert incident not in open_incidents
            open_incidents.add(incident)
        else:
            assert incident in open_incidents, "nobody hears of what he never heard of"
        if notified.event is AlertEvent.RESOLVED:
            open_incidents.remove(incident)
        else:
            assert int(second / 15 + 5 / 15) not in muted
    # Quiet from here on: what holds is told, or somebody has it.
    last = statuses[-1].partition("@")[0]
    for i in range(len(statuses), len(statuses) + 2):
        operated.see(15.0 * max(i, 26), last)
    if last in ("stopped", "losing_data"):
        [alert] = operated.alerts.values()
        assert alert.incident_id in operated.taken or alert.incident_id in {
            n.alert.incident_id for _, n in operated.notified
        }
        assert not operated.withheld


def test_late_news_is_as_things_stand_and_goes_to_whom_it_was_meant_for() -> None:
    operated = Operated(silences=[silence(0, 60)])
    for second in (0, 15, 30, 45, 60):
        operated.see(float(second), "stopped")
    [(_, notified)] = operated.notified
    assert notified.channels == ("ops",)
    assert notified.alert.fired_at == notified.decided_at == at(65)
    assert notified.idempotency_key.endswith("-1")
    assert notified.alert.channels == ("ops",), "who was told must be told of the end"


@pytest.mark.parametrize(
    ("matcher", "subject", "severity", "meant"),
    [
        (Matcher(group="orders"), AlertSubject(AlertKind.GROUP, CLUSTER, "orders"), "page", True),
        (Matcher(group="orders"), AlertSubject(AlertKind.GROUP, CLUSTER, "orders-2"), "page", False),
        (Matcher(group=".*"), AlertSubject(AlertKind.GROUP, CLUSTER, "line\nbreak"), "page", True),
        (Matcher(group=".*"), AlertSubject(AlertKind.COLLECTION, CLUSTER), "page", False),
        (Matcher(cluster="kafka"), AlertSubject(AlertKind.COLLECTION, CLUSTER), "page", True),
        (Matcher(cluster="kafka"), AlertSubject(AlertKind.ANALYSIS), "page", False),
        (Matcher(kind="analysis"), AlertSubject(AlertKind.ANALYSIS), "page", True),
        (
            Matcher(cluster="kafka", group="o.*", severity="warn"),
            AlertSubject(AlertKind.LOSS, CLUSTER, "orders"),
            "warn",
            True,
        ),
        (
            Matcher(cluster="kafka", group="o.*", severity="warn"),
            AlertSubject(AlertKind.LOSS, CLUSTER, "orders"),
            "page",
            False,
        ),
        (Matcher(kind="loss|skipped"), AlertSubject(AlertKind.GROUP, CLUSTER, "orders"), "page", False),
    ],
)
def test_matching(matcher: Matcher, subject: AlertSubject, severity: str, meant: bool) -> None:
    assert matcher.matches(subject, Severity(severity)) is meant


@pytest.mark.parametrize("name", ["fraud-check", "team/orders @home #1", "a.b", "(x)[y]{2}|$^*+?\\", "a\nb", "ä"])
def test_the_pattern_of_a_name_matches_that_name_and_no_other(name: str) -> None:
    matcher = Matcher(group=literal_pattern(name))
    assert matcher.matches(AlertSubject(AlertKind.GROUP, CLUSTER, name), Severity.PAGE)
    for other in (name + "x", "x" + name, name.replace(".", "x").replace("(", "")):
        assert other == name or not matcher.matches(AlertSubject(AlertKind.GROUP, CLUSTER, other), Severity.PAGE)
    if name.replace("-", "").isalnum():
        assert literal_pattern(name) == name, "people read it"


def test_of_several_mutes_the_longest_is_named() -> None:
    orders = MuteState((silence(0, 60),), (window(0, 90),))
    mute = orders.mute_of(AlertSubject(AlertKind.GROUP, CLUSTER, "orders"), Severity.PAGE, at(30))
    assert mute is not None
    assert (mute.cause, mute.name, mute.until) == (MuteCause.MAINTENANCE, "w", at(90))
    assert orders.mute_of(AlertSubject(AlertKind.GROUP, CLUSTER, "orders"), Severity.PAGE, at(90)) is None


REPEATING = """
repeat_every: {page: 1m}
rules:
  - {name: stopped, when: {statuses: [stopped]}, severity: page, keep_firing_for: 30s}
"""


@pytest.mark.parametrize(
    ("orders", "notified", "why"),
    [
        ([], [(0, "firing"), (60, "repeated"), (120, "repeated"), (180, "repeated")], "nobody has it: it is repeated"),
        ([("take", 30)], [(0, "firing")], "somebody has it"),
        (
            [("take", 30), ("release", 90)],
            [(0, "firing"), (90, "repeated"), (150, "repeated")],
            "and has it no more: its time is over long ago",
        ),
        ([("silence", 10, 90)], [(0, "firing"), (90, "repeated"), (150, "repeated")], "silenced: told when that ends"),
        ([("silence", 0, 90)], [(90, "firing"), (150, "repeated")], "first of all it begins, as far as people know"),
    ],
)
def test_repeats(tmp_path: Path, orders: list[tuple[Any, ...]], notified: list[tuple[float, str]], why: str) -> None:
    rules = load_rules(write_yaml(tmp_path / "rules.yaml", REPEATING), ("ops",))
    found = Operated(rules=rules).play(steps("stopped", 0, 195), orders)
    assert [(second, event) for second, event, _, _ in found] == notified, why
