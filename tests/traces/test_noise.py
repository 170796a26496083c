"""A day of healthy, noisy traffic on a hundred groups: nobody is in trouble, and nobody is said to be.

What CI judges is the first hour and a quarter of every group; ``make test-long`` judges every sample of the day, and
that part with all groups together.
"""

from bisect import bisect_right
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

import pytest

from lagwise.traces.trace import read_trace
from lagwise_app.replay.shown import shown_of
from tests.traces import noise
from tests.traces.made_day import late, untrue

pytestmark = pytest.mark.thorough


#: What CI judges: this much of the day, every so many samples.
HOURS, EVERY = 1.25, 12


def unhealthy(number: int, hours: float, every: int) -> list[str]:
    """Every false verdict, once the group can be judged, in words."""
    trace = noise.trace_of([number], hours)
    settled = bisect_right(trace.sample_times, noise.SETTLED_S)
    return untrue(trace, range(settled + number % every, len(trace.sample_times), every))


@pytest.mark.parametrize("number", range(0, noise.GROUPS, 10))
def test_no_false_alarm_at_the_beginning_of_the_day(number: int) -> None:
    assert [words for n in range(number, number + 10) for words in unhealthy(n, HOURS, EVERY)] == []


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("number", range(0, noise.GROUPS, 10))
def test_no_false_alarm_in_the_whole_day(number: int) -> None:
    """Ten groups at a time: about six minutes on two cores."""
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        results = [pool.submit(unhealthy, n, noise.HOURS, 1) for n in range(number, number + 10)]
        assert [words for result in results for words in result.result()] == []


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_no_false_alarm_with_all_groups_together() -> None:
    trace = replace(noise.trace_of(range(noise.GROUPS), HOURS), evaluate_every_s=300.0)
    shown = shown_of(trace)
    of_groups = [one for one in shown if one.partition is None and one.time_s >= noise.SETTLED_S]
    assert len(of_groups) == noise.GROUPS * (1 + round((HOURS * 3600 - noise.SETTLED_S) / 300))
    assert Counter(one.status for one in of_groups if one.status not in noise.WELL) == Counter()


@pytest.mark.parametrize("number", range(0, noise.GROUPS, 9))
def test_what_is_written_is_read_within_minutes(number: int) -> None:
    """That all is well is true of the world, whatever is said of it: whoever looks at any time finds all of it
    committed five minutes later."""
    assert late(noise.trace_of([number], noise.HOURS)) == []


def test_the_noise_is_noisy() -> None:
    """Guards the tests above: the day has backlogs, rebalances, restarts and missed samples."""
    groups = [noise.Group(number, noise.DAY_S) for number in range(noise.GROUPS)]
    assert sum(len(group.bursts) for group in groups) > 2_000
    assert sum(len(group.deployments) for group in groups) > 200
    assert sum(group.is_engine for group in groups) >= 10
    assert {group.commit_every_s for group in groups} == {5.0, 15.0, 30.0, 60.0, 180.0}
    assert len(noise.missed(noise.DAY_S)) > 15
    trace = noise.trace_of([25], noise.HOURS)
    ends = {row["sampled_at"]: row["high_watermark"] for row in trace.rows["watermarks"]}
    lags = [ends[row["sampled_at"]] - row["committed"] for row in trace.rows["commits"]]
    assert max(lags) > 5 * sum(lags) / len(lags) > 0


def test_a_part_of_the_day_is_the_same_in_every_trace() -> None:
    short, long = (noise.trace_of([5], hours) for hours in (1.0, 2.0))
    end = max(row["sampled_at"] for row in short.rows["commits"])
    for table in ("commits", "watermarks", "groups", "members"):
        assert short.rows[table] == [row for row in long.rows[table] if row["sampled_at"] <= end]


def test_the_written_trace_equals_the_judged_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["noise", str(tmp_path), "--groups", "2", "--first", "3", "--hours", "0.5"])
    noise.main()
    assert read_trace(tmp_path / noise.NAME) == noise.trace_of(range(3, 5), 0.5)
