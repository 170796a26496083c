"""Recorded histories, judged again."""

from pathlib import Path

import click

from lagwise_app.cli.shared import json_option


@click.command(short_help="Judge recorded histories again.")
@click.argument("paths", metavar="DIR…", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@json_option("every evaluation, one object a line,")
@click.pass_context
def replay(context: click.Context, paths: tuple[Path, ...], as_json: bool) -> None:
    """Run the analysis over recorded or constructed histories (traces).

    A trace is a folder of CSV files, with the truth beside them if it is known: docs/traces.md. Of several paths those
    that are none are left out. Without --json, prints the share of the truth that was met and every miss, and exits 1
    if there was one.

    \b
      lagwise replay tests/traces/*
      lagwise replay incident-42 --json > verdicts.jsonl
    """
    from lagwise.platform import logs
    from lagwise.traces.trace import is_trace

    # `tests/traces/*` names what lies beside the traces, too; a single path is meant, and told what it lacks.
    dirs = [path for path in paths if is_trace(path)] if len(paths) > 1 else list(paths)
    if dirs and len(dirs) < len(paths):
        click.echo(f"{len(paths) - len(dirs)} of {len(paths)} paths are no traces and left out", err=True)
    if not dirs:
        raise click.UsageError("none of these is a trace: a folder with a trace.toml")
    logs.configure("replay")
    from lagwise_app.replay.verdicts import run

    context.exit(run(dirs, as_json))
