"""Files that are replaced as a whole: a reader sees the old content or the new one, never half of one."""

import logging
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from lagwise.platform.log_events import LogEvent
from lagwise.platform.log_throttle import LogThrottle
from lagwise.platform.private_files import make_folder


@contextmanager
def replacing(path: Path, *, durable: bool = False) -> Iterator[IO[bytes]]:
    """The file to write the new content into; it takes the place of ``path`` at the end.

    The folder is made where there is none. The file can be read by this user only. ``durable``: it survives a loss of
    power. Raises OSError, and so does whatever fails inside: the old file is then still there, and nothing else.
    """
    make_folder(path.parent)
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-", suffix=".part")  # mode 0600
    part = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            if durable:
                file.flush()
                os.fsync(file.fileno())
        os.replace(part, path)
    except BaseException:
        with suppress(OSError):
            part.unlink()
        raise


def replace_file(path: Path, content: bytes, *, durable: bool = False) -> None:
    """Write a whole file: see :func:`replacing`."""
    with replacing(path, durable=durable) as file:
        file.write(content)


def why(error: OSError) -> str:
    """The reason alone, without path and number."""
    return error.strerror or str(error)


class BestEffortFile:
    """A file that a process keeps for itself and can do without: a write that fails costs only the file.

    The failure is logged once, in a line that ``cost`` completes, and so is its end. For one thread.
    """

    def __init__(self, path: Path, log: logging.Logger, cost: str) -> None:
        self.path = path
        self._cost = cost
        self._log_throttle = LogThrottle(log, remind_after_seconds=None)

    def write(self, content: bytes, *, durable: bool = False) -> bool:
        """Replace the file; whether that worked."""
        try:
            replace_file(self.path, content, durable=durable)
        except OSError as error:
            self._log_throttle.warn(
                LogEvent.FILE_NOT_WRITABLE, f"cannot write {self.path}: {why(error)}; {self._cost}", same=""
            )
            return False
        self._log_throttle.clear(LogEvent.FILE_NOT_WRITABLE, f"{self.path} can be written again")
        return True
