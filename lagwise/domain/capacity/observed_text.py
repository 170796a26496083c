"""What was observed of a group's capacity, in a sentence; and where that decides nothing, the test that would."""

from lagwise.domain.capacity.observed import LEAST_SATURATED_SECONDS, ObservedCapacity, Undecided
from lagwise.domain.capacity.saturation import LEAST_BACKLOG_SECONDS, UNREST_SECONDS
from lagwise.domain.humanise import count, duration, plural, rate

#: A load test is laid out for a group that can do this many times what it did so far; one that can do more is found to
#: have caught up early, which says just that.
AT_MOST_TIMES = 2.0
#: Where the members' time goes to other topics as well.
NO_TEST_HELPS = (
    "A backlog of this topic alone would show nothing, because its members read other topics too: let one of them "
    "measure T1 and T2 with the probe."
)
_MINUTE = 60.0


def capacity_sentence(found: ObservedCapacity) -> str:
    """The estimate with its evidence, or why there is none."""
    seen = f"{duration(found.saturated_seconds)} with a backlog"
    if found.rate_per_second is None:
        return f"Undecided: {_why(found, seen)}.{_at_least(found)}"
    who = f" with {plural(found.members, 'member')}" if found.members else ""
    times = f"{seen}, on {plural(found.episodes, 'occasion')}"
    said = f"It does {rate(found.rate_per_second)} records/s{who} ({rate(found.low)} to {rate(found.high)}; {times})."
    if found.changed_from_per_second is not None:
        said += f" It has changed: before, it was {rate(found.changed_from_per_second)}."
    if found.is_scaled:
        said += " Observed with other numbers of members, and taken in proportion."
    return said


def load_test(found: ObservedCapacity, arriving_per_second: float | None, needed_per_second: float = 0.0) -> str | None:
    """The smallest test that would decide it, where records arrive at this rate (None is unknown); None where there is
    an estimate, or where no backlog would help. A group that can do what is needed is seen to."""
    if found.is_decided or found.reason is Undecided.SHARED:
        return None
    watched = max(_MINUTE, found.missing_seconds or LEAST_SATURATED_SECONDS) + UNREST_SECONDS
    if not arriving_per_second or not 0 < arriving_per_second < float("inf"):
        return f"Let records arrive faster than it reads them, on every partition, for {_minutes(watched)}."
    able = max(AT_MOST_TIMES * arriving_per_second, found.at_least_per_second or 0.0, needed_per_second)
    # What catching up takes off the backlog meanwhile, and the backlog that must still be there at the end.
    needed = watched * (able - arriving_per_second) + LEAST_BACKLOG_SECONDS * able
    stopped = needed / arriving_per_second
    return (
        f"Stop the group for {_minutes(stopped)} while {rate(arriving_per_second)} records/s arrive, which leaves "
        f"{count(needed)} records unread, start it again and let it catch up for {_minutes(watched)} without a "
        f"rebalance. If it has caught up sooner, it does more than {rate(able)} records/s."
    )


def load_test_of(
    is_known: bool, seen: ObservedCapacity | None, arriving_per_second: float | None, needed_per_second: float
) -> str | None:
    """What to do to decide whether the group can do what is needed; None where it is known what it can do. ``seen`` is
    None where nothing was observed yet."""
    if is_known:
        return None
    never = ObservedCapacity(reason=Undecided.NEVER_SATURATED)
    return load_test(seen or never, arriving_per_second, needed_per_second) or NO_TEST_HELPS


def _why(found: ObservedCapacity, seen: str) -> str:
    match found.reason:
        case Undecided.TOO_LITTLE if found.changed_from_per_second is not None:
            return f"since it changed from {rate(found.changed_from_per_second)} records/s it had only {seen}"
        case Undecided.TOO_LITTLE:
            return f"only {seen}"
        case Undecided.IMPRECISE:
            return f"its rates in {seen} vary too much for an estimate within 15 %"
        case Undecided.UNSTEADY:
            return f"in {seen} it was fast at times and slow at others, which no single capacity explains"
        case Undecided.EXCEEDED:
            return f"it did less in {seen} than it does without one"
        case Undecided.SHARED:
            return "its members read other topics at the same time"
        case _:
            return "it never had a backlog for long, so its rate shows what arrived and not what it can do"


def _at_least(found: ObservedCapacity) -> str:
    if found.at_least_per_second is None:
        return ""
    return f" It does at least {rate(found.at_least_per_second)} records/s."


def _minutes(seconds: float) -> str:
    """Whole minutes, rounded up."""
    return duration(-(-seconds // _MINUTE) * _MINUTE)
