"""The table of groups as lines of text, and the line below it that counts the groups.

Built without rich's table, which takes half a millisecond per row.
"""

import io
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from lagwise.domain.humanise import count, duration, plural
from lagwise.domain.vocabulary import DISPLAY_ORDER, Status
from lagwise.platform.logs import clean
from lagwise_app.status.groups import Key, Overview, StatusFilters
from lagwise_app.terminal.safe_text import status_text

_GAP = "  "
#: Minimum width of the sentence. On a narrower terminal it starts on a line of its own.
_MIN_SENTENCE_COLUMNS = 30
_INDENT = "    "


@dataclass(frozen=True, slots=True)
class ChangeMark:
    """The mark of a recent change: a sign before the row of the group, and words before its sentence."""

    sign: str
    style: str
    words: str


@dataclass(frozen=True, slots=True)
class TableLines:
    """The table: its header, and the lines of each group."""

    header: str
    groups: Sequence[Sequence[str]]


def table(
    rows: Sequence[Mapping[str, Any]], console: Console, *, marks: Mapping[Key, ChangeMark] | None = None
) -> TableLines:
    """The groups as lines, coloured where ``console`` is a terminal.

    On a terminal, sentences wrap. Elsewhere each group is one line, however long. With ``marks`` (even if empty), all
    rows are indented by the width of a mark.
    """
    several = len({row["cluster"] for row in rows}) > 1
    names = ["status", *(["cluster"] if several else []), "group", "lag", "oldest"]
    painter = _Painter(console)
    words = [painter.status(row["status"], row["reason"]) for row in rows]
    cells = [[word, *_cells(row, with_cluster=several)] for row, (word, _) in zip(rows, words, strict=True)]
    is_terminal = console.is_terminal
    longest = console.width // 3 if is_terminal else None
    widths = [_width(column, longest) for column in zip(names, *cells, strict=True)]
    margin = "" if marks is None else "  "
    left = len(margin) + sum(widths) + len(_GAP) * len(widths)
    groups = []
    for row, (word, coloured), (_, *others) in zip(rows, words, cells, strict=True):
        mark = (marks or {}).get((row["cluster"], row["group"]))
        sentence = f"{mark.words} {clean(row['sentence'])}" if mark else clean(row["sentence"])
        head = painter.paint(f"{mark.sign} ", mark.style) if mark else margin
        head += coloured + " " * (widths[0] - cell_len(word))
        head += _GAP + _in_columns(others, widths[1:])
        if is_terminal:
            is_wide = any(cell_len(cell) > width for cell, width in zip((word, *others), widths, strict=True))
            groups.append(_wrapped_row(head, sentence, left, console.width, alone=is_wide))
        else:
            groups.append([f"{head}{_GAP}{sentence}"])
    return TableLines(painter.paint(margin + _in_columns(names, widths) + _GAP + "why", "bold"), groups)


def _wrapped_row(head: str, sentence: str, left: int, width: int, *, alone: bool) -> list[str]:
    """A row with its sentence wrapped; below the other cells where it is ``alone`` or there is no room."""
    if width - left < _MIN_SENTENCE_COLUMNS:
        return [head.rstrip(), *(_INDENT + line for line in _wrapped_sentence(sentence, max(width - len(_INDENT), 1)))]
    first, *rest = _wrapped_sentence(sentence, width - left)
    return [
        *([head.rstrip(), " " * left + first] if alone else [f"{head}{_GAP}{first}"]),
        *(" " * left + r for r in rest),
    ]


def footer(found: Overview, filters: StatusFilters) -> str:
    """How many groups there are, and the statuses of those that are not shown."""
    if not found.total:
        return "No group has been analysed yet."
    if not found.matching:
        return f"None of {plural(found.total, 'group')} matches."
    groups, of = plural(found.matching, "group"), ""
    if filters.are_set:
        groups, of = plural(found.matching, "matching group"), f" ({found.total:,} in all)"
    if found.wanted == found.matching:
        return f"{groups}{of}."
    kinds = ", ".join(
        f"{number:,} {status}{' without members' if status == Status.UNKNOWN else ''}"
        for status in DISPLAY_ORDER
        if (number := found.hidden.get(status, 0))
    )
    not_shown = f" Not shown: {kinds} (--all shows them)." if kinds else ""
    if not found.wanted:
        return f"None of {groups} needs attention{of}.{not_shown}"
    return f"{found.wanted:,} of {groups} {'needs' if found.wanted == 1 else 'need'} attention{of}.{not_shown}"


class _Painter:
    """Text with the terminal's colour codes, made by rich once per status.

    Uses a console of its own, because a console in a live display draws its output around that display.
    """

    def __init__(self, console: Console) -> None:
        system = console.color_system
        self._console = Console(file=io.StringIO(), force_terminal=console.is_terminal, color_system=system)  # type: ignore[arg-type]  # as it says it itself
        self._painted: dict[tuple[str, str | None], tuple[str, str]] = {}

    def status(self, status: str, reason: str | None) -> tuple[str, str]:
        """A status word: plain, and in its colour."""
        if (status, reason) not in self._painted:
            text = status_text(status, reason)
            self._painted[status, reason] = text.plain, self._as_printed(text)
        return self._painted[status, reason]

    def paint(self, text: str, style: str) -> str:
        """Text in a style."""
        return self._as_printed(Text(text, style=style))

    def _as_printed(self, text: Text) -> str:
        with self._console.capture() as captured:
            self._console.print(text, end="", soft_wrap=True)
        return captured.get()


def _cells(row: Mapping[str, Any], *, with_cluster: bool) -> list[str]:
    return [
        *([clean(row["cluster"])] if with_cluster else []),
        clean(row["group"]),
        count(row["lag"]),
        duration(row["lag_seconds"], lower_bound=bool(row["lag_seconds_is_lower_bound"])),
    ]


def _width(cells: Collection[str], longest: int | None) -> int:
    """The width of the widest cell; cells wider than ``longest`` do not count."""
    widths = [cell_len(cell) for cell in cells]
    return max((w for w in widths if longest is None or w <= longest), default=longest or 0)


def _in_columns(cells: Sequence[str], widths: Sequence[int]) -> str:
    """Cells in columns; the last two (numbers) are right-aligned."""
    gaps = [" " * (width - cell_len(cell)) for cell, width in zip(cells, widths, strict=True)]
    texts = [cell + gap for cell, gap in zip(cells[:-2], gaps, strict=False)]
    numbers = [gap + cell for cell, gap in zip(cells[-2:], gaps[-2:], strict=True)]
    return _GAP.join([*texts, *numbers])


def _wrapped_sentence(sentence: str, width: int) -> list[str]:
    """The sentence in lines of at most ``width`` columns. A longer word has a line of its own."""
    lines: list[str] = []
    taken = width
    for word in sentence.split(" "):
        wide = cell_len(word)
        if taken + 1 + wide > width:
            lines.append(word)
            taken = wide
        else:
            lines[-1] += f" {word}"
            taken += 1 + wide
    return lines
