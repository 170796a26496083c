"""Names, statuses and offsets as safe text: neither rich nor the terminal interprets anything in them."""

from rich.text import Text

from lagwise.domain.humanise import DASH
from lagwise.domain.vocabulary import Status
from lagwise.platform.logs import clean

_STYLES = {
    Status.LOSING_DATA: "bold white on red",
    Status.AT_RISK: "bold red",
    Status.STOPPED: "bold red",
    Status.STALLED: "red",
    Status.REWOUND: "magenta",
    Status.FALLING_BEHIND: "yellow",
    Status.LAGGING: "yellow",
    Status.CATCHING_UP: "cyan",
    Status.OK: "green",
    Status.GHOST: "dim",
    Status.UNKNOWN: "blue",
}


def plain(value: object) -> Text:
    """Anything as text without markup or control characters; None is a dash."""
    return Text(DASH if value is None else clean(str(value)))


def in_one_line(text: Text) -> Text:
    """The text for the widest column of a table, cut at the edge of the terminal.

    The column itself must allow wrapping, or rich shrinks all columns of the table.
    """
    text.no_wrap, text.overflow = True, "ellipsis"
    return text


def status_text(status: str, reason: str | None = None) -> Text:
    """A status in its colour, with the reason of an unknown one."""
    word = f"{status}: {reason}" if reason else status
    return Text(clean(word), style=_STYLES[Status(status)] if status in set(Status) else "")


def full_number(number: int | None) -> str:
    """A number with all its digits, so that an offset can be compared with the output of other tools."""
    return DASH if number is None else f"{number:,}"
