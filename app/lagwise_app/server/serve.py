"""Runs the HTTP application until it is told to stop."""

import logging
import socket
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import uvicorn
from starlette.types import ASGIApp

from lagwise.config import Config
from lagwise.operational.heartbeats import beating
from lagwise.platform import health
from lagwise.platform.error_codes import ErrorCode
from lagwise.platform.errors import ConfigError, LagwiseError
from lagwise.platform.log_events import LogEvent, event
from lagwise.platform.secrets import resolve
from lagwise.tables.store import Lake
from lagwise.tables.tolerant import TolerantLake
from lagwise_app.answers.alerts import AlertAnswers
from lagwise_app.answers.context import Context
from lagwise_app.scaling.lake_cache import LakeCache
from lagwise_app.server.access import Access, Caller, RateLimit
from lagwise_app.server.application import Faces, application, scaling_application
from lagwise_app.server.gate import Counts, Gate
from lagwise_app.server.metrics.documents import MetricsWriter, keep_current

#: Name of a thread, what it does, and with what.
Work = tuple[str, Callable[..., None], tuple[object, ...]]

log = logging.getLogger("lagwise.server")

_BEAT_SECONDS = 5.0
#: Time that answers under way are given at the end.
_END_SECONDS = 3


@dataclass(frozen=True, slots=True)
class Listener:
    """Where a server listens, and how it is known."""

    host: str
    port: int
    #: Its section of the settings, for errors.
    section: str
    #: Of its heartbeat.
    process: str
    #: The path that the log names.
    path: str
    #: The operational database, which has its heartbeat, too.
    database_url: str


def serve_forever(config: Config, stop: threading.Event, state: Path) -> None:
    """Answer until ``stop`` is set, with heartbeats into ``state``. Raises ConfigError where it cannot listen."""
    settings = config.server
    lake = TolerantLake(config.lake_uri, config.lake.resolved_storage_options())
    writer, counts = MetricsWriter(lake, config), Counts()
    limit = RateLimit(settings.requests_per_second, settings.burst_requests)
    gate = Gate(Access.of(settings), limit, counts, settings.answer_timeout_seconds)
    context = Context(lake, config, AlertAnswers(config))
    listener = Listener(settings.host, settings.port or 0, "server", health.SERVER, "/metrics", config.database_url)
    try:
        run(
            application(gate, Faces(writer, context, _scaling_cache(config))),
            listener,
            lambda address: _line(address, writer, counts),
            _work(writer, stop),
            stop,
            state,
        )
    finally:
        gate.close()


def serve_scaling_forever(config: Config, stop: threading.Event, state: Path) -> None:
    """The same for autoscalers only, with the address and the token of `scaling`."""
    settings, counts = config.scaling, Counts()
    token = [] if settings.token is None else [(resolve(settings.token), Caller("scaling.token"))]
    limit = RateLimit(config.server.requests_per_second, config.server.burst_requests)
    gate = Gate(Access(token), limit, counts, config.server.answer_timeout_seconds)
    path = "/scaling/CLUSTER/GROUP"
    listener = Listener(settings.host, settings.port or 0, "scaling", health.SCALING, path, config.database_url)
    app = scaling_application(gate, _scaling_cache(config), settings.stale_after_seconds)
    try:
        run(app, listener, lambda address: f"serves {address}/scaling: {counts}", [], stop, state)
    finally:
        gate.close()


def _scaling_cache(config: Config) -> LakeCache:
    return LakeCache(Lake(config.lake_uri, config.lake.resolved_storage_options()))


def run(
    app: ASGIApp, at: Listener, line: Callable[[str], str], work: Sequence[Work], stop: threading.Event, state: Path
) -> None:
    """Serve the application until ``stop`` is set. ``line`` is what the heartbeat says, given the address; ``work`` is
    done beside it. Raises ConfigError where it cannot listen, LagwiseError when a thread ends by itself."""
    with _listening(at) as listener:
        server = uvicorn.Server(
            uvicorn.Config(
                app,
                lifespan="on",  # only the one of assistants has one
                ws="none",
                log_config=None,
                log_level="warning",
                access_log=False,
                server_header=False,
                proxy_headers=False,  # else anybody on this machine could name another address than its own
                timeout_graceful_shutdown=_END_SECONDS,
            )
        )
        # Signals are for the main thread, which sets `stop`: uvicorn leaves them alone in another one.
        threads = [
            threading.Thread(target=task, args=arguments, name=name, daemon=True)
            for name, task, arguments in [("server", server.run, ([listener],)), *work]
        ]
        address = _address(listener)
        for thread in threads:
            thread.start()
        log.info("answers on %s%s", address, at.path, extra=event(LogEvent.LISTENING))
        try:
            with beating(state, at.process, at.database_url) as heart:
                while True:
                    heart.beat(line(address))
                    if stop.wait(_BEAT_SECONDS):
                        break
                    if not all(thread.is_alive() for thread in threads):
                        raise LagwiseError("the HTTP server has ended by itself", code=ErrorCode.PROCESS_FAILED)
        finally:
            server.should_exit = True
            for thread in threads:
                thread.join(_END_SECONDS + 1)


def _work(writer: MetricsWriter, stop: threading.Event) -> list[Work]:
    work: list[Work] = [("metrics", keep_current, (writer, stop))]
    otlp = writer.config.server.metrics.otlp
    if otlp is not None:
        from lagwise_app.server.metrics.otlp import OtlpSender  # the extra `otlp`

        work.append(("otlp", OtlpSender(writer, otlp).run, (stop,)))
    return work


def _listening(at: Listener) -> socket.socket:
    family = socket.AF_INET6 if ":" in at.host else socket.AF_INET
    try:
        return socket.create_server((at.host, at.port), family=family, backlog=128)
    except OSError as error:
        raise ConfigError(
            f"cannot listen on {at.host}:{at.port} ({at.section}): {error.strerror}", code=ErrorCode.CANNOT_LISTEN
        ) from error


def _address(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _line(address: str, writer: MetricsWriter, counts: Counts) -> str:
    documents = writer.documents
    samples = "no samples yet" if documents is None else f"{documents.samples:,} samples"
    return f"serves {address}/metrics: {samples}, {counts}"
