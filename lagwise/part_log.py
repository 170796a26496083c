"""The log file of one supervised part: what the process writes to its output, kept from growing without bound."""

import contextlib
import os
import shutil
from pathlib import Path
from typing import IO

from lagwise.errors import LagwiseError
from lagwise.logs import clean
from lagwise.private_files import make_own_folder, opened

MOST_BYTES = 10 * 1024 * 1024
#: How many full files are kept beside the current one.
KEPT = 3
_TAIL_BYTES = 4096


class PartLog:
    """``<folder>/<part>.log``, and ``.log.1`` (newest) to ``.log.3`` of earlier times.

    The process writes through its own descriptor, opened for appending. A file that has become too large while it runs
    is therefore copied and emptied in place; what is written between the two is lost, which is the price for not
    needing the process's help.
    """

    def __init__(self, folder: Path, part: str, *, most_bytes: int = MOST_BYTES) -> None:
        self.path = folder / f"{part}.log"
        self._most_bytes = most_bytes
        self._file: IO[bytes] | None = None
        self._start = 0

    def open(self) -> IO[bytes]:
        """Open for a new run, setting a file aside that has become too large. Raises LagwiseError where that fails."""
        self.close()
        try:
            make_own_folder(self.path.parent)
            if self._size() > self._most_bytes:
                self._shift()
                os.replace(self.path, self._kept(1))
            self._file = opened(self.path, "ab")
        except OSError as error:
            raise LagwiseError(f"cannot write the log {clean(str(self.path))}: {error.strerror}") from error
        self._start = self._size()
        return self._file

    def limit(self) -> None:
        """Set the content aside if it has become too large. A disk that has no room for the copy loses the content."""
        if self._size() <= self._most_bytes:
            return
        with contextlib.suppress(OSError):
            self._shift()
            with self.path.open("rb") as full, opened(self._kept(1), "wb") as kept:
                shutil.copyfileobj(full, kept)
        os.truncate(self.path, 0)
        self._start = 0

    def last_line(self) -> str:
        """The last line that this run has written and that says something, harmless to a terminal; "" if none has."""
        try:
            with self.path.open("rb") as file:
                size = file.seek(0, os.SEEK_END)
                file.seek(max(self._start, size - _TAIL_BYTES))
                lines = file.read().decode("utf-8", "replace").splitlines()
        except OSError:
            return ""
        return next((clean(line.strip()) for line in reversed(lines) if line.strip()), "")

    def close(self) -> None:
        """Let go of the file; the process keeps its own descriptor."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _size(self) -> int:
        try:
            return self.path.stat().st_size
        except OSError:
            return 0

    def _shift(self) -> None:
        for number in range(KEPT - 1, 0, -1):
            if self._kept(number).exists():
                os.replace(self._kept(number), self._kept(number + 1))

    def _kept(self, number: int) -> Path:
        return self.path.with_name(f"{self.path.name}.{number}")
