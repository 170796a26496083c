"""Numbers as people read them, at the boundaries where the words change."""

import math
import re
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lagwise.domain.humanise import count, duration, interval, loss_in, per_cent, plural, precise_duration, rate, size

reproducible = settings(max_examples=300)

# seconds → text
DURATIONS = (
    (1, "shorter than can be said is still not nothing", 0.0004, "< 1 ms"),
    (2, "whole milliseconds below a tenth of a second", 0.0994, "99 ms"),
    (3, "which rounds up to a tenth of a second", 0.0995, "0.1 s"),
    (4, "tenths up to ten seconds", 9.94, "9.9 s"),
    (5, "no tenths where there are none", 5.0, "5 s"),
    (6, "rounds up to ten seconds", 9.95, "10 s"),
    (7, "whole seconds up to a minute", 59.4, "59 s"),
    (8, "never 60 s", 59.5, "1 min"),
    (9, "seconds beside minutes", 61.0, "1 min 1 s"),
    (10, "seconds beside many minutes", 3599.4, "59 min 59 s"),
    (11, "never 60 min", 3599.5, "1 h"),
    (12, "less than a minute beside hours is left out", 3659.0, "1 h"),
    (13, "minutes beside hours", 3660.0, "1 h 1 min"),
    (14, "the last minute of a day", 86_399.4, "23 h 59 min"),
    (15, "never 24 h", 86_399.5, "1 d"),
    (16, "hours beside days", 90_000.0, "1 d 1 h"),
    (17, "days up to a year", 31_535_999.0, "364 d 23 h"),
    (18, "from then on nobody counts", 31_536_001.0, "> 1 year"),
    (19, "a year is not more than a year", 31_536_000.0, "365 d"),
    (20, "half a millisecond is not nothing", 0.0005, "< 1 ms"),
    (21, "what rounds up to one", 0.00051, "1 ms"),
    (22, "what never ends", float("inf"), "forever"),
    (23, "what is no number is not known", float("nan"), "—"),
)


@pytest.mark.parametrize(("seconds", "text"), [r[2:] for r in DURATIONS], ids=[f"{r[0]:02d} {r[1]}" for r in DURATIONS])
def test_duration(seconds: float, text: str) -> None:
    assert duration(seconds) == text


_SECONDS = {"ms": 0.001, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86_400.0}
#: By the largest unit shown, what may be missing from what is shown.
_PRECISION = {"ms": 0.0006, "s": 0.51, "min": 0.51, "h": 60.5, "d": 3600.5}


@reproducible
@given(st.floats(0.001, 3e7))
def test_a_duration_is_written_to_its_second_unit(seconds: float) -> None:
    words = duration(seconds).split()
    said = sum(float(number) * _SECONDS[unit] for number, unit in zip(words[::2], words[1::2], strict=True))
    assert abs(said - seconds) <= _PRECISION[words[1]]
    assert len(words) <= 4


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(None, "—"), (-1.0, "now"), (0.0, "now"), (0.4, "0.4 s"), (7500.0, "2 h 5 min")],
    ids=["never", "overdue", "at this moment", "soon", "later"],
)
def test_time_to_a_loss(seconds: float | None, text: str) -> None:
    assert loss_in(seconds) == text


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (60, 200, "1 min to 3 min 20 s"),
        (0, 60, "0 s to 1 min"),
        (60, None, "1 min at the earliest"),
        (5400, 5401, "about 1 h 30 min"),
    ],
    ids=["two ends", "from now", "maybe never", "ends that read alike"],
)
def test_an_interval(low: float, high: float | None, text: str) -> None:
    assert interval(low, high) == text


# number → text
COUNTS = (
    (1, "exact up to six digits", 999_999, "999,999"),
    (2, "three digits from a million on", 1_000_000, "1.00 M"),
    (3, "the last of two digits and one place", 99_949_999, "99.9 M"),
    (4, "never 100.0 M", 99_950_000, "100 M"),
    (5, "the last million", 999_499_999, "999 M"),
    (6, "grouped by thousands", 10_000, "10,000"),
    (7, "never 10.00 M", 9_995_000, "10.0 M"),
    (8, "never 1000 M", 999_500_000, "1.00 G"),
    (9, "an offset of Kafka can be so large", 2**63 - 1, "9.22 E"),
    (10, "a fraction that rounds up to a million", 999_999.6, "1.00 M"),
)


