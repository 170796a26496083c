"""The rule file is checked as strictly as the settings, and says what would be right."""

from pathlib import Path

import pytest

from lagwise.domain.group_record import GroupNumbers
from lagwise.domain.humanise import duration
from lagwise.platform.durations import parse_duration
from lagwise.platform.errors import ConfigError
from lagwise_alerts.evaluate.rule_matching import match_rule
from lagwise_alerts.model import Severity
from lagwise_alerts.rules.rule_file import load_rules
from tests.alerts.support import at, group_condition, write_yaml


class TestTheRulesThatComeWithLagwise:
    def test_what_pages_and_what_warns(self) -> None:
        severities = {rule.name: rule.severity for rule in load_rules(None).rules}
        assert severities == {
            "losing_data": Severity.PAGE,
            "at_risk": Severity.PAGE,
            "offsets_expiring": Severity.INFO,
            "stopped": Severity.PAGE,
            "stalled": Severity.PAGE,
            "getting_older": Severity.PAGE,
            "falling_behind": Severity.WARN,
            "left_topics": Severity.WARN,
            "subscriptions_differ": Severity.WARN,
            "records_lost": Severity.WARN,
            "cluster_at_risk": Severity.PAGE,
            "cluster_weakened": Severity.WARN,
            "collection_stale": Severity.PAGE,
            "analysis_stale": Severity.PAGE,
        }

    def test_nothing_waits_longer_than_the_90_seconds_allow(self) -> None:
        waits = {rule.name: rule.for_seconds for rule in load_rules(None).rules}
        assert waits["stopped"] == 0
        assert waits["losing_data"] == 0
        assert waits["falling_behind"] == 120

    def test_groups_that_may_be_abandoned_are_left_out(self) -> None:
        cautious = {rule.name for rule in load_rules(None).rules if rule.only_if_seen_active}
        assert cautious == {
            "losing_data",
            "at_risk",
            "offsets_expiring",
            "stopped",
            "getting_older",
            "left_topics",
            "records_lost",
        }


