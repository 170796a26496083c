"""Starting a server process: on a free loopback port, and tied to the life of this process."""

import queue
import socket
import subprocess
import threading
from typing import IO

from lagwise.platform.die_with_parent import dying_with_parent
from lagwise.platform.errors import LagwiseError
from lagwise_sandbox.server_properties import Ports


def start_server_process(command: list[str], output: IO[bytes]) -> subprocess.Popen[bytes]:
    """Start the command so that it dies with this process, and not with the thread that asked for it.

    A session of its own keeps a terminal's Ctrl-C away from it: whoever owns the broker decides when it ends.
    """
    started: queue.Queue[subprocess.Popen[bytes] | BaseException] = queue.Queue()

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
            started.put(error)
            return
        started.put(process)
        process.wait()

    threading.Thread(target=keep, name="broker-keeper", daemon=True).start()
    outcome = started.get()
    if isinstance(outcome, BaseException):
        raise outcome
    return outcome


def free_ports(wanted: int) -> Ports:
    """Loopback ports that are free right now. Raises LagwiseError if the wanted one is not."""
    with socket.socket() as client, socket.socket() as controller:
        try:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            client.bind(("127.0.0.1", wanted))
        except (OSError, OverflowError) as error:
            raise LagwiseError(
                f"port {wanted} on 127.0.0.1 cannot be listened on ({getattr(error, 'strerror', None) or error}): "
                "choose another, or 0 for any free one"
            ) from error
        controller.bind(("127.0.0.1", 0))
        return Ports(client.getsockname()[1], controller.getsockname()[1])


def is_listening(port: int) -> bool:
    """Whether somebody accepts connections on the loopback port."""
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0
