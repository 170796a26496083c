"""What the scaling signal remembers of a lake: always what the lake says, and read once."""

import logging
import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from deltalake import write_deltalake

from lagwise.domain.capacity.scaling import ScalingPolicy
from lagwise.platform.errors import LakeError
from lagwise.tables.analysis import GROUP_HISTORY, GROUP_STATUS, PARTITION_STATUS
from lagwise.tables.capacity import CAPACITY
from lagwise.tables.membership import ASSIGNMENTS
from lagwise.tables.raw import GROUPS
from lagwise.tables.schema import Table
from lagwise.tables.store import Lake
from lagwise_app.answers.groups import UnknownGroup
from lagwise_app.scaling import history_windows
from lagwise_app.scaling import lake_cache as scaling_memory
from lagwise_app.scaling.lake_cache import REFRESH_SECONDS, LakeCache, NoAnswer, ScalingInputs
from lagwise_app.scaling.signal import StaleData, signal
from tests.app.judged import append, group, partition, row
from tests.fixtures.object_store import Bucket

pytestmark = pytest.mark.thorough

NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
TABLES = (GROUP_STATUS, PARTITION_STATUS, GROUP_HISTORY, CAPACITY, ASSIGNMENTS, GROUPS)


_FOUR = range(4)


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds

    def look_is_due(self) -> None:
        self.seconds += REFRESH_SECONDS


class CountingLake(Lake):
    """Notes which tables are read, and how many of their data files."""

    def __init__(self, uri: str) -> None:
        super().__init__(uri)
        self.noticed = 0
        self.read_files: list[tuple[str, int]] = []

    def version(self, table: Table) -> int | None:
        self.noticed += 1
        return super().version(table)

    def scan_new(
        self, connection: duckdb.DuckDBPyConnection, table: Table, known: Any, **limits: Any
    ) -> frozenset[str]:
        names = super().scan_new(connection, table, known, **limits)
        self.read_files.append((table.name, len(names.difference(known))))
        return names


@pytest.fixture
def lake(tmp_path: Path) -> CountingLake:
    made = CountingLake(str(tmp_path / "lake"))
    made.create(*TABLES)
    return made


def sample(lake: Lake, at: datetime, members: int, *names: str) -> None:
    append(lake, GROUPS, *[row(GROUPS, cluster="shop", group=n, member_count=members, sampled_at=at) for n in names])


def a_round(lake: Lake, at: datetime, *names: str, rate: float = 500.0) -> None:
    """The present state replaced, and the history longer by one."""
    present = (
        (GROUP_STATUS, [group(n, "ok", as_of=at, members=2, state="Stable") for n in names]),
        (PARTITION_STATUS, [partition(n, p, as_of=at, produce_rate_per_second=rate / 4) for n in names for p in _FOUR]),
    )
    for table, rows in present:
        write_deltalake(lake.location(table), pa.Table.from_pylist(rows, schema=table.arrow), mode="overwrite")
    shared = {"cluster": "shop", "status": "ok", "lag": 10, "produce_rate_per_second": rate, "as_of": at}
    append(lake, GROUP_HISTORY, *[row(GROUP_HISTORY, group=n, **shared) for n in names])


def write(lake: Lake, *names: str) -> None:
    """Twenty-five minutes of samples and rounds, two a minute, and what a member can do."""
    moments = [NOW - timedelta(seconds=30 * ago) for ago in range(50, 0, -1)]
    shared = {"cluster": "shop", "status": "ok", "lag": 10, "produce_rate_per_second": 500.0}
    seen = {"cluster": "shop", "member_count": 2}
    append(lake, GROUPS, *[row(GROUPS, group=n, sampled_at=at, **seen) for n in names for at in moments])
    append(lake, GROUP_HISTORY, *[row(GROUP_HISTORY, group=n, as_of=at, **shared) for n in names for at in moments])
    a_round(lake, NOW, *names)
    can = {"cluster": "shop", "topic": "orders", "member_rate_per_second": 100.0}
    append(lake, CAPACITY, *[row(CAPACITY, group=n, **can) for n in names])


def in_order(known: ScalingInputs) -> ScalingInputs:
    """The same, with what is in no order sorted."""
    return replace(
        known,
        loads=sorted(known.loads, key=lambda x: x.at),
        member_counts=sorted(known.member_counts, key=lambda x: x.at),
    )


