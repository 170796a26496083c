"""The sink and its spool on a real file system: in order, exactly once, bounded, and never in the way."""

import logging
import resource
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lagwise.domain.vocabulary import EventKind
from lagwise.operational.engine import open_engine
from lagwise.operational.leadership import Leadership
from lagwise.operational.lease import Lease
from lagwise.platform.errors import LakeError
from lagwise.tables.raw import COMMITS, EVENTS, GROUPS, RAW_TABLES, SAMPLES, TOPICS, WATERMARKS
from lagwise.tables.schema import Table
from lagwise.tables.store import Lake
from lagwise_collectors import snapshot_format
from lagwise_collectors.lake_delivery import lake_writer
from lagwise_collectors.lake_delivery.append_samples import ORDER, DueSample, lease_mark_of, writer_of
from lagwise_collectors.lake_delivery.lake_writer import LakeWriter, pause_for
from lagwise_collectors.lake_delivery.sink import Delivery, Sink
from lagwise_collectors.lake_delivery.spool import Spool
from lagwise_collectors.protocol import Snapshot
from lagwise_collectors.sample_diff.events import Event, as_rows
from tests.collectors.snapshots import INTERVAL, START, sample
from tests.fixtures.object_store import Bucket

pytestmark = pytest.mark.thorough


