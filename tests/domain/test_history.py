"""How a group-partition moved, from its samples. Each row says why its answer is right."""

from datetime import UTC, datetime, timedelta, timezone
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest

from lagwise.domain.verdicts.buckets import FIVE_MINUTES, MINUTE
from lagwise.domain.verdicts.columns import MICROS, start_of
from lagwise.domain.verdicts.evidence import cadence_of
from lagwise.domain.verdicts.samples import gap_seconds, steps_of
from lagwise.domain.verdicts.windows import (
    LOOKBACK_SECONDS,
    WINDOWS_SECONDS,
    first_bucket,
    next_bucket,
    whole_hours_until,
)
from lagwise.traces.trace_columns import micros_of
from tests.domain.observed import GAP, HOUR, Sample, Watched, known, pace, paces, seen, times, whole
from tests.traces.judged import plain

# committed, log start, high watermark, last stable offset → lag
LAGS = (
    (1, "forty are unread", 60, 0, 100, None, 40),
    (2, "all is read", 100, 0, 100, None, 0),
    (3, "nothing was committed: not known, and not all of it", None, 0, 100, None, None),
    (4, "the end cannot be read", 60, 0, None, None, None),
    (5, "the start cannot be read, so nobody knows what still exists", 60, None, 100, None, None),
    (6, "a commit beyond the end belongs to another log: no negative lag", 101, 0, 100, None, None),
    (7, "an open transaction hides what is behind it", 60, 0, 100, 70, 10),
    (8, "what was deleted is not lag", 60, 80, 100, None, 20),
)


def test_lag_of_a_sample() -> None:
    samples = [Sample(0.0, row[2], row[4], row[3], last_stable=row[5]) for row in LAGS]
    found = known([[sample] for sample in samples])
    lags = dict(zip(found["pair"].tolist(), found["lag"].tolist(), strict=True))
    assert {row[0:2]: lags.get(n) for n, row in enumerate(LAGS)} == {row[0:2]: row[6] for row in LAGS}


class TestClock:
    AT = datetime(2026, 11, 21, 12, 34, 56, 789, tzinfo=UTC)

    def test_it_is_exact_to_the_microsecond(self) -> None:
        """Seconds since the epoch are not: at 1.8 billion their last digit is a quarter of a microsecond."""
        assert micros_of(self.AT + timedelta(microseconds=1)) - micros_of(self.AT) == 1

    def test_time_zones_of_half_an_hour_and_of_odd_minutes_share_the_minutes_of_utc(self) -> None:
        """Liberia was 44 min 30 s behind until 1972: its minutes began elsewhere."""
        start = micros_of(self.AT.replace(second=0, microsecond=0))
        for zone in (timedelta(hours=5, minutes=30), -timedelta(minutes=44, seconds=30)):
            at = np.array([micros_of(self.AT.astimezone(timezone(zone)))])
            assert start_of(MINUTE, at).tolist() == [start]


@pytest.mark.parametrize(
    ("interval", "gap"),
    [(5.0, 120.0), (15.0, 120.0), (40.0, 120.0), (41.0, 123.0), (60.0, 180.0)],
    ids=[
        "two minutes at least",
        "the default",
        "three intervals are two minutes",
        "three intervals",
        "a slow collector",
    ],
)
def test_a_gap_is_three_intervals_and_two_minutes(interval: float, gap: float) -> None:
    assert gap_seconds(interval) == gap


class TestWindow:
    def test_it_consists_of_whole_minutes(self) -> None:
        assert seconds(first_bucket(300.0, times([330.0]))) == [60.0]

    def test_a_minute_that_begins_with_the_window_is_out_and_the_last_one_in(self) -> None:
        assert seconds(first_bucket(300.0, times([300.0]))) == [60.0]
        found = pace(seen((59.0, 0, 9), (60.0, 1, 9), (300.0, 2, 9)), 300.0)
        assert (found.samples, found.span_seconds) == (2, 240.0)

    @pytest.mark.parametrize("window", WINDOWS_SECONDS)
    def test_all_that_is_younger_by_a_bucket_counts_and_nothing_older(self, window: float) -> None:
        chance = np.random.default_rng(1)
        as_of, age = (chance.integers(0, most * MICROS, 10_000) for most in (7200, 5000))
        length = FIVE_MINUTES if window > 900 else MINUTE
        counts = start_of(length, HOUR + as_of - age) >= first_bucket(window, HOUR + as_of)
        assert counts[age < window * MICROS - length].all()
        assert not counts[age >= window * MICROS].any()


