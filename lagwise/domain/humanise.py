"""Numbers as people read them, in sentences, pages and the terminal. What is not known (None, or not a number) is a
dash, never a zero; what is infinite is ``∞``, a time ``forever``."""

import math
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, tzinfo

DASH = "—"
_MINUTE, _HOUR, _DAY, _YEAR = 60, 3600, 86400, 365 * 86400
_TEN_SECONDS = 10.0
_SMALL_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
#: Numbers below this have no more than three digits before the point, rounded.
_THREE_DIGITS = 999.5
_MILLION = 1_000_000


def duration(seconds: float | None, *, lower_bound: bool = False) -> str:
    """Seconds in at most two units: ``3 min 20 s``; ``≥`` marks a lower bound.

    Less than ten seconds are shown to a tenth of a second, or as whole milliseconds (``8.2 s``, ``12 ms``). Callers
    round ages of which a tenth has no meaning. A lower bound of zero says nothing and is a dash.
    """
    if seconds is None or math.isnan(seconds) or (lower_bound and seconds <= 0):
        return DASH
    text = _duration(max(0.0, float(seconds)))
    return f"≥ {text}" if lower_bound else text


def precise_duration(seconds: float) -> str:
    """To three digits, which suits the time of one message: ``850 µs``, ``12.3 ms``, ``1.52 s``, ``30 min``."""
    if not 0 < seconds < _TEN_SECONDS:
        return duration(seconds)
    if seconds < _SMALL_UNITS[-1][0]:
        return "< 1 ns"
    size, unit = next(one for one in _SMALL_UNITS if seconds >= one[0])
    amount = seconds / size
    return f"{f'{amount:.3g}' if amount < 100 else count(amount)} {unit}"


def interval(low: float, high: float | None) -> str:
    """The ends of an interval of time; without a ``high`` end it may last forever. Ends that read alike are one."""
    if high is None:
        return f"{duration(low)} at the earliest"
    return f"about {duration(low)}" if duration(low) == duration(high) else f"{duration(low)} to {duration(high)}"


def in_brackets(low: float, high: float | None) -> str:
    """The interval in brackets with a space before it; nothing where its ends read alike."""
    return "" if high is not None and duration(low) == duration(high) else f" ({interval(low, high)})"


def ago(seconds: float) -> str:
    """``12 s ago``; what is less than half a second ago is ``just now``."""
    return "just now" if seconds < 0.5 else f"{duration(seconds)} ago"


def loss_in(seconds: float | None, *, upper_bound: bool = False) -> str:
    """Time until records are lost: ``now`` where they already are, ``≤ 6 d 23 h`` where it may come sooner."""
    if seconds is not None and seconds <= 0:
        return "now"
    return f"≤ {duration(seconds)}" if upper_bound and seconds is not None else duration(seconds)


