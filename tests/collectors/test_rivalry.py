"""Two collectors of one cluster that have different databases and one lake: both notice, and one stands aside."""

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from lagwise.config import AnyCluster, Cluster, Config
from lagwise.operational.engine import open_engine
from lagwise.operational.leadership import Leadership
from lagwise.operational.lease import TAKE_OVER_SECONDS, Lease
from lagwise.platform import health
from lagwise.tables.raw import GROUPS, SAMPLES
from lagwise.tables.store import Lake
from lagwise_collectors.lake_delivery.lake_writer import LakeWriter
from lagwise_collectors.lake_delivery.rivalry import Rivalry
from lagwise_collectors.lake_delivery.sink import Sink
from lagwise_collectors.lake_delivery.spool import Spool
from lagwise_collectors.protocol import Check, Snapshot
from lagwise_collectors.run import collect_forever
from lagwise_collectors.sample_builder import SampleBuilder
from tests.collectors.kafka import eventually
from tests.collectors.snapshots import START, sample

pytestmark = pytest.mark.thorough


class Clock:
    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


class Side:
    """One collector of the cluster ``shop``: its lake object, its database, its sink."""

    def __init__(self, name: str, uri: str, folder: Path, clock: Clock, hold_began: datetime) -> None:
        self.lake = Lake(uri)
        self.lake.written_by = f"process {name}"
        self.engine = open_engine(f"sqlite:///{folder / name}.db")
        lease = Lease(self.engine, "collector shop", now=lambda: hold_began)
        lease.ask()
        leadership = Leadership(lease, "the collection of shop", logging.getLogger("lagwise.test"))
        self.rivalry = Rivalry(self.lake, "shop", lease, 15, clock)
        spool = Spool(folder / name)
        self._sink = Sink(LakeWriter(self.lake), spool, "shop", leadership=leadership, rivalry=self.rivalry)

    def write(self, number: int) -> str | None:
        """Write a sample. Returns why it was not written."""
        return self._sink.write(sample(number, commits={("g", "t", 0): number}), patience_seconds=60).trouble


Sides = tuple[Side, Side, Clock]


@pytest.fixture
def sides(lake: Lake, tmp_path: Path) -> Iterator[Sides]:
    """Of the first one, the hold began a minute earlier."""
    clock = Clock()
    first = Side("first", lake.uri, tmp_path, clock, START)
    second = Side("second", lake.uri, tmp_path, clock, START + timedelta(minutes=1))
    yield first, second, clock
    for side in (first, second):
        side.engine.dispose()


TOO = (
    "process first writes samples of shop into this lake, too, and has another operational database; `database` must "
    "be the same in the settings of both"
)


def test_both_notice_and_the_one_that_came_later_stands_aside(
    lake: Lake, sides: Sides, caplog: pytest.LogCaptureFixture
) -> None:
    first, second, _ = sides
    assert [side.write(number) for number, side in enumerate([first, second] * 2)] == [None] * 4
    assert first.write(4) is None
    assert second.write(5) == TOO
    assert second.rivalry.why_not() == TOO
    assert first.rivalry.why_not() is None
    assert first.write(6) is None
    assert [int(row) for row in lake.read(SAMPLES).sort_by("started_at")["sample_id"].to_pylist()] == [0, 1, 2, 3, 4, 6]
    lines = [r.getMessage() for r in caplog.records if "another operational database" in r.getMessage()]
    assert lines[0] == TOO.replace("first", "second") + ". This process goes on"
    assert lines[1] == f"{TOO}. This process stands aside"


def test_it_goes_on_once_the_other_writes_no_more(lake: Lake, sides: Sides, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "lagwise.collectors")
    first, second, clock = sides
    for number in range(0, 6, 2):
        first.write(number)
        second.write(number + 1)
    assert second.rivalry.why_not() == TOO
    for number in (6, 7, 8):  # while the other one writes, however long that is
        clock.seconds += TAKE_OVER_SECONDS - 1
        first.write(number)
        assert second.rivalry.why_not() == TOO
    clock.seconds += TAKE_OVER_SECONDS - 1
    assert second.rivalry.why_not() == TOO
    clock.seconds += 2
    assert second.rivalry.why_not() is None
    assert "no other process writes samples of shop any more" in caplog.messages
    assert second.write(9) is None
    assert {int(row) for row in lake.read(SAMPLES)["sample_id"].to_pylist()} == set(range(10))  # with its last one


def test_a_write_that_was_held_up_and_finishes_late_is_no_second_collector(sides: Sides) -> None:
    first, second, _ = sides
    assert second.write(0) is None
    assert first.write(1) is None  # it was stopped during this write, for as long as a takeover takes
    assert [second.write(number) for number in range(2, 6)] == [None] * 4


class OfNow:
    """A source whose cluster has so many groups."""

    def __init__(self, cluster: AnyCluster, groups: int) -> None:
        self._cluster, self._groups = cluster, groups

    def collect(self) -> Snapshot:
        made, at = SampleBuilder(self._cluster), datetime.now(UTC)
        made.add(GROUPS, {"group": [f"g{n}" for n in range(self._groups)], "state": ["Empty"] * self._groups}, at)
        return made.finish()

    def check(self) -> list[Check]:
        return []

    def abandon(self) -> None:
        """A sample is over at once."""

    def close(self) -> None:
        """There is nothing to close."""


@contextmanager
def collecting(tmp_path: Path, groups: int) -> Iterator[Callable[[], str]]:
    """A collector with a state folder and a database of its own: what its heartbeat says."""
    state = tmp_path / f"state-{groups}"
    shop = Cluster(name="shop", bootstrap="127.0.0.1:9", interval_seconds=1)
    config, stop = Config(data=str(tmp_path / "data"), state_dir=state, clusters=(shop,)), threading.Event()

    def source_of(cluster: AnyCluster, _config: Config) -> OfNow:
        return OfNow(cluster, groups)

    thread = threading.Thread(target=collect_forever, args=(config, stop, state, source_of))
    thread.start()
    try:
        yield lambda: beats[health.COLLECTOR].line if (beats := health.read(state)) else ""
    finally:
        stop.set()
        thread.join(30)
        assert not thread.is_alive()


def test_of_two_collectors_that_share_nothing_but_the_lake_one_waits(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path / "data" / "lake"))

    def counts() -> dict[int, int]:
        found = lake.read(SAMPLES)["groups"].to_pylist()
        return {groups: found.count(groups) for groups in (1, 2)}

    with ExitStack() as collectors:
        first = collectors.enter_context(collecting(tmp_path, 1))
        eventually(lambda: counts()[1] >= 2)
        second = collectors.enter_context(collecting(tmp_path, 2))
        eventually(lambda: second().endswith("; this process waits"))
        assert "writes samples of shop into this lake, too" in second()
        before = counts()
        eventually(lambda: counts()[1] >= before[1] + 3)
        assert counts()[2] == before[2]
        assert first().startswith("shop: 1 group, ")
