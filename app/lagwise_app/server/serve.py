"""Runs the HTTP application until it is told to stop."""

import logging
import socket
import threading
from collections.abc import Callable
from pathlib import Path

import uvicorn

from lagwise.config import Config
from lagwise.operational.heartbeats import beating
from lagwise.platform import health
from lagwise.platform.error_codes import ErrorCode
from lagwise.platform.errors import ConfigError, LagwiseError
from lagwise.platform.log_events import LogEvent, event
from lagwise.platform.secrets import resolve
from lagwise.tables.tolerant import TolerantLake
from lagwise_app.server.application import Counts, application
from lagwise_app.server.metrics.documents import MetricsWriter, keep_current

#: Name of a thread, what it does, and with what.
Work = tuple[str, Callable[..., None], tuple[object, ...]]

log = logging.getLogger("lagwise.server")

_BEAT_SECONDS = 5.0
#: Time that answers under way are given at the end.
_END_SECONDS = 3


def serve_forever(config: Config, stop: threading.Event, state: Path) -> None:
    """Answer until ``stop`` is set, with heartbeats into ``state``. Raises ConfigError where it cannot listen."""
    settings = config.server
    token = None if settings.token is None else resolve(settings.token)
    writer = MetricsWriter(TolerantLake(config.lake_uri, config.lake.resolved_storage_options()), config)
    counts = Counts()
    with _listening(settings.host, settings.port or 0) as listener:
        server = uvicorn.Server(
            uvicorn.Config(
                application(writer, token, counts),
                lifespan="off",
                ws="none",
                log_config=None,
                log_level="warning",
                access_log=False,
                server_header=False,
                timeout_graceful_shutdown=_END_SECONDS,
            )
        )
        # Signals are for the main thread, which sets `stop`: uvicorn leaves them alone in another one.
        threads = [
            threading.Thread(target=work, args=arguments, name=name, daemon=True)
            for name, work, arguments in _work(server, listener, writer, stop)
        ]
        address = _address(listener)
        for thread in threads:
            thread.start()
        log.info("answers on %s/metrics", address, extra=event(LogEvent.LISTENING))
        try:
            with beating(state, health.SERVER, writer.config.database_url) as heart:
                while True:
                    heart.beat(_line(address, writer, counts))
                    if stop.wait(_BEAT_SECONDS):
                        break
                    if not all(thread.is_alive() for thread in threads):
                        raise LagwiseError("the HTTP server has ended by itself", code=ErrorCode.PROCESS_FAILED)
        finally:
            server.should_exit = True
            for thread in threads:
                thread.join(_END_SECONDS + 1)


def _work(server: uvicorn.Server, listener: socket.socket, writer: MetricsWriter, stop: threading.Event) -> list[Work]:
    work: list[Work] = [("server", server.run, ([listener],)), ("metrics", keep_current, (writer, stop))]
    otlp = writer.config.server.metrics.otlp
    if otlp is not None:
        from lagwise_app.server.metrics.otlp import OtlpSender  # the extra `otlp`

        work.append(("otlp", OtlpSender(writer, otlp).run, (stop,)))
    return work


def _listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=128)
    except OSError as error:
        raise ConfigError(
            f"cannot listen on {host}:{port} (server): {error.strerror}", code=ErrorCode.CANNOT_LISTEN
        ) from error


def _address(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _line(address: str, writer: MetricsWriter, counts: Counts) -> str:
    documents = writer.documents
    samples = "no samples yet" if documents is None else f"{documents.samples:,} samples"
    text = f"serves {address}/metrics: {samples}, {counts.answered:,} scrapes, {counts.rejected:,} rejected"
    return f"{text}, last {counts.last_rejection}" if counts.rejected else text
