"""Runs the product's processes: starts them, restarts those that end, and ends all of them together.

Each process has a session of its own (``setsid``). Its process group therefore holds everything that it starts, Spark's
JVM included, and can be killed as a whole. Each dies with this process (:mod:`lagwise.platform.die_with_parent`).
Nothing here blocks: :meth:`Supervisor.step` checks once, and its caller decides how often.
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
from typing import TYPE_CHECKING

from lagwise.platform import health
from lagwise.platform.die_with_parent import dying_with_parent
from lagwise.platform.files import why
from lagwise.platform.logs import clean
from lagwise_app.supervisor.process_log import ProcessLog

if TYPE_CHECKING:
    import psutil

_READ_BYTES = 65_536
#: How long the end of a process waits for its last output.
_LAST_OUTPUT_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class ProcessSpec:
    """A process to run: its name (also that of its heartbeat and its log), its arguments and its whole environment.

    ``line`` is shown while the process runs without a heartbeat; "" shows the last line of its log.
    """

    name: str
    command: Sequence[str]
    environment: Mapping[str, str]
    line: str = ""


@dataclass(frozen=True, slots=True)
class BackOff:
    """The pause before a process that ended is restarted: it doubles up to a limit, and a stable run resets it."""

    first_seconds: float = 1.0
    max_seconds: float = 60.0
    stable_seconds: float = 60.0

    def wait_seconds(self, failures: int) -> float:
        """Seconds to wait after so many failures in a row (1 is the first)."""
        return min(self.max_seconds, self.first_seconds * 2.0 ** min(failures - 1, 30))


class ProcessState(StrEnum):
    RUNNING = "running"
    WAITING = "waiting to restart"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class ProcessStatus:
    """The state of one process. ``line`` is its last heartbeat, or why it ended."""

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
    spec: ProcessSpec
    log: ProcessLog
    process: subprocess.Popen[bytes] | None = None
    reader: threading.Thread | None = None
    started_at: float = 0.0
    failures: int = 0
    starts: int = 0
    retry_at: float | None = None
    end_reason: str = ""


@dataclass(slots=True)
class Supervisor:
    """The processes of one installation on one machine. A context manager: leaving it ends every process.

    ``state`` holds the logs (``logs/<name>.log``) and the heartbeats. The caller holds its lock
    (:func:`lagwise_app.supervisor.state_lock.locked`). ``clock`` returns monotonic seconds.
    """

    specs: Sequence[ProcessSpec]
    state: Path
    back_off: BackOff = field(default_factory=BackOff)
    grace_seconds: float = 6.0
    clock: Callable[[], float] = time.monotonic
    _children: list[_Child] = field(default_factory=list)
    _notices: list[str] = field(default_factory=list)
    _logs_fail: bool = False
    _grace_ends_at: float | None = None
    _families: "set[psutil.Process]" = field(default_factory=set)

    def __enter__(self) -> "Supervisor":
        """Start every process. Raises LagwiseError where a log cannot be written."""
        self._children = [_Child(spec, ProcessLog(self.state / "logs", spec.name)) for spec in self.specs]
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
        """Detect processes that have ended and logs that cannot be written. Restart what is due."""
        for child in self._children:
            if child.process is not None:
                if _has_ended(child.process):
                    self._handle_exit(child, child.process)
                elif self.clock() - child.started_at >= self.back_off.stable_seconds:
                    child.failures = 0
            if child.process is None and child.retry_at is not None and self.clock() >= child.retry_at:
                self._start(child)
            child.log.retry()
        self._note_log_errors()

    def take_notices(self) -> list[str]:
        """Messages since the last call that no log of a process can hold."""
        taken, self._notices = self._notices, []
        return taken

    def statuses(self) -> list[ProcessStatus]:
        """One status per process, in the given order."""
        beats = health.read(self.state)
        return [self._status(child, beats.get(child.spec.name)) for child in self._children]

    def pids(self) -> dict[str, int]:
        """The process id of each running process, by name."""
        return {c.spec.name: c.process.pid for c in self._children if c.process is not None}

    def ask_to_end(self) -> None:
        """Send SIGTERM to every process, and return. :meth:`stop` waits for them, ``grace_seconds`` from now."""
        # Imported here: it imports psutil, which short commands do without.
        from lagwise_app.supervisor.descendants import descendants

        if self._grace_ends_at is not None:
            return
        running = [child.process for child in self._children if child.process is not None]
        self._families = descendants(process.pid for process in running)
        self._grace_ends_at = time.monotonic() + self.grace_seconds
        for process in running:
            # The signal goes to the process alone: a JVM that gets it too would die under the round that it is
            # finishing.
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGTERM)

    def stop(self) -> None:
        """End every process: SIGTERM, then ``grace_seconds`` for all of them together, then SIGKILL."""
        from lagwise_app.supervisor.descendants import descendants, end_processes

        self.ask_to_end()
        assert self._grace_ends_at is not None
        running = [(child, child.process) for child in self._children if child.process is not None]
        while any(not _has_ended(process) for _, process in running) and time.monotonic() < self._grace_ends_at:
            time.sleep(0.02)
        families = self._families | descendants(process.pid for _, process in running)
        for child, process in running:
            _end_group(process)
            child.process = None
            child.retry_at = None
            child.end_reason = ""
        end_processes(families)
        for child in self._children:
            _join_reader(child.reader)
            child.log.close()

    def _start(self, child: _Child) -> None:
        health.clear(self.state, child.spec.name)  # a heartbeat of the previous run must not count for this one
        child.log.start_run()
        child.starts += 1
        child.retry_at = None
        child.started_at = self.clock()
        try:
            process = subprocess.Popen(
                dying_with_parent(list(child.spec.command)),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env=dict(child.spec.environment),
                start_new_session=True,
            )
        except OSError as error:  # such as no memory, or too many processes
            self._set_restart(child, f"cannot start: {why(error)}")
            return
        child.process = process
        child.reader = threading.Thread(target=_copy_output, args=(process, child.log), daemon=True)
        child.reader.start()

    def _handle_exit(self, child: _Child, process: subprocess.Popen[bytes]) -> None:
        """A process ended by itself: kill what it left behind, and schedule its restart."""
        code = _end_group(process)
        _join_reader(child.reader)
        child.process = None
        self._set_restart(
            child, f"ended {_exit_words(code)}" + (f": {output}" if (output := child.log.last_line()) else "")
        )

    def _set_restart(self, child: _Child, end_reason: str) -> None:
        child.failures = 1 if self.clock() - child.started_at >= self.back_off.stable_seconds else child.failures + 1
        child.retry_at = self.clock() + self.back_off.wait_seconds(child.failures)
        child.end_reason = end_reason

    def _note_log_errors(self) -> None:
        """One message for all logs, because they share a folder."""
        failing = [child.log for child in self._children if child.log.error is not None]
        if bool(failing) == self._logs_fail:
            return
        self._logs_fail = bool(failing)
        if failing:
            where = f"{clean(str(failing[0].path))}: {failing[0].error}"
            self._notices.append(f"logs cannot be written ({where}); output stays in memory until they can")
        else:
            self._notices.append("logs can be written again")

    def _status(self, child: _Child, beat: health.Beat | None) -> ProcessStatus:
        pid = child.process.pid if child.process else None
        if beat is not None and beat.pid != pid:
            beat = None
        if pid is not None:
            state = ProcessState.RUNNING
            line = beat.line if beat else child.spec.line or child.log.last_line()
        else:
            state = ProcessState.ENDED if child.retry_at is None else ProcessState.WAITING
            line = child.end_reason
        retry_in = None if child.retry_at is None else max(0.0, child.retry_at - self.clock())
        return ProcessStatus(
            name=child.spec.name,
            state=state,
            pid=pid,
            restarts=max(0, child.starts - 1),
            line=line,
            beat_age_seconds=beat.age_seconds(datetime.now(UTC)) if beat else None,
            retry_in_seconds=retry_in,
        )


def _copy_output(process: subprocess.Popen[bytes], log: ProcessLog) -> None:
    """Copy the output of a process to its log, until it and everything that it started have ended."""
    assert process.stdout is not None
    with process.stdout as pipe:
        while output := os.read(pipe.fileno(), _READ_BYTES):
            log.write(output)


def _join_reader(reader: threading.Thread | None) -> None:
    """Wait until a reader reaches the end of its pipe. Give up where an escaped process holds the pipe open."""
    if reader is not None:
        reader.join(_LAST_OUTPUT_SECONDS)


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    """Whether the process has ended. Does not reap it, so that its id cannot be reused yet."""
    if process.returncode is not None:
        return True
    return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _end_group(process: subprocess.Popen[bytes]) -> int:
    """Kill what is left of the process group, and reap the process. Returns its exit code."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    return process.wait()


def _exit_words(code: int) -> str:
    if code >= 0:
        return f"with exit code {code}"
    try:
        return f"by {signal.Signals(-code).name}"
    except ValueError:
        return f"by signal {-code}"
