"""Time zones by their IANA names."""

from zoneinfo import ZoneInfo, ZoneInfoNotFoundError


def time_zone(name: str) -> ZoneInfo:
    """The time zone of this name. Raises ValueError where there is none."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):  # OSError: a folder of zones, or a name that no file can have
        raise ValueError(f"{name!r} is not a time zone: write an IANA name, as in Europe/Berlin") from None
