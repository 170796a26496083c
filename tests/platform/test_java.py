"""Finding Java, and the advice where there is none."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from lagwise.platform.errors import MissingRequirement
from lagwise.platform.java import INSTALL_COMMANDS, find_java


def _executable(path: Path, prints: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho '{prints}' >&2\n")
    path.chmod(0o755)
    return path


def test_no_java_on_the_path_says_what_to_install(tmp_path: Path) -> None:
    with pytest.raises(
        MissingRequirement, match=r"^Lagwise needs Java 17 or newer, and there is no java on the PATH\. "
    ) as missing:
        find_java({"PATH": str(tmp_path)})
    message = str(missing.value)
    assert "\n" not in message
    assert {"Debian 12, Ubuntu", "Debian 13", "Fedora", "Alpine", "macOS"} == set(INSTALL_COMMANDS)
    assert all(f"{system}: {command}" in message for system, command in INSTALL_COMMANDS.items())


def test_java_home_without_a_java_is_named(tmp_path: Path) -> None:
    with pytest.raises(MissingRequirement, match=rf"JAVA_HOME is {tmp_path}, but there is no bin/java"):
        find_java({"JAVA_HOME": str(tmp_path), "PATH": os.environ["PATH"]})


@pytest.mark.parametrize(
    ("prints", "major"),
    [('java version "1.8.0_402"', 8), ('openjdk version "11.0.22" 2024-01-16', 11), ('openjdk version "16" 2021', 16)],
)
def test_an_old_java_is_refused_with_its_version(tmp_path: Path, prints: str, major: int) -> None:
    _executable(tmp_path / "bin" / "java", prints)
    with pytest.raises(MissingRequirement, match=rf"is Java {major}\. Install one"):
        find_java({"JAVA_HOME": str(tmp_path)})


@pytest.mark.parametrize("prints", ['openjdk version "17.0.15" 2025-04-15', 'openjdk version "21" 2023-09-19'])
def test_a_new_enough_java_is_taken(tmp_path: Path, prints: str) -> None:
    java = _executable(tmp_path / "bin" / "java", prints)
    assert find_java({"JAVA_HOME": str(tmp_path)}) == java
    assert find_java({"PATH": str(tmp_path / "bin")}) == java


def test_something_that_is_not_java_is_refused(tmp_path: Path) -> None:
    _executable(tmp_path / "bin" / "java", "hello")
    with pytest.raises(MissingRequirement, match="does not print a version"):
        find_java({"JAVA_HOME": str(tmp_path)})


@pytest.mark.process
@pytest.mark.parametrize(
    "command",
    ["demo", "demo --rocketmq", "up --bootstrap 127.0.0.1:9", "analyze --once", "sandbox"],
)
def test_a_command_that_needs_java_names_it_in_the_first_line(tmp_path: Path, command: str) -> None:
    """Also those whose processes would find out by themselves: their errors would end up in a log."""
    environment = {
        "PATH": str(tmp_path),
        "HOME": str(tmp_path),
        "LAGWISE_DATA": str(tmp_path / "data"),
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    ran = subprocess.run(
        [sys.executable, "-m", "lagwise", *command.split()],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == 1
    line, _, _ = next(one for one in ran.stderr.splitlines() if one.startswith("lagwise: ")).partition(". ")
    assert line == "lagwise: Lagwise needs Java 17 or newer, and there is no java on the PATH"
    assert "apk add openjdk21-jre-headless" in ran.stderr
    assert ran.stdout == ""
