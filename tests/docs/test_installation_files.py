"""The container's files and the units of systemd: linted, locked, and true about the program."""

import configparser
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from lagwise import __version__
from lagwise.platform.health import ASSISTANTS, COMMANDS
from lagwise_app.cli import cli

ROOT = Path(__file__).resolve().parents[2]
CONTAINER = ROOT / "deploy" / "container"
CONTAINERFILE = (CONTAINER / "Containerfile").read_text(encoding="utf-8")
INSTALL = CONTAINER / "install.sh"
SYSTEMD = ROOT / "deploy" / "systemd"
UNITS = sorted(SYSTEMD.glob("*.service"))


def locked() -> dict[str, str]:
    """The version of every package in the lock file."""
    text = (CONTAINER / "requirements.txt").read_text(encoding="utf-8")
    return dict(re.findall(r"^([a-z0-9-]+)(?:\[[a-z,]+\])?==(\S+) ", text, re.MULTILINE))


def test_the_containerfile_has_no_lint() -> None:
    hadolint = Path(sys.executable).with_name("hadolint")
    ran = subprocess.run([hadolint, CONTAINER / "Containerfile"], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (0, "")


def test_the_image_is_pinned_and_not_root() -> None:
    bases = re.findall(r"^FROM (\S+)", CONTAINERFILE, re.MULTILINE)
    assert len(bases) == 2 and len(set(bases)) == 1
    assert re.fullmatch(r"python:\d+\.\d+\.\d+-slim-\w+", bases[0])
    assert re.findall(r"^USER (.*)", CONTAINERFILE, re.MULTILINE) == ["10001:10001"]
    assert f"lagwise:{__version__}" in CONTAINERFILE


def test_the_lock_file_fits_to_what_lagwise_needs() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = {name: project["optional-dependencies"][name] for name in project["optional-dependencies"]}
    wanted = [
        *project["dependencies"],
        *(one for name, all_of in extras.items() if name not in ("all", "dev") for one in all_of),
    ]
    versions = locked()
    assert len(versions) > 60
    for requirement in map(Requirement, wanted):
        name = canonicalize_name(requirement.name)
        assert requirement.specifier.contains(versions[name]), f"{requirement}: run `make lock`"


def test_every_package_of_the_lock_file_has_a_hash() -> None:
    text = (CONTAINER / "requirements.txt").read_text(encoding="utf-8").replace("\\\n", "")
    lines = [line for line in text.splitlines() if line and not line.lstrip().startswith("#")]
    assert len(lines) == len(locked())
    assert all("--hash=sha256:" in line for line in lines)


def test_the_script_has_the_steps_that_the_image_takes() -> None:
    steps = re.findall(r"lagwise/install\.sh (\w+)|build/install\.sh (\w+)", CONTAINERFILE)
    steps = ["".join(step) for step in steps]
    assert steps == ["lagwise", "java", "account"]
    script = INSTALL.read_text(encoding="utf-8")
    assert all(f"\n{step})\n" in script for step in steps)
    (account,) = re.findall(r"useradd --uid (\d+) --gid (\d+) ", script)
    assert f"USER {':'.join(account)}\n" in CONTAINERFILE, "the JVM needs a name for the account that it runs as"
    unknown = subprocess.run([INSTALL, "nothing"], capture_output=True, text=True, check=False)
    assert (unknown.returncode, unknown.stderr.partition(" ")[0]) == (2, "usage:")


def test_two_wheels_are_not_guessed_about(tmp_path: Path) -> None:
    for name in ("lagwise-0.0.9-py3-none-any.whl", "lagwise-0.1.0-py3-none-any.whl"):
        (tmp_path / name).touch()
    ran = subprocess.run(
        [INSTALL, "lagwise", CONTAINER / "requirements.txt", tmp_path, tmp_path / "target"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 1
    assert "exactly one wheel" in ran.stderr
    assert not (tmp_path / "target").exists()


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_a_unit_runs_a_command_that_exists_and_may_do_little(unit: Path) -> None:
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(unit, encoding="utf-8")
    service = parser["Service"]
    command = service["ExecStart"].split()
    assert command[:3] == ["/opt/lagwise/bin/lagwise", "--config", "/etc/lagwise/lagwise.yaml"]
    if unit.name == "lagwise@.service":
        assert command[3] == "%i"
        named = re.findall(r"lagwise@(\w+)", unit.read_text(encoding="utf-8").splitlines()[0])
        assert len(named) == 5 and set(named) <= set(cli.commands)
    else:
        assert command[3] in cli.commands
    assert service["User"] == "lagwise"
    assert service["ProtectSystem"] == "strict"
    assert service["NoNewPrivileges"] == "yes"
    assert service["CapabilityBoundingSet"] == ""


def test_the_unit_of_assistants_serves_over_http() -> None:
    template = (SYSTEMD / "lagwise@.service").read_text(encoding="utf-8")
    (command,) = re.findall(r"^ExecStart=(.*)$", template, re.MULTILINE)
    (drop_in,) = SYSTEMD.glob("*.d/*.conf")
    instance = drop_in.parent.name.removesuffix(".service.d")
    assert instance == f"lagwise@{COMMANDS[ASSISTANTS][0]}"
    # An empty one takes back that of the template.
    commands = re.findall(r"^ExecStart=(.*)$", drop_in.read_text(encoding="utf-8"), re.MULTILINE)
    assert commands == ["", command.replace("%i", " ".join(COMMANDS[ASSISTANTS]))]


@pytest.mark.long
@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd")
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_systemd_takes_a_unit_and_finds_it_safe(unit: Path, tmp_path: Path) -> None:
    name = unit.name.replace("@.", "@collect.")
    file = tmp_path / name
    file.write_text(unit.read_text(encoding="utf-8").replace("/opt/lagwise/bin/lagwise", "/bin/true"), encoding="utf-8")
    verified = subprocess.run(["systemd-analyze", "verify", file], capture_output=True, text=True, check=False)
    assert (verified.returncode, verified.stderr) == (0, "")
    # Units of 2.0 and below are "OK" to systemd; without any hardening it is 9.6.
    subprocess.run(
        ["systemd-analyze", "security", "--offline=yes", "--threshold=20", file], capture_output=True, check=True
    )