def fresh_inputs(lake: Lake, window_seconds: float, now: datetime) -> ScalingInputs:
    """What is known where nothing is remembered."""
    return LakeCache(Lake(lake.uri, lake.storage_options)).inputs_of("shop", "billing", window_seconds, now)


def asked(memory: LakeCache, now: datetime = NOW, **policy: Any) -> Any:
    return signal(memory, "shop", "billing", ScalingPolicy(**policy), now, stale_after_seconds=60.0)


def test_an_answer_takes_nothing_from_the_lake(lake: CountingLake) -> None:
    write(lake, "billing", "other")
    clock = Clock()
    memory = LakeCache(lake, clock)
    first = asked(memory)
    assert first.desired.replicas == 4
    lake.noticed, lake.read_files = 0, []
    for _ in range(50):
        assert asked(memory) == first
        assert memory.inputs_of("shop", "other", 60.0, NOW).members == 2
        with pytest.raises(UnknownGroup):
            memory.inputs_of("shop", "nobody", 60.0, NOW)
    assert (lake.noticed, lake.read_files) == (0, [])
    # Time passes, and nothing is new: that is noticed once, and nothing is read.
    clock.look_is_due()
    assert asked(memory) == asked(memory) == first
    assert (lake.noticed, lake.read_files) == (len(TABLES), [])


def test_what_is_new_is_read_once_and_nothing_else(lake: CountingLake) -> None:
    write(lake, "billing")
    clock = Clock()
    memory = LakeCache(lake, clock)
    asked(memory)
    lake.read_files = []
    clock.look_is_due()
    later = NOW + timedelta(seconds=15)
    sample(lake, later, 5, "billing")
    assert asked(memory, later).held == 5
    assert lake.read_files == [("groups", 1)]
    lake.read_files = []
    clock.look_is_due()
    a_round(lake, later, "billing", rate=100.0)
    assert asked(memory, later).as_of == later
    assert sorted(lake.read_files) == [("group_history", 1), ("group_status", 1), ("partition_status", 1)]


def test_it_is_noticed_no_later_than_two_seconds_after(lake: CountingLake) -> None:
    write(lake, "billing")
    clock = Clock()
    memory = LakeCache(lake, clock)
    asked(memory)
    later = NOW + timedelta(seconds=15)
    a_round(lake, later, "billing")
    clock.seconds += REFRESH_SECONDS - 0.1
    assert asked(memory, later).as_of == NOW
    clock.seconds += 0.1
    assert asked(memory, later).as_of == later


#: What happens between two questions: how many seconds pass, what then, and the window that is asked for.
STORY = (
    (15, "sample", 900.0),
    (15, "round", 900.0),
    (5, "nothing", 0.0),
    (300, "late sample", 900.0),
    (15, "sample", 7200.0),
    (10, "compaction", 900.0),
    (15, "sample", 1500.0),
    (200, "round", 7200.0),
    (1, "late sample", 7200.0),
    (10, "compaction", 7200.0),
    (700, "round of fewer", 900.0),
    (900, "capacity", 900.0),
    (3700, "sample", 900.0),
    (15, "round", 7200.0),
)


def test_the_cache_agrees_with_the_lake(lake: CountingLake) -> None:
    """After anything that rounds, collectors (late ones, too) and compaction do, as if all were read anew."""
    now, clock, names = NOW, Clock(), ("billing", "other")
    for ago in (7000, 3000, 1200, 600, 0):
        sample(lake, now - timedelta(seconds=ago), ago % 7, *names)
    a_round(lake, now, *names)
    memory = LakeCache(lake, clock)
    for number, (seconds, what, window) in enumerate(STORY):
        now += timedelta(seconds=seconds)
        clock.seconds += seconds + REFRESH_SECONDS
        match what:
            case "sample":
                sample(lake, now, number, *names)
            case "late sample":
                sample(lake, now - timedelta(seconds=seconds), number, "billing")
            case "round":
                a_round(lake, now, *names, rate=float(number))
            case "round of fewer":
                a_round(lake, now, "billing", rate=float(number))
            case "compaction":
                for table in (GROUPS, GROUP_HISTORY):
                    delta = lake.open(table)
                    assert delta is not None
                    assert delta.optimize.compact()["numFilesRemoved"] > 1
            case "capacity":
                append(lake, CAPACITY, row(CAPACITY, cluster="shop", group="billing", topic=f"t{number}"))
        remembered = memory.inputs_of("shop", "billing", window, now)
        assert in_order(remembered) == in_order(fresh_inputs(lake, window, now)), (number, what)


