"""When answers are too old to be taken for the present: one rule for the terminal and for the pages."""

from datetime import datetime

#: So many intervals may pass …
STALE_INTERVALS = 3
#: … and a round may take this long without anything being wrong.
ROUND_SECONDS = 20.0

#: What was just started has this long until its first data can be there: Spark's session takes 8 to 20 s to start, its
#: first round some seconds more, and a busy machine twice as long.
START_SECONDS = 60.0


def age_seconds(at: datetime | None, now: datetime) -> float | None:
    """How long ago a moment was; 0 for one to come, None where there was none."""
    return None if at is None else max(0.0, (now - at).total_seconds())


def allowed_age_seconds(sample_interval_seconds: float, analysis_interval_seconds: float) -> float:
    """How old the newest judged sample may be: whatever it waits for on its way counts, the collection and the
    analysis alike."""
    return STALE_INTERVALS * (sample_interval_seconds + analysis_interval_seconds) + ROUND_SECONDS
