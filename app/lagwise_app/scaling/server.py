"""The endpoint for autoscalers: ``GET /scaling/CLUSTER/GROUP`` answers with the number of replicas, as JSON.

KEDA's ``metrics-api`` scaler reads it (``valueLocation: replicas``, ``targetValue: "1"``); see
``docs/scaling-signal.md``. The endpoint only reads the lake, and answers from memory
(:mod:`lagwise_app.scaling.lake_cache`).
"""

import hmac
import json
import logging
import socket
import sys
import threading
from collections.abc import Mapping
from datetime import UTC, datetime
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socketserver import TCPServer
from urllib.parse import parse_qsl, unquote, urlsplit

from lagwise.config import Config
from lagwise.domain.capacity.scaling import ScalingPolicy
from lagwise.domain.sizing.ranges import OutOfRange
from lagwise.operational.heartbeats import beating
from lagwise.platform import health
from lagwise.platform.error_codes import ErrorCode
from lagwise.platform.errors import ConfigError
from lagwise.platform.log_events import LogEvent, event
from lagwise.platform.secrets import resolve
from lagwise.tables.store import Lake
from lagwise_app.scaling.lake_cache import LakeCache, NoAnswer, UnknownGroup
from lagwise_app.scaling.signal import signal

log = logging.getLogger("lagwise.scaling")

_BEAT_SECONDS = 5.0
#: Seconds between two checks of whether to end.
_POLL_SECONDS = 0.1
#: A connection that is idle for longer is closed.
_IDLE_SECONDS = 10.0

#: The parameters of the query, each with its field of the policy and whether it is a whole number.
PARAMETERS: Mapping[str, tuple[str, bool]] = {
    "min": ("min_replicas", True),
    "max": ("max_replicas", True),
    "utilisation": ("target_utilisation", False),
    "slack": ("slack", False),
    "catch_up_seconds": ("catch_up_seconds", False),
    "up_after_seconds": ("up_after_seconds", False),
    "down_after_seconds": ("down_after_seconds", False),
}


class BadRequest(ValueError):
    """The query is invalid. The message says why."""


def policy_of(query: str) -> ScalingPolicy:
    """The policy in the query of an address. Raises BadRequest naming the parameter."""
    values: dict[str, float] = {}
    for name, text in parse_qsl(query, keep_blank_values=True):
        if name not in PARAMETERS:
            raise BadRequest(f"unknown parameter {name!r}; known parameters: {', '.join(PARAMETERS)}")
        field, is_whole = PARAMETERS[name]
        if field in values:
            raise BadRequest(f"{name} is given twice")
        try:
            values[field] = int(text) if is_whole else float(text)
        except ValueError:
            raise BadRequest(f"{name} must be a {'whole ' if is_whole else ''}number, not {text!r}") from None
    names = {field: name for name, (field, _) in PARAMETERS.items()}
    try:
        return ScalingPolicy(**values)  # type: ignore[arg-type]  # whole numbers were made so above
    except OutOfRange as error:
        named = names.get(error.argument, error.argument)
        raise BadRequest(f"{named} must be {error.allowed}, not {error.value!r}") from None


class ScalingServer(ThreadingHTTPServer):
    """Listens as soon as it is created. Raises ConfigError where it cannot."""

    daemon_threads = True

    def __init__(self, config: Config) -> None:
        scaling = config.scaling
        self.cache = LakeCache(Lake(config.lake_uri, config.lake.resolved_storage_options()))
        self.stale_after_seconds = scaling.stale_after_seconds
        self.token = None if scaling.token is None else resolve(scaling.token)
        self.answered = self.rejected = 0
        self.last_rejection = ""
        self.address_family = socket.AF_INET6 if ":" in scaling.host else socket.AF_INET
        try:
            super().__init__((scaling.host, scaling.port or 0), _Handler)
        except OSError as error:
            raise ConfigError(
                f"cannot listen on {scaling.host}:{scaling.port} (scaling): {error.strerror}",
                code=ErrorCode.CANNOT_LISTEN,
            ) from error

    @property
    def address(self) -> str:
        """The address of the endpoint, without cluster and group."""
        host = f"[{self.server_name}]" if ":" in self.server_name else self.server_name
        return f"http://{host}:{self.server_port}/scaling"

    @property
    def line(self) -> str:
        text = f"serves {self.address}: {self.answered:,} answered, {self.rejected:,} rejected"
        return f"{text}, last {self.last_rejection}" if self.rejected else text

    def server_bind(self) -> None:
        """Bind as the base class does, but without a DNS lookup of the host's name, which may take seconds."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])

    def handle_error(self, request: object, client_address: object) -> None:
        """Log the error. A client that closed the connection is none."""
        if isinstance(sys.exception(), ConnectionError):
            log.debug("a client closed the connection before it had its answer")
        else:
            log.exception("a request failed", extra=event(LogEvent.DEFECT))


class _Handler(BaseHTTPRequestHandler):
    server: ScalingServer
    server_version = "lagwise"
    sys_version = ""
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # head and body of an answer go out together
    timeout = _IDLE_SECONDS

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        match parts.path.split("/")[1:]:
            case ["healthz"]:
                self._answer(HTTPStatus.OK, {"ok": True})
            case ["scaling", cluster, group] if cluster and group:
                self._signal(unquote(cluster), unquote(group), parts.query)
            case _:
                self._reject(HTTPStatus.NOT_FOUND, "the path must be /scaling/CLUSTER/GROUP")

    def _signal(self, cluster: str, group: str, query: str) -> None:
        server = self.server
        if server.token is not None:
            sent = self.headers.get("Authorization", "")
            if not hmac.compare_digest(sent.encode("latin-1"), f"Bearer {server.token}".encode()):
                self._reject(HTTPStatus.UNAUTHORIZED, "send the token as Authorization: Bearer …")
                return
        try:
            policy = policy_of(query)
            now = datetime.now(UTC)
            found = signal(server.cache, cluster, group, policy, now, stale_after_seconds=server.stale_after_seconds)
        except BadRequest as error:
            self._reject(HTTPStatus.BAD_REQUEST, str(error))
        except UnknownGroup as error:
            self._reject(HTTPStatus.NOT_FOUND, str(error.args[0]))
        except NoAnswer as error:
            self._reject(HTTPStatus.SERVICE_UNAVAILABLE, str(error))
        else:
            self._answer(HTTPStatus.OK, found.as_document())

    def _reject(self, status: HTTPStatus, why: str) -> None:
        self.server.rejected += 1
        self.server.last_rejection = f"{urlsplit(self.path).path}: {why}"
        self._answer(status, {"error": why})

    def _answer(self, status: HTTPStatus, document: Mapping[str, object]) -> None:
        self.server.answered += status is HTTPStatus.OK
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: the heartbeat counts requests, and a line for each would bury the rest of the log."""


def serve_forever(config: Config, stop: threading.Event, state: Path) -> None:
    """Answer until ``stop`` is set, with heartbeats into ``state``. Raises ConfigError where it cannot listen."""
    server = ScalingServer(config)
    thread = threading.Thread(target=server.serve_forever, args=(_POLL_SECONDS,), name="scaling", daemon=True)
    thread.start()
    log.info("answers on %s/CLUSTER/GROUP", server.address, extra=event(LogEvent.LISTENING))
    try:
        with beating(state, health.SCALING, config.database_url) as heart:
            while True:
                heart.beat(server.line)
                if stop.wait(_BEAT_SECONDS):
                    break
    finally:
        server.shutdown()
        server.server_close()
