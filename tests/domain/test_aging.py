"""Whether the oldest unread record keeps getting older: a table of curves, and what holds of all of them.

A curve gives the age of a group's oldest unread record at a second; it is read every 15 s. With an objective of
300 s and a usual verdict after 300 s, growth means something after 600 s.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lagwise.domain.aging import AgePace, OldestUnread

Curve = Callable[[float], float]

PACE = AgePace(lag_objective_seconds=300.0, interval_seconds=15.0, commit_cadence_seconds=5.0)
BREAKS = 600.0
HOURS = 4 * 3600.0


def after(seconds: float, curve: Curve) -> Curve:
    """Caught up until then, and from then on the curve, which begins there."""
    return lambda now: 0.5 if now < seconds else curve(now - seconds)


def growing(share: float, *, teeth_seconds: float = 0.0, period_seconds: float = 60.0) -> Curve:
    """Older by a share of the time that passes, with the teeth of a consumer that restarts every period."""
    return lambda now: share * now + teeth_seconds * (now % period_seconds) / period_seconds


def readings(curve: Curve, until: float, first: float = 0.0, interval: float = 15.0) -> Iterator[tuple[float, float]]:
    for number in range(int((until - first) / interval) + 1):
        now = first + number * interval
        yield now, max(0.0, curve(now))


@dataclass(frozen=True)
class Row:
    name: str
    curve: Curve
    #: Between which seconds it is first seen to get older; None: never.
    seen: tuple[float, float] | None
    until: float = HOURS
    pace: AgePace = PACE


SLOW = AgePace(lag_objective_seconds=300.0, interval_seconds=15.0, commit_cadence_seconds=300.0)
STRICT = AgePace(lag_objective_seconds=60.0, interval_seconds=15.0, commit_cadence_seconds=5.0)
FLINK = AgePace(lag_objective_seconds=300.0, interval_seconds=15.0, commit_cadence_seconds=600.0)
PATIENT = AgePace(lag_objective_seconds=7200.0, interval_seconds=15.0, commit_cadence_seconds=5.0)

ROWS = [
    Row("stands still", after(BREAKS, growing(1.0)), (BREAKS + 600, BREAKS + 660)),
    Row("reads four fifths", after(BREAKS, growing(0.2)), (BREAKS + 1500, BREAKS + 1530)),
    Row("creeps, and is late after all", after(BREAKS, growing(0.05)), (BREAKS + 6000, BREAKS + 6030)),
    Row("restarts each minute, reads four fifths", after(BREAKS, growing(0.2, teeth_seconds=40)), (1200, 2400)),
    Row("restarts each five minutes, reads four fifths",
        after(BREAKS, growing(0.2, teeth_seconds=200, period_seconds=300)), (1200, 7200)),
    Row("restarts each minute, reads what there is", after(BREAKS, growing(0.0, teeth_seconds=55)), None),
    Row("wanders by minutes and comes back",
        lambda now: 300 + 200 * math.sin(now / 900) + 60 * math.sin(now / 70), None),
    Row("wanders from the start, by a quarter of an hour", lambda now: 900 + 500 * math.sin(now / 600), None),
    Row("is late for its objective and comes back", after(BREAKS, lambda now: max(0.0, 300 - abs(now - 300))), None),
    Row("a job of cron, each half hour", lambda now: now % 1800 if now % 1800 > 120 else 0.5, None, HOURS, PATIENT),
    Row("commits every five minutes and keeps pace", lambda now: now % 300, None, HOURS, SLOW),
    Row("commits every five minutes, reads half",
        after(BREAKS, growing(0.5, teeth_seconds=300, period_seconds=300)), (BREAKS + 1500, HOURS), HOURS, SLOW),
    Row("may be two hours late", after(BREAKS, growing(0.5)), (BREAKS + 14400, BREAKS + 14430), 5 * 3600, PATIENT),
    Row("Flink, with checkpoints of ten minutes", lambda now: 600 + now % 600, None, HOURS, FLINK),
    Row("Flink, before its rhythm is known", lambda now: 600 + now % 600, None, HOURS),
]  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_table(row: Row) -> None:
    follows = OldestUnread()
    seen = [now for now, age in readings(row.curve, row.until) if follows.see(now, age, row.pace)]
    if row.seen is None:
        assert seen == []
    else:
        earliest, latest = row.seen
        assert seen
        assert earliest <= seen[0] <= latest


def test_a_group_that_is_allowed_to_be_late_stops_getting_older_once_it_keeps_pace() -> None:
    """Half a window later at most it has grown too little, and as long again that still counts. The trend takes most of
    this time to turn, so a rule that waits for five minutes after that does not match."""

    def levels(share: float, wander: float) -> Curve:
        return lambda now: share * min(now, 1500.0) + wander * math.sin(now / 50)

    for share, wander in product((0.2, 0.5, 1.0), (0.0, 20.0)):
        follows, level = OldestUnread(), BREAKS + 1500
        curve = after(BREAKS, levels(share, wander))
        seen = [now for now, age in readings(curve, 7200.0) if follows.see(now, age, STRICT)]
        assert level <= max(seen) <= level + 1.5 * STRICT.patience_seconds


def test_what_has_caught_up_is_over_at_once() -> None:
    follows, mended = OldestUnread(), 4800.0
    curve = after(BREAKS, growing(0.2, teeth_seconds=40))
    shown = {now: follows.see(now, age if now < mended else 1.0, PACE) for now, age in readings(curve, mended + 60)}
    assert shown[mended - 15]
    assert not shown[mended]


def test_an_age_that_is_only_a_lower_bound_is_no_evidence() -> None:
    """It grows by itself, as the history that the monitor knows gets longer."""
    follows = OldestUnread()
    assert not any(follows.see(now, now, PACE, is_lower_bound=True) for now, _ in readings(lambda _: 0.0, HOURS))


def test_nothing_is_concluded_across_a_gap() -> None:
    """While no samples came the consumer may have stood still once, and kept pace ever since."""
    follows, away, back = OldestUnread(), 1200.0, 4800.0

    def curve(now: float) -> float:
        return (120.0 if now < away else 900.0) + 5 * math.sin(now)

    shown = [follows.see(now, age, PACE) for now, age in readings(curve, HOURS) if not away < now < back]
    assert not any(shown)


def test_a_part_of_a_window_without_a_sample_is_no_evidence() -> None:
    """Samples may be missed, three intervals at most: a quarter of a window is shorter."""
    follows, pace = OldestUnread(), AgePace(lag_objective_seconds=60.0, interval_seconds=300.0)
    shown = [follows.see(now, 0.9 * now, pace) for now in (k * 900.0 for k in range(40))]
    assert not shown[0]
    assert shown[-1]


def test_what_was_seen_before_changes_nothing() -> None:
    once, again = OldestUnread(), OldestUnread()
    for now, age in readings(after(BREAKS, growing(0.2, teeth_seconds=40)), 3600):
        shown = once.see(now, age, PACE)
        for _ in range(2):
            assert again.see(now, age, PACE) == shown


@given(share=st.floats(0.15, 1.0), teeth=st.floats(0.0, 60.0), period=st.sampled_from([45.0, 60.0, 100.0, 120.0]))
@settings(max_examples=40)
def test_whoever_reads_too_little_is_seen_and_stays_seen(share: float, teeth: float, period: float) -> None:
    """Whatever the teeth of its restarts: not before it means anything, and always after the longest window."""
    follows = OldestUnread()
    curve = after(15.0, growing(share, teeth_seconds=teeth, period_seconds=period))
    shown = [(now, follows.see(now, age, PACE)) for now, age in readings(curve, 7200.0)]
    assert min(now for now, older in shown if older) >= PACE.patience_seconds
    assert all(older for now, older in shown if now >= 8 * PACE.patience_seconds)


@given(heights=st.lists(st.floats(20.0, 900.0), min_size=4, max_size=30), readings_each=st.integers(8, 38))
@settings(max_examples=40)
def test_whoever_comes_back_within_the_patience_is_never_seen(heights: list[float], readings_each: int) -> None:
    """Every excursion ends with next to nothing unread, however high it was."""
    assert readings_each * PACE.interval_seconds < PACE.patience_seconds
    follows = OldestUnread()

    def curve(now: float) -> float:
        excursion, reading = divmod(int(now // 15), readings_each)
        return heights[excursion] * reading / readings_each

    until = 15.0 * (len(heights) * readings_each - 1)
    assert not any(follows.see(now, age, PACE) for now, age in readings(curve, until))


@given(share=st.floats(0.1, 0.6), teeth=st.floats(0.0, 60.0), restarts=st.integers(60, 300))
@settings(max_examples=40)
def test_a_restart_that_reads_the_history_gives_the_same(share: float, teeth: float, restarts: int) -> None:
    curve = after(BREAKS, growing(share, teeth_seconds=teeth))
    live, history = OldestUnread(), []
    for now, age in readings(curve, 15.0 * restarts):
        shown = live.see(now, age, PACE)
        history.append((now, age))
    fresh, again = OldestUnread(), False
    for now, age in history:
        if now >= history[-1][0] - PACE.remembered_seconds:
            again = fresh.see(now, age, PACE)
    assert again == shown
