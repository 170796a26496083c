"""No process outlives the one that started it, however that one dies.

Run as a script it becomes another program that the kernel kills together with its parent:
``python -I -S leash.py PARENT_PID PROGRAM ARGUMENT…``. It imports nothing of Lagwise, so that it costs milliseconds.

The kernel's signal (prctl(2), PR_SET_PDEATHSIG) is tied to the *thread* that started the process: whoever uses this
must start it from a thread that lives as long as the child may. On systems other than Linux it only becomes the
program.
"""

import ctypes
import os
import signal
import sys
import threading

_PR_SET_PDEATHSIG = 1
_CHECK_SECONDS = 0.5


def leashed(command: list[str]) -> list[str]:
    """The command line that runs ``command`` such that it dies with this process."""
    return [sys.executable, "-I", "-S", os.path.abspath(__file__), str(os.getpid()), *command]


def end_with_parent(parent_pid: int, stop: threading.Event) -> threading.Thread:
    """Set ``stop`` as soon as this process is no longer the child of ``parent_pid``. Returns the watching thread."""

    def watch() -> None:
        while not stop.wait(_CHECK_SECONDS):
            if os.getppid() != parent_pid:
                stop.set()

    thread = threading.Thread(target=watch, name="leash", daemon=True)
    thread.start()
    return thread


def _become(parent_pid: int, command: list[str]) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        # The parent may have died before the kernel was told.
        if os.getppid() != parent_pid:
            sys.exit(1)
    os.execvp(command[0], command)  # noqa: S606  (an argument list, no shell)


if __name__ == "__main__":
    _become(int(sys.argv[1]), sys.argv[2:])
