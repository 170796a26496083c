"""Types of options for numbers as people type them: durations, shares, amounts."""

import math
from collections.abc import Callable

import click

from lagwise.domain import humanise
from lagwise.platform.durations import parse_duration


def duration_type(
    plain_unit: str | None = None, *, at_least: float = 0.0, at_most: float = math.inf
) -> Callable[[object], float]:
    """The type of an option for a duration (12ms, 90s, 1h30m), converted to seconds.

    With ``plain_unit``, a number without a unit is in that one. ``at_least`` and ``at_most`` are in seconds.
    """

    def duration(value: object) -> float:
        try:
            seconds = parse_duration(value, plain_unit=plain_unit)
        except ValueError as error:
            raise click.BadParameter(f"{error}.") from None
        if not at_least <= seconds <= at_most:
            most = f" and at most {humanise.duration(at_most)}" if at_most < math.inf else ""
            raise click.BadParameter(
                f"{value!r} is out of range: it must be at least {humanise.duration(at_least)}{most}."
            )
        return seconds

    return duration


def share(value: object) -> float:
    """A share of one, 0.1 or 10%, as a number that the command checks."""
    text = str(value).strip()
    try:
        return float(text.removesuffix("%")) / 100.0 if text.endswith("%") else float(text)
    except ValueError:
        raise click.BadParameter(f"{text!r} is not a share: write a number such as 0.1 or 10%.") from None


def number(value: object) -> float:
    """A number, with k or M for thousands and millions, that the command checks."""
    text = str(value).strip()
    factor = {"k": 1e3, "M": 1e6}.get(text[-1:], 1.0)
    try:
        return float(text.rstrip("kM") if factor > 1.0 else text) * factor
    except ValueError:
        raise click.BadParameter(f"{text!r} is not a number: write 20000, 20k or 1.5M.") from None
