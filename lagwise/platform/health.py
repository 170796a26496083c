"""Heartbeats: each running process reports in one small file that it is alive, and what it did last.

Readers take a file that is damaged, foreign or just vanishing for no beat.
"""

import contextlib
import json
import logging
import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from lagwise.platform.files import BestEffortFile
from lagwise.platform.logs import escape
from lagwise.platform.private_files import make_own_folder
from lagwise.platform.secrets import redact

log = logging.getLogger("lagwise.health")

#: Names of the processes, in their heartbeats and logs.
COLLECTOR = "collector"
ANALYSIS = "analysis"
ALERTS = "alerts"
DASHBOARD = "dashboard"
SCALING = "scaling"
SERVER = "server"
ASSISTANTS = "mcp"

#: The command that runs each of them.
COMMANDS = {
    COLLECTOR: ("collect",),
    ANALYSIS: ("analyze",),
    ALERTS: ("alert",),
    SCALING: ("scaling",),
    SERVER: ("serve",),
    ASSISTANTS: ("mcp", "--http"),
    DASHBOARD: ("dashboard",),
}

_LONGEST_LINE = 500


@dataclass(frozen=True, slots=True)
class Beat:
    """One heartbeat: ``at`` (UTC) a process reported in a ``line`` what it had just done."""

    #: Its name, one of those above.
    process: str
    at: datetime
    pid: int
    line: str

    def age_seconds(self, now: datetime) -> float:
        """Seconds since the beat; never negative, so that a clock set back does not make it look fresher than now."""
        return max(0.0, (now - self.at).total_seconds())


def folder(state: Path) -> Path:
    """Where the beats of a state folder lie."""
    return state / "health"


class Heart:
    """Writes the heartbeats of one process (its name) into a state folder. For one thread.

    ``tell`` is given every report, too.
    """

    def __init__(self, state: Path, process: str, tell: Callable[[str], None] = lambda _line: None) -> None:
        self._tell = tell
        cost = "the process continues; its displayed state is stale"
        self._file = BestEffortFile(_file_of(state, process), log, cost)
        with contextlib.suppress(OSError):  # the first beat says so
            make_own_folder(folder(state))

    def beat(self, line: str, *, unless_by: int | None = None) -> None:
        """Replace the heartbeat, unless it is that of the process ``unless_by``: one that waits for another on the same
        folder leaves that one's alone.

        ``line`` is one line for people, escaped and redacted here. A folder that cannot be written is logged once, and
        ends nothing.
        """
        self._tell(line)
        if unless_by is not None and (found := _parse(self._file.path)) is not None and found.pid == unless_by:
            return
        document = {
            "at": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "pid": os.getpid(),
            "line": as_line(line),
        }
        self._file.write(json.dumps(document, ensure_ascii=False).encode())


def as_line(report: str) -> str:
    """A report as one line that may be shown."""
    return escape(redact(report))[:_LONGEST_LINE]


def read(state: Path) -> dict[str, Beat]:
    """The last heartbeat of every process that has left one, by name. What cannot be read as a beat is left out."""
    try:
        files = sorted(folder(state).glob("*.json"))
    except OSError:
        return {}
    return {beat.process: beat for file in files if (beat := _parse(file)) is not None}


def clear(state: Path, process: str) -> None:
    """Forget the heartbeat of a process, so that the beat of an earlier run is not taken for one of this run. Where
    that is not possible, the process id distinguishes the two."""
    with contextlib.suppress(OSError):
        _file_of(state, process).unlink(missing_ok=True)


def _file_of(state: Path, process: str) -> Path:
    return folder(state) / f"{process}.json"


def _parse(file: Path) -> Beat | None:
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
        at = datetime.fromisoformat(document["at"])
        if at.tzinfo is None:
            return None
        line = escape(str(document["line"]))[:_LONGEST_LINE]
        return Beat(process=file.stem, at=at.astimezone(UTC), pid=int(document["pid"]), line=line)
    except (OSError, ValueError, KeyError, TypeError, OverflowError):
        return None