class TestDay:
    """The window of a day: 23 whole hours, and what came after them."""

    #: Now → the end of the last whole hour.
    HOURS = (
        ("on the hour", 0.0, -3600.0),
        ("it is not yet whole", 599.9, -3600.0),
        ("ten minutes later it is", 600.0, 0.0),
        ("until the next is", 4199.9, 0.0),
        ("the next", 4200.0, 3600.0),
    )

    def test_the_last_hour_is_whole_ten_minutes_after_its_end(self) -> None:
        found = seconds(whole_hours_until(times([as_of for _, as_of, _ in self.HOURS])))
        assert found == [until for *_, until in self.HOURS]

    @pytest.mark.parametrize("as_of", [600.0, 1800.0, 4199.0])
    def test_what_it_holds_changes_at_its_end_only_until_the_next_hour_is_whole(self, as_of: float) -> None:
        first = -23 * 3600.0
        found = pace(seen((first - 0.001, 0, 9), (first, 1, 9), (as_of, 2, 9)), as_of, interval=17_000.0)
        assert (found.window_seconds, found.samples, found.span_seconds) == (86_400.0, 2, as_of - first)


def seconds(times: np.ndarray) -> list[float]:
    return ((times - HOUR) / MICROS).tolist()


# now, time → start of its bucket, and its length
BUCKETS = (
    (1, "a minute, while it is young", 1800.0, 1799.0, 1740.0, 60.0),
    (2, "a minute, up to the last quarter of an hour", 1800.0, 900.0, 900.0, 60.0),
    (3, "five minutes, before that", 1800.0, 899.0, 600.0, 300.0),
    (4, "a minute, where five of them lie only partly before that", 1860.0, 910.0, 900.0, 60.0),
    (5, "its five minutes, as soon as these lie before it as a whole", 2100.0, 910.0, 900.0, 300.0),
    (6, "until then its minute", 2099.0, 1199.0, 1140.0, 60.0),
)


def test_bucket() -> None:
    found = seconds(next_bucket(times([row[3] for row in BUCKETS]), times([row[2] for row in BUCKETS])))
    assert found == [start + length for *_, start, length in BUCKETS]


class TestSteps:
    def steps(self, *samples: Sample) -> list[bool]:
        rows = known([samples])
        return steps_of(rows, np.full(len(samples), GAP))["is_step"][1:].tolist()

    def test_samples_as_far_apart_as_a_gap_are_still_joined(self) -> None:
        assert self.steps(*seen((0.0, 1, 9), (120.0, 2, 9), (240.001, 3, 9))) == [True, False]

    def test_another_topic_of_the_same_name_is_no_step(self) -> None:
        assert self.steps(*seen((0.0, 1, 9), topic="a"), *seen((15.0, 1, 9), (30.0, 1, 9), topic="b")) == [False, True]

    def test_an_unknown_topic_id_proves_nothing(self) -> None:
        unknown = seen((15.0, 1, 9))
        assert self.steps(*seen((0.0, 1, 9), topic="a"), *unknown, *seen((30.0, 1, 9), topic="a")) == [True, True]
        assert self.steps(*seen((0.0, 1, 9)), *seen((30.0, 1, 9), topic="a")) == [True]

    def test_another_topic_is_noticed_after_a_while_of_not_knowing(self) -> None:
        unknown = seen((15.0, 1, 9), (30.0, 1, 9))
        steps = self.steps(*seen((0.0, 1, 9), topic="a"), *unknown, *seen((45.0, 1, 9), topic="b"))
        assert steps == [True, True, False]


#: Committed at every sample of the first half minute, then no more.
STOPPED = seen((0.0, 100, 110), (15.0, 110, 120), (30.0, 120, 130), (45.0, 120, 140), (60.0, 120, 150))


class Movement(NamedTuple):
    """How the committed offset moved: the columns of these names."""

    moved_at: float | None
    drained_at: float | None
    moves: int
    backlog_seconds: float
    rewound_from: int | None
    lost_lately: int = 0
    rewound_records: int = 0
    rewound_at: float | None = None


def movement_of(samples: list[Sample], as_of: float, *, recreated_at: float | None = None) -> Movement:
    return movement_in(pace(samples, as_of, recreated_at=recreated_at))


def movement_in(found: SimpleNamespace) -> Movement:
    return Movement(*(getattr(found, name) for name in Movement._fields))


