"""Names, statuses and offsets as a terminal shows them: nothing in them is obeyed by rich's markup or the terminal."""

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
    """Anything as text that neither rich's markup nor a terminal obeys; None is a dash."""
    return Text(DASH if value is None else clean(str(value)))


def in_one_line(text: Text) -> Text:
    """The text for a table's widest column: cut where the terminal ends, so that no other column has to give way. The
    column itself must be free to wrap, or all columns of the table shrink alike."""
    text.no_wrap, text.overflow = True, "ellipsis"
    return text


def status_text(status: str, reason: str | None = None) -> Text:
    """A status word in its colour, with the reason of an unknown one."""
    word = f"{status}: {reason}" if reason else status
    return Text(clean(word), style=_STYLES[Status(status)] if status in set(Status) else "")


def full_number(number: int | None) -> str:
    """A whole number with all its digits, in groups of three: an offset is compared with what other tools print."""
    return DASH if number is None else f"{number:,}"
