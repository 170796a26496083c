"""What a verdict must not rest on: the numbers of partitions, where within a minute somebody looks, and the units in
which lag and time are counted. (The order of rows, names, whole five minutes and offsets' beginning are in
``test_evaluation_properties.py``.)

That rounds of the live analysis may fall where they will is shown on Spark: ``tests/spark/test_tick.py`` and
``test_long_history.py``. Two invariances cannot be exact, and are not claimed. One record is one record: what is less
than it over a window is rounding, and a topic with less than one per sample is nearly idle, so other units of lag are
the same only where these bounds do not bind. And a minute is a minute: windows, buckets and patience are lengths of
time in life, so a history played ten times as fast is another history; but the rules know seconds by their named
constants and the policy only, and with these in other units they say the same.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lagwise.domain.verdicts import loss, retention, samples
from lagwise.domain.verdicts import status as rules
from lagwise.domain.verdicts.direction import TREND_SHARE_OF_PRODUCE_RATE
from lagwise.domain.vocabulary import Status
from lagwise.traces.trace import Row, Trace, read_trace
from tests.contract.plain_model.records import Evidence, Jumps, Policy, Trend
from tests.domain.judged_evidence import judged as judged_evidence
from tests.domain.judged_histories import histories, verdicts
from tests.domain.test_status import ROWS
from tests.traces.judged import Pair, judged

pytestmark = pytest.mark.thorough

OFFSETS = ("committed", "next_record", "log_start", "high_watermark", "last_stable")


class TestHistories:
    """On random histories at any of their moments."""

    @settings(max_examples=100)
    @given(st.integers(0, 299), st.lists(st.integers(0, 100_000), min_size=8, max_size=8, unique=True))
    def test_partitions_of_any_numbers(self, which: int, numbers: list[int]) -> None:
        one = histories()[which % len(histories())]
        changed = one.changed(lambda _, row: _renumbered(row, numbers))
        for found, before in zip(one.judged_again(changed), one.evaluations, strict=True):
            assert verdicts(found) == {
                Pair(pair.group, pair.topic, numbers[pair.partition]): its for pair, its in verdicts(before).items()
            }
            for name, verdict in before.groups.items():
                now = found.groups[name]
                assert (now.status, now.reason) == (verdict.status, verdict.reason)
                assert now.numbers.lag_records == verdict.numbers.lag_records
                assert now.partitions_by_status == verdict.partitions_by_status

    @pytest.mark.parametrize("times", [2, 1000])
    def test_lag_in_any_unit(self, times: int) -> None:
        """Records in thousands, or batches of two: the same words, lag and losses so many times as large."""
        compared: Counter[Status] = Counter()
        for one in histories():
            found = one.judged_again(one.changed(_with_offsets(lambda offset: offset * times)))
            for now_, before_ in zip(found, one.evaluations, strict=True):
                for pair, before in before_.partitions.items():
                    if _one_record_matters(before, before):
                        continue
                    now = now_.partitions[pair]
                    assert _words(now) == _words(before), (str(one), pair)
                    assert now.lag == (None if before.lag is None else times * before.lag), (str(one), pair)
                    assert now.records_lost == times * before.records_lost, (str(one), pair)
                    for name in ("seconds_to_catch_up", "seconds_to_loss"):
                        assert getattr(now, name) == pytest.approx(getattr(before, name)), (str(one), pair)
                    compared[now.status] += 1
        assert set(compared) >= set(Status) - {Status.CATCHING_UP}
        assert sum(compared.values()) > 200

    def test_lag_is_between_nothing_and_all_there_is(self) -> None:
        """Never negative, never invented: of what could not be read there is none, and no more than the log holds."""
        known = 0
        for one in histories():
            for evaluation in one.evaluations:
                for pair, row in evaluation.partitions.items():
                    if row.lag is None:
                        continue
                    assert row.high_watermark is not None, (str(one), pair)
                    assert row.log_start is not None, (str(one), pair)
                    assert 0 <= row.lag <= max(0, row.high_watermark - row.log_start), (str(one), pair)
                    # Without a commit it is known only where there is no record at all.
                    committed = row.log_start if row.committed is None else row.committed
                    assert row.committed is not None or row.log_start == row.high_watermark, (str(one), pair)
                    assert row.lag <= row.high_watermark - committed, (str(one), pair)
                    known += 1
        assert known > 200


#: Traces stand at the start of an hour; here they begin elsewhere within the minute and the five minutes.
@pytest.mark.parametrize("by_s", [7.0, 163.0])
def test_truths_are_met_wherever_the_minutes_fall(by_s: float) -> None:
    """Buckets are minutes of the clock; the same story a few seconds later is split otherwise and judged the same."""
    misses = []
    for folder in sorted(path.parent for path in (Path(__file__).parents[1] / "traces").glob("*/trace.toml")):
        misses += list(_misses(_later(read_trace(folder), by_s), every=9))
    assert misses == []


class TestRules:
    """On the rows of the proof table, one by one."""

    @pytest.mark.parametrize("times", [1 / 1024, 1 / 8, 4, 1024])
    def test_time_in_any_unit(self, times: float, monkeypatch: pytest.MonkeyPatch) -> None:
        for module, name in self.lengths():
            monkeypatch.setattr(module, name, getattr(module, name) * times)
        cases = [(_in_seconds_of(r.evidence, times), _policy_in_seconds_of(r.policy, times)) for r in ROWS]
        for row, verdict in zip(ROWS, judged_evidence(cases), strict=True):
            assert _words(verdict) == (row.status, row.reason, row.reasons), row.name
            assert (verdict.lag, verdict.records_lost) == (row.lag, row.lost), row.name
            expected = None if row.to_loss is None else row.to_loss * times
            assert verdict.seconds_to_loss == pytest.approx(expected), row.name

    @pytest.mark.parametrize("times", [2, 1024])
    def test_lag_in_any_unit(self, times: int) -> None:
        compared: Counter[Status] = Counter()
        rows = [row for row in ROWS if not _one_record_matters(row.evidence, row.policy)]
        found = judged_evidence([(_in_records_of(row.evidence, times), row.policy) for row in rows])
        for row, verdict in zip(rows, found, strict=True):
            assert _words(verdict) == (row.status, row.reason, row.reasons), row.name
            assert verdict.lag == (None if row.lag is None else row.lag * times), row.name
            assert verdict.seconds_to_loss == pytest.approx(row.to_loss), row.name
            compared[verdict.status] += 1
        assert set(compared) == set(Status)

    def lengths(self) -> list[tuple[Any, str]]:
        """The constants that are lengths of time, each with its module."""
        modules = (rules, loss, retention, samples)
        return [(module, name) for module in modules for name in vars(module) if name.endswith("_SECONDS")]

    def test_every_length_of_time_is_a_named_constant(self) -> None:
        """Guards the test above: were a number of seconds written into a rule, it would not be in other units."""
        named = {name for _, name in self.lengths()}
        assert named >= {"STALLED_AFTER_SECONDS", "STOPPED_AFTER_SECONDS", "UNSEEN_AFTER_SECONDS"}
        timed = {f.name for f in fields(Evidence) if "second" in f.name}
        assert timed == {*TIMES, *RATES, "lag_seconds_is_lower_bound"}


TIMES = {
    "settled_seconds",
    "last_stable_seconds",
    "span_seconds",
    "spacing_seconds",
    "lag_seconds",
    "unmoved_seconds",
    "standstill_seconds",
    "drained_seconds",
    "moved_seconds",
    "absence_seconds",
    "commit_cadence_seconds",
    "overtaken_seconds",
    "overtaken_at_latest_seconds",
    "retention_seconds",
    "rewound_seconds",
    "segment_seconds",
    "seconds_to_expiry",
    "checkpoint_age_seconds",
    "checkpoint_interval_seconds",
}
RATES = {
    "produce_rate_per_second",
    "steady_produce_rate_per_second",
    "consume_rate_per_second",
    "log_start_rate_per_second",
}
COUNTS = {
    "committed",
    "next_record",
    "log_start",
    "high_watermark",
    "last_stable",
    "rewound_from",
    "rewound_records",
    "lost_lately",
    "earlier_log_start",
}
RECORDS = {*COUNTS, *RATES, "trend", "longer", "log_start_jumps"}


def _words(verdict: Any) -> tuple[Any, ...]:
    return verdict.status, verdict.reason, verdict.reasons


def _one_record_matters(e: Evidence | SimpleNamespace, policy: Policy | SimpleNamespace) -> bool:
    """Whether a bound of one record is what decides: fewer than one per sample, or a trend of less than one."""
    produced = e.produce_rate_per_second or 0.0
    if produced * policy.interval_seconds < 1:
        return True
    return e.span_seconds > 0 and TREND_SHARE_OF_PRODUCE_RATE * produced < 1 / e.span_seconds


def _times(value: Any, times: float) -> Any:
    if isinstance(value, Trend):
        return Trend(value.slope * times, value.low * times, value.high * times)
    if isinstance(value, Jumps):
        return Jumps(*(n * times for n in value))
    return None if value is None else value * times


def _in_seconds_of(e: Evidence, times: float) -> Evidence:
    changed_ = {name: _times(getattr(e, name), times) for name in TIMES}
    changed_ |= {name: _times(getattr(e, name), 1 / times) for name in (*RATES, "trend", "longer")}
    return replace(e, **changed_)


def _policy_in_seconds_of(policy: Policy, times: float) -> Policy:
    return Policy(**{f.name: getattr(policy, f.name) * times for f in fields(Policy)})


def _in_records_of(e: Evidence, times: int) -> Evidence:
    return replace(e, **{name: _times(getattr(e, name), times) for name in RECORDS})


def _with_offsets(change: Callable[[int], int]) -> Callable[[str, Row], Row]:
    return lambda _, row: {**row, **{name: change(row[name]) for name in OFFSETS if row.get(name) is not None}}


def _renumbered(row: Row, numbers: list[int]) -> Row:
    new = dict(row)
    if row.get("partition") is not None:
        new["partition"] = numbers[row["partition"]]
    if "assignment" in row:
        new["assignment"] = [
            {**one, "partitions": [numbers[p] for p in one["partitions"]]} for one in row["assignment"]
        ]
    return new


def _later(trace: Trace, by_s: float) -> Trace:
    by = timedelta(seconds=by_s)
    return replace(
        trace,
        sample_times=tuple(at + by_s for at in trace.sample_times),
        rows={
            table: [{**row, "sampled_at": row["sampled_at"] + by} for row in its_rows]
            for table, its_rows in trace.rows.items()
        },
        truth=tuple(replace(truth, from_s=truth.from_s + by_s, to_s=truth.to_s + by_s) for truth in trace.truth),
    )


def _misses(trace: Trace, every: int) -> Iterator[str]:
    times = trace.evaluation_times[::every]
    for at, (_, evaluation) in zip(times, judged(trace, [trace.sample_at(at) for at in times]), strict=True):
        for truth in trace.truth:
            if not truth.from_s - 1e-6 <= at <= truth.to_s + 1e-6:
                continue
            shown: Any
            if truth.partition is None:
                shown = evaluation.groups[truth.group]
            else:
                shown = evaluation.partitions[Pair(truth.group, str(truth.topic), truth.partition)]
            if not truth.is_met_by(shown.status, shown.reason):
                yield f"{trace.name} at {at:g} s: expected {truth.words}, shown {shown.status} {shown.reason or ''}"
