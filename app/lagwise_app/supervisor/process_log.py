"""The log file of one supervised process: its output, rotated so that it cannot grow without bound."""

import os
import threading
from contextlib import suppress
from pathlib import Path
from typing import IO

from lagwise.platform.error_codes import ErrorCode, code_of_system
from lagwise.platform.errors import LagwiseError
from lagwise.platform.files import why
from lagwise.platform.logs import clean, message_of
from lagwise.platform.private_files import make_own_folder, opened

MAX_BYTES = 10 * 1024 * 1024
#: How many full files are kept as well as the current one.
ROTATED_FILES = 3
#: How much of the newest output is held in memory while the file cannot be written.
MAX_PENDING_BYTES = 256 * 1024
_TAIL_BYTES = 4096


class ProcessLog:
    """``<folder>/<name>.log``, and the full files ``.log.1`` (newest) to ``.log.3``. Safe to use from threads.

    The process writes into a pipe, and its reader calls :meth:`write`. A full disk, or a folder that changed hands, so
    never blocks the process. Output that cannot be written stays in memory until it can.
    """

    def __init__(
        self, folder: Path, name: str, *, max_bytes: int = MAX_BYTES, max_pending_bytes: int = MAX_PENDING_BYTES
    ) -> None:
        self.path = folder / f"{name}.log"
        #: Why the file cannot be written; None while it can be.
        self.error: str | None = None
        self._max_bytes = max_bytes
        self._max_pending_bytes = max_pending_bytes
        self._file: IO[bytes] | None = None
        self._pending = b""
        self._tail = b""
        self._lock = threading.Lock()

    def open(self) -> None:
        """Open the file before anything is written. Raises LagwiseError where it cannot be opened."""
        with self._lock:
            try:
                self._open_file()
            except OSError as error:
                raise LagwiseError(
                    f"cannot write the log {clean(str(self.path))}: {why(error)}",
                    code=code_of_system(error, ErrorCode.FILE_NOT_WRITABLE),
                ) from error

    def start_run(self) -> None:
        """Begin a new run of the process: :meth:`last_line` forgets the previous one."""
        self._tail = b""

    def write(self, output: bytes) -> None:
        """Append output of the process, or hold it in memory."""
        self._tail = (self._tail + output)[-_TAIL_BYTES:]
        with self._lock:
            self._pending += output
            self._flush()

    def retry(self) -> None:
        """Write the pending output, if that is possible now. Does not wait for a write that hangs."""
        if self.error is not None and self._lock.acquire(blocking=False):
            try:
                self._flush()
            finally:
                self._lock.release()

    def last_line(self) -> str:
        """The last line of this run that is not blank, safe to print in a terminal; "" if there is none."""
        lines = self._tail.decode("utf-8", "replace").splitlines()
        return next((clean(message_of(line.strip())) for line in reversed(lines) if line.strip()), "")

    def close(self) -> None:
        with self._lock:
            self._close_file()

    def _flush(self) -> None:
        try:
            while self._pending:
                descriptor = self._open_file()
                if os.fstat(descriptor).st_size > self._max_bytes:
                    descriptor = self._rotate(descriptor)
                self._pending = self._pending[os.write(descriptor, self._pending) :]
            self.error = None
        except OSError as error:
            self._close_file()
            self.error = why(error)
            self._pending = newest_output(self._pending, self._max_pending_bytes)

    def _open_file(self) -> int:
        """The descriptor of the file at the path. Opens a new file where the old one was moved or removed."""
        if self._file is not None and not _is_at(self.path, self._file.fileno()):
            self._close_file()
        if self._file is None:
            make_own_folder(self.path.parent)
            self._file = opened(self.path, "ab")
        return self._file.fileno()

    def _rotate(self, descriptor: int) -> int:
        """Begin a new file. A full file that cannot be renamed is emptied: it must not grow for ever."""
        try:
            for number in range(ROTATED_FILES - 1, 0, -1):
                if self._rotated(number).exists():
                    os.replace(self._rotated(number), self._rotated(number + 1))
            os.replace(self.path, self._rotated(1))
        except OSError:
            os.ftruncate(descriptor, 0)
        return self._open_file()

    def _close_file(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            with suppress(OSError):  # an error of earlier writes comes too late to matter
                file.close()

    def _rotated(self, number: int) -> Path:
        return self.path.with_name(f"{self.path.name}.{number}")


def _is_at(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(descriptor))
    except OSError:
        return False


def newest_output(output: bytes, max_bytes: int) -> bytes:
    """The end of pending output, from the beginning of a line. A first line says that earlier output is lost."""
    if len(output) <= max_bytes:
        return output
    lost = b"[the log could not be written for some time: earlier output is lost]\n"
    kept = output[-max_bytes:]
    return lost + kept[kept.find(b"\n") + 1 :]
