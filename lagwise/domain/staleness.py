"""How old data is, how old it may be, and whether it is stale: one definition for terminal, pages and alerts."""

from dataclasses import dataclass
from datetime import datetime

#: Data is late only after so many of the intervals at which it is due: one may be missed, two may be unlucky.
STALE_INTERVALS = 3
#: A round of the analysis may take this long without anything being wrong.
ROUND_SECONDS = 20.0

#: What was just started has this long until its first data can be there: Spark takes 8 to 20 s to start, its first
#: round some seconds more, and a busy machine twice as long.
START_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class DataAge:
    """The age at ``now`` of data of the moment ``at``; None is data that has never come."""

    at: datetime | None
    now: datetime
    #: What is older is stale, and so is what has never come.
    allowed_seconds: float

    @property
    def seconds(self) -> float | None:
        """How old it is; None where it has never come."""
        return age_seconds(self.at, self.now)

    @property
    def is_stale(self) -> bool:
        """Whether it is older than it may be."""
        return self.seconds is None or self.seconds > self.allowed_seconds


def age_seconds(at: datetime | None, now: datetime) -> float | None:
    """How long ago a moment was; 0 for one to come, None where there was none."""
    return None if at is None else max(0.0, (now - at).total_seconds())


def allowed_age_seconds(sample_interval_seconds: float, analysis_interval_seconds: float) -> float:
    """How old the newest judged sample may be: whatever it waits for on its way counts, the collection and the
    analysis alike."""
    return STALE_INTERVALS * (sample_interval_seconds + analysis_interval_seconds) + ROUND_SECONDS
