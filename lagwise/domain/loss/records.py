"""How many records were deleted before a group read them: told from samples, as two numbers between which it lies.

A sample knows where the group was when its commit was read, and where the log began right after that. Between two
samples the group went from the one commit to the other, and records were deleted, nobody saw in which order.

* What the log start has passed beyond the last commit that was read before it, was deleted unread: *at least*.
* What it has passed beyond the commit of the sample before may have been: *at most*. A group that finds its records
  deleted goes on with the oldest there is or at the end (``auto.offset.reset``), and by the next sample its commit has
  passed what it lost. What it skipped of what is still there is no loss: :mod:`lagwise.domain.loss.skips`.

Each step counts only what was deleted within it, so that steps add up.
"""

from collections.abc import Iterable
from typing import NamedTuple


class LostInStep(NamedTuple):
    """Records that were deleted unread from one sample to the next."""

    at_least: int
    at_most: int


class Lost(NamedTuple):
    """Records that were deleted unread, and how many seconds ago samples first and last showed it (None: never)."""

    at_least: int
    at_most: int
    first_seconds: float | None
    last_seconds: float | None


NOTHING_LOST = Lost(0, 0, None, None)


def lost_in_step(
    reads_from: int, log_start: int, previous_reads_from: int | None = None, previous_log_start: int | None = None
) -> LostInStep:
    """What was lost since the sample before: of the first one all that is missing."""
    missing = max(0, log_start - reads_from)
    if previous_reads_from is None or previous_log_start is None:
        return LostInStep(missing, missing)
    counted = previous_log_start if previous_log_start > previous_reads_from else reads_from
    at_least = max(0, log_start - max(reads_from, counted))
    return LostInStep(at_least, max(at_least, log_start - max(previous_reads_from, previous_log_start)))


def lost_together(steps: Iterable[tuple[float, LostInStep]]) -> Lost:
    """The steps of a stretch of time in one, each with how many seconds ago it ended. Where none shows a loss there was
    none: a group that reads at the edge of what is kept, or deletes what it has read, is passed by the log start all
    the time."""
    seen = list(steps)
    lossy = [round(seconds, 6) for seconds, lost in seen if lost.at_least > 0]
    if not lossy:
        return NOTHING_LOST
    at_least, at_most = (sum(numbers) for numbers in zip(*(lost for _, lost in seen), strict=True))
    return Lost(at_least, at_most, max(lossy), min(lossy))


def of_stretches(stretches: Iterable[Iterable[tuple[float, LostInStep]]]) -> Lost:
    """What was lost in several stretches of time: those in which no loss shows add nothing, or the upper number of a
    group that reads on at the edge would go on growing after its last loss."""
    return of_partitions(lost_together(steps) for steps in stretches)


def of_partitions(losses: Iterable[Lost]) -> Lost:
    """What was lost on several partitions together."""
    those = list(losses)
    firsts = [lost.first_seconds for lost in those if lost.first_seconds is not None]
    lasts = [lost.last_seconds for lost in those if lost.last_seconds is not None]
    return Lost(
        sum(lost.at_least for lost in those),
        sum(lost.at_most for lost in those),
        max(firsts, default=None),
        min(lasts, default=None),
    )
