"""Runs a function over ranges of topic-partitions in one Spark job, and gathers the tables it makes."""

from collections.abc import Callable, Iterable, Iterator, Sequence

import pyarrow as pa
from pyspark.sql import SparkSession

from lagwise_spark.tasks.lake_files import KeyRange

#: What a function makes of a range: rows, with the name of their table.
Made = Iterator[tuple[str, pa.Table]]


def gathered(
    session: SparkSession, work: Callable[[KeyRange], Made], ranges: Sequence[KeyRange]
) -> dict[str, pa.Table]:
    """The rows that ``work`` makes of all ranges, by the name of their table. A task works on one range. What a table
    holds may differ from task to task only in its rows."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                made = [(name, _written(rows)) for name, rows in work(ranges[number])]
                yield pa.RecordBatch.from_pydict(
                    {"name": [name for name, _ in made], "rows": pa.array([rows for _, rows in made], pa.binary())}
                )

    answers = session.range(0, len(ranges), 1, len(ranges)).mapInArrow(run, "name string, rows binary").toArrow()
    tables: dict[str, list[pa.Table]] = {}
    for name, rows in zip(answers["name"].to_pylist(), answers["rows"], strict=True):
        tables.setdefault(name, []).append(pa.ipc.open_stream(rows.as_buffer()).read_all())
    return {name: pa.concat_tables(parts) for name, parts in tables.items()}


def _written(rows: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_table(rows)
    written: bytes = sink.getvalue().to_pybytes()
    return written
