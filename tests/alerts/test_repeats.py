"""The proof table of what is told again, and of what comes and goes. Every row says why.

A history is a list of (second, status). Expected are (second, event), "!" after an event of an alert that flaps.
"""

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given

from lagwise_alerts.model import AlertEvent, AlertKind, AlertState, GroupCondition, Notification, Severity
from lagwise_alerts.rules.rule_file import RuleBook, load_rules
from lagwise_alerts.stages import decide
from tests.alerts.support import Player, at, book, group_condition, observation, write_yaml
from tests.alerts.test_properties import ROUNDS, Round, histories, many

pytestmark = pytest.mark.thorough

RULES = """
repeat_every: {page: 10m}
flapping: {times: 3, within: 1h, calm: 20m}
rules:
  - {name: stopped, severity: page, keep_firing_for: 1m, when: {statuses: [stopped]}}
  - {name: stalled, severity: page, keep_firing_for: 1m, repeat_every: never, when: {statuses: [stalled]}}
  - {name: late, severity: warn, keep_firing_for: 1m, repeat_every: 5m, when: {statuses: [lagging]}}
  - {name: behind, severity: warn, keep_firing_for: 1m, when: {statuses: [falling_behind]}}
"""


@dataclass(frozen=True)
class Row:
    name: str
    why: str
    history: list[tuple[int, str]]
    notified: list[tuple[int, str]]


def steps(status: str, first: int, last: int, step: int = 60) -> list[tuple[int, str]]:
    return [(second, status) for second in range(first, last + 1, step)]


def comes_and_goes(times: int, *, until: int) -> list[tuple[int, str]]:
    """Stopped for five minutes of every ten, so many times, and then well."""
    trouble = [(s, "stopped" if s % 600 < 300 else "ok") for s in range(0, times * 600, 60)]
    return [*trouble, *steps("ok", times * 600, until)]


ROWS = [
    Row(
        "told again while it lasts",
        "a page that nobody answered for ten minutes",
        steps("stopped", 0, 1500),
        [(0, "firing"), (600, "repeated"), (1200, "repeated")],
    ),
    Row(
        "a rule's own interval comes first",
        "a warning is told again every five minutes, though the file says nothing of warnings",
        steps("lagging", 0, 660),
        [(0, "firing"), (300, "repeated"), (600, "repeated")],
    ),
    Row("what has no interval is told once", "off by default", steps("falling_behind", 0, 9000), [(0, "firing")]),
    Row("never is never", "whatever the file says of its severity", steps("stalled", 0, 9000), [(0, "firing")]),
    Row(
        "a worsening counts as told",
        "ten minutes after the last word, not after the first",
        [*steps("falling_behind", 0, 300), *steps("stopped", 360, 1000)],
        [(0, "firing"), (360, "escalated"), (960, "repeated")],
    ),
    Row(
        "not told again while it may be over",
        "the minute of calm has begun: the next word is that it is over",
        [*steps("stopped", 0, 540), (600, "ok"), (660, "ok")],
        [(0, "firing"), (660, "resolved")],
    ),
    Row(
        "not told again while nothing is known",
        "on hold: what is told must be known to be so",
        [*steps("stopped", 0, 540), *steps("unknown", 600, 1200), (1260, "stopped")],
        [(0, "firing"), (1260, "repeated")],
    ),
    Row(
        "two times within the hour are two alerts",
        "that happens",
        comes_and_goes(2, until=3600),
        [(0, "firing"), (360, "resolved"), (600, "firing"), (960, "resolved")],
    ),
    Row(
        "the third is told as one that flaps, and the fourth and fifth are not told at all",
        "it ends after 20 minutes of calm: 2700 → 3900",
        comes_and_goes(5, until=6000),
        [
            (0, "firing"),
            (360, "resolved"),
            (600, "firing"),
            (960, "resolved"),
            (1200, "firing!"),
            (1800, "repeated!"),
            (2400, "repeated!"),
            (3900, "resolved!"),
        ],
    ),
    Row(
        "one that comes back soon after flaps still",
        "within an hour of the beginnings that count",
        [*comes_and_goes(3, until=3000), *steps("stopped", 3060, 3120)],
        [
            (0, "firing"),
            (360, "resolved"),
            (600, "firing"),
            (960, "resolved"),
            (1200, "firing!"),
            (2700, "resolved!"),
            (3060, "firing!"),
        ],
    ),
    Row(
        "one that comes back much later is an alert like others",
        "the beginnings are more than an hour ago",
        [*comes_and_goes(3, until=6000), *steps("stopped", 6060, 6120)],
        [
            (0, "firing"),
            (360, "resolved"),
            (600, "firing"),
            (960, "resolved"),
            (1200, "firing!"),
            (2700, "resolved!"),
            (6060, "firing"),
        ],
    ),
    Row(
        "up and down within one alert flaps, too",
        "a page, a warning and a page again: the third page is the last word on it for 20 minutes",
        [
            (s, "stopped" if s % 600 < 180 else "falling_behind")
            for s in range(0, 3000, 60)
            if s % 600 < 180 or s % 600 >= 240
        ],
        [(0, "firing"), (600, "escalated"), (1200, "escalated!"), (1800, "repeated!"), (2400, "repeated!")],
    ),
]


