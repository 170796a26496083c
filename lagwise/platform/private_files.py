"""Folders and files for this user alone: state, logs, heartbeats, the database. Other users of the machine see nothing.

The lake is not among them: it is made as the user's umask says, so that other accounts can be let read it.
"""

import contextlib
import errno
import os
import stat
from pathlib import Path
from typing import IO

_FOLDER, _FILE = 0o700, 0o600
_OTHERS = 0o077


def make_folder(path: Path) -> None:
    """Make a folder, and those above it that are missing, for this user alone (0700).

    One that is there already keeps its mode: others may have business in it. Raises OSError where it cannot be made.
    """
    try:
        for folder in reversed([above for above in path.parents if not above.exists()]):
            folder.mkdir(_FOLDER, exist_ok=True)
        path.mkdir(_FOLDER, exist_ok=True)
    except FileExistsError as error:  # a file that lies where a folder should
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path)) from error


def make_own_folder(path: Path) -> None:
    """The same for a folder that is ours whatever is in it, such as that of the logs: it is closed to others."""
    make_folder(path)
    close(path)


def make_state_folder(path: Path) -> None:
    """The same for the folder of all state. One that is there and empty is what a service manager made for us."""
    make_folder(path)
    if next(path.iterdir(), None) is None:
        close(path)


def close(path: Path) -> None:
    """Take a folder or a file of ours away from everybody else. What belongs to another account stays as it is."""
    with contextlib.suppress(OSError):
        if is_open_to_others(path):
            path.chmod(_FOLDER if path.is_dir() else _FILE)


def opened(path: Path, mode: str) -> IO[bytes]:
    """A file opened in a binary mode: if it is made, it gets the mode 0600; if it is there, it is closed to others."""
    file: IO[bytes] = open(path, mode, opener=_opener)  # noqa: SIM115 (the caller closes it)
    return file


def _opener(path: str, flags: int) -> int:
    descriptor = os.open(path, flags, _FILE)
    with contextlib.suppress(OSError):
        if stat.S_IMODE(os.fstat(descriptor).st_mode) & _OTHERS:
            os.fchmod(descriptor, _FILE)
    return descriptor


def is_open_to_others(path: Path) -> bool:
    """Whether accounts other than the owner may do anything with it. Raises OSError where there is none."""
    return bool(stat.S_IMODE(path.stat().st_mode) & _OTHERS)
