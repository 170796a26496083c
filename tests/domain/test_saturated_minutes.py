"""Habits, throughput and saturated minutes as columns say what the definition says, row by row, of random hours."""

import random
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from lagwise.domain.capacity.habits import habits_of, had_backlog, hourly_throughput
from lagwise.domain.capacity.saturated_minutes import owners_of, ownership_of, saturated_minutes
from lagwise.domain.verdicts.columns import MICROS, NULL, Array
from tests.domain import saturated_minutes as definition
from tests.domain.consumers import World, daily
from tests.domain.saturated_minutes import Bucket, Habit, habit_of

HOUR, PARTITIONS, SEEDS = 3600.0, 4, 8
#: Member ids, and what they are called: two have the same name.
NAMES = {0: 7, 1: 7, 2: 8}


def columns_of(buckets: Iterable[Bucket]) -> dict[str, Array]:
    """Rows of `minutes`, or of `five_minutes`, in order of partition and time: the pairs of group-topic 5."""
    rows = sorted(buckets, key=lambda b: (b.partition, b.start))

    def whole(values: Iterable[float | None]) -> Array:
        return np.array([NULL if value is None else round(value) for value in values], np.int64)

    def times(values: Iterable[float | None]) -> Array:
        return whole(None if value is None else value * MICROS for value in values)

    return {
        "pair": whole(b.partition for b in rows),
        "group_topic": whole(5 for _ in rows),
        "minute": times(b.start for b in rows),
        "first_at": times(b.first_at for b in rows),
        "last_at": times(b.last_at for b in rows),
        "last_moved_at": times(b.last_moved_at for b in rows),
        "rewound_from": whole(9 if b.went_back else None for b in rows),
        "max_lag": whole(b.last_lag for b in rows),
        **{n: whole(getattr(b, n) for b in rows) for n in ("first_committed", "last_committed", "last_lag")},
        **{n: whole(getattr(b, n) for b in rows) for n in ("samples", "moves")},
        **{n: np.array([getattr(b, n) for b in rows]) for n in ("sum_lag", "sum_lag_lag", "backlog_seconds")},
    }


@dataclass(frozen=True)
class Hours:
    """Two hours of a group on a topic: its minutes and five minutes, and which member ids were seen to own what."""

    minutes: list[Bucket]
    fives: list[Bucket]
    seen: list[tuple[int, float, int]]

    def habits(self, hour: float) -> dict[int, Habit]:
        of = defaultdict(list)
        for b in self.fives:
            if b.start // HOUR == hour:
                of[b.partition].append(b)
        return {partition: habit_of(buckets) for partition, buckets in of.items()}

    def owner(self, partition: int, start: float) -> int | None:
        """The only one who was seen to own it within this hour both before this minute, or in it, and after it."""
        of = defaultdict(list)
        for p, minute, member in self.seen:
            if p == partition and minute // HOUR == start // HOUR:
                of[member].append(minute)
        owners = [member for member, minutes in of.items() if min(minutes) <= start <= max(minutes)]
        return owners[0] if len(owners) == 1 else None


@cache
def hours(seed: int) -> Hours:
    """An overloaded group that loses and regains its backlog, members that come and go, offsets that are set back."""
    rng = random.Random(seed)
    outages = [(at, at + rng.uniform(200, 900)) for at in rng.sample(range(6000), 2)]
    world = World(
        arrivals=daily(60), capacity=rng.choice([29.0, 33.0, 50.0]), outages=outages, hours=2.0, seed=seed,
        partitions=PARTITIONS, commit_every=rng.choice([5.0, 20.0, 60.0]),
    )  # fmt: skip
    minutes = [replace(b, went_back=rng.random() < 0.01) for bs in world.buckets(60.0).values() for b in bs]
    if rng.random() < 0.5:  # one partition that nobody writes to
        quiet = {"last_lag": 0, "sum_lag": 0.0, "sum_lag_lag": 0.0, "moves": 0, "last_moved_at": None}
        minutes = [replace(b, **quiet) if b.partition == 0 else b for b in minutes]
    if seed % 2:  # one partition at which its reader is stuck, from the second hour on
        stuck = {"moves": 0, "last_moved_at": None}
        minutes = [replace(b, **stuck) if b.partition == 1 and b.start >= HOUR else b for b in minutes]
    owner = {p: p % len(NAMES) for p in range(PARTITIONS)}
    seen = []
    for minute in range(120):
        if rng.random() < 0.05:
            owner[rng.randrange(PARTITIONS)] = rng.randrange(len(NAMES))
        if seed % 4 and rng.random() < 0.9:  # every fourth group has no members
            seen += [(p, 60.0 * minute, m) for p, m in owner.items() if rng.random() < 0.98]
    return Hours(minutes, [b for bs in world.buckets(300.0).values() for b in bs], seen)


