"""Heartbeats: each running part says in one small file that it is alive, and what it did last.

A file is replaced as a whole (written beside, then renamed), so that a reader sees the old beat or the new one and
never half of one. A reader believes nothing: a file that is damaged, foreign or just vanishing is no beat.
"""

import json
import os
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from lagwise.logs import escape
from lagwise.private_files import make_own_folder
from lagwise.secrets import redact

#: Names of the parts: of their heartbeats, processes and logs.
COLLECTOR = "collector"
ANALYSIS = "analysis"
ALERTS = "alerts"
DASHBOARD = "dashboard"
SCALING = "scaling"

_LONGEST_LINE = 500


@dataclass(frozen=True, slots=True)
class Beat:
    """One heartbeat: ``at`` (UTC) the process ``pid`` of a part said ``line`` about what it had just done."""

    part: str
    at: datetime
    pid: int
    line: str

    def age_seconds(self, now: datetime) -> float:
        """Seconds since the beat; never negative, so that a clock set back does not make it look fresher than now."""
        return max(0.0, (now - self.at).total_seconds())


def folder(state: Path) -> Path:
    """Where the beats of a state folder lie."""
    return state / "health"


def beat(state: Path, part: str, line: str) -> None:
    """Write the heartbeat of a part, replacing the one before.

    ``part`` is one of the names above; ``line`` is one line for people, escaped and redacted
    here. Raises OSError where the state folder cannot be written.
    """
    where = folder(state)
    make_own_folder(where)
    document = {
        "at": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "pid": os.getpid(),
        "line": escape(redact(line))[:_LONGEST_LINE],
    }
    descriptor, name = tempfile.mkstemp(dir=where, prefix=f".{part}-", suffix=".part")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(document, file, ensure_ascii=False)
        os.replace(name, where / f"{part}.json")
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def read(state: Path) -> dict[str, Beat]:
    """The last heartbeat of every part that has left one, by part. What cannot be read as a beat is left out."""
    beats = {}
    for file in sorted(folder(state).glob("*.json")):
        found = _parse(file)
        if found is not None:
            beats[found.part] = found
    return beats


def clear(state: Path, part: str) -> None:
    """Forget the heartbeat of a part, so that the beat of an earlier run is not taken for one of this run."""
    (folder(state) / f"{part}.json").unlink(missing_ok=True)


def _parse(file: Path) -> Beat | None:
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
        at = datetime.fromisoformat(document["at"])
        if at.tzinfo is None:
            return None
        line = escape(str(document["line"]))[:_LONGEST_LINE]
        return Beat(part=file.stem, at=at.astimezone(UTC), pid=int(document["pid"]), line=line)
    except (OSError, ValueError, KeyError, TypeError, OverflowError):
        return None
