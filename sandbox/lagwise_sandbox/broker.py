"""A real Kafka broker of one's own: for the demo, the tests and the benchmarks. No Docker, no fixed port.

``python -m lagwise_sandbox.broker [PORT]`` runs one until a signal; so does ``lagwise sandbox``.
"""

import base64
import logging
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Mapping
from pathlib import Path
from types import FrameType
from typing import Any, Self

from lagwise.platform.die_with_parent import dying_with_parent, end_with_parent
from lagwise.platform.error_codes import ErrorCode
from lagwise.platform.errors import LagwiseError
from lagwise.platform.java import find_java
from lagwise_sandbox import server_properties
from lagwise_sandbox.jars import Progress, broker_classpath
from lagwise_sandbox.server_process import (
    StartedInContext,
    end_processes,
    free_ports,
    is_listening,
    last_words,
    start_server_process,
)

_START_SECONDS = 90.0
_STOP_SECONDS = 6.0
#: Another process can take a random port after it was found free and before it is listened on.
_ATTEMPTS_AT_RANDOM_PORTS = 4
_SMALL_JVM = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-XX:-UsePerfData")


class KafkaBroker(StartedInContext):
    """One Kafka broker in KRaft mode as a child process that dies with this one. A context manager.

    ``port`` 0 takes a free one. ``data`` is where it keeps its files: a folder given is kept (and a broker started on
    it again finds its topics), the default temporary one is removed by :meth:`stop`. ``extra`` are server properties
    that win over the sandbox's. ``secured`` asks for SASL/PLAIN and ACLs, see :mod:`lagwise_sandbox.server_properties`.
    """

    def __init__(
        self,
        port: int = 0,
        *,
        data: Path | None = None,
        heap_mb: int = 384,
        secured: bool = False,
        extra: Mapping[str, str | int | bool] | None = None,
    ) -> None:
        self._wanted_port = port
        self._given_data = data
        self._heap_mb = heap_mb
        self._secured = secured
        self._extra = dict(extra or {})
        self._data: Path | None = None
        self._ports: server_properties.Ports | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._failed = False

    @property
    def bootstrap(self) -> str:
        """``host:port`` for clients. Raises LagwiseError before the first start."""
        if self._ports is None:
            raise RuntimeError("the sandbox's broker has no address before it is started")
        return f"127.0.0.1:{self._ports.client}"

    @property
    def log_file(self) -> Path:
        """Warnings and errors of the broker. Raises LagwiseError before the first start."""
        if self._data is None:
            raise RuntimeError("the sandbox's broker has no log before it is started")
        return self._data / "broker.log"

    @property
    def pid(self) -> int | None:
        """Process id of the broker's JVM; None while there is none."""
        return self._process.pid if self._process is not None and self.alive() else None

    def alive(self) -> bool:
        """Whether the broker's process runs."""
        return self._process is not None and self._process.poll() is None

    def client_settings(self, user: str = server_properties.ADMIN) -> dict[str, str]:
        """librdkafka settings of a client of this broker, signed in as ``user`` where the broker is secured."""
        login = server_properties.librdkafka_login(user) if self._secured else {}
        return {"bootstrap.servers": self.bootstrap, **login}

    def start(self, progress: Progress | None = None) -> Self:
        """Start and wait until clients are served, with ``__consumer_offsets`` in place.

        A broker that was stopped or killed starts again on the same address (and its data, where that was kept).
        Raises MissingRequirement without Java or the jars, LagwiseError when it does not come up: with the last
        meaningful line of its log.
        """
        if self.alive():
            return self
        self._failed = False
        java, classpath = find_java(), broker_classpath(progress=progress)
        if self._data is None or not self._data.exists():
            self._data = self._given_data or Path(tempfile.mkdtemp(prefix="lagwise-broker-"))
            self._data.mkdir(parents=True, exist_ok=True)
        if progress:
            progress("starting a Kafka broker …")
        attempts = 1 if self._wanted_port or self._ports else _ATTEMPTS_AT_RANDOM_PORTS
        try:
            for attempt in range(1, attempts + 1):
                self._ports = self._ports or free_ports(self._wanted_port)
                if self._try_to_start(java, classpath, self._ports):
                    return self
                log = self.log_file.read_text(encoding="utf-8", errors="replace")
                if attempt < attempts and "address already in use" in log.lower():
                    self._ports = None
                    continue
                raise LagwiseError(
                    f"the sandbox's broker did not start: {last_words(self.log_file)} (its log: {self.log_file})",
                    code=ErrorCode.PROCESS_FAILED,
                )
        except BaseException:
            self.kill()
            raise
        raise AssertionError("the loop either returns or raises")

    def stop(self) -> None:
        """End the broker (SIGTERM, after 6 s SIGKILL) and remove its data. Idempotent.

        The data stays where the folder was given, and after a failure, whose message names the log in it.
        """
        if self._process is not None:
            end_processes([self._process], _STOP_SECONDS)
        if self._data is not None and self._given_data is None and not self._failed:
            shutil.rmtree(self._data, ignore_errors=True)

    def kill(self) -> None:
        """End the broker at once, as a power cut would (SIGKILL). Its data stays."""
        if self._process is not None and self.alive():
            self._process.kill()
            self._process.wait()

    def _try_to_start(self, java: Path, classpath: str, ports: server_properties.Ports) -> bool:
        """Format the data folder once, run the broker, wait. False if its process ended; raises if it hangs."""
        data = self.log_file.parent
        settings, log4j = data / "server.properties", data / "log4j2.properties"
        logs = data / "logs"
        text = server_properties.properties(ports, str(logs), secured=self._secured, extra=self._extra)
        settings.write_text(text, encoding="utf-8")
        log4j.write_text(server_properties.LOG4J_PROPERTIES, encoding="utf-8")
        jvm = [str(java), *_SMALL_JVM, f"-Dlog4j2.configurationFile={log4j.as_uri()}", "-cp", classpath]
        if not (logs / "meta.properties").exists():
            self._format(jvm, settings)
        with self.log_file.open("wb") as output:
            self._process = start_server_process(
                [jvm[0], f"-Xmx{self._heap_mb}m", *jvm[1:], "kafka.Kafka", str(settings)], output
            )
        return self._wait_until_served(time.monotonic() + _START_SECONDS)

    def _format(self, jvm: list[str], settings: Path) -> None:
        cluster_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=").replace("-", "_", 1)
        command = [*jvm, "kafka.tools.StorageTool", "format", "-t", cluster_id, "-c", str(settings)]
        ran = subprocess.run(dying_with_parent(command), capture_output=True, timeout=60, check=False)
        if ran.returncode != 0:
            self.log_file.write_bytes(ran.stdout + ran.stderr)
            raise self.failure("could not format its data folder")

    def _wait_until_served(self, deadline: float) -> bool:
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import AdminClient

        port = int(self.bootstrap.rsplit(":", 1)[1])
        while self.alive() and not is_listening(port):
            self._check(deadline)
            time.sleep(0.05)
        admin: Any = None
        while self.alive():
            try:
                admin = admin or AdminClient({**self.client_settings(), "client.id": "sandbox"}, logger=_SILENT_LOGGER)
                if admin.list_topics(timeout=2).brokers:
                    _wait_for_coordinator(admin, deadline)
                    return True
            except KafkaException:
                pass  # not up yet; the deadline below has the last word
            self._check(deadline)
            time.sleep(0.05)
        return False

    def _check(self, deadline: float) -> None:
        if time.monotonic() > deadline:
            raise self.failure(f"does not answer after {_START_SECONDS:.0f} s")

    def failure(self, what: str) -> LagwiseError:
        """What happened to the broker: the last meaningful line of its log, and where the log is."""
        self._failed = True
        return LagwiseError(
            f"the sandbox's broker {what}: {last_words(self.log_file)} (its log: {self.log_file})",
            code=ErrorCode.PROCESS_FAILED,
        )


