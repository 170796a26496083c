"""Loads the settings (a YAML file, overridden by the environment), validates them, and resolves their references."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from lagwise.config.errors import describe
from lagwise.config.model import Config
from lagwise.config.source import read_tree
from lagwise.platform.error_codes import ErrorCode
from lagwise.platform.errors import ConfigError
from lagwise.platform.secrets import is_reference, resolve


def load_config(path: Path | None = None, *, environment: Mapping[str, str] | None = None) -> Config:
    """Read the settings from a YAML file (:func:`settings_file`), then from the environment, which wins.

    Raises :class:`~lagwise.platform.errors.ConfigError`, whose message names every invalid key and what it may be.
    """
    env = os.environ if environment is None else environment
    source = settings_file(path, env)
    where = str(source) if source else "the environment"
    return validated(read_tree(source, env), where=where, environment=env)


def settings_file(path: Path | None, environment: Mapping[str, str]) -> Path | None:
    """The file that is read: ``path``, else ``LAGWISE_CONFIG``, else ``lagwise.yaml`` in the working directory."""
    if path is not None:
        return path
    if environment.get("LAGWISE_CONFIG"):
        return Path(environment["LAGWISE_CONFIG"])
    return Path("lagwise.yaml") if Path("lagwise.yaml").exists() else None


def validated(tree: Mapping[str, Any], *, where: str, environment: Mapping[str, str] | None = None) -> Config:
    """Validate a tree of settings. Raises ConfigError, which names ``where`` the tree is from and every problem.

    For a key that came from a variable of ``environment``, the message names the variable too.
    """
    try:
        return Config.model_validate(tree)
    except ValidationError as error:
        problems = describe(error, Config, environment)
    # Raised out here, because pydantic's error as a context would keep every module it passed through from being freed.
    raise ConfigError(f"the settings in {where} cannot be used:\n{problems}")


def resolve_everything(config: Config) -> int:
    """Resolve every reference in the settings and return their number. Raises ConfigError naming each that fails."""
    problems: list[str] = []
    resolved = _walk(config.model_dump(mode="json"), "", problems)
    if problems:
        raise ConfigError(
            "the settings name secrets that cannot be read:\n" + "\n".join(problems), code=ErrorCode.SECRET_UNREADABLE
        )
    return resolved


def _walk(node: Any, path: str, problems: list[str]) -> int:
    if isinstance(node, dict):
        return sum(_walk(value, f"{path}.{key}" if path else str(key), problems) for key, value in node.items())
    if isinstance(node, list):
        return sum(_walk(value, f"{path}.{position}", problems) for position, value in enumerate(node))
    if not isinstance(node, str) or not is_reference(node):
        return 0
    try:
        resolve(node)
    except ConfigError as error:
        problems.append(f"  {path}: {error}")
    return 1
