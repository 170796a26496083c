"""The output of ``lagwise up``: one line per process, live in a terminal, otherwise one line per change."""

import contextlib
import os
import threading
from collections.abc import Sequence

from rich.console import Group
from rich.live import Live
from rich.table import Column, Table
from rich.text import Text

from lagwise.config import Config
from lagwise.domain.humanise import duration
from lagwise.platform.logs import clean
from lagwise_app.supervisor.effective_settings import dashboard_address
from lagwise_app.supervisor.process_log import MAX_PENDING_BYTES, newest_output
from lagwise_app.supervisor.supervisor import ProcessState, ProcessStatus, Supervisor
from lagwise_app.terminal import output
from lagwise_app.terminal.safe_text import in_one_line, plain

#: Seconds between two steps of the supervisor.
STEP_SECONDS = 0.25
_STDOUT = 1


def show(supervisor: Supervisor, config: Config, stop: threading.Event) -> None:
    """Supervise and show until ``stop`` is set."""
    console = output.console()
    lines = [
        f"dashboard {dashboard_address(config.dashboard.host, config.dashboard.port)}",
        f"data      {config.data if config.data_is_remote else config.lake_uri}",
        f"logs      {config.state / 'logs'}",
    ]
    if not console.is_terminal:
        _show_changes(supervisor, lines, stop)
        return
    for line in lines:
        console.print(plain(line))
    with Live(console=console, refresh_per_second=4, transient=True) as live:
        while not stop.wait(STEP_SECONDS):
            supervisor.step()
            for line in supervisor.take_notices():
                console.print(plain(line))
            live.update(Group(process_table(supervisor.statuses()), Text("Ctrl-C ends everything.", style="dim")))
    console.print("stopping …")


def _show_changes(supervisor: Supervisor, lines: Sequence[str], stop: threading.Event) -> None:
    """Plain lines for the log of a service manager: one when a process starts, ends, or sends its first heartbeat."""
    output = _Output()
    output.print(*lines)
    printed: dict[str, object] = {}
    while not stop.wait(STEP_SECONDS):
        supervisor.step()
        output.print(*supervisor.take_notices())
        for status in supervisor.statuses():
            if printed.get(status.name) != _printed_state(status):
                printed[status.name] = _printed_state(status)
                output.print(str(status))


class _Output:
    """Standard output that never fails.

    Lines that cannot be written (a full disk, a reader that has gone) are held in memory and written later.
    """

    def __init__(self) -> None:
        self._pending = b""

    def print(self, *lines: str) -> None:
        self._pending += "".join(f"{clean(line)}\n" for line in lines).encode()
        with contextlib.suppress(OSError):
            while self._pending:
                self._pending = self._pending[os.write(_STDOUT, self._pending) :]
        self._pending = newest_output(self._pending, MAX_PENDING_BYTES)


def _printed_state(status: ProcessStatus) -> object:
    """A new line is printed where this changes."""
    return status.state, status.restarts, status.beat_age_seconds is None


def process_table(statuses: Sequence[ProcessStatus]) -> Table:
    """The supervised processes, one line each."""
    name, state = Column(no_wrap=True), Column(no_wrap=True)
    table = Table(name, state, "what it does", box=None, pad_edge=False, show_header=False)
    for status in statuses:
        word = str(status.state) if status.retry_in_seconds is None else f"restarts in {status.retry_in_seconds:.0f} s"
        if status.restarts:
            word += f", {status.restarts}× restarted"
        style = "green" if status.state is ProcessState.RUNNING else "bold red"
        age = "" if status.beat_age_seconds is None else f" ({duration(status.beat_age_seconds)} ago)"
        table.add_row(
            plain(status.name),
            Text(word, style=style),
            in_one_line(plain(status.line or "starting").append(age, style="dim")),
        )
    return table
