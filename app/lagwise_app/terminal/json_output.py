"""JSON output of commands: one document per line, for scripts."""

import json
from datetime import UTC, date, datetime
from pathlib import Path

import click


def print_json(document: object) -> None:
    """Print one JSON document on one line: times as ISO 8601 in UTC with a Z, no NaN, no control characters."""
    click.echo(json.dumps(document, default=_plain, allow_nan=False))  # ASCII: control characters come out escaped


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return timestamp(value)
    if isinstance(value, date | Path):
        return str(value)
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")


def timestamp(at: datetime) -> str:
    """A time as JSON shows it: ``2026-11-21T03:14:15.926Z``."""
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
