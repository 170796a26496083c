"""One run: consumers of a known cost on a core of their own, a backlog, and what Lagwise says of them afterwards.

The way is the product's own: the probe's texts in the metadata of the commits, the collector, the lake, a round of the
analysis and the planning after it, and ``lagwise size GROUP``.
"""

import json
import subprocess
import sys
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark import SparkContext

from benchmarks.capacity.judge import Advised, Measured
from benchmarks.capacity.work import Mix
from benchmarks.common import REPOSITORY, opened_pipeline
from lagwise.config import Cluster, Config
from lagwise.platform.die_with_parent import dying_with_parent
from lagwise.tables import ALL_TABLES
from lagwise.tables.service_times import SERVICE_TIMES
from lagwise.tables.store import Lake
from lagwise_collectors.kafka.source import KafkaSource
from lagwise_collectors.pipeline import Pipeline
from lagwise_sandbox.broker import KafkaBroker
from lagwise_spark.jobs.capacity import plan
from lagwise_spark.jobs.tick import tick

#: So many that the partitions of any number of consumers differ little, and that each has one.
PARTITIONS = 240
#: How often the collector samples, and how long the consumers run before anything counts.
SAMPLE_SECONDS, WARM_UP_SECONDS = 5.0, 3.0
#: More than any node needs, so that the advice is about full nodes.
_PEAK_PER_SECOND = 1_000_000
_PRODUCE_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Bench:
    """What all runs share."""

    broker: KafkaBroker
    folder: Path
    #: The cores of the node that is measured; everything else runs on others.
    cores: frozenset[int]
    seconds: float
    #: Whether what the client library does for itself runs on them, too.
    whole: bool = False


class Node:
    """The consumers of one node: a process with processes of its own. A context manager, ready when entered."""

    def __init__(self, bench: Bench, mix: Mix, topic: str, group: str, threads: int, processes: int) -> None:
        command = [
            *(sys.executable, "-m", "benchmarks.capacity.node"),
            *("--bootstrap", bench.broker.bootstrap, "--topic", topic, "--group", group),
            *("--consumers", str(threads), "--processes", str(processes)),
            *("--cores", ",".join(map(str, sorted(bench.cores)))),
            *("--t1", repr(mix.t1_seconds), "--t2", repr(mix.t2_seconds)),
            *("--probe-period", repr(min(5.0, bench.seconds / 2))),
            *(["--random"] if mix.random else []),
            *(["--whole"] if bench.whole else []),
        ]
        self._process = subprocess.Popen(
            dying_with_parent(command), cwd=REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __enter__(self) -> "Node":
        self._answer("READY")
        return self

    def __exit__(self, *exception: object) -> None:
        self._input.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()

    def handled(self) -> tuple[int, float]:
        """Messages handled so far, and at what time of the monotonic clock."""
        self._input.write("\n")
        self._input.flush()
        count, at = self._answer().split()
        return int(count), float(at)

    @property
    def _input(self) -> IO[str]:
        assert self._process.stdin is not None
        return self._process.stdin

    def _answer(self, wanted: str | None = None) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline().strip()
        if not line or wanted not in (None, line):
            raise RuntimeError(f"the consumers ended: they said {line!r}")
        return line


def fill(broker: KafkaBroker, topic: str, records: int) -> None:
    """Make the topic with so many records, evenly over its partitions."""
    admin = AdminClient({**broker.client_settings()})
    admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result()
    producer = Producer({**broker.client_settings(), "queue.buffering.max.messages": records + 1})
    for number in range(records):
        producer.produce(topic, b"a message", partition=number % PARTITIONS)
    if producer.flush(_PRODUCE_SECONDS):
        raise RuntimeError(f"the broker did not take all records within {_PRODUCE_SECONDS:.0f} s")


class Run:
    """One group with so many threads on a topic, watched by a collector with a lake of its own."""

    def __init__(self, bench: Bench, topic: str, group: str) -> None:
        self._bench, self._topic, self._group = bench, topic, group
        self.config = Config.model_validate(
            {
                "data": str(bench.folder / group),
                "clusters": [
                    {"name": "bench", "bootstrap": bench.broker.bootstrap, "groups": {"include": [group]}},
                ],
            }
        )
        self._lake = Lake(self.config.lake_uri)
        self._lake.create(*ALL_TABLES)

    def measure(self, mix: Mix, threads: int, processes: int) -> Measured:
        """Run the consumers, and collect what they report."""
        (cluster,) = self.config.clusters
        assert isinstance(cluster, Cluster)
        with (
            opened_pipeline(KafkaSource(cluster), cluster, self.config, self._lake) as pipeline,
            Node(self._bench, mix, self._topic, self._group, threads, processes) as node,
        ):
            time.sleep(WARM_UP_SECONDS)
            count, began = node.handled()
            self._collect(pipeline, until=began + self._bench.seconds)
            done, ended = node.handled()
            time.sleep(1.5)  # until the last text is committed
            pipeline.run()
        return self._measured(threads, (done - count) / (ended - began))

    def advice(self, context: SparkContext) -> Advised:
        """What the product makes of it: a round, the planning, and the command."""
        tick(context, self._lake, self.config)
        capacity, objective_of = self.config.analysis.capacity, self.config.lag_objective_of
        plan(self._lake, capacity, datetime.now(UTC), objective_of=objective_of)
        command = [sys.executable, "-m", "lagwise", "size", self._group, "--data", self.config.data]
        asked = [*command, "--peak", str(_PEAK_PER_SECOND), "--json"]
        answer: dict[str, Any] = json.loads(subprocess.run(asked, capture_output=True, text=True, check=True).stdout)
        figures = {name: figure["value"] for name, figure in answer["figures"].items()}
        return Advised(
            knee_threads=figures["knee_threads_per_node"],
            threads=figures["threads_that_fill_a_node"],
            rate_per_second=figures["node_rate_per_second"],
            seen_threads=answer["group"]["threads_per_node"],
        )

    def _collect(self, pipeline: Pipeline, until: float) -> None:
        while (now := time.monotonic()) < until:
            pipeline.run()
            time.sleep(max(0.0, min(now + SAMPLE_SECONDS, until) - time.monotonic()))

    def _measured(self, threads: int, rate_per_second: float) -> Measured:
        rows = self._lake.read(SERVICE_TIMES).to_pylist()
        if not rows:
            raise RuntimeError("the collector saw no measurement of the consumers")
        messages: int = sum(row["messages"] for row in rows)

        def mean(name: str) -> float:
            return sum(float(row[name] or 0.0) * int(row["messages"]) for row in rows) / messages

        return Measured(
            threads,
            rate_per_second,
            mean("t1_seconds"),
            mean("t2_seconds"),
            mean("run_queue_seconds"),
            mean("lock_wait_seconds"),
            any(row["t1_doubt"] for row in rows),
        )
