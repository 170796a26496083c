"""A file of rules that changes while the alerts run."""

from pathlib import Path

import pytest

from lagwise.platform.errors import ConfigError
from lagwise_alerts.rules.reload import RuleFileWatch
from tests.alerts.support import write_yaml

GOOD = "rules: [{name: a, severity: page, when: {statuses: [stopped]}}]"
BETTER = "rules: [{name: b, severity: page, when: {statuses: [stopped]}}]"
BROKEN = "rules: [{name: a, severity: loud, when: {statuses: [stopped]}}]"


def names(watch: RuleFileWatch) -> list[str]:
    return [rule.name for rule in watch.book.rules]


def test_a_change_is_taken_over_once(tmp_path: Path) -> None:
    file = write_yaml(tmp_path / "rules.yaml", GOOD)
    watch = RuleFileWatch(file, ())
    assert not watch.refresh()
    write_yaml(file, BETTER)
    assert watch.refresh()
    assert names(watch) == ["b"]
    assert not watch.refresh()


def test_a_broken_file_leaves_the_rules_as_they_were_and_says_what_is_wrong(tmp_path: Path) -> None:
    file = write_yaml(tmp_path / "rules.yaml", GOOD)
    watch = RuleFileWatch(file, ())
    for text in (BROKEN, "rules: [", "version: 2\nrules: []"):
        write_yaml(file, text)
        assert not watch.refresh()
        assert names(watch) == ["a"]
        assert watch.trouble is not None
        assert str(file) in watch.trouble
        assert "the 1 earlier rule stays in force" in watch.trouble
        assert "\n" not in watch.trouble
    write_yaml(file, BETTER)
    assert watch.refresh()
    assert (names(watch), watch.trouble) == (["b"], None)


def test_putting_back_what_was_there_ends_the_trouble(tmp_path: Path) -> None:
    file = write_yaml(tmp_path / "rules.yaml", GOOD)
    watch = RuleFileWatch(file, ())
    write_yaml(file, BROKEN)
    watch.refresh()
    write_yaml(file, GOOD)
    watch.refresh()
    assert (names(watch), watch.trouble) == (["a"], None)


def test_a_file_that_is_gone_leaves_the_rules_as_they_were(tmp_path: Path) -> None:
    """As for a moment while an editor, or a mounted map of settings, puts the new one in its place."""
    file = write_yaml(tmp_path / "rules.yaml", GOOD)
    watch = RuleFileWatch(file, ())
    file.unlink()
    assert not watch.refresh()
    assert names(watch) == ["a"]
    assert "cannot read" in str(watch.trouble)
    write_yaml(file, GOOD)
    watch.refresh()
    assert watch.trouble is None


def test_the_rules_that_come_with_lagwise_do_not_change() -> None:
    watch = RuleFileWatch(None, ())
    assert not watch.refresh()
    assert "losing_data" in names(watch)


def test_there_must_be_rules_to_begin_with(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"rules\.0\.severity"):
        RuleFileWatch(write_yaml(tmp_path / "rules.yaml", BROKEN), ())
