"""The demo's own parts: its folder, its receiver, what it compares, what it shows. The whole of it is in tests/e2e."""

import hashlib
import hmac
import io
import json
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from rich.console import Console

from lagwise.platform.errors import LagwiseError
from lagwise_app.demo.expectations import ExpectedGroups
from lagwise_app.demo.folder import demo_folder
from lagwise_app.demo.memory_use import MemoryUse
from lagwise_app.demo.progress import DemoProgress, groups_table
from lagwise_app.demo.report import DemoOutcome, JudgedPast, document
from lagwise_app.demo.run import _look_again
from lagwise_app.demo.webhook_receiver import ReceivedAlert, WebhookReceiver
from lagwise_app.supervisor.effective_settings import EFFECTIVE_SETTINGS
from lagwise_app.supervisor.state_lock import locked
from lagwise_app.supervisor.supervisor import ProcessState, ProcessStatus
from lagwise_app.terminal import output
from lagwise_sandbox.scenarios import DemoScenario
from tests.app.judged import HOSTILE, group

BILLING = DemoScenario("billing", "orders", "It keeps up.", ("ok",))
VIEWER = DemoScenario("viewer", "orders", "It never commits.", ("unknown:no_commit",))
ARCHIVER = DemoScenario("archiver", "orders", "It loses data.", ("at_risk", "losing_data"))


def sayings() -> tuple[list[str], Any]:
    said: list[str] = []
    return said, said.append


def test_a_temporary_folder_is_removed_unless_it_is_to_be_kept() -> None:
    said, say = sayings()
    with demo_folder(None, say) as folder:
        assert folder.path.is_dir()
        assert str(folder.path) in said[0]
    assert not folder.path.exists()
    with demo_folder(None, say) as folder:
        folder.keep = True
    assert folder.path.is_dir()
    assert str(folder.path / "logs") in said[-1]
    shutil.rmtree(folder.path)


def test_a_temporary_folder_with_logs_is_kept_after_a_failure() -> None:
    _, say = sayings()
    used: list[Path] = []

    def fail() -> None:
        with demo_folder(None, say) as folder:
            used.append(folder.path)
            (folder.path / "logs").mkdir()
            (folder.path / "logs" / "collector.log").write_text("why")
            raise LagwiseError("the broker died")

    with pytest.raises(LagwiseError, match="the broker died"):
        fail()
    assert (used[0] / "logs" / "collector.log").read_text() == "why"
    shutil.rmtree(used[0])


def test_a_given_folder_is_kept_and_an_earlier_demo_is_moved_aside(tmp_path: Path) -> None:
    _, say = sayings()
    for number in range(3):
        with demo_folder(tmp_path / "demo", say) as folder:
            assert not (folder.path / "lake").exists()
            (folder.path / "lake").mkdir()
            (folder.path / "lake" / "run").write_text(str(number))
    assert (tmp_path / "demo" / "lake" / "run").read_text() == "2"
    assert (tmp_path / "demo" / "earlier-1" / "lake" / "run").read_text() == "0"
    assert (tmp_path / "demo" / "earlier-2" / "lake" / "run").read_text() == "1"


def test_a_foreign_folder_is_left_alone(tmp_path: Path) -> None:
    _, say = sayings()
    (tmp_path / "lake").mkdir()
    with pytest.raises(LagwiseError, match="holds 'lake', which no demo wrote"), demo_folder(tmp_path, say):
        pass
    assert (tmp_path / "lake").is_dir()


def test_a_folder_in_use_is_refused_before_anything_is_moved(tmp_path: Path) -> None:
    _, say = sayings()
    with demo_folder(tmp_path, say):
        pass
    (tmp_path / "lake").mkdir()
    with locked(tmp_path), pytest.raises(LagwiseError, match="already runs"), demo_folder(tmp_path, say):
        pass
    assert (tmp_path / "lake").is_dir()


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    _, say = sayings()
    with (
        pytest.raises(LagwiseError, match="the demo cannot write its data to"),
        demo_folder(tmp_path / "file" / "x", say),
    ):
        pass


