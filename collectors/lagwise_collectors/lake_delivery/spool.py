"""The queue of snapshots that wait for the lake: in files on the local disk or, where that fails too, in memory.

It keeps the order of the samples. Both are bounded: beyond the bound the oldest snapshots are dropped and counted.
"""

import contextlib
import logging
import re
import time
from collections import deque
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from lagwise.platform.files import replacing, why
from lagwise.platform.log_events import LogEvent, event
from lagwise_collectors import snapshot_format
from lagwise_collectors.protocol import Snapshot

log = logging.getLogger("lagwise.collectors.spool")

#: About 6 hours of 100,000 group-partitions every 15 s.
DISK_BYTES = 1024**3
#: Of all spools of a process together.
MEMORY_BYTES = 64 * 1024**2

_NAME = re.compile(r"^(\d+)\.arrows$")


@dataclass(slots=True)
class _Waiting:
    """One snapshot, in a file or in memory."""

    number: int
    #: Size of the file, or of the rows in memory.
    bytes: int
    #: Dropped snapshots that this one reports as an error. They are counted again if it is dropped itself.
    reports_dropped: int = 0
    #: Set while it is in memory.
    snapshot: Snapshot | None = None
    #: Set while it is in a file.
    path: Path | None = None


class Spool:
    """The queue of one cluster. What an earlier process left in ``folder`` comes first. For one thread at a time."""

    def __init__(self, folder: Path, *, disk_bytes: int = DISK_BYTES, memory_bytes: int = MEMORY_BYTES) -> None:
        self._folder = folder
        self._disk_bytes = disk_bytes
        self.memory_bytes = memory_bytes
        self._queue: deque[_Waiting] = deque(self._left_behind())
        # Numbers start at the current time in ms, so that no other process that uses the folder has the same ones.
        self._next = max(self._queue[-1].number + 1 if self._queue else 0, time.time_ns() // 1_000_000)
        self._dropped = 0

    def __len__(self) -> int:
        return len(self._queue)

    @property
    def safe(self) -> bool:
        """Whether all waiting snapshots are on disk."""
        return all(waiting.snapshot is None for waiting in self._queue)

    def take_dropped(self) -> int:
        """How many snapshots were dropped since the last call."""
        dropped, self._dropped = self._dropped, 0
        return dropped

    def put(self, snapshot: Snapshot, *, reports_dropped: int = 0) -> None:
        """Add a snapshot at the end, in memory for now; ``reports_dropped`` is how many dropped ones it reports."""
        size = sum(rows.nbytes for rows in snapshot.tables.values())
        self._queue.append(_Waiting(self._next, size, reports_dropped, snapshot=snapshot))
        self._next += 1

    def first(self) -> tuple[int, Snapshot] | None:
        """Number and content of the oldest snapshot, which stays in the queue; None if there is none.

        Damaged files are dropped.
        """
        while self._queue:
            waiting = self._queue[0]
            if waiting.snapshot is not None:
                return waiting.number, waiting.snapshot
            assert waiting.path is not None
            try:
                with waiting.path.open("rb") as file:
                    return waiting.number, snapshot_format.read(file)
            except (snapshot_format.BrokenSnapshot, OSError) as error:
                log.error(
                    "the spooled sample %s is dropped: %s", waiting.path, error, extra=event(LogEvent.SAMPLES_DROPPED)
                )
                self.remove(waiting.number)
                self._dropped += 1
        return None

    def remove(self, number: int) -> None:
        """Take a snapshot out of the queue, if it is still there."""
        for waiting in self._queue:
            if waiting.number == number:
                self._forget(waiting)
                return

    def move_to_disk(self) -> str | None:
        """Write the snapshots in memory to files. Returns why that failed, or None."""
        trouble = None
        for waiting in self._queue:
            if waiting.snapshot is not None:
                trouble = self._to_disk(waiting)
                if trouble is not None:
                    break
        return trouble

    def trim(self) -> None:
        """Drop the oldest snapshots beyond the bounds."""
        self._drop_beyond(self._disk_bytes, in_memory=False)
        self._drop_beyond(self.memory_bytes, in_memory=True)

    def _to_disk(self, waiting: _Waiting) -> str | None:
        assert waiting.snapshot is not None
        path = self._folder / f"{waiting.number:015d}.arrows"
        try:
            with replacing(path, durable=True) as file:
                snapshot_format.write(file, waiting.snapshot, compression="zstd")
            waiting.bytes = path.stat().st_size
        except OSError as error:
            return why(error)
        except pa.ArrowException as error:
            return str(error)
        waiting.snapshot, waiting.path = None, path
        return None

    def _drop_beyond(self, bound: int, *, in_memory: bool) -> None:
        held = [w for w in self._queue if (w.snapshot is not None) == in_memory]
        total = sum(w.bytes for w in held)
        # The newest stays, however big it is.
        for waiting in held[:-1]:
            if total <= bound:
                break
            total -= waiting.bytes
            self._forget(waiting)
            self._dropped += 1 + waiting.reports_dropped

    def _forget(self, waiting: _Waiting) -> None:
        self._queue.remove(waiting)
        if waiting.path is not None:
            with contextlib.suppress(OSError):  # the next start finds it, and whether it was delivered
                waiting.path.unlink(missing_ok=True)

    def _left_behind(self) -> list[_Waiting]:
        waiting = []
        with contextlib.suppress(OSError):  # there is no folder yet, or it cannot be read
            for path in self._folder.iterdir():
                match = _NAME.match(path.name)
                if match:
                    waiting.append(_Waiting(int(match[1]), path.stat().st_size, path=path))
                elif path.suffix == ".part":
                    path.unlink()
        return sorted(waiting, key=lambda one: one.number)
