"""Whose a group is: the labels of its alerts, and who is told."""

from pathlib import Path

import pytest

from lagwise.platform.errors import ConfigError
from lagwise_alerts.model import AlertEvent, AlertKind, AlertSubject
from lagwise_alerts.rules.rule_file import RuleBook, load_rules
from tests.alerts.support import CLUSTER, Player, at, freshness, group_condition, observation, write_yaml

CHANNELS = ("ops", "payments-chat", "logs-chat")
TEXT = """
owners:
  - {groups: {include: ["payments-test-.*"]}, team: payments, labels: {stage: test}, channels: []}
  - {groups: {include: ["payments-.*"]}, team: payments, labels: {tier: "1"}, channels: [payments-chat]}
  - {groups: {include: ["logs-.*"]}, clusters: {include: [kafka]}, team: platform}
rules:
  - {name: ours, severity: page, when: {statuses: [stopped]}, labels: {team: payments, tier: "1"}, channels: [ops]}
  - {name: stopped, severity: warn, when: {statuses: [stopped]}}
  - {name: blind, severity: page, when: {stale: collection, older_than: 1m}}
"""


@pytest.fixture
def rules(tmp_path: Path) -> RuleBook:
    return load_rules(write_yaml(tmp_path / "rules.yaml", TEXT), CHANNELS)


@pytest.mark.parametrize(
    ("cluster", "group", "labels"),
    [
        ("kafka", "payments-api", {"team": "payments", "tier": "1"}),
        ("kafka", "payments-test-1", {"team": "payments", "stage": "test"}),
        ("kafka", "logs-a", {"team": "platform"}),
        ("another", "logs-a", {}),
        ("kafka", "my-payments-api", {}),
        ("kafka", "nobody's", {}),
    ],
)
def test_the_first_owner_that_names_a_group_counts(
    rules: RuleBook, cluster: str, group: str, labels: dict[str, str]
) -> None:
    assert rules.labels_of(AlertSubject(AlertKind.GROUP, cluster, group)) == labels
    assert rules.labels_of(AlertSubject(AlertKind.LOSS, cluster, group)) == labels


@pytest.mark.parametrize(
    ("group", "rule", "channels"),
    [
        ("payments-api", "ours", ("ops",)),
        ("payments-api", "stopped", ("payments-chat",)),
        ("payments-test-1", "stopped", ()),
        ("logs-a", "stopped", CHANNELS),
        ("nobody's", "stopped", CHANNELS),
    ],
)
def test_a_rule_s_channels_come_before_the_owner_s_and_those_before_all(
    rules: RuleBook, group: str, rule: str, channels: tuple[str, ...]
) -> None:
    (one,) = [r for r in rules.rules if r.name == rule]
    assert rules.channels_of(one, AlertSubject(AlertKind.GROUP, CLUSTER, group)) == channels


def test_alerts_carry_the_labels_and_go_to_who_owns_the_group(rules: RuleBook) -> None:
    player = Player(rules)
    groups = ("payments-api", "payments-test-1", "logs-a")
    conditions = [group_condition(0, "stopped", group=group) for group in groups]
    player.see(5, observation(*conditions))
    notified = {n.alert.subject.group: (n.alert.rule, dict(n.alert.labels), n.channels) for n in player.notified}
    assert notified == {
        "payments-api": ("ours", {"team": "payments", "tier": "1"}, ("ops",)),
        "payments-test-1": ("stopped", {"team": "payments", "stage": "test"}, ()),
        "logs-a": ("stopped", {"team": "platform"}, CHANNELS),
    }


def test_the_monitor_has_no_owner(rules: RuleBook) -> None:
    player = Player(rules)
    (notified,) = player.see(300, observation(freshness(300, 0)))
    assert (notified.alert.labels, notified.channels) == ({}, CHANNELS)


def test_a_group_that_is_given_to_another_team_says_so_at_its_end(rules: RuleBook, tmp_path: Path) -> None:
    """Who was told of the beginning is told of the end; the labels are those of today."""
    player = Player(rules)
    player.see(5, observation(group_condition(0, "stopped", group="logs-a")))
    text = TEXT.replace("team: platform", "team: search, channels: [logs-chat]")
    player.rules = load_rules(write_yaml(tmp_path / "changed.yaml", text), CHANNELS)
    player.see(20, observation(group_condition(15, "ok", group="logs-a")))
    assert [alert.labels for alert in player.alerts.values()] == [{"team": "search"}]
    (notified,) = player.see(95, observation(group_condition(90, "ok", group="logs-a", since=15)))
    assert (notified.event, notified.alert.labels, notified.channels) == (
        AlertEvent.RESOLVED,
        {"team": "search"},
        CHANNELS,
    )
    assert notified.decided_at == at(95)


@pytest.mark.parametrize(
    ("owner", "path", "said"),
    [
        ("{groups: {include: [a]}}", "owners.0", "team, labels, channels or a downstream"),
        ("{team: a, labels: {team: b}}", "owners.0", "a key of its own, not a label"),
        ("{team: ''}", "owners.0.team", "1 character"),
        ("{team: a, group: {include: [a]}}", "owners.0.group", "known here: channels, clusters, downstream, groups"),
        ("{team: a, channels: [pager]}", "owners.0.channels.0", "known: ops"),
        ("{labels: {'a b': c}}", "owners.0.labels", "letters, digits, dots"),
    ],
)
def test_a_bad_owner_is_refused(tmp_path: Path, owner: str, path: str, said: str) -> None:
    file = write_yaml(tmp_path / "rules.yaml", f"owners: [{owner}]\nrules: []")
    with pytest.raises(ConfigError) as caught:
        load_rules(file, CHANNELS)
    assert path in str(caught.value)
    assert said in str(caught.value)
