"""The proof table of what is not told because another alert tells it already. Every row says why.

A history is a list of (second, collection, group, loss): whether samples come ("fresh" or "stale"), what the group's
status is, and whether the finding that records were lost stands beside it. Expected are (second, event, kind): all that
is told, and nothing else.
"""

from dataclasses import dataclass
from pathlib import Path

import pytest

from lagwise_alerts.model import AlertEvent, AlertKind, AlertState, Condition, Resolution
from lagwise_alerts.rules.rule_file import RuleBook, load_rules
from tests.alerts.support import Player, at, freshness, group_condition, observation, write_yaml

Step = tuple[int, str, str, bool]
RULES = """
rules:
  - {name: losing, severity: page, keep_firing_for: 2m, when: {statuses: [losing_data]}}
  - {name: stopped, severity: page, keep_firing_for: 1m, when: {statuses: [stopped]}}
  - {name: behind, severity: warn, keep_firing_for: 1m, when: {statuses: [falling_behind]}}
  - {name: lost, severity: warn, for: 10s, keep_firing_for: 1m, when: {findings: [loss]}}
  - {name: blind, severity: page, keep_firing_for: 5m, when: {stale: collection, older_than: 1m}}
"""


@dataclass(frozen=True)
class Row:
    name: str
    why: str
    history: list[Step]
    notified: list[tuple[int, str, str]]


def steps(collection: str, status: str, first: int, last: int, *, lost: bool = False) -> list[Step]:
    return [(second, collection, status, lost) for second in range(first, last + 1, 15)]


ROWS = [
    Row(
        "a blind cluster's groups are told after a minute of samples",
        "consumers lost the same brokers: most go on in a moment, this one does not",
        [*steps("stale", "ok", 0, 90), *steps("fresh", "stopped", 105, 240)],
        [(75, "firing", "collection"), (165, "firing", "group")],
    ),
    Row(
        "what passes in that minute is never told",
        "300 groups that stand still for as long as their brokers are gone are one trouble, which was told",
        [*steps("stale", "ok", 0, 90), *steps("fresh", "stopped", 105, 135), *steps("fresh", "ok", 150, 240)],
        [(75, "firing", "collection")],
    ),
    Row(
        "what was told before goes on, and its end is told",
        "good news is never held back",
        [
            *steps("fresh", "stopped", 0, 15),
            *steps("stale", "=", 30, 120),
            *steps("fresh", "ok", 135, 195),
        ],
        [(0, "firing", "group"), (90, "firing", "collection"), (195, "resolved", "group")],
    ),
    Row(
        "a worsening is held back, and told when it is still so",
        "it was falling behind before; what the first sample shows may pass",
        [
            *steps("fresh", "falling_behind", 0, 15),
            *steps("stale", "=", 30, 120),
            *steps("fresh", "stopped", 135, 240),
        ],
        [(0, "firing", "group"), (90, "firing", "collection"), (195, "escalated", "group")],
    ),
    Row(
        "while records are being lost the finding says nothing of its own",
        "a group that loses data is told once, not twice",
        steps("fresh", "losing_data", 0, 120, lost=True),
        [(0, "firing", "group")],
    ),
    Row(
        "nor does it when the loss is over",
        "the same loss is found for a day; it was told, and so was that it is over",
        [*steps("fresh", "losing_data", 0, 60, lost=True), *steps("fresh", "ok", 75, 900, lost=True)],
        [(0, "firing", "group"), (195, "resolved", "group")],
    ),
    Row(
        "a finding that appears just after the loss is of that loss",
        "the sentence of the status told just that, so that the finding was left out until then",
        [*steps("fresh", "losing_data", 0, 60), *steps("fresh", "ok", 75, 900, lost=True)],
        [(0, "firing", "group"), (195, "resolved", "group")],
    ),
    Row(
        "a loss that nobody was told of is told by the finding",
        "it was over before the first sample",
        steps("fresh", "ok", 0, 60, lost=True),
        [(15, "firing", "loss")],
    ),
    Row(
        "other trouble silences no loss",
        "that it stopped says nothing of records that are gone",
        steps("fresh", "stopped", 0, 60, lost=True),
        [(0, "firing", "group"), (15, "firing", "loss")],
    ),
    Row(
        "the next loss is told",
        "by the group's own alert, whatever the finding that is still there",
        [
            *steps("fresh", "losing_data", 0, 30, lost=True),
            *steps("fresh", "ok", 45, 300, lost=True),
            *steps("fresh", "losing_data", 315, 330, lost=True),
        ],
        [(0, "firing", "group"), (165, "resolved", "group"), (315, "firing", "group")],
    ),
    Row(
        "losing data silences falling behind",
        "they are one alert, whose worst is told; what it falls back to is not",
        [*steps("fresh", "losing_data", 0, 30), *steps("fresh", "falling_behind", 45, 600)],
        [(0, "firing", "group")],
    ),
]


