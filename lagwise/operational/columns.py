"""What the tables of the operational database are made of: their registry, and columns that lose nothing."""

from collections.abc import Callable
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import JSON, DateTime, Dialect, MetaData, String, Text
from sqlalchemy.types import TypeDecorator


class UtcDateTime(TypeDecorator[datetime]):
    """A timezone-aware UTC time, also where the database keeps no time zone."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """UTC on the way in; a naive time is an error in the program."""
        if value is not None and value.tzinfo is None:
            raise ValueError(f"{value} has no time zone")
        return None if value is None else value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """UTC on the way out."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class AnyText(TypeDecorator[str]):
    """Text of strangers. PostgreSQL refuses the character NUL, so its picture (U+2400) is kept instead."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """Text without NUL."""
        return None if value is None else value.replace("\x00", "\u2400")


class Word(TypeDecorator[StrEnum]):
    """A word of an enumeration."""

    impl = String
    cache_ok = True

    def __init__(self, words: type[StrEnum], length: int = 50) -> None:
        super().__init__(length)
        self.words = words

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """Plain text on the way in."""
        return None if value is None else str(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> StrEnum | None:
        """The word on the way out."""
        return None if value is None else self.words(value)


class Json(TypeDecorator[Any]):
    """A value that is stored as JSON: ``to_json`` makes what is stored, ``from_json`` the value again."""

    impl = JSON
    cache_ok = True

    def __init__(self, to_json: Callable[[Any], Any], from_json: Callable[[Any], Any]) -> None:
        super().__init__()
        self.to_json = to_json
        self.from_json = from_json

    def process_bind_param(self, value: Any, dialect: Dialect) -> Any:
        """JSON on the way in."""
        return None if value is None else self.to_json(value)

    def process_result_value(self, value: Any, dialect: Dialect) -> Any:
        """The value on the way out."""
        return None if value is None else self.from_json(value)


metadata = MetaData()
