"""What can be known of growing lag, and when: the time that plain statistics need, with the noise and the rhythm of a
history. Truths grant twice as much.

A backlog is the sum of what came and went, so that its growth is the mean of its steps, and the test that holds for it
is Student's on these (99 %, two-sided). What is seen of it are commits, whose sawtooth a line must be fitted to.
"""

import math

from lagwise.domain.verdicts.trend import T_99
from tests.traces.history import STEP_S, STRETCH_S, Habits


def quantile(freedom: int) -> float:
    """Of Student's t, two-sided, 99 %."""
    return T_99[min(freedom, len(T_99)) - 1]


def sure_after(steps: list[float]) -> int | None:
    """After how many steps of a random walk Student's test on them (99 %) is sure, for good, that they lead upwards."""
    sure, total, squares = None, 0.0, 0.0
    for n, step in enumerate(steps, 1):
        total, squares = total + step, squares + step * step
        if n < 3:
            continue
        variance = max(1e-9, squares - total * total / n) / (n - 1)
        is_sure = total / n > quantile(n - 1) * math.sqrt(variance / n)
        sure = (n if sure is None else sure) if is_sure else None
    return sure


def sawtooth_hides_s(habits: Habits, share: float) -> float:
    """For how long the sawtooth of commits hides growth by this share of what is written: until the slope of a line
    (99 %) through its teeth is certain."""
    return (quantile(30) * (habits.commit_every_s + STEP_S) * math.sqrt(habits.beat_s) / share) ** (2 / 3)


def usual_walk_s(habits: Habits, share: float) -> float:
    """After how long Student's test is sure, on the average, of growth by this share of what is written."""
    step, error = STRETCH_S * share, STRETCH_S * habits.noise * math.hypot(1, 1 - share)
    return STRETCH_S * next(n for n in range(3, 10_000) if step * n > quantile(n - 1) * error * math.sqrt(n))


def usually_told_s(habits: Habits, share: float) -> float:
    """How long it may take to tell growth by this share of what is written, unless chance makes it harder."""
    return 2 * (usual_walk_s(habits, share) + sawtooth_hides_s(habits, share))
