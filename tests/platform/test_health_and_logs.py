"""Heartbeats survive damage, and log lines survive hostile names."""

import json
import logging
import os
import sys
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from lagwise.platform import health, logs
from lagwise.platform.error_codes import ErrorCode
from lagwise.platform.errors import LakeError
from lagwise.platform.log_events import LogEvent, event
from lagwise.platform.log_throttle import LogThrottle
from lagwise.platform.secrets import resolve


def test_a_beat_is_read_back(tmp_path: Path) -> None:
    before = datetime.now(UTC) - timedelta(seconds=1)
    health.Heart(tmp_path, "collector").beat("sampled 3 groups in 0.1 s")
    found = health.read(tmp_path)["collector"]
    assert (found.process, found.pid, found.line) == ("collector", os.getpid(), "sampled 3 groups in 0.1 s")
    assert before <= found.at <= datetime.now(UTC)
    assert found.age_seconds(found.at + timedelta(seconds=5)) == 5
    assert found.age_seconds(found.at - timedelta(seconds=5)) == 0


def test_a_beat_is_one_harmless_line(tmp_path: Path) -> None:
    health.Heart(tmp_path, "alerts").beat("group 'a\nb\x1b[2J' at http://u:pw@h")
    assert health.read(tmp_path)["alerts"].line == "group 'a\\nb\\x1b[2J' at http://u:[redacted]@h"


def test_damaged_and_foreign_files_are_no_beats(tmp_path: Path) -> None:
    health.Heart(tmp_path, "good").beat("fine")
    where = health.folder(tmp_path)
    for name, content in {
        "empty": b"",
        "half": b'{"at": "2026-11-',
        "binary": b"\xff\xfe\x00",
        "list": b"[]",
        "naive": b'{"at": "2026-11-21T00:00:00", "pid": 1, "line": "x"}',
        "number": b'{"at": 5, "pid": 1, "line": "x"}',
        "pid": b'{"at": "2026-11-21T00:00:00Z", "pid": "x", "line": "x"}',
        "infinite": b'{"at": "2026-11-21T00:00:00Z", "pid": Infinity, "line": "x"}',
    }.items():
        (where / f"{name}.json").write_bytes(content)
    (where / "folder.json").mkdir()
    assert list(health.read(tmp_path)) == ["good"]


def test_no_folder_means_no_beats(tmp_path: Path) -> None:
    assert health.read(tmp_path / "nowhere") == {}


def test_a_reader_never_sees_half_a_beat(tmp_path: Path) -> None:
    health.Heart(tmp_path, "collector").beat("x")
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            health.Heart(tmp_path, "collector").beat("y" * 400)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(500):
            assert "collector" in health.read(tmp_path)
    finally:
        stop.set()
        writer.join()
    assert [p.name for p in health.folder(tmp_path).iterdir()] == ["collector.json"]


def test_clear_forgets(tmp_path: Path) -> None:
    health.Heart(tmp_path, "collector").beat("x")
    health.clear(tmp_path, "collector")
    health.clear(tmp_path, "collector")
    assert health.read(tmp_path) == {}


@pytest.mark.parametrize(
    ("hostile", "shown"),
    [
        ("plain text", "plain text"),
        ("a\nb\rc\td", "a\\nb\\rc\\td"),
        ("\x1b[31mred\x07", "\\x1b[31mred\\x07"),
        ("\x9b31m", "\\x9b31m"),  # the one-byte CSI
        ("\u202egnp.exe", "\\u202egnp.exe"),  # right-to-left override
        ("zero\u200bwidth", "zero\\u200bwidth"),
        ("line\u2028sep", "line\\u2028sep"),
        ("\ud800", "\\ud800"),
        ("Größe 日本語 🙂", "Größe 日本語 🙂"),
    ],
)
def test_escape(hostile: str, shown: str) -> None:
    assert logs.escape(hostile) == shown


