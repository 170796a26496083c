"""Whether the references of the settings lead somewhere."""

from typing import Any

from lagwise.config import Config
from lagwise.platform.errors import ConfigError
from lagwise.platform.secrets import is_reference, resolve


def resolve_everything(config: Config) -> int:
    """Resolve every reference in the settings; returns how many there are. Raises ConfigError naming all that fail."""
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
