"""Streamlit's own options, so that the dashboard looks and behaves the same wherever it is started.

Streamlit looks for ``.streamlit/config.toml`` in the working directory, which an installed Lagwise does not have. So
its settings are read from the installation and handed over, together with those that follow from Lagwise's settings.
What is handed over wins over Streamlit's environment variables and over any other ``config.toml``; every other option
of Streamlit (a TLS certificate, a base path) is still taken from there.
"""

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from lagwise.config import Config
from lagwise.platform.errors import ConfigError

_PACKAGE = Path(__file__).resolve().parent.parent
#: In a wheel the file lies inside the package (see ``force-include`` in pyproject.toml), in a checkout at its root.
_FILES = (_PACKAGE / "streamlit_config.toml", _PACKAGE.parents[1] / ".streamlit" / "config.toml")
#: What would open the pages to requests that no sign-in has checked, if another file set it.
_PINNED: dict[str, Any] = {
    "server.enableCORS": True,
    "server.enableXsrfProtection": True,
    "server.enableAgentApi": False,
    "server.trustedUserHeaders": {},
}


def options(config: Config) -> dict[str, Any]:
    """Streamlit's options by their dotted names. Raises ConfigError where the installation lacks its file of them."""
    sign_in = config.dashboard.sign_in
    return {
        **from_file(installed_file()),
        **_PINNED,
        "server.address": config.dashboard.host,
        "server.port": config.dashboard.port,
        "logger.hideWelcomeMessage": True,
        "secrets.files": [str(sign_in.auth_file.expanduser().resolve())] if sign_in else [],
    }


def installed_file() -> Path:
    """The ``config.toml`` that belongs to this installation. Raises ConfigError where there is none."""
    for file in _FILES:
        if file.is_file():
            return file
    raise ConfigError(f"the dashboard's settings file {_FILES[0]} is missing: install Lagwise again")


def from_file(file: Path) -> dict[str, Any]:
    """The options in a ``config.toml`` by their dotted names. Raises ConfigError where it cannot be read."""
    try:
        tree = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"cannot read the dashboard's settings file {file}: {error}") from error
    return dict(_flat(tree, ""))


def _flat(tree: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    for key, value in tree.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value