@pytest.mark.parametrize(("number", "text"), [r[2:] for r in COUNTS], ids=[f"{r[0]} {r[1]}" for r in COUNTS])
def test_count(number: float, text: str) -> None:
    assert count(number) == text
    assert count(-number) == f"-{text}"


@pytest.mark.parametrize("say", [count, rate, size], ids=lambda say: str(say.__name__))
def test_what_is_no_number_is_a_dash_and_what_has_no_end_is_infinite(say: Callable[[float], str]) -> None:
    assert [say(number) for number in (math.nan, math.inf, -math.inf)] == ["—", "∞", "−∞"]


_FACTORS = {"": 1.0, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}


@reproducible
@given(st.integers(0, 2**63 - 1) | st.integers(0, 10**7))
def test_a_count_is_exact_or_right_to_three_digits(number: int) -> None:
    digits, _, suffix = count(number).partition(" ")
    said = float(digits.replace(",", "")) * _FACTORS[suffix]
    if number < 1_000_000:
        assert said == number
    else:
        assert said == pytest.approx(number, rel=0.0051)
        assert re.fullmatch(r"\d{3}|\d\d\.\d|\d\.\d\d", digits)


# per second → text
RATES = (
    (1, "nothing at all", 0.0, "0"),
    (2, "hardly anything is not nothing", 0.0099, "< 0.01"),
    (3, "hardly anything less is not nothing either", -0.0099, "> −0.01"),
    (4, "two places below ten", 0.01, "0.01"),
    (5, "two places below ten, shrinking", -9.99, "-9.99"),
    (6, "one place below a hundred", 10.0, "10.0"),
    (7, "a count from there", 100.0, "100"),
    (8, "a large count", 12_345.0, "12,345"),
    (9, "never 10.00", 9.996, "10.0"),
    (10, "the last with two places", 9.99, "9.99"),
    (11, "never 100.0", 99.96, "100"),
    (12, "the last with one place", 99.94, "99.9"),
    (13, "a fraction that rounds up to four digits", 999.7, "1,000"),
)


@pytest.mark.parametrize(("per_second", "text"), [r[2:] for r in RATES], ids=[f"{r[0]} {r[1]}" for r in RATES])
def test_rate(per_second: float, text: str) -> None:
    assert rate(per_second) == text


def test_bytes_have_decimal_prefixes() -> None:
    assert [size(n) for n in (1000, 999_499, 999_500, 10**15)] == ["1.00 kB", "999 kB", "1.00 MB", "1.00 PB"]
    assert [size(n) for n in (999, 999.4, 999.7)] == ["999 B", "999 B", "1.00 kB"]


def test_a_time_that_is_not_known_or_never_ends_has_no_bound() -> None:
    assert duration(math.nan, lower_bound=True) == "—"
    assert (duration(0.0, lower_bound=True), duration(0.0)) == ("—", "0 s")
    assert (loss_in(math.nan), loss_in(math.inf)) == ("—", "forever")


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0 groups"), (1, "1 group"), (2, "2 groups"), (12_345, "12,345 groups")]
)
def test_plural(number: int, text: str) -> None:
    assert plural(number, "group") == text


def test_an_irregular_plural() -> None:
    assert (plural(1, "entry", "entries"), plural(2, "entry", "entries")) == ("1 entry", "2 entries")


def test_a_loss_that_may_come_sooner_is_marked() -> None:
    assert [loss_in(s, upper_bound=True) for s in (90.0, 0.0, None)] == ["≤ 1 min 30 s", "now", "—"]


def test_what_is_smaller_than_anybody_needs_is_said_to_be() -> None:
    assert precise_duration(4.97e-18) == "< 1 ns"
    assert precise_duration(1e-9) == "1 ns"
    assert per_cent(4.97e-9) == "< 0.01 %"
    assert per_cent(0.0) == "0 %"
    assert per_cent(1e-4) == "0.01 %"
