"""What ``lagwise up`` shows while the product runs: one line a part, live in a terminal, else whenever one changes."""

import contextlib
import os
import threading
from collections.abc import Sequence

from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from lagwise.config import Config
from lagwise.domain.humanise import duration
from lagwise.platform.logs import clean
from lagwise_app.supervisor.effective_settings import dashboard_address
from lagwise_app.supervisor.process_log import MOST_WAITING_BYTES, newest
from lagwise_app.supervisor.supervisor import ProcessState, ProcessStatus, Supervisor
from lagwise_app.terminal import output
from lagwise_app.terminal.safe_text import in_one_line, plain

#: How often ended parts are noticed.
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
            live.update(Group(parts_table(supervisor.statuses()), Text("Ctrl-C ends all of it.", style="dim")))
    console.print("ending …")


def _show_changes(supervisor: Supervisor, lines: Sequence[str], stop: threading.Event) -> None:
    """Plain lines, for logs of a service manager: one whenever a part starts, ends, or gives its first heartbeat."""
    output = _Output()
    output.print(*lines)
    shown: dict[str, object] = {}
    while not stop.wait(STEP_SECONDS):
        supervisor.step()
        output.print(*supervisor.take_notices())
        for part in supervisor.statuses():
            if shown.get(part.name) != _what_counts(part):
                shown[part.name] = _what_counts(part)
                output.print(str(part))


class _Output:
    """Standard output. What it does not take (a file on a full disk, a reader that is gone) ends nothing: it waits, and
    is written once that is possible."""

    def __init__(self) -> None:
        self._waiting = b""

    def print(self, *lines: str) -> None:
        self._waiting += "".join(f"{clean(line)}\n" for line in lines).encode()
        with contextlib.suppress(OSError):
            while self._waiting:
                self._waiting = self._waiting[os.write(_STDOUT, self._waiting) :]
        self._waiting = newest(self._waiting, MOST_WAITING_BYTES)


def _what_counts(part: ProcessStatus) -> object:
    return part.state, part.restarts, part.beat_age_seconds is None


def parts_table(statuses: Sequence[ProcessStatus]) -> Table:
    """The supervised processes, one line each."""
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column()
    for part in statuses:
        word = str(part.state) if part.retry_in_seconds is None else f"restarts in {part.retry_in_seconds:.0f} s"
        if part.restarts:
            word += f", {part.restarts}× restarted"
        style = "green" if part.state is ProcessState.RUNNING else "bold red"
        age = "" if part.beat_age_seconds is None else f" ({duration(part.beat_age_seconds)} ago)"
        table.add_row(
            plain(part.name),
            Text(word, style=style),
            in_one_line(plain(part.line or "starting").append(age, style="dim")),
        )
    return table
