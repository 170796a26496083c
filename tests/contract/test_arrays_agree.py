"""The minutes that catching up makes from arrays are those that a round makes, on random histories."""

import random
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from lagwise.domain.history import gap_seconds
from lagwise.tables.minutes import MINUTES, WATERMARK_MINUTES
from lagwise.tables.raw import COMMITS, WATERMARKS
from lagwise.tables.schema import Table
from lagwise.traces.trace import Row, Trace
from tests.contract.histories import history

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lagwise_spark.transforms.array_minutes import Span

pytestmark = pytest.mark.spark

HISTORIES = 150


@pytest.mark.timeout(600)
def test_on_random_histories(spark: "SparkSession", monkeypatch: pytest.MonkeyPatch) -> None:
    from lagwise_spark.frames import contexts_frame, frame
    from lagwise_spark.transforms import array_minutes, buckets

    # Few, so that a history is worked on in several parts.
    monkeypatch.setattr(array_minutes, "ROWS_AT_A_TIME", 50)
    histories = [history(seed) for seed in range(HISTORIES)]
    raw = {
        table: pa.concat_tables([rows_of(table, one.name, one.rows[table.name]) for one in histories])
        for table in (COMMITS, WATERMARKS)
    }
    contexts = contexts_frame(
        spark, [{"cluster": one.name, "gap_seconds": gap_seconds(one.sample_interval_s)} for one in histories]
    )
    commits, watermarks = frame(spark, raw[COMMITS]), frame(spark, raw[WATERMARKS])
    defined = {
        MINUTES: buckets.commit_minutes(buckets.with_lag(commits, watermarks), contexts),
        WATERMARK_MINUTES: buckets.watermark_minutes(watermarks),
    }
    for table, made in (
        (MINUTES, array_minutes.commit_minutes),
        (WATERMARK_MINUTES, array_minutes.watermark_minutes),
    ):
        from_arrays = [
            {"cluster": one.name} | row
            for one in histories
            for batch in made(batches(one, table), whole(one))
            for row in batch.to_pylist()
        ]
        wanted = in_order(table, defined[table])
        assert len(wanted) > 1000
        assert shown(table, from_arrays) == wanted


def test_only_the_minutes_asked_for() -> None:
    """What comes before serves for comparison only: the first step of a span is that from the sample before it."""
    from lagwise_spark.transforms.array_minutes import Span, commit_minutes, watermark_minutes

    one = history(3)
    everything = whole(one)
    for table, made in ((MINUTES, commit_minutes), (WATERMARK_MINUTES, watermark_minutes)):
        rows = [row for batch in made(batches(one, table), everything) for row in batch.to_pylist()]
        times = sorted({row["minute"] for row in rows})
        assert len(times) > 5
        first, last = times[2], times[-2]
        span = Span(micros(first), micros(last), everything.gap_seconds)
        inside = [row for batch in made(batches(one, table), span) for row in batch.to_pylist()]
        assert inside == [row for row in rows if first <= row["minute"] < last]


def whole(one: Trace) -> "Span":
    from lagwise_spark.transforms.array_minutes import Span

    return Span(0, 2**60, gap_seconds(one.sample_interval_s))


def micros(at: Any) -> int:
    return int(pa.scalar(at, pa.timestamp("us", tz="UTC")).value)


def batches(one: Trace, table: Table) -> Iterator[pa.RecordBatch]:
    """The rows as they come from the raw tables, a few at a time, shuffled."""
    from lagwise_spark.transforms.array_minutes import OF_COMMITS, OF_ENDS

    ends = rows_of(WATERMARKS, one.name, one.rows["watermarks"]).select(OF_ENDS)
    rows = ends
    if table is MINUTES:
        commits = rows_of(COMMITS, one.name, one.rows["commits"]).select(OF_COMMITS)
        rows = pa.concat_tables([commits, ends], promote_options="default")
    order = list(range(rows.num_rows))
    random.Random(one.name).shuffle(order)
    yield from rows.take(order).to_batches(max_chunksize=37)


def rows_of(table: Table, cluster: str, rows: Sequence[Row]) -> pa.Table:
    schema = pa.schema([field for field in table.arrow if field.name != "day"])
    full = [{name: ({"cluster": cluster} | dict(row)).get(name) for name in schema.names} for row in rows]
    # Nullable: those of the other table have none.
    return pa.Table.from_pylist(full, schema=pa.schema([field.with_nullable(True) for field in schema]))


def in_order(table: Table, rows: "DataFrame") -> list[str]:
    return shown(table, rows.toArrow().to_pylist())


def shown(table: Table, rows: Sequence[dict[str, Any]]) -> list[str]:
    """Every row, columns as declared, sums to the twelfth digit."""

    def value(one: Any) -> Any:
        return f"{one:.12g}" if isinstance(one, float) else one

    names = [column.name for column in table.columns]
    return sorted(str([value(row[name]) for name in names]) for row in rows)
