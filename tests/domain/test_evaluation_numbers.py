"""What every verdict looks like, whatever the history: how its words and its numbers go together."""

import re
from collections.abc import Iterator

from lagwise.domain.evidence import Verdict
from lagwise.domain.groups import GroupVerdict
from lagwise.domain.partition_rollup import total
from lagwise.domain.status import keeps_rebalancing
from lagwise.domain.verdict_rollup import Judged, shown_age
from lagwise.domain.vocabulary import LossCause, Status, UnknownReason
from tests.domain.judged_histories import Case, cases


def partitions() -> Iterator[tuple[str, Case, Judged]]:
    for case in cases():
        for pair, judged in case.evaluation.partitions.items():
            yield f"{case}: {pair}", case, judged


def groups() -> Iterator[tuple[str, list[Verdict], GroupVerdict]]:
    """Each group with the verdicts on its partitions, ghosts left out."""
    for case in cases():
        for group, verdict in case.evaluation.groups.items():
            its = [j.verdict for pair, j in case.evaluation.partitions.items() if pair.group == group]
            yield f"{case}: {group}", [v for v in its if v.status is not Status.GHOST], verdict


class TestPartitions:
    def test_the_status_is_the_first_of_the_reasons_or_unknown_the_last(self) -> None:
        for where, _, judged in partitions():
            verdict = judged.verdict
            assert list(verdict.reasons) == sorted(set(verdict.reasons), key=lambda s: s.rank), where
            place = -1 if verdict.status is Status.UNKNOWN else 0
            assert verdict.reasons[place] is verdict.status, where

    def test_unknown_and_only_unknown_has_a_reason(self) -> None:
        for where, _, judged in partitions():
            assert (judged.verdict.reason is not None) == (judged.verdict.status is Status.UNKNOWN), where

    def test_ok_ghost_and_unknown_are_no_further_reasons(self) -> None:
        for where, _, judged in partitions():
            assert not {Status.OK, Status.GHOST, Status.UNKNOWN} & set(judged.verdict.reasons[:-1]), where

    def test_only_worries_that_catch_up_can_be_hidden_behind_unknown(self) -> None:
        for where, _, judged in partitions():
            if judged.verdict.status is Status.UNKNOWN:
                assert set(judged.verdict.reasons) <= {Status.CATCHING_UP, Status.UNKNOWN}, where

    def test_an_age_is_known_exactly_where_the_lag_is(self) -> None:
        for where, _, judged in partitions():
            seconds, is_bound = shown_age(judged)
            assert (seconds is None) == (judged.verdict.lag is None), where
            assert seconds is None or seconds >= 0.0, where
            assert seconds is not None or not is_bound, where
            if judged.verdict.lag == 0:
                assert (seconds, is_bound) == (0.0, False), where

    def test_lag_is_known_unless_the_partition_is_none_of_the_group_s_or_cannot_be_read(self) -> None:
        known_lag = {UnknownReason.REBALANCING, UnknownReason.TOO_FEW_SAMPLES, None}
        for where, _, judged in partitions():
            verdict = judged.verdict
            is_known = verdict.status is not Status.GHOST and verdict.reason in known_lag
            assert (verdict.lag is not None) == is_known, where

    def test_lag_and_loss_are_never_negative(self) -> None:
        for where, _, judged in partitions():
            assert judged.verdict.records_lost >= 0, where
            assert judged.verdict.lag is None or judged.verdict.lag >= 0, where

    def test_the_status_is_losing_data_exactly_where_records_were_lost(self) -> None:
        for where, _, judged in partitions():
            assert (Status.LOSING_DATA in judged.verdict.reasons) == (judged.verdict.records_lost > 0), where

    def test_catching_up_comes_with_the_time_until_the_lag_is_gone_and_nothing_else_does(self) -> None:
        for where, _, judged in partitions():
            seconds = judged.verdict.seconds_to_catch_up
            assert (Status.CATCHING_UP in judged.verdict.reasons) == (seconds is not None), where
            assert seconds is None or seconds > 0.0, where

    def test_lag_does_not_grow_and_shrink_and_stay_level_at_once(self) -> None:
        ways = {Status.FALLING_BEHIND, Status.CATCHING_UP, Status.LAGGING}
        for where, _, judged in partitions():
            assert len(ways & set(judged.verdict.reasons)) <= 1, where

    def test_stopped_is_without_an_owner_and_stalled_with_one(self) -> None:
        for where, _, judged in partitions():
            reasons = judged.verdict.reasons
            is_unowned = judged.evidence.owner is None or keeps_rebalancing(judged.evidence)
            assert Status.STOPPED not in reasons or is_unowned, where
            assert Status.STALLED not in reasons or judged.evidence.owner is not None, where

    def test_the_status_is_at_risk_exactly_where_the_loss_is_within_the_horizon(self) -> None:
        for where, case, judged in partitions():
            seconds, horizon = judged.verdict.seconds_to_loss, case.at.policy.risk_horizon_seconds
            assert seconds is None or seconds >= 0.0, where
            is_near = seconds is not None and seconds <= horizon
            assert (Status.AT_RISK in judged.verdict.reasons) == is_near, where

    def test_a_loss_to_come_has_a_cause_and_that_of_records_needs_records(self) -> None:
        causes = set()
        for where, _, judged in partitions():
            verdict, evidence = judged.verdict, judged.evidence
            causes.add(verdict.loss_cause)
            assert (verdict.loss_cause is None) == (verdict.seconds_to_loss is None), where
            if verdict.loss_cause is LossCause.DELETION:
                assert verdict.lag, where
            if verdict.loss_cause is LossCause.EXPIRY:
                assert (verdict.seconds_to_loss, evidence.state) == (evidence.seconds_to_expiry, "Empty"), where
        assert causes == {None, *LossCause}

    def test_a_standstill_is_no_longer_than_the_offset_has_stood_and_the_oldest_record_waited(self) -> None:
        for where, _, judged in partitions():
            evidence = judged.evidence
            assert 0.0 <= evidence.standstill_seconds <= evidence.unmoved_seconds, where
            if not evidence.lag_seconds_is_lower_bound:
                assert evidence.standstill_seconds <= (evidence.lag_seconds or 0.0), where


class TestGroups:
    def test_a_group_has_the_worst_status_and_never_hides_that_something_is_unknown(self) -> None:
        for where, verdicts, group in groups():
            known = sorted((v.status for v in verdicts if v.reason is None), key=lambda s: s.rank)
            unknown = any(v.reason is not None for v in verdicts)
            is_well = not known or known[0] in (Status.OK, Status.CATCHING_UP)
            expected = Status.UNKNOWN if is_well and (unknown or not known) else known[0]
            assert group.status is expected, where

    def test_sums_and_counts_are_those_of_its_partitions(self) -> None:
        for where, verdicts, group in groups():
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
