"""The descendants of processes: finding and ending them."""

import contextlib
import time
from collections.abc import Iterable

import psutil


def descendants(pids: Iterable[int]) -> set[psutil.Process]:
    """Everything that these processes have started and that still runs."""
    found: set[psutil.Process] = set()
    for pid in pids:
        with contextlib.suppress(psutil.NoSuchProcess):
            found |= set(psutil.Process(pid).children(recursive=True))
    return found


def end_processes(processes: Iterable[psutil.Process]) -> None:
    """Kill those that still run, and wait until they are gone. psutil recognises a process id that was reused.

    Some leave their parent's process group (Spark's Python daemon makes one of its own), so that killing groups is not
    enough.
    """
    left = list(processes)
    for process in left:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    deadline = time.monotonic() + 1.0
    while any(_runs(process) for process in left) and time.monotonic() < deadline:
        time.sleep(0.01)


def _runs(process: psutil.Process) -> bool:
    """Whether it does anything: a zombie only waits for its new parent to notice."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
