"""What the demo shows while it runs: steps, then a live table; plain lines where there is no terminal."""

import contextlib
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from lagwise.domain.humanise import count, duration
from lagwise_app.demo.expectations import ExpectedGroup, Watch
from lagwise_app.demo.webhook_receiver import Received
from lagwise_app.supervisor.display import parts_table
from lagwise_app.supervisor.supervisor import ProcessState, ProcessStatus
from lagwise_app.terminal import output
from lagwise_app.terminal.safe_text import in_one_line, plain, status_text

#: Without a terminal, a step that takes long says so this often.
_PLAIN_SECONDS = 3.0
_ALERTS_SHOWN = 5


class DemoProgress:
    """Writes to stdout, or to stderr where stdout is for the JSON object."""

    def __init__(self, *, as_json: bool) -> None:
        self.console = output.console(sys.stderr if as_json else sys.stdout)
        self._live: Live | None = None
        self._told: dict[str, tuple[str, str | None]] = {}
        self._parts: dict[str, tuple[ProcessState, int]] = {}
        self._alerts_told = 0

    def say(self, line: str) -> None:
        """One line."""
        self.console.print(plain(line))

    @contextlib.contextmanager
    def step(self, what: str) -> Iterator["ProgressStep"]:
        """A step that takes time; its progress is told through the yielded object."""
        began = time.monotonic()
        with self._progress(what) as step:
            yield step
        self.console.print(
            Text("✓ ", style="green").append_text(plain(step.result or what)),
            Text(f"({duration(time.monotonic() - began)})", style="dim"),
        )

    @contextlib.contextmanager
    def _progress(self, what: str) -> Iterator["ProgressStep"]:
        if not self.console.is_terminal:
            yield _PlainStep(self, what)
            return
        with self.console.status(plain(f"{what} …")) as status:
            yield _LiveStep(status)

    @contextlib.contextmanager
    def live(self) -> Iterator[None]:
        """Inside, :meth:`show` draws over what it drew before, in a terminal."""
        if not self.console.is_terminal:
            yield
            return
        with Live(console=self.console, refresh_per_second=4, vertical_overflow="visible") as self._live:
            yield
        self._live = None

    def show(
        self, watch: Watch, elapsed: float, parts: Sequence[ProcessStatus], alerts: Sequence[Received], footer: str
    ) -> None:
        """The present state of everything."""
        if self._live is not None:
            shown: list[RenderableType] = [groups_table(watch), Text(""), parts_table(parts)]
            shown += [Text(""), *(alert_line(alert) for alert in alerts[-_ALERTS_SHOWN:])] if alerts else []
            right = sum(group.agrees for group in watch.groups)
            shown += [
                Text(f"\n{duration(int(elapsed))}: {right} of {len(watch.groups)} as expected. {footer}", style="dim")
            ]
            self._live.update(Group(*shown))
            return
        for part in parts:
            self._tell_part(part, elapsed)
        for group in watch.groups:
            if group.row is not None:
                self._tell_change(group, elapsed)
        for alert in alerts[self._alerts_told :]:
            self.console.print(alert_line(alert))
        self._alerts_told = len(alerts)

    def _tell_part(self, part: ProcessStatus, elapsed: float) -> None:
        """A part that is not running, or was started again: the others are as they were."""
        before = self._parts.get(part.name, (ProcessState.RUNNING, 0))
        self._parts[part.name] = now = (part.state, part.restarts)
        if now != before:
            self.console.print(Text(f"{elapsed:6.0f} s  ").append_text(plain(str(part))))

    def _tell_change(self, group: ExpectedGroup, elapsed: float) -> None:
        assert group.row is not None
        now = (group.row["status"], group.row["reason"])
        if self._told.get(group.scenario.group) == now:
            return
        self._told[group.scenario.group] = now
        line = Text(f"{elapsed:6.0f} s  ").append_text(plain(group.scenario.group)).append(" is ")
        line.append_text(status_text(*now))
        self.console.print(line if group.agrees else line.append(f" (expected {expected(group)})", style="dim"))


class ProgressStep:
    """The progress of one step. ``result``, if set, is what is said when it is done."""

    result: str | None = None

    def __call__(self, line: str) -> None:
        """Tell how far it is."""
        raise NotImplementedError


class _LiveStep(ProgressStep):
    def __init__(self, status: Any) -> None:
        self._status = status

    def __call__(self, line: str) -> None:
        self._status.update(plain(line))


class _PlainStep(ProgressStep):
    def __init__(self, stage: DemoProgress, what: str) -> None:
        self._stage = stage
        self._last = time.monotonic()
        self._what = what

    def __call__(self, line: str) -> None:
        if time.monotonic() - self._last >= _PLAIN_SECONDS:
            self._last = time.monotonic()
            self._stage.say(f"  {line}")


def expected(group: ExpectedGroup) -> str:
    """The statuses that are right for a group."""
    return " or ".join(group.expected)


def alert_line(alert: Received) -> Text:
    """One alert as it reached the demo's webhook."""
    body = alert.body
    line = Text(f"{alert.at:%H:%M:%S} webhook ", style="dim")
    line.append_text(plain(body.get("event"))).append(" ").append_text(plain(body.get("severity"))).append(": ")
    return line.append_text(plain(body.get("summary"))).append("" if alert.signed else " (signature is wrong)")


def groups_table(watch: Watch) -> Table:
    """The demo's groups, one line each: what is expected, what is shown, and why."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("", "group", "expected", "shown"):
        table.add_column(name, no_wrap=True)
    table.add_column("lag", justify="right", no_wrap=True)
    table.add_column("oldest", justify="right", no_wrap=True)
    table.add_column("why")
    for group in watch.groups:
        row = group.row
        mark = Text("✓", style="green") if group.agrees else Text("…", style="dim")
        cells: list[RenderableType] = [mark, plain(group.scenario.group), Text(expected(group), style="dim")]
        if row is None:
            cells += [Text("—", style="dim"), "", "", in_one_line(plain(group.scenario.story))]
        else:
            oldest = duration(row["lag_seconds"], lower_bound=bool(row["lag_seconds_is_lower_bound"]))
            why = in_one_line(plain(row["sentence"]))
            cells += [status_text(row["status"], row["reason"]), count(row["lag"]), oldest, why]
        table.add_row(*cells)
    return table
