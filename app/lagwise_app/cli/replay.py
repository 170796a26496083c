"""``lagwise replay``: the analysis over recorded histories."""

from pathlib import Path

import click

from lagwise_app.cli.shared import json_option


@click.command(short_help="Run the analysis over recorded histories.")
@click.argument("paths", metavar="DIR…", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@json_option("every evaluation", "One object per line.")
@click.pass_context
def replay(context: click.Context, paths: tuple[Path, ...], as_json: bool) -> None:
    """Run the analysis over recorded or constructed histories (traces).

    A trace is a folder of CSV files, with the true statuses where they are known: docs/traces.md. Where several paths
    are given, those that are not traces are skipped. Without --json, prints the share of the truth that was met,
    of how many evaluations each row of truth.csv was, and every miss. Of traces without a truth it prints the statuses.
    Exits with 1 if there was a miss.

    The share counts evaluations: each counts for every row of the truth that speaks of its time, once for the group or
    partition of that row, and is met if the status shown is one of those that the row allows. --json has what was
    shown at each evaluation, and not the truth.

    \b
      lagwise replay tests/traces/*
      lagwise replay incident-42 --json > verdicts.jsonl
    """
    from lagwise.platform import logs
    from lagwise.traces.trace import is_trace

    # A pattern such as `tests/traces/*` also matches other files. A single path gets an error that says what it lacks.
    dirs = [path for path in paths if is_trace(path)] if len(paths) > 1 else list(paths)
    if dirs and len(dirs) < len(paths):
        click.echo(f"{len(paths) - len(dirs)} of {len(paths)} paths skipped: not a trace", err=True)
    if not dirs:
        raise click.UsageError("no path is a trace (a folder with a trace.toml)")
    logs.configure("replay")
    from lagwise_app.replay.verdicts import run

    context.exit(run(dirs, as_json))