def whole(number: int, cluster: str = "shop") -> Snapshot:
    """A snapshot with rows in every table that a sample of a quiet cluster has."""
    return sample(
        number,
        cluster=cluster,
        commits={("g", "t", p): number for p in range(4)},
        topics={"t": ("a", 4)},
        settings={"t": {"retention_ms": 60000}},
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "state" / "spool"


@contextmanager
def out_of_order(lake: Lake, *tables: Table) -> Iterator[None]:
    """While this lasts the tables' folders are files, so that nothing can be written there, by root neither."""
    places = [Path(lake.location(table)) for table in tables]
    for place in places:
        place.rename(place.with_suffix(".aside"))
        place.write_text("not a folder")
    try:
        yield
    finally:
        for place in places:
            place.unlink()
            place.with_suffix(".aside").rename(place)


def event_at(number: int, group: str) -> pa.Table:
    """The row of an event at the time of a sample, of a table whose rows have no sample's id."""
    event = Event(EventKind.COMMIT_REWOUND, START + number * INTERVAL, group=group, topic="t", partition=0)
    return as_rows([event], "shop")


def writer_with_tables(lake: Lake, **options: float) -> LakeWriter:
    """A writer that does not try to create the tables first."""
    writer = LakeWriter(lake, **options)
    writer._has_tables = True
    return writer


def numbers(lake: Lake, table: Table) -> list[int]:
    """The samples that the rows of a table belong to, sorted."""
    return sorted(int(row) for row in lake.read(table)["sample_id"].to_pylist())


def in_order_of_writing(lake: Lake) -> list[int]:
    rows = lake.read(SAMPLES).sort_by("written_at")
    return [int(row) for row in rows["sample_id"].to_pylist()]


def sink_on(lake: Lake, folder: Path, **bounds: int) -> Sink:
    return Sink(LakeWriter(lake), Spool(folder, **bounds), "shop")


class TestDelivery:
    def test_a_snapshot_goes_to_its_tables_and_leaves_nothing_behind(self, lake: Lake, folder: Path) -> None:
        before = datetime.now(UTC)
        delivery = sink_on(lake, folder).write(whole(1))
        assert (delivery.waiting, delivery.trouble) == (0, None)
        assert numbers(lake, COMMITS) == numbers(lake, WATERMARKS) == [1] * 4
        assert numbers(lake, GROUPS) == numbers(lake, TOPICS) == numbers(lake, SAMPLES) == [1]
        assert not folder.exists()
        [written_at] = lake.read(SAMPLES)["written_at"].to_pylist()
        assert before <= written_at <= datetime.now(UTC)

    def test_the_row_that_makes_a_sample_count_is_written_last(self) -> None:
        assert ORDER[-1] is SAMPLES

    def test_tables_that_do_not_exist_yet_are_created(self, tmp_path: Path, folder: Path) -> None:
        lake = Lake(str(tmp_path / "new"))
        sink_on(lake, folder).write(whole(1))
        delta = lake.open(COMMITS)
        assert delta is not None
        assert delta.metadata().partition_columns == ["day"]

    def test_nothing_is_lost_while_the_lake_is_away_and_all_comes_in_order_afterwards(
        self, lake: Lake, folder: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.INFO, "lagwise.collectors")
        sink = sink_on(lake, folder)
        with out_of_order(lake, *ORDER):
            deliveries = [sink.write(whole(number)) for number in range(3)]
            assert [d.waiting for d in deliveries] == [1, 2, 3]
            assert all(d.trouble and "cannot" in d.trouble for d in deliveries)
            assert len(list(folder.iterdir())) == 3
        assert sink.write(whole(3)).waiting == 0
        assert in_order_of_writing(lake) == [0, 1, 2, 3]
        assert numbers(lake, COMMITS) == [n for n in range(4) for _ in range(4)]
        assert list(folder.iterdir()) == []
        reported = [r.getMessage() for r in caplog.records if r.levelno >= logging.ERROR]
        assert len(reported) == 1  # one clear line, not one a round
        assert "1 samples are kept in the spool" in reported[0]
        assert "4 samples were delivered" in caplog.records[-1].getMessage()

    @pytest.mark.parametrize("refusing", [GROUPS, COMMITS, WATERMARKS, SAMPLES])
    def test_a_sample_that_was_written_half_is_completed_and_not_repeated(
        self, lake: Lake, folder: Path, refusing: Table
    ) -> None:
        sink = sink_on(lake, folder)
        sink.write(whole(1))
        with out_of_order(lake, refusing):
            assert sink.write(whole(2)).waiting == 1
            assert sink.write(whole(3)).waiting == 2
        assert sink.write(whole(4)).waiting == 0
        for table in (COMMITS, WATERMARKS):
            assert numbers(lake, table) == [n for n in (1, 2, 3, 4) for _ in range(4)]
        for table in (GROUPS, TOPICS, SAMPLES):
            assert numbers(lake, table) == [1, 2, 3, 4]

    def test_a_half_written_sample_is_completed_by_the_next_process_too(self, lake: Lake, folder: Path) -> None:
        with out_of_order(lake, WATERMARKS):
            # The tables exist: as for a process that has written before, the first refusal comes from `watermarks`.
            first = Sink(writer_with_tables(lake), Spool(folder), "shop")
            assert first.write(whole(1)).waiting == 1
            first.close()
        assert numbers(lake, COMMITS) == [1] * 4
        sink_on(lake, folder).write(whole(2))
        assert numbers(lake, COMMITS) == numbers(lake, WATERMARKS) == [1] * 4 + [2] * 4
        assert in_order_of_writing(lake) == [1, 2]

    def test_a_commit_of_which_nothing_was_heard_is_not_repeated(
        self, lake: Lake, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The rows are in the lake, but the answer was lost on the way back (as an object store's can be)."""
        append = Lake.append
        lost = iter([COMMITS.name, SAMPLES.name])
        awaited: list[str] = [next(lost)]

        def losing(self: Lake, table: Table, *arguments: object, **options: object) -> None:
            append(self, table, *arguments, **options)  # type: ignore[arg-type]  # passed on as it came
            if awaited and table.name == awaited[0]:
                awaited[:] = [name] if (name := next(lost, None)) else []
                raise LakeError("the connection was lost")

        monkeypatch.setattr(Lake, "append", losing)
        sink = sink_on(lake, folder)
        assert [sink.write(whole(number)).waiting for number in (1, 2, 3)] == [1, 2, 0]
        assert numbers(lake, COMMITS) == [n for n in (1, 2, 3) for _ in range(4)]
        assert numbers(lake, SAMPLES) == [1, 2, 3]

    def test_a_slow_lake_does_not_keep_the_cluster_waiting(
        self, lake: Lake, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        append, released = Lake.append, threading.Event()

        def slow(self: Lake, *arguments: object, **options: object) -> None:
            assert released.wait(30)
            append(self, *arguments, **options)  # type: ignore[arg-type]  # passed on as it came

        monkeypatch.setattr(Lake, "append", slow)
        sink = sink_on(lake, folder)
        assert sink.write(whole(1), patience_seconds=0.01).trouble == "the lake is slow"
        assert sink.write(whole(2), patience_seconds=0.01).waiting == 2
        assert len(list(folder.iterdir())) == 2  # a crash now would lose neither
        released.set()
        assert sink.settle(30).waiting == 0
        assert in_order_of_writing(lake) == [1, 2]


class TestManyClusters:
    """Clusters that share a writer."""

    @pytest.fixture
    def names(self) -> list[str]:
        return [f"cluster-{number}" for number in range(5)]

    @staticmethod
    def sinks(writer: LakeWriter, folder: Path, names: Sequence[str]) -> list[Sink]:
        return [Sink(writer, Spool(folder / name), name) for name in names]

    @staticmethod
    def write_together(writer: LakeWriter, sinks: Sequence[Sink], snapshots: Sequence[Snapshot]) -> list[Delivery]:
        """Hand over a sample of each cluster during the pause of the writer, and wait until they have been tried."""
        for sink, snapshot in zip(sinks, snapshots, strict=True):
            sink.write(snapshot, patience_seconds=0)
        writer.hurry()
        return [sink.settle(30) for sink in sinks]

    @staticmethod
    def versions(lake: Lake) -> dict[str, int | None]:
        return {table.name: lake.version(table) for table in ORDER}

    @pytest.fixture
    def paused(self, lake: Lake, folder: Path) -> LakeWriter:
        """A writer that has just written, and will not do so again for an hour unless it is hurried."""
        writer = writer_with_tables(lake, pause_seconds=3600)
        assert Sink(writer, Spool(folder / "first"), "first").write(whole(0, "first")).waiting == 0
        return writer

    def test_all_that_is_due_is_one_commit_a_table(
        self, lake: Lake, folder: Path, paused: LakeWriter, names: list[str]
    ) -> None:
        sinks, before = self.sinks(paused, folder, names), self.versions(lake)
        deliveries = self.write_together(paused, sinks, [whole(1, name) for name in names])
        assert [(d.waiting, d.trouble) for d in deliveries] == [(0, None)] * 5
        commits = {name: (version or 0) - (before[name] or 0) for name, version in self.versions(lake).items()}
        written = ("topics", "groups", "commits", "watermarks", "samples")
        assert {name: count for name, count in commits.items() if count} == dict.fromkeys(written, 1)
        for name in names:
            rows = lake.read(COMMITS).filter(pc.field("cluster") == name)
            assert rows["sample_id"].to_pylist() == ["1"] * 4
            assert lake.last_transaction(SAMPLES, writer_of(name)) == DueSample(whole(1)).number

    def test_a_sample_that_waits_for_others_waits_on_disk(
        self, lake: Lake, folder: Path, paused: LakeWriter, names: list[str]
    ) -> None:
        sinks = self.sinks(paused, folder, names)
        deliveries = [sink.write(whole(1, sink.cluster), patience_seconds=0.01) for sink in sinks]
        assert [(d.waiting, d.safe) for d in deliveries] == [(1, True)] * 5
        assert len(list(folder.glob("*/*.arrows"))) == 5
        assert numbers(lake, SAMPLES) == [0]
        sinks[0].close()  # ends the wait, for the others too
        assert [sink.settle(30).waiting for sink in sinks] == [0] * 5
        assert numbers(lake, SAMPLES) == [0] + [1] * 5
        assert list(folder.glob("*/*.arrows")) == []

    @pytest.mark.parametrize("refusing", [GROUPS, COMMITS, WATERMARKS, SAMPLES])
    @pytest.mark.parametrize("restarted", [False, True])
    def test_samples_that_were_written_half_are_completed_and_not_repeated(
        self, lake: Lake, folder: Path, paused: LakeWriter, names: list[str], refusing: Table, restarted: bool
    ) -> None:
        sinks = self.sinks(paused, folder, names)
        with out_of_order(lake, refusing):
            deliveries = self.write_together(paused, sinks, [whole(1, name) for name in names])
            assert [d.waiting for d in deliveries] == [1] * 5
        if restarted:
            paused = writer_with_tables(lake)
            sinks = self.sinks(paused, folder, names)
        # Of three clusters another sample comes, and the writer continues with it. The others wait for theirs.
        for sink in sinks[:3]:
            sink.write(whole(2, sink.cluster), patience_seconds=0)
        paused.hurry()
        assert [sink.settle(30).waiting for sink in sinks[:3]] == [0] * 3
        assert numbers(lake, SAMPLES) == [0] + [1] * 3 + [2] * 3
        self.write_together(paused, sinks, [whole(3, name) for name in names])
        for table in (COMMITS, WATERMARKS):
            assert numbers(lake, table) == [
                n for n, count in ((0, 1), (1, 5), (2, 3), (3, 5)) for _ in range(4 * count)
            ]
        for table in (GROUPS, TOPICS, SAMPLES):
            assert numbers(lake, table) == [n for n, count in ((0, 1), (1, 5), (2, 3), (3, 5)) for _ in range(count)]

    def test_rows_that_do_not_fit_cost_their_own_sample_only(
        self, lake: Lake, folder: Path, paused: LakeWriter, names: list[str], caplog: pytest.LogCaptureFixture
    ) -> None:
        snapshots = [whole(1, name) for name in names]
        marks = snapshots[2].rows(WATERMARKS)
        place = marks.column_names.index("partition")
        unfit = marks.set_column(place, "partition", pa.array(["none"] * 4))
        snapshots[2] = snapshots[2].with_rows(WATERMARKS, unfit)
        deliveries = self.write_together(paused, self.sinks(paused, folder, names), snapshots)
        assert [(d.waiting, d.trouble) for d in deliveries] == [(0, None)] * 5
        assert lake.read(SAMPLES)["cluster"].to_pylist().count(names[2]) == 0
        assert numbers(lake, SAMPLES) == [0] + [1] * 4
        assert numbers(lake, WATERMARKS) == [0] * 4 + [1] * 16
        [line] = [r.getMessage() for r in caplog.records if r.levelno >= logging.ERROR]
        assert line.startswith("cluster-2: a sample does not fit the tables and is dropped: ")

    def test_a_defect_keeps_what_waits_and_is_over_with_it(
        self, lake: Lake, folder: Path, paused: LakeWriter, names: list[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        sinks = self.sinks(paused, folder, names)
        with monkeypatch.context() as patched:
            patched.setattr(Lake, "open", lambda *_: 1 / 0)
            deliveries = self.write_together(paused, sinks, [whole(1, name) for name in names])
        assert [(d.waiting, d.safe) for d in deliveries] == [(1, True)] * 5
        assert {d.trouble for d in deliveries} == {"ZeroDivisionError: division by zero"}
        deliveries = self.write_together(paused, sinks, [whole(2, name) for name in names])
        assert [(d.waiting, d.trouble) for d in deliveries] == [(0, None)] * 5
        assert numbers(lake, SAMPLES) == [0] + [1] * 5 + [2] * 5

    def test_an_idle_writer_takes_the_next_sample_at_once(self, lake: Lake, folder: Path) -> None:
        writer = writer_with_tables(lake, pause_seconds=0.2)
        sink = Sink(writer, Spool(folder), "shop")
        assert sink.write(whole(1)).waiting == 0
        deadline = time.monotonic() + 30
        while not writer.is_free:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        assert writer.is_free
        assert sink.write(whole(2)).waiting == 0
        assert not folder.exists()  # it waited for nothing, so not on disk either

    def test_what_is_large_is_written_in_parts(
        self, lake: Lake, folder: Path, paused: LakeWriter, names: list[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        size = sum(rows.nbytes for rows in whole(1).tables.values())
        monkeypatch.setattr(lake_writer, "_BATCH_BYTES", int(size * 1.5))  # so two go together
        before = lake.version(SAMPLES)
        sinks = self.sinks(paused, folder, names)
        assert [d.waiting for d in self.write_together(paused, sinks, [whole(1, name) for name in names])] == [0] * 5
        assert numbers(lake, SAMPLES) == [0] + [1] * 5
        assert lake.version(SAMPLES) == (before or 0) + 3  # none of them after an hour

    def test_after_an_outage_each_cluster_catches_up_in_order_and_without_pauses(
        self, lake: Lake, folder: Path, paused: LakeWriter, names: list[str]
    ) -> None:
        sinks = self.sinks(paused, folder, names)
        with out_of_order(lake, *ORDER):
            for number in (1, 2, 3):
                deliveries = self.write_together(paused, sinks, [whole(number, name) for name in names])
                assert [d.waiting for d in deliveries] == [number] * 5
        deliveries = self.write_together(paused, sinks, [whole(4, name) for name in names])
        assert [(d.waiting, d.trouble) for d in deliveries] == [(0, None)] * 5
        for name in names:
            rows = lake.read(SAMPLES).filter(pc.field("cluster") == name).sort_by("written_at")
            assert rows["sample_id"].to_pylist() == ["1", "2", "3", "4"]

    def test_a_cluster_that_another_process_collects_keeps_none_of_the_others_waiting(
        self, lake: Lake, folder: Path, tmp_path: Path, paused: LakeWriter
    ) -> None:
        engine = open_engine(f"sqlite:///{tmp_path / 'lagwise.db'}")
        leases = [Lease(engine, "collector two") for _ in range(2)]
        for lease in leases:
            lease.ask()
        stood_aside = Leadership(leases[1], "the collection of two", logging.getLogger("lagwise.test"))
        one = Sink(paused, Spool(folder / "one"), "one")
        two = Sink(paused, Spool(folder / "two"), "two", leadership=stood_aside)
        deliveries = self.write_together(paused, [one, two], [whole(1, "one"), whole(1, "two")])
        engine.dispose()
        assert [d.waiting for d in deliveries] == [0, 1]
        assert str(deliveries[1].trouble).endswith(" UTC) runs the collection of two")
        assert sorted(lake.read(SAMPLES)["cluster"].to_pylist()) == ["first", "one"]

    @pytest.mark.process
    def test_two_collectors_of_other_clusters_share_a_lake_in_an_object_store(
        self, bucket: Bucket, folder: Path, names: list[str]
    ) -> None:
        """Each has a writer, and all write to the same tables at the same time."""
        Lake(bucket.uri, bucket.options).create(*RAW_TABLES)
        sides = [names[:3], names[3:]]
        deliveries: list[Delivery] = []

        def collect(of: Sequence[str]) -> None:
            writer = LakeWriter(Lake(bucket.uri, bucket.options))
            sinks = self.sinks(writer, folder, of)
            for number in range(3):
                for sink in sinks:
                    sink.write(whole(number, sink.cluster), patience_seconds=0)
                deliveries.extend(sink.settle(60) for sink in sinks)

        threads = [threading.Thread(target=collect, args=(of,)) for of in sides]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [(d.waiting, d.trouble) for d in deliveries] == [(0, None)] * 15
        lake = Lake(bucket.uri, bucket.options)
        assert numbers(lake, SAMPLES) == [number for number in range(3) for _ in names]
        assert numbers(lake, COMMITS) == [number for number in range(3) for _ in range(4 * len(names))]

    def test_few_clusters_wait_for_nobody_and_many_for_two_seconds_at_most(self) -> None:
        assert pause_for([15.0]) == pause_for([15.0] * 8) == 0
        assert pause_for([15.0] * 50) == 15 / 8
        assert pause_for([*[60.0] * 49, 1.0]) == 1 / 8
        assert pause_for([3600.0] * 50) == 2


class TestTakingTurns:
    """Two processes that collect the same cluster, one after the other, each with a spool of its own."""

    @pytest.fixture
    def sides(self, lake: Lake, tmp_path: Path) -> Iterator[list[tuple[Sink, Lease]]]:
        made, engines = [], []
        for name in ("one", "two"):
            engines.append(open_engine(f"sqlite:///{tmp_path / 'lagwise.db'}"))
            lease = Lease(engines[-1], "collector shop")
            leadership = Leadership(lease, "the collection of shop", logging.getLogger("lagwise.test"))
            made.append((Sink(writer_with_tables(lake), Spool(tmp_path / name), "shop", leadership=leadership), lease))
        yield made
        for engine in engines:
            engine.dispose()

    def test_nothing_is_written_out_of_turn_nor_twice(self, lake: Lake, sides: list[tuple[Sink, Lease]]) -> None:
        (one, its_lease), (two, other_lease) = sides
        quiet = [event_at(number, "g") for number in range(8)]
        its_lease.ask()
        other_lease.ask()
        assert one.write(whole(0)).waiting == 0
        assert lake.last_transaction(SAMPLES, lease_mark_of("shop")) == its_lease.hold_id
        waiting = two.write(whole(1))
        assert waiting.waiting == 1
        assert str(waiting.trouble).endswith(" UTC) runs the collection of shop")

        with out_of_order(lake, WATERMARKS):
            assert one.write(whole(2).with_rows(EVENTS, quiet[2])).waiting == 1  # half of it is there
        its_lease.give_back()
        other_lease.ask()
        assert two.write(whole(3)).waiting == 0
        assert lake.last_transaction(SAMPLES, lease_mark_of("shop")) == other_lease.hold_id
        assert one.write(whole(4).with_rows(EVENTS, quiet[4])).waiting == 2
        other_lease.give_back()
        its_lease.ask()
        assert one.write(whole(5)).waiting == 0  # the half one, too, although later ones have been written since
        for table in (COMMITS, WATERMARKS):
            assert numbers(lake, table) == [n for n in range(6) for _ in range(4)], table.name
        for table in (GROUPS, TOPICS, SAMPLES):
            assert numbers(lake, table) == list(range(6)), table.name
        assert sorted(lake.read(EVENTS)["at"].to_pylist()) == [START + n * INTERVAL for n in (2, 4)]

    def test_a_file_that_could_not_be_removed_is_known_to_be_delivered(
        self, lake: Lake, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with out_of_order(lake, *ORDER):
            first = sink_on(lake, folder)
            first.write(whole(1).with_rows(EVENTS, event_at(1, "g")))
            first.close()
        with monkeypatch.context() as patched:
            patched.setattr(Path, "unlink", refuse)  # as in a folder that is read-only
            for number in (2, 3):
                assert sink_on(lake, folder).write(whole(number)).waiting == 0
        assert len(list(folder.iterdir())) == 1
        sink_on(lake, folder).write(whole(4))
        assert list(folder.iterdir()) == []
        assert numbers(lake, SAMPLES) == [1, 2, 3, 4]
        assert numbers(lake, COMMITS) == [n for n in (1, 2, 3, 4) for _ in range(4)]
        assert lake.read(EVENTS).num_rows == 1


def refuse(*_: object, **__: object) -> None:
    raise OSError(30, "Read-only file system")


class TestSpool:
    def test_what_an_earlier_process_left_comes_first(self, lake: Lake, folder: Path) -> None:
        with out_of_order(lake, *ORDER):
            first = sink_on(lake, folder)
            first.write(whole(1))
            first.write(whole(2))
            first.close()
        assert sink_on(lake, folder).write(whole(3)).waiting == 0
        assert in_order_of_writing(lake) == [1, 2, 3]

    def test_beyond_its_bound_the_oldest_go_and_the_next_sample_says_how_many(
        self, lake: Lake, folder: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        with out_of_order(lake, *ORDER):
            sink = sink_on(lake, folder)
            sink.write(whole(0))
            size = next(folder.iterdir()).stat().st_size
            sink = sink_on(lake, folder, disk_bytes=int(size * 3.5))
            for number in range(1, 9):
                assert sink.write(whole(number)).waiting <= 3
        sink.write(whole(9))
        assert in_order_of_writing(lake) == [6, 7, 8, 9]
        reported = [error for row in lake.read(SAMPLES).to_pylist() for error in row["errors"]]
        assert {error["kind"] for error in reported} == {"samples_dropped"}
        # Samples that reported dropped ones and were dropped themselves are reported again: 0 to 5, each once.
        assert sum(error["count"] for error in reported) == 6
        assert any("dropped" in r.getMessage() for r in caplog.records)

    def test_where_the_disk_takes_nothing_either_samples_stay_in_memory(
        self, lake: Lake, folder: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        folder.parent.mkdir(parents=True)
        folder.write_text("not a folder")
        sink = sink_on(lake, folder)
        with out_of_order(lake, *ORDER):
            assert [sink.write(whole(number)).waiting for number in range(3)] == [1, 2, 3]
        assert sink.write(whole(3)).waiting == 0
        assert in_order_of_writing(lake) == [0, 1, 2, 3]
        assert sum("cannot write the spool" in r.getMessage() for r in caplog.records) == 1

    def test_memory_is_bounded_too(self, lake: Lake, folder: Path) -> None:
        folder.parent.mkdir(parents=True)
        folder.write_text("not a folder")
        size = sum(rows.nbytes for rows in whole(0).tables.values())
        sink = sink_on(lake, folder, memory_bytes=int(size * 2.5))
        with out_of_order(lake, *ORDER):
            assert [sink.write(whole(number)).waiting for number in range(4)] == [1, 2, 2, 2]
        sink.write(whole(4))
        assert in_order_of_writing(lake) == [2, 3, 4]

    def test_a_full_disk_fills_memory_and_nothing_is_lost(self, lake: Lake, folder: Path) -> None:
        """A limit on file sizes refuses writes in the middle of a file, as a disk does that becomes full."""
        sink = sink_on(lake, folder)
        sink.write(whole(0))
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (512, hard))
        try:
            assert sink.write(whole(1)).waiting == 1
            assert sink.write(whole(2)).waiting == 2
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert not list(folder.glob("*.arrows"))
        assert sink.write(whole(3)).waiting == 0
        assert in_order_of_writing(lake) == [0, 1, 2, 3]
        assert numbers(lake, COMMITS) == [n for n in range(4) for _ in range(4)]

    def test_a_damaged_file_costs_only_itself(self, lake: Lake, folder: Path, caplog: pytest.LogCaptureFixture) -> None:
        with out_of_order(lake, *ORDER):
            sink = sink_on(lake, folder)
            for number in range(3):
                sink.write(whole(number))
        first, second, _ = sorted(folder.iterdir())
        first.write_bytes(first.read_bytes()[:-200])
        second.write_bytes(b"nonsense")
        (folder / "000000000009.part").write_bytes(b"cut off by a crash")
        (folder / "notes.txt").write_text("somebody else's")
        sink = sink_on(lake, folder)
        sink.write(whole(3))
        assert in_order_of_writing(lake) == [2, 3]
        assert [path.name for path in folder.iterdir()] == ["notes.txt"]
        assert sum("is dropped" in r.getMessage() for r in caplog.records) == 2
        sink.write(whole(4))
        [last] = [r["errors"] for r in lake.read(SAMPLES).to_pylist() if r["sample_id"] == "4"]
        assert [(e["kind"], e["count"]) for e in last] == [("samples_dropped", 2)]


class TestWire:
    def test_a_snapshot_survives_the_way_through_bytes(self, tmp_path: Path) -> None:
        snapshot = whole(7)
        for compression in (None, "zstd"):
            path = tmp_path / f"{compression}"
            with path.open("wb") as file:
                snapshot_format.write(file, snapshot, compression=compression)
            with path.open("rb") as file:
                read = snapshot_format.read(file)
            assert (read.cluster, read.sample_id) == (snapshot.cluster, snapshot.sample_id)
            assert set(read.tables) == set(snapshot.tables)
            for name, rows in snapshot.tables.items():
                assert read.tables[name].to_pylist() == rows.to_pylist()

    def test_one_cut_short_anywhere_is_recognised(self, tmp_path: Path) -> None:
        path = tmp_path / "whole"
        with path.open("wb") as file:
            snapshot_format.write(file, whole(7))
        data = path.read_bytes()
        for length in range(0, len(data) - 64, 97):
            with pytest.raises(snapshot_format.BrokenSnapshot):
                snapshot_format.read(pa.BufferReader(data[:length]))
