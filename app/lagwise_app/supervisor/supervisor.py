"""Runs the parts as separate processes: started, watched, started again when they end, ended together.

Each part is a session of its own (``setsid``), so that its process group holds what it starts, Spark's JVM included,
and can be ended as a whole. Each dies with this process (:mod:`lagwise.platform.die_with_parent`). Nothing here blocks:
:meth:`Supervisor.step` looks once, and its caller decides how often.
"""

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path

from lagwise.platform import health
from lagwise.platform.die_with_parent import leashed
from lagwise.platform.files import why
from lagwise.platform.logs import clean
from lagwise_app.supervisor.process_log import ProcessLog

_READ_BYTES = 65_536
#: How long the end of a part waits for what it wrote last.
_LAST_WORDS_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class ProcessSpec:
    """What is run: a name (of its heartbeat and its log), an argument list, and its whole environment.

    ``line`` is what it says of itself as long as it runs without a heartbeat; "" is the last line of its log.
    """

    name: str
    command: Sequence[str]
    environment: Mapping[str, str]
    line: str = ""


@dataclass(frozen=True, slots=True)
class BackOff:
    """How long to wait before a part that ended is started again: doubling, up to a limit, reset by a stable run."""

    first_seconds: float = 1.0
    most_seconds: float = 60.0
    stable_seconds: float = 60.0

    def wait_seconds(self, failures: int) -> float:
        """Wait after the given number of failures in a row (1 is the first)."""
        return min(self.most_seconds, self.first_seconds * 2.0 ** min(failures - 1, 30))


class ProcessState(StrEnum):
    """What a part is doing."""

    RUNNING = "running"
    WAITING = "waiting to restart"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class ProcessStatus:
    """One part as it stands; ``line`` is its last heartbeat, or why it ended."""

    name: str
    state: ProcessState
    pid: int | None
    restarts: int
    line: str
    beat_age_seconds: float | None
    retry_in_seconds: float | None

    def __str__(self) -> str:
        """One line of plain text."""
        text = f"{self.name}: {self.state}"
        if self.retry_in_seconds is not None:
            text += f" in {self.retry_in_seconds:.0f} s"
        if self.restarts:
            text += f", restarted {self.restarts}×"
        return f"{text}: {self.line}" if self.line else text


@dataclass(slots=True)
class _Child:
    part: ProcessSpec
    log: ProcessLog
    process: subprocess.Popen[bytes] | None = None
    reader: threading.Thread | None = None
    started_at: float = 0.0
    failures: int = 0
    starts: int = 0
    retry_at: float | None = None
    epitaph: str = ""


