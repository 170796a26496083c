"""What two ways to judge a trace say differently."""

import math
from collections.abc import Sequence
from dataclasses import astuple
from typing import Any

from lagwise.domain.lag_forecast import Forecast
from lagwise_app.replay.shown import Shown


def differences(shown: Sequence[Shown], defined: Sequence[Shown]) -> list[str]:
    """In words, what one engine shows and the other does not, or differently."""
    ours, theirs = ({(s.time_s, s.group, s.topic, s.partition): s for s in some} for some in (shown, defined))
    assert len(ours) == len(shown)
    found = [f"{defined[0].trace}: shown by one engine only: {key}" for key in ours.keys() ^ theirs.keys()]
    for key in ours.keys() & theirs.keys():
        one, other = ours[key], theirs[key]
        for name in ("status", "reason", "reasons", "sentence", "loss_cause"):
            if getattr(one, name) != getattr(other, name):
                found.append(f"{one.trace} {key}: {name} {getattr(one, name)} is defined as {getattr(other, name)}")
        numbers, defined_numbers = _numbers(one), _numbers(other)
        for name, value in defined_numbers.items():
            if not same(numbers[name], value):
                found.append(f"{one.trace} {key}: {name} {numbers[name]} is defined as {value}")
    return found


def _numbers(shown: Shown) -> dict[str, Any]:
    return dict(shown.numbers) | dict(shown.forecasts) | shown.lost._asdict()


def same(one: Any, other: Any) -> bool:
    """Equal; a measured number to a millionth."""
    if isinstance(one, float) and isinstance(other, float | int):
        return math.isclose(one, other, rel_tol=1e-6, abs_tol=1e-9)
    if isinstance(one, Forecast) and isinstance(other, Forecast):
        return all(same(a, b) for a, b in zip(astuple(one), astuple(other), strict=True))
    return bool(one == other)
