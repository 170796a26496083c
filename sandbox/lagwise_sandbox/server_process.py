"""Server processes: on a free loopback port, tied to the life of this process, and ended in time."""

import contextlib
import socket
import subprocess
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Collection
from concurrent.futures import Future
from pathlib import Path
from typing import IO, Self

from lagwise.platform.die_with_parent import dying_with_parent
from lagwise.platform.error_codes import ErrorCode
from lagwise.platform.errors import LagwiseError
from lagwise_sandbox.server_properties import Ports


class StartedInContext(ABC):
    """A context manager that starts on entering and stops on leaving."""

    @abstractmethod
    def start(self) -> Self:
        """Start, and wait until it serves."""

    @abstractmethod
    def stop(self) -> None:
        """End everything. Idempotent."""

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()


def start_server_process(command: list[str], output: IO[bytes]) -> subprocess.Popen[bytes]:
    """Start the command so that it dies with this process, and not with the thread that asked for it.

    A session of its own keeps a terminal's Ctrl-C away from it: whoever owns the broker decides when it ends.
    """
    started: Future[subprocess.Popen[bytes]] = Future()

    def keep() -> None:
        try:
            process = subprocess.Popen(
                dying_with_parent(command),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        except BaseException as error:
            started.set_exception(error)
            return
        started.set_result(process)
        process.wait()

    threading.Thread(target=keep, name="broker-keeper", daemon=True).start()
    return started.result()


def end_processes(processes: Collection[subprocess.Popen[bytes]], within_seconds: float) -> None:
    """End the processes: SIGTERM, and SIGKILL for those that still run after so many seconds."""
    for process in processes:
        if process.poll() is None:
            process.terminate()
    deadline = time.monotonic() + within_seconds
    for process in processes:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(max(0.1, deadline - time.monotonic()))
        process.kill()  # does nothing to one that has ended
        process.wait()


def last_words(log_file: Path) -> str:
    """The last informative line of a log: an error if there is one, and not a frame of a stack trace."""
    try:
        text = log_file.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        return f"its log cannot be read: {error.strerror}"
    lines = [line.strip() for line in text.splitlines()]
    meaningful = [line for line in lines if line and not line.startswith(("at ", "... "))]
    errors = [line for line in meaningful if "ERROR" in line or "FATAL" in line or "Exception" in line]
    return (errors or meaningful or ["its log is empty"])[-1]


def free_ports(wanted: int) -> Ports:
    """Loopback ports that are free right now. Raises LagwiseError if the wanted one is not."""
    with socket.socket() as client, socket.socket() as controller:
        try:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            client.bind(("127.0.0.1", wanted))
        except (OSError, OverflowError) as error:
            raise LagwiseError(
                f"port {wanted} on 127.0.0.1 cannot be listened on ({getattr(error, 'strerror', None) or error}): "
                "choose another, or 0 for any free one",
                code=ErrorCode.CANNOT_LISTEN,
            ) from error
        controller.bind(("127.0.0.1", 0))
        return Ports(client.getsockname()[1], controller.getsockname()[1])


def is_listening(port: int) -> bool:
    """Whether a process accepts connections on the loopback port."""
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0