@dataclass(slots=True)
class Supervisor:
    """The parts of one installation on one machine. Use as a context manager: leaving it ends every part.

    ``state`` holds the logs (``logs/<part>.log``) and the heartbeats; the caller holds its lock (:func:`locked`).
    ``clock`` is monotonic seconds.
    """

    parts: Sequence[ProcessSpec]
    state: Path
    back_off: BackOff = field(default_factory=BackOff)
    grace_seconds: float = 7.0
    clock: Callable[[], float] = time.monotonic
    _children: list[_Child] = field(default_factory=list)
    _notices: list[str] = field(default_factory=list)
    _logs_fail: bool = False

    def __enter__(self) -> "Supervisor":
        """Start every part. Raises LagwiseError where a log cannot be written."""
        self._children = [_Child(part, ProcessLog(self.state / "logs", part.name)) for part in self.parts]
        try:
            for child in self._children:
                child.log.open()
                self._start(child)
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def step(self) -> None:
        """Notice which parts have ended and which logs cannot be written, start the parts whose wait is over."""
        for child in self._children:
            if child.process is not None:
                if _has_ended(child.process):
                    self._bury(child, child.process)
                elif self.clock() - child.started_at >= self.back_off.stable_seconds:
                    child.failures = 0
            if child.process is None and child.retry_at is not None and self.clock() >= child.retry_at:
                self._start(child)
            child.log.retry()
        self._notice_logs()

    def take_notices(self) -> list[str]:
        """Lines about what began or ended since this was asked last, and that no log of a part can hold."""
        taken, self._notices = self._notices, []
        return taken

    def statuses(self) -> list[ProcessStatus]:
        """One status per part, in the order in which they were given."""
        beats = health.read(self.state)
        return [self._status(child, beats.get(child.part.name)) for child in self._children]

    def pids(self) -> dict[str, int]:
        """The process of each running part."""
        return {c.part.name: c.process.pid for c in self._children if c.process is not None}

    def stop(self) -> None:
        """End every part: ask (SIGTERM), wait ``grace_seconds`` for all together, then kill what is left of any."""
        from lagwise.platform.descendants import descendants, end_processes  # imports psutil; short commands do without

        running = [(child, child.process) for child in self._children if child.process is not None]
        families = descendants(process.pid for _, process in running)
        for _, process in running:
            # Only the part itself is asked: a JVM that gets the signal too would die under the round it is finishing.
            _signal(process.pid, signal.SIGTERM)
        deadline = time.monotonic() + self.grace_seconds
        while any(not _has_ended(process) for _, process in running) and time.monotonic() < deadline:
            time.sleep(0.02)
        families |= descendants(process.pid for _, process in running)
        for child, process in running:
            _end_group(process)
            child.process = None
            child.retry_at = None
            child.epitaph = ""
        end_processes(families)
        for child in self._children:
            _finish(child.reader)
            child.log.close()

    def _start(self, child: _Child) -> None:
        health.clear(self.state, child.part.name)  # a beat of the run before must not pass for one of this run
        child.log.begin()
        child.starts += 1
        child.retry_at = None
        child.started_at = self.clock()
        try:
            process = subprocess.Popen(
                leashed(list(child.part.command)),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env=dict(child.part.environment),
                start_new_session=True,
            )
        except OSError as error:  # no memory, too many processes
            self._set_restart(child, f"cannot be started: {why(error)}")
            return
        child.process = process
        child.reader = threading.Thread(target=_read, args=(process, child.log), daemon=True)
        child.reader.start()

    def _bury(self, child: _Child, process: subprocess.Popen[bytes]) -> None:
        """Take note of a part that ended by itself, end what it left behind, and set the time of its restart."""
        code = _end_group(process)
        _finish(child.reader)
        child.process = None
        self._set_restart(child, f"ended {_how(code)}" + (f": {said}" if (said := child.log.last_line()) else ""))

    def _set_restart(self, child: _Child, epitaph: str) -> None:
        child.failures = 1 if self.clock() - child.started_at >= self.back_off.stable_seconds else child.failures + 1
        child.retry_at = self.clock() + self.back_off.wait_seconds(child.failures)
        child.epitaph = epitaph

    def _notice_logs(self) -> None:
        """One line for all of them, because they lie in one folder."""
        failing = [child.log for child in self._children if child.log.trouble is not None]
        if bool(failing) == self._logs_fail:
            return
        self._logs_fail = bool(failing)
        if failing:
            where = f"{clean(str(failing[0].path))}: {failing[0].trouble}"
            self._notices.append(f"logs cannot be written ({where}); what the parts write is kept in memory meanwhile")
        else:
            self._notices.append("logs can be written again")

    def _status(self, child: _Child, beat: health.Beat | None) -> ProcessStatus:
        running = child.process is not None
        if not running or (beat is not None and child.process is not None and beat.pid != child.process.pid):
            beat = None
        line = child.epitaph if not running else beat.line if beat else child.part.line or child.log.last_line()
        retry_in = None if child.retry_at is None else max(0.0, child.retry_at - self.clock())
        return ProcessStatus(
            name=child.part.name,
            state=ProcessState.RUNNING
            if running
            else ProcessState.WAITING
            if retry_in is not None
            else ProcessState.ENDED,
            pid=child.process.pid if child.process else None,
            restarts=max(0, child.starts - 1),
            line=line,
            beat_age_seconds=beat.age_seconds(datetime.now(UTC)) if beat else None,
            retry_in_seconds=retry_in,
        )


def _read(process: subprocess.Popen[bytes], log: ProcessLog) -> None:
    """Hand what a part writes over to its log, until the part and all that it started have ended."""
    assert process.stdout is not None
    with process.stdout as pipe:
        while output := os.read(pipe.fileno(), _READ_BYTES):
            log.write(output)


def _finish(reader: threading.Thread | None) -> None:
    """Let a reader come to the end of its pipe, unless a process that got away holds it open."""
    if reader is not None:
        reader.join(_LAST_WORDS_SECONDS)


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    """Whether the process has ended, without reaping it: until then its number cannot become another process's."""
    if process.returncode is not None:
        return True
    return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _end_group(process: subprocess.Popen[bytes]) -> int:
    """Kill whatever is left of a part's process group, and reap the part. Returns its exit code."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    return process.wait()


def _signal(pid: int, which: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, which)


def _how(code: int) -> str:
    if code >= 0:
        return f"with exit code {code}"
    try:
        return f"by {signal.Signals(-code).name}"
    except ValueError:
        return f"by signal {-code}"
