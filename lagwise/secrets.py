"""Secrets are named in the settings and read at the last moment; nothing that is shown ever holds one."""

import os
import re
from pathlib import Path

from lagwise.errors import ConfigError

#: librdkafka's settings that hold a secret (CONFIGURATION.md of librdkafka).
SECRET_KEYS = frozenset(
    {
        "sasl.password",
        "ssl.key.password",
        "ssl.key.pem",
        "ssl.keystore.password",
        "sasl.oauthbearer.client.secret",
        "sasl.oauthbearer.config",
        "sasl.oauthbearer.assertion.private.key.passphrase",
        "sasl.oauthbearer.assertion.private.key.pem",
    }
)

_REFERENCE = re.compile(r"^\$\{(env|file):([^}]+)\}$")
_LOOKS_SECRET = re.compile(r"(password|secret|token|credential|passphrase|[._-]key$|key\.pem)", re.IGNORECASE)
_URL_PASSWORD = re.compile(r"(?<=://)([^/@\s:]*):([^/@\s]+)@")
REDACTED = "[redacted]"


def is_reference(value: str) -> bool:
    """Whether a setting's value names a secret (``${env:NAME}``, ``${file:/path}``) instead of being one."""
    return _REFERENCE.match(value) is not None


def resolve(value: str) -> str:
    """The value itself, or what its reference points at. Raises ConfigError if that does not exist."""
    match = _REFERENCE.match(value)
    if match is None:
        return value
    kind, name = match.groups()
    if kind == "env":
        found = os.environ.get(name)
        if not found:
            raise ConfigError(f"the environment variable {name}, named by {value} in the settings, is not set")
        return found
    try:
        return Path(name).expanduser().read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read the file named by {value} in the settings: {error}") from error


def redact(text: str) -> str:
    """Text without the passwords of the URLs in it."""
    return _URL_PASSWORD.sub(rf"\1:{REDACTED}@", text)


def redacted_settings(settings: dict[str, object]) -> dict[str, object]:
    """A copy of a settings tree that is safe to show: values under secret-looking keys are blotted out."""
    shown: dict[str, object] = {}
    for key, value in settings.items():
        if isinstance(value, dict):
            shown[key] = redacted_settings(value)
        elif isinstance(value, list | tuple):
            shown[key] = [redacted_settings(v) if isinstance(v, dict) else v for v in value]
        elif isinstance(value, str):
            secret = (key in SECRET_KEYS or _LOOKS_SECRET.search(key)) and not is_reference(value)
            shown[key] = REDACTED if secret else redact(value)
        else:
            shown[key] = value
    return shown
