"""The one heartbeat of a collector, made of what the threads of its clusters report."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass

from lagwise.platform import health

#: So many clusters are reported one by one. Of more, only those with trouble are: a report is one line.
_ONE_BY_ONE = 5


@dataclass(frozen=True, slots=True)
class _Report:
    line: str
    #: None before the first sample.
    is_well: bool | None = None
    #: The id of the process that the thread waits for.
    waiting_for: int | None = None


class CollectorHeart:
    """The heartbeat of a collector of these clusters. Safe to use from threads."""

    def __init__(self, heart: health.Heart, names: Sequence[str]) -> None:
        self._heart = heart
        self._reports = {name: _Report(f"{name}: first sample under way") for name in names}
        self._lock = threading.Lock()

    def beat(self, name: str, line: str, *, is_well: bool, waiting_for: int | None = None) -> None:
        """Report what a cluster's thread does; ``waiting_for`` is the id of the process that it waits for."""
        with self._lock:
            self._reports[name] = _Report(line, is_well, waiting_for)
            others = {report.waiting_for for report in self._reports.values()}
            self._heart.beat(self._line(), unless_by=others.pop() if len(others) == 1 else None)

    def _line(self) -> str:
        reports = list(self._reports.values())
        if len(reports) <= _ONE_BY_ONE:
            return " · ".join(report.line for report in reports)
        states = [report.is_well for report in reports]
        parts = [f"{states.count(True)} of {len(reports)} clusters are read without errors"]
        if None in states:
            parts.append(f"{states.count(None)}: first sample under way")
        return " · ".join([*parts, *(report.line for report in reports if report.is_well is False)])
