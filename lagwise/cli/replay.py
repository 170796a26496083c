"""Recorded histories, judged again."""

from pathlib import Path

import click

from lagwise.cli.group import json_option


@click.command(short_help="Judge recorded histories again.")
@click.argument(
    "dirs", metavar="DIR…", nargs=-1, required=True, type=click.Path(exists=True, file_okay=False, path_type=Path)
)
@json_option("every evaluation, one object a line,")
@click.pass_context
def replay(context: click.Context, dirs: tuple[Path, ...], as_json: bool) -> None:
    """Run the analysis over recorded or constructed histories (traces).

    A trace is a folder of CSV files, with the truth beside them if it is known: docs/traces.md. Without --json, prints
    the share of the truth that was met and every miss, and exits 1 if there was one.

    \b
      lagwise replay tests/traces/*
      lagwise replay incident-42 --json > verdicts.jsonl
    """
    from lagwise import logs

    logs.configure("replay")
    from lagwise.replay import run

    context.exit(run(list(dirs), as_json))
