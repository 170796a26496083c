"""Durations as people write them, in rules, settings and options: ``90s``, ``1h30m``, ``1.5h``, ``250ms``.

:func:`lagwise.domain.humanise.duration` writes them for people to read.
"""

import re

UNIT_SECONDS = {
    "ns": 1e-9,
    "us": 1e-6,
    "µs": 1e-6,
    "μs": 1e-6,
    "ms": 0.001,
    "s": 1.0,
    "m": 60.0,
    "min": 60.0,
    "h": 3600.0,
    "d": 86400.0,
}
#: Completes "must be …" and "write …".
ALLOWED = "a number and a unit (ns, us, ms, s, m, h, d), as in 12ms, 30s or 1h30m"
_NUMBER = r"(?:\d+(?:\.\d+)?|\.\d+)"
_PART = re.compile(rf"({_NUMBER})\s*([a-zµμ]+)\s*")
_PARTS = re.compile(rf"(?:{_PART.pattern})+")


def parse_duration(value: object, *, plain_unit: str | None = None) -> float:
    """Seconds of a duration such as ``30s``, ``1h30m`` or ``1.5h``. ``0`` needs no unit.

    ``plain_unit`` (a key of ``UNIT_SECONDS``) is the unit of other numbers without one; without it they are rejected.
    Raises ValueError, which says what is accepted.
    """
    text = str(value).strip().lower() if isinstance(value, str | int | float) and not isinstance(value, bool) else ""
    if re.fullmatch(_NUMBER, text) and (plain_unit is not None or float(text) == 0.0):
        return float(text) * UNIT_SECONDS[plain_unit or "s"]
    parts = _PART.findall(text) if _PARTS.fullmatch(text) else []
    if not parts and re.match(rf"-\s*{_NUMBER}", text):
        raise ValueError(f"{value!r} is negative: write {ALLOWED}")
    if not parts or any(unit not in UNIT_SECONDS for _, unit in parts):
        raise ValueError(f"{value!r} is not a duration: write {ALLOWED}")
    return float(sum(float(number) * UNIT_SECONDS[unit] for number, unit in parts))