def main(port: int = 0) -> int:
    """Run one broker until SIGINT, SIGTERM or the end of the parent process. Returns the exit code.

    Prints ``BOOTSTRAP host:port`` on stdout when clients are served; progress goes to stderr.
    """
    stop = threading.Event()

    def end(_signal: int, _frame: FrameType | None) -> None:
        if stop.is_set():
            return
        stop.set()
        if starting:
            raise KeyboardInterrupt

    starting = True
    previous = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    end_with_parent(os.getppid(), stop)
    broker = KafkaBroker(port)
    try:
        broker.start(lambda line: print(line, file=sys.stderr, flush=True))  # noqa: T201  (a command's output)
        starting = False
        print(f"BOOTSTRAP {broker.bootstrap}", flush=True)  # noqa: T201  (the line that callers wait for)
        while not stop.wait(0.2):
            if not broker.alive():
                raise broker.failure("ended by itself")
    except KeyboardInterrupt:
        pass
    finally:
        starting = False
        broker.stop()
        for number, handler in previous.items():
            signal.signal(number, handler)
    return 0


def _wait_for_coordinator(admin: Any, deadline: float) -> None:
    """Have ``__consumer_offsets`` created and loaded: asking a cold broker for a group makes many first calls time out.

    Asks by describing, not by listing offsets: confluent-kafka 2.16.1 crashes the process when listing all offsets of a
    group is answered by an error, as a coordinator that still loads does.
    """
    from confluent_kafka import KafkaException

    while True:
        try:
            for answer in admin.describe_consumer_groups(["sandbox-warm-up"], request_timeout=10).values():
                answer.result()
            return
        except KafkaException as error:
            if time.monotonic() > deadline:
                raise LagwiseError(
                    f"the sandbox's group coordinator does not come up: {error}", code=ErrorCode.PROCESS_FAILED
                ) from error
            time.sleep(0.05)


_SILENT_LOGGER = logging.getLogger("lagwise.sandbox.librdkafka")
_SILENT_LOGGER.addHandler(logging.NullHandler())
_SILENT_LOGGER.propagate = False


if __name__ == "__main__":
    try:
        sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 0))
    except LagwiseError as problem:
        sys.exit(f"lagwise sandbox: {problem}")