BAD = [
    ("rules: [{name: a, when: {statuses: [stoped]}, severity: page}]", "rules.0.when.statuses.0", "'stopped'"),
    ("rules: [{name: a, when: {statuses: [stopped]}, severity: loud}]", "rules.0.severity", "'page', 'warn' or 'info'"),
    ("rules: [{name: a, when: {statuses: [stopped]}, severity: page, fro: 1m}]", "rules.0.fro", "keep_firing_for"),
    ("rules: [{name: a, when: {statuses: [stopped]}, severity: page, for: 10}]", "rules.0.for", "30s"),
    ("rules: [{name: a, when: {statuses: [stopped]}, severity: page, for: 10 minutes}]", "rules.0.for", "30s"),
    ("rules: [{name: a, when: {statuses: [stopped]}, severity: page, for: -5s}]", "rules.0.for", "30s"),
    ("rules: [{name: a, when: {}, severity: page}]", "rules.0.when", "statuses"),
    ("rules: [{name: a, when: {findings: [left]}, severity: warn}]", "rules.0.when.findings.0", "'left_topics'"),
    ("rules: [{name: a, when: {findings: [loss], statuses: [ok]}, severity: warn}]", "rules.0.when", "either"),
    ("rules: [{name: a, when: {findings: [loss], unread: true}, severity: warn}]", "rules.0.when", "unread"),
    ("rules: [{name: a, when: {stale: collection}, severity: page}]", "rules.0.when", "older_than"),
    ("rules: [{name: a, when: {stale: group, older_than: 1m}, severity: page}]", "rules.0.when.stale", "'analysis'"),
    (
        "rules: [{name: a, when: {statuses: [stopped], stale: analysis, older_than: 1m}, severity: page}]",
        "rules.0.when",
        "either",
    ),
    (
        "rules: [{name: a, when: {statuses: [stopped], unknown_reasons: [expired]}, severity: page}]",
        "rules.0.when",
        "unknown",
    ),
    (
        "rules: [{name: a, when: {stale: analysis, older_than: 1m, unread: true}, severity: page}]",
        "rules.0.when",
        "unread",
    ),
    ("rules: [{name: a, when: {statuses: [ok], unread: 3}, severity: page}]", "rules.0.when.unread", "true or false"),
    (
        "rules: [{name: a, when: {statuses: [unknown], unknown_reasons: [lost]}, severity: page}]",
        "rules.0.when.unknown_reasons.0",
        "'expired'",
    ),
    (
        "rules: [{name: a, when: {statuses: [stopped]}, severity: page, groups: {include: ['(']}}]",
        "rules.0.groups.include",
        "regular expression",
    ),
    (
        "rules: [{name: a, when: {statuses: [stopped]}, severity: page, groups: {inclde: [x]}}]",
        "rules.0.groups.inclde",
        "exclude, include",
    ),
    (
        "rules: [{name: a, when: {stale: analysis, older_than: 1m}, severity: page, clusters: {include: [x]}}]",
        "rules.0",
        "clusters",
    ),
    (
        "rules: [{name: a, when: {stale: analysis, older_than: 1m}, severity: page, only_if_seen_active: true}]",
        "rules.0",
        "only_if_seen_active",
    ),
    (
        "rules: [{name: a, when: {cluster_findings: [dead]}, severity: page}]",
        "rules.0.when.cluster_findings.0",
        "'no_l",
    ),
    (
        "rules: [{name: a, when: {cluster_findings: [no_leader]}, severity: page, topics: {include: [x]}}]",
        "rules.0",
        "a rule about a cluster has no groups",
    ),
    ("rules: [{name: 'a b', when: {statuses: [ok]}, severity: page}]", "rules.0.name", "letters, digits, dots"),
    (
        "rules: [{name: a, when: {statuses: [ok]}, severity: info}, {name: a, when: {statuses: [ok]}, severity: info}]",
        "rules",
        "'a' is given twice",
    ),
    (
        "rules: [{name: a, when: {statuses: [stopped]}, severity: page, channels: [chat]}]",
        "rules.0.channels.0",
        "known: ops",
    ),
    ("rules: [{name: a, when: {lag_above: -1}, severity: warn}]", "rules.0.when.lag_above", "greater than or equal"),
    ("rules: [{name: a, when: {lag_above: many}, severity: warn}]", "rules.0.when.lag_above", "whole number"),
    ("rules: [{name: a, when: {lag_seconds_above: 300}, severity: warn}]", "rules.0.when.lag_seconds_above", "30s"),
    ("rules: [{name: a, when: {lag_above: 1, ghosts: true}, severity: warn}]", "rules.0.when", "either"),
    ("rules: [{name: a, when: {lag_above: 1, unread: true}, severity: warn}]", "rules.0.when", "unread"),
    ("rules: [{name: a, when: {ghosts: false}, severity: warn}]", "rules.0.when.ghosts", "true"),
    ("rules: [{name: a, when: {capacity: [low]}, severity: warn}]", "rules.0.when.capacity.0", "'short'"),
    ("rules: [{name: a, when: {ghosts: true}, severity: warn, repeat_every: 10s}]", "rules.0.repeat_every", "1m"),
    ("rules: [{name: a, when: {ghosts: true}, severity: warn, repeat_every: often}]", "rules.0.repeat_every", "30s"),
    ("rules: [{name: a, when: {ghosts: true}, severity: warn, labels: {team: '('}}]", "rules.0.labels.team", "regular"),
    (
        "rules: [{name: a, when: {stale: analysis, older_than: 1m}, severity: page, labels: {team: a}}]",
        "rules.0",
        "no labels",
    ),
    ("repeat_every: {loud: 1h}\nrules: []", "repeat_every.loud", "'page'"),
    ("flapping: {times: 1}\nrules: []", "flapping.times", "greater than or equal to 2"),
    ("flapping: {time: 3}\nrules: []", "flapping.time", "known here: calm, times, within"),
    ("version: 2\nrules: []", "version", "1"),
    ("{}", "rules", "required"),
    ("- a", "keys and values", "rules"),
    ("rules: [", "not YAML", ""),
]


@pytest.mark.parametrize(("text", "path", "allowed"), BAD)
def test_a_bad_rule_file_is_refused_with_the_path_and_what_is_allowed(
    tmp_path: Path, text: str, path: str, allowed: str
) -> None:
    file = write_yaml(tmp_path / "rules.yaml", text)
    with pytest.raises(ConfigError) as caught:
        load_rules(file, ["ops"])
    message = str(caught.value)
    assert str(file) in message
    assert path in message
    assert allowed in message


def test_every_problem_is_named_at_once(tmp_path: Path) -> None:
    text = "rules: [{name: a, when: {statuses: [x]}, severity: y, z: 1}]"
    with pytest.raises(ConfigError) as caught:
        load_rules(write_yaml(tmp_path / "r.yaml", text))
    assert all(path in str(caught.value) for path in ("rules.0.when.statuses.0", "rules.0.severity", "rules.0.z"))


