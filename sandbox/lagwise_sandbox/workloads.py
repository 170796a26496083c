"""The demo's load: real producers and real consumer groups, one for each scenario.

``python -m lagwise_sandbox.workloads --bootstrap HOST:PORT`` runs them until SIGINT, SIGTERM or the end of its parent.
"""

import logging
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import BinaryIO

import click

from lagwise.platform import logs
from lagwise.platform.die_with_parent import end_with_parent
from lagwise.platform.error_codes import ErrorCode, code_of_system
from lagwise.platform.errors import LagwiseError
from lagwise_sandbox.scenarios import KILLED_AFTER_SECONDS, SCENARIOS, Behaviour, DemoScenario
from lagwise_sandbox.server_process import end_processes

log = logging.getLogger("lagwise.sandbox")

#: Printed by the workload as soon as every group has been started.
READY_LINE = "WORKLOAD running"
_STOP_SECONDS = 5.0
_LEAVE_SECONDS = 3.0


class DemoWorkload:
    """The whole load as one child process (and a grandchild that gets killed). It ends with this process.

    It writes to ``workload.log`` in ``log_dir``.
    """

    def __init__(self, bootstrap: str, log_dir: Path) -> None:
        self._bootstrap = bootstrap
        self.log_file = log_dir / "workload.log"
        self._process: subprocess.Popen[bytes] | None = None
        self._log_start = 0

    def start(self) -> None:
        """Start the process; returns at once. Raises LagwiseError where its log cannot be written."""
        if self.alive():
            return
        try:
            self.log_file.parent.mkdir(parents=True, exist_ok=True)
            output = self.log_file.open("ab")
        except OSError as error:
            raise LagwiseError(
                f"cannot write {self.log_file}: {error.strerror or error}",
                code=code_of_system(error, ErrorCode.FILE_NOT_WRITABLE),
            ) from error
        with output:
            self._log_start = output.tell()
            self._process = _start_workload_process(self._bootstrap, output=output)

    def alive(self) -> bool:
        """Whether the load runs."""
        return self._process is not None and self._process.poll() is None

    def ready(self) -> bool:
        """Whether topics and backlog are in place and every group has been started."""
        try:
            with self.log_file.open("rb") as said:
                said.seek(self._log_start)
                return READY_LINE.encode() in said.read()
        except OSError:
            return False

    def stop(self) -> None:
        """End it: SIGTERM, after 5 s SIGKILL. Idempotent."""
        if self._process is not None:
            end_processes([self._process], _STOP_SECONDS)


@click.command()
@click.option("--bootstrap", required=True, help="Broker, HOST:PORT.")
@click.option("--only", default=None, help="Run just the members of this group, without producers.")
def main(bootstrap: str, only: str | None) -> None:
    """Run the demo's producers and consumers until a signal or the end of the parent process."""
    logs.configure("workload")
    parent = os.getppid()
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    end_with_parent(parent, stop)
    try:
        chosen = [scenario for scenario in SCENARIOS if only in (None, scenario.group)]
        if not chosen:
            raise LagwiseError(f"there is no group {only!r} in the demo", code=ErrorCode.UNKNOWN_NAME)
        run(bootstrap, chosen, stop, alone=only is not None)
    except LagwiseError as error:
        sys.exit(f"workload: {error}")
    sys.stdout.flush()
    # Clients that could not leave their group in time must not keep the process alive: C libraries own their threads.
    os._exit(0)


def run(bootstrap: str, scenarios: list[DemoScenario], stop: threading.Event, *, alone: bool) -> None:
    """Play the scenarios until ``stop`` is set. ``alone`` leaves out topics and producers."""
    from lagwise_sandbox.consumer_behaviours import DemoClients, start_members
    from lagwise_sandbox.producers import commit_left_topic, preload, start_producing

    demo = DemoClients(bootstrap, stop)
    threads: list[threading.Thread] = []
    to_kill: list[subprocess.Popen[bytes]] = []
    if not alone:
        preload(bootstrap, demo.errors)
        for scenario in scenarios:
            commit_left_topic(bootstrap, scenario, demo.errors)
        threads.append(start_producing(bootstrap, stop, demo.errors))
    for scenario in scenarios:
        if scenario.behaviour is Behaviour.KILLED and not alone:
            to_kill.append(_start_workload_process(bootstrap, only=scenario.group))
        else:
            threads += start_members(demo, scenario)
    if not alone:
        log.info("%s: %d groups", READY_LINE, len(scenarios))
    try:
        if not stop.wait(KILLED_AFTER_SECONDS):
            for process in to_kill:
                process.kill()
                process.wait()
        stop.wait()
    finally:
        end_processes(to_kill, _STOP_SECONDS)
        leave_by = time.monotonic() + _LEAVE_SECONDS
        for thread in threads:
            thread.join(max(0.0, leave_by - time.monotonic()))
        demo.errors.log_counts(now=True)


def _start_workload_process(
    bootstrap: str, *, only: str | None = None, output: BinaryIO | None = None
) -> subprocess.Popen[bytes]:
    """This module in a process of its own session, so that a terminal's Ctrl-C reaches only whoever owns it."""
    command = [sys.executable, "-m", "lagwise_sandbox.workloads", "--bootstrap", bootstrap]
    if only is not None:
        command += ["--only", only]
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True)


if __name__ == "__main__":
    main()
