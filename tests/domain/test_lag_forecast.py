"""When the lag is gone, when the objective is missed, and how sure that is: worked by hand."""

from dataclasses import replace

import pytest

from lagwise.domain.groups import verdict_of
from lagwise.domain.lag_forecast import Forecast
from lagwise.domain.partition_rollup import soonest_breach
from lagwise.domain.vocabulary import Status
from tests.contract.plain_model.records import Evidence, Policy, Trend
from tests.domain.judged_evidence import judged
from tests.domain.partitions import WAITING, part
from tests.domain.test_status import BEHIND, POLICY, STANDING


class TestCatchUp:
    """Of a lag of 600 records, which the longer window is sure to shrink."""

    def catch_up(self, trend: Trend) -> Forecast | None:
        shrinks = replace(BEHIND, high_watermark=1600, trend=trend, longer=Trend(-10.0, -12.0, -8.0))
        found: Forecast | None = judged([(shrinks, POLICY)])[0].to_catch_up
        return found

    def test_the_ends_of_the_slope_are_the_ends_of_the_time(self) -> None:
        assert self.catch_up(Trend(-10.0, -12.0, -8.0)) == Forecast(60.0, 50.0, 75.0)

    def test_where_the_slope_may_be_none_it_may_be_never(self) -> None:
        assert self.catch_up(Trend(-10.0, -20.0, 0.0)) == Forecast(60.0, 30.0, None)

    def test_what_does_not_shrink_is_never_gone(self) -> None:
        assert self.catch_up(Trend(0.0, -1.0, 1.0)) is None


class TestBreach:
    """Of a lag that the longer window is sure to grow, a minute before the objective."""

    def breach(self, trend: Trend, produced: float = 100.0) -> Forecast | None:
        grows = replace(BEHIND, lag_seconds=240.0, trend=trend, longer=Trend(10.0, 5.0, 20.0))
        found: Forecast | None = judged([(replace(grows, produce_rate_per_second=produced), POLICY)])[0].to_breach
        return found

    def test_a_tenth_too_slow_ages_by_a_tenth_of_a_second_each_second(self) -> None:
        assert self.breach(Trend(10.0, 5.0, 20.0)) == Forecast(600.0, 300.0, 1200.0)

    def test_nothing_gets_older_faster_than_time_goes_by(self) -> None:
        assert self.breach(Trend(90.0, 80.0, 200.0)) == Forecast(60.0 / 0.9, 60.0, 75.0)

    def test_where_the_slope_may_be_none_it_may_be_never(self) -> None:
        assert self.breach(Trend(10.0, 0.0, 20.0)) == Forecast(600.0, 300.0, None)

    @pytest.mark.parametrize(("slope", "produced"), [(0.0, 100.0), (-1.0, 100.0), (10.0, 0.0)])
    def test_where_nothing_gets_older_it_is_not_missed(self, slope: float, produced: float) -> None:
        assert self.breach(Trend(slope, slope - 1, slope + 1), produced) is None


class TestInAVerdict:
    GROWS = replace(BEHIND, lag_seconds=40.0, trend=Trend(2.0, 1.0, 4.0), longer=Trend(2.0, 1.0, 4.0))

    def verdict(self, evidence: Evidence, objective: float = 300.0) -> Forecast | None:
        found: Forecast | None = judged([(evidence, Policy(lag_objective_seconds=objective))])[0].to_breach
        return found

    def test_a_growing_lag_has_one(self) -> None:
        assert self.verdict(self.GROWS) == Forecast(1300.0, 650.0, 2600.0)

    def test_unread_records_age_by_the_clock(self) -> None:
        assert self.verdict(STANDING) == Forecast(180.0, 180.0, 180.0)

    def test_one_that_is_missed_already_has_none(self) -> None:
        assert self.verdict(self.GROWS, objective=40.0) is None

    @pytest.mark.parametrize(("retention", "misses"), [(None, True), (301.0, True), (300.0, False), (60.0, False)])
    def test_what_is_deleted_before_it_is_so_old_cannot_miss_it(self, retention: float | None, misses: bool) -> None:
        for evidence in (self.GROWS, STANDING):
            assert (self.verdict(replace(evidence, retention_seconds=retention)) is not None) is misses

    def test_a_level_lag_has_none(self) -> None:
        assert self.verdict(BEHIND) is None

    def test_the_group_has_the_nearest_loss_and_its_sentence_names_it(self) -> None:
        near, far = Forecast(720.0, 540.0, 1200.0), Forecast(3600.0, 60.0, None)
        assert soonest_breach([None, far, near]) == near
        assert soonest_breach([Forecast(720.0, 540.0, None), near]) == near
        found = verdict_of(
            [part(Status.FALLING_BEHIND, 2, to_breach=near, **WAITING), part(Status.OK, 1, to_breach=None, lag=0)],
            members=1,
            idle_members=0,
        )
        assert found.to_breach == near
        assert found.sentence.endswith("oldest 3 min 20 s. It misses the objective in about 12 min (9 min to 20 min).")
        alone = verdict_of(
            [part(Status.FALLING_BEHIND, to_breach=far, **WAITING)],
            members=1,
            idle_members=0,
            lag_objective_seconds=300.0,
        )
        assert alone.sentence.endswith("It misses the objective of 5 min in about 1 h (1 min at the earliest).")
