"""Whether a downstream is full, from what consumers measured: a table of histories, and what holds of all of them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from lagwise.domain.sizing.advice import advise
from lagwise.domain.sizing.downstream import DownstreamFull, MeasuredWork, downstream_full
from lagwise.domain.sizing.triple_search import Binding
from lagwise.domain.sizing.workload import Concurrency, Workload

NOW = datetime(2026, 11, 23, 12, 0, tzinfo=UTC)
T2 = 0.001


def work(threads: int, t1_ms: float, rate: float, hours_ago: float = 0.0, **more: Any) -> MeasuredWork:
    """Measured with so many threads of one member, each message with 1 ms of CPU time."""
    values: dict[str, Any] = {
        "threads": threads,
        "members": 1,
        "t1_seconds": t1_ms / 1e3,
        "seconds_per_message": t1_ms / 1e3 + T2,
        "rate_per_second": rate,
        "messages": 10_000,
        "measured_at": NOW - timedelta(hours=hours_ago),
    }
    return MeasuredWork(**values | more)


@dataclass(frozen=True)
class Row:
    why: str
    measured: Sequence[MeasuredWork]
    #: About how much it does; None is not full.
    rate: float | None


#: Consumers behind a stub that serves four calls at a time, 30 ms each: at most 133/s. Measured.
STUB = (work(5, 49, 117, 3), work(10, 68, 118, 2), work(30, 234, 108, 1), work(40, 322, 123))

ROWS = [
    Row("measured behind a stub that serves four at a time", STUB, 116.5),
    Row("the same, from many threads to few", [replace(w, measured_at=NOW - (NOW - w.measured_at) * -1) for w in STUB],
        116.5),
    Row("one number of threads proves nothing", STUB[-1:], None),
    Row("nothing measured", [], None),
    Row("half as much again is enough to compare", [work(20, 148, 133, 1), work(30, 223, 133)], 133),
    Row("a little more is not", [work(20, 148, 133, 1), work(28, 208, 133)], None),
    Row("twice the threads do twice as much", [work(10, 30, 320, 1), work(20, 30, 640)], None),
    Row("twice the threads do half as much again, T1 rises a little", [work(10, 30, 320, 1), work(20, 40, 480)], None),
    Row("no more arrives: the threads are idle and T1 is what it was", [work(10, 30, 50, 1), work(40, 30, 50)], None),
    Row("batches: no more arrives, the threads are idle between two", [work(5, 49, 50, 1), work(40, 170, 50)], None),
    Row("T1 rose while all threads were busy, and with it throughput", [work(10, 50, 196, 1), work(40, 70, 560)], None),
    Row("overloaded: more threads do less", [work(10, 75, 130, 1), work(40, 480, 83)], 106.5),
    Row("T1 rose, but on a handful of messages", [work(10, 75, 130, 1, messages=9), work(40, 300, 131)], None),
    Row("it was full, and does four times as much since", [*STUB, work(40, 80, 490, -1)], None),
    Row("it was full with few, was enlarged, and is full again",
        [*STUB, work(80, 160, 495, -1), work(160, 320, 498, -2)], 496.5),
    Row("it was full, and hardly anything arrives now", [*STUB, work(40, 30, 5, -1)], 116.5),
    Row("the CPU was full: what waits for a core is not in T1",
        [work(10, 30, 444, 1, seconds_per_message=0.031), work(40, 30, 444, seconds_per_message=0.09)], None),
    Row("T1 of nothing", [work(10, 0, 9_000, 1), work(40, 0, 9_000)], None),
]  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.why)
def test_table(row: Row) -> None:
    found = downstream_full(row.measured)
    assert (found and found.rate_per_second) == (row.rate and pytest.approx(row.rate))


def test_it_says_so_with_what_it_is_known_from(golden_sentence: Callable[..., None]) -> None:
    found = downstream_full(STUB)
    assert found is not None
    golden_sentence(found.sentence, found.verdict(100.0), found.verdict(238.0))
    assert (found.messages, found.measured_at, found.members) == (20_000, NOW, 1)


def measured_behind(servers: int, serves_seconds: float, threads: Sequence[int], noise: Sequence[float]) -> list[Any]:
    """Busy threads in front of a downstream that serves so many calls at a time: what it does is the least of what the
    threads ask and what the servers give, and T1 is what is left of a thread's time."""
    found = []
    for number, (count, error) in enumerate(zip(threads, noise, strict=True)):
        rate = min(count / (serves_seconds + T2), servers / serves_seconds) * error
        t1 = count / rate - T2
        found.append(work(count, 1e3 * t1, rate, -number))
    return found


ERRORS = st.floats(0.97, 1.03)