def test_a_longer_window_is_read_when_it_is_asked_for(lake: CountingLake) -> None:
    write(lake, "billing", "other")
    sample(lake, NOW - timedelta(hours=3), 7, "billing", "other")
    clock = Clock()
    memory = LakeCache(lake, clock)
    assert len(memory.inputs_of("shop", "billing", 900.0, NOW).member_counts) == 40
    assert len(memory.inputs_of("shop", "billing", 3 * 3600.0, NOW).member_counts) == 51
    lake.read_files = []
    assert len(memory.inputs_of("shop", "billing", 2.5 * 3600.0, NOW).member_counts) == 50
    assert lake.read_files == []
    # Of another group no more is kept for it, and of this one no more than before once nobody asks for it.
    assert len(memory.inputs_of("shop", "other", 900.0, NOW).member_counts) == 40
    assert memory._members.of(("shop", "other"), NOW - timedelta(hours=9))[0].at > NOW - timedelta(minutes=21)
    clock.seconds += 3700.0
    sample(lake, NOW, 2, "billing")
    memory.inputs_of("shop", "billing", 900.0, NOW)
    assert min(seen.at for seen in memory._members.of(("shop", "billing"), NOW - timedelta(hours=9))) > NOW - timedelta(
        minutes=21
    )


def test_a_group_that_is_gone_is_forgotten(lake: CountingLake) -> None:
    write(lake, "billing", "other")
    clock = Clock()
    memory = LakeCache(lake, clock)
    memory.inputs_of("shop", "other", 900.0, NOW)
    later = NOW + timedelta(hours=1)
    sample(lake, later, 2, "billing")
    a_round(lake, later, "billing")
    clock.look_is_due()
    with pytest.raises(UnknownGroup):
        memory.inputs_of("shop", "other", 900.0, later)
    assert memory._members.of(("shop", "other"), NOW - timedelta(hours=9)) == []


def test_nothing_was_ever_analysed(tmp_path: Path) -> None:
    """Not knowing is no answer about a group either: it is not said that there is none of this name."""
    with pytest.raises(NoAnswer, match="no analysis has written to"):
        asked(LakeCache(Lake(str(tmp_path / "nothing"))))


def test_a_lake_that_cannot_be_read_for_a_while(lake: CountingLake, caplog: pytest.LogCaptureFixture) -> None:
    """What is known has its age: it is acted on as long as it is fresh, and no longer."""
    caplog.set_level(logging.INFO, "lagwise.scaling")
    write(lake, "billing")
    clock = Clock()
    memory = LakeCache(lake, clock)
    first = asked(memory)
    # A new round whose file is not there: the store lost it, or does not show it yet.
    later = NOW + timedelta(seconds=30)
    a_round(lake, later, "billing", rate=10.0)
    [file] = lake.files(GROUP_STATUS)
    Path(file).rename(f"{file}.away")
    for _ in range(3):
        clock.look_is_due()
        assert asked(memory, later) == first
    with pytest.raises(StaleData, match=r"61 s old, more than 60 s; the lake cannot be read: .*group_status"):
        asked(memory, NOW + timedelta(seconds=61))
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    Path(f"{file}.away").rename(file)
    clock.look_is_due()
    assert asked(memory, later).as_of == later
    assert in_order(memory.inputs_of("shop", "billing", 900.0, later)) == in_order(fresh_inputs(lake, 900.0, later))
    assert [record.getMessage() for record in caplog.records][1:] == ["the lake can be read again"]


class HeldLake(CountingLake):
    """One that keeps whoever looks at it waiting until a test lets it go."""

    def __init__(self, uri: str) -> None:
        super().__init__(uri)
        self.is_looked_at, self.go = threading.Event(), threading.Event()

    def version(self, table: Table) -> int | None:
        self.is_looked_at.set()
        assert self.go.wait(60)
        return super().version(table)


def in_thread(ask: Callable[[], Any], results: list[Any]) -> threading.Thread:
    thread = threading.Thread(target=lambda: results.append(ask()))
    thread.start()
    return thread


