"""The output of the demo while it runs: its steps, then a live table, or plain lines without a terminal."""

import contextlib
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from rich.console import Group, RenderableType
from rich.live import Live
from rich.table import Column, Table
from rich.text import Text

from lagwise.domain.humanise import count, duration
from lagwise_app.demo.expectations import SETTLES_WITHIN_SECONDS, ExpectedGroup, ExpectedGroups
from lagwise_app.demo.webhook_receiver import ReceivedAlert
from lagwise_app.supervisor.display import process_table
from lagwise_app.supervisor.supervisor import ProcessState, ProcessStatus
from lagwise_app.terminal import output
from lagwise_app.terminal.safe_text import in_one_line, plain, status_text

#: Without a terminal, seconds between two progress lines of a step.
_PLAIN_SECONDS = 3.0
#: How many of the latest alerts the live table shows.
_ALERTS_SHOWN = 5


class DemoProgress:
    """Prints to stdout, or to stderr where the JSON object goes to stdout."""

    def __init__(self, *, as_json: bool) -> None:
        self.console = output.console(sys.stderr if as_json else sys.stdout)
        self._live: Live | None = None
        self._printed_statuses: dict[str, tuple[str, str | None]] = {}
        self._printed_processes: dict[str, tuple[ProcessState, int]] = {}
        self._printed_alerts = 0

    def say(self, line: str) -> None:
        self.console.print(plain(line))

    @contextlib.contextmanager
    def step(self, what: str) -> Iterator["ProgressStep"]:
        """A step that takes time. Call the yielded object with a line of progress."""
        began = time.monotonic()
        if self.console.is_terminal:
            with self.console.status(plain(f"{what} …")) as status:
                step = ProgressStep(lambda line: status.update(plain(line)))
                yield step
        else:
            step = ProgressStep(lambda line: self.say(f"  {line}"), pause_seconds=_PLAIN_SECONDS)
            yield step
        self.console.print(
            Text("✓ ", style="green").append_text(plain(step.result or what)),
            Text(f"({duration(time.monotonic() - began)})", style="dim"),
        )

    @contextlib.contextmanager
    def live(self) -> Iterator[None]:
        """Inside, and in a terminal, :meth:`show` replaces what it drew before."""
        if not self.console.is_terminal:
            yield
            return
        with Live(console=self.console, refresh_per_second=4, vertical_overflow="visible") as self._live:
            yield
        self._live = None

    def show(
        self,
        expected: ExpectedGroups,
        elapsed: float,
        processes: Sequence[ProcessStatus],
        alerts: Sequence[ReceivedAlert],
        footer: str,
    ) -> None:
        """Show the current state: all of it in a terminal, otherwise what has changed."""
        if self._live is not None:
            shown: list[RenderableType] = [groups_table(expected), Text(""), process_table(processes)]
            shown += [Text(""), *(alert_line(alert) for alert in alerts[-_ALERTS_SHOWN:])] if alerts else []
            shown.append(Text(f"\n{duration(int(elapsed))}: {expected.words}. {footer}", style="dim"))
            self._live.update(Group(*shown))
            return
        for process in processes:
            self._print_process(process, elapsed)
        for group in expected.groups:
            if group.row is not None:
                self._print_status(group, elapsed)
        for alert in alerts[self._printed_alerts :]:
            self.console.print(alert_line(alert))
        self._printed_alerts = len(alerts)

    def _print_process(self, process: ProcessStatus, elapsed: float) -> None:
        """Print a process that has ended or was restarted."""
        before = self._printed_processes.get(process.name, (ProcessState.RUNNING, 0))
        self._printed_processes[process.name] = now = (process.state, process.restarts)
        if now != before:
            self.console.print(Text(f"{elapsed:6.0f} s  ").append_text(plain(str(process))))

    def _print_status(self, group: ExpectedGroup, elapsed: float) -> None:
        assert group.row is not None
        now = (group.row["status"], group.row["reason"])
        if self._printed_statuses.get(group.scenario.group) == now:
            return
        self._printed_statuses[group.scenario.group] = now
        line = Text(f"{elapsed:6.0f} s  ").append_text(plain(group.scenario.group)).append(" is ")
        line.append_text(status_text(*now))
        if not group.agrees:
            when = f" within {duration(SETTLES_WITHIN_SECONDS)} of the start" if group.is_settling else ""
            line.append(f" ({group.expected_words} expected{when})", style="dim")
        self.console.print(line)

    def show_end(self, expected: ExpectedGroups) -> None:
        """Without a terminal, print the groups as they were at the end: in one they are there already."""
        if not self.console.is_terminal:
            self.console.print(groups_table(expected))


@dataclass(slots=True)
class ProgressStep:
    """The progress of one step. Call it with a line to show."""

    show: Callable[[str], None]
    #: A line is dropped where it comes sooner than this after the one before.
    pause_seconds: float = 0.0
    #: Printed when the step is done, if set.
    result: str | None = None
    shown_at: float = field(default_factory=time.monotonic)

    def __call__(self, line: str) -> None:
        if time.monotonic() - self.shown_at >= self.pause_seconds:
            self.shown_at = time.monotonic()
            self.show(line)


def alert_line(alert: ReceivedAlert) -> Text:
    """One alert as it reached the demo's webhook."""
    body = alert.body
    line = Text(f"{alert.at:%H:%M:%S} webhook ", style="dim")
    line.append_text(plain(body.get("event"))).append(" ").append_text(plain(body.get("severity"))).append(": ")
    return line.append_text(plain(body.get("summary"))).append("" if alert.signed else " (invalid signature)")


def groups_table(expected: ExpectedGroups) -> Table:
    """The demo's groups, one line each: expected status, shown status, and why."""
    table = Table(
        *(Column(name, no_wrap=True) for name in ("", "group", "expected", "shown")),
        *(Column(name, justify="right", no_wrap=True) for name in ("lag", "oldest")),
        "why",
        box=None,
        pad_edge=False,
        header_style="bold",
    )
    for group in expected.groups:
        row = group.row
        mark = Text("✓", style="green") if group.agrees else Text("…", style="dim")
        cells: list[RenderableType] = [mark, plain(group.scenario.group), Text(group.expected_words, style="dim")]
        if row is None:
            cells += [Text("—", style="dim"), "", "", in_one_line(plain(group.scenario.story))]
        else:
            oldest = duration(row["lag_seconds"], lower_bound=bool(row["lag_seconds_is_lower_bound"]))
            why = in_one_line(plain(row["sentence"]))
            cells += [status_text(row["status"], row["reason"]), count(row["lag"]), oldest, why]
        table.add_row(*cells)
    return table
