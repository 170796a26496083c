"""One admin connection: its settings, its timeouts, and librdkafka's log."""

import logging
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from typing import Any, TypeVar

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from lagwise.config import Cluster
from lagwise.platform.secrets import REDACTED, SECRET_KEYS, redact, resolve
from lagwise_collectors.kafka.requests.errors import KafkaTrouble, kind_of, trouble_of
from lagwise_collectors.kafka.requests.token_function import token_function

_Result = TypeVar("_Result")

#: How long to wait after librdkafka has reported that no broker can be reached.
_ALL_DOWN_SECONDS = 1.0
#: librdkafka ends every request at its timeout. This is for one that it does not end.
_GRACE_SECONDS = 2.0
_POLL_SECONDS = 0.1
#: Requests under way to one broker; the rest waits here. A broker works on one request of a connection at a time and
#: does not read on meanwhile. Hundreds of requests overflow its receive buffer (100 kB by default), and then the
#: connection can stand still for a minute: with its window closed, the broker's side ignores the acknowledgements that
#: its own unsent answer waits for. Seen on Linux 6.18 after some hundred samples of groups with 10,000 partitions.
_IN_FLIGHT = 8
#: librdkafka's severities are those of syslog: 4 is warning.
_LOG_LEVEL = 4


class KafkaClient:
    """An AdminClient that gives up early where no broker can be reached, and knows why. It is made, with its threads
    and connections, when something is asked that our own requests do not read.

    Raises ConfigError if a secret that the settings name does not exist.
    """

    def __init__(self, cluster: Cluster) -> None:
        self.timeout_seconds = cluster.timeout_seconds
        self._settings, self._secrets = librdkafka_settings(cluster)
        self._admin: AdminClient | None = None
        self.library_log = LibrdkafkaLog(self.clean)
        self._cause: KafkaError | None = None
        self._down_since: float | None = None

    @property
    def admin(self) -> AdminClient:
        """The client. Raises KafkaTrouble (``setting_refused``) if librdkafka rejects the settings."""
        if self._admin is None:
            try:
                settings = {**self._settings, "error_cb": self._on_error}
                self._admin = AdminClient(settings, logger=self.library_log.logger)
            except (KafkaException, TypeError, ValueError) as error:
                trouble = trouble_of(error)
                raise KafkaTrouble("setting_refused", self.clean(str(trouble))) from None
        return self._admin

    def clean(self, text: str) -> str:
        """Text without the secrets of this connection."""
        for secret in self._secrets:
            text = text.replace(secret, REDACTED)
        return redact(text)

    def wait(self, future: "Future[_Result]") -> _Result:
        """The result of a request, or KafkaTrouble. Gives up early where no broker can be reached at all."""
        deadline = time.monotonic() + self.timeout_seconds + _GRACE_SECONDS
        while True:
            try:
                return future.result(timeout=_POLL_SECONDS)
            except FutureTimeout:
                if future.done():
                    continue
            except Exception as error:  # whatever the request failed with: KafkaException, or a RuntimeError of its own
                raise self.explained(trouble_of(error)) from None
            self.admin.poll(0)
            now = time.monotonic()
            if self._down_since is not None and now - self._down_since > _ALL_DOWN_SECONDS:
                raise self.explained(KafkaTrouble("unreachable", "no broker can be reached"))
            if now > deadline:
                raise KafkaTrouble("timeout", f"no answer after {self.timeout_seconds + _GRACE_SECONDS:g} s")

    def request(self, method: str, *arguments: Any, **options: Any) -> "Future[Any]":
        """Start a request by a method of AdminClient's base class: one future for the whole of it.

        AdminClient makes a future for each partition and checks each argument in Python, which for 10,000 partitions
        costs several times the request itself.
        """
        future: Future[Any] = Future()
        future.set_running_or_notify_cancel()
        start = getattr(super(AdminClient, self.admin), method)
        start(*arguments, future, **options, request_timeout=self.timeout_seconds)
        return future

    def answered(self) -> None:
        """The cluster answers: errors before this no longer matter."""
        self._cause = None
        self._down_since = None

    def serve(self) -> None:
        """Run librdkafka's callbacks."""
        while self._admin is not None and self._admin.poll(0):
            pass

    def _on_error(self, error: KafkaError) -> None:
        # Called from poll(). "All brokers down" names no reason; the error before it does.
        if error.code() == KafkaError._ALL_BROKERS_DOWN:
            if self._down_since is None:
                self._down_since = time.monotonic()
        elif self._cause is None or error.code() != KafkaError._TRANSPORT:
            self._cause = error

    def explained(self, trouble: KafkaTrouble) -> KafkaTrouble:
        """A timeout with its cause, where librdkafka has reported one."""
        self.serve()
        if trouble.kind in ("timeout", "unreachable") and self._cause is not None:
            return KafkaTrouble(kind_of(self._cause), self.clean(self._cause.str()))
        return KafkaTrouble(trouble.kind, self.clean(str(trouble)))


