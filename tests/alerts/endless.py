"""A real server on a free loopback port that keeps whoever connects busy, and never comes to an end."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

#: Between two drops. Shorter than any silence that a channel allows.
PAUSE_SECONDS = 0.02


@contextmanager
def endless_server(first: bytes, drop: bytes, pause_seconds: float = PAUSE_SECONDS) -> Iterator[int]:
    """Says ``first`` to everybody who connects, and then ``drop`` again and again until they hang up; its port. Without
    a pause it says so as fast as it is heard."""
    stop = threading.Event()

    def keep_busy(connection: socket.socket) -> None:
        with connection:
            try:
                connection.sendall(first)
                while not stop.wait(pause_seconds):
                    connection.sendall(drop)
            except OSError:
                return  # they have hung up

    def serve() -> None:
        while not stop.is_set():
            try:
                connection, _ = server.accept()
            except OSError:
                return
            connection.settimeout(20)
            threading.Thread(target=keep_busy, args=(connection,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield server.getsockname()[1]
        finally:
            stop.set()
            server.shutdown(socket.SHUT_RDWR)
            thread.join()
