"""Numbers as people type them: durations, shares, amounts."""

import re
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    _NumberType = click.ParamType[float]
else:
    _NumberType = click.ParamType  # not generic at run time before click 8.4

_UNIT_SECONDS = {
    "ns": 1e-9,
    "us": 1e-6,
    "µs": 1e-6,
    "μs": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "m": 60.0,
    "min": 60.0,
    "h": 3_600.0,
    "d": 86_400.0,
}
_DURATION = re.compile(r"(\d+(?:\.\d+)?|\.\d+)\s*([a-zµμ]+)")


class Duration(_NumberType):
    """A duration with its unit (12ms, 3us, 1.5s, 30m, 2h, 3d); 0 needs none. Converted to seconds."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Seconds; a default is passed through as it is."""
        if isinstance(value, int | float):
            return float(value)
        text = str(value).strip().lower()
        if text == "0":
            return 0.0
        match = _DURATION.fullmatch(text)
        if match is None or match[2] not in _UNIT_SECONDS:
            self.fail(f"{value!r} is not a duration: write a number and ns, us, ms, s, m, h or d, such as 12ms.", param)
        return float(match[1]) * _UNIT_SECONDS[match[2]]


class Share(_NumberType):
    """A share of one, 0.1 or 10%."""

    name = "share"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The share as a number from 0 to 1, not yet checked."""
        text = str(value).strip()
        try:
            return float(text.removesuffix("%").strip()) / 100.0 if text.endswith("%") else float(text)
        except ValueError:
            self.fail(f"{value!r} is not a share: write a number such as 0.1 or 10%.", param)


class Amount(_NumberType):
    """A number, with k or M for thousands and millions."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number, not yet checked."""
        text = str(value).strip()
        factor = {"k": 1e3, "M": 1e6}.get(text[-1:], 1.0)
        try:
            return float(text.rstrip("kM") if factor > 1.0 else text) * factor
        except ValueError:
            self.fail(f"{value!r} is not a number: write 20000, 20k or 1.5M.", param)
