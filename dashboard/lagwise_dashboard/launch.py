"""How the dashboard is started: the command line and the environment of its process.

Streamlit looks for ``.streamlit/config.toml`` in the working directory, which an installed Lagwise does not have. So
the settings of that file are handed over as Streamlit's own environment variables, and the dashboard looks and behaves
the same from a checkout, from a wheel, and whatever directory it is started in.
"""

import json
import re
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lagwise.config import Config
from lagwise.errors import ConfigError

_PACKAGE = Path(__file__).resolve().parent
#: In a wheel the file lies inside the package (see ``force-include`` in pyproject.toml), in a checkout at its root.
_SETTINGS_FILES = (_PACKAGE / "streamlit_config.toml", _PACKAGE.parents[1] / ".streamlit" / "config.toml")


def command(config: Config) -> list[str]:
    """The command that serves the dashboard, without a shell, for an environment that holds :func:`environment`."""
    sign_in = config.dashboard.sign_in
    auth = [f"--secrets.files={sign_in.auth_file.expanduser().resolve()}"] if sign_in else []
    return [
        sys.executable,
        "-m",
        "lagwise_dashboard.serve",
        "run",
        str(_PACKAGE / "app.py"),
        f"--server.address={config.dashboard.host}",
        f"--server.port={config.dashboard.port}",
        "--server.headless=true",
        "--browser.gatherUsageStats=false",
        *auth,
    ]


def environment(config: Config) -> dict[str, str]:
    """Variables to add to the process's environment: Streamlit's settings as its own variables.

    Which settings of Lagwise the page runs with, ``LAGWISE_CONFIG`` says, as for every part. Raises ConfigError where
    Streamlit's settings file is missing or damaged, which means a broken installation.
    """
    return streamlit_variables(settings_file())


def settings_file() -> Path:
    """The ``config.toml`` that belongs to this installation."""
    for file in _SETTINGS_FILES:
        if file.is_file():
            return file
    raise ConfigError(f"the dashboard's settings file {_SETTINGS_FILES[0]} is missing: install Lagwise again")


def streamlit_variables(file: Path) -> dict[str, str]:
    """The settings of a Streamlit ``config.toml`` as the environment variables that mean the same."""
    try:
        tree = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"cannot read the dashboard's settings file {file}: {error}") from error
    return dict(_flatten(tree, ()))


def _flatten(tree: Mapping[str, Any], path: tuple[str, ...]) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for key, value in tree.items():
        if isinstance(value, dict):
            found.extend(_flatten(value, (*path, key)))
        else:
            found.append((_variable((*path, key)), value if isinstance(value, str) else json.dumps(value)))
    return found


def _variable(path: tuple[str, ...]) -> str:
    """Streamlit's rule for the name of a setting's variable: ``theme.light.redColor`` is
    ``…_THEME_LIGHT_RED_COLOR``."""
    words = re.sub(r"(.)([A-Z][a-z]+)", r"\1_\2", "_".join(path))
    return "STREAMLIT_" + re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", words).upper()
