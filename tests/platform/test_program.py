"""Hints name a command that works where they are read."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from lagwise.platform.program import program


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A script of that name in the virtual environment of a checkout, from which everything is started."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    made = tmp_path / ".venv" / "bin" / "lagwise"
    made.parent.mkdir(parents=True)
    made.write_text("#!/bin/sh\necho $0\n", encoding="ascii")
    made.chmod(0o755)
    return made


def test_what_is_not_on_the_path_is_called_by_its_own(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", [".venv/bin/lagwise", "demo"])
    assert program() == str(script)
    elsewhere = subprocess.run(program(), shell=True, cwd="/", capture_output=True, text=True, check=True)
    assert elsewhere.stdout.strip() == str(script)


def test_a_path_with_spaces_is_one_word(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spaced = script.parents[2] / "my work" / "lagwise"
    spaced.parent.mkdir()
    shutil.copy(script, spaced)
    monkeypatch.setattr(sys, "argv", [str(spaced)])
    said = subprocess.run(f"{program()} status", shell=True, capture_output=True, text=True, check=True)
    assert said.stdout.strip() == str(spaced)


@pytest.mark.parametrize("argument", ["lagwise", "absolute"])
def test_what_is_on_the_path_is_called_by_its_name(
    script: Path, monkeypatch: pytest.MonkeyPatch, argument: str
) -> None:
    monkeypatch.setenv("PATH", f"{script.parent}{os.pathsep}/usr/bin")
    monkeypatch.setattr(sys, "argv", [str(script) if argument == "absolute" else argument])
    monkeypatch.chdir(script.parent)
    assert program() == "lagwise"


def test_another_one_on_the_path_is_not_it(script: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    other = tmp_path / "other" / "lagwise"
    other.parent.mkdir()
    shutil.copy(script, other)
    monkeypatch.setenv("PATH", str(other.parent))
    monkeypatch.setattr(sys, "argv", [str(script)])
    assert program() == str(script)


def test_a_process_started_as_a_module_names_the_script_next_to_its_interpreter(
    script: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["/somewhere/lagwise/__main__.py", "collect"])
    monkeypatch.setattr(sys, "executable", str(script.with_name("python")))
    assert program() == str(script)
    script.unlink()
    assert program() == "lagwise"


def test_another_program_knows_no_better_than_the_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["/usr/lib/streamlit/__main__.py"])
    assert program() == "lagwise"
