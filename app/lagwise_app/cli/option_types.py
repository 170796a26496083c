"""Numbers as people type them: durations, shares, amounts."""

import math
from typing import TYPE_CHECKING, Any

import click

from lagwise.domain.humanise import duration
from lagwise.platform.durations import parse_duration

if TYPE_CHECKING:
    _NumberType = click.ParamType[float]
else:
    _NumberType = click.ParamType  # not generic at run time before click 8.4


class Duration(_NumberType):
    """A duration (12ms, 90s, 1h30m), converted to seconds.

    With ``plain_unit``, a number without a unit is in that one. ``at_least`` and ``at_most`` are in seconds.
    """

    name = "duration"

    def __init__(self, plain_unit: str | None = None, *, at_least: float = 0.0, at_most: float = math.inf) -> None:
        self._plain_unit = plain_unit
        self._at_least, self._at_most = at_least, at_most

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Seconds; a number (of a default, or from code) is seconds already."""
        if isinstance(value, int | float):
            return float(value)
        try:
            seconds = parse_duration(value, plain_unit=self._plain_unit)
        except ValueError as error:
            self.fail(f"{error}.", param)
        if not self._at_least <= seconds <= self._at_most:
            most = f" and at most {duration(self._at_most)}" if self._at_most < math.inf else ""
            self.fail(f"{value!r} is out of range: it must be at least {duration(self._at_least)}{most}.", param)
        return seconds


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