# samples, now → movement
MOVEMENTS: tuple[tuple[int, str, list[Sample], float, Movement], ...] = (
    (1, "never sampled", [], 60.0, Movement(None, None, 0, 0.0, None)),
    (2, "lag was never known", seen((0.0, None, 9), (15.0, 10, 9)), 60.0, Movement(None, None, 0, 0.0, None)),
    (3, "one sample: it is where it was first seen", seen((30.0, 5, 9)), 60.0, Movement(30.0, None, 0, 0.0, None)),
    (4, "moved twice, then stood", STOPPED, 60.0, Movement(30.0, None, 2, 60.0, None)),
    (
        5,
        "only time with something to commit tells the rhythm: nothing waited from 15 s to 45 s",
        seen((0.0, 5, 10), (15.0, 10, 10), (30.0, 10, 10), (45.0, 10, 12), (60.0, 12, 12)),
        60.0,
        Movement(60.0, 60.0, 2, 30.0, None),
    ),
    (
        6,
        "across a gap it is seen to have moved, but not how often or while how much waited",
        seen((0.0, 5, 10), (121.0, 8, 20), (136.0, 9, 20)),
        140.0,
        Movement(136.0, None, 1, 15.0, None),
    ),
    (
        7,
        "a sample whose lag is not known is no sample: the step leads over it",
        seen((0.0, 5, 10), (15.0, 50, 10), (30.0, 6, 10)),
        30.0,
        Movement(30.0, None, 1, 30.0, None),
    ),
    (
        8,
        "a gap may be made of samples without a known lag",
        seen((0.0, 5, 10), (60.0, None, 10), (121.0, 6, 10)),
        130.0,
        Movement(121.0, None, 0, 0.0, None),
    ),
    (
        9,
        "went back from 90 to 40",
        seen((0.0, 90, 99), (15.0, 40, 99)),
        15.0,
        Movement(15.0, None, 1, 15.0, 90, 0, 50, 15.0),
    ),
    (
        10,
        "went back twice, 60 records in all: it must pass the farthest it ever was",
        seen((0.0, 90, 99), (15.0, 40, 99), (30.0, 60, 99), (45.0, 50, 99)),
        45.0,
        Movement(45.0, None, 3, 45.0, 90, 0, 60, 45.0),
    ),
    (
        11,
        "went back behind a gap: nobody can tell that it was one step back",
        seen((0.0, 90, 99), (200.0, 40, 99)),
        200.0,
        Movement(200.0, None, 0, 0.0, None),
    ),
    (
        12,
        "an hour and more ago it moved, went back and drained: where it is since then is not forgotten, the rest is",
        seen((0.0, 90, 99), (15.0, 99, 99), (30.0, 40, 99), (45.0, 40, 99)),
        LOOKBACK_SECONDS + 60.0,
        Movement(30.0, 15.0, 0, 0.0, None),
    ),
    (
        13,
        "the five minutes that begin an hour ago are out, those after them are in",
        seen((270.0, 10, 99), (285.0, 20, 99), (300.0, 30, 99), (315.0, 40, 99)),
        LOOKBACK_SECONDS,
        Movement(315.0, None, 2, 30.0, None),
    ),
)


def test_movement() -> None:
    found = paces([Watched(samples, now) for *_, samples, now, _ in MOVEMENTS])
    assert {row[:2]: movement_in(one) for row, one in zip(MOVEMENTS, found, strict=True)} == {
        row[:2]: row[4] for row in MOVEMENTS
    }


class TestRecreation:
    """The topic was deleted at 70 s and created again: the minute from 60 s to 120 s holds samples of both."""

    OLD = seen((0.0, 90, 99), (60.0, 95, 99), topic="a")

    def test_starting_again_on_the_new_topic_is_no_rewind(self) -> None:
        found = movement_of([*self.OLD, *seen((75.0, 5, 9), topic="b")], 75.0, recreated_at=75.0)
        assert found == Movement(75.0, None, 1, 60.0, None)

    def test_a_rewind_within_its_minute_does_not_count(self) -> None:
        new = seen((75.0, 5, 9), (90.0, 2, 9), topic="b")
        assert movement_of([*self.OLD, *new], 90.0, recreated_at=75.0).rewound_from is None

    def test_a_rewind_in_the_minute_after_it_counts(self) -> None:
        new = seen((105.0, 5, 9), (120.0, 2, 9), topic="b")
        assert movement_of([*self.OLD, *new], 120.0, recreated_at=75.0).rewound_from == 5

    def test_a_rewind_before_it_is_forgotten(self) -> None:
        old = seen((0.0, 90, 99), (15.0, 40, 99), topic="a")
        new = seen((75.0, 5, 9), (130.0, 6, 9), topic="b")
        assert movement_of([*old, *new], 130.0, recreated_at=75.0).rewound_from is None

    def test_once_it_lies_far_back_it_counts_from_the_five_minutes_after_it(self) -> None:
        new = seen((105.0, 5, 9), (120.0, 2, 9), topic="b")
        assert movement_of([*self.OLD, *new], 1199.0, recreated_at=75.0).rewound_from == 5
        assert movement_of([*self.OLD, *new], 1200.0, recreated_at=75.0).rewound_from is None

    def test_what_was_lost_of_the_old_topic_is_not_lost_lately(self) -> None:
        lost = seen((0.0, 10, 99), (75.0, 10, 99), log_start=50)
        kept = seen((130.0, 60, 99), log_start=50)
        assert movement_of([*lost, *kept], 130.0).lost_lately == 40
        assert movement_of([*lost, *kept], 130.0, recreated_at=75.0).lost_lately == 0


