"""What every verdict looks like, whatever the history: how its words and its numbers go together."""

import re

from lagwise.domain.partition_rollup import total
from lagwise.domain.verdicts.status import REBALANCES_OF_UNREST, SHARE_OF_UNREST
from lagwise.domain.vocabulary import LossCause, Status, UnknownReason
from tests.domain.judged_histories import groups, partitions


class TestPartitions:
    def test_the_status_is_the_first_of_the_reasons_or_unknown_the_last(self) -> None:
        for where, _, row in partitions():
            assert list(row.reasons) == sorted(set(row.reasons), key=lambda s: s.rank), where
            place = -1 if row.status is Status.UNKNOWN else 0
            assert row.reasons[place] is row.status, where

    def test_unknown_and_only_unknown_has_a_reason(self) -> None:
        for where, _, row in partitions():
            assert (row.reason is not None) == (row.status is Status.UNKNOWN), where

    def test_ok_ghost_and_unknown_are_no_further_reasons(self) -> None:
        for where, _, row in partitions():
            assert not {Status.OK, Status.GHOST, Status.UNKNOWN} & set(row.reasons[:-1]), where

    def test_only_worries_that_catch_up_can_be_hidden_behind_unknown(self) -> None:
        for where, _, row in partitions():
            if row.status is Status.UNKNOWN:
                assert set(row.reasons) <= {Status.CATCHING_UP, Status.UNKNOWN}, where

    def test_an_age_is_known_exactly_where_the_lag_is(self) -> None:
        for where, _, row in partitions():
            seconds, is_bound = row.lag_seconds, row.lag_seconds_is_lower_bound
            assert (seconds is None) == (row.lag is None), where
            assert seconds is None or seconds >= 0.0, where
            assert seconds is not None or not is_bound, where
            if row.lag == 0:
                assert (seconds, is_bound) == (0.0, False), where

    def test_lag_is_known_unless_the_partition_is_none_of_the_group_s_or_cannot_be_read(self) -> None:
        known_lag = {UnknownReason.REBALANCING, UnknownReason.TOO_FEW_SAMPLES, None}
        for where, _, row in partitions():
            is_known = row.status is not Status.GHOST and row.reason in known_lag
            assert (row.lag is not None) == is_known, where

    def test_lag_and_loss_are_never_negative(self) -> None:
        for where, _, row in partitions():
            assert row.records_lost >= 0, where
            assert row.lag is None or row.lag >= 0, where

    def test_the_status_is_losing_data_exactly_where_records_were_lost(self) -> None:
        for where, _, row in partitions():
            assert (Status.LOSING_DATA in row.reasons) == (row.records_lost > 0), where

    def test_catching_up_comes_with_the_time_until_the_lag_is_gone_and_nothing_else_does(self) -> None:
        """Right after an outage there is no trend yet that could tell the time."""
        for where, _, row in partitions():
            seconds = row.seconds_to_catch_up
            if Status.CATCHING_UP in row.reasons and row.has_resumed:
                continue
            assert (Status.CATCHING_UP in row.reasons) == (seconds is not None), where
            assert seconds is None or seconds > 0.0, where

    def test_lag_does_not_grow_and_shrink_and_stay_level_at_once(self) -> None:
        ways = {Status.FALLING_BEHIND, Status.CATCHING_UP, Status.LAGGING}
        for where, _, row in partitions():
            assert len(ways & set(row.reasons)) <= 1, where

    def test_stopped_is_without_an_owner_and_stalled_with_one(self) -> None:
        for where, _, row in partitions():
            is_unowned = (
                not row.has_owner
                or row.was_stopped
                or row.rebalancing_now
                or row.samples_of_unrest >= max(REBALANCES_OF_UNREST, SHARE_OF_UNREST * row.group_samples)
            )
            assert Status.STOPPED not in row.reasons or is_unowned, where
            # Who stalled and is between two owners has not read on.
            assert Status.STALLED not in row.reasons or row.has_owner or row.was_stalled, where

    def test_the_status_is_at_risk_exactly_where_the_loss_is_within_the_horizon(self) -> None:
        for where, history, row in partitions():
            seconds, horizon = row.seconds_to_loss, history.trace.risk_horizon_s
            assert seconds is None or seconds >= 0.0, where
            is_near = seconds is not None and seconds <= horizon
            assert (Status.AT_RISK in row.reasons) == is_near, where

    def test_a_loss_to_come_has_a_cause_and_that_of_records_needs_records(self) -> None:
        causes = set()
        for where, _, row in partitions():
            causes.add(row.loss_cause)
            assert (row.loss_cause is None) == (row.seconds_to_loss is None), where
            if row.loss_cause is LossCause.DELETION:
                assert row.lag, where
            if row.loss_cause is LossCause.EXPIRY:
                assert (row.seconds_to_loss, row.is_empty) == (row.seconds_to_expiry, True), where
        assert causes == {None, *LossCause}

    def test_a_standstill_is_no_longer_than_the_offset_has_stood_and_the_oldest_record_waited(self) -> None:
        for where, _, row in partitions():
            assert 0.0 <= row.standstill_seconds <= row.unmoved_seconds, where
            if row.lag is not None and not row.lag_seconds_is_lower_bound:
                assert row.standstill_seconds <= row.lag_seconds, where


class TestGroups:
    def test_a_group_has_the_worst_status_and_never_hides_that_something_is_unknown(self) -> None:
        for where, its, group in groups():
            verdicts = [one for one in its if one.status is not Status.GHOST]
            known = sorted((v.status for v in verdicts if v.reason is None), key=lambda s: s.rank)
            unknown = any(v.reason is not None for v in verdicts)
            is_well = not known or known[0] in (Status.OK, Status.CATCHING_UP)
            expected = Status.UNKNOWN if is_well and (unknown or not known) else known[0]
            assert group.status is expected, where

    def test_sums_and_counts_are_those_of_its_partitions(self) -> None:
        for where, its, group in groups():
            verdicts = [one for one in its if one.status is not Status.GHOST]
            known = [v for v in verdicts if v.status is not Status.UNKNOWN]
            assert group.partitions == len(verdicts), where
            counted = {s: n for s, n in group.partitions_by_status.items() if s is not Status.GHOST}
            assert counted == {s: n for s in Status if (n := sum(v.status is s for v in verdicts))}, where
            assert group.numbers.lag_records == total(v.lag for v in known), where
            assert group.numbers.records_lost == sum(v.records_lost for v in known), where
            soonest = min((v.seconds_to_loss for v in verdicts if v.seconds_to_loss is not None), default=None)
            assert group.numbers.seconds_to_loss == soonest, where

    def test_its_sentence_is_one(self) -> None:
        for where, _, group in groups():
            assert re.fullmatch(r"[A-Z0-9].*[^.]\.", group.sentence), where
            assert not re.search(r"None|nan|inf\b|—|\b0 of\b|  ", group.sentence), (where, group.sentence)
