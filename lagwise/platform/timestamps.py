"""How times are written for machines."""

from datetime import UTC, datetime


def timestamp(at: datetime) -> str:
    """A time in messages and JSON output: ISO 8601 in UTC, in milliseconds, with a Z."""
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
