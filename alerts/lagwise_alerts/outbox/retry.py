"""How long until a failed delivery is retried, and when it is given up. Pure."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random

from lagwise_alerts.channels.base import DeliveryOutcome
from lagwise_alerts.outbox.store import DEAD, DELIVERED, QUEUED


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often and how long a delivery is retried.

    A receiver that does not answer is retried for a day: it delays only its own channel, whose order is kept. A
    receiver that rejects a message (4xx) will most likely reject it again, and gets ``refused_attempts`` attempts.
    """

    first_wait_seconds: float = 1.0
    max_wait_seconds: float = 300.0
    max_retry_after_seconds: float = 3600.0
    refused_attempts: int = 5
    give_up_after_seconds: float = 86400.0


@dataclass(frozen=True, slots=True)
class RetryStep:
    """What an attempt makes of a message: its next state, when to try again if it is queued, the error if any."""

    state: str
    next_attempt_at: datetime
    error: str | None


def after_attempt(
    outcome: DeliveryOutcome, attempts: int, created_at: datetime, now: datetime, random: Random, policy: RetryPolicy
) -> RetryStep:
    """The step after the attempt numbered ``attempts`` (1 is the first).

    The wait doubles up to a limit. Jitter spreads it between its half and its whole, so that a receiver which is back
    does not get everything at once. Retry-After is obeyed up to a limit.
    """
    if outcome.error is None:
        return RetryStep(DELIVERED, now, None)
    if outcome.refused and attempts >= policy.refused_attempts:
        return RetryStep(DEAD, now, f"{outcome.error}; given up after {attempts} attempts")
    if (now - created_at).total_seconds() >= policy.give_up_after_seconds:
        return RetryStep(DEAD, now, f"{outcome.error}; given up after {policy.give_up_after_seconds / 3600:g} h")
    wait = min(policy.max_wait_seconds, policy.first_wait_seconds * 2.0 ** min(attempts - 1, 30))
    wait *= 0.5 + random.random() / 2
    if outcome.retry_after_seconds is not None:
        asked = min(outcome.retry_after_seconds, policy.max_retry_after_seconds)
        wait = max(wait, asked)
    return RetryStep(QUEUED, now + timedelta(seconds=wait), outcome.error)