def _duration(seconds: float) -> str:
    if seconds == 0:
        return "0 s"
    if seconds == math.inf:
        return "forever"
    if seconds < 0.0995:
        milliseconds = round(seconds * 1000)
        return f"{milliseconds} ms" if milliseconds else "< 1 ms"
    if seconds < 9.95:
        return f"{seconds:.1f} s".replace(".0 s", " s")
    whole = round(seconds)
    if whole < _MINUTE:
        return f"{whole} s"
    if whole < _HOUR:
        return _two(whole // _MINUTE, "min", whole % _MINUTE, "s")
    if whole < _DAY:
        return _two(whole // _HOUR, "h", whole % _HOUR // _MINUTE, "min")
    if whole <= _YEAR:
        return _two(whole // _DAY, "d", whole % _DAY // _HOUR, "h")
    return "> 1 year"


def _two(large: int, unit: str, small: int, smaller_unit: str) -> str:
    return f"{large} {unit} {small} {smaller_unit}" if small else f"{large} {unit}"


def count(number: float | None) -> str:
    """A count, and the one rule for large numbers wherever people read them: exact below a million (``41,234``), three
    digits and a suffix from there on (``3.40 M``)."""
    if number is None or not math.isfinite(number):
        return _not_finite(number)
    whole = round(number)
    if abs(whole) < _MILLION:
        return f"{whole:,}"
    return _suffixed(number / 1000, ("M", "G", "T", "P", "E"))


def rate(per_second: float | None) -> str:
    """A rate to three digits and no finer than a hundredth; its unit stands in the heading."""
    if per_second is None:
        return DASH
    size = abs(per_second)
    if size == 0:
        return "0"
    if size < 0.01:
        return "< 0.01" if per_second > 0 else "> −0.01"
    return _three_digits(per_second) if size < _THREE_DIGITS else count(per_second)


def significant(value: float) -> str:
    """A number with as many digits as a reader can use: ``29,524``, ``66.7`` or ``0.0123``."""
    if value == 0.0:
        return "0"
    return count(value) if abs(value) >= 100 else f"{value:.3g}"


def significant_rate(per_second: float) -> str:
    """A rate with its unit: ``29,524/s``."""
    return f"{significant(per_second)}/s"


def per_cent(share: float) -> str:
    """A share of one: ``12.5 %``; above 0 no finer than a hundredth of a per cent."""
    if 0.0 < share < 1e-4:
        return "< 0.01 %"
    return f"{share * 100:.3g} %"


def growth(slope: float, low: float, high: float) -> str:
    """How a lag moves, from its slope in records per second and the ends of its confidence interval."""
    if low > 0:
        return f"grows by {rate(slope)} records/s ({rate(low)} to {rate(high)})"
    if high < 0:
        return f"shrinks by {rate(-slope)} records/s ({rate(-high)} to {rate(-low)})"
    return "no clear trend"


def size(number_of_bytes: float | None) -> str:
    """Bytes with a decimal prefix (``1.64 MB``)."""
    if number_of_bytes is None or not math.isfinite(number_of_bytes):
        return _not_finite(number_of_bytes)
    if abs(number_of_bytes) < _THREE_DIGITS:
        return f"{number_of_bytes:.0f} B"
    return _suffixed(number_of_bytes, ("kB", "MB", "GB", "TB", "PB"))


def _suffixed(number: float, suffixes: Sequence[str]) -> str:
    value = float(number)
    for suffix in suffixes:
        value /= 1000
        # 999.5 rounds up to the next suffix's 1.00
        if abs(value) < _THREE_DIGITS or suffix == suffixes[-1]:
            return f"{_three_digits(value)} {suffix}"
    raise AssertionError("the last suffix takes everything")


def _three_digits(value: float) -> str:
    """``1.23``, ``12.3``, ``123``: what rounds up to ten has the places of ten."""
    places = 2 if abs(value) < 9.995 else 1 if abs(value) < 99.95 else 0
    return f"{value:.{places}f}"


def _not_finite(number: float | None) -> str:
    if number is None or math.isnan(number):
        return DASH
    return "∞" if number > 0 else "−∞"


def clock(at: datetime | None, now: datetime, zone: tzinfo = UTC) -> str:
    """A moment in a time zone, with its offset from UTC; the date stands before it where it is not today's there."""
    if at is None:
        return DASH
    at = at.astimezone(zone)
    shape = "%H:%M:%S" if at.date() == now.astimezone(zone).date() else "%Y-%m-%d %H:%M:%S"
    return f"{at:{shape}} {utc_offset(at.utcoffset())}"


def utc_offset(offset: timedelta | None) -> str:
    """``UTC``, ``UTC+1``, ``UTC−3:30``; None is no time zone, which is taken for UTC."""
    if not offset:
        return "UTC"
    minutes, seconds = divmod(round(abs(offset).total_seconds()), _MINUTE)
    hours, minutes = divmod(minutes, _MINUTE)
    parts = (f"{hours}", f":{minutes:02}" if minutes or seconds else "", f":{seconds:02}" if seconds else "")
    return f"UTC{'+' if offset > timedelta(0) else '−'}{''.join(parts)}"


def since(at: datetime | None, now: datetime) -> str:
    """How long ago: ``12 s``; a moment in the future counts as now."""
    return DASH if at is None else duration(float(int(max(0.0, (now - at).total_seconds()))))


def lower_first(sentence: str) -> str:
    """A sentence as it stands after a colon or a semicolon."""
    return sentence[:1].lower() + sentence[1:]


def plural(number: int, one: str, many: str | None = None) -> str:
    """``1 group``, ``12 groups``."""
    return f"{count(number)} {one if number == 1 else many or one + 's'}"
