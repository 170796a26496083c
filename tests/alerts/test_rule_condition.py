"""The proof table of what rules look for: a rule, what is the case, and whether that is it.

Three verdicts: match, clear, and hold, which is neither trouble nor its end.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from lagwise.domain.group_record import GroupNumbers
from lagwise_alerts.evaluate.rule_matching import match_rule
from lagwise_alerts.evaluate.rule_timers import TimerVerdict
from lagwise_alerts.model import AlertEvent, AlertKind, GroupCondition, Resolution
from lagwise_alerts.rules.rule_file import load_rules
from tests.alerts.support import Player, at, freshness, group_condition, observation, write_yaml

MATCH, CLEAR, HOLD = TimerVerdict.MATCH, TimerVerdict.CLEAR, TimerVerdict.HOLD


@dataclass(frozen=True)
class Row:
    when: str
    status: str
    numbers: dict[str, Any]
    verdict: TimerVerdict
    why: str


#: A group's status and numbers.
OF_GROUPS = [
    Row("{lag_above: 100}", "ok", {"lag_records": 101}, MATCH, "more, whatever the status"),
    Row("{lag_above: 100}", "ok", {"lag_records": 100}, CLEAR, "as many is not more"),
    Row("{lag_above: 0}", "ok", {"lag_records": 1}, MATCH, "0 is a limit, not the absence of one"),
    Row("{lag_above: 0}", "ok", {"lag_records": None}, CLEAR, "not known, of a group that is: nothing to say"),
    Row("{lag_above: 100}", "unknown", {"lag_records": 101}, MATCH, "what is known is too much: the rest adds to it"),
    Row("{lag_above: 100}", "unknown", {"lag_records": 5}, HOLD, "what is not known may be too much"),
    Row("{lag_above: 100}", "unknown", {"lag_records": None}, HOLD, "nothing is known"),
    Row("{lag_seconds_above: 5m}", "lagging", {"lag_seconds": 301.0}, MATCH, "older"),
    Row("{lag_seconds_above: 5m}", "lagging", {"lag_seconds": 300.0}, CLEAR, "just as old"),
    Row("{lag_seconds_above: 5m}", "lagging", {"lag_seconds": 400.0, "lag_seconds_is_lower_bound": True}, MATCH, "≥"),
    Row("{seconds_to_loss_below: 2h}", "ok", {"seconds_to_loss": 7199.0}, MATCH, "sooner"),
    Row("{seconds_to_loss_below: 2h}", "ok", {"seconds_to_loss": 7200.0}, CLEAR, "not sooner"),
    Row("{seconds_to_loss_below: 2h}", "ok", {"seconds_to_loss": 0.0}, MATCH, "now"),
    Row("{seconds_to_loss_below: 2h}", "ok", {"seconds_to_loss": None}, CLEAR, "never"),
    Row("{seconds_to_catch_up_above: 1h}", "catching_up", {"seconds_to_catch_up": 3601.0}, MATCH, "longer"),
    Row("{seconds_to_catch_up_above: 1h}", "catching_up", {"seconds_to_catch_up": 60.0}, CLEAR, "sooner"),
    Row("{seconds_to_catch_up_above: 1h}", "stopped", {"seconds_to_catch_up": None}, CLEAR, "it does not catch up"),
    Row("{statuses: [lagging], lag_above: 100}", "lagging", {"lag_records": 101}, MATCH, "both hold"),
    Row("{statuses: [lagging], lag_above: 100}", "lagging", {"lag_records": 99}, CLEAR, "only the status"),
    Row("{statuses: [lagging], lag_above: 100}", "stalled", {"lag_records": 101}, CLEAR, "only the number"),
    Row("{statuses: [lagging], lag_above: 100, unread: true}", "lagging", {"lag_records": 101}, MATCH, "all three"),
    Row("{getting_older: true}", "lagging", {"is_getting_older": True}, MATCH, "older and older"),
    Row("{getting_older: true}", "lagging", {"is_getting_older": False}, CLEAR, "as old as it was"),
    Row("{statuses: [unknown], getting_older: true}", "unknown", {"is_getting_older": True}, MATCH, "its age is known"),
    Row("{statuses: [unknown], getting_older: true}", "unknown", {"is_getting_older": False}, HOLD, "it may be worse"),
    Row("{statuses: [unknown], getting_older: true}", "stopped", {"is_getting_older": True}, CLEAR, "has its own rule"),
    Row("{lag_above: 1, lag_seconds_above: 1m}", "ok", {"lag_records": 2, "lag_seconds": 61.0}, MATCH, "both numbers"),
    Row("{lag_above: 1, lag_seconds_above: 1m}", "ok", {"lag_records": 2, "lag_seconds": 59.0}, CLEAR, "one of two"),
    Row("{statuses: [ghost]}", "ghost", {}, MATCH, "a status like others"),
    Row("{findings: [loss]}", "losing_data", {}, CLEAR, "of a group's own alert no finding is said"),
    Row("{idle_members_above: 0}", "ok", {}, CLEAR, "nor are facts beside it"),
]


def _rule(tmp_path: Path, when: str, more: str = "") -> Any:
    file = write_yaml(tmp_path / "rules.yaml", f"rules: [{{name: it, severity: warn, when: {when}{more}}}]")
    (rule,) = load_rules(file).rules
    return rule


def _condition(row: Row) -> GroupCondition:
    numbers = dict(row.numbers)
    is_getting_older = numbers.pop("is_getting_older", False)
    return replace(group_condition(0, row.status, numbers=GroupNumbers(**numbers)), is_getting_older=is_getting_older)


@pytest.mark.parametrize("row", OF_GROUPS, ids=lambda row: f"{row.when}-{row.status}-{row.why}")
def test_what_a_rule_about_groups_matches(row: Row, tmp_path: Path) -> None:
    assert match_rule(_rule(tmp_path, row.when), _condition(row), at(5)).verdict is row.verdict, row.why


@pytest.mark.parametrize("row", OF_GROUPS, ids=lambda row: f"{row.when}-{row.status}-{row.why}")
def test_nothing_too_old_is_believed(row: Row, tmp_path: Path) -> None:
    assert match_rule(_rule(tmp_path, row.when), _condition(row), at(121)).verdict is HOLD


@pytest.mark.parametrize(
    ("when", "kind", "count", "words", "verdict"),
    [
        ("{idle_members_above: 0}", AlertKind.IDLE_MEMBERS, 1, (), MATCH),
        ("{idle_members_above: 2}", AlertKind.IDLE_MEMBERS, 3, (), MATCH),
        ("{idle_members_above: 2}", AlertKind.IDLE_MEMBERS, 2, (), CLEAR),
        ("{idle_members_above: 0}", AlertKind.IDLE_MEMBERS, 0, (), CLEAR),
        ("{idle_members_above: 0}", AlertKind.GHOSTS, 4, (), CLEAR),
        ("{ghosts: true}", AlertKind.GHOSTS, 4, (), MATCH),
        ("{ghosts: true}", AlertKind.GHOSTS, 0, (), CLEAR),
        ("{rebalance_storm: true}", AlertKind.REBALANCE_STORM, 1, (), MATCH),
        ("{rebalance_storm: true}", AlertKind.REBALANCE_STORM, 0, (), CLEAR),
        ("{rebalance_storm: true}", AlertKind.REBALANCES, 1, (), CLEAR),
        ("{capacity: [short, tight]}", AlertKind.CAPACITY, 2, ("enough", "tight"), MATCH),
        ("{capacity: [short, tight]}", AlertKind.CAPACITY, 1, ("enough",), CLEAR),
        ("{capacity: [short]}", AlertKind.CAPACITY, 0, (), CLEAR),
        ("{findings: [loss, skipped]}", AlertKind.SKIPPED, 1, (), MATCH),
        ("{findings: [loss, skipped]}", AlertKind.RETRIES, 1, (), CLEAR),
        ("{lag_above: 0}", AlertKind.GHOSTS, 1, (), CLEAR),
    ],
)
def test_facts_about_a_group(
    when: str, kind: AlertKind, count: int, words: tuple[str, ...], verdict: TimerVerdict, tmp_path: Path
) -> None:
    condition = replace(
        group_condition(0, "ok", kind=kind, is_found=count > 0), found_count=count, found_words=frozenset(words)
    )
    assert match_rule(_rule(tmp_path, when), condition, at(5)).verdict is verdict


@pytest.mark.parametrize(
    ("labels", "owned", "verdict"),
    [
        ("{team: payments}", {"team": "payments"}, MATCH),
        ("{team: pay}", {"team": "payments"}, CLEAR),
        ("{team: 'pay.*|ledger'}", {"team": "payments"}, MATCH),
        ("{team: '.*'}", {}, CLEAR),
        ("{team: payments, tier: '1'}", {"team": "payments", "tier": "1"}, MATCH),
        ("{team: payments, tier: '1'}", {"team": "payments", "tier": "2"}, CLEAR),
        ("{tier: '1'}", {"team": "payments"}, CLEAR),
    ],
)
def test_labels_choose_groups_by_their_owner(
    labels: str, owned: dict[str, str], verdict: TimerVerdict, tmp_path: Path
) -> None:
    rule = _rule(tmp_path, "{statuses: [stopped]}", f", labels: {labels}")
    assert match_rule(rule, group_condition(0, "stopped"), at(5), None, owned).verdict is verdict


@pytest.mark.parametrize(
    ("topics", "reads", "verdict"),
    [
        ("{include: ['payments.*']}", ("clicks", "payments.settled"), MATCH),
        ("{include: [payments]}", ("payments.settled",), CLEAR),
        ("{include: ['payments.*'], exclude: ['.*test']}", ("payments.test",), CLEAR),
        ("{include: ['payments.*'], exclude: ['.*test']}", ("payments.test", "payments.settled"), MATCH),
        ("{include: ['payments.*']}", (), CLEAR),
        ("{}", (), MATCH),
    ],
)
def test_topics_choose_groups_by_what_they_read(
    topics: str, reads: tuple[str, ...], verdict: TimerVerdict, tmp_path: Path
) -> None:
    rule = _rule(tmp_path, "{statuses: [stopped]}", f", topics: {topics}")
    assert match_rule(rule, group_condition(0, "stopped", topics=reads), at(5)).verdict is verdict


def test_a_rule_about_groups_does_not_match_the_monitor(tmp_path: Path) -> None:
    rule = _rule(tmp_path, "{lag_above: 0}")
    assert match_rule(rule, freshness(1000, 0), at(1000)).verdict is CLEAR


def test_a_number_must_hold_for_as_long_as_the_rule_says_however_old_the_status(tmp_path: Path) -> None:
    file = write_yaml(
        tmp_path / "rules.yaml",
        "rules: [{name: much, severity: warn, for: 2m, when: {statuses: [lagging], lag_above: 100}}]",
    )
    player = Player(load_rules(file, ("ops",)))
    for seconds in range(0, 300, 15):
        numbers = GroupNumbers(lag_records=200 if seconds >= 60 else 50)
        player.see(seconds + 5, observation(group_condition(seconds, "lagging", since=-3600, numbers=numbers)))
    assert [(n.event, n.decided_at) for n in player.notified] == [(AlertEvent.FIRING, at(60 + 120 + 5))]


def test_a_number_that_is_well_again_has_recovered_whatever_the_status(tmp_path: Path) -> None:
    """It is still lagging, as the rule says, but by fewer records: that is no change of the rule."""
    file = write_yaml(
        tmp_path / "rules.yaml",
        "rules: [{name: much, severity: warn, when: {statuses: [lagging], lag_above: 100}}]",
    )
    player = Player(load_rules(file, ("ops",)))
    for seconds in range(0, 300, 15):
        numbers = GroupNumbers(lag_records=200 if seconds < 60 else 50)
        player.see(seconds + 5, observation(group_condition(seconds, "lagging", since=0, numbers=numbers)))
    assert [n.event for n in player.notified] == [AlertEvent.FIRING, AlertEvent.RESOLVED]
    assert player.ended[0].resolution is Resolution.RECOVERED
