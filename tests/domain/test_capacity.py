"""From what is known of a group's work on a topic to verdict and advice: each row is a case, and what must come out."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lagwise.domain.capacity.assessment import (
    Confidence,
    NumberSource,
    assess,
    workload_of,
)
from lagwise.domain.capacity.inputs import CapacityInputs, ConsumeTime, Demand, GroupServiceTime, JobWork, Skew
from lagwise.domain.capacity.observed import ObservedCapacity, Undecided
from lagwise.domain.capacity.observed_text import NO_TEST_HELPS, load_test
from lagwise.domain.capacity.verdict import CapacityVerdict, DemandAhead
from lagwise.domain.sizing.task_slots import TaskSlots
from lagwise.domain.sizing.workload import Concurrency, Unit

NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
#: 600 a second at peak, growing to 900 in ninety days.
AHEAD = tuple(DemandAhead(NOW + timedelta(days=d), 600.0 + d * 10 / 3, 700.0 + d * 10 / 3) for d in range(1, 91))
DEMAND = Demand(
    peak_per_second=600.0, peak_at=NOW - timedelta(days=2), minutes=40_000, history_hours=700,
    forecast_peak_per_second=900.0, horizon_days=90, ahead=AHEAD, as_of=NOW,
)  # fmt: skip
#: A node of four cores does at most 1,333 of these a second.
SERVICE = GroupServiceTime(t1_seconds=0.012, t2_seconds=0.003, threads=20, messages=50_000, measured_at=NOW)
SEEN = ObservedCapacity(
    rate_per_second=1_500.0, low=1_450.0, high=1_550.0, at_least_per_second=1_400.0,
    members=6, blocks=40, until=(NOW - timedelta(hours=3)).timestamp(),
)  # fmt: skip
NEVER = ObservedCapacity(at_least_per_second=600.0, reason=Undecided.NEVER_SATURATED)
#: Four subtasks that can do 2,000 records a second together.
JOB = JobWork(
    vertex="price", subtasks=4, busy_share=0.5, records_per_second=1_000.0, samples=20, measured_until=NOW,
)  # fmt: skip
#: Six members of 20 threads each, 50 ms for a message: 2,400 a second together.
TIME = ConsumeTime(seconds_per_message=0.05, threads=120, messages=50_000, measured_at=NOW)
KNOWN = CapacityInputs(partitions=12, members=6, nodes=2, as_of=NOW, skew=Skew(1 / 12, 50_000, 40, NOW))


def known(**values: Any) -> CapacityInputs:
    return replace(KNOWN, **values)


V, C = CapacityVerdict, Confidence
# why: known → verdict, source, confidence
CASES = (
    ("nothing at all", known(), V.UNDECIDED, NumberSource.NONE, C.NONE),
    ("only what arrives", known(demand=DEMAND), V.UNDECIDED, NumberSource.NONE, C.NONE),
    ("no backlog ever", known(demand=DEMAND, observed=NEVER), V.UNDECIDED, NumberSource.THROUGHPUT, C.NONE),
    ("seen under a backlog", known(demand=DEMAND, observed=SEEN), V.ENOUGH, NumberSource.SATURATION, C.HIGH),
    (
        "and that long ago",
        known(demand=DEMAND, observed=replace(SEEN, until=(NOW - timedelta(days=30)).timestamp())),
        V.ENOUGH, NumberSource.SATURATION, C.MEDIUM,
    ),
    (
        "with another number of members",
        known(demand=DEMAND, observed=replace(SEEN, is_scaled=True)),
        V.ENOUGH, NumberSource.SATURATION, C.MEDIUM,
    ),
    (
        "less than arrives",
        known(demand=DEMAND, observed=replace(SEEN, low=500.0, high=550.0)),
        V.SHORT, NumberSource.SATURATION, C.HIGH,
    ),
    (
        "not for the whole horizon",
        known(demand=DEMAND, observed=replace(SEEN, low=1_100.0, high=1_150.0)),
        V.TIGHT, NumberSource.SATURATION, C.HIGH,
    ),
    (
        "a hot partition fills its reader first",
        known(demand=DEMAND, observed=SEEN, skew=Skew(0.6, 50_000, 40, NOW)),
        V.SHORT, NumberSource.SATURATION, C.HIGH,
    ),
    (
        "a probe without cores is no capacity",
        known(demand=DEMAND, service=SERVICE),
        V.UNDECIDED, NumberSource.NONE, C.NONE,
    ),
    (
        "a probe and the cores, one member a node that feeds a pool",
        known(demand=DEMAND, service=SERVICE, cores=4.0, members=2),
        V.ENOUGH, NumberSource.PROBE, C.HIGH,
    ),
    (
        "a few messages are a beginning",
        known(demand=DEMAND, service=replace(SERVICE, messages=20), cores=4.0, members=2),
        V.ENOUGH, NumberSource.PROBE, C.MEDIUM,
    ),
    (
        "whose T1 holds more than waiting, and of too short a history",
        known(
            demand=replace(DEMAND, history_hours=30, forecast_peak_per_second=None, ahead=()),
            service=replace(SERVICE, t1_doubt="interpreter_lock"), cores=4.0, members=2,
        ),
        V.ENOUGH, NumberSource.PROBE, C.LOW,
    ),
    ("saturation is seen, a model is not", known(demand=DEMAND, observed=SEEN, service=SERVICE, cores=4.0),
     V.ENOUGH, NumberSource.SATURATION, C.HIGH),
    (
        "a job that is busy half of the time",
        known(demand=DEMAND, job=JOB, members=4),
        V.ENOUGH, NumberSource.BUSY_TIME, C.HIGH,
    ),
    (
        "hardly busy, and seldom looked at",
        known(demand=DEMAND, job=replace(JOB, busy_share=0.2, records_per_second=400.0, samples=3), members=4),
        V.ENOUGH, NumberSource.BUSY_TIME, C.LOW,
    ),
    (
        "too little busy to tell",
        known(demand=DEMAND, job=replace(JOB, busy_share=0.05), members=4, observed=NEVER),
        V.UNDECIDED, NumberSource.THROUGHPUT, C.NONE,
    ),
    (
        "busy all the time, and more arrives",
        known(demand=DEMAND, job=replace(JOB, busy_share=1.0, records_per_second=450.0), members=4),
        V.SHORT, NumberSource.BUSY_TIME, C.HIGH,
    ),
    (
        "how long a thread takes for a message",
        known(demand=DEMAND, consume_time=TIME),
        V.ENOUGH, NumberSource.CONSUME_RT, C.MEDIUM,
    ),
    (
        "from few messages, of a short history",
        known(demand=replace(DEMAND, history_hours=30), consume_time=replace(TIME, messages=20)),
        V.ENOUGH, NumberSource.CONSUME_RT, C.LOW,
    ),
    (
        "in order, only as many threads as queues work",
        known(demand=DEMAND, consume_time=replace(TIME, is_ordered=True)),
        V.SHORT, NumberSource.CONSUME_RT, C.MEDIUM,
    ),
    ("what was seen but not what arrives", known(observed=SEEN), V.UNDECIDED, NumberSource.SATURATION, C.NONE),
    ("nobody is there", known(demand=DEMAND, observed=NEVER, members=0, nodes=0), V.UNDECIDED, NumberSource.THROUGHPUT,
     C.NONE),
)  # fmt: skip


@pytest.mark.parametrize(
    ("its", "verdict", "source", "confidence"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_cases(its: CapacityInputs, verdict: CapacityVerdict, source: NumberSource, confidence: Confidence) -> None:
    found = assess(its)
    assert (found.judgement.verdict, found.source, found.confidence) == (verdict, source, confidence)
    assert found.judgement.sentence.endswith(".")
    assert (found.judgement.load_test is not None) == (verdict is V.UNDECIDED and its.demand is not None)


@pytest.mark.parametrize(
    "seen",
    [None, replace(SEEN, rate_per_second=2_000.0, members=1)],
    ids=["busy time", "saturation"],
)
def test_a_flink_job_is_sized_by_its_subtasks(seen: ObservedCapacity | None) -> None:
    """However it is known what the job can do: of 500 records a second each, 900 at 70 % need three subtasks, and none
    that is spare: a job restarts its tasks in free slots."""
    found = assess(known(demand=DEMAND, job=JOB, members=4, observed=seen))
    assert found.member_rate_per_second == 500.0
    assert found.advice is not None
    assert found.advice.nodes == 3
    assert found.advice.verdict.startswith("3 subtasks carry this load")
    assert (found.unit, found.judgement.sentence.count("member")) == (Unit.SUBTASK, 0)
    reported = {one.name: (one.value, one.source) for one in found.inputs}
    assert reported["members"] == (4, "subtasks of the vertex price of its Flink job")
    assert reported["busy_share"] == (0.5, "busy time of the vertex price")


def test_the_advice_for_a_flink_job_states_whether_there_are_slots_for_its_subtasks() -> None:
    """Three subtasks are advised (see above)."""
    found = assess(known(demand=DEMAND, job=replace(JOB, subtasks=2, slots_held=2, slots_free=1), members=2))
    assert found.advice is not None
    assert found.slots == TaskSlots(found.advice.nodes or 0, 2, 1)
    reported = {one.name: (one.value, one.source) for one in found.inputs}
    assert reported["slots_held"] == (2, "subtasks of the most parallel vertex that shares slots with price")
    assert reported["slots_free"] == (1, "overview of its Flink cluster")
    assert assess(known(demand=DEMAND, job=JOB, members=4)).slots is None  # not known
    assert assess(known(demand=DEMAND, observed=SEEN)).slots is None  # no job


def test_a_group_of_rocketmq_is_sized_by_consume_rt() -> None:
    found = assess(known(demand=DEMAND, consume_time=TIME))
    assert found.member_rate_per_second == pytest.approx(400.0)
    assert found.can_do is not None
    assert (found.can_do.low, found.can_do.high) == (pytest.approx(1_920.0), pytest.approx(2_880.0))
    assert found.advice is not None
    reported = {one.name: (one.value, one.source, one.samples) for one in found.inputs}
    assert reported["seconds_per_message"] == (0.05, "consume RT", 50_000)
    assert reported["threads"] == (120, "thread pools of all members", None)


def test_the_load_test_is_that_of_the_observed_capacity_and_decides_what_is_asked() -> None:
    """One that lasts as long as it takes to be seen: ten minutes with a backlog, and not two. At 300 a second now and
    900 at the horizon it tells of 1,286 a second and not only of twice what arrives."""
    found = assess(known(demand=DEMAND, observed=NEVER, arriving_per_second=300.0)).judgement
    seen = ObservedCapacity(reason=Undecided.NEVER_SATURATED, at_least_per_second=600.0)
    assert found.load_test == load_test(seen, 300.0, 900.0 / 0.7)
    assert found.load_test is not None and found.sentence.endswith(found.load_test)
    assert "let it catch up for 11 min" in found.load_test and "it does more than 1,286 records/s" in found.load_test
    # Who was seen to do that is judged.
    done = replace(NEVER, at_least_per_second=1_286.0)
    assert assess(known(demand=DEMAND, observed=done)).judgement.verdict is V.ENOUGH
    nothing_yet = assess(known(demand=DEMAND)).judgement.sentence
    assert nothing_yet.endswith("Let records arrive faster than it reads them, on every partition, for 11 min.")
    shared = assess(known(demand=DEMAND, observed=replace(NEVER, reason=Undecided.SHARED))).judgement.sentence
    assert shared.endswith(NO_TEST_HELPS)
    assert assess(known(demand=DEMAND, observed=SEEN)).judgement.load_test is None


def test_what_can_be_done_is_bounded_by_the_busiest() -> None:
    """Six members that are busy all the time do 1,500; of what arrives evenly on 12 partitions they carry as much, of
    15 partitions only what the one with three of them carries."""
    even = assess(known(demand=DEMAND, observed=SEEN)).can_do
    assert even is not None
    assert (even.low, even.high) == pytest.approx((1_450.0, 1_550.0))
    uneven = assess(known(demand=DEMAND, observed=SEEN, partitions=15, skew=None)).can_do
    assert uneven is not None
    assert uneven.high == pytest.approx(1_550.0 * 15 / 18)


def test_what_a_member_does() -> None:
    assert assess(known(demand=DEMAND, observed=SEEN)).member_rate_per_second == pytest.approx(250.0)
    assert assess(known(demand=DEMAND, observed=NEVER)).member_rate_per_second is None
    probed = assess(known(demand=DEMAND, service=SERVICE, cores=4.0, members=2)).member_rate_per_second
    assert probed == pytest.approx(1_193.0, rel=0.01)  # M/M/4//20


def test_what_sizing_is_asked() -> None:
    by_members = workload_of(known(demand=DEMAND, observed=SEEN))
    assert by_members is not None
    assert (by_members.t1_seconds, by_members.t2_seconds, by_members.max_threads_per_node) == (0.004, 0.0, 1)
    assert by_members.peak_rate_per_second == 900.0  # at the horizon, which is above today's
    pool = workload_of(known(demand=DEMAND, service=SERVICE, cores=4.0))
    assert pool is not None
    assert (pool.t2_seconds, pool.concurrency) == (0.003, Concurrency.POOL)
    each = workload_of(known(demand=DEMAND, service=replace(SERVICE, threads=3), cores=4.0))
    assert each is not None
    assert each.concurrency is Concurrency.CONSUMER_PER_THREAD


def test_every_input_has_its_source() -> None:
    found = {i.name: i for i in assess(known(demand=DEMAND, observed=SEEN, service=SERVICE, cores=4.0)).inputs}
    assert (found["t1_seconds"].value, found["t1_seconds"].samples, found["t1_seconds"].source) == (
        0.012, 50_000, "probe",
    )  # fmt: skip
    assert found["peak_rate_per_second"].measured_at == NOW - timedelta(days=2)
    assert found["forecast_peak_per_second"].source == "forecast, 90 days ahead"
    assert found["observed_rate_per_second"].samples == 40
    assert found["cores"].source == "settings"
    assert found["hottest_share"].source == "records by partition, in the 40 busiest hours of a week"
    assert (found["hottest_share"].samples, found["hottest_share"].measured_at) == (50_000, NOW)
    assert found["cores"].measured_at is None
    by_probe = assess(known(service=SERVICE, cores=4.0, cores_source="probe")).inputs
    assert {i.name: i for i in by_probe}["cores"].measured_at == NOW
    doubted = replace(SERVICE, t1_doubt="interpreter_lock")
    assert "interpreter lock" in {i.name: i for i in assess(known(service=doubted)).inputs}["t1_seconds"].source


NUMBER = st.floats(allow_nan=True, allow_infinity=True)


@given(t1=NUMBER, t2=NUMBER, hottest=st.none() | st.floats(0, 1), partitions=st.integers(1, 50))
@settings(max_examples=200, deadline=None)
def test_absurd_measurements_are_not_known(t1: float, t2: float, hottest: float | None, partitions: int) -> None:
    service = replace(SERVICE, t1_seconds=t1, t2_seconds=t2)
    skew = None if hottest is None else Skew(hottest, 50_000, 40, NOW)
    its = known(demand=DEMAND, service=service, cores=4.0, skew=skew, partitions=partitions)
    found = assess(its)
    assert isinstance(found.judgement.verdict, CapacityVerdict)
    if found.workload is None:
        assert found.judgement.verdict is V.UNDECIDED