@pytest.fixture
def logged(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[[], str]:
    """What was written to stderr since; the root logger is put back as it was afterwards."""
    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", list(root.handlers))
    monkeypatch.setattr(root, "level", root.level)
    monkeypatch.setattr(logging, "captureWarnings", lambda capture: None)
    monkeypatch.delenv(logs.DEBUG_VARIABLE, raising=False)
    return lambda: capsys.readouterr().err


def test_one_record_is_one_line_in_utc(logged: Callable[[], str]) -> None:
    logs.configure("collector")
    logging.getLogger("lagwise.kafka").info("group %s is gone, asked http://u:pw@h", "evil\nname\x1b[2J")
    logging.getLogger("lagwise.kafka").debug("not shown")
    logging.getLogger("elsewhere").info("not shown either")
    lines = logged().splitlines()
    assert len(lines) == 1
    at, rest = lines[0].split(" ", 1)
    assert datetime.fromisoformat(at).utcoffset() == timedelta(0)
    assert rest == "collector INFO lagwise.kafka: group evil\\nname\\x1b[2J is gone, asked http://u:[redacted]@h"


def fail_and_log(message: str) -> None:
    try:
        raise ValueError(message)
    except ValueError:
        logging.getLogger("lagwise.x").exception("failed")


def test_an_exception_is_one_line_and_its_trace_below_it(logged: Callable[[], str]) -> None:
    logs.configure("collector")
    fail_and_log("a\nb\x1b[2J")
    first, *trace = logged().splitlines()
    assert first.endswith("collector ERROR lagwise.x: failed [ValueError: a\\nb\\x1b[2J]")
    assert trace[0] == "    Traceback (most recent call last):"
    assert any("in fail_and_log" in row for row in trace)
    assert all(row.startswith("    ") for row in trace), "nothing in it passes for a record"
    assert "\x1b" not in "".join(trace)


def test_a_log_call_with_wrong_arguments_still_logs(logged: Callable[[], str]) -> None:
    logs.configure("collector")
    logging.getLogger("lagwise.x").warning("%d groups", "many")
    assert "%d groups ('many',) (unformattable" in logged()


def test_json_lines_name_their_event_and_keep_the_rest_on_one_line(logged: Callable[[], str]) -> None:
    logs.configure("collector", as_json=True)
    log = logging.getLogger("lagwise.kafka")
    log.warning(
        "group %s: http://u:pw@h", "evil\nname\x1b[2J", extra=event(LogEvent.CLUSTER_READ_FAILED, cluster="p\nq")
    )
    log.info("it is over", extra=event(LogEvent.CLUSTER_READ_FAILED, over=True))
    logging.getLogger("elsewhere").warning("of a library")
    fail_and_log("http://u:pw@h")
    written = logged()
    trouble, end, library, defect = map(json.loads, written.splitlines())
    assert datetime.fromisoformat(trouble.pop("time")).utcoffset() == timedelta(0)
    assert trouble == {
        "level": "WARNING",
        "process": "collector",
        "logger": "lagwise.kafka",
        "event": "cluster_read_failed",
        "cluster": "p\nq",
        "message": "group evil\nname\x1b[2J: http://u:[redacted]@h",
    }
    assert (end["event"], end["over"]) == ("cluster_read_failed", True)
    assert library["event"] is None
    assert defect["error"] == {"type": "ValueError", "message": "http://u:[redacted]@h"}
    assert any("in fail_and_log" in row for row in defect["trace"])
    assert "pw" not in written.replace("[redacted]", "")
    assert written.isascii()
    assert "\x1b" not in written


def test_a_line_about_an_error_that_a_person_can_mend_has_its_code(logged: Callable[[], str]) -> None:
    def log() -> None:
        error = LakeError("the disk is full", code=ErrorCode.DISK_FULL)
        logging.getLogger("lagwise.x").warning("no: %s", error, extra=event(LogEvent.LAKE_UNREADABLE))
        throttle = LogThrottle(logging.getLogger("lagwise.x"))
        throttle.warn(LogEvent.DATABASE_UNREACHABLE, "gone", code=ErrorCode.DATABASE_UNREACHABLE)
        throttle.clear(LogEvent.DATABASE_UNREACHABLE, "back")

    logs.configure("collector")
    log()
    assert [line.partition("lagwise.x: ")[2] for line in logged().splitlines()] == [
        "no: the disk is full [disk_full]",
        "gone [database_unreachable]",
        "back",
    ]
    logs.configure("collector", as_json=True)
    log()
    lines = [json.loads(line) for line in logged().splitlines()]
    assert [(line["message"], line.get("code")) for line in lines] == [
        ("no: the disk is full", "disk_full"),
        ("gone", "database_unreachable"),
        ("back", None),
    ]


def test_people_see_the_message_of_a_json_line() -> None:
    assert logs.message_of('{"event": "started", "message": "ready"}') == "ready"
    for line in ("ready", "{not json", '{"message"}', '{"event": null}'):
        assert logs.message_of(line) == line


def test_configuring_twice_does_not_double_the_lines(logged: Callable[[], str]) -> None:
    logs.configure("a")
    logs.configure("b")
    logging.getLogger("lagwise.x").warning("once")
    assert logged().count("once") == 1


@pytest.fixture
def hooks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The interpreter's hooks are put back as they were afterwards."""
    for module, hook in ((sys, "excepthook"), (sys, "unraisablehook"), (threading, "excepthook")):
        monkeypatch.setattr(module, hook, getattr(module, hook))


def test_uncaught_errors_are_printed_without_secrets(
    hooks: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LAGWISE_SECRET_X", "hunter2")
    resolve("${env:LAGWISE_SECRET_X}")
    logs.redact_uncaught_errors()

    def fail() -> None:
        raise ValueError("login with hunter2\nrefused")

    with pytest.raises(ValueError, match="refused") as failed:
        fail()
    sys.excepthook(failed.type, failed.value, failed.tb)
    thread = threading.Thread(target=fail, name="reader")
    thread.start()
    thread.join()

    printed = capsys.readouterr().err
    assert printed.count("ValueError: login with [redacted]\nrefused\n") == 2
    assert "in reader: Traceback (most recent call last):\n" in printed
    assert "hunter2" not in printed