def _rules(tmp_path: Path, text: str = RULES) -> RuleBook:
    return load_rules(write_yaml(tmp_path / "rules.yaml", text), ("ops",))


def _play(history: list[tuple[int, str]], rules: RuleBook) -> Player:
    player = Player(rules)
    before, began = "", 0
    for second, status in history:
        if status != before:
            before, began = status, second
        reason = "unreadable" if status == "unknown" else None
        seen = group_condition(second, status, since=began, reason=reason)
        player.see(second, observation(seen, judged_until=second))
    return player


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name.replace(" ", "-"))
def test_proof_table(row: Row, tmp_path: Path) -> None:
    player = _play(row.history, _rules(tmp_path))
    notified = [
        (round((n.decided_at - at(0)).total_seconds()), n.event.value + "!" * n.alert.flapping) for n in player.notified
    ]
    assert notified == row.notified, row.why


def test_flapping_can_be_turned_off(tmp_path: Path) -> None:
    text = RULES.replace("flapping: {times: 3, within: 1h, calm: 20m}", "flapping: null")
    player = _play(comes_and_goes(5, until=3600), _rules(tmp_path, text))
    assert [n.event for n in player.notified] == [AlertEvent.FIRING, AlertEvent.RESOLVED] * 5
    assert not any(n.alert.flapping for n in player.notified)


def test_what_was_long_ago_is_forgotten_when_the_next_alert_is_opened(tmp_path: Path) -> None:
    """A process that was restarted does not know of it any more: nor may one that was not."""
    player = _play(steps("stopped", 0, 60) + steps("ok", 120, 300), _rules(tmp_path))
    player.rules = _rules(tmp_path, RULES.replace("{name: stopped,", "{name: stopped, for: 10m,"))
    player.see(3661, observation(group_condition(3661, "stopped", since=3661), judged_until=3661))
    (alert,) = player.alerts.values()
    assert (alert.state, alert.recent_starts) == (AlertState.PENDING, ())


def test_a_repetition_is_another_event_of_the_same_incident(tmp_path: Path) -> None:
    player = _play(steps("stopped", 0, 1500), _rules(tmp_path))
    assert [n.alert.sequence for n in player.notified] == [1, 2, 3]
    assert len({n.idempotency_key for n in player.notified}) == 3
    assert len({n.alert.incident_id for n in player.notified}) == 1
    assert {n.channels for n in player.notified} == {("ops",)}


def _repeating(rules: RuleBook) -> RuleBook:
    return RuleBook(rules.rules, rules.channels, rules.owners, dict.fromkeys(Severity, 60.0), rules.flapping)


def _essence(notified: Notification) -> tuple[object, ...]:
    """All but what counts the events that were told."""
    alert = notified.alert
    return (
        notified.event,
        notified.decided_at,
        alert.incident_id,
        alert.rule,
        notified.status,
        alert.flapping,
        alert.recent_starts,
    )


@many
@given(ROUNDS)
def test_repetitions_change_nothing_else(rounds: list[Round]) -> None:
    once, again = Player(book()), Player(_repeating(book()))
    for now, seen in histories(rounds):
        once.see(now, seen)
        again.see(now, seen)
    assert [_essence(n) for n in again.notified if n.event is not AlertEvent.REPEATED] == [
        _essence(n) for n in once.notified
    ]


@many
@given(ROUNDS)
def test_a_repeat_is_for_a_known_lasting_alert_notified_a_while_ago(rounds: list[Round]) -> None:
    player = Player(_repeating(book()))
    last: dict[str, float] = {}
    for now, seen in histories(rounds):
        conditions = {c.subject: c for c in seen.conditions}
        for notified in player.see(now, seen):
            condition = conditions.get(notified.alert.subject)
            if notified.event is AlertEvent.REPEATED:
                assert now - last[notified.alert.incident_id] >= 60
                assert not isinstance(condition, GroupCondition) or condition.status == notified.status
            last[notified.alert.incident_id] = now
        again = decide(player.rules, seen, player.alerts, at(now), player.ended_lately)
        assert not again.notifications
        assert not again.changed
        assert not again.cancelled


@many
@given(ROUNDS)
def test_a_third_start_within_an_hour_is_notified_as_flapping(rounds: list[Round]) -> None:
    player = Player(book())
    for now, seen in histories(rounds):
        player.see(now, seen)
    begun: dict[str, list[Notification]] = {}
    for notified in player.notified:
        if notified.event is AlertEvent.FIRING:
            earlier = begun.setdefault(notified.alert.fingerprint, [])
            lately = [n for n in earlier if notified.decided_at - n.decided_at < timedelta(hours=1)]
            assert notified.alert.flapping or len(lately) < 2
            earlier.append(notified)


@many
@given(ROUNDS)
def test_groups_of_a_blind_cluster_get_only_good_news(rounds: list[Round]) -> None:
    player = Player(book())
    for now, seen in histories(rounds):
        notified = player.see(now, seen)
        blind = [
            a for a in player.alerts.values() if a.subject.kind is AlertKind.COLLECTION and a.state is AlertState.FIRING
        ]
        if blind and blind[0].clear_timer is None:
            assert all(n.event is AlertEvent.RESOLVED for n in notified if n.alert.subject.group is not None)
