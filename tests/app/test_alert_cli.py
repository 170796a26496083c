"""The commands that act on alerts, on a real database: what they do, print, and refuse."""

import io
import json
import os
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result
from rich.console import Console

from lagwise.domain.group_record import GroupNumbers
from lagwise_alerts.model import (
    Alert,
    AlertEvent,
    AlertKind,
    AlertState,
    AlertSubject,
    Decision,
    Notification,
    RuleTimer,
    Severity,
)
from lagwise_alerts.notify.mute import MuteResult
from lagwise_alerts.operate.queries import OperatorState
from lagwise_alerts.outbox import store
from lagwise_alerts.outbox.database import create_tables, open_engine, transaction
from lagwise_app.cli import cli
from lagwise_app.cli.alert.tables import alert_table

HOSTILE = "<b>\x1b[31m\u202e'; drop table alerts;--"


@pytest.fixture(autouse=True)
def data(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A folder in which the groups ``billing`` (in two clusters) and a hostile one have fired just now."""
    for name in list(os.environ):
        if name.startswith("LAGWISE_"):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "data"
    engine = open_engine(f"sqlite:///{folder / 'lagwise.db'}")
    create_tables(engine)
    now = datetime.now(UTC)
    alerts = [fired(cluster, group, now) for cluster, group in (("a", "billing"), ("b", "billing"), ("a", HOSTILE))]
    notified = [
        Notification(AlertEvent.FIRING, now, a, "stopped", None, a.severity, "", GroupNumbers(), None, None, ("ops",))
        for a in alerts
    ]
    decision = Decision(tuple(alerts), (), tuple(notified))
    store.decide_and_queue(engine, lambda *_: MuteResult(decision), lambda _: "{}", now=now)
    engine.dispose()
    return folder


def fired(cluster: str, group: str, now: datetime) -> Alert:
    subject = AlertSubject(AlertKind.GROUP, cluster, group)
    return Alert(
        fingerprint=subject.fingerprint,
        incident_id=f"{subject.fingerprint}-{now:%Y%m%dT%H%M%S.%fZ}",
        subject=subject,
        state=AlertState.FIRING,
        rule="stopped",
        severity=Severity.PAGE,
        status="stopped",
        reason=None,
        since=now - timedelta(minutes=3),
        started_at=now,
        last_as_of=now,
        sentence=f"{group} has lag and no members.",
        numbers=GroupNumbers(lag_records=10),
        rule_timers=(RuleTimer("stopped", active=True, matching=True, held=False, seconds=0.0),),
        clear_timer=None,
        fired_at=now,
        notified_rules=("stopped",),
        peak_severity=Severity.PAGE,
        channels=("ops",),
        sequence=1,
    )


def lagwise(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["alert", *arguments], prog_name="lagwise")


def answer(*arguments: str) -> Any:
    shown = lagwise(*arguments, "--data", "data", "--json")
    assert shown.exit_code == 0, shown.stderr
    assert shown.stdout.count("\n") == 1
    return json.loads(shown.stdout)


def test_acknowledge_a_group_and_see_it() -> None:
    done = answer("ack", "billing", "--cluster", "a", "--comment", "on it", "--by", "jo")
    assert len(done["incidents"]) == 1
    by_cluster = {a["cluster"]: a for a in answer("list")["alerts"] if a["group"] == "billing"}
    taken = by_cluster["a"]["acknowledged"]
    assert (taken["by"], taken["comment"], taken["severity"]) == ("jo", "on it", "page")
    assert by_cluster["b"]["acknowledged"] is None
    assert "acknowledged by jo" in lagwise("list", "--data", "data").stdout
    answer("ack", done["incidents"][0], "--take-back")
    assert all(a["acknowledged"] is None for a in answer("list")["alerts"])


def test_a_group_name_in_several_clusters_needs_a_cluster() -> None:
    shown = lagwise("ack", "billing", "--data", "data")
    assert shown.exit_code == 1
    assert shown.stderr == "lagwise: group 'billing' fires in a, b: choose one with --cluster [ambiguous_name]\n"
    assert "no firing alert has the incident or group 'nobody'" in lagwise("ack", "nobody", "--data", "data").stderr


def test_silence_see_it_and_end_it() -> None:
    made = answer("silence", "--group", "bill.*", "--for", "1h30m", "--comment", "drill", "--by", "jo")
    assert (made["id"], made["group"], made["cluster"], made["created_by"]) == (1, "bill.*", None, "jo")
    lasts = datetime.fromisoformat(made["ends_at"]) - datetime.fromisoformat(made["starts_at"])
    assert lasts == timedelta(minutes=90)
    listed = answer("list")
    assert [silence["id"] for silence in listed["silences"]] == [1]
    muted = {(a["cluster"], a["group"]): a["muted"] for a in listed["alerts"]}
    assert muted["a", "billing"]["cause"] == "silence"
    assert muted["a", HOSTILE] is None
    assert "silence 1 for" in lagwise("list", "--data", "data").stdout
    assert answer("unsilence", "1")["id"] == 1
    assert answer("list")["silences"] == []


@pytest.mark.parametrize(
    ("arguments", "exit_code", "said"),
    [
        (("silence", "--for", "1h", "--comment", "x"), 1, "select alerts by"),
        (("silence", "--group", "(", "--for", "1h", "--comment", "x"), 1, "not a regular expression"),
        (("silence", "--group", "x", "--for", "soon", "--comment", "x"), 2, "is not a duration"),
        (("silence", "--group", "x", "--for", "1h"), 2, "--comment"),
        (("unsilence", "7"), 1, "there is no silence 7"),
        (("resend",), 2, "give the numbers of messages, or --all"),
        (("resend", "1"), 1, "none of these messages was given up"),
    ],
)
def test_what_makes_no_sense_is_one_line(arguments: tuple[str, ...], exit_code: int, said: str) -> None:
    shown = lagwise(*arguments, "--data", "data")
    assert (shown.exit_code, said in shown.stderr) == (exit_code, True), shown.stderr


def test_deliveries_and_dead_letters(data: Path) -> None:
    engine = open_engine(f"sqlite:///{data / 'lagwise.db'}")
    with transaction(engine) as connection:
        connection.exec_driver_sql("update deliveries set state = 'dead', last_error = 'answered 410' where id = 2")
    engine.dispose()
    assert len(answer("deliveries")["deliveries"]) == 3
    [dead] = answer("deliveries", "--state", "dead")["deliveries"]
    assert (dead["id"], dead["channel"], dead["last_error"]) == (2, "ops", "answered 410")
    assert "answered 410" in lagwise("deliveries", "--channel", "ops", "--data", "data").stdout
    assert answer("resend", "2") == {"queued": 1, "outdated": 0}
    assert answer("resend", "--all") == {"queued": 0, "outdated": 0}


def test_nothing_that_a_stranger_wrote_is_obeyed() -> None:
    shown = lagwise("list", "--data", "data").stdout
    assert "\x1b[31m" not in shown
    assert "\u202e" not in shown
    assert "\x1b" not in lagwise("ack", HOSTILE, "--data", "data").stdout


def test_a_mistyped_folder_is_not_made() -> None:
    shown = lagwise("ack", "billing", "--data", "typo")
    assert (shown.exit_code, "no firing alert" in shown.stderr) == (1, True)
    shown = lagwise("silence", "--group", "x", "--for", "1h", "--comment", "x", "--data", "typo")
    assert (shown.exit_code, "there is no database" in shown.stderr) == (1, True)
    assert not Path("typo").exists()


def test_maintenance_windows_of_the_last_run_are_known(data: Path) -> None:
    """The commands are given a folder only; the settings are those that Lagwise runs with on it."""
    now = datetime.now(UTC)
    window = {"name": "move", "starts_at": now.isoformat(), "ends_at": (now + timedelta(hours=1)).isoformat()}
    settings = {"data": str(data), "alerts": {"maintenance": [window]}}
    (data / "effective.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")
    assert {a["muted"]["name"] for a in answer("list")["alerts"]} == {"move"}


def test_options_of_the_process_do_not_go_with_a_command() -> None:
    shown = lagwise("--once", "list")
    assert (shown.exit_code, "put the options after the command" in shown.stderr) == (2, True)


@pytest.mark.parametrize("command", ["list", "silence", "unsilence", "ack", "deliveries", "resend"])
def test_help_teaches(command: str) -> None:
    shown = lagwise(command, "--help")
    assert shown.exit_code == 0
    assert f"lagwise alert {command}" in shown.stdout, "an example"
    assert "--json" in shown.stdout


def test_what_another_alert_covers_is_not_only_pending() -> None:
    now = datetime.now(UTC)
    pending = replace(fired("a", "billing", now), state=AlertState.PENDING)
    state = OperatorState(None, None)
    shown = Console(width=200, record=True, file=io.StringIO())
    shown.print(alert_table([(pending, state), (replace(pending, inhibited_by="another"), state)], now))
    first, second = [line.split("  ")[0] for line in shown.export_text().splitlines()[1:]]
    assert (first, second) == ("pending", "covered by another alert")
