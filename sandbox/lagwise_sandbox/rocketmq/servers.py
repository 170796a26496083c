"""A name server and brokers as child processes that die with this one. No Docker, no fixed port."""

import contextlib
import json
import os
import shutil
import socket
import struct
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from lagwise.platform.die_with_parent import dying_with_parent
from lagwise.platform.error_codes import ErrorCode
from lagwise.platform.errors import LagwiseError
from lagwise.platform.java import find_java
from lagwise_sandbox.jars import Progress, rocketmq_classpath
from lagwise_sandbox.rocketmq import settings
from lagwise_sandbox.rocketmq.settings import BrokerInstance
from lagwise_sandbox.server_process import StartedInContext, end_processes, last_words, start_server_process
from lagwise_sandbox.server_properties import ADMIN

_START_SECONDS = 120.0
_STOP_SECONDS = 8.0
_SMALL_JVM = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-XX:MaxMetaspaceSize=192m")
_NAME_SERVER, _BROKER = "org.apache.rocketmq.namesrv.NamesrvStartup", "org.apache.rocketmq.broker.BrokerStartup"
_TOOL = "org.apache.rocketmq.tools.command.MQAdminStartup"
_TOOL_SECONDS = 60.0
_GET_BROKER_CLUSTER_INFO = 106  # RequestCode.GET_BROKER_CLUSTER_INFO of RocketMQ's remoting protocol


