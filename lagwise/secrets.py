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
_LOOKS_SECRET = re.compile(r"(pas+w|secret|token|credential|passphrase|[._-]key$|key\.pem)", re.IGNORECASE)
_URL_PASSWORD = re.compile(r"(?<=://)([^/@\s:]*):([^/\s]+)@")
#: ``password=…`` in a query string or a list of properties, unless a reference follows.
_ASSIGNED = re.compile(r"(?i)((?:password|passwd|passphrase|secret|token|signature|sig)=)(?!\$\{)[^\s&;,\"']+")
REDACTED = "[redacted]"

#: What references have been resolved to in this process, so that it can be found in whatever is about to be shown.
_resolved: set[str] = set()
#: Shorter values are not looked for: blotting out every "1" would hide more than a secret.
_SHORTEST_SOUGHT = 4


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
    else:
        try:
            found = Path(name).expanduser().read_text(encoding="utf-8").strip()
        except OSError as error:
            raise ConfigError(f"cannot read the file named by {value} in the settings: {error.strerror}") from error
        except UnicodeDecodeError:
            raise ConfigError(f"the file named by {value} in the settings is not UTF-8 text") from None
        if not found:
            raise ConfigError(f"the file named by {value} in the settings is empty")
    if len(found) >= _SHORTEST_SOUGHT:
        _resolved.add(found)
    return found


def redact(text: str) -> str:
    """Text without secrets: those resolved in this process, passwords in URLs, and ``password=…`` assignments."""
    for secret in sorted(_resolved.copy(), key=len, reverse=True):  # a copy: other threads may be resolving
        text = text.replace(secret, REDACTED)
    text = _URL_PASSWORD.sub(rf"\1:{REDACTED}@", text)
    return _ASSIGNED.sub(rf"\1{REDACTED}", text)


def is_secret_key(key: str) -> bool:
    """Whether what stands under this key of a map (librdkafka, Spark, an object store) is to be kept secret."""
    return key in SECRET_KEYS or _LOOKS_SECRET.search(key) is not None


def redacted_settings(settings: dict[str, object]) -> dict[str, object]:
    """A copy of a settings tree that is safe to show: values under secret-looking keys are blotted out."""
    return {key: _redacted_value(key, value) for key, value in settings.items()}


def _redacted_value(key: str, value: object) -> object:
    if isinstance(value, dict):
        return redacted_settings(value)
    if isinstance(value, list | tuple):
        return [_redacted_value(key, v) for v in value]
    if isinstance(value, str):
        return REDACTED if is_secret_key(key) and not is_reference(value) else redact(value)
    return value
