"""What went wrong in Spark, in one line: its errors run over hundreds, and the telling one is far down."""

from typing import Any

from lagwise.platform.logs import clean

_TRACEBACK = "Traceback (most recent call last):"
_MAX_CHARACTERS = 300


def reason_of(error: Exception) -> str:
    """The telling line of an error, shortened: of one in a Python worker the last line of its traceback, else the first
    line; of one that came from the JVM, that of its innermost cause."""
    cause: Any = getattr(error, "java_exception", None)
    while cause is not None and cause.getCause() is not None:
        cause = cause.getCause()
    said = (str(error) if cause is None else str(cause.toString())).strip()
    line = _end_of_traceback(said) or said.partition("\n")[0].strip()
    return clean(line)[:_MAX_CHARACTERS] or type(error).__name__


def _end_of_traceback(text: str) -> str | None:
    """The line of the last traceback in a text that names the exception: the first one that is indented no more than
    its heading, as Spark indents what a worker wrote before it answered. None where there is no such line."""
    before, heading, after = text.rpartition(_TRACEBACK)
    if not heading:
        return None
    margin = _indent(before.rpartition("\n")[2] + heading)
    return next((line.strip() for line in after.splitlines() if line.strip() and _indent(line) <= margin), None)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
