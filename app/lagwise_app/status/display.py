"""The overview of ``lagwise status``: printed once, refreshed on a terminal, or as one line per change into a pipe."""

import itertools
import threading
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime

import click
from rich.console import Console
from rich.live import Live
from rich.text import Text

from lagwise.domain.humanise import plural
from lagwise_app.status.groups import Key, Row, overview
from lagwise_app.status.snapshots import SnapshotReader, StatusChange, StatusRequest, StatusSnapshot
from lagwise_app.status.table import ChangeMark, footer, table
from lagwise_app.terminal import output
from lagwise_app.terminal.safe_text import plain, status_text

#: Seconds between two reads of the lake.
REFRESH_SECONDS = 2.0
_LEGEND = "In the last minute: ▲ worse, ▼ better, + new. Times are UTC. Ctrl-C ends."


def watch(
    request: StatusRequest,
    console: Console,
    stop: threading.Event,
    *,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    every_seconds: float = REFRESH_SECONDS,
) -> None:
    """Show the state until ``stop`` is set. Raises LakeError if the first read of the lake fails."""
    reader = SnapshotReader(request)
    snapshot = reader.read(clock())
    if console.is_terminal:
        with Live(screen(snapshot, request, console), console=console, screen=True, auto_refresh=False) as live:
            while not stop.wait(every_seconds):
                live.update(screen(reader.read(clock()), request, console), refresh=True)
        return
    show(snapshot, request, console)
    before = snapshot
    while not stop.wait(every_seconds):
        snapshot = reader.read(clock())
        for line in change_lines(snapshot, before):
            console.print(line, soft_wrap=True)
        before = snapshot


def show(snapshot: StatusSnapshot, request: StatusRequest, console: Console) -> None:
    """Print the whole overview once."""
    found = overview(snapshot.groups, request.filters, everything=request.everything)
    for line in _freshness_lines(snapshot):
        console.print(line, soft_wrap=True)
    if found.rows:
        lines = table(found.rows, console)
        click.echo("\n".join([lines.header, *itertools.chain.from_iterable(lines.groups)]), color=console.is_terminal)
    console.print(footer(found, request.filters), soft_wrap=True)


def screen(snapshot: StatusSnapshot, request: StatusRequest, console: Console) -> Text:
    """As much of the overview as fits the terminal, with marks on changes of the last minute."""
    found = overview(snapshot.groups, request.filters, everything=request.everything, also=snapshot.recent)
    gone = [_change_line(change, snapshot.groups) for change in snapshot.recent.values() if change.after is None]
    top = _wrapped(_freshness_lines(snapshot), console)
    bottom = _wrapped([*gone, Text(footer(found, request.filters)), Text(_LEGEND, style="dim")], console)
    room = (
        console.height - len(top) - 1 - len(_more_groups_lines(len(found.rows), console)) - len(bottom)
    )  # 1: the header
    marks = {key: _mark(change) for key, change in snapshot.recent.items()}
    lines = table(found.rows[: max(0, room)], console, marks=marks)
    shown: list[str] = []
    fitting = 0
    for group in lines.groups:
        if len(shown) + len(group) > room:
            break
        shown += group
        fitting += 1
    more = _more_groups_lines(len(found.rows) - fitting, console)
    body = [Text.from_ansi(line) for line in (lines.header, *shown)] if found.rows else []
    return Text("\n").join([*top, *body, *more, *bottom])


def _more_groups_lines(groups: int, console: Console) -> list[Text]:
    line = Text(f"… and {plural(groups, 'more group')}: a taller window or a filter shows them", style="dim")
    return _wrapped([line], console) if groups else []


def _wrapped(texts: Iterable[Text], console: Console) -> list[Text]:
    """Texts broken into the lines of the terminal."""
    return [line for text in texts for line in text.wrap(console, console.width)]


def change_lines(snapshot: StatusSnapshot, before: StatusSnapshot) -> list[Text]:
    """The changes since the previous snapshot, one line each, with the time."""
    at = f"{snapshot.now:%H:%M:%S} "
    found = [_change_line(change, snapshot.groups) for change in snapshot.changes]
    if (snapshot.error is None) != (before.error is None) or _is_stale(snapshot) != _is_stale(before):
        found += _freshness_lines(snapshot)
    return [Text(at).append_text(line) for line in found]


def _is_stale(snapshot: StatusSnapshot) -> bool | None:
    return None if snapshot.fresh is None else snapshot.fresh.stale


def _freshness_lines(snapshot: StatusSnapshot) -> list[Text]:
    """The age of the data, or why it cannot be read."""
    if snapshot.fresh is None:
        line = Text("The lake cannot be read, so this is the state of the last read: ", style="bold yellow")
        return [line.append(snapshot.error or "")]
    return output.freshness_lines(snapshot.fresh)


def _mark(change: StatusChange) -> ChangeMark:
    if change.before is None:
        return ChangeMark("+", "bold", "(new)")
    sign, style = ("▲", "bold red") if change.is_worse else ("▼", "bold green")
    return ChangeMark(sign, style, f"(was {change.before} until {change.at:%H:%M:%S})")


def _change_line(change: StatusChange, groups: Mapping[Key, Row]) -> Text:
    cluster, group = change.key
    line = plain(group).append(" (").append_text(plain(cluster)).append(") ")
    was = f", was {change.before}" if change.before else ", new"
    if change.after is None:
        return line.append(f"is gone{was}")
    row = groups[change.key]
    line.append("is ").append_text(status_text(row["status"], row["reason"])).append(f"{was}: ")
    return line.append_text(plain(row["sentence"]))
