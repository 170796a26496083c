"""When retention overtakes a reader in what is written already. Each row says why its answer is right."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lagwise.domain.loss.race import Unread, rate_while_behind, seconds_to_overtaking, unread_of
from lagwise.domain.loss.retention import seconds_to_deletion
from lagwise.domain.time_lag import Age, Log, WatermarkPoint

#: 600,000 records within a minute, the last of them 40 minutes ago, and nothing since.
BURST = [Unread(0, 2460.0), Unread(600_000, 2400.0), Unread(600_000, 0.0)]
#: 10 a second for ten minutes.
EVEN = [Unread(0, 600.0), Unread(3000, 300.0), Unread(6000, 0.0)]

# unread, records read per second, kept for → seconds until records are lost
RACES = (
    (1, "1,140 s are left, in which 114,000 are read; of these the last has 11.4 s more", BURST, 100.0, 3600, 1151.515),
    (2, "read in 1,000 s, and the first goes after 1,140", BURST, 600.0, 3600, None),
    (3, "read half as fast as written, it gets 0.5 s older per second: 250 s are 500 s", EVEN, 5.0, 850, 500.0),
    (4, "read as fast as written, it gets no older", EVEN, 10.0, 601, None),
    (5, "the last record is read in 1,200 s, just when it is deleted", EVEN, 5.0, 1200, None),
    (6, "the first is as old as is kept", EVEN, 100.0, 600, 0.0),
    (7, "nobody knows how fast it reads", EVEN, 0.0, 900, None),
    (8, "kept for ever", EVEN, 1.0, None, None),
    (9, "nothing is unread", [], 1.0, 900, None),
)


@pytest.mark.parametrize(
    ("unread", "rate", "kept", "seconds"), [r[2:] for r in RACES], ids=[f"{r[0]} {r[1]}" for r in RACES]
)
def test_overtaking(unread: list[Unread], rate: float, kept: float | None, seconds: float | None) -> None:
    assert seconds_to_overtaking(unread, rate, kept) == pytest.approx(seconds)


@given(
    steps=st.lists(st.tuples(st.integers(0, 1000), st.integers(1, 100)), min_size=1, max_size=8),
    rate=st.floats(0.1, 100.0),
    kept=st.integers(1, 2000),
)
def test_it_is_the_first_record_that_is_deleted_before_it_is_read(
    steps: list[tuple[int, int]], rate: float, kept: float
) -> None:
    """Each record by itself, between any two samples."""
    unread = [Unread(0, float(sum(seconds for _, seconds in steps)))]
    records = [unread[0]]
    for count, seconds in steps:
        before = unread[-1]
        unread.append(Unread(before.offset + count, before.age_seconds - seconds))
        records += [Unread(before.offset + n, before.age_seconds - seconds * n / count) for n in range(1, count + 1)]
    # Nothing is said of those that are read just when they are deleted.
    late = [kept - r.age_seconds for r in records if r.offset / rate > kept - r.age_seconds + 1e-6]
    found = seconds_to_overtaking(unread, rate, kept)
    if late:
        # The rate within a step goes over records that are not whole.
        a_record = max((seconds / count for count, seconds in steps if count), default=0.0)
        assert found is not None
        assert max(0.0, min(late)) - a_record - 1e-6 <= found <= max(0.0, min(late)) + 1e-6
    elif all(abs(r.offset / rate - (kept - r.age_seconds)) > 1e-6 for r in records):
        assert found is None


@given(age=st.floats(60.0, 3000.0), written=st.floats(1.0, 1000.0), share=st.floats(0.05, 0.95))
def test_at_a_constant_write_rate_it_agrees_with_the_growth_of_the_age(
    age: float, written: float, share: float
) -> None:
    unread = [Unread(0, age), Unread(round(age * written * 1000), 0.0)]  # in thousandths, because offsets are whole
    kept = age * (1 + (1 / share - 1) / 2)  # halfway to what is lost of records to come only
    by_growth = seconds_to_deletion(age, kept, 1 - share)
    assert seconds_to_overtaking(unread, share * written * 1000, kept) == pytest.approx(by_growth, rel=1e-3)


def test_what_is_unread() -> None:
    log = Log([WatermarkPoint(at, high) for at, high in ((0.0, 100), (15.0, 250), (30.0, 250), (45.0, 400))])
    assert unread_of(200, Age(40.0, False), log, 50.0) == [(200, 40.0), (250, 35.0), (250, 20.0), (400, 5.0)]


def test_a_reader_that_had_nothing_to_read_may_be_faster_than_its_mean() -> None:
    assert rate_while_behind(10.0, 300.0, 60.0) == 50.0
    assert rate_while_behind(10.0, 300.0, 900.0) == 10.0
    assert rate_while_behind(10.0, 300.0, 0.0) == 0.0
