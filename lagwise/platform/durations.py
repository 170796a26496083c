"""Durations as people write them (``30s``, ``1h30m``) and as people read them (``1 h 30 min``)."""

import re

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_PART = re.compile(r"(\d+)(ms|s|m|h|d)")


def parse_duration(value: object) -> float:
    """Seconds of a duration such as ``30s``, ``5m``, ``1h30m`` or ``0s``. Raises ValueError with what is allowed."""
    text = value.strip().replace(" ", "") if isinstance(value, str) else ""
    parts = _PART.findall(text)
    if not parts or "".join(n + u for n, u in parts) != text:
        raise ValueError(f"{value!r} is not a duration: write number and unit (ms, s, m, h, d), as in 30s or 1h30m")
    return float(sum(int(n) * _UNITS[u] for n, u in parts))


def duration_words(seconds: float) -> str:
    """A duration in at most two units, for people: ``45 s``, ``3 min 20 s``, ``1 h 20 min``, ``2 d 3 h``."""
    whole = round(max(0.0, seconds))
    for size, unit, below, smaller in ((86400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s")):
        if whole >= size:
            rest = whole % size // below
            return f"{whole // size} {unit} {rest} {smaller}" if rest else f"{whole // size} {unit}"
    return f"{whole} s"
