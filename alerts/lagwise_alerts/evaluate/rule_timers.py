"""Timers of rules: how long a condition has held, in the time of the data.

Durations of rules (``for``, ``keep_firing_for``) count from sample to sample, not by the wall clock. Without new data,
because a group is unknown or the analysis is late, the timer is on hold: the monitor's own lag can neither raise an
alert nor end one.
"""

from dataclasses import dataclass, replace
from enum import StrEnum

from lagwise_alerts.model import RuleTimer


class TimerVerdict(StrEnum):
    """Whether a condition matches a rule. HOLD is unknown: the timer stands still."""

    MATCH = "match"
    CLEAR = "clear"
    HOLD = "hold"


@dataclass(frozen=True, slots=True)
class TimerMoment:
    """How much time of the data has passed."""

    #: Since the previous observation; None where there is none, or it is too old to know what happened since.
    step_seconds: float | None
    #: Since the present status or match began.
    lasted_seconds: float


def advance_timer(
    timer: RuleTimer | None, rule: str, verdict: TimerVerdict, moment: TimerMoment, for_seconds: float
) -> RuleTimer | None:
    """The timer of a rule after an observation; None if there is nothing to remember.

    A timer that has matched for ``for_seconds`` becomes active and stays active: the caller decides when an active rule
    is done.
    """
    if verdict is TimerVerdict.HOLD:
        return replace(timer, held=True) if timer else None
    matching = verdict is TimerVerdict.MATCH
    if timer is None:
        if not matching:
            return None
        timer = RuleTimer(rule, active=False, matching=True, held=False, seconds=moment.lasted_seconds)
    elif not matching and not timer.active:
        return None
    else:
        timer = replace(timer, matching=matching, held=False, seconds=_counted_seconds(timer, matching, moment))
    return replace(timer, active=True) if matching and timer.seconds >= for_seconds else timer


def _counted_seconds(timer: RuleTimer, matching: bool, moment: TimerMoment) -> float:
    if moment.step_seconds is None:
        return moment.lasted_seconds
    if timer.matching == matching and not timer.held:
        return timer.seconds + moment.step_seconds
    # It changed, or was unknown, between the two observations: only the time that the status itself proves counts.
    known = min(moment.step_seconds, moment.lasted_seconds)
    return timer.seconds + known if timer.matching == matching else known
