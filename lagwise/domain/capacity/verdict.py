"""Is what runs enough, and until when: the words of the capacity page.

Compared is what the running set-up can do with what it must do. Of both, only what is known counts: what a group can do
shows under saturation alone, without it there is a lower bound (what it did) or nothing.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from itertools import pairwise

from lagwise.domain.humanise import per_cent, plural, precise_duration, significant
from lagwise.domain.sizing.formulas import meets
from lagwise.domain.sizing.ranges import OutOfRange, check_count, check_number
from lagwise.domain.sizing.workload import Unit, nodes_and_threads

#: Oversized is what so large a share of the nodes could do, or a smaller one: for less a change is not worth its risk.
OVERSIZED_SHARE = 2 / 3
_MAX_RATE = 1e12


class CapacityVerdict(StrEnum):
    """Whether what runs is enough, the worst first; undecided is none of the others."""

    SHORT = "short"
    TIGHT = "tight"
    ENOUGH = "enough"
    OVERSIZED = "oversized"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True)
class CanDo:
    """What the running set-up can do, messages per second. Without ``high`` only that it is at least ``low``."""

    low: float
    high: float | None = None

    def __post_init__(self) -> None:
        check_number("low", self.low, 0.0, _MAX_RATE, "a number from 0 to 1e12")
        if self.high is not None:
            check_number("high", self.high, self.low, _MAX_RATE, "a number from low to 1e12")


@dataclass(frozen=True, slots=True)
class SetUp:
    """What runs, or what is advised."""

    nodes: int
    partitions: int
    #: None where it is not known.
    threads_per_node: int | None = None
    #: What ``nodes`` counts: members or subtasks where it is not known which of them share a node.
    unit: Unit = Unit.NODE

    def __post_init__(self) -> None:
        check_count("nodes", self.nodes, 0, 1_000_000)
        check_count("partitions", self.partitions, 1, 1_000_000)
        if self.threads_per_node is not None:
            check_count("threads_per_node", self.threads_per_node, 1, 1_000_000)


@dataclass(frozen=True, slots=True)
class DemandAhead:
    """The peak forecast for a time, messages per second: its mean, and the upper end of its interval."""

    at: datetime
    mean: float
    upper: float

    def __post_init__(self) -> None:
        check_number("mean", self.mean, 0.0, _MAX_RATE, "a number from 0 to 1e12")
        check_number("upper", self.upper, self.mean, _MAX_RATE, "a number from the mean to 1e12")


def busy_hours(hours: Iterable[tuple[datetime, float, float]]) -> tuple[DemandAhead, ...]:
    """The forecast of busy hours (start, mean, upper end of the interval), in order of time.

    A forecast may go below nothing, and its interval's end below its mean: neither is kept.
    """
    return tuple(DemandAhead(at, max(0.0, mean), max(0.0, mean, upper)) for at, mean, upper in hours)


@dataclass(frozen=True, slots=True)
class CapacityJudgement:
    """The verdict with its reason."""

    #: Whether what runs is enough.
    verdict: CapacityVerdict
    #: Why, in one or two sentences with numbers.
    sentence: str
    #: Whether what can be done with the slack is below what must be done today; None is not known.
    is_exceeded: bool | None = None
    #: When the forecast's mean first exceeds what can be done with the slack; None is not within the forecast.
    enough_until: datetime | None = None
    #: When the upper end of the forecast's interval first exceeds that capacity; None is not within the forecast.
    enough_until_at_worst: datetime | None = None
    #: The test that would show what it can do, in words; None where that is known, or no test would help.
    load_test: str | None = None


def judge_capacity(
    can_do: CanDo | None,
    peak_per_second: float | None,
    forecast: Sequence[DemandAhead],
    *,
    target_utilisation: float,
    running: SetUp,
    advised: SetUp | None,
    load_test: str | None = None,
    objective_seconds: float | None = None,
) -> CapacityJudgement:
    """The first of these that holds, with ``slack`` for the low end of what can be done, times the target utilisation.

    - ``undecided``: today's peak is not known, or nothing is known of what the set-up can do, or only a lower bound
      whose slack is less than the peak now or the forecast's highest mean.
    - ``short``: even the high end of what can be done is below today's peak.
    - ``tight``: the slack is below today's peak (it is carried, but not with the slack that was asked for, or only
      perhaps), or below the forecast's highest mean (``enough`` ends, and when).
    - ``oversized``: the advised nodes are at most two thirds of those that run, and in proportion do carry, with slack,
      today's peak and all that the forecast holds possible. Never without a forecast or advice.
    - ``enough``: otherwise. How long is not known where there is no forecast.

    A lower bound never makes ``short`` or ``tight``: what was not asked for was not refused. ``load_test`` says how to
    see what the set-up can do; it is passed on where that would decide it.

    With ``objective_seconds``, the peak and the forecast are not of minutes, but of the capacity that this lag
    objective takes.
    """
    check_number("target_utilisation", target_utilisation, 0.01, 1.0, "a number from 0.01 to 1")
    if peak_per_second is not None:
        check_number("peak_per_second", peak_per_second, 0.0, _MAX_RATE, "a number from 0 to 1e12")
    if any(later.at <= point.at for point, later in pairwise(forecast)):
        raise OutOfRange("forecast", "in order of time", [point.at for point in forecast[:3]])
    if peak_per_second is None:
        why = "There is no whole hour of history of what arrives yet, so there is no peak to compare with"
        return _undecided(why, None)
    peak, target = peak_per_second, target_utilisation
    asked = _asked_text(peak, objective_seconds)
    at_peak, what, kept = (" at peak", "peak", "carried") if objective_seconds is None else ("", "objective", "kept")
    highest = max((point.mean for point in forecast), default=0.0)
    needed = max(peak, highest)
    if can_do is None:
        why = f"Its capacity is unknown: it has never had a backlog. {asked}"
        return _undecided(why, load_test)
    carries = can_do.low * target
    does = f"it can do {_can_do_text(can_do)}, {significant(carries)} with {per_cent(1 - target)} kept free"
    if can_do.high is None and not meets(carries, needed):
        why = f"It has never had a backlog, so only a lower bound is known: {does}. {asked}"
        if highest > peak:
            why += ", and more are forecast"
        return _undecided(why, load_test)
    until = next((point.at for point in forecast if not meets(carries, point.mean)), None)
    at_worst = next((point.at for point in forecast if not meets(carries, point.upper)), None)

    def judged(verdict: CapacityVerdict, sentence: str) -> CapacityJudgement:
        asks = verdict in (CapacityVerdict.SHORT, CapacityVerdict.TIGHT) and advised not in (None, running)
        instead = f" Advice: {_set_up_text(advised)} instead of {_set_up_text(running)}." if asks and advised else ""
        return CapacityJudgement(verdict, f"{sentence}.{instead}", not meets(carries, peak), until, at_worst)

    if can_do.high is not None and not meets(can_do.high, peak):
        lacks = significant(peak - can_do.high)
        return judged(CapacityVerdict.SHORT, f"{asked}; {does}: at least {lacks} are missing{at_peak}")
    if not meets(carries, peak):
        so = f"{kept}, but without that slack" if meets(can_do.low, peak) else f"perhaps not {kept}"
        return judged(CapacityVerdict.TIGHT, f"{asked}; {does}: the {what} is {so}")
    if until is not None:
        return judged(
            CapacityVerdict.TIGHT,
            f"{asked}; {does}: enough until {_day(until)}, when the forecast exceeds {significant(carries)}",
        )
    worst = max([peak, *(point.upper for point in forecast)])
    if forecast and advised is not None and _carried_by_fewer(carries, worst, running, advised):
        return judged(
            CapacityVerdict.OVERSIZED,
            f"{plural(advised.nodes, advised.unit)} of {running.nodes:,} would do: {does}; the forecast up to "
            f"{_day(forecast[-1].at)} asks for {significant(worst)} at most",
        )
    if not forecast:
        ahead = "for how long is not known without a forecast"
    elif at_worst is not None:
        ahead = f"through the forecast up to {_day(forecast[-1].at)}, at worst until {_day(at_worst)}"
    else:
        ahead = f"through the whole forecast up to {_day(forecast[-1].at)}, also at worst ({significant(worst)})"
    return judged(CapacityVerdict.ENOUGH, f"{asked}; {does}: enough, {ahead}")


def _carried_by_fewer(carries: float, worst: float, running: SetUp, advised: SetUp) -> bool:
    if advised.nodes > OVERSIZED_SHARE * running.nodes:
        return False
    return meets(carries * advised.nodes / running.nodes, worst)


def _undecided(why: str, load_test: str | None) -> CapacityJudgement:
    how = f" {load_test}" if load_test else ""
    return CapacityJudgement(CapacityVerdict.UNDECIDED, f"{why}.{how}", load_test=load_test)


def _asked_text(rate: float, objective_seconds: float | None) -> str:
    if objective_seconds is None:
        return f"{significant(rate)} messages/s arrive at peak"
    return f"{significant(rate)} messages/s keep the objective of {precise_duration(objective_seconds)}"


def _can_do_text(can_do: CanDo) -> str:
    if can_do.high is None:
        return f"at least {significant(can_do.low)}"
    low, high = significant(can_do.low), significant(can_do.high)
    return low if low == high else f"{low} to {high}"


def _set_up_text(set_up: SetUp) -> str:
    nodes = nodes_and_threads(set_up.unit, set_up.nodes, set_up.threads_per_node)
    return f"{nodes} on {plural(set_up.partitions, 'partition')}"


def _day(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d}"
