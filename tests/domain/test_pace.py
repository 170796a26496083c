"""Where the lag of a group-partition is going and how fast it reads, and in which window that is looked at."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lagwise.domain.history import DAY_SECONDS, Movement, Observation, Pace, movement_of, pace_of, windows_for
from lagwise.domain.trend import samples_of, step_of, trend_of
from tests.domain.observed import GAP, INTERVAL, seen, steady

reproducible = settings(max_examples=200)

SHORT, MIDDLE, LONG = (300.0, 900.0), (900.0, 3600.0), (3600.0, 3600.0)
DAY = (86_400.0, 86_400.0)

# commits seen, seconds with a backlog, sampling interval → window and the one that must agree
WINDOWS = (
    (1, "no commit was seen, so only the samples count: twenty in five minutes", 0, 0.0, 15.0, SHORT),
    (2, "five samples are just enough for five minutes", 0, 0.0, 60.0, SHORT),
    (3, "less than five samples are not", 0, 0.0, 60.1, MIDDLE),
    (4, "five samples in a quarter of an hour", 0, 0.0, 180.0, MIDDLE),
    (5, "a sample every four minutes needs the hour, which confirms itself", 0, 0.0, 240.0, LONG),
    (6, "five samples in an hour", 0, 0.0, 720.0, LONG),
    (7, "a sample every quarter of an hour needs the day, which confirms itself", 0, 0.0, 720.1, DAY),
    (8, "a commit every 75 s: four in five minutes", 4, 300.0, 15.0, SHORT),
    (9, "a commit every 76 s: the next window", 10, 760.0, 15.0, MIDDLE),
    (10, "a commit every 225 s: four in a quarter of an hour", 4, 900.0, 15.0, MIDDLE),
    (11, "a commit every 4 minutes", 10, 2400.0, 15.0, LONG),
    (12, "a commit every quarter of an hour: four in an hour", 4, 3600.0, 15.0, LONG),
    (13, "a commit every 16 minutes: four in a day", 3, 2880.0, 15.0, DAY),
    (14, "a fast committer under a slow collector", 30, 300.0, 180.0, MIDDLE),
    (15, "a commit an hour, as far as an hour shows", 1, 3600.0, 15.0, DAY),
    (16, "five samples in a day", 0, 0.0, 17_280.0, DAY),
    (17, "so slow a collector never sees a trend", 0, 0.0, 17_280.1, None),
)


@pytest.mark.parametrize(
    ("moves", "backlog", "interval", "windows"), [r[2:] for r in WINDOWS], ids=[f"{r[0]:02d} {r[1]}" for r in WINDOWS]
)
def test_window(moves: int, backlog: float, interval: float, windows: tuple[float, float] | None) -> None:
    assert windows_for(moves, backlog, interval) == windows


@pytest.mark.parametrize(
    ("moves", "usual", "windows"),
    [(24, 900.0, LONG), (24, 901.0, DAY), (0, 3480.0, DAY), (24, 21_600.0, DAY), (24, 21_601.0, None), (2, 300.0, DAY)],
)
def test_window_of_usual_pauses(moves: int, usual: float, windows: tuple[float, float] | None) -> None:
    """A window holds four of them, however many commits there are between two."""
    assert windows_for(moves, 3600.0, 15.0, usual) == windows


@reproducible
@given(st.integers(0, 50), st.floats(0.0, 3600.0), st.floats(1.0, 900.0) | st.floats(1.0, 20_000.0))
def test_the_shortest_window_that_holds_four_commits_and_five_samples(
    moves: int, backlog: float, interval: float
) -> None:
    found = windows_for(moves, backlog, interval)
    cadence = backlog / moves if moves else 0.0
    suited = [w for w in (300.0, 900.0, 3600.0, 86_400.0) if 4 * cadence <= w and 5 * interval <= w]
    assert (found[0] if found else None) == (suited[0] if suited else None)
    assert found is None or found[1] >= found[0]


def pace(
    observations: list[Observation], as_of: float, *, interval: float = INTERVAL, recreated_at: float | None = None
) -> Pace:
    movement = movement_of(observations, as_of, GAP, recreated_at=recreated_at)
    return pace_of(observations, as_of, movement, interval_seconds=interval, gap=GAP, recreated_at=recreated_at)


class TestPace:
    def test_of_a_group_that_reads_eight_of_ten_records(self) -> None:
        found = pace(steady(1785.0, written=10.0, read=8.0), 1785.0)
        assert (found.window_seconds, found.is_measurable) == (300.0, True)
        # The minutes from 1,500 s on: four samples in each of five, from 1,500 s to 1,785 s.
        assert (found.samples, found.span_seconds) == (20, 285.0)
        assert found.consume_rate_per_second == pytest.approx(8.0)
        assert found.trend is not None and found.longer is not None
        assert found.trend.slope == pytest.approx(2.0)
        assert found.longer.slope == pytest.approx(2.0)

    def test_growth_that_has_begun_is_seen_in_the_short_window_first(self) -> None:
        level, growing = steady(1500.0), steady(285.0, read=5.0)
        end = level[-1]
        assert end.committed is not None
        later = [
            replace(
                o, at=1500.0 + o.at, committed=end.committed + o.committed, high_watermark=15_000 + o.high_watermark
            )
            for o in growing[1:]
            if o.committed is not None and o.high_watermark is not None
        ]
        found = pace([*level, *later], 1785.0)
        assert found.trend is not None and found.longer is not None
        assert found.trend.slope == pytest.approx(5.0)
        assert 0.0 < found.longer.slope < 2.5

    def test_without_any_sample_nothing_is_known(self) -> None:
        assert pace([], 600.0) == Pace(300.0, True, 0, 0.0, None, None, None)

    def test_one_sample_has_no_rate(self) -> None:
        assert pace(seen((590.0, 5, 9)), 600.0) == Pace(300.0, True, 1, 0.0, None, None, None)

    def test_samples_whose_lag_is_not_known_do_not_count(self) -> None:
        found = pace(seen((540.0, 0, 90), (555.0, None, 90), (570.0, 99, 90), (585.0, 45, 90)), 600.0)
        assert (found.samples, found.span_seconds, found.consume_rate_per_second) == (2, 45.0, 1.0)

    def test_an_offset_that_went_back_reads_nothing_and_not_less(self) -> None:
        assert pace(seen((540.0, 500, 900), (600.0, 100, 900)), 600.0).consume_rate_per_second == 0.0

    def test_too_slow_a_collector_leaves_the_rate_over_the_hour_and_no_trend(self) -> None:
        found = pace(seen((0.0, 0, 900), (1800.0, 90, 900), (3600.0, 180, 900)), 3600.0, interval=18_000.0)
        assert (found.window_seconds, found.is_measurable, found.trend, found.longer) == (3600.0, False, None, None)
        assert (found.samples, found.span_seconds, found.consume_rate_per_second) == (2, 1800.0, 0.05)

    def test_rare_commits_are_judged_on_a_day(self) -> None:
        """Ten a second come, and five are read, committed every twenty minutes: an hour holds three teeth of that."""
        hours = 26
        rare = [replace(o, committed=int(o.at // 1200) * 6000) for o in steady(hours * 3600.0)[::4]]
        found = pace(rare, hours * 3600.0, interval=60.0)
        assert found.window_seconds == DAY_SECONDS
        assert found.span_seconds == 24 * 3600.0
        assert found.trend is not None and found.trend == found.longer
        assert 1.0 < found.trend.low < 5.0 < found.trend.high

    def test_a_day_of_rare_commits_that_keep_up_is_no_trend(self) -> None:
        level = [replace(o, committed=int(o.at // 1200) * 12_000) for o in steady(26 * 3600.0)[::4]]
        found = pace(level, 26 * 3600.0, interval=60.0)
        assert found.trend is not None
        assert found.trend.low < 0.0 < found.trend.high

    def test_a_topic_re_created_within_the_day_is_judged_from_the_hour_after_it(self) -> None:
        now = 26 * 3600.0
        rare = [replace(o, committed=int(o.at // 1200) * 12_000) for o in steady(now)[::4]]
        found = pace(rare, now, interval=60.0, recreated_at=20.5 * 3600.0)
        assert found.span_seconds == now - 21 * 3600.0

    def test_a_slow_committer_is_judged_on_a_window_that_holds_its_sawtooth(self) -> None:
        slow = [replace(o, committed=int(o.at // 120) * 1200) for o in steady(1785.0)]
        found = pace(slow, 1785.0)
        assert found.window_seconds == 900.0
        assert found.trend is not None
        assert found.trend.low < 0.0 < found.trend.high

    def test_the_longest_window_confirms_itself(self) -> None:
        found = pace(steady(3585.0, read=8.0)[::16], 3585.0, interval=240.0)
        assert found.window_seconds == 3600.0
        assert found.trend == found.longer

    def test_a_re_created_topic_is_judged_from_the_minute_after_it(self) -> None:
        """The old backlog of 1,000,000 shrank at once to that of the new topic: that is no catching up."""
        old = [replace(o, high_watermark=1_000_000, topic_id="a") for o in steady(285.0)]
        new = [replace(o, topic_id="b") for o in steady(900.0, start=300.0)]
        found = pace([*old, *new], 900.0, recreated_at=300.0)
        assert found.trend is not None and found.longer is not None
        assert found.longer.slope == pytest.approx(0.0, abs=1e-9)
        # The long window without the minute of the re-creation: 360 s to 900 s. The short one: 660 s to 900 s.
        assert pace([*old, *new], 900.0, interval=180.0, recreated_at=300.0).span_seconds == 540.0
        assert found.span_seconds == 240.0


class TestStepsOfAWindow:
    """Its interval rests on steps, and which steps are in it must be what merged minutes can know."""

    UNEVEN = (0, 40, 10, 70, 20, 90, 35, 60)

    def uneven(self, times: list[float]) -> list[Observation]:
        return seen(*[(t, 0, 1000 + lag) for t, lag in zip(times, self.UNEVEN, strict=True)])

    def test_the_step_into_its_first_sample_counts(self) -> None:
        times = [30.0, 45.0, 60.0, 75.0, 90.0, 105.0, 120.0, 135.0]
        lags = [1000.0 + lag for lag in self.UNEVEN]
        merged = samples_of((t - 330.0, lag) for t, lag in zip(times[2:], lags[2:], strict=True))
        for n in range(2, 8):
            merged += step_of(15.0, lags[n] - lags[n - 1])
        assert pace(self.uneven(times), 330.0).trend == trend_of(merged)

    def test_a_step_across_a_gap_does_not(self) -> None:
        times = [60.0, 75.0, 90.0, 105.0, 226.0, 241.0, 256.0, 271.0]
        lags = [1000.0 + lag for lag in self.UNEVEN]
        merged = samples_of((t - 330.0, lag) for t, lag in zip(times, lags, strict=True))
        for n in (1, 2, 3, 5, 6, 7):
            merged += step_of(15.0, lags[n] - lags[n - 1])
        assert pace(self.uneven(times), 330.0).trend == trend_of(merged)


def test_without_moves_the_windows_go_by_the_samples_alone() -> None:
    standing = seen(*[(INTERVAL * n, 5, 1000 + 10 * n) for n in range(40)])
    found = pace_of(standing, 585.0, Movement(0.0, None, 0, 585.0, None), interval_seconds=INTERVAL, gap=GAP)
    assert (found.window_seconds, found.is_measurable, found.consume_rate_per_second) == (300.0, True, 0.0)
