"""How a group-partition moved, from its samples. Each row says why its answer is right."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lagwise.domain.history import (
    DAY_SECONDS,
    LOOKBACK_SECONDS,
    Movement,
    Observation,
    bucket_in,
    bucket_of,
    clock_from,
    gap_seconds,
    in_window,
    known_steps,
    movement_of,
    standstill_of,
    whole_hours_until,
)
from tests.domain.observed import GAP, seen

reproducible = settings(max_examples=200)

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


@pytest.mark.parametrize(
    ("committed", "log_start", "high", "stable", "lag"), [r[2:] for r in LAGS], ids=[f"{r[0]} {r[1]}" for r in LAGS]
)
def test_lag_of_a_sample(
    committed: int | None, log_start: int | None, high: int | None, stable: int | None, lag: int | None
) -> None:
    assert Observation(0.0, committed, log_start, high, stable).lag == lag


class TestClock:
    def test_it_starts_at_an_hour_of_utc_so_that_hours_and_minutes_are_its_buckets(self) -> None:
        clock = clock_from(datetime(2026, 11, 21, 12, 34, 56, 789, tzinfo=UTC))
        assert clock(datetime(2026, 11, 21, 12, 0, tzinfo=UTC)) == 0.0
        now = clock(datetime(2026, 11, 21, 12, 34, 56, 789, tzinfo=UTC))
        assert bucket_of(clock(datetime(2026, 11, 21, 12, 29, 59, 999_999, tzinfo=UTC)), now) == 29 * 60.0
        before = clock(datetime(2026, 11, 21, 11, 59, 59, 999_999, tzinfo=UTC))
        assert bucket_of(before, now) == -300.0
        assert bucket_in(DAY_SECONDS, before, now) == -3600.0

    def test_it_is_exact_to_the_microsecond(self) -> None:
        """Seconds since the epoch are not: at 1.8 billion their last digit is a quarter of a microsecond."""
        origin = datetime(2026, 11, 21, 12, 34, 56, tzinfo=UTC)
        clock = clock_from(origin)
        assert clock(origin + timedelta(microseconds=1)) - clock(origin) == pytest.approx(1e-6, rel=1e-6)

    def test_time_zones_of_half_an_hour_and_of_odd_minutes_share_the_minutes_of_utc(self) -> None:
        """Liberia was 44 min 30 s behind until 1972: its minutes began elsewhere."""
        at = datetime(2026, 11, 21, 12, 34, 56, tzinfo=UTC)
        for zone in (timedelta(hours=5, minutes=30), -timedelta(minutes=44, seconds=30)):
            assert clock_from(at.astimezone(timezone(zone)))(at) == 34 * 60.0 + 56.0


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
        buckets = [60.0 * n for n in range(-3, 12)]
        assert [b for b in buckets if in_window(b, 330.0, 300.0)] == [60.0, 120.0, 180.0, 240.0, 300.0]

    def test_a_minute_that_begins_with_the_window_is_out_and_the_last_one_in(self) -> None:
        assert not in_window(0.0, 300.0, 300.0)
        assert in_window(300.0, 300.0, 300.0)

    @reproducible
    @given(st.floats(0.0, 59.999), st.floats(-5000.0, 0.0), st.sampled_from([300.0, 900.0, 3600.0]))
    def test_all_that_is_younger_by_a_bucket_counts_and_nothing_older(
        self, as_of: float, age: float, window: float
    ) -> None:
        at = as_of + age
        if at > as_of - window + (300.0 if window > 900.0 else 60.0):
            assert in_window(bucket_of(at, as_of), as_of, window)
        if at <= as_of - window:
            assert not in_window(bucket_of(at, as_of), as_of, window)


class TestDay:
    """The window of a day: 23 whole hours, and what came after them."""

    @pytest.mark.parametrize(
        ("as_of", "until"),
        [(0.0, -3600.0), (599.9, -3600.0), (600.0, 0.0), (4199.9, 0.0), (4200.0, 3600.0)],
        ids=["on the hour", "it is not yet whole", "ten minutes later it is", "until the next is", "the next"],
    )
    def test_the_last_hour_is_whole_ten_minutes_after_its_end(self, as_of: float, until: float) -> None:
        assert whole_hours_until(as_of) == until

    @pytest.mark.parametrize("as_of", [600.0, 1800.0, 4199.0])
    def test_what_it_holds_changes_at_its_end_only_until_the_next_hour_is_whole(self, as_of: float) -> None:
        first = -23 * 3600.0
        assert in_window(bucket_in(DAY_SECONDS, first, as_of), as_of, DAY_SECONDS)
        assert not in_window(bucket_in(DAY_SECONDS, first - 0.001, as_of), as_of, DAY_SECONDS)
        assert in_window(bucket_in(DAY_SECONDS, as_of, as_of), as_of, DAY_SECONDS)

    def test_before_the_last_whole_hour_buckets_are_hours(self) -> None:
        times = [-3600.0, -0.001, 0.0, 899.0, 1740.0, 1799.0]
        assert [bucket_in(DAY_SECONDS, at, 1800.0) for at in times] == [-3600.0, -3600.0, 0.0, 600.0, 1740.0, 1740.0]


# now, time → start of its bucket
BUCKETS = (
    (1, "a minute, while it is young", 1800.0, 1799.0, 1740.0),
    (2, "a minute, up to the last quarter of an hour", 1800.0, 900.0, 900.0),
    (3, "five minutes, before that", 1800.0, 899.0, 600.0),
    (4, "a minute, where five of them lie only partly before that", 1860.0, 910.0, 900.0),
    (5, "its five minutes, as soon as these lie before it as a whole", 2100.0, 910.0, 900.0),
    (6, "until then its minute", 2099.0, 1199.0, 1140.0),
)


@pytest.mark.parametrize(("now", "at", "start"), [r[2:] for r in BUCKETS], ids=[f"{r[0]} {r[1]}" for r in BUCKETS])
def test_bucket(now: float, at: float, start: float) -> None:
    assert bucket_of(at, now) == start


class TestSteps:
    def steps(self, *observations: Observation) -> list[bool]:
        return [is_step for _, _, is_step in known_steps(observations, GAP)]

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

# samples, now → movement
MOVEMENTS: tuple[tuple[int, str, list[Observation], float, Movement], ...] = (
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


@pytest.mark.parametrize(
    ("observations", "now", "movement"), [r[2:] for r in MOVEMENTS], ids=[f"{r[0]:02d} {r[1]}" for r in MOVEMENTS]
)
def test_movement(observations: list[Observation], now: float, movement: Movement) -> None:
    assert movement_of(observations, now, GAP) == movement


class TestRecreation:
    """The topic was deleted at 70 s and created again: the minute from 60 s to 120 s holds samples of both."""

    OLD = seen((0.0, 90, 99), (60.0, 95, 99), topic="a")

    def test_starting_again_on_the_new_topic_is_no_rewind(self) -> None:
        found = movement_of([*self.OLD, *seen((75.0, 5, 9), topic="b")], 75.0, GAP, recreated_at=75.0)
        assert found == Movement(75.0, None, 1, 60.0, None)

    def test_a_rewind_within_its_minute_does_not_count(self) -> None:
        new = seen((75.0, 5, 9), (90.0, 2, 9), topic="b")
        assert movement_of([*self.OLD, *new], 90.0, GAP, recreated_at=75.0).rewound_from is None

    def test_a_rewind_in_the_minute_after_it_counts(self) -> None:
        new = seen((105.0, 5, 9), (120.0, 2, 9), topic="b")
        assert movement_of([*self.OLD, *new], 120.0, GAP, recreated_at=75.0).rewound_from == 5

    def test_a_rewind_before_it_is_forgotten(self) -> None:
        old = seen((0.0, 90, 99), (15.0, 40, 99), topic="a")
        new = seen((75.0, 5, 9), (130.0, 6, 9), topic="b")
        assert movement_of([*old, *new], 130.0, GAP, recreated_at=75.0).rewound_from is None

    def test_once_it_lies_far_back_it_counts_from_the_five_minutes_after_it(self) -> None:
        new = seen((105.0, 5, 9), (120.0, 2, 9), topic="b")
        assert movement_of([*self.OLD, *new], 1199.0, GAP, recreated_at=75.0).rewound_from == 5
        assert movement_of([*self.OLD, *new], 1200.0, GAP, recreated_at=75.0).rewound_from is None

    def test_what_was_lost_of_the_old_topic_is_not_lost_lately(self) -> None:
        lost = seen((0.0, 10, 99), (75.0, 10, 99), log_start=50)
        kept = seen((130.0, 60, 99), log_start=50)
        assert movement_of([*lost, *kept], 130.0, GAP).lost_lately == 40
        assert movement_of([*lost, *kept], 130.0, GAP, recreated_at=75.0).lost_lately == 0


class TestLogsThatGoBack:
    def test_who_goes_back_with_the_end_of_the_log_has_not_rewound(self) -> None:
        """The log was truncated: there is no other way for a commit than back."""
        assert movement_of(seen((0.0, 90, 99), (15.0, 70, 80)), 15.0, GAP).rewound_from is None

    def test_who_goes_back_while_the_log_stands_or_grows_has(self) -> None:
        for high in (99, 120):
            assert movement_of(seen((0.0, 90, 99), (15.0, 70, high)), 15.0, GAP).rewound_from == 90

    def test_two_series_of_samples_upon_each_other_are_no_rewinds(self) -> None:
        """A clock was put back by five minutes: every other sample is of five minutes earlier."""
        early = seen(*[(15.0 * n, 150 * n, 150 * n + 9) for n in range(20)])
        late = seen(*[(15.0 * n + 7.5, 3000 + 150 * n, 3009 + 150 * n) for n in range(20)])
        both = sorted([*early, *late], key=lambda o: o.at)
        assert movement_of(both, 300.0, GAP).rewound_from is None


class TestLoss:
    def test_what_was_lost_within_five_minutes_each_record_once(self) -> None:
        losing = [replace(o, log_start=start) for o, start in zip(STOPPED, (0, 130, 150, 120, 120), strict=True)]
        assert movement_of(losing, 60.0, GAP).lost_lately == 40

    def test_a_loss_before_the_last_five_whole_minutes_is_over(self) -> None:
        observations = [*seen((59.0, 10, 99), log_start=50), *seen((300.0, 60, 99), log_start=50)]
        assert movement_of(observations, 359.0, GAP).lost_lately == 0
        assert movement_of(observations, 299.0, GAP).lost_lately == 40


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


@pytest.mark.parametrize(
    ("moved", "drained", "lag", "age", "seconds"),
    [r[2:] for r in STANDSTILLS],
    ids=[f"{r[0]} {r[1]}" for r in STANDSTILLS],
)
def test_standstill(
    moved: float | None, drained: float | None, lag: int | None, age: float | None, seconds: float
) -> None:
    assert standstill_of(Movement(moved, drained, 3, 60.0, None), lag, age, 1000.0) == seconds


def test_an_age_of_at_least_so_much_does_not_shorten_a_standstill() -> None:
    """The log went back 20 s ago and its history begins there; the commit has stood for 300 s, records unread at every
    sample."""
    movement = Movement(700.0, 650.0, 3, 60.0, None)
    assert standstill_of(movement, 40, 20.0, 1000.0, age_is_lower_bound=True) == 300.0
    assert standstill_of(movement, 40, 20.0, 1000.0) == 20.0
