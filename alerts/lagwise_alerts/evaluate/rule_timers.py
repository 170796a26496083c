"""How long something has held, in the time of the data.

Durations of rules (``for``, ``keep_firing_for``) are counted from sample to sample and not by the wall clock. While
there is nothing new to go by, because a group is unknown or because the analysis stands still, the clock stands still
with it: the monitor's own lag can neither raise an alert nor end one.
"""

from dataclasses import dataclass, replace
from enum import StrEnum

from lagwise_alerts.model import RuleTimer


class TimerVerdict(StrEnum):
    """What a condition says about a rule. HOLD is "nothing"."""

    MATCH = "match"
    CLEAR = "clear"
    HOLD = "hold"


@dataclass(frozen=True, slots=True)
class TimerMoment:
    """How much data time has passed.

    ``step_seconds`` since the observation before, None if there was none or if it was too long ago to know what
    happened in between; ``lasted_seconds`` since the present status or match began.
    """

    step_seconds: float | None
    lasted_seconds: float


def advance_timer(
    timer: RuleTimer | None, rule: str, verdict: TimerVerdict, moment: TimerMoment, for_seconds: float
) -> RuleTimer | None:
    """The clock of a rule after an observation; None if there is nothing to remember.

    A clock that has matched for ``for_seconds`` becomes active and stays so, whatever follows: when an active rule is
    done is not for its own clock to say.
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
        timer = replace(timer, matching=matching, held=False, seconds=_seconds(timer, matching, moment))
    return replace(timer, active=True) if matching and timer.seconds >= for_seconds else timer


def _seconds(timer: RuleTimer, matching: bool, moment: TimerMoment) -> float:
    if moment.step_seconds is None:
        return moment.lasted_seconds
    if timer.matching == matching and not timer.held:
        return timer.seconds + moment.step_seconds
    # It turned, or was unknown, somewhere between the two observations: only what the status itself vouches for.
    known = min(moment.step_seconds, moment.lasted_seconds)
    return timer.seconds + known if timer.matching == matching else known