def test_while_one_looks_others_are_answered_from_what_was_known_shortly_before(lake: CountingLake) -> None:
    write(lake, "billing")
    held, clock = HeldLake(lake.uri), Clock()
    held.go.set()
    memory = LakeCache(held, clock)
    asked(memory)
    held.go.clear()
    held.is_looked_at.clear()
    later = NOW + timedelta(seconds=15)
    a_round(lake, later, "billing")
    clock.look_is_due()
    slow: list[Any] = []
    thread = in_thread(lambda: asked(memory, later), slow)
    assert held.is_looked_at.wait(60)
    assert asked(memory, later).as_of == NOW
    held.go.set()
    thread.join()
    assert slow[0].as_of == later


@pytest.mark.parametrize("idle_seconds", [None, 600.0], ids=["the first look", "after ten minutes without questions"])
def test_what_is_old_or_not_there_is_waited_for(lake: CountingLake, idle_seconds: float | None) -> None:
    """Otherwise the second caller after a quiet hour would be told that all is stale."""
    write(lake, "billing")
    held, clock = HeldLake(lake.uri), Clock()
    asking = threading.Semaphore(0)

    def noting_clock() -> float:
        asking.release()
        return clock()

    memory = LakeCache(held, noting_clock)
    later = NOW
    if idle_seconds is not None:
        held.go.set()
        asked(memory)
        held.go.clear()
        held.is_looked_at.clear()
        clock.seconds += idle_seconds
        later = NOW + timedelta(seconds=idle_seconds)
        sample(lake, later, 2, "billing")
        a_round(lake, later, "billing")
    results: list[Any] = []
    first = in_thread(lambda: asked(memory, later, down_after_seconds=600.0), results)
    assert held.is_looked_at.wait(60)
    while asking.acquire(blocking=False):
        pass
    second = in_thread(lambda: asked(memory, later, down_after_seconds=600.0), results)
    assert asking.acquire(timeout=60)  # it has come as far as asking how old what is known is
    held.go.set()
    first.join()
    second.join()
    assert [found.as_of for found in results] == [later, later]


def test_a_read_that_hangs_delays_no_request_for_long(lake: CountingLake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scaling_memory, "_WAIT_SECONDS", 0.01)
    write(lake, "billing")
    held = HeldLake(lake.uri)
    memory = LakeCache(held, Clock())
    results: list[Any] = []
    thread = in_thread(lambda: asked(memory), results)
    assert held.is_looked_at.wait(60)
    with pytest.raises(NoAnswer, match="the lake is being read for the first time"):
        asked(memory)
    held.go.set()
    thread.join()
    assert results[0].desired.replicas == 4


def test_a_mistake_of_ours_is_not_taken_for_trouble_with_the_lake(
    lake: CountingLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(lake, "billing")
    monkeypatch.setattr(history_windows, "_MEMBERS", "select nonsense from groups where $since is null")
    with pytest.raises(duckdb.BinderException):
        asked(LakeCache(lake))


def test_in_an_object_store(bucket: Bucket) -> None:
    """Read file by file there, too, and remembered while the store is away."""
    lake = Lake(f"{bucket.uri}/lake", bucket.options)
    lake.create(*TABLES)
    names = ("billing", "other")
    for ago in (1210, 600, 0):
        sample(lake, NOW - timedelta(seconds=ago), 2 + ago // 600, *names)
    append(lake, GROUP_STATUS, *[group(n, "ok", as_of=NOW, members=2, state="Stable") for n in names])
    clock = Clock()
    memory = LakeCache(lake, clock)
    assert sorted(seen.count for seen in memory.inputs_of("shop", "billing", 900.0, NOW).member_counts) == [2, 3]
    later = NOW + timedelta(seconds=15)
    sample(lake, later, 9, *names)
    clock.look_is_due()
    known = memory.inputs_of("shop", "billing", 900.0, later)
    assert sorted(seen.count for seen in known.member_counts) == [2, 3, 9]
    assert in_order(known) == in_order(fresh_inputs(lake, 900.0, later))
    bucket.server.kill()
    bucket.server.wait()
    clock.look_is_due()
    away = memory.inputs_of("shop", "billing", 900.0, later)
    assert away.read_error is not None
    assert in_order(replace(away, read_error=None)) == in_order(known)
    with pytest.raises(LakeError):
        lake.version(GROUPS)
