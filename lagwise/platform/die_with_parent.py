"""No process outlives the one that started it, however that one dies.

Run as a script it becomes another program that the kernel kills together with its parent:
``python -I -S die_with_parent.py PARENT_PID PROGRAM ARGUMENT…``. It imports nothing of Lagwise, so that it costs
milliseconds, and it leaves no process of its own behind: the program takes its place.

Why not ``preexec_fn``: it runs Python between fork and exec of a process that has threads, which can deadlock. Why the
kernel and not a pipe that is watched: a process that hangs, or that is not ours (Streamlit, a JVM), watches nothing.

The kernel's signal (prctl(2), PR_SET_PDEATHSIG) is tied to the *thread* that started the process: a caller
must start it from a thread that lives as long as the child may. It survives exec, but not fork: a grandchild is not
covered, and must end with its own parent (a Spark driver's JVM does: its launcher's pipe closes). On systems other than
Linux the script only becomes the program; there, children survive a SIGKILL of their parent.
"""

import ctypes
import os
import signal
import sys
import threading

_PR_SET_PDEATHSIG = 1
_CHECK_SECONDS = 0.5


def dying_with_parent(command: list[str]) -> list[str]:
    """The command line that runs ``command`` such that it is killed when this process ends, even by SIGKILL."""
    return [sys.executable, "-I", "-S", os.path.abspath(__file__), str(os.getpid()), *command]


def end_with_parent(parent_pid: int, stop: threading.Event) -> threading.Thread:
    """Set ``stop`` as soon as this process is no longer the child of ``parent_pid``. Returns the watching thread."""

    def watch() -> None:
        while not stop.wait(_CHECK_SECONDS):
            if os.getppid() != parent_pid:
                stop.set()

    thread = threading.Thread(target=watch, name="die-with-parent", daemon=True)
    thread.start()
    return thread


def _become(parent_pid: int, command: list[str]) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        # The parent may have died before prctl was called.
        if os.getppid() != parent_pid:
            sys.exit(1)
    try:
        os.execvp(command[0], command)  # noqa: S606 (an argument list, no shell)
    except OSError as error:
        sys.exit(f"cannot run {command[0]}: {error.strerror}")


if __name__ == "__main__":
    _become(int(sys.argv[1]), sys.argv[2:])
