"""Writes docs/reference from the code, and the numbers of the alert message's JSON Schema.

The settings' models, the tables' declarations, the record of a group and the commands' help are the only sources.
``reference.py --check`` writes nothing and fails if a file is not current.
"""

import ast
import inspect
import itertools
import json
import re
import sys
import textwrap
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import settings_reference
from click.testing import CliRunner

from lagwise.links.parameter_types import Parameter

if TYPE_CHECKING:
    from lagwise.domain.facts import FactField

ROOT = Path(__file__).resolve().parents[1]
PAGES = ROOT / "docs" / "reference"
ALERT_SCHEMA = ROOT / "alerts" / "lagwise_alerts" / "notify" / "lagwise.alert.v1.schema.json"
JSON_OUTPUTS = ROOT / "scripts" / "json_outputs"
_WIDTH = 90
_GENERATED = "<!-- Written by `make docs`; do not edit. -->\n"


def tables() -> str:
    """Every table and column of the lake."""
    from lagwise.tables import ANALYSIS_TABLES, RAW_TABLES

    text = f"""{_GENERATED}
# Tables

Delta tables under `<data>/lake`, readable by any Delta reader (protocol versions 1 and 2, no features). All times are
UTC with microseconds. A table with a clock is partitioned by `day`, the UTC date of that column, and its old days
are deleted (`lake.retention` in the settings). A table without a clock holds the current state and is replaced as a
whole.

"""
    for heading, group in (("raw", RAW_TABLES), ("analysis", ANALYSIS_TABLES)):
        what = "samples of the collectors, append-only" if heading == "raw" else "results of the analysis"
        text += f"## {heading}: {what}\n\n"
        for table in group:
            clock = f"Clock: `{table.clock}`." if table.clock else "No clock: the current state."
            text += f"### {table.path}\n\nOne row per {table.rows}. {clock}\n\n"
            text += "| column | type | null | meaning |\n|---|---|---|---|\n"
            for column in table.columns:
                null = "yes" if column.nullable else "no"
                meaning = settings_reference.cell(column.meaning)
                text += f"| `{column.name}` | {_type(column.type)} | {null} | {meaning} |\n"
            text += "\n"
    return text.rstrip() + "\n"


def _type(arrow: Any) -> str:
    import pyarrow as pa

    if pa.types.is_list(arrow):
        return f"list of {_type(arrow.value_type)}"
    if pa.types.is_struct(arrow):
        return "struct of " + ", ".join(f"{f.name}: {_type(f.type)}" for f in arrow)
    return "timestamp" if pa.types.is_timestamp(arrow) else str(arrow)


def cli() -> str:
    """Every command's help, and what its --json prints."""
    from lagwise_app.cli import cli as commands

    text = f"""{_GENERATED}
# Commands

Exit codes: 0 success; 1 failure, explained on stderr with an [error code](../errors.md); 2 the command line is wrong.
What commands print with `--json` is stable: keys are added, never renamed or removed. Each prints one JSON document
on stdout (`replay` one a line); times are ISO 8601 in UTC with a `Z`, lengths of time are seconds, and what is not
known is `null`. A failure then is one JSON document on stderr: `{{"error": {{"code": "lake_newer", "message": "…"}}}}`;
`code` is `null` where there is none.

## lagwise

{_help([])}
"""
    for name, command in commands.commands.items():
        text += _section("##", [name])
        if isinstance(command, click.Group):
            text += "".join(_section("###", [name, below]) for below in command.commands)
    return text


def _section(heading: str, words: list[str]) -> str:
    """A command's help, and what its --json prints."""
    text = f"\n{heading} lagwise {' '.join(words)}\n\n{_help(words)}\n"
    fragment = JSON_OUTPUTS / f"{'-'.join(words)}.md"
    return text + (f"\n{fragment.read_text(encoding='utf-8').strip()}\n" if fragment.exists() else "")


def _help(arguments: list[str]) -> str:
    from lagwise_app.cli import cli as commands

    shown = CliRunner().invoke(commands, [*arguments, "--help"], prog_name="lagwise", terminal_width=_WIDTH)
    if shown.exit_code != 0:
        raise SystemExit(f"lagwise {' '.join(arguments)} --help failed: {shown.output}")
    return f"```text\n{shown.stdout.rstrip()}\n```"