class Rocketmq(StartedInContext):
    """A RocketMQ cluster of one name server and some masters. A context manager; everything is removed at its end.

    ``secured`` turns ACL 2.0 on, see :mod:`lagwise_sandbox.rocketmq.settings`. ``extra`` are broker properties that win
    over the sandbox's. ``environment`` is laid over the servers' own.
    """

    def __init__(
        self,
        brokers: int = 1,
        *,
        secured: bool = False,
        extra: Mapping[str, str | int | bool] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._names = [f"broker-{chr(ord('a') + number)}" for number in range(brokers)]
        self._secured = secured
        self._extra = dict(extra or {})
        self._environment = dict(environment or {})
        self._data: Path | None = None
        self._classpath = ""
        self._name_server_port = 0
        self._instances: dict[str, BrokerInstance] = {}
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    @property
    def data(self) -> Path:
        """Where its files and logs are. Raises LagwiseError before the start."""
        if self._data is None:
            raise RuntimeError("the sandbox's RocketMQ has no files before it is started")
        return self._data

    @property
    def name_servers(self) -> str:
        """``host:port`` for clients."""
        return f"127.0.0.1:{self._name_server_port}"

    def address(self, broker: str) -> str:
        """``host:port`` of a broker."""
        return f"127.0.0.1:{self._instances[broker].port}"

    def alive(self) -> bool:
        """Whether all its processes run."""
        return bool(self._processes) and all(process.poll() is None for process in self._processes.values())

    def start(self, progress: Progress | None = None) -> Self:
        """Start, and wait until clients are served.

        Raises MissingRequirement without Java or the jars, LagwiseError where a server does not come up.
        """
        find_java()
        self._classpath = rocketmq_classpath(progress=progress)
        self._data = Path(tempfile.mkdtemp(prefix="lagwise-rocketmq-"))
        if progress:
            progress("starting a RocketMQ name server and broker …")
        try:
            (self._data / "conf").mkdir()
            (self._data / "conf" / "tools.yml").write_text(settings.tools_login(ADMIN) if self._secured else "")
            self._take_ports()
            (self._data / "namesrv.conf").write_text(settings.name_server(self._name_server_port))
            self._start("namesrv", _NAME_SERVER, heap_mb=192)
            self._wait("namesrv")
            for name in self._names:
                self.start_broker(name, wait=False)
            for name in self._names:
                self._wait(name, listed=True)
        except BaseException:
            self.stop()
            raise
        return self

    def start_broker(self, name: str, *, wait: bool = True) -> None:
        """Start a broker. One that was started before finds its messages again."""
        text = settings.broker(self._instances[name], self.name_servers, secured=self._secured, extra=self._extra)
        (self.data / f"{name}.conf").write_text(text)
        self._start(name, _BROKER, heap_mb=512)
        if wait:
            self._wait(name, listed=True)

    def kill_broker(self, name: str) -> None:
        """End a broker at once, as a power cut would (SIGKILL). Its messages stay."""
        self._processes[name].kill()
        self._processes[name].wait()

    def mqadmin(self, *arguments: str) -> str:
        """What RocketMQ's own tool prints. Raises LagwiseError where it fails."""
        command = [*self.java("mqadmin", 128), _TOOL, *arguments, "-n", self.name_servers]
        ran = subprocess.run(
            dying_with_parent(command),
            env={**os.environ, "ROCKETMQ_HOME": str(self.data)},
            capture_output=True,
            text=True,
            timeout=_TOOL_SECONDS,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        if ran.returncode != 0:
            raise LagwiseError(
                f"mqadmin {arguments[0]} failed: {(ran.stderr or ran.stdout).strip()[-300:]}",
                code=ErrorCode.PROCESS_FAILED,
            )
        return ran.stdout

    def stop(self) -> None:
        """End everything and remove its files. Idempotent."""
        end_processes(list(reversed(self._processes.values())), _STOP_SECONDS)
        self._processes.clear()
        if self._data is not None:
            shutil.rmtree(self._data, ignore_errors=True)

    def java(self, what: str, heap_mb: int) -> list[str]:
        """The beginning of the command line of a JVM with a home of its own."""
        home = self.data / "home" / what
        home.mkdir(parents=True, exist_ok=True)
        # RocketMQ writes its logs, and clients their offsets, below the user's home.
        jvm = [str(find_java()), f"-Xmx{heap_mb}m", f"-Duser.home={home}", *_SMALL_JVM]
        return [*jvm, "-cp", self._classpath]

    def _take_ports(self) -> None:
        """Take a free port for every server. Each stays bound until the last one is found: none is taken twice."""
        with contextlib.ExitStack() as held:
            self._name_server_port = _free_port(held)
            for name in self._names:
                while True:
                    port = _free_port(held)
                    try:
                        _bound(held, port - 2)  # what RocketMQ calls its fast port
                    except OSError:
                        continue
                    break
                self._instances[name] = BrokerInstance(name, port, _free_port(held), self.data / name)

    def _start(self, name: str, main: str, heap_mb: int) -> None:
        environment = {"ROCKETMQ_HOME": str(self.data), **self._environment}
        command = [*self.java(name, heap_mb), main, "-c", str(self.data / f"{name}.conf")]
        assignments = [f"{key}={value}" for key, value in environment.items()]
        with (self.data / f"{name}.log").open("wb") as output:
            self._processes[name] = start_server_process(["/usr/bin/env", *assignments, *command], output)

    def _wait(self, name: str, *, listed: bool = False) -> None:
        """Until a server says that it is up, and ``listed``: until the name server names it, as clients look for it."""
        log = self.data / f"{name}.log"
        deadline = time.monotonic() + _START_SECONDS
        while b"boot success" not in log.read_bytes() or (listed and name not in self._brokers_listed()):
            if self._processes[name].poll() is not None or time.monotonic() > deadline:
                raise LagwiseError(
                    f"the sandbox's RocketMQ {name} did not start: {last_words(log)}", code=ErrorCode.PROCESS_FAILED
                )
            time.sleep(0.1)

    def _brokers_listed(self) -> set[str]:
        """The sandbox's brokers that the name server names at this moment."""
        header = json.dumps({"code": _GET_BROKER_CLUSTER_INFO, "language": "JAVA", "flag": 0, "opaque": 0}).encode()
        with socket.create_connection(("127.0.0.1", self._name_server_port), _TOOL_SECONDS) as connection:
            connection.sendall(struct.pack(">ii", 4 + len(header), len(header)) + header)
            with connection.makefile("rb") as stream:
                (length,) = struct.unpack(">i", stream.read(4))
                answer = stream.read(length)
        return {name for name in self._names if f'"{name}"'.encode() in answer}


def _bound(held: contextlib.ExitStack, port: int) -> socket.socket:
    one = held.enter_context(socket.socket())
    one.bind(("127.0.0.1", port))
    return one


def _free_port(held: contextlib.ExitStack) -> int:
    port: int = _bound(held, 0).getsockname()[1]
    return port
