"""The lock of a state folder, so that only one product at a time runs on it."""

import contextlib
import fcntl
import os
import socket
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from lagwise.platform.error_codes import ErrorCode, code_of_system
from lagwise.platform.errors import LagwiseError
from lagwise.platform.files import why
from lagwise.platform.logs import clean
from lagwise.platform.private_files import make_state_folder, opened

#: Bytes of the lock file that are read to name its holder.
_MAX_HOLDER_BYTES = 300


@contextlib.contextmanager
def locked(state: Path) -> Iterator[None]:
    """Hold the lock of the state folder. The kernel releases it however the process ends.

    Raises LagwiseError where another process holds it, or where the folder cannot be written.
    """
    try:
        make_state_folder(state)
        file = opened(state / "lagwise.lock", "a+b")
    except OSError as error:
        raise LagwiseError(
            f"cannot write to the state folder {clean(str(state))}: {why(error)}",
            code=code_of_system(error, ErrorCode.FILE_NOT_WRITABLE),
        ) from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            written = file.read(_MAX_HOLDER_BYTES).decode("utf-8", "replace")
            holder = clean(written.strip()) or "another process"
            raise LagwiseError(
                f"Lagwise already runs on {clean(str(state))}: {holder}. Stop it first, or choose another folder with "
                "--data",
                code=ErrorCode.ALREADY_RUNNING,
            ) from None
        with contextlib.suppress(OSError):  # a full disk does not affect the lock itself
            holder = f"process {os.getpid()} on {socket.gethostname()}, since {datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC"
            os.ftruncate(file.fileno(), 0)
            os.write(file.fileno(), holder.encode())
        yield
