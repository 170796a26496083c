"""A network in which tests decide what happens to connections: a TCP proxy on loopback."""

import contextlib
import select
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from enum import StrEnum

_CHUNK = 65_536
#: So often what was changed is noticed.
_LOOK_SECONDS = 0.02


class Weather(StrEnum):
    """What happens to what passes."""

    FINE = "fine"
    #: Every piece takes a while, each way.
    SLOW = "slow"
    #: Nothing passes any more, and nobody is told: a firewall that drops.
    SILENT = "silent"
    #: Connections end (RST) after some bytes of an answer.
    RESETTING = "resetting"
    #: Nothing listens.
    REFUSING = "refusing"


class UnreliableNetwork:
    """Passes connections to its port on to another port, as the weather is. It can change at any time."""

    DELAY_SECONDS = 0.05
    #: So much of an answer passes before a reset.
    RESET_AFTER_BYTES = 200

    def __init__(self, port: int, to_port: int) -> None:
        self.weather = Weather.FINE
        self.resets = 0
        self._port, self._to_port = port, to_port
        self._ended = threading.Event()
        self._threads: list[threading.Thread] = []
        self._listener: socket.socket | None = None

    def change(self, weather: Weather) -> None:
        """Have another weather; connections that are open stay open, except in a network that refuses."""
        self.weather = weather
        if weather is Weather.REFUSING:
            self._listener = None
            for thread in self._threads:  # the port is free again
                thread.join(10)
        elif self._listener is None:
            self._listener = socket.create_server(("127.0.0.1", self._port))
            self._start(self._accept, self._listener)

    def _start(self, run: Callable[..., None], *arguments: socket.socket) -> None:
        thread = threading.Thread(target=run, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self, listener: socket.socket) -> None:
        while not self._ended.is_set() and self._listener is listener:
            if not _is_readable(listener):
                continue
            client, _ = listener.accept()
            try:
                server = socket.create_connection(("127.0.0.1", self._to_port), timeout=5)
            except OSError:
                client.close()
                continue
            self._start(self._pass_on, client, server)
        listener.close()

    def _pass_on(self, client: socket.socket, server: socket.socket) -> None:
        """Both ways, in one thread: a socket that another thread reads from is not closed before that has ended."""
        with client, server, contextlib.suppress(OSError):
            while not self._ended.is_set() and self.weather is not Weather.REFUSING:
                if self.weather is Weather.SILENT:
                    self._ended.wait(_LOOK_SECONDS)
                    continue
                readable, _, _ = select.select([client, server], [], [], _LOOK_SECONDS)
                for source in readable:
                    piece = source.recv(_CHUNK)
                    if not piece:
                        return
                    if self.weather is Weather.SLOW:
                        time.sleep(self.DELAY_SECONDS)
                    if self.weather is Weather.RESETTING and source is server and len(piece) > self.RESET_AFTER_BYTES:
                        client.sendall(piece[: self.RESET_AFTER_BYTES])
                        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                        self.resets += 1
                        return
                    (client if source is server else server).sendall(piece)

    def end(self) -> None:
        """End all connections and threads."""
        self._ended.set()
        for thread in self._threads:
            thread.join(10)


def _is_readable(one: socket.socket) -> bool:
    return bool(select.select([one], [], [], _LOOK_SECONDS)[0])


@contextlib.contextmanager
def unreliable_network(port: int, to_port: int) -> Iterator[UnreliableNetwork]:
    """Between ``port``, where clients connect, and ``to_port``, where the server listens."""
    network = UnreliableNetwork(port, to_port)
    network.change(Weather.FINE)
    try:
        yield network
    finally:
        network.end()