def _rules(tmp_path: Path, text: str = RULES) -> RuleBook:
    return load_rules(write_yaml(tmp_path / "rules.yaml", text), ("ops", "chat"))


def _play(history: list[Step], rules: RuleBook) -> Player:
    player = Player(rules)
    last: list[Condition] = []
    newest = 0
    began: dict[str, int] = {}
    for second, collection, status, lost in history:
        if collection == "fresh":
            newest = second
        if status != "=":
            if status not in began:
                began = {status: second}
            last = [
                group_condition(second, status, since=began[status]),
                group_condition(second, status, kind=AlertKind.LOSS, is_found=lost, since=second),
            ]
        player.see(second, observation(*last, freshness(second, newest, floor=0), judged_until=newest))
    return player


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name.replace(" ", "-"))
def test_proof_table(row: Row, tmp_path: Path) -> None:
    player = _play(row.history, _rules(tmp_path))
    notified = [
        (round((n.decided_at - at(0)).total_seconds()), n.event.value, n.alert.subject.kind.value)
        for n in player.notified
    ]
    assert notified == row.notified, row.why


def test_an_inhibited_alert_names_the_one_that_inhibits_it(tmp_path: Path) -> None:
    player = _play(steps("fresh", "losing_data", 0, 60, lost=True), _rules(tmp_path))
    alerts = {alert.subject.kind: alert for alert in player.alerts.values()}
    assert alerts[AlertKind.LOSS].state is AlertState.PENDING
    assert alerts[AlertKind.LOSS].inhibited_by == alerts[AlertKind.GROUP].incident_id


def test_a_quieter_alert_silences_no_louder_one(tmp_path: Path) -> None:
    text = RULES.replace("losing, severity: page", "losing, severity: info")
    player = _play(steps("fresh", "losing_data", 0, 60, lost=True), _rules(tmp_path, text))
    assert {n.alert.subject.kind for n in player.notified} == {AlertKind.GROUP, AlertKind.LOSS}


def test_channels_that_missed_the_inhibiting_alert_get_the_other(tmp_path: Path) -> None:
    text = RULES.replace("losing, severity: page", "losing, channels: [ops], severity: page")
    player = _play(steps("fresh", "losing_data", 0, 60, lost=True), _rules(tmp_path, text))
    assert [(n.alert.subject.kind, n.channels) for n in player.notified] == [
        (AlertKind.GROUP, ("ops",)),
        (AlertKind.LOSS, ("ops", "chat")),
    ]


def test_other_clusters_are_notified(tmp_path: Path) -> None:
    player = Player(_rules(tmp_path))
    for second in range(0, 150, 15):
        player.see(
            second,
            observation(
                group_condition(second, "stopped", since=0, cluster="another"),
                freshness(second, 0, floor=0),
                clusters=["kafka", "another"],
            ),
        )
    assert [n.alert.subject.kind for n in player.notified] == [AlertKind.GROUP, AlertKind.COLLECTION]


def test_a_collection_that_flaps_is_blind_only_while_it_is(tmp_path: Path) -> None:
    """The alert of one that comes and goes lasts through half an hour of calm: its groups are told of all the while."""
    player = Player(_rules(tmp_path, RULES.replace("keep_firing_for: 5m", "keep_firing_for: 30s")))
    newest = 0
    for second in range(0, 1500, 15):
        is_fresh = second % 300 < 120 or second > 1000
        newest = second if is_fresh else newest
        status = "stopped" if second > 1200 else "ok"
        since = 1215 if second > 1200 else 0
        seen = [group_condition(newest, status, since=min(since, newest)), freshness(second, newest, floor=0)]
        player.see(second, observation(*seen, judged_until=newest))
    (group,) = [n for n in player.notified if n.alert.subject.kind is AlertKind.GROUP]
    assert (group.event, group.decided_at) == (AlertEvent.FIRING, at(1215))
    blind = next(a for a in player.alerts.values() if a.subject.kind is AlertKind.COLLECTION)
    assert blind.flapping
    assert blind.state is AlertState.FIRING


def test_what_was_held_back_and_passes_leaves_nothing(tmp_path: Path) -> None:
    row = ROWS[1]
    player = _play(row.history, _rules(tmp_path))
    assert {alert.subject.kind for alert in player.alerts.values()} == {AlertKind.COLLECTION}
    assert not [alert for alert in player.ended if alert.resolution is Resolution.RECOVERED]
