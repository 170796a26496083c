"""Where the lag of a group-partition is going and how fast it reads, and in which window that is looked at."""

from types import SimpleNamespace

import numpy as np
import pytest

from lagwise.domain.verdicts.trend import slope_and_margin
from lagwise.domain.verdicts.windows import DAY_SECONDS, WINDOWS_SECONDS, windows_for
from tests.domain.lags import statistics_of
from tests.domain.observed import INTERVAL, Sample, pace, seen, steady

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


def windows(*cases: tuple[int, float, float, float | None]) -> list[tuple[float, float] | None]:
    """From commits seen, seconds with a backlog, sampling interval and usual pause."""
    moves, *others = zip(*cases, strict=True)
    window, longer, is_measurable = windows_for(np.array(moves), *(np.array(its, np.float64) for its in others))
    lengths = np.array([*WINDOWS_SECONDS, DAY_SECONDS])
    found = zip(lengths[window].tolist(), lengths[longer].tolist(), strict=True)
    return [pair if measurable else None for pair, measurable in zip(found, is_measurable.tolist(), strict=True)]


def test_window() -> None:
    found = windows(*((*row[2:5], None) for row in WINDOWS))
    assert dict(zip([row[:2] for row in WINDOWS], found, strict=True)) == {row[:2]: row[5] for row in WINDOWS}


def test_window_of_usual_pauses() -> None:
    """A window holds four of them, however many commits there are between two."""
    cases = {(24, 900.0): LONG, (24, 901.0): DAY, (0, 3480.0): DAY, (24, 21_600.0): DAY, (24, 21_601.0): None}
    cases[2, 300.0] = DAY
    assert windows(*((moves, 3600.0, 15.0, usual) for moves, usual in cases)) == list(cases.values())


def test_the_shortest_window_that_holds_four_commits_and_five_samples() -> None:
    chance = np.random.default_rng(1)
    moves = chance.integers(0, 51, 10_000)
    backlog, interval = (chance.uniform(low, high, 10_000) for low, high in ((0.0, 3600.0), (1.0, 20_000.0)))
    interval[::2] /= 22
    found = windows(*((*case, None) for case in zip(moves.tolist(), backlog.tolist(), interval.tolist(), strict=True)))
    for pair, n, waited, every in zip(found, moves.tolist(), backlog.tolist(), interval.tolist(), strict=True):
        cadence = waited / n if n else 0.0
        suited = [w for w in (300.0, 900.0, 3600.0, 86_400.0) if 4 * cadence <= w and 5 * every <= w]
        assert (pair[0] if pair else None) == (suited[0] if suited else None)
        assert pair is None or pair[1] >= pair[0]
    assert {pair and pair[0] for pair in found} == {None, 300.0, 900.0, 3600.0, 86_400.0}


def known_of(found: SimpleNamespace) -> tuple[object, ...]:
    names = ("window_seconds", "trend_is_measurable", "samples", "span_seconds", "trend", "longer")
    return (*(getattr(found, name) for name in names), found.consume_rate_per_second)


