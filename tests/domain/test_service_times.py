"""The text of the probe, read: what it tells, and what is no such text."""

from datetime import UTC, datetime

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lagwise.domain.capacity.service_times import LONGEST_TEXT, ServiceTimes, T1Doubt, parse_service_times
from lagwise.domain.sizing.ranges import check_service_time

WHOLE = "lw1 t1=0.0163 t2=0.0045 tq=0.0036 n=327 c=8 s=10.02 at=1795319012 tl=4.1e-05 cores=1.5 cpu=0.0049"


def test_a_whole_text() -> None:
    assert parse_service_times(WHOLE) == ServiceTimes(
        t1_seconds=0.0163,
        t2_seconds=0.0045,
        messages=327,
        run_queue_seconds=0.0036,
        lock_wait_seconds=4.1e-05,
        process_cpu_seconds=0.0049,
        threads=8,
        window_seconds=10.02,
        ended_at=datetime(2026, 11, 22, 3, 43, 32, tzinfo=UTC),
        cores=1.5,
    )


def test_three_fields_are_enough_in_any_order() -> None:
    assert parse_service_times("lw1 n=1 t2=1E-3 t1=0") == ServiceTimes(t1_seconds=0.0, t2_seconds=0.001, messages=1)


def test_fields_of_later_versions_are_left_alone() -> None:
    assert parse_service_times("lw1 t1=1 t2=2 n=3 x9=a,b/c") == ServiceTimes(1.0, 2.0, 3)


def test_what_is_below_a_nanosecond_is_no_wait() -> None:
    measured = parse_service_times("lw1 t1=4e-10 t2=0.1 n=9")
    assert measured is not None
    assert measured.t1_seconds == 0.0


@pytest.mark.parametrize(
    "text",
    [
        "",
        "lw1",
        "lw1 ",
        "lw2 t1=1 t2=1 n=1",
        "LW1 t1=1 t2=1 n=1",
        " lw1 t1=1 t2=1 n=1",
        "lw1 t1=1 t2=1 n=1 ",
        "lw1  t1=1 t2=1 n=1",
        "lw1\tt1=1\tt2=1\tn=1",
        "lw1 t1=1 t2=1 n=1\n",
        "lw1 t1=1 t2=1",
        "lw1 t1=1 n=1",
        "lw1 t2=1 n=1",
        "lw1 t1=1 t1=1 t2=1 n=1",
        "lw1 t1=-1 t2=1 n=1",
        "lw1 t1=+1 t2=1 n=1",
        "lw1 t1=nan t2=1 n=1",
        "lw1 t1=inf t2=1 n=1",
        "lw1 t1=1e99 t2=1 n=1",
        "lw1 t1=86401 t2=1 n=1",
        "lw1 t1=0,5 t2=1 n=1",
        "lw1 t1=.5 t2=1 n=1",
        "lw1 t1=1_0 t2=1 n=1",
        "lw1 t1=0x1 t2=1 n=1",
        "lw1 t1=１ t2=1 n=1",
        "lw1 t1=1 t2=0 n=1",
        "lw1 t1=1 t2=1e-10 n=1",
        "lw1 t1=1 t2=-0.1 n=1",
        "lw1 t1=1 t2=1e6 n=1",
        "lw1 t1=1 t2=1 n=0",
        "lw1 t1=1 t2=1 n=-3",
        "lw1 t1=1 t2=1 n=1.5",
        "lw1 t1=1 t2=1 n=999999999999",
        "lw1 t1=1 t2=1 n=1 tq=-1",
        "lw1 t1=1 t2=1 n=1 tq=nan",
        "lw1 t1=1 t2=1 n=1 tl=1e9",
        "lw1 t1=1 t2=1 n=1 c=0",
        "lw1 t1=1 t2=1 n=1 c=100001",
        "lw1 t1=1 t2=1 n=1 s=1e12",
        "lw1 t1=1 t2=1 n=1 at=12",
        "lw1 t1=1 t2=1 n=1 cores=0",
        "lw1 t1=1 t2=1 n=1 cores=4097",
        "lw1 t1=1 t2=1 n=1 at=999999999999",
        "lw1 t1=1 t2=1 n=1 " + "x=" + "1" * LONGEST_TEXT,
        "lw1 t1=1 t2=1 n=1 " + " ".join(f"x{i}=1" for i in range(LONGEST_TEXT)),
        '{"T1": 12.5}',
    ],
)
def test_anything_else_is_no_measurement(text: str) -> None:
    assert parse_service_times(text) is None