class TestLogsThatGoBack:
    def test_who_goes_back_with_the_end_of_the_log_has_not_rewound(self) -> None:
        """The log was truncated: there is no other way for a commit than back."""
        assert movement_of(seen((0.0, 90, 99), (15.0, 70, 80)), 15.0).rewound_from is None

    def test_who_goes_back_while_the_log_stands_or_grows_has(self) -> None:
        for high in (99, 120):
            assert movement_of(seen((0.0, 90, 99), (15.0, 70, high)), 15.0).rewound_from == 90

    def test_two_series_of_samples_upon_each_other_are_no_rewinds(self) -> None:
        """A clock was put back by five minutes: every other sample is of five minutes earlier."""
        early = seen(*[(15.0 * n, 150 * n, 150 * n + 9) for n in range(20)])
        late = seen(*[(15.0 * n + 7.5, 3000 + 150 * n, 3009 + 150 * n) for n in range(20)])
        both = sorted([*early, *late], key=lambda o: o.at)
        assert movement_of(both, 300.0).rewound_from is None


class TestLoss:
    def test_what_was_lost_within_five_minutes_each_record_once(self) -> None:
        losing = [o._replace(log_start=start) for o, start in zip(STOPPED, (0, 130, 150, 120, 120), strict=True)]
        assert movement_of(losing, 60.0).lost_lately == 40

    def test_a_loss_before_the_last_five_whole_minutes_is_over(self) -> None:
        observations = [*seen((59.0, 10, 99), log_start=50), *seen((300.0, 60, 99), log_start=50)]
        assert movement_of(observations, 359.0).lost_lately == 0
        assert movement_of(observations, 299.0).lost_lately == 40


# moved at, drained at, lag, age of the oldest unread record → standstill at 1,000 s
STANDSTILLS = (
    (1, "nothing is unread", 100.0, None, 0, 0.0, 0.0),
    (2, "the lag is not known", 100.0, None, None, None, 0.0),
    (3, "it was never seen where it is", None, None, 40, 500.0, 0.0),
    (4, "since it moved, while records waited all the time", 700.0, None, 40, 900.0, 300.0),
    (5, "nothing was to be read until 900 s: it need not have moved before", 700.0, 900.0, 40, 950.0, 100.0),
    (6, "drained before it moved: since it moved", 700.0, 650.0, 40, 900.0, 300.0),
    (7, "it stood for long, and the only record is 10 s old", 100.0, None, 1, 10.0, 10.0),
    (8, "the age is not known", 700.0, None, 40, None, 0.0),
)


def standstills(*cases: tuple[float | None, float | None, int | None, float | None, bool]) -> list[float]:
    """From when it moved and drained, the lag, the age and whether that is a lower bound, at 1,000 s. One that was
    never seen to move has not stood for any time."""
    moved, drained, lag, age, is_bound = zip(*cases, strict=True)
    rows = {
        "unmoved_seconds": np.array([0.0 if at is None else 1000.0 - at for at in moved]),
        "drained_seconds": np.array([np.nan if at is None else 1000.0 - at for at in drained]),
        "lag": whole(lag),
        "lag_seconds": np.array(age, np.float64),
        "lag_seconds_is_lower_bound": np.array(is_bound),
        "moves": np.full(len(cases), 3),
        "backlog_seconds": np.full(len(cases), 60.0),
        "usual_pause_seconds": np.full(len(cases), np.nan),
    }
    return plain(cadence_of(rows)["standstill_seconds"])


def test_standstill() -> None:
    found = standstills(*((*row[2:6], False) for row in STANDSTILLS))
    assert dict(zip([row[:2] for row in STANDSTILLS], found, strict=True)) == {row[:2]: row[6] for row in STANDSTILLS}


def test_an_age_of_at_least_so_much_does_not_shorten_a_standstill() -> None:
    """The log went back 20 s ago and its history begins there; the commit has stood for 300 s, records unread at every
    sample."""
    assert standstills((700.0, 650.0, 40, 20.0, True), (700.0, 650.0, 40, 20.0, False)) == [300.0, 20.0]