def librdkafka_settings(cluster: Cluster) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The settings of a cluster's client with their secrets resolved, and those secrets.

    The user's own ``librdkafka`` settings win over ours, all but the bootstrap address. Raises ConfigError if a
    reference points at nothing, or a function cannot be imported.
    """
    given = {key: resolve(value) if isinstance(value, str) else value for key, value in cluster.librdkafka.items()}
    secrets = tuple(
        str(value) for key, value in given.items() if value and (key in SECRET_KEYS or value != cluster.librdkafka[key])
    )
    milliseconds = int(cluster.timeout_seconds * 1000)
    ours: dict[str, Any] = {
        "client.id": "lagwise",
        "socket.timeout.ms": milliseconds,
        "socket.connection.setup.timeout.ms": max(1000, milliseconds),
        "socket.keepalive.enable": True,
        "reconnect.backoff.max.ms": 2000,
        "enable.metrics.push": False,
        "max.in.flight.requests.per.connection": _IN_FLIGHT,
        "log_level": _LOG_LEVEL,
    }
    if (function := token_function(cluster)) is not None:
        ours["oauth_cb"] = function
    return {**ours, **given, "bootstrap.servers": cluster.bootstrap}, secrets


def unsubscribed_settings(cluster: Cluster) -> dict[str, Any]:
    """The settings of a consumer that is assigned partitions, joins no group and commits nothing.

    It reads the records of committed transactions. Raises ConfigError as :func:`librdkafka_settings` does.
    """
    settings, _ = librdkafka_settings(cluster)
    return {
        **settings,
        "group.id": "lagwise",  # librdkafka requires one. It is never used.
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "auto.offset.reset": "error",
        "isolation.level": "read_committed",
        "enable.partition.eof": True,
    }


class LibrdkafkaLog(logging.Handler):
    """librdkafka's log lines, counted by facility instead of printed one by one."""

    def __init__(self, clean: Callable[[str], str]) -> None:
        super().__init__()
        self._clean = clean
        self._lines: dict[str, tuple[int, str]] = {}
        # A logger outside the hierarchy: clusters must not receive each other's lines.
        self.logger = logging.Logger("librdkafka", logging.DEBUG)
        self.logger.addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        """Count one line; confluent-kafka passes (facility, client name, text)."""
        arguments = record.args if isinstance(record.args, tuple) else ()
        facility = str(arguments[0]) if len(arguments) == 3 else "LOG"
        text = str(arguments[2]) if len(arguments) == 3 else record.getMessage()
        count = self._lines.get(facility, (0, ""))[0]
        self._lines[facility] = (count + 1, self._clean(text))

    def take(self) -> Mapping[str, tuple[int, str]]:
        """How many lines each facility logged since the last call, and the last one."""
        lines, self._lines = self._lines, {}
        return lines
