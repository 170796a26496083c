"""What tasks make reaches the driver as it was made, in as many jobs as the JVM can hold."""

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pytest
from pyspark import RDD, SparkContext

from lagwise.platform.errors import MissingRequirement
from lagwise_spark.tasks.error_text import reason_of
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


def failing(error: Exception) -> Iterator[tuple[str, pa.Table]]:
    try:
        raise KeyError("before")
    except KeyError:
        raise error  # noqa: B904 (the traceback of the first error comes before that of the second)
    yield "numbers", pa.table({"number": [0]})


def test_the_reason_of_a_task_that_failed_is_the_last_line_of_its_traceback(spark: SparkContext) -> None:
    with pytest.raises(Exception, match="Traceback") as failed:
        gathered(spark, failing, [ValueError("no space\nleft on device")])
    assert reason_of(failed.value) == "ValueError: no space"


def test_a_module_that_executors_lack_is_named(spark: SparkContext) -> None:
    with pytest.raises(
        MissingRequirement, match=r"spark\.pyspark\.python \(ModuleNotFoundError: No module named 'x'\)$"
    ):
        gathered(spark, failing, [ModuleNotFoundError("No module named 'x'")])


def test_the_reason_of_an_error_of_the_jvm_is_its_first_line(spark: SparkContext) -> None:
    with pytest.raises(Exception, match="Exception") as failed:
        spark._jvm.java.lang.Integer.parseInt("a")
    assert reason_of(failed.value) == 'java.lang.NumberFormatException: For input string: "a"'
    assert reason_of(ValueError("a\nb")) == "a"
    assert reason_of(ValueError()) == "ValueError"
