"""Processes that hang, as far as others can tell: they are stopped, and do nothing until they are told to go on."""

import os
import signal
import time
from pathlib import Path

_STOP_SECONDS = 60.0


def stop(pid: int) -> None:
    """Stop a process, and wait until it has stopped.

    A signal is only noted when ``kill`` returns: on a busy machine the process's threads go on working for a while.
    """
    os.kill(pid, signal.SIGSTOP)
    deadline = time.monotonic() + _STOP_SECONDS
    while running := _running(pid):
        assert time.monotonic() < deadline, f"threads of process {pid} did not stop: {running}"
        time.sleep(0.005)


def go_on(pid: int) -> None:
    """Have a stopped process go on where it was."""
    os.kill(pid, signal.SIGCONT)


def _running(pid: int) -> dict[int, str]:
    """Its threads that are not stopped, with what they do, as the kernel calls it."""
    states = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        try:
            stat = (task / "stat").read_text(encoding="utf-8", errors="replace")
        except (FileNotFoundError, ProcessLookupError):
            continue  # a thread that has ended meanwhile
        states[int(task.name)] = stat.rpartition(")")[2].split()[0]
    return {thread: state for thread, state in states.items() if state != "T"}
