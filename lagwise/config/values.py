"""Types of values in settings, each with a description of what is allowed."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any

from pydantic import AfterValidator, Field, GetCoreSchemaHandler, GetJsonSchemaHandler, WithJsonSchema
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from lagwise.platform.durations import ALLOWED, UNIT_SECONDS, parse_duration
from lagwise.platform.secrets import is_reference, redact
from lagwise.platform.time_zones import time_zone


@dataclass(frozen=True, slots=True)
class Matching:
    """Annotates a text that a regular expression matches as a whole; ``allowed`` completes "must be …".

    The words also stand in the JSON schema, as ``allowed``, for the page that describes the settings.
    """

    pattern: str
    allowed: str

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self._checked, handler(source))

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {**handler(core), "allowed": self.allowed}

    def _checked(self, value: str) -> str:
        if re.fullmatch(self.pattern, value) is None:
            # The words are handed over as a context: pydantic takes braces in a message for places to fill in.
            raise PydanticCustomError("not_allowed", "must be {allowed}", {"allowed": self.allowed})
        return value


@dataclass(frozen=True, slots=True)
class DurationIn:
    """Annotates a number that is a duration in the unit its key names: a text such as ``1h30m`` is converted to it."""

    unit: str
    """A key of :data:`~lagwise.platform.durations.UNIT_SECONDS`."""
    plural: str
    """The unit in words."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_before_validator_function(self._number, handler(source))

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {**handler(core), "duration": self.plural}

    def _number(self, value: object) -> object:
        if not isinstance(value, str):
            return value
        try:
            return float(value)
        except ValueError:
            pass
        try:
            return parse_duration(value) / UNIT_SECONDS[self.unit]
        except ValueError:
            allowed = f"a number of {self.plural}, or {ALLOWED}"
            raise PydanticCustomError("not_a_duration", "must be {allowed}", {"allowed": allowed}) from None


IN_SECONDS = DurationIn("s", "seconds")
IN_HOURS = DurationIn("h", "hours")
IN_DAYS = DurationIn("d", "days")


class SecretPart(Enum):
    """Annotates a setting that may hold a secret: which part of its value is secret."""

    SECRET = "all of it"  # noqa: S105 (says where one is)
    ADDRESS = "user, path and query"
    DATABASE = "the password of a SQLAlchemy URL"
    MAP = "values under the keys of secrets"


Seconds = Annotated[float, Field(gt=0), IN_SECONDS]
Name = Annotated[str, Matching(r"[A-Za-z0-9._-]{1,100}", "1 to 100 letters, digits, dots, hyphens or underscores")]
Memory = Annotated[str, Matching(r"\d+[mg]", "a whole number and its unit, as in 512m or 1g")]
RunbookAddress = Annotated[str, Matching(r"https?://[^/{}\s]+(/.*)?", "an address http://… or https://…")]
HttpAddress = Annotated[
    str,
    Matching(r"https?://.+|\$\{(env|file):[^}]+\}", "an address http://… or https://…, or a reference ${env:NAME}"),
    SecretPart.ADDRESS,
]
MailAddress = Annotated[
    str, Matching(r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9.-]{1,253}", "a mail address, name@host")
]


def compiled(pattern: str) -> re.Pattern[str]:
    """A regular expression of the settings. Raises ValueError."""
    try:
        return re.compile(pattern)
    except re.error as error:
        raise ValueError(f"{pattern!r} is not a regular expression: {error}") from error


def _compiled_all(patterns: tuple[str, ...]) -> tuple[str, ...]:
    for pattern in patterns:
        compiled(pattern)
    return patterns


#: Regular expressions.
Patterns = Annotated[tuple[str, ...], AfterValidator(_compiled_all)]


def check_unique(names: Sequence[str], of: str = "") -> None:
    """Raise ValueError if a name is given twice. Its message begins with ``of``: what the names are names of."""
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"{of}the name {twice[0]!r} is given twice")


def check_references(settings: Mapping[str, object], is_secret: Callable[[str], bool]) -> None:
    """Raise ValueError where a secret itself stands under a key, not a reference to it."""
    for key, value in settings.items():
        if is_secret(key) and not is_reference(str(value)):
            raise ValueError(f"{key} is a secret: write ${{env:NAME}} or ${{file:/path}} here, not the secret itself")


def _names_a_secret(value: str) -> str:
    if not is_reference(value):
        raise ValueError("is a secret: write ${env:NAME} or ${file:/path} here, not the secret itself")
    return value


#: A secret, given as the name of the variable or file that holds it.
Reference = Annotated[
    str,
    AfterValidator(_names_a_secret),
    WithJsonSchema({"type": "string", "allowed": "a reference ${env:NAME} or ${file:/path}"}),
    SecretPart.SECRET,
]


def _names_a_time_zone(value: str) -> str:
    time_zone(value)
    return value


#: The IANA name of a time zone.
TimeZoneName = Annotated[
    str,
    AfterValidator(_names_a_time_zone),
    WithJsonSchema({"type": "string", "allowed": "an IANA time zone (Europe/Berlin)"}),
]


def _holds_no_secret(value: str) -> str:
    if redact(value) != value:
        raise ValueError("it contains a secret: give the credentials of an object store in the environment")
    return value


#: A local path or a URI of an object store.
PathOrUri = Annotated[str, Field(min_length=1), AfterValidator(_holds_no_secret)]
