"""Catching up writes the minutes that rounds would have written, however it is cut into stretches, and as often."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lagwise.config import Config
from lagwise.tables import ALL_TABLES
from lagwise.tables.minutes import FIVE_MINUTES, MINUTES, WATERMARK_FIVE_MINUTES, WATERMARK_MINUTES
from lagwise.tables.raw import WATERMARKS
from lagwise.tables.rounds import TICKS
from lagwise.tables.schema import Table
from lagwise.tables.store import Lake
from tests.spark.recorder import Recorder

if TYPE_CHECKING:
    from pyspark import SparkContext

    from lagwise_spark.jobs.progress import News

#: Across midnight UTC, not at the start of five minutes, and not on whole seconds.
START = datetime(2026, 3, 1, 23, 36, 29, 771_828, tzinfo=UTC)
SAMPLES = 90
HISTORY = (MINUTES, FIVE_MINUTES, WATERMARK_MINUTES, WATERMARK_FIVE_MINUTES)


class SlowRecorder(Recorder):
    """Its watermarks are read half a second after its commits: of every other sample in the next minute."""

    interval_seconds = 30.0

    def _append(self, table: Table, at: datetime, rows: list[dict[str, Any]]) -> None:
        super()._append(table, at + timedelta(seconds=0.5) if table is WATERMARKS else at, rows)


def record(recorder: Recorder, *, from_sample: int = 0, to_sample: int = SAMPLES, withheld: int | None = None) -> None:
    """Keeping pace, standing still, going back, not always known. The samples of eight minutes are missing, in which
    one slice ends and the next begins: meanwhile a topic is re-created, and a group commits once. One is torn."""
    for i in range(from_sample, to_sample):
        at = recorder.elapsed
        if 50 <= i < 66:
            recorder.count += 1
            continue
        is_new = at >= 1600
        new = at - 1500 if is_new else at
        ends = {"orders": {p: (10 + p) * at for p in range(3)}, "again": {0: 5 * new}}
        commits: dict[Any, tuple[int | None, str | None]] = {
            ("steady", "orders", p): (max(0, (10 + p) * at - at % 70), "m") for p in range(3)
        }
        commits |= {
            ("stuck", "orders", 0): (min(10 * at, 4000), "n"),
            ("back", "orders", 1): (11 * at if at < 900 else 6 * at, "o"),
            ("sometimes", "orders", 2): (None if i % 4 == 0 else 12 * at, None),
            ("again", "again", 0): (4 * new, "p"),
            ("once", "orders", 0): (9000 if is_new else 100, None),
        }
        ids = {"again": "second" if is_new else "first"}
        recorder.sample(ends, commits, topic_ids=ids, torn=i == 31, withheld=i == withheld)


def contents(lake: Lake) -> dict[str, list[str]]:
    """Every row, in an order of its own, sums to the twelfth digit: the five minutes' are added in the order in which
    files are read."""

    def shown(value: Any) -> Any:
        return f"{value:.12g}" if isinstance(value, float) else value

    return {
        table.name: sorted(str({k: shown(v) for k, v in row.items()}) for row in lake.read(table).to_pylist())
        for table in HISTORY
    }


def stretch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything but the open minute is caught up on, in slices of ten minutes, two of them in a job."""
    from lagwise_spark.jobs import catch_up

    monkeypatch.setattr(catch_up, "ROWS_PER_ROUND", 0)
    monkeypatch.setattr(catch_up, "MINUTES_PER_ROUND", 1)
    monkeypatch.setattr(catch_up, "SAMPLES_PER_TASK", 120)
    monkeypatch.setattr(catch_up, "TASKS_PER_CORE", 1)


@pytest.fixture
def stretched(monkeypatch: pytest.MonkeyPatch) -> None:
    stretch(monkeypatch)


def run(spark: "SparkContext", lake: Lake) -> Any:
    from lagwise_spark.jobs.tick import tick

    return tick(spark, lake, Config(data=str(Path(lake.uri).parent)))


