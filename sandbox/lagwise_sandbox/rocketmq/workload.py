"""The Java consumers and producers of a sandbox, as a process of their own."""

import os
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from lagwise.platform.die_with_parent import dying_with_parent
from lagwise.platform.error_codes import ErrorCode
from lagwise.platform.errors import LagwiseError, MissingRequirement
from lagwise_sandbox.rocketmq.servers import Rocketmq
from lagwise_sandbox.server_process import StartedInContext
from lagwise_sandbox.server_properties import PASSWORDS

_SOURCE = Path(__file__).with_name("Workload.java")
_READY = "READY"
_START_SECONDS = 120.0


class RocketmqWorkload(StartedInContext):
    """Carries out specs (``Workload.java`` has their grammar) until it is stopped. A context manager."""

    def __init__(self, rocketmq: Rocketmq, specs: Sequence[str], *, name: str = "workload", user: str = "") -> None:
        self._rocketmq = rocketmq
        self._specs = list(specs)
        self._name = name
        self._user = user
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def log_file(self) -> Path:
        """What it prints."""
        return self._rocketmq.data / f"{self._name}.log"

    def start(self) -> Self:
        """Start, and wait until every spec is carried out. Raises MissingRequirement without a Java compiler."""
        command = [*self._rocketmq.java(self._name, 256), str(_SOURCE), self._rocketmq.name_servers, *self._specs]
        login = {"LAGWISE_SANDBOX_USER": self._user, "LAGWISE_SANDBOX_PASSWORD": PASSWORDS.get(self._user, "")}
        with self.log_file.open("wb") as output:
            self._process = subprocess.Popen(
                dying_with_parent(command),
                env={**os.environ, **(login if self._user else {})},
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        deadline = time.monotonic() + _START_SECONDS
        while not self.ready():
            if not self.alive() or time.monotonic() > deadline:
                raise self._failure()
            time.sleep(0.1)
        return self

    def ready(self) -> bool:
        """Whether every spec is carried out, or under way where it has no end."""
        return _READY in self.log_file.read_text(errors="replace").splitlines()

    def alive(self) -> bool:
        """Whether it runs."""
        return self._process is not None and self._process.poll() is None

    def stop(self) -> None:
        """End it at once, without a goodbye to the brokers. Idempotent."""
        process, self._process = self._process, None
        if process is None:
            return
        if process.stdin is not None:
            process.stdin.close()
        process.kill()
        process.wait()

    def _failure(self) -> LagwiseError:
        said = self.log_file.read_text(errors="replace")
        if "jdk.compiler" in said:
            return MissingRequirement(
                "the sandbox's RocketMQ consumers are Java source, and this Java has no compiler: install a JDK "
                "(Debian and Ubuntu: apt-get install openjdk-17-jdk-headless)"
            )
        return LagwiseError(
            f"the sandbox's RocketMQ workload did not start: {said.strip()[-300:]}", code=ErrorCode.PROCESS_FAILED
        )
