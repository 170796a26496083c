"""JSON output of commands: one document per line, for scripts."""

import json
from datetime import date, datetime
from pathlib import Path

import click

from lagwise.platform.timestamps import timestamp


def print_json(document: object, *, err: bool = False) -> None:
    """Print one JSON document on one line, on stdout or with ``err`` on stderr: times as ISO 8601 in UTC with a Z, no
    NaN, no control characters."""
    click.echo(
        json.dumps(document, default=_plain, allow_nan=False), err=err
    )  # ASCII: control characters come out escaped


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return timestamp(value)
    if isinstance(value, date | Path):
        return str(value)
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")