def test_the_receiver_keeps_what_it_is_sent_and_checks_the_signature() -> None:
    body = json.dumps({"event": "firing", "summary": "x"}).encode()
    right = hmac.new(b"key", b"1700000000." + body, hashlib.sha256).hexdigest()
    with WebhookReceiver("key") as receiver:
        for signature in (f"v1={right}", f"v1={right[:-1]}x", "", None):
            headers = {"X-Lagwise-Timestamp": "1700000000"} | ({"X-Lagwise-Signature": signature} if signature else {})
            assert httpx.post(receiver.url, content=body, headers=headers).status_code == 204
        assert [r.signed for r in receiver.received()] == [True, False, False, False]
        assert receiver.received()[0].body == {"event": "firing", "summary": "x"}


@pytest.mark.parametrize("content", [b"not JSON", b"[]", b"", b"\xff"])
def test_the_receiver_refuses_what_is_no_message(content: bytes) -> None:
    with WebhookReceiver("key") as receiver:
        assert httpx.post(receiver.url, content=content).is_client_error
        assert receiver.received() == []


def test_a_closed_receiver_listens_no_more() -> None:
    with WebhookReceiver("key") as receiver:
        url = receiver.url
    with pytest.raises(httpx.ConnectError):
        httpx.post(url, content=b"{}")


def test_a_group_is_right_when_what_is_shown_is_expected() -> None:
    expected = ExpectedGroups([BILLING, VIEWER, ARCHIVER])
    assert not expected.all_agree  # nothing is shown yet: that is not agreement
    expected.update([group("billing", "ok"), group("viewer", "unknown", reason="too_few_samples")], 10)
    assert [g.agrees for g in expected.groups] == [True, False, False]
    expected.update(
        [group("billing", "stalled"), group("viewer", "unknown", reason="no_commit"), group("archiver", "at_risk")], 20
    )
    assert [g.agrees for g in expected.groups] == [False, True, True]
    expected.update(
        [group("billing", "ok"), group("viewer", "unknown", reason="no_commit"), group("archiver", "losing_data")], 30
    )
    assert expected.all_agree
    assert [g.first_right_seconds for g in expected.groups] == [10, 20, 20]
    assert [g.right_since_seconds for g in expected.groups] == [30, 20, 20]
    expected.update([], 40)
    assert not expected.all_agree
    assert [g.right_since_seconds for g in expected.groups] == [None] * 3


def outcome(expected: ExpectedGroups) -> DemoOutcome:
    start = datetime(2026, 11, 21, 3, 0, tzinfo=UTC)
    changes = [
        {"group": "billing", "after": "unknown", "reason": "too_few_samples", "at": start + timedelta(seconds=5)},
        {"group": "billing", "after": "ok", "reason": None, "at": start + timedelta(seconds=9)},
        {"group": "other", "after": "ok", "reason": None, "at": start},
    ]
    alert = ReceivedAlert(
        start + timedelta(seconds=50), True, {"event": "firing", "group": "archiver", "severity": "page"}
    )
    process = ProcessStatus("collector", ProcessState.RUNNING, 1, 2, "", None, None)
    return DemoOutcome(expected, changes, start, 60.0, [process], MemoryUse(), [alert])


def test_the_report_names_every_group_and_what_was_seen() -> None:
    expected = ExpectedGroups([BILLING, ARCHIVER])
    expected.update([group("billing", "ok", lag=3), group("archiver", "stalled")], 9)
    report = document(outcome(expected), wall_seconds=75.25)
    assert report["ok"] is False
    assert report["summary"] == (
        "1 of 2 groups have the expected status after 1 min: archiver is stalled instead of at_risk or losing_data"
    )
    billing, archiver = report["groups"]
    assert billing["agrees"] is True
    assert billing["lag"] == 3
    assert billing["seen"] == [
        {"status": "unknown", "reason": "too_few_samples", "at_seconds": 5.0},
        {"status": "ok", "reason": None, "at_seconds": 9.0},
    ]
    assert (archiver["shown"], archiver["agrees"], archiver["first_right_seconds"]) == ("stalled", False, None)
    assert report["alerts"][0] == {
        "at_seconds": 50.0,
        "signed": True,
        "event": "firing",
        "severity": "page",
        "kind": None,
        "group": "archiver",
        "status": None,
        "summary": None,
    }
    assert report["processes"] == [{"process": "collector", "state": "running", "restarts": 2}]
    assert report["past"] is None
    judged = replace(outcome(expected), past=JudgedPast("made-up", 31.26))
    assert document(judged, wall_seconds=75.25)["past"] == {"cluster": "made-up", "seconds": 31.3}


