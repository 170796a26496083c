"""A real HTTP receiver on a free loopback port that behaves as well or as badly as a test asks."""

import json
import socket
import threading
import time
from collections import deque
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self


@dataclass(frozen=True)
class Answer:
    """How the receiver treats one request. ``drop`` closes without an answer, ``hang`` never answers."""

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    delay_seconds: float = 0.0
    drop: bool = False
    hang: bool = False


OK = Answer()


@dataclass(frozen=True)
class Got:
    """One request as it arrived."""

    path: str
    headers: dict[str, str]
    body: bytes
    at: float

    @property
    def key(self) -> str:
        return self.headers["idempotency-key"]

    @property
    def document(self) -> dict[str, Any]:
        return dict(json.loads(self.body))


class Receiver:
    """Answers with what is in ``answers`` first, then with ``then``. ``got`` holds every request, failed ones too."""

    def __init__(self, then: Answer = OK, port: int = 0) -> None:
        self.then = then
        self.answers: deque[Answer] = deque()
        self.got: list[Got] = []
        self.cut_off = 0
        self._arrived = threading.Condition()
        self._closing = threading.Event()
        self._connections: set[socket.socket] = set()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self) -> None:
                super().setup()
                receiver._connections.add(self.connection)

            def finish(self) -> None:
                receiver._connections.discard(self.connection)
                super().finish()

            def do_POST(self) -> None:
                length = int(self.headers["Content-Length"])
                body = self.rfile.read(length)
                if len(body) < length:  # the sender died in the middle: nothing that any receiver would act on
                    receiver.cut_off += 1
                    self.close_connection = True
                    return
                headers = {name.lower(): value for name, value in self.headers.items()}
                answer = receiver._take(Got(self.path, headers, body, time.monotonic()))
                if answer.hang:
                    receiver._closing.wait()
                if answer.hang or answer.drop:
                    self.close_connection = True
                    return
                receiver._closing.wait(answer.delay_seconds)
                self.send_response(answer.status)
                for name, value in answer.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(answer.body)))
                self.end_headers()
                self.wfile.write(answer.body)

            def log_message(self, format: str, *args: object) -> None:
                """Quiet."""

        class Server(ThreadingHTTPServer):
            daemon_threads = False
            request_queue_size = 50

            def handle_error(self, request: object, client_address: object) -> None:
                """A client that hung up is what some tests are about."""

        self._server = Server(("127.0.0.1", port), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook"

    @property
    def keys(self) -> list[str]:
        with self._arrived:
            return [got.key for got in self.got]

    def secure(self, context: Any) -> None:
        """Speak TLS. Before the start."""
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)

    def wait_for(self, count: int, within_seconds: float = 20.0) -> list[Got]:
        """The requests, once there are so many. Fails the test if they do not come."""
        with self._arrived:
            came = self._arrived.wait_for(lambda: len(self.got) >= count, within_seconds)
            assert came, f"{len(self.got)} of {count} requests came within {within_seconds} s"
            return list(self.got)

    def _take(self, got: Got) -> Answer:
        with self._arrived:
            self.got.append(got)
            self._arrived.notify_all()
            return self.answers.popleft() if self.answers else self.then

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing.set()
        self._server.shutdown()
        self._thread.join()
        for connection in list(self._connections):
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue  # the other side was faster
        self._server.server_close()
