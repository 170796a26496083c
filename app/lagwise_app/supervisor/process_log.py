"""The log file of one supervised part: what the process writes to its output, kept from growing without bound."""

import os
import threading
from contextlib import suppress
from pathlib import Path
from typing import IO

from lagwise.platform.errors import LagwiseError
from lagwise.platform.files import why
from lagwise.platform.logs import clean
from lagwise.platform.private_files import make_own_folder, opened

MOST_BYTES = 10 * 1024 * 1024
#: How many full files are kept beside the current one.
KEPT = 3
#: So much of the newest output waits in memory while the file cannot be written.
MOST_WAITING_BYTES = 256 * 1024
_TAIL_BYTES = 4096


class ProcessLog:
    """``<folder>/<part>.log``, and ``.log.1`` (newest) to ``.log.3`` of earlier times. Safe to use from threads.

    The process writes into a pipe, and its reader hands over what comes: so no full disk and no folder that has become
    somebody else's reaches the process. What the disk does not take waits in memory, and is written once it does.
    """

    def __init__(
        self, folder: Path, part: str, *, most_bytes: int = MOST_BYTES, most_waiting_bytes: int = MOST_WAITING_BYTES
    ) -> None:
        self.path = folder / f"{part}.log"
        #: Why the file cannot be written; None while it can.
        self.trouble: str | None = None
        self._most_bytes = most_bytes
        self._most_waiting_bytes = most_waiting_bytes
        self._file: IO[bytes] | None = None
        self._waiting = b""
        self._tail = b""
        self._lock = threading.Lock()

    def open(self) -> None:
        """Open the file before anything is written. Raises LagwiseError where that fails."""
        with self._lock:
            try:
                self._opened()
            except OSError as error:
                raise LagwiseError(f"cannot write the log {clean(str(self.path))}: {why(error)}") from error

    def begin(self) -> None:
        """A new run of the part begins."""
        self._tail = b""

    def write(self, output: bytes) -> None:
        """Append what the part has written, or keep it in mind."""
        self._tail = (self._tail + output)[-_TAIL_BYTES:]
        with self._lock:
            self._waiting += output
            self._flush()

    def retry(self) -> None:
        """Write what waits, if the disk takes it now. Does not wait for a write that hangs."""
        if self.trouble is not None and self._lock.acquire(blocking=False):
            try:
                self._flush()
            finally:
                self._lock.release()

    def last_line(self) -> str:
        """The last line that this run has written and that says something, harmless to a terminal; "" if none has."""
        lines = self._tail.decode("utf-8", "replace").splitlines()
        return next((clean(line.strip()) for line in reversed(lines) if line.strip()), "")

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            self._let_go()

    def _flush(self) -> None:
        try:
            while self._waiting:
                descriptor = self._opened()
                if os.fstat(descriptor).st_size > self._most_bytes:
                    descriptor = self._set_aside(descriptor)
                self._waiting = self._waiting[os.write(descriptor, self._waiting) :]
            self.trouble = None
        except OSError as error:
            self._let_go()
            self.trouble = why(error)
            self._waiting = newest(self._waiting, self._most_waiting_bytes)

    def _opened(self) -> int:
        """The descriptor of the file at the path: another one when somebody moved or removed the file."""
        if self._file is not None and not _is_at(self.path, self._file.fileno()):
            self._let_go()
        if self._file is None:
            make_own_folder(self.path.parent)
            self._file = opened(self.path, "ab")
        return self._file.fileno()

    def _set_aside(self, descriptor: int) -> int:
        """Begin a new file. Where the full one cannot be renamed its content is lost: it must not grow for ever."""
        try:
            for number in range(KEPT - 1, 0, -1):
                if self._kept(number).exists():
                    os.replace(self._kept(number), self._kept(number + 1))
            os.replace(self.path, self._kept(1))
        except OSError:
            os.ftruncate(descriptor, 0)
        return self._opened()

    def _let_go(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            with suppress(OSError):  # what it says of earlier writes comes too late
                file.close()

    def _kept(self, number: int) -> Path:
        return self.path.with_name(f"{self.path.name}.{number}")


def _is_at(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(descriptor))
    except OSError:
        return False


def newest(output: bytes, most_bytes: int) -> bytes:
    """The end of output that waits to be written, from the beginning of a line; a first line says what is missing."""
    if len(output) <= most_bytes:
        return output
    lost = b"[this could not be written for some time: earlier output is lost]\n"
    kept = output[-most_bytes:]
    return lost + kept[kept.find(b"\n") + 1 :]