def test_a_group_that_was_never_shown_is_reported_as_such() -> None:
    report = document(outcome(ExpectedGroups([BILLING])), wall_seconds=1)
    assert report["summary"].endswith("billing is not shown instead of ok")
    assert report["groups"][0]["shown"] is None


def test_memory_counts_children_and_keeps_the_peak() -> None:
    script = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "x = bytearray(64 << 20); print('ready', flush=True); input()"],
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE)
child.stdout.readline(); print("ready", flush=True); input(); child.stdin.close(); child.wait()
"""
    process = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    memory = MemoryUse()
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.readline()
        memory.measure({"collector": process.pid})
        memory.measure({"collector": process.pid})
        process.stdin.close()
    peak = memory.peak_mib["collector"]
    assert peak > 64
    memory.measure({"collector": process.pid})  # it is gone: nothing is lost and nothing is raised
    assert memory.peak_mib["collector"] == peak
    assert memory.total_mib == pytest.approx(peak + memory.peak_mib["supervisor"])


def test_memory_that_processes_share_is_counted_once_and_a_moment_is_no_peak() -> None:
    script = """
import os, signal, sys
x = bytearray(96 << 20)
if not (child := os.fork()):
    signal.pause()
print("shared", flush=True); sys.stdin.readline()
y = bytearray(64 << 20); print("more", flush=True); sys.stdin.readline()
del y; print("less", flush=True); sys.stdin.readline()
os.kill(child, 9); os.wait()
"""
    process = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    memory = MemoryUse()
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        for looks in (2, 1, 1):
            process.stdout.readline()
            for _ in range(looks):
                memory.measure({"collector": process.pid})
            process.stdin.write("\n")
            process.stdin.flush()
        process.stdin.close()
    assert 96 < memory.peak_mib["collector"] < 96 + 48


def test_without_a_terminal_changes_are_printed_once_and_without_control_characters(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shown = io.StringIO()
    monkeypatch.setattr(sys, "stdout", shown)
    progress = DemoProgress(as_json=False)
    expected = ExpectedGroups([BILLING, DemoScenario(HOSTILE, "orders", "x", ("ok",))])
    alert = ReceivedAlert(datetime.now(UTC), False, {"event": "firing", "severity": "page", "summary": HOSTILE})
    with progress.live():
        for elapsed in (1, 2):
            expected.update([group("billing", "unknown", reason="too_few_samples"), group(HOSTILE, "ok")], elapsed)
            progress.show(expected, elapsed, [], [alert], "")
        expected.update([group("billing", "ok"), group(HOSTILE, "ok")], 3)
        progress.show(expected, 3, [], [alert], "")
    lines = shown.getvalue().splitlines()
    assert lines[0] == "     1 s  billing is unknown: too_few_samples (ok expected within 2 min of the start)"
    assert lines[-1] == "     3 s  billing is ok"
    assert len(lines) == 4
    assert "(invalid signature)" in shown.getvalue()
    assert "\x1b" not in shown.getvalue()


def test_a_status_that_is_still_unexpected_after_two_minutes_is_told_without_a_promise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shown = io.StringIO()
    monkeypatch.setattr(sys, "stdout", shown)
    progress = DemoProgress(as_json=False)
    expected = ExpectedGroups([BILLING])
    expected.update([group("billing", "stalled")], 121)
    progress.show(expected, 121, [], [], "")
    assert shown.getvalue() == "   121 s  billing is stalled (ok expected)\n"
    assert expected.words == "0 of 1 groups have the expected status"


def test_without_a_terminal_the_groups_are_a_table_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = io.StringIO()
    monkeypatch.setattr(sys, "stdout", shown)
    progress = DemoProgress(as_json=False)
    expected = ExpectedGroups([BILLING, ARCHIVER])
    expected.update([group("billing", "ok"), group("archiver", "stalled")], 130)
    progress.show_end(expected)
    heading, *lines = shown.getvalue().splitlines()
    assert heading.split() == ["group", "expected", "shown", "lag", "oldest", "why"]
    assert [line.split()[:2] for line in lines] == [["✓", "billing"], ["…", "archiver"]]
    progress.console._force_terminal = True
    progress.show_end(expected)
    assert len(shown.getvalue().splitlines()) == 3, "in a terminal it is there already"


def test_what_is_kept_is_told_with_the_command_that_shows_it(tmp_path: Path) -> None:
    said = _look_again(tmp_path / "my demo")
    assert said.startswith(f"the data is kept in {tmp_path / 'my demo'}; to look at it again: ")
    assert f" --config '{tmp_path / 'my demo' / EFFECTIVE_SETTINGS}' dashboard " in said


def test_without_a_terminal_the_end_and_the_restart_of_a_process_are_printed() -> None:
    progress = DemoProgress(as_json=False)
    shown = io.StringIO()
    progress.console = output.console(shown)
    expected = ExpectedGroups([BILLING])
    running = ProcessStatus("analysis", ProcessState.RUNNING, 7, 0, "starting Spark", None, None)
    waiting = ProcessStatus("analysis", ProcessState.WAITING, None, 0, "ended by SIGKILL", None, 1.0)
    again = replace(running, restarts=1)
    for at, process in enumerate([running, running, waiting, waiting, again, again]):
        progress.show(expected, at, [process], [], "")
    assert shown.getvalue().splitlines() == [
        "     2 s  analysis: waiting to restart in 1 s: ended by SIGKILL",
        "     4 s  analysis: running, restarted 1×: starting Spark",
    ]


def test_in_a_terminal_the_table_has_every_group_and_no_foreign_control_characters() -> None:
    progress = DemoProgress(as_json=False)
    drawn = io.StringIO()
    progress.console = output.console(drawn)
    progress.console._force_terminal = True
    progress.console.width = 160
    expected = ExpectedGroups([BILLING, DemoScenario(HOSTILE, "orders", HOSTILE, ("ok",))])
    expected.update([group("billing", "ok", lag=12, lag_seconds=1.0)], 3)
    process = ProcessStatus("collector", ProcessState.WAITING, None, 1, HOSTILE, None, 3.0)
    with progress.live():
        progress.show(expected, 3, [process], [], "Ctrl-C ends everything.")
    text = drawn.getvalue()
    assert "billing" in text
    assert "\\x1b[2J" in text
    assert "\x1b[2J" not in text
    assert "restarts in 3 s, 1× restarted" in text
    assert "1 of 2 groups have the expected status, all should within 2 min of the start" in text


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_interrupts_what_takes_long_and_is_noted_otherwise(number: signal.Signals) -> None:
    script = """
