"""The receiver of the demo's webhooks: an HTTP server on loopback that records every delivery."""

import hmac
import json
import threading
from dataclasses import dataclass
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from lagwise_alerts.channels.webhook import sign

_MAX_BYTES = 1_000_000


@dataclass(frozen=True, slots=True)
class ReceivedAlert:
    """One delivery: when it came, whether its signature is valid, and its JSON body."""

    at: datetime
    signed: bool
    body: dict[str, Any]


class WebhookReceiver:
    """Listens on a free loopback port from construction until :meth:`close`. A context manager.

    ``secret`` is the key for the signatures of deliveries.
    """

    def __init__(self, secret: str) -> None:
        self._received: list[ReceivedAlert] = []
        received = self._received

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                if not 0 < length <= _MAX_BYTES:
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
                received.append(ReceivedAlert(datetime.now(UTC), signed, body))
                self.send_response(204)
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:
                """Log nothing: the demo shows every delivery."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        # The default of half a second would delay the end of every demo.
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), name="receiver", daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/alerts"

    def received(self) -> list[ReceivedAlert]:
        """Every delivery so far, oldest first."""
        return list(self._received)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def __enter__(self) -> "WebhookReceiver":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
