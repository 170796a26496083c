"""Whether a partition only waits for its turn is told from all that its owner has."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lagwise.domain.verdicts.columns import MICROS, NULL, Array
from lagwise.domain.verdicts.turns import TURN_SECONDS, awaits_turn
from tests.domain.observed import Watched, paces, seen

AS_OF = 100_000 * MICROS
INTERVAL = 15.0
STALLED_AFTER = 75.0


class Owned(NamedTuple):
    """A partition: for how long it has stood with records unread, when it was last seen to move (seconds ago; None:
    never), and the longest absence that ended lately."""

    stands: float
    moved: float | None
    absence: float = 0.0
    owner: int = 0
    lag: int = 100


def touched(absence: float = 0.0) -> Owned:
    """One that its owner has just read."""
    return Owned(0.0, 0.0, absence)


def left(seconds: float, absence: float = 0.0) -> Owned:
    """One that its owner left so long ago."""
    return Owned(seconds, seconds, absence)


def waits(*partitions: Owned, stalled_after: float = STALLED_AFTER) -> list[bool]:
    def column(values: Sequence[float]) -> Array:
        return np.array(values, np.float64)

    count = len(partitions)
    rows = {
        "owner_now": np.array([p.owner for p in partitions]),
        "standstill_seconds": column([p.stands for p in partitions]),
        "seen_moving_at": np.array([NULL if p.moved is None else AS_OF - int(p.moved * MICROS) for p in partitions]),
        "is_unread": np.array([p.lag > 0 for p in partitions]),
        "absence_seconds": column([p.absence for p in partitions]),
        "as_of": np.full(count, AS_OF),
        "interval_seconds": np.full(count, INTERVAL),
        "stalled_after_seconds": np.full(count, stalled_after),
    }
    found: list[bool] = awaits_turn(rows, rows).tolist()
    return found


@pytest.mark.parametrize(
    ("partitions", "is_waiting", "why"),
    [
        ([left(400), touched(380)], True, "it has just come back to another after as long"),
        ([left(400), touched(200)], True, "twice as long as the longest absence is not overdue"),
        ([left(401), touched(200)], False, "by now it would have come twice"),
        ([left(90), touched(), touched()], False, "it reads the others all the time: a bad record"),
        ([left(90)], False, "there is no other"),
        ([left(400, 390), left(80, 390)], False, "it reads nothing at all any more"),
        ([left(400), Owned(0.0, 0.0, 380, owner=1)], False, "it is another owner that reads"),
        ([left(400)._replace(owner=-1), touched(380)._replace(owner=-1)], False, "nobody owns them"),
        ([left(120), left(120), left(105), touched()], True, "it has only begun to take turns"),
        ([left(301), left(301), left(301), touched()], False, "no turn takes so long: most of them hang"),
        ([left(120), touched(), left(120), touched()], False, "half of them is not most of them"),
        ([left(120), left(120)._replace(lag=0, stands=0.0), touched()], False, "nothing is unread there"),
        ([left(400), left(390), touched(380)], True, "and so do others"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_first_waits_for_its_turn(partitions: list[Owned], is_waiting: bool, why: str) -> None:
    assert waits(*partitions)[0] is is_waiting, why


@given(
    count=st.integers(3, 48), visit=st.integers(1, 290), round_=st.floats(1, 20), place=st.floats(0, 1), data=st.data()
)
def test_who_is_read_in_turn_always_waits(
    count: int, visit: int, round_: float, place: float, data: st.DataObject
) -> None:
    """Whatever a visit takes, at every moment of every round but the first."""
    now = count * visit + int(round_ * count * visit)
    partitions = []
    for p in range(count):
        begun = (now - p * visit) // (count * visit) * count * visit + p * visit
        ended = min(begun + visit, now)
        absence = (count - 1) * visit if now - begun <= TURN_SECONDS else 0
        partitions.append(Owned(float(now - ended), float(now - ended), float(absence if absence >= 60 else 0)))
    found = waits(*partitions)
    for partition, is_waiting in zip(partitions, found, strict=True):
        # (What is left for less than a minute is not called a standstill either.)
        assert is_waiting or partition.stands <= 2 * 60
    hangs = data.draw(st.integers(0, count - 1))
    longest = max(partition.absence for partition in partitions)
    stuck = left(max(2 * longest, TURN_SECONDS) + 1)
    assert not waits(*(stuck if p == hangs else one for p, one in enumerate(partitions)))[hangs], "it hangs"


def test_absences_end_when_the_owner_comes_back() -> None:
    """The longest within the last five minutes, not that which still lasts, and none that sampling makes."""

    def read_at(*moments: int, until: int, every: int = 15) -> Watched:
        rows = [(float(at), 10 * sum(m <= at for m in moments), 1000 + at) for at in range(0, until + 1, every)]
        return Watched(seen(*rows), float(until), float(every))

    cases = {
        "left for three minutes": (read_at(600, 780, 795, until=900), 180.0),
        "left for less than a minute": (read_at(*range(0, 901, 45), until=900), 0.0),
        "long ago": (read_at(600, 780, *range(795, 1501, 15), until=1500), 0.0),
        "it still lasts": (read_at(*range(15, 601, 15), until=900), 0.0),
        "since it was first seen": (read_at(240, until=300), 240.0),
        "two samples of a slow collector": (read_at(*range(0, 1201, 120), until=1200, every=60), 0.0),
    }
    found = paces([watched for watched, _ in cases.values()])
    assert {name: one.absence_seconds for name, one in zip(cases, found, strict=True)} == {
        name: seconds for name, (_, seconds) in cases.items()
    }
