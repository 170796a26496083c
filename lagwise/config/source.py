"""Reads the settings from a YAML file and the environment into one tree. The models validate it."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from lagwise.platform.error_codes import ErrorCode
from lagwise.platform.errors import ConfigError

ENVIRONMENT_PREFIX = "LAGWISE_"
#: Variables that hold secrets for references to name. They are never settings.
SECRET_PREFIX = "LAGWISE_SECRET_"  # noqa: S105 (a prefix of names)
#: Environment variables that are not settings: where the file is, and how much is logged.
_NOT_SETTINGS = frozenset({"LAGWISE_CONFIG", "LAGWISE_DEBUG"})
#: PyYAML's own errors, and those of Python that it lets through (``2026-13-45``, ``!!int x``).
_NOT_YAML = (yaml.YAMLError, ValueError, KeyError, AttributeError)


def read_tree(path: Path | None, env: Mapping[str, str]) -> dict[str, Any]:
    """The settings of a file (none if ``path`` is None), overridden by those of the environment.

    Raises ConfigError if the file cannot be read or a variable's path does not fit the tree. Whether keys exist and
    values are valid is checked by the models.
    """
    tree: dict[str, Any] = _read_yaml(path) if path else {}
    _overlay_environment(tree, env)
    return tree


def _read_yaml(path: Path) -> dict[str, Any]:
    try:
        tree = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(
            f"cannot read the settings file {path}: {error.strerror}", code=ErrorCode.SETTINGS_UNREADABLE
        ) from error
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"{path} is not UTF-8 text (byte {error.start})", code=ErrorCode.SETTINGS_UNREADABLE
        ) from error
    except _NOT_YAML as error:
        raise ConfigError(f"{path} is not YAML: {_yaml_problem(error)}", code=ErrorCode.SETTINGS_UNREADABLE) from None
    if tree is None:
        return {}
    if not isinstance(tree, dict):
        raise ConfigError(f"{path} must hold keys and values at its top level, not a {type(tree).__name__}")
    return tree


def _yaml_problem(error: Exception) -> str:
    """What is wrong and where. PyYAML's own text is not used: it quotes the line and words that begin with * or !,
    which may hold a secret."""
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        mark = error.problem_mark
        problem = re.sub(r"'(?!<)[^']{2,}'", "'…'", error.problem or "it cannot be read")
        return f"line {mark.line + 1}, column {mark.column + 1}: {problem}"
    if isinstance(error, yaml.YAMLError):
        return "it contains a character that YAML does not allow"
    return "it contains a date that does not exist, or a value that does not fit its tag (!!…)"


def _overlay_environment(tree: dict[str, Any], env: Mapping[str, str]) -> None:
    for name in setting_variables(env):
        steps = name.removeprefix(ENVIRONMENT_PREFIX).lower().split("__")
        if "librdkafka" in steps[:-1]:  # its keys are written with dots, which a shell cannot put into a name
            steps[-1] = steps[-1].replace("_", ".")
        _put(tree, steps, _from_environment(env[name]), name)


def variable_of(steps: Sequence[int | str]) -> str:
    """The environment variable that sets the key at a path of the tree."""
    return ENVIRONMENT_PREFIX + "__".join(str(step).replace(".", "_").upper() for step in steps)


def setting_variables(env: Mapping[str, str]) -> list[str]:
    """The names of the environment variables that are settings, sorted.

    ``LAGWISE_SECRET_…`` variables are not settings: references name them, as in ``${env:LAGWISE_SECRET_KAFKA}``.
    """
    return sorted(
        name
        for name in env
        if name.startswith(ENVIRONMENT_PREFIX) and name not in _NOT_SETTINGS and not name.startswith(SECRET_PREFIX)
    )


def _from_environment(text: str) -> Any:
    """A list, map, null or quoted text if the variable is one in YAML; otherwise its text, which the model converts.

    Numbers and words stay text: YAML would read ``10:30`` as 630 and ``no`` as false.
    """
    try:
        value = yaml.safe_load(text)
    except _NOT_YAML:
        return text
    quoted = isinstance(value, str) and text.lstrip().startswith(("'", '"'))
    return value if value is None or quoted or isinstance(value, list | dict) else text


def _put(node: Any, steps: list[str], value: Any, name: str) -> None:
    """Set ``value`` at the path ``steps``; numbers are positions in a list, which may grow by one."""
    for position, step in enumerate(steps):
        last = position == len(steps) - 1
        empty: Any = None if last else ([] if steps[position + 1].isdigit() else {})
        if isinstance(node, list):
            if not step.isdigit() or int(step) > len(node):
                raise ConfigError(f"{name}: {step!r} is not a position of a list that has {len(node)} entries")
            key: Any = int(step)
            if key == len(node):
                node.append(empty)
            elif node[key] is None:
                node[key] = empty
        elif isinstance(node, dict):
            if node.get(step) is None:  # absent, or a key without a value in the file
                node[step] = empty
            key = step
        else:
            raise ConfigError(f"{name} names a key below a setting that has no keys")
        if last:
            node[key] = value
        node = node[key]
