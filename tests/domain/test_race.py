"""When retention overtakes a reader in what is written already. Each row says why its answer is right."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lagwise.domain.verdicts.retention import rate_while_behind, seconds_to_overtaking
from tests.domain.judged_evidence import judged
from tests.domain.test_status import OVERTAKEN, POLICY
from tests.domain.watched_logs import Point, logs
from tests.traces.judged import plain

#: When all of it is looked at.
NOW = 86_400.0


class Unread(NamedTuple):
    """An offset, and how old (in seconds) its record is."""

    offset: int
    age_seconds: float


def overtakings(*cases: tuple[list[Unread], float, float | None]) -> list[float | None]:
    """From what is unread, the first of which is the oldest unread record, the rate and for how long records are
    kept."""
    unread, rates, kept = zip(*cases, strict=True)
    seen = logs([[Point(NOW - one.age_seconds, one.offset) for one in its] for its in unread], [NOW] * len(cases))
    positions = np.array([its[0].offset if its else 0 for its in unread])
    place = seen.place_of(positions)
    age, _ = seen.age_of(positions, place)
    reads = np.where(np.array(rates) > 0, rates, np.nan)
    return plain(seconds_to_overtaking(seen, positions, place, age, reads, np.array(kept, np.float64)))


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
    (7, "nobody knows how fast it reads", EVEN, 0.0, 900, None),
    (8, "kept for ever", EVEN, 1.0, None, None),
    (9, "nothing is unread", [], 1.0, 900, None),
    (10, "its age is beyond what is kept: it says nothing of that", EVEN, 5.0, 599, None),
)


def test_overtaking() -> None:
    found = overtakings(*(row[2:5] for row in RACES))
    assert dict(zip([row[:2] for row in RACES], found, strict=True)) == pytest.approx({r[:2]: r[5] for r in RACES})


def test_the_first_is_as_old_as_is_kept() -> None:
    kept = [replace(OVERTAKEN, retention_seconds=seconds, overtaken_seconds=None) for seconds in (540.0, 541.0)]
    assert [one.seconds_to_loss for one in judged([(evidence, POLICY) for evidence in kept])] == [0.0, None]


@given(
    steps=st.lists(st.tuples(st.integers(0, 1000), st.integers(1, 100)), min_size=1, max_size=8),
    rate=st.floats(0.1, 100.0),
    kept=st.integers(1, 2000),
)
def test_it_is_the_first_record_that_is_deleted_before_it_is_read(
    steps: list[tuple[int, int]], rate: float, kept: float
) -> None:
    """Each record by itself, between any two samples."""
    steps = [(1, 1), *steps]
    unread = [Unread(0, float(sum(seconds for _, seconds in steps)))]
    records = [unread[0]]
    for count, seconds in steps:
        before = unread[-1]
        unread.append(Unread(before.offset + count, before.age_seconds - seconds))
        records += [Unread(before.offset + n, before.age_seconds - seconds * n / count) for n in range(1, count + 1)]
    # Nothing is said of those that are read just when they are deleted.
    late = [kept - r.age_seconds for r in records if r.offset / rate > kept - r.age_seconds + 1e-6]
    (found,) = overtakings((unread, rate, float(kept)))
    if unread[0].age_seconds > kept:
        assert found is None
    elif late:
        # The rate within a step goes over records that are not whole.
        a_record = max((seconds / count for count, seconds in steps if count), default=0.0)
        assert found is not None
        assert max(0.0, min(late)) - a_record - 1e-6 <= found <= max(0.0, min(late)) + 1e-6
    elif all(abs(r.offset / rate - (kept - r.age_seconds)) > 1e-6 for r in records):
        assert found is None


def test_at_a_constant_write_rate_it_agrees_with_the_growth_of_the_age() -> None:
    chance = np.random.default_rng(1)
    ages, written, shares = (chance.uniform(*ends, 1000) for ends in ((60.0, 3000.0), (1.0, 1000.0), (0.05, 0.95)))
    kept = ages * (1 + (1 / shares - 1) / 2)  # halfway to what is lost of records to come only
    cases = [
        # In thousandths, because offsets are whole.
        ([Unread(0, age), Unread(round(age * rate * 1000), 0.0)], share * rate * 1000, limit)
        for age, rate, share, limit in zip(ages, written, shares, kept, strict=True)
    ]
    assert overtakings(*cases) == pytest.approx(((kept - ages) / (1 - shares)).tolist(), rel=1e-3)


def test_a_reader_that_had_nothing_to_read_may_be_faster_than_its_mean() -> None:
    rates = rate_while_behind(np.full(3, 10.0), np.full(3, 300.0), np.array([60.0, 900.0, 0.0]))
    assert plain(rates) == [50.0, 10.0, None]
