"""What ``lagwise up`` shows while the product runs: one line a part, live in a terminal, else whenever one changes."""

import sys
import threading

from rich.console import Group
from rich.live import Live
from rich.text import Text

from lagwise import screen
from lagwise.config import Config
from lagwise.parts import dashboard_address
from lagwise.parts_table import parts_table
from lagwise.supervisor import PartStatus, Supervisor
from lagwise.wording import plain

#: How often ended parts are noticed.
STEP_SECONDS = 0.25


def show(supervisor: Supervisor, config: Config, stop: threading.Event) -> None:
    """Supervise and show until ``stop`` is set."""
    console = screen.console()
    address = dashboard_address(config.dashboard.host, config.dashboard.port)
    console.print(plain(f"dashboard {address}"))
    console.print(plain(f"data      {config.data if config.data_is_remote else config.lake_uri}"))
    console.print(plain(f"logs      {config.state / 'logs'}"))
    if not console.is_terminal:
        _show_changes(supervisor, stop)
        return
    with Live(console=console, refresh_per_second=4, transient=True) as live:
        while not stop.wait(STEP_SECONDS):
            supervisor.step()
            live.update(Group(parts_table(supervisor.statuses()), Text("Ctrl-C ends all of it.", style="dim")))
    console.print("ending …")


def _show_changes(supervisor: Supervisor, stop: threading.Event) -> None:
    """Plain lines, for logs of a service manager: one whenever a part starts, ends, or gives its first heartbeat."""
    shown: dict[str, object] = {}
    while not stop.wait(STEP_SECONDS):
        supervisor.step()
        for part in supervisor.statuses():
            if shown.get(part.name) != _what_counts(part):
                shown[part.name] = _what_counts(part)
                print(part, file=sys.stdout, flush=True)  # noqa: T201 (a command's output)


def _what_counts(part: PartStatus) -> object:
    return part.state, part.restarts, part.beat_age_seconds is None
