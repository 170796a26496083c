"""Checks that every reference in the settings can be resolved."""

from typing import Any

from lagwise.config import Config
from lagwise.platform.errors import ConfigError
from lagwise.platform.secrets import is_reference, resolve


def resolve_everything(config: Config) -> int:
    """Resolve every reference in the settings and return their number. Raises ConfigError naming each that fails."""
    problems: list[str] = []
    resolved = _walk(config.model_dump(mode="json"), "", problems)
    if problems:
        raise ConfigError("the settings name secrets that cannot be read:\n" + "\n".join(problems))
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
