"""Flapping: an alert that comes and goes so often that it counts as one that lasts."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

from pydantic import Field

from lagwise_alerts.rules.rule_condition import Duration, Strict


class Flapping(Strict):
    """When an alert that comes and goes is flapping: it then ends only after a long time without trouble."""

    times: Annotated[int, Field(ge=2)] = 3
    """How often it must begin within the time below."""
    within: Duration = 3600.0
    """The time within which it must begin so often."""
    calm: Duration = 1800.0
    """How long no rule must match, in the time of the data, before a flapping alert ends."""

    def is_flapping(self, starts: Sequence[datetime]) -> bool:
        """Whether an alert that began at these moments, all recent, is flapping."""
        return len(starts) >= self.times


def recent_starts(flapping: Flapping | None, starts: Sequence[datetime], now: datetime) -> tuple[datetime, ...]:
    """The beginnings of an alert that still count at a moment; none where nothing counts as flapping."""
    within_seconds = 0.0 if flapping is None else flapping.within
    return tuple(at for at in starts if (now - at).total_seconds() < within_seconds)
