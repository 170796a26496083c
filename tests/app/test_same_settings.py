"""Every process of the product runs with the settings that its user gave, whichever way they were given."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from lagwise.config import load_config
from lagwise_app.supervisor.effective_settings import fingerprint, free_port, linked

pytestmark = pytest.mark.process

_SECONDS = 60.0
#: What a part says it runs with.
_SAID = re.compile(r"lagwise: settings ([0-9a-f]{12}): data (\S+), clusters shop, sign-in required$", re.MULTILINE)
LONE = ("collect", "analyze", "alert", "scaling", "serve", "dashboard")
PARTS = ("collector", "analysis", "alerts", "scaling", "server", "dashboard")
AUTH = """[auth]
redirect_uri = "http://127.0.0.1/oauth2callback"
cookie_secret = "a-cookie-secret-of-the-test-alone"
client_id = "lagwise"
client_secret = "a-client-secret"
server_metadata_url = "http://127.0.0.1:9/.well-known/openid-configuration"
"""
#: A way of giving settings: the file, its tree, and the working directory of the command; options and variables to add.
Way = Callable[[Path, dict[str, Any], Path], tuple[list[str], dict[str, str]]]


def by_option(file: Path, tree: dict[str, Any], folder: Path) -> tuple[list[str], dict[str, str]]:
    return ["--config", str(file)], {}


def by_variable(file: Path, tree: dict[str, Any], folder: Path) -> tuple[list[str], dict[str, str]]:
    return [], {"LAGWISE_CONFIG": str(file)}


def by_working_directory(file: Path, tree: dict[str, Any], folder: Path) -> tuple[list[str], dict[str, str]]:
    (folder / "lagwise.yaml").write_bytes(file.read_bytes())
    return [], {}


def by_environment_only(file: Path, tree: dict[str, Any], folder: Path) -> tuple[list[str], dict[str, str]]:
    return [], {f"LAGWISE_{key.upper()}": json.dumps(value) for key, value in tree.items()}


@pytest.fixture
def tree(tmp_path: Path) -> dict[str, Any]:
    (tmp_path / "auth.toml").write_text(AUTH, encoding="utf-8")
    return {
        "data": str(tmp_path / "data"),
        "clusters": [{"name": "shop", "bootstrap": "127.0.0.1:9"}],
        "dashboard": {"port": free_port(), "sign_in": {"auth_file": str(tmp_path / "auth.toml")}},
        "scaling": {"port": free_port()},
        "server": {"port": free_port()},
    }


@pytest.mark.parametrize("way", [by_option, by_variable, by_working_directory, by_environment_only])
def test_every_command_and_every_part_it_starts_runs_with_the_settings_given(
    tmp_path: Path, tree: dict[str, Any], way: Way
) -> None:
    file, folder = tmp_path / "given.yaml", tmp_path / "folder"
    file.write_text(yaml.safe_dump(tree), encoding="utf-8")
    folder.mkdir()
    options, variables = way(file, tree, folder)
    expected = fingerprint(linked(load_config(file, environment={})))

    alone = {folder / f"{command}.log": [*options, command] for command in LONE}
    with running(alone, folder, variables):
        assert {log.stem: logged_settings(log) for log in alone} == dict.fromkeys(LONE, (expected, tree["data"]))
    together = [tmp_path / "data" / "logs" / f"{part}.log" for part in PARTS]
    with running({folder / "up.log": [*options, "up"]}, folder, variables):
        assert {log.stem: logged_settings(log) for log in together} == dict.fromkeys(PARTS, (expected, tree["data"]))


@contextmanager
def running(commands: dict[Path, list[str]], folder: Path, variables: dict[str, str]) -> Iterator[None]:
    """Commands in processes of their own, by their logs; killed with all that they started when the block ends."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("LAGWISE_")} | variables
    with ExitStack() as stack:
        for log, command in commands.items():
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "lagwise", *command],
                env=environment,
                cwd=folder,
                stdout=subprocess.DEVNULL,
                stderr=stack.enter_context(log.open("w", encoding="utf-8")),
                start_new_session=True,
            )
            stack.callback(process.wait)
            stack.callback(os.killpg, process.pid, signal.SIGKILL)
        yield


def logged_settings(log: Path) -> tuple[str, str]:
    """The settings and the data that a part says it runs with, once it has said so."""
    end = time.monotonic() + _SECONDS
    text = ""
    while time.monotonic() < end:
        text = log.read_text(encoding="utf-8") if log.exists() else ""
        if found := _SAID.search(text):
            return found[1], found[2]
        time.sleep(0.05)
    raise AssertionError(f"{log.stem} has not said what it runs with:\n{text}")
