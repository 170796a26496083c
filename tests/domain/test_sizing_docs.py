"""docs/sizing.md cannot lie: its commands are run, and its numbers are calculated again."""

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from lagwise.domain.sizing.formulas import straight_line_rate_per_second
from lagwise.domain.sizing.node_throughput import node_throughput
from lagwise.domain.sizing.triple_search import Binding
from lagwise_app.cli.size import OPTIONS, size

PAGE = (Path(__file__).parents[2] / "docs" / "sizing.md").read_text(encoding="utf-8")
CONSOLE = re.findall(r"```console\n\$ (.*?)\n(.*?)```", PAGE, re.DOTALL)


def _lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.strip().splitlines()]


@pytest.mark.parametrize(("command", "output"), CONSOLE)
def test_every_command_prints_what_the_page_shows(command: str, output: str) -> None:
    program, subcommand, *options = shlex.split(command)
    assert (program, subcommand) == ("lagwise", "size")
    result = CliRunner().invoke(size, options)
    assert result.exit_code == 0
    assert _lines(result.output) == _lines(output)


def test_there_are_commands() -> None:
    assert len(CONSOLE) == 2


def test_the_measured_table_is_the_models() -> None:
    rows = re.findall(r"^\| (\d+) \| (\d+) \| (\d+) \| (\d+) \|$", PAGE, re.MULTILINE)
    assert [int(row[0]) for row in rows] == [1, 4, 8, 10, 15, 20]
    for threads, measured, model, lines in (map(int, row) for row in rows):
        rate = node_throughput(2, threads, 0.0163, 0.0045).rate_per_second
        assert round(rate) == model
        assert round(straight_line_rate_per_second(2, threads, 0.0163, 0.0045)) == lines
        assert 0.99 * measured <= rate <= 1.06 * measured
    knee = node_throughput(2, 9, 0.0163, 0.0045)
    assert round(100 * knee.core_utilisation) == 84


def test_every_option_and_every_binding_is_named() -> None:
    # The inputs that the letters, the demand and the first example explain need no mention of their own.
    for option in set(OPTIONS.values()) - {"--lag"}:
        assert option in PAGE, option
    for binding in Binding:
        assert f"| `{binding}` |" in PAGE, binding


def test_the_example_with_47_threads() -> None:
    from lagwise.domain.sizing.formulas import busiest_share

    assert busiest_share(48, 47, 1 / 48) == busiest_share(48, 24, 1 / 48) > busiest_share(48, 48, 1 / 48)