import os, sys, time
from lagwise_app.terminal.signals import Interrupted, Signals
signals = Signals()
os.kill(os.getpid(), int(sys.argv[1]))
assert signals.stop.wait(5)
try:
    with signals.interrupting():
        print("not reached")
except Interrupted:
    print("came before")
signals = Signals()
try:
    with signals.interrupting():
        os.kill(os.getpid(), int(sys.argv[1]))
        time.sleep(30)
except Interrupted:
    print("came during", flush=True)
os.kill(os.getpid(), int(sys.argv[1]))  # the second one ends the process
time.sleep(30)
"""
    environment = os.environ | {"PYTHONUNBUFFERED": "1"}
    ran = subprocess.run(
        [sys.executable, "-c", script, str(int(number))], capture_output=True, text=True, env=environment, check=False
    )
    assert ran.stdout.splitlines() == ["came before", "came during"]
    assert ran.returncode == -number


def test_a_long_sentence_costs_no_other_column_its_width() -> None:
    """The live table is read on the terminal that is there, at 3 a.m. on a narrow one."""
    expected = ExpectedGroups([BILLING, ARCHIVER])
    for watched in expected.groups:
        watched.row = group(watched.scenario.group, "falling_behind") | {"sentence": "records wait, and " * 20}
    out = io.StringIO()
    Console(file=out, width=100).print(groups_table(expected))
    lines = out.getvalue().splitlines()
    assert len(lines) == 3, "one line each, under the heading"
    assert all("falling_behind" in line and line.rstrip().endswith("…") for line in lines[1:])
    assert ["billing" in lines[1], "archiver" in lines[2], "oldest" in lines[0]] == [True, True, True]
