"""The ranges that sizing accepts, and the error that names the argument and its range."""

import math

MIN_SERVICE_SECONDS = 1e-9
MAX_SERVICE_SECONDS = 86_400.0
MAX_CORES = 4_096.0
MIN_CORES = 0.01
#: More threads than this on one node are not modelled.
MAX_THREADS = 100_000


class OutOfRange(ValueError):
    """An argument lies outside its range. The message names both; ``argument`` is the name alone."""

    def __init__(self, argument: str, allowed: str, value: object) -> None:
        super().__init__(f"{argument} must be {allowed}, not {value!r}")
        self.argument = argument
        self.allowed = allowed
        self.value = value


def check_number(argument: str, value: float, low: float, high: float, allowed: str) -> None:
    """Raise OutOfRange unless ``value`` is a finite number within [low, high]; ``allowed`` says that in words."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise OutOfRange(argument, allowed, value)
    if not low <= value <= high:
        raise OutOfRange(argument, allowed, value)


def check_count(argument: str, value: int, low: int, high: int) -> None:
    """Raise OutOfRange unless ``value`` is a whole number within [low, high]."""
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise OutOfRange(argument, f"a whole number from {low:,} to {high:,}", value)


def check_cores(cores: float) -> None:
    """Cores of a node; a fraction is a container's CPU limit."""
    check_number("cores", cores, MIN_CORES, MAX_CORES, f"a number from {MIN_CORES} to {MAX_CORES:,.0f}")


def check_threads(argument: str, threads: int) -> None:
    """Threads on one node."""
    check_count(argument, threads, 1, MAX_THREADS)


def check_service_time(t1_seconds: float, t2_seconds: float) -> None:
    """T1 and T2: each 0 or from a nanosecond to a day, and not both 0."""
    allowed = "0, or from 1 ns to 1 day (in seconds)"
    for argument, value in (("t1_seconds", t1_seconds), ("t2_seconds", t2_seconds)):
        check_number(argument, value, 0.0, MAX_SERVICE_SECONDS, allowed)
        if 0.0 < value < MIN_SERVICE_SECONDS:
            raise OutOfRange(argument, allowed, value)
    if t1_seconds == 0.0 and t2_seconds == 0.0:
        raise OutOfRange("t2_seconds", "above 0 where t1_seconds is 0: a message takes some time", t2_seconds)