def found_by_columns(of: Hours) -> dict[str, Array]:
    fives = columns_of(of.fives)
    habits = habits_of(fives)
    row = {(pair, hour): n for n, (pair, hour) in enumerate(zip(habits["pair"], habits["hour"], strict=True))}

    def habit(partition: int, start: float) -> int:
        return row[partition, int(start // HOUR * HOUR * MICROS)]

    minutes = columns_of(of.minutes)
    minutes["habit"] = np.array(
        [habit(p, at / MICROS) for p, at in zip(minutes["pair"], minutes["minute"], strict=True)]
    )
    seen = {
        "habit": np.array([habit(p, at) for p, at, _ in of.seen], np.int64),
        "minute": np.array([at * MICROS for _, at, _ in of.seen], np.int64),
        "member": np.array([NAMES[member] for _, _, member in of.seen], np.int64),
        "member_id": np.array([member for _, _, member in of.seen], np.int64),
    }
    return saturated_minutes(minutes, habits, ownership_of(seen))


@cache
def by_definition(seed: int) -> list[tuple[int, definition.SaturatedMinute]]:
    return list(_by_definition(hours(seed)))


def _by_definition(of: Hours) -> Iterator[tuple[int, definition.SaturatedMinute]]:
    owner = {(b.partition, b.start): of.owner(b.partition, b.start) for b in of.minutes}
    for hour in (0.0, 1.0):
        minutes = [b for b in of.minutes if b.start // HOUR == hour]
        for name in (-1, *set(NAMES.values())):

            def counts(b: Bucket, name: int = name) -> bool:
                member = owner[b.partition, b.start]
                return name == -1 or (member is not None and NAMES[member] == name)

            ids = defaultdict(set)
            for b in minutes:
                if counts(b) and owner[b.partition, b.start] is not None:
                    ids[b.start].add(owner[b.partition, b.start])
            members = {start: len(those) for start, those in ids.items()}
            found = definition.saturated_minutes(
                minutes,
                of.habits(hour),
                members=members,
                counts=counts,
                owner=lambda b: owner[b.partition, b.start],
            )
            for minute in found:
                yield name, minute


@pytest.mark.parametrize("seed", range(SEEDS))
def test_columns_agree_with_the_definition(seed: int) -> None:
    columns = found_by_columns(hours(seed))
    found = {
        (row["member"], row["start"]): row
        for row in (dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True))
    }
    wanted = {(name, minute.start): minute for name, minute in by_definition(seed)}
    assert set(found) == set(wanted)
    marks: dict[Any, set[int]] = defaultdict(set)
    for key, minute in wanted.items():
        row = found[key]
        moved_at = None if np.isnan(row["moved_at"]) else row["moved_at"]
        members = None if row["members"] == NULL else row["members"]
        assert (row["group_topic"], moved_at, members) == (5, minute.moved_at, minute.members)
        assert (row["committed"], row["lag"]) == (minute.committed, minute.lag)
        assert row["cadence_seconds"] == minute.cadence_seconds
        marks[minute.start // HOUR, minute.partitions].add(row["partitions"])
    # The same number for the same partitions, and another for others.
    assert all(len(those) == 1 for those in marks.values())
    assert len(set.union(*marks.values(), set())) == len(marks)


def test_the_random_hours_hold_what_matters() -> None:
    minutes = [minute for seed in range(SEEDS) for minute in by_definition(seed)]
    assert sum(name == -1 for name, _ in minutes) > 100
    assert sum(name != -1 for name, _ in minutes) > 100
    assert {minute.members for _, minute in minutes} >= {None, 1, 2, 3}
    assert {len(minute.partitions) for _, minute in minutes} >= {1, 2, 3, PARTITIONS}
    of = hours(1)
    assert any(of.owner(b.partition, b.start) is None for b in of.minutes)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_habits_and_throughput_agree_with_the_definition(seed: int) -> None:
    of = hours(seed)
    fives = columns_of(of.fives)
    habits = habits_of(fives)
    assert list(zip(habits["pair"], habits["hour"] // (3600 * MICROS), strict=True)) == [
        (p, hour) for p in range(PARTITIONS) for hour in (0, 1)
    ]
    records: dict[int, int] = defaultdict(int)
    for n, partition in enumerate(habits["pair"]):
        hour = int(habits["hour"][n] // (3600 * MICROS))
        habit = of.habits(hour)[partition]
        assert habits["cadence_seconds"][n] == habit.cadence_seconds
        assert habits["needed_backlog"][n] == habit.needed_backlog
        assert habits["longest_silence_seconds"][n] == habit.longest_silence_seconds
        its = [b for b in of.fives if b.partition == partition and b.start // HOUR == hour]
        assert habits["records"][n] == its[-1].last_committed - its[0].first_committed
        records[hour] += int(habits["records"][n])
    rates: dict[int, list[tuple[float, float]]] = {0: [], 1: []}
    for start in sorted({b.start for b in of.fives}):
        its = [b for b in of.fives if b.start == start]
        cadence = max((b.backlog_seconds / b.moves for b in its if b.moves), default=0.0)
        rates[int(start // HOUR)].append(
            (sum(b.last_committed - b.first_committed for b in its) / (300 + cadence), start)
        )
    made = hourly_throughput(fives, habits)
    assert made["hour"].tolist() == [0, 3600 * MICROS]
    assert made["records"].tolist() == [records[0], records[1]]
    best = list(zip(made["best_rate_per_second"], made["best_at"] / MICROS, strict=True))
    assert best == [max(rates[0]), max(rates[1])]


def test_habits_agree_with_the_definition_for_any_five_minutes() -> None:
    rng = random.Random(1)
    shown = set()
    for _ in range(300):
        fives = []
        for start in sorted(rng.sample(range(0, 3600, 300), rng.randint(1, 12))):
            committed, until = rng.randrange(1000), start + rng.choice([0.0, 60.0, 285.0])
            bucket = next(b for b in hours(0).fives if b.partition == 0)
            fives.append(
                replace(
                    bucket, start=float(start), first_at=float(start), last_at=until, first_committed=committed,
                    last_committed=committed + rng.choice([-50, 0, 700]), moves=rng.choice([0, 1, 2, 3]),
                    backlog_seconds=rng.choice([0.0, 15.0, 150.0, 300.0]),
                )
            )  # fmt: skip
        habit, found = habit_of(fives), habits_of(columns_of(fives))
        cadence = None if np.isnan(found["cadence_seconds"][0]) else found["cadence_seconds"][0]
        assert cadence == habit.cadence_seconds
        assert found["needed_backlog"][0] == habit.needed_backlog
        assert found["records"][0] == max(0, fives[-1].last_committed - fives[0].first_committed)
        shown.add(cadence is None)
    assert shown == {True, False}


def test_a_topic_without_a_saturated_minute_can_be_told_beforehand() -> None:
    for seed in range(SEEDS):
        of = hours(seed)
        habits = habits_of(columns_of(of.fives))
        had = {int(hour // (3600 * MICROS)) for hour in habits["hour"][had_backlog(habits)]}
        assert {int(minute.start // HOUR) for _, minute in by_definition(seed)} <= had
    keeps_up = World(arrivals=daily(60), capacity=50.0, hours=1.0, seed=1)
    fives = [b for bs in keeps_up.buckets(300.0).values() for b in bs]
    assert not had_backlog(habits_of(columns_of(fives))).any()


# minutes in which members were seen, by member → owner at minutes 0 to 4
OWNERS: tuple[tuple[int, str, Mapping[int, tuple[int, ...]], list[int | None]], ...] = (
    (1, "nobody was seen", {}, [None] * 5),
    (2, "between two looks it is his", {3: (1, 3)}, [None, 3, 3, 3, None]),
    (3, "handed over", {3: (0, 1), 4: (2, 4)}, [3, 3, 4, 4, 4]),
    (4, "nobody's while two claim it", {3: (0, 2), 4: (2, 4)}, [3, 3, None, 4, 4]),
    (5, "given away for a moment: it could be either's", {3: (0, 4), 4: (2,)}, [3, 3, None, 3, 3]),
)


@pytest.mark.parametrize(("seen", "owners"), [row[2:] for row in OWNERS], ids=[f"{r[0]} {r[1]}" for r in OWNERS])
def test_who_owned_a_partition(seen: Mapping[int, tuple[int, ...]], owners: list[int | None]) -> None:
    looks = [(member, minute) for member, minutes in seen.items() for minute in minutes]
    member, minute = (np.array([look[n] for look in looks], np.int64) for n in (0, 1))
    habit = np.full(len(looks), 2)
    ownership = ownership_of({"habit": habit, "minute": minute, "member": member, "member_id": member})
    row = owners_of({"habit": np.full(5, 2), "minute": np.arange(5)}, ownership)
    assert [None if n < 0 else ownership["member"][n] for n in row] == owners
    another = owners_of({"habit": np.full(5, 3), "minute": np.arange(5)}, ownership)
    assert another.tolist() == [-1] * 5, "another partition, or another hour"
