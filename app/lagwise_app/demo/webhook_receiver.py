"""The demo's own receiver of webhooks: a real HTTP server on loopback that keeps what it is sent."""

import hmac
import json
import threading
from dataclasses import dataclass
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from lagwise_alerts.channels.webhook import sign

_MOST_BYTES = 1_000_000


@dataclass(frozen=True, slots=True)
class Received:
    """One delivery: when it came, whether its signature is right, and its body as JSON."""

    at: datetime
    signed: bool
    body: dict[str, Any]


class Receiver:
    """Listens on a free loopback port from construction until :meth:`close`. A context manager.

    ``secret`` is the key that deliveries are to be signed with.
    """

    def __init__(self, secret: str) -> None:
        self._received: list[Received] = []
        self._lock = threading.Lock()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                if not 0 < length <= _MOST_BYTES:
                    self.send_error(413 if length else 411)
                    return
                try:
                    content = self.rfile.read(length)
                    body = json.loads(content)
                except ValueError:
                    self.send_error(400)
                    return
                if not isinstance(body, dict):
                    self.send_error(400)
                    return
                right = sign(secret, self.headers.get("X-Lagwise-Timestamp") or "", content)
                given = self.headers.get("X-Lagwise-Signature") or ""
                signed = hmac.compare_digest(right.encode(), given.encode())
                receiver._keep(Received(datetime.now(UTC), signed, body))
                self.send_response(204)
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:
                """Say nothing: what arrived is shown as alerts."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        # Half a second would be the default, which every end would wait for.
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), name="receiver", daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """Where to post."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/alerts"

    def received(self) -> list[Received]:
        """Everything that has arrived, oldest first."""
        with self._lock:
            return list(self._received)

    def close(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _keep(self, received: Received) -> None:
        with self._lock:
            self._received.append(received)

    def __enter__(self) -> "Receiver":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
