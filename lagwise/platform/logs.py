"""Logging for every process: one line per record on stderr, in UTC, harmless to a terminal, without secrets.

The line is text for people, or a JSON object for programs.

Expected trouble is one line. A defect (a record with an exception) is followed by its stack trace, for the developer
who fixes it.

Names of topics, groups and clients are written by strangers. A newline in one would forge a log line, a terminal
escape could rewrite what is on the screen: both are shown as escapes (``\\n``, ``\\x1b``) instead.
"""

import json
import logging
import os
import sys
import threading
import traceback
import unicodedata
from datetime import UTC, datetime
from typing import Any

from lagwise.platform.errors import LagwiseError, with_code
from lagwise.platform.log_events import ATTRIBUTE
from lagwise.platform.secrets import redact

#: Set (to anything but 0) by ``lagwise --debug``: debug messages, and a command that fails shows its stack trace.
#: Not a setting: it changes no result.
DEBUG_VARIABLE = "LAGWISE_DEBUG"

_NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
#: Control, format (bidirectional overrides, zero width), surrogate, private and unassigned characters, line separators.
_UNSAFE_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def escape(text: str) -> str:
    """Text on one line in which nothing but visible characters and spaces is left; the rest is shown as an escape."""
    if text.isprintable():
        return text
    return "".join(_NAMED.get(c) or _escape_one(c) for c in text)


def _escape_one(character: str) -> str:
    if unicodedata.category(character) not in _UNSAFE_CATEGORIES:
        return character
    if ord(character) <= 127:
        return f"\\x{ord(character):02x}"
    return character.encode("ascii", "backslashreplace").decode("ascii")


def debugging() -> bool:
    """Whether debug output was asked for."""
    return os.environ.get(DEBUG_VARIABLE, "0") not in ("", "0")


class OneLine(logging.Formatter):
    """``2026-11-21T03:14:15.926Z collector WARNING lagwise.kafka: message``, whatever the message holds."""

    def __init__(self, process: str) -> None:
        super().__init__()
        self._process = process

    def format(self, record: logging.LogRecord) -> str:
        """The record as one line; an exception's trace follows on lines of its own, each indented."""
        said = with_code(clean(_message(record)), _code(record))
        line = f"{_at(record)} {self._process} {record.levelname} {record.name}: {said}"
        if record.exc_info and record.exc_info[1] is not None:
            error = record.exc_info[1]
            line += f" [{type(error).__name__}: {clean(str(error))}]"
            trace = self.formatException(record.exc_info)
            line += "".join(f"\n    {clean(row)}" for row in trace.splitlines())
        return line


class JsonLine(logging.Formatter):
    """One JSON object a line: ``time``, ``level``, ``process``, ``logger``, ``event``, ``message``, the fields of the
    event, the ``code`` of an error that a person can mend, and for a defect ``error`` (its type and message) and
    ``trace`` (a list of lines).

    ``event`` is null in the records of other people's libraries.
    """

    def __init__(self, process: str) -> None:
        super().__init__()
        self._process = process

    def format(self, record: logging.LogRecord) -> str:
        """The record as JSON in ASCII, redacted: no name in it can end the line."""
        fields: dict[str, Any] = getattr(record, ATTRIBUTE, {"event": None})
        line = {
            "time": _at(record),
            "level": record.levelname,
            "process": self._process,
            "logger": record.name,
            **{name: redact(value) if isinstance(value, str) else value for name, value in fields.items()},
            "message": redact(_message(record)),
        }
        if (code := _code(record)) is not None:
            line["code"] = code
        if record.exc_info and record.exc_info[1] is not None:
            error = record.exc_info[1]
            line["error"] = {"type": type(error).__name__, "message": redact(str(error))}
            line["trace"] = [redact(row) for row in self.formatException(record.exc_info).splitlines()]
        return json.dumps(line, default=str)


def _at(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


def message_of(line: str) -> str:
    """What people should see of a line of a log: the message of a JSON object, any other line as it is."""
    if line.startswith("{"):
        try:
            return str(json.loads(line)["message"])
        except (ValueError, KeyError, TypeError):
            pass
    return line


def clean(text: str) -> str:
    """Text that may be shown: passwords of URLs redacted, control characters escaped, on one line."""
    return escape(redact(text))


def configure(process: str, *, as_json: bool = False) -> None:
    """Send this process's log records to stderr under its name, as text or JSON. May be called again; the last wins.

    INFO and above, of other people's libraries WARNING and above; everything with ``LAGWISE_DEBUG=1``.
    """
    debug = debugging()
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLine(process) if as_json else OneLine(process))
    root = logging.getLogger()
    for old in list(root.handlers):
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(logging.DEBUG if debug else logging.WARNING)
    logging.getLogger("lagwise").setLevel(logging.DEBUG if debug else logging.INFO)
    logging.captureWarnings(capture=True)


def redact_uncaught_errors() -> None:
    """Redact the traces of uncaught errors as log lines are redacted. To be called once, as a process starts.

    The interpreter itself would print errors as they are, with the addresses and settings that they quote.
    """
    sys.excepthook = lambda _kind, error, _trace: _print_trace("", error)
    threading.excepthook = lambda args: _print_trace(f"in {args.thread and args.thread.name}: ", args.exc_value)
    sys.unraisablehook = lambda args: _print_trace(f"{args.err_msg or 'ignored'}: ", args.exc_value)


def _print_trace(where: str, error: BaseException | None) -> None:
    if error is None or isinstance(error, SystemExit) or sys.stderr is None:
        return
    text = where + "".join(traceback.format_exception(error))
    sys.stderr.write("".join(f"{clean(line)}\n" for line in text.splitlines()))
    sys.stderr.flush()


def _code(record: logging.LogRecord) -> str | None:
    """The code of the error that a record is about: as a field of its event, or of an error that the message quotes."""
    fields: dict[str, Any] = getattr(record, ATTRIBUTE, {})
    if fields.get("over"):
        return None
    quoted = record.args if isinstance(record.args, tuple) else ()
    found = [error.code for error in quoted if isinstance(error, LagwiseError)]
    return fields.get("code") or next((code.value for code in found if code is not None), None)


def _message(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except (TypeError, ValueError) as error:  # a log call whose arguments do not fit must not end the program
        return f"{record.msg} {record.args!r} (unformattable: {error})"