_HOSTILE = st.one_of(
    st.text(max_size=300),
    st.text("lw1 t12qncsa=.0e+-\x00\n", max_size=60).map("lw1 ".__add__),
    st.lists(
        st.builds(
            "{}={}".format,
            st.sampled_from(["t1", "t2", "tq", "tl", "n", "c", "s", "at", "cores", "x"]),
            st.one_of(st.floats().map(str), st.integers().map(str), st.text(max_size=9)),
        ),
        max_size=9,
    ).map(lambda fields: " ".join(["lw1", *fields])),
)


@given(_HOSTILE)
@example("lw1 t1=1 t2=1 n=1 at=253402300799")
@example("lw1 t1=86400 t2=86400 tq=86400 tl=86400 n=100000000000 c=100000")
def test_whatever_the_text_the_answer_can_be_used_or_is_none(text: str) -> None:
    measured = parse_service_times(text)
    if measured is not None:
        check_service_time(measured.t1_seconds, measured.t2_seconds)
        assert measured.messages >= 1
        assert measured.threads is None or 1 <= measured.threads <= 100_000
        assert measured.t1_doubt in (None, *T1Doubt)


@given(st.floats(1e-9, 86_400), st.floats(1e-9, 86_400), st.none() | st.floats(0, 86_400), st.integers(1, 10**11))
def test_what_was_written_is_read(t1: float, t2: float, tq: float | None, n: int) -> None:
    text = f"lw1 t1={t1:.6g} t2={t2:.6g} n={n}" + ("" if tq is None else f" tq={tq:.6g}")
    measured = parse_service_times(text)
    assert measured is not None
    assert measured.t1_seconds == (pytest.approx(t1, rel=1e-5) if float(f"{t1:.6g}") >= 1e-9 else 0.0)
    assert measured.t2_seconds == pytest.approx(t2, rel=1e-5)
    assert measured.messages == n


@pytest.mark.parametrize(
    ("text", "doubt"),
    [
        ("lw1 t1=0.016 t2=0.004 tq=0 n=9", None),
        ("lw1 t1=0.016 t2=0.004 n=9", T1Doubt.RUN_QUEUE),
        ("lw1 t1=0.016 t2=0.004 n=9 tl=1", T1Doubt.RUN_QUEUE),
        ("lw1 t1=0.016 t2=0.004 tq=0 n=9 tl=0.0004", None),  # over 1 %, but too little to tell from the timer
        ("lw1 t1=0.016 t2=0.004 tq=0 n=9 tl=0.0005", T1Doubt.INTERPRETER_LOCK),
        ("lw1 t1=0.016 t2=0.004 tq=0 n=9 tl=0.0005 c=2", T1Doubt.INTERPRETER_LOCK),
        ("lw1 t1=0.016 t2=0.004 tq=0 n=9 tl=0.0005 c=1 cpu=0.004", None),
        ("lw1 t1=0.016 t2=0.004 tq=0 n=9 tl=0.0005 c=1", T1Doubt.INTERPRETER_LOCK),  # several probes, or an older one
        ("lw1 t1=0.016 t2=0.004 n=9 tl=0.0005 c=1", T1Doubt.RUN_QUEUE),
        ("lw1 t1=0.2 t2=0.05 tq=0 n=9 tl=0.0024", None),
        ("lw1 t1=0.2 t2=0.05 tq=0 n=9 tl=0.0025", T1Doubt.INTERPRETER_LOCK),
    ],
)
def test_when_t1_is_only_an_upper_bound(text: str, doubt: T1Doubt | None) -> None:
    measured = parse_service_times(text)
    assert measured is not None
    assert measured.t1_doubt is doubt
