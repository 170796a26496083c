"""Checkpoints that a real Spark wrote, read by the collector.

What writes the logs is Spark itself; the connector for Kafka is one more download. Here a source of the test's own
stands for it, whose offsets are those of the connector, ``{"topic": {"0": 12}}`` (``KafkaSourceOffset`` of Spark).
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lagwise.config.external_offsets import SparkCheckpoints
from lagwise_collectors.external_offsets.model import SourceResult
from lagwise_collectors.external_offsets.spark_checkpoint import read_spark_checkpoints

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

Stream = Callable[..., "DataFrame"]


@pytest.fixture(scope="module")
def sql(spark: "SparkContext") -> "SparkSession":
    from pyspark.sql import SparkSession

    return SparkSession(spark)


@pytest.fixture(scope="module")
def stream(sql: "SparkSession") -> Stream:
    """A stream that reads a topic up to these offsets."""
    from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

    class TopicReader(DataSourceStreamReader):
        def __init__(self, options: Any) -> None:
            self.topic, self.ends = options["topic"], json.loads(options["ends"])

        def initialOffset(self) -> dict[str, dict[str, int]]:
            return {self.topic: dict.fromkeys(self.ends, 0)}

        def latestOffset(self) -> dict[str, dict[str, int]]:
            return {self.topic: self.ends}

        def partitions(self, start: Any, end: Any) -> list[InputPartition]:
            return [InputPartition(0)]

        def read(self, partition: InputPartition) -> Iterator[tuple[str]]:
            yield ("a record",)

    class Topic(DataSource):
        @classmethod
        def name(cls) -> str:
            return "topic_of_the_test"

        def schema(self) -> str:
            return "value string"

        def streamReader(self, schema: Any) -> TopicReader:
            return TopicReader(self.options)

    sql.dataSource.register(Topic)

    def made(topic: str, ends: dict[str, int]) -> "DataFrame":
        reader = sql.readStream.format("topic_of_the_test").option("topic", topic)
        return reader.option("ends", json.dumps(ends)).load()

    return made


def run(query: "DataFrame", checkpoint: Path, batch: Callable[..., None] | None = None) -> None:
    """One batch of the query."""
    writer = query.writeStream.format("noop") if batch is None else query.writeStream.foreachBatch(batch)
    once = writer.option("checkpointLocation", str(checkpoint)).trigger(once=True)
    once.start().awaitTermination()


def read(path: Path) -> SourceResult:
    return read_spark_checkpoints(SparkCheckpoints(name="spark", path=str(path)))


def offsets(found: SourceResult, group: str) -> dict[tuple[str, int], int | None]:
    assert not found.errors
    return {(offset.topic, offset.partition): offset.committed for offset in found.groups[group].offsets}


def test_what_spark_writes_is_what_is_read(stream: Stream, sql: "SparkSession", tmp_path: Path) -> None:
    from pyspark.errors import StreamingQueryException

    run(stream("orders", {"0": 5, "1": 7}), tmp_path / "billing")
    assert offsets(read(tmp_path / "billing"), "billing") == {("orders", 0): 5, ("orders", 1): 7}

    run(stream("orders", {"0": 9, "1": 8}), tmp_path / "billing")
    assert offsets(read(tmp_path / "billing"), "billing") == {("orders", 0): 9, ("orders", 1): 8}

    def fails(rows: Any, number: int) -> None:
        raise ValueError("a poison record")

    with pytest.raises(StreamingQueryException):
        run(stream("orders", {"0": 20, "1": 20}), tmp_path / "billing", fails)
    # The batch was begun and did not get to its end.
    assert json.loads((tmp_path / "billing" / "offsets" / "2").read_text().splitlines()[2]) == {
        "orders": {"0": 20, "1": 20}
    }
    assert offsets(read(tmp_path / "billing"), "billing") == {("orders", 0): 9, ("orders", 1): 8}

    two = stream("orders", {"0": 5}).union(stream("clicks", {"0": 3}))
    rate = sql.readStream.format("rate").load().selectExpr("cast(value as string) as value")
    run(two.union(rate), tmp_path / "two")
    assert offsets(read(tmp_path / "two"), "two") == {("orders", 0): 5, ("clicks", 0): 3}


def test_the_second_version_of_the_log(stream: Stream, sql: "SparkSession", tmp_path: Path) -> None:
    sql.conf.set("spark.sql.streaming.offsetLog.formatVersion", "2")
    try:
        run(stream("orders", {"0": 5}).union(stream("clicks", {"0": 3})), tmp_path / "two")
    finally:
        sql.conf.unset("spark.sql.streaming.offsetLog.formatVersion")
    assert (tmp_path / "two" / "offsets" / "0").read_text().startswith("v2\n")
    assert offsets(read(tmp_path / "two"), "two") == {("orders", 0): 5, ("clicks", 0): 3}
