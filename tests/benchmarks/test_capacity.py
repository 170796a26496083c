"""The bench of the advice: its work costs what it says, its node runs and is measured, and its verdict can fail."""

import os
import time
import uuid
from dataclasses import replace
from itertools import islice
from pathlib import Path
from statistics import pstdev
from typing import TYPE_CHECKING

import pytest

from benchmarks.capacity.judge import Advised, Measured, Point, counts, verdict
from benchmarks.capacity.work import Mix, Work
from lagwise.domain.sizing.formulas import knee_threads, threads_for_share
from lagwise.domain.sizing.node_throughput import node_throughput

if TYPE_CHECKING:
    from lagwise_sandbox.broker import KafkaBroker

MIX = Mix(0.016, 0.004)


def point(threads: int, t1_seconds: float = 0.016) -> Point:
    """A run that did what the model says, advised from its T1."""
    truth = node_throughput(1, threads, 0.016, 0.004)
    advised = threads_for_share(1, t1_seconds, 0.004)
    assert advised is not None
    return Point(
        Measured(threads, truth.rate_per_second, t1_seconds, 0.004, truth.core_wait_seconds, 0.0, doubtful=False),
        Advised(
            knee_threads(1, t1_seconds, 0.004),
            advised,
            node_throughput(1, advised, t1_seconds, 0.004).rate_per_second,
            threads,
        ),
    )


def really(*threads: int) -> dict[int, float]:
    return {count: node_throughput(1, count, 0.016, 0.004).rate_per_second for count in threads}


POINTS = [point(threads) for threads in counts(5.0)]


class TestTheVerdict:
    def test_threads_from_one_to_four_times_the_knee(self) -> None:
        assert counts(5.0) == [1, 2, 5, 8, 10, 15, 20]
        assert counts(2.0) == [1, 2, 3, 4, 6, 8]

    def test_advice_that_is_right_holds(self) -> None:
        found = verdict(POINTS, really(8))
        assert found.holds
        assert (found.knee_spread, found.threads_spread) == (0.0, 0.0)
        assert found.prediction_error == pytest.approx(0.0)
        assert found.share_of_best > 0.95

    def test_one_thread_more_is_the_same(self) -> None:
        near = point(20, 0.0165)
        assert verdict([*POINTS, near], really(8, near.advised.threads)).holds

    def test_one_that_differs_is_seen(self) -> None:
        off = point(20, 0.030)
        found = verdict([*POINTS, off], really(8, off.advised.threads))
        assert not found.holds
        assert found.knee_spread == pytest.approx(8.5 / 5 - 1)
        assert found.threads_spread > 0.1

    def test_a_wrong_prediction_is_seen(self) -> None:
        found = verdict(POINTS, {8: 0.88 * really(8)[8]})
        assert found.prediction_error == pytest.approx(1 / 0.88 - 1)
        assert not found.holds

    def test_too_little_of_the_best_is_seen(self) -> None:
        better = replace(POINTS[0], measured=replace(POINTS[0].measured, rate_per_second=really(8)[8] / 0.92))
        found = verdict([better, *POINTS], really(8))
        assert found.share_of_best == pytest.approx(0.92)
        assert not found.holds

    def test_what_wall_minus_cpu_time_would_have_measured(self) -> None:
        assert point(1).naive_threads(1) == pytest.approx(5.0)
        assert point(20).naive_threads(1) == pytest.approx(20.0, rel=0.01)  # as many as ran


def cpu_of(work: Work, messages: int) -> float:
    began = time.thread_time()
    for _ in range(messages):
        work.handle()
    return (time.thread_time() - began) / messages


class TestTheWork:
    def test_costs_the_cpu_time_that_it_declares(self) -> None:
        assert cpu_of(Work(Mix(0.001, 0.004), seed=1), 50) == pytest.approx(0.004, rel=0.1)

    def test_random_times_have_their_mean_and_an_exponential_s_spread(self) -> None:
        times = list(islice(Work(Mix(1.0, 0.002, random=True), seed=1)._times(3.0), 200))
        assert sum(times) / 200 == pytest.approx(3.0)
        assert pstdev(times) == pytest.approx(3.0, rel=0.1)
        assert times[:100] != times[100:]

    def test_random_work_costs_its_mean(self) -> None:
        assert cpu_of(Work(Mix(1e-6, 0.002, random=True), seed=1), 100) == pytest.approx(0.002, rel=0.1)


@pytest.mark.broker
@pytest.mark.process
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="the consumers need a core of their own")
@pytest.mark.parametrize("processes", [2, 1])
def test_consumers_run_and_report_what_their_messages_cost(
    broker: "KafkaBroker", tmp_path: Path, processes: int
) -> None:
    from benchmarks.capacity.runs import Bench, Run, fill

    name = f"capacity-{uuid.uuid4().hex[:8]}"
    fill(broker, name, 2_000)
    bench = Bench(broker, tmp_path, frozenset([max(os.sched_getaffinity(0))]), seconds=2.0)
    reported = Run(bench, name, name).measure(MIX, 2, processes)
    assert reported.threads == 2
    assert reported.t2_seconds == pytest.approx(MIX.t2_seconds, rel=0.15)
    assert reported.t1_seconds >= MIX.t1_seconds
    assert 0 < reported.rate_per_second <= 2 / (MIX.t1_seconds + MIX.t2_seconds)
