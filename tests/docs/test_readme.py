"""Commands, options, targets and settings in the README and the docs exist."""

import re
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from lagwise.config import load_config
from lagwise_app.cli import cli

ROOT = Path(__file__).resolve().parents[2]


def blocks(path: Path) -> list[str]:
    """The commands in the shell blocks of a page, one a line, without prompts and comments."""
    text = path.read_text(encoding="utf-8")
    found = re.findall(r"```(?:sh|bash|console|shell)\n(.*?)```", text, re.DOTALL)
    lines = (line.removeprefix("$ ").partition(" #")[0].strip() for block in found for line in block.splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def pages() -> list[Path]:
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def targets() -> set[str]:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    return set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))


def commands_of(program: str) -> list[tuple[str, str]]:
    return [
        (str(path.relative_to(ROOT)), line)
        for path in pages()
        if path != ROOT / "docs" / "reference" / "cli.md"
        for line in blocks(path)
        if line.split()[0].rpartition("/")[2] == program
    ]


def options_of(words: list[str]) -> set[str]:
    """The options of the command that a line names, which may be one below another (`alert test-channel`)."""
    command: click.Command = cli
    for word in words:
        if not isinstance(command, click.Group) or word not in command.commands:
            break
        command = command.commands[word]
    return {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}


def test_the_first_screen_has_the_two_commands() -> None:
    shown = blocks(ROOT / "README.md")
    assert "make demo" in shown
    assert "make test" in shown


@pytest.mark.parametrize(("page", "line"), commands_of("make"))
def test_every_make_target_exists(page: str, line: str) -> None:
    words = [word for word in line.split()[1:] if "=" not in word and not word.startswith("-")]
    assert words
    assert set(words[:1]) <= targets(), f"{page}: {line}"


@pytest.mark.parametrize(("page", "line"), commands_of("lagwise"))
def test_every_lagwise_command_and_option_exists(page: str, line: str) -> None:
    words = line.split("|")[0].split()[1:]
    while words and words[0].startswith("-"):
        words = words[2:] if words[0] == "--config" else words[1:]
    if not words:
        return
    assert words[0] in cli.commands, f"{page}: there is no `lagwise {words[0]}`"
    known = options_of(words)
    used = {word.partition("=")[0] for word in words if word.startswith("--")}
    assert used <= known | {"--help"}, f"{page}: {line}"


def settings_examples() -> list[tuple[str, str]]:
    """The YAML in the README and in the guides, all of which is settings."""
    examples = [
        (str(page.relative_to(ROOT)), text)
        for page in (ROOT / "README.md", *sorted((ROOT / "docs" / "guides").glob("*.md")))
        for text in re.findall(r"```yaml\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    ]
    assert {page for page, _ in examples} >= {"README.md", "docs/guides/get-paged.md"}
    return examples


@pytest.mark.parametrize(("page", "example"), settings_examples())
def test_the_settings_of_the_examples_can_be_used(page: str, example: str, tmp_path: Path) -> None:
    path = tmp_path / "lagwise.yaml"
    path.write_text(example, encoding="utf-8")
    config = load_config(path, environment={})
    assert config.clusters or config.alerts.channels, page


def test_the_makefile_s_targets_are_explained() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    explained = set(re.findall(r"^([a-z-]+):.*## .", makefile, re.MULTILINE))
    assert explained == targets()
    assert {"help", "setup", "demo", "test", "test-fast", "test-long", "check", "bench", "docs", "clean"} <= explained


def test_ci_runs_what_the_readme_names() -> None:
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert re.search(r"^make check$", script, re.MULTILINE)
    assert re.search(r"\bmake test$", script, re.MULTILINE)


def test_the_examples_in_help_can_be_parsed() -> None:
    """Every `lagwise …` line in a command's help names options that the command has."""
    below = [[name, one] for name, c in cli.commands.items() if isinstance(c, click.Group) for one in c.commands]
    for words in [*([name] for name in cli.commands), *below]:
        text = CliRunner().invoke(cli, [*words, "--help"], prog_name="lagwise", terminal_width=200).stdout
        for line in re.findall(rf"^\s+lagwise ({words[0]}\b.*)$", text, re.MULTILINE):
            known = options_of(line.split())
            used = set(
                re.findall(r"(?<=\s)(--[a-z][a-z0-9-]*)", line.partition("|")[0].partition(" #")[0].partition(" >")[0])
            )
            assert used <= known, f"{words}: {line}"
