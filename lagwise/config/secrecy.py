"""Which settings may hold a secret, and settings with their secrets redacted."""

import re
from typing import Any, get_args

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from lagwise.config.values import SecretPart
from lagwise.platform.secrets import REDACTED, is_reference, is_secret_key, redact

_ADDRESS = re.compile(r"(?P<scheme>[^:/]*://)(?P<user>[^/?#]*@)?(?P<host>[^/?#]*)/?(?P<rest>.*)", re.DOTALL)
#: For SQLAlchemy the password ends at the last @.
_DATABASE_PASSWORD = re.compile(r"(?<=://)([^:/@]*):.*@", re.DOTALL)
_PARAMETER = re.compile(r"([?&])([^=&]+)=([^&]*)")


def secret_part_of(field: FieldInfo) -> SecretPart | None:
    """Which part of a setting's value may be a secret; None if no part is."""
    found = [one for one in (*field.metadata, *_nested(field.annotation)) if isinstance(one, SecretPart)]
    return found[0] if found else None


def redacted(settings: BaseModel) -> dict[str, Any]:
    """The settings as JSON values, with secrets redacted. References are kept: they only name a secret."""
    tree = settings.model_dump(mode="json")
    fields = type(settings).model_fields
    return {
        name: _redacted(getattr(settings, name), tree[name], secret_part_of(field)) for name, field in fields.items()
    }


def _redacted(value: Any, dumped: Any, part: SecretPart | None) -> Any:
    if isinstance(value, BaseModel):
        return redacted(value)
    if isinstance(value, list | tuple):
        return [_redacted(one, its, part) for one, its in zip(value, dumped, strict=True)]
    if isinstance(value, dict):
        secret = {key for key in dumped if part is SecretPart.MAP and is_secret_key(key)}
        return {
            key: _redacted(value[key], its, SecretPart.SECRET if key in secret else None) for key, its in dumped.items()
        }
    if dumped is None or is_reference(str(dumped)):
        return dumped
    if part is SecretPart.SECRET:
        return REDACTED
    if not isinstance(dumped, str):
        return dumped
    if part is SecretPart.ADDRESS:
        return redacted_address(dumped)
    return redact(_redacted_database(dumped) if part is SecretPart.DATABASE else dumped)


def redacted_address(address: str) -> str:
    """Scheme and host of an address. User, path and query are redacted: chat services keep their tokens there."""
    match = _ADDRESS.fullmatch(address)
    if match is None:
        return REDACTED
    user, rest = (REDACTED + "@" if match["user"] else ""), (f"/{REDACTED}" if match["rest"] else "")
    return f"{match['scheme']}{user}{match['host']}{rest}"


def _redacted_database(url: str) -> str:
    url = _DATABASE_PASSWORD.sub(rf"\1:{REDACTED}@", url)
    return _PARAMETER.sub(lambda one: f"{one[1]}{one[2]}={REDACTED if is_secret_key(one[2]) else one[3]}", url)


def _nested(annotation: Any) -> list[Any]:
    """Everything that annotates a type or one of its parts."""
    return [*getattr(annotation, "__metadata__", ()), *(one for part in get_args(annotation) for one in _nested(part))]
