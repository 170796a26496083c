"""The overview in a terminal, once or continuously: refreshed in place, or as lines of changes into a pipe."""

import itertools
import threading
from collections.abc import Callable, Iterable
from datetime import UTC, datetime

import click
from rich.console import Console
from rich.live import Live
from rich.text import Text

from lagwise.domain.humanise import plural
from lagwise_app.status.groups import ShownGroups, overview
from lagwise_app.status.snapshots import SnapshotReader, StatusChange, StatusRequest, StatusSnapshot
from lagwise_app.status.table import ChangeMark, footer, table
from lagwise_app.terminal import output
from lagwise_app.terminal.safe_text import plain, status_text

#: Seconds between two looks at the lake.
REFRESH_SECONDS = 2.0
_LEGEND = "Within the last minute: ▲ worse, ▼ better, + new. Times are UTC. Ctrl-C ends."


def watch(
    watched: StatusRequest,
    console: Console,
    stop: threading.Event,
    *,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    every_seconds: float = REFRESH_SECONDS,
) -> None:
    """Show how it stands until ``stop`` is set. Raises LakeError if the lake cannot be read at the beginning."""
    looks = SnapshotReader(watched)
    look = looks.look(clock())
    if console.is_terminal:
        with Live(screen(look, watched, console), console=console, screen=True, auto_refresh=False) as live:
            while not stop.wait(every_seconds):
                live.update(screen(looks.look(clock()), watched, console), refresh=True)
        return
    show(look, watched, console)
    before = look
    while not stop.wait(every_seconds):
        look = looks.look(clock())
        for line in change_lines(look, before):
            console.print(line, soft_wrap=True)
        before = look


def show(look: StatusSnapshot, watched: StatusRequest, console: Console) -> None:
    """All of it, once."""
    found = overview(look.groups, watched.filters, everything=watched.everything)
    for line in _freshness_lines(look):
        console.print(line, soft_wrap=True)
    if found.rows:
        lines = table(found.rows, console)
        click.echo("\n".join([lines.header, *itertools.chain.from_iterable(lines.groups)]), color=console.is_terminal)
    console.print(footer(found, watched.filters), soft_wrap=True)


def screen(look: StatusSnapshot, watched: StatusRequest, console: Console) -> Text:
    """As much of it as the terminal has room for, with marks on what changed within the last minute."""
    found = overview(look.groups, watched.filters, everything=watched.everything, also=look.recent)
    gone = [_change_line(change, look.groups) for change in look.recent.values() if change.after is None]
    top = _wrapped(_freshness_lines(look), console)
    bottom = _wrapped([*gone, Text(footer(found, watched.filters)), Text(_LEGEND, style="dim")], console)
    room = (
        console.height - len(top) - 1 - len(_more_groups_lines(len(found.rows), console)) - len(bottom)
    )  # 1: the header
    marks = {key: _mark(change) for key, change in look.recent.items()}
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
    """Texts as the lines that they take on the terminal."""
    return [line for text in texts for line in text.wrap(console, console.width)]


def change_lines(look: StatusSnapshot, before: StatusSnapshot) -> list[Text]:
    """What is different from the look before, in lines that say when."""
    at = f"{look.now:%H:%M:%S} "
    found = [_change_line(change, look.groups) for change in look.changes]
    if (look.trouble is None) != (before.trouble is None) or _is_stale(look) != _is_stale(before):
        found += _freshness_lines(look)
    return [Text(at).append_text(line) for line in found]


def _is_stale(look: StatusSnapshot) -> bool | None:
    return None if look.fresh is None else look.fresh.stale


def _freshness_lines(look: StatusSnapshot) -> list[Text]:
    """How old the data is, or why it cannot be read."""
    if look.fresh is None:
        line = Text("The lake cannot be read; this is the last known state: ", style="bold yellow")
        return [line.append(look.trouble or "")]
    return output.freshness_lines(look.fresh)


def _mark(change: StatusChange) -> ChangeMark:
    if change.before is None:
        return ChangeMark("+", "bold", "(new)")
    sign, style = ("▲", "bold red") if change.is_worse else ("▼", "bold green")
    return ChangeMark(sign, style, f"(was {change.before} until {change.at:%H:%M:%S})")


def _change_line(change: StatusChange, groups: ShownGroups) -> Text:
    cluster, group = change.key
    line = plain(group).append(" (").append_text(plain(cluster)).append(") ")
    was = f", was {change.before}" if change.before else ", new"
    if change.after is None:
        return line.append(f"is gone{was}")
    row = groups.row(change.key)
    line.append("is ").append_text(status_text(row["status"], row["reason"])).append(f"{was}: ")
    return line.append_text(plain(row["sentence"]))
