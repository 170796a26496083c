"""What tasks make reaches the driver as it was made, in as many jobs as the JVM can hold."""

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pytest
from pyspark import RDD, SparkContext

from lagwise_spark.tasks.running import TASKS_OF_JOB, gathered


def made(number: int) -> Iterator[tuple[str, pa.Table]]:
    yield "numbers", pa.table({"number": [number, number], "name": ["é", None]})
    if number % 2:
        yield "odd", pa.table({"number": [number]})


@pytest.mark.parametrize("pieces", [0, 1, TASKS_OF_JOB, 2 * TASKS_OF_JOB + 3])
def test_all_that_was_made_in_the_order_of_the_pieces(spark: SparkContext, pieces: int) -> None:
    found = gathered(spark, made, list(range(pieces)))
    assert sorted(found) == ["numbers", "odd"][: min(pieces, 2)]
    if pieces:
        assert found["numbers"]["number"].to_pylist() == [n for n in range(pieces) for _ in range(2)]
        assert found["numbers"]["name"].to_pylist() == ["é", None] * pieces
    if pieces > 1:
        assert found["odd"]["number"].to_pylist() == list(range(1, pieces, 2))


def test_many_tasks_are_several_jobs_none_of_them_too_large(
    spark: SparkContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks: list[int] = []
    parallelize = spark.parallelize

    def noted(pieces: Sequence[int], count: int) -> "RDD[int]":
        tasks.append(count)
        return parallelize(pieces, count)

    monkeypatch.setattr(spark, "parallelize", noted)
    gathered(spark, made, list(range(3 * TASKS_OF_JOB)))
    cores = spark.defaultParallelism
    assert sum(tasks) == 3 * TASKS_OF_JOB
    assert TASKS_OF_JOB <= tasks[0] < TASKS_OF_JOB + cores
    # No core waits for the next job but at the end.
    assert all(number == tasks[0] and number % cores == 0 for number in tasks[:-1])