class TestPace:
    def test_of_a_group_that_reads_eight_of_ten_records(self) -> None:
        found = pace(steady(1785.0, written=10.0, read=8.0), 1785.0)
        assert (found.window_seconds, found.trend_is_measurable) == (300.0, True)
        # The minutes from 1,500 s on: four samples in each of five, from 1,500 s to 1,785 s.
        assert (found.samples, found.span_seconds) == (20, 285.0)
        assert found.consume_rate_per_second == pytest.approx(8.0)
        assert found.trend is not None and found.longer is not None
        assert found.trend[0] == pytest.approx(2.0)
        assert found.longer[0] == pytest.approx(2.0)

    def test_growth_that_has_begun_is_seen_in_the_short_window_first(self) -> None:
        level, growing = steady(1500.0), steady(285.0, read=5.0)
        end = level[-1]
        assert end.committed is not None
        later = [
            o._replace(
                at=1500.0 + o.at, committed=end.committed + o.committed, high_watermark=15_000 + o.high_watermark
            )
            for o in growing[1:]
            if o.committed is not None and o.high_watermark is not None
        ]
        found = pace([*level, *later], 1785.0)
        assert found.trend is not None and found.longer is not None
        assert found.trend[0] == pytest.approx(5.0)
        assert 0.0 < found.longer[0] < 2.5

    def test_without_any_sample_nothing_is_known(self) -> None:
        assert known_of(pace([], 600.0)) == (300.0, True, 0, 0.0, None, None, None)

    def test_one_sample_has_no_rate(self) -> None:
        assert known_of(pace(seen((590.0, 5, 9)), 600.0)) == (300.0, True, 1, 0.0, None, None, None)

    def test_samples_whose_lag_is_not_known_do_not_count(self) -> None:
        found = pace(seen((540.0, 0, 90), (555.0, None, 90), (570.0, 99, 90), (585.0, 45, 90)), 600.0)
        assert (found.samples, found.span_seconds, found.consume_rate_per_second) == (2, 45.0, 1.0)

    def test_an_offset_that_went_back_reads_nothing_and_not_less(self) -> None:
        assert pace(seen((540.0, 500, 900), (600.0, 100, 900)), 600.0).consume_rate_per_second == 0.0

    def test_too_slow_a_collector_leaves_the_rate_over_the_hour_and_no_trend(self) -> None:
        found = pace(seen((0.0, 0, 900), (1800.0, 90, 900), (3600.0, 180, 900)), 3600.0, interval=18_000.0)
        assert known_of(found) == (3600.0, False, 2, 1800.0, None, None, 0.05)

    def test_rare_commits_are_judged_on_a_day(self) -> None:
        """Ten a second come, and five are read, committed every twenty minutes: an hour holds three teeth of that."""
        hours = 26
        rare = [o._replace(committed=int(o.at // 1200) * 6000) for o in steady(hours * 3600.0)[::4]]
        found = pace(rare, hours * 3600.0, interval=60.0)
        assert found.window_seconds == DAY_SECONDS
        assert found.span_seconds == 24 * 3600.0
        assert found.trend is not None and found.trend == found.longer
        assert 1.0 < found.trend[1] < 5.0 < found.trend[2]

    def test_a_day_of_rare_commits_that_keep_up_is_no_trend(self) -> None:
        level = [o._replace(committed=int(o.at // 1200) * 12_000) for o in steady(26 * 3600.0)[::4]]
        found = pace(level, 26 * 3600.0, interval=60.0)
        assert found.trend is not None
        assert found.trend[1] < 0.0 < found.trend[2]

    def test_a_topic_re_created_within_the_day_is_judged_from_the_hour_after_it(self) -> None:
        now = 26 * 3600.0
        rare = [o._replace(committed=int(o.at // 1200) * 12_000) for o in steady(now)[::4]]
        found = pace(rare, now, interval=60.0, recreated_at=20.5 * 3600.0)
        assert found.span_seconds == now - 21 * 3600.0

    def test_a_slow_committer_is_judged_on_a_window_that_holds_its_sawtooth(self) -> None:
        slow = [o._replace(committed=int(o.at // 120) * 1200) for o in steady(1785.0)]
        found = pace(slow, 1785.0)
        assert found.window_seconds == 900.0
        assert found.trend is not None
        assert found.trend[1] < 0.0 < found.trend[2]

    def test_the_longest_window_confirms_itself(self) -> None:
        found = pace(steady(3585.0, read=8.0)[::16], 3585.0, interval=240.0)
        assert found.window_seconds == 3600.0
        assert found.trend == found.longer

    def test_a_re_created_topic_is_judged_from_the_minute_after_it(self) -> None:
        """The old backlog of 1,000,000 shrank at once to that of the new topic: that is no catching up."""
        old = [o._replace(high_watermark=1_000_000, topic="a") for o in steady(285.0)]
        new = [o._replace(topic="b") for o in steady(900.0, start=300.0)]
        found = pace([*old, *new], 900.0, recreated_at=300.0)
        assert found.trend is not None and found.longer is not None
        assert found.longer[0] == pytest.approx(0.0, abs=1e-9)
        # The long window without the minute of the re-creation: 360 s to 900 s. The short one: 660 s to 900 s.
        assert pace([*old, *new], 900.0, interval=180.0, recreated_at=300.0).span_seconds == 540.0
        assert found.span_seconds == 240.0


class TestTroughs:
    """What is left unread at the last commit before each pause."""

    @staticmethod
    def every(seconds: float, until: float, *, read: float) -> list[Sample]:
        """Of 10 records a second so many are read, and committed every so many seconds."""
        return [
            o._replace(committed=int(read * (o.at // seconds) * seconds))
            for o in steady(until, written=10.0, read=read)
        ]

    def test_who_commits_every_two_minutes_shows_growth_that_its_samples_hide(self) -> None:
        found = pace(self.every(120.0, 1785.0, read=8.0), 1785.0)
        assert found.trough_slope == pytest.approx(2.0)
        assert 1.9 < found.trough_low <= found.trough_high < 2.1
        assert found.trend is not None and found.trend[1] < 0.0

    def test_a_level_is_no_growth(self) -> None:
        found = pace(self.every(120.0, 1785.0, read=10.0), 1785.0)
        assert found.trough_slope == pytest.approx(0.0, abs=1e-9)

    @pytest.mark.parametrize(
        ("samples", "as_of"),
        [
            pytest.param(steady(1785.0, read=5.0), 1785.0, id="it commits at every sample"),
            pytest.param(steady(1785.0, read=5.0)[::4], 1785.0, id="so does it, under a slow collector"),
        ],
    )
    def test_without_pauses_there_are_none(self, samples: list[Sample], as_of: float) -> None:
        found = pace(samples, as_of, interval=samples[1].at - samples[0].at)
        assert found.trough_slope is None and found.trough_drop is None

    def test_those_of_late_tell_that_growth_has_ended(self) -> None:
        """Half of what is written is read for half an hour, and then as much as is written."""
        grows = self.every(120.0, 1800.0, read=5.0)
        last = grows[-1].committed
        assert last is not None
        level = [
            o._replace(committed=last + int(10 * ((o.at - 1800) // 120) * 120), high_watermark=1000 + int(10 * o.at))
            for o in steady(2880.0, start=1815.0)
        ]
        found = pace([*grows, *level], 2865.0)
        assert found.trough_low > 1.0
        assert found.recent_trough_slope == pytest.approx(0.0, abs=0.5)
        assert found.recent_trough_high < found.trough_slope / 2

    def test_five_are_too_few(self) -> None:
        # The first commit at 120 s, the sixth, after which no pause has ended yet, at 720 s.
        assert pace(self.every(120.0, 825.0, read=5.0), 825.0).trough_slope is None
        assert pace(self.every(120.0, 840.0, read=5.0), 840.0).trough_slope is not None

    def test_after_an_outage_two_tell_that_less_is_unread(self) -> None:
        """It is back at 1,800 s and reads 15 records a second, of which 10 are new."""
        before = [o for o in self.every(120.0, 600.0, read=10.0) if o.at < 600.0]
        stands = [o._replace(committed=4800) for o in steady(1785.0, start=600.0)]
        stands = [o._replace(high_watermark=1000 + int(10 * o.at)) for o in stands]
        back = [
            o._replace(
                committed=4800 + int(15 * ((o.at - 1800) // 120) * 120 + 15), high_watermark=1000 + int(10 * o.at)
            )
            for o in steady(2300.0, start=1800.0)
        ]
        found = pace([*before, *stands, *back], 2295.0)
        assert found.has_resumed
        assert found.trough_drop == pytest.approx(1200.0)


class TestLeap:
    """An offset that is set to the end between two samples."""

    @staticmethod
    def leapt(at: float, until: float) -> list[Sample]:
        """Eight of ten records are read; at a time, all is skipped."""
        return [
            o._replace(committed=o.committed + int(2 * at) + 1000 if o.at >= at else o.committed)
            for o in steady(until, read=8.0)
            if o.committed is not None
        ]

    def test_windows_begin_after_it(self) -> None:
        found = pace(self.leapt(3000.0, 3285.0), 3285.0)
        assert found.has_changed
        assert found.trend is not None and found.longer is not None
        assert found.trend[0] == pytest.approx(2.0) and found.longer[0] == pytest.approx(2.0)

    def test_it_is_no_leap_to_read_faster(self) -> None:
        """In a minute four fifths of the lag are read, in four steps."""
        rows = [o._replace(committed=min(int(100 * o.at), 9 * int(o.at) + 900)) for o in steady(600.0)]
        assert not pace(rows, 600.0).has_changed

    def test_a_few_samples_are_too_few(self) -> None:
        assert not pace(self.leapt(120.0, 285.0), 285.0).has_changed
        assert pace(self.leapt(120.0, 300.0), 300.0).has_changed


class TestStepsOfAWindow:
    """Its interval rests on steps, and which steps are in it must be what merged minutes can know."""

    UNEVEN = (0, 40, 10, 70, 20, 90, 35, 60)

    def trend(self, times: list[float]) -> tuple[float, ...]:
        samples = seen(*[(t, 0, 1000 + n) for t, n in zip(times, self.UNEVEN, strict=True)])
        found: tuple[float, ...] = pace(samples, 330.0).trend
        return found

    def expected(self, times: list[float], first: int, steps: tuple[int, ...]) -> object:
        samples = [(t - 330.0, 1000.0 + n) for t, n in zip(times, self.UNEVEN, strict=True)]
        into = [(15.0, samples[n][1] - samples[n - 1][1]) for n in steps]
        slope, margin = (float(one[0]) for one in slope_and_margin(statistics_of([samples[first:]], [into])))
        return pytest.approx((slope, slope - margin, slope + margin))

    def test_the_step_into_its_first_sample_counts(self) -> None:
        times = [30.0, 45.0, 60.0, 75.0, 90.0, 105.0, 120.0, 135.0]
        assert self.trend(times) == self.expected(times, 2, (2, 3, 4, 5, 6, 7))

    def test_a_step_across_a_gap_does_not(self) -> None:
        times = [60.0, 75.0, 90.0, 105.0, 226.0, 241.0, 256.0, 271.0]
        assert self.trend(times) == self.expected(times, 0, (1, 2, 3, 5, 6, 7))


def test_without_moves_the_windows_go_by_the_samples_alone() -> None:
    found = pace(seen(*[(INTERVAL * n, 5, 1000 + 10 * n) for n in range(40)]), 585.0)
    assert (found.window_seconds, found.trend_is_measurable, found.consume_rate_per_second) == (300.0, True, 0.0)
