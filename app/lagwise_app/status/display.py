"""The overview in a terminal, once or continuously: refreshed in place, or as lines of changes into a pipe."""

import itertools
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import click
from rich.console import Console
from rich.live import Live
from rich.text import Text

from lagwise.config import Config
from lagwise.domain.humanise import plural
from lagwise.platform.errors import LakeError
from lagwise.platform.logs import clean
from lagwise.tables.analysis import GROUP_STATUS
from lagwise.tables.store import Lake
from lagwise_app.status.changes import StatusChange, StatusChanges
from lagwise_app.status.groups import Key, ShownGroups, StatusFilters, overview
from lagwise_app.status.table import ChangeMark, footer, table
from lagwise_app.terminal import lake_queries, output
from lagwise_app.terminal.words import plain, status_text

#: Seconds between two looks at the lake.
LOOK_SECONDS = 2.0
#: How long a change stays marked.
MARKED_FOR = timedelta(minutes=1)
_LEGEND = "Within the last minute: ▲ worse, ▼ better, + new. Times are UTC. Ctrl-C ends."


@dataclass(frozen=True, slots=True)
class WatchedStatus:
    """What is watched, and what of it is shown."""

    lake: Lake
    config: Config
    filters: StatusFilters
    everything: bool = False

    def is_shown(self, change: StatusChange) -> bool:
        """Whether a change is of something that is, or was, asked for."""
        wanted = self.filters.statuses
        return not wanted or change.before in wanted or change.after in wanted


@dataclass(frozen=True, slots=True)
class StatusFrame:
    """The lake at ``now``. Where it cannot be read, ``trouble`` says why, and the groups are those of the look before.

    ``changes`` happened since the look before, ``recent`` ones within the last minute.
    """

    now: datetime
    groups: ShownGroups
    fresh: lake_queries.LakeFreshness | None
    changes: list[StatusChange]
    recent: dict[Key, StatusChange]
    trouble: str | None


class Looks:
    """Successive looks at the lake; groups are read again only if a newer version was written."""

    def __init__(self, watched: WatchedStatus) -> None:
        self._watched = watched
        # Of any status: a group that no longer has a wanted status has changed, too.
        self._filters = replace(watched.filters, statuses=frozenset())
        self._version: int | None = None
        self._groups: ShownGroups | None = None
        self._changes = StatusChanges(MARKED_FOR)

    def look(self, now: datetime) -> StatusFrame:
        """How it stands. Raises LakeError if that is not known from a look before either."""
        lake, found = self._watched.lake, list[StatusChange]()
        fresh, trouble = None, None
        try:
            version = lake.version(GROUP_STATUS)
            if self._groups is None or version != self._version:
                self._groups, self._version = ShownGroups.read(lake), version
                found = self._changes.see(self._groups.statuses(self._filters), now)
            fresh = lake_queries.freshness(lake, self._watched.config, now)
        except LakeError as error:
            if self._groups is None:
                raise
            trouble = clean(str(error))
        shown = [change for change in found if self._watched.is_shown(change)]
        recent = {k: change for k, change in self._changes.recent(now).items() if self._watched.is_shown(change)}
        return StatusFrame(now, self._groups, fresh, shown, recent, trouble)


def watch(
    watched: WatchedStatus,
    console: Console,
    stop: threading.Event,
    *,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    every_seconds: float = LOOK_SECONDS,
) -> None:
    """Show how it stands until ``stop`` is set. Raises LakeError if the lake cannot be read at the beginning."""
    looks = Looks(watched)
    look = looks.look(clock())
    if console.is_terminal:
        with Live(frame(look, watched, console), console=console, screen=True, auto_refresh=False) as live:
            while not stop.wait(every_seconds):
                live.update(frame(looks.look(clock()), watched, console), refresh=True)
        return
    show(look, watched, console)
    before = look
    while not stop.wait(every_seconds):
        look = looks.look(clock())
        for line in news(look, before):
            console.print(line, soft_wrap=True)
        before = look


def show(look: StatusFrame, watched: WatchedStatus, console: Console) -> None:
    """All of it, once."""
    found = overview(look.groups, watched.filters, everything=watched.everything)
    for line in _state(look):
        console.print(line, soft_wrap=True)
    if found.rows:
        lines = table(found.rows, console)
        click.echo("\n".join([lines.header, *itertools.chain.from_iterable(lines.groups)]), color=console.is_terminal)
    console.print(footer(found, watched.filters), soft_wrap=True)


def frame(look: StatusFrame, watched: WatchedStatus, console: Console) -> Text:
    """As much of it as the terminal has room for, with marks on what changed within the last minute."""
    found = overview(look.groups, watched.filters, everything=watched.everything, also=look.recent)
    gone = [_sentence(change, look.groups) for change in look.recent.values() if change.after is None]
    top = _wrapped(_state(look), console)
    bottom = _wrapped([*gone, Text(footer(found, watched.filters)), Text(_LEGEND, style="dim")], console)
    room = console.height - len(top) - 1 - len(_left_out(len(found.rows), console)) - len(bottom)  # 1: the header
    marks = {key: _mark(change) for key, change in look.recent.items()}
    lines = table(found.rows[: max(0, room)], console, marks=marks)
    shown: list[str] = []
    fitting = 0
    for group in lines.groups:
        if len(shown) + len(group) > room:
            break
        shown += group
        fitting += 1
    more = _left_out(len(found.rows) - fitting, console)
    body = [Text.from_ansi(line) for line in (lines.header, *shown)] if found.rows else []
    return Text("\n").join([*top, *body, *more, *bottom])


def _left_out(groups: int, console: Console) -> list[Text]:
    line = Text(f"… and {plural(groups, 'more group')}: a taller window or a filter shows them", style="dim")
    return _wrapped([line], console) if groups else []


def _wrapped(texts: Iterable[Text], console: Console) -> list[Text]:
    """Texts as the lines that they take on the terminal."""
    return [line for text in texts for line in text.wrap(console, console.width)]


def news(look: StatusFrame, before: StatusFrame) -> list[Text]:
    """What is different from the look before, in lines that say when."""
    at = f"{look.now:%H:%M:%S} "
    found = [_sentence(change, look.groups) for change in look.changes]
    if (look.trouble is None) != (before.trouble is None) or _is_stale(look) != _is_stale(before):
        found += _state(look)
    return [Text(at).append_text(line) for line in found]


def _is_stale(look: StatusFrame) -> bool | None:
    return None if look.fresh is None else look.fresh.stale


def _state(look: StatusFrame) -> list[Text]:
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


def _sentence(change: StatusChange, groups: ShownGroups) -> Text:
    cluster, group = change.key
    line = plain(group).append(" (").append_text(plain(cluster)).append(") ")
    was = f", was {change.before}" if change.before else ", new"
    if change.after is None:
        return line.append(f"is gone{was}")
    row = groups.row(change.key)
    line.append("is ").append_text(status_text(row["status"], row["reason"])).append(f"{was}: ")
    return line.append_text(plain(row["sentence"]))