def test_a_file_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot read the alert rules") as caught:
        load_rules(tmp_path / "none.yaml")
    assert "\n" not in str(caught.value)


class TestMatching:
    @pytest.mark.parametrize(
        ("when", "lag", "expected"),
        [
            ("unread: true", 1, "match"),
            ("unread: true", 0, "clear"),
            ("unread: false", 0, "match"),
            ("unread: false", 1, "clear"),
            ("unread: true", None, "match"),
            ("unread: false", None, "clear"),
        ],
    )
    def test_unread_records(self, tmp_path: Path, when: str, lag: int | None, expected: str) -> None:
        rule = f"rules: [{{name: a, severity: page, when: {{statuses: [at_risk], {when}}}}}]"
        file = write_yaml(tmp_path / "r.yaml", rule)
        condition = group_condition(0, "at_risk", numbers=GroupNumbers(lag_records=lag))
        verdict = match_rule(load_rules(file).rules[0], condition, at(5)).verdict
        assert verdict.value == expected

    def _verdict(self, tmp_path: Path, rule: str, **condition: str) -> str:
        file = write_yaml(tmp_path / "r.yaml", f"rules: [{{name: a, severity: page, {rule}}}]")
        verdict = match_rule(load_rules(file).rules[0], group_condition(0, **condition), at(5)).verdict
        return verdict.value

    @pytest.mark.parametrize(
        ("rule", "condition", "expected"),
        [
            ("when: {statuses: [stopped]}", {"status": "stopped"}, "match"),
            ("when: {statuses: [stopped]}", {"status": "ok"}, "clear"),
            ("when: {statuses: [stopped]}", {"status": "unknown", "reason": "expired"}, "hold"),
            ("when: {statuses: [unknown]}", {"status": "unknown", "reason": "expired"}, "match"),
            (
                "when: {statuses: [unknown], unknown_reasons: [expired]}",
                {"status": "unknown", "reason": "expired"},
                "match",
            ),
            (
                "when: {statuses: [unknown], unknown_reasons: [expired]}",
                {"status": "unknown", "reason": "no_commit"},
                "hold",
            ),
            ("when: {statuses: [stopped]}, groups: {include: [ord]}", {"status": "stopped"}, "clear"),
            ("when: {statuses: [stopped]}, groups: {include: ['ord.*']}", {"status": "stopped"}, "match"),
            ("when: {statuses: [stopped]}, groups: {exclude: ['.*ers']}", {"status": "stopped"}, "clear"),
            ("when: {statuses: [stopped]}, clusters: {include: [prod]}", {"status": "stopped"}, "clear"),
            ("when: {stale: collection, older_than: 1m}", {"status": "stopped"}, "clear"),
        ],
    )
    def test_verdicts(self, tmp_path: Path, rule: str, condition: dict[str, str], expected: str) -> None:
        assert self._verdict(tmp_path, rule, **condition) == expected


class TestDurations:
    @pytest.mark.parametrize(
        ("text", "seconds"),
        [
            ("0s", 0),
            ("500ms", 0.5),
            ("30s", 30),
            ("5m", 300),
            ("1h30m", 5400),
            ("2d", 172800),
            ("1.5h", 5400),
            ("0", 0),
        ],
    )
    def test_parsed(self, text: str, seconds: float) -> None:
        assert parse_duration(text) == seconds

    @pytest.mark.parametrize("value", ["", "5", 5, None, "5 weeks", "m5", "1h30", "5mm", True])
    def test_refused(self, value: object) -> None:
        with pytest.raises(ValueError, match="is not a duration"):
            parse_duration(value)

    @pytest.mark.parametrize("value", ["-1s", "-5", -5, " - 1h30m"])
    def test_negative(self, value: object) -> None:
        with pytest.raises(ValueError, match="is negative: write a number and a unit"):
            parse_duration(value)

    def test_a_plain_number_has_the_unit_of_its_place(self) -> None:
        assert (parse_duration("2", plain_unit="h"), parse_duration(2, plain_unit="d")) == (7200, 172800)
        assert parse_duration("90s", plain_unit="h") == 90

    @pytest.mark.parametrize(
        ("seconds", "words"),
        [
            (-3, "0 s"),
            (45.4, "45 s"),
            (60, "1 min"),
            (200, "3 min 20 s"),
            (3600, "1 h"),
            (4800, "1 h 20 min"),
            (183600, "2 d 3 h"),
        ],
    )
    def test_in_words(self, seconds: float, words: str) -> None:
        assert duration(round(seconds)) == words