def addresses() -> str:
    """Every page of the dashboard and every name in the query of its address."""
    from lagwise.links import pages, parameters

    text = f"""{_GENERATED}
# Addresses of the dashboard

What a page shows is in its address, so a link shows others the same. Names and values are quoted as in any address. A
name means the same on every page. A page reports a name in its address that it does not have, and a value that it does
not accept; it never silently shows something else.

## On every page

These select what is shown, how often it is refreshed and in which time zone. A page that does not use them keeps them
for the others: the menu passes them on.

{_parameters(parameters.KEPT)}
"""
    for page in pages.PAGES:
        own = [parameter for parameter in page.uses if parameter not in parameters.KEPT]
        used = [f"`{parameter.name}`" for parameter in page.uses if parameter in parameters.KEPT]
        text += f"\n## {page.title}\n\n{page.answers} For example `{pages.link(page, page.example)}`.\n"
        if used:
            text += f"\nIt uses {', '.join(used)}.\n"
        if own:
            text += f"\n{_parameters(own)}\n"
    return text


def _parameters(parameters: Iterable[Parameter[Any]]) -> str:
    rows = ["| name | may be | default | meaning |", "|---|---|---|---|"]
    for one in parameters:
        default = ", ".join(f"`{text}`" for text in one.write(one.default) if text)
        rows.append(f"| `{one.name}` | {one.allowed} | {default} | {settings_reference.cell(one.meaning)} |")
    return "\n".join(rows)


def log_events() -> str:
    """Every event that a JSON line of a log may name."""
    from lagwise.platform.log_events import LogEvent

    [defined] = ast.parse(textwrap.dedent(inspect.getsource(LogEvent))).body
    assert isinstance(defined, ast.ClassDef)
    text = f"""{_GENERATED}
# Events of the logs

The values of `event` in [JSON lines](../logs.md). Names are stable: an event may be added, and a release note
says when one goes.

| event | meaning |
|---|---|
"""
    for member, below in itertools.pairwise(defined.body):
        match member, below:
            case ast.Assign(value=ast.Constant(value=str(name))), ast.Expr(value=ast.Constant(value=str(meaning))):
                text += f"| `{name}` | {settings_reference.cell(meaning)} |\n"
    return text


def alert_schema() -> str:
    """The JSON Schema of the alert message, with the numbers that :class:`GroupNumbers` declares in the place of those
    that it has. The rest of it is written by hand."""
    from lagwise.domain.group_record import NUMBER_FACTS

    text = ALERT_SCHEMA.read_text(encoding="utf-8")
    schema = json.loads(text)
    sent = [field for field in NUMBER_FACTS if field.fact.sent is not None]
    names = list(schema["properties"])
    first, end = names.index("times_begun") + 1, names.index("worst_partition")
    kept = [name for name in schema["required"] if name not in names[first:end]]
    at = kept.index("worst_partition")
    required = ", ".join(json.dumps(name) for name in [*kept[:at], *(f.name for f in sent), *kept[at:]])
    lines = textwrap.fill(required, 116, initial_indent="    ", subsequent_indent="    ")
    text = re.sub(r'(?<="required": \[\n).*?(?=\n  \],)', lambda _: lines, text, count=1, flags=re.DOTALL)
    numbers = "".join(f'    "{f.name}": {json.dumps(_json_type(f), ensure_ascii=False)},\n' for f in sent)
    before, after = text.index(f'    "{names[first]}": '), text.index('    "worst_partition": ')
    return text[:before] + numbers + text[after:]


def _json_type(field: "FactField") -> dict[str, Any]:
    """What a number may be in the message; null is unknown."""
    if issubclass(field.type, StrEnum):
        return {"enum": [*(word.value for word in field.type), None], "description": field.fact.sent}
    words = {bool: "boolean", int: "integer", float: "number", str: "string"}
    smallest = {} if field.fact.minimum is None else {"minimum": field.fact.minimum}
    return {"type": [words[field.type], "null"], **smallest, "description": field.fact.sent}


def main(check: bool) -> int:
    """Write the files, or compare them. Returns the exit code."""
    files = {
        PAGES / "addresses.md": addresses(),
        PAGES / "cli.md": cli(),
        PAGES / "configuration.md": f"{_GENERATED}\n{settings_reference.page()}",
        PAGES / "lagwise.yaml": settings_reference.example(),
        PAGES / "log-events.md": log_events(),
        PAGES / "tables.md": tables(),
        ALERT_SCHEMA: alert_schema(),
    }
    stale = []
    for path, text in files.items():
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        stale.append(str(path.relative_to(ROOT)))
        if not check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    verb = "not current, run `make docs`:" if check else "written:"
    if stale:
        print(verb, ", ".join(stale))  # noqa: T201 (a command's output)
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv[1:]))