@given(
    servers=st.integers(1, 50),
    serves_seconds=st.floats(0.005, 2.0),
    times=st.lists(st.floats(1.5, 20.0), min_size=2, max_size=5),
    errors=st.lists(ERRORS, min_size=5, max_size=5),
)
def test_more_threads_than_are_served_show_that_it_is_full(
    servers: int, serves_seconds: float, times: list[float], errors: list[float]
) -> None:
    threads = sorted({round(servers * (1 + T2 / serves_seconds) * many) + 1 for many in times})
    assume(len(threads) >= 2 and threads[-1] >= 2 * threads[0])
    found = downstream_full(measured_behind(servers, serves_seconds, threads, errors[: len(threads)]))
    assert found is not None
    assert found.rate_per_second == pytest.approx(servers / serves_seconds, rel=0.05)


@given(
    servers=st.integers(4, 500),
    serves_seconds=st.floats(0.005, 2.0),
    shares=st.lists(st.floats(0.05, 1.0), min_size=2, max_size=5),
    errors=st.lists(ERRORS, min_size=5, max_size=5),
)
def test_threads_that_are_all_served_never_do(
    servers: int, serves_seconds: float, shares: list[float], errors: list[float]
) -> None:
    threads = sorted({max(1, int(servers * share)) for share in shares})
    assert downstream_full(measured_behind(servers, serves_seconds, threads, errors[: len(threads)])) is None


@given(
    arriving=st.floats(1.0, 1e4),
    measured=st.lists(st.tuples(st.integers(1, 500), st.floats(1e-4, 10.0)), min_size=1, max_size=8),
)
def test_threads_that_wait_for_messages_never_do(arriving: float, measured: list[tuple[int, float]]) -> None:
    """Whatever T1 does: throughput is what arrives, and the threads are idle for half of the time."""
    histories = []
    for n, (threads, t1) in enumerate(measured):
        takes = 0.5 * threads / arriving
        histories.append(work(threads, 1e3 * min(t1, takes), arriving, -n, seconds_per_message=takes))
    assert downstream_full(histories) is None


@given(history=st.permutations([*STUB, work(20, 148, 118, 1.5)]))
def test_the_order_of_the_measurements_does_not_matter(history: list[MeasuredWork]) -> None:
    assert downstream_full(history) == downstream_full([*STUB, work(20, 148, 118, 1.5)])


@given(
    t1_ms=st.floats(1.0, 1000.0),
    t2_ms=st.floats(0.1, 50.0),
    cores=st.floats(0.5, 64.0),
    peak=st.floats(0.0, 1e5),
    partitions=st.integers(1, 500),
    concurrency=st.sampled_from(Concurrency),
    unit=st.booleans(),
)
def test_nothing_more_is_ever_advised_behind_it(
    t1_ms: float, t2_ms: float, cores: float, peak: float, partitions: int, concurrency: Concurrency, unit: bool
) -> None:
    full = downstream_full(STUB)
    assert full is not None
    asked: dict[str, Any] = {"peak_rate_per_second": peak, "partitions": partitions}
    workload = (
        Workload(t1_seconds=t1_ms / 1e3, t2_seconds=t2_ms / 1e3, cores=cores, concurrency=concurrency, **asked)
        if unit
        else Workload.of_members(t1_ms / 1e3, **asked)
    )
    advice = advise(workload, full)
    assert (advice.triple, advice.changes, advice.points) == (None, (), ())
    assert advice.binds is Binding.DOWNSTREAM
    assert advice.verdict.startswith(full.sentence)
    assert [figure.name for figure in advice.figures] == [
        "peak_rate_per_second", "demand_rate_per_second", "required_rate_per_second",
    ]  # fmt: skip
    document = advice.as_document()
    assert document["downstream_full"]["rate_per_second"] == full.rate_per_second  # type: ignore[index]  # a dict, in JSON
    assert advise(workload).as_document()["downstream_full"] is None


def test_the_advice_grows_with_the_threads_where_the_limit_goes_unnoticed() -> None:
    """What was advised behind the stub, each time from the T1 of the threads that ran: the reason for the rule."""
    asked: dict[str, Any] = {"t2_seconds": T2, "cores": 2.0, "partitions": 480, "peak_rate_per_second": 150.0}
    asked |= {"max_threads_per_node": 50}
    threads = []
    for one in STUB:
        found = advise(Workload(t1_seconds=one.t1_seconds, **asked)).triple
        assert found is not None
        threads.append(found.nodes * found.threads_per_node)
    assert threads == sorted(threads)
    assert threads[-1] > 3 * threads[0]
    assert isinstance(downstream_full(STUB), DownstreamFull)