@pytest.mark.spark
@pytest.mark.timeout(600)
def test_stretches_equal_rounds(
    spark: "SparkContext", lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_rounds = Lake(str(tmp_path / "rounds" / "lake"))
    in_rounds.create(*ALL_TABLES)
    recorder = SlowRecorder(in_rounds, START, gathers=True)
    for until in (31, 70, SAMPLES):
        record(recorder, from_sample=recorder.count, to_sample=until)
        recorder.write()
        run(spark, in_rounds)
    record(SlowRecorder(lake, START))
    with monkeypatch.context() as patched:
        stretch(patched)
        cost = run(spark, lake)
    assert cost.minutes_finished == 44
    assert contents(lake) == contents(in_rounds)


@pytest.mark.spark
@pytest.mark.timeout(600)
@pytest.mark.usefixtures("stretched")
def test_catching_up_again_replaces(spark: "SparkContext", lake: Lake, tmp_path: Path) -> None:
    """What was cut short, and what a late sample reopens, is written over and not twice."""
    at_once = Lake(str(tmp_path / "other" / "lake"))
    at_once.create(*ALL_TABLES)
    all_there = SlowRecorder(at_once, START, gathers=True)
    record(all_there, to_sample=30)
    all_there.write()
    run(spark, at_once)
    late = SlowRecorder(lake, START)
    record(late, to_sample=30, withheld=9)
    run(spark, lake)
    ticks = lake.open(TICKS)
    assert ticks is not None
    ticks.delete()
    assert contents(lake) != contents(at_once)
    late.deliver_withheld()
    run(spark, lake)
    assert contents(lake) == contents(at_once)


def news(minutes: float, group_partitions: int) -> "News":
    """A cluster of which nothing has been made so far."""
    from lagwise_spark.jobs.progress import News

    as_of = START + timedelta(minutes=minutes)
    return News(
        cluster="c",
        system="kafka",
        latest_id="id",
        as_of=as_of,
        latest_from=as_of,
        interval_seconds=15.0,
        group_partitions=group_partitions,
        offsets_retention_seconds=None,
        new_samples=1,
        read_until=as_of,
        open_from=START,
        hours_from=START,
        observed_from=START,
    )


def test_a_little_is_left_to_the_round() -> None:
    from lagwise_spark.jobs.catch_up import is_a_round

    assert is_a_round(news(5, 1_000_000)), "a round of a large cluster"
    assert is_a_round(news(23, 250)), "a while of a small one"
    assert not is_a_round(news(60, 10_000))
    assert not is_a_round(news(24 * 60, 250))


def test_observing_waits_for_a_round_that_made_little_but_not_for_days() -> None:
    from lagwise_spark.jobs.observed import may_wait

    def hours(number: int) -> list["News"]:
        return [news(5, 250), replace(news(5, 250), hours_from=START + timedelta(hours=number))]

    assert not may_wait(hours(24), 120)
    assert may_wait(hours(24), 121)
    assert may_wait(hours(48), 24 * 60)
    assert not may_wait(hours(49), 24 * 60), "where every round is a day's, none would ever observe"


def test_slices_cover_the_time_without_a_gap() -> None:
    """As many as there are cores, a multiple where a task could not hold them, none shorter than worth its gap."""
    from lagwise_spark.jobs.catch_up import SAMPLES_PER_TASK, SHORTEST_SLICE, slices_of

    end = START + timedelta(minutes=100)
    for samples_per_second, count in ((1.0, 3), (SAMPLES_PER_TASK / 600, 11), (SAMPLES_PER_TASK, 21)):
        found = list(slices_of(START, end, samples_per_second, cores=3))
        assert len(found) == count
        assert found[0][0] == START
        assert found[-1][1] == end
        assert all(one[1] == other[0] for one, other in pairwise(found))
        assert all(until.minute % 5 == 0 for _, until in found[:-1])
        assert all(until - start >= SHORTEST_SLICE for start, until in found[1:-1])


@pytest.mark.parametrize(
    ("group_partitions", "interval_seconds", "pieces"),
    [(10_000, 15.0, 1), (12_000, 15.0, 1), (20_000, 15.0, 2), (250_000, 300.0, 2), (500_000, 300.0, 3)],
)
def test_a_slice_is_cut_where_a_task_could_not_hold_it(
    lake: Lake, group_partitions: int, interval_seconds: float, pieces: int
) -> None:
    """With the samples of the gap before it, which are most of what a short slice of rare samples holds."""
    from lagwise.domain.verdicts.samples import gap_seconds
    from lagwise_spark.jobs import catch_up

    n = replace(news(60, group_partitions), interval_seconds=interval_seconds)
    ((start, until), *_) = list(catch_up.slices_of(START, n.as_of, group_partitions / interval_seconds, cores=2))[1:]
    held = (until - start).total_seconds() + gap_seconds(interval_seconds)
    assert catch_up.pieces_of(int(held / interval_seconds), group_partitions) == pieces
