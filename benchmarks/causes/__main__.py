"""Is the cause of a backlog named? Seven faults on real consumers, whose kind and moment are known.

Each group has two consumers of one thread on a topic of eight partitions, at 70 % of what they can do. They call a stub
of a database and measure themselves with the probe. After some minutes of health each group but one gets its fault:
the database answers four times slower, or serves one call at a time; the code costs more CPU since a deployment; the
records get bigger; most records have one key; a member joins and leaves without reading; the broker throttles fetches.
Collector, lake and rounds of the analysis are the product's own. A fault counts as named if ``what_changed`` of the
group's row says so within two minutes; whatever is named of healthy groups counts as false.

    python -m benchmarks.causes [--interval 15] [--batch 1] [--keep FOLDER] [--json] [--small]
"""

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from benchmarks.common import REPOSITORY, opened_pipeline, options_parser
from lagwise.config import Cluster, Config, SparkSettings
from lagwise.domain.what_changed.change import ChangeKind
from lagwise.platform.die_with_parent import dying_with_parent
from lagwise.platform.java import find_java
from lagwise.tables import ALL_TABLES
from lagwise.tables.analysis import GROUP_STATUS
from lagwise.tables.store import Lake
from lagwise_collectors.kafka.source import KafkaSource
from lagwise_sandbox.broker import KafkaBroker
from lagwise_sandbox.jars import broker_classpath
from lagwise_spark.jobs.tick import tick
from lagwise_spark.start import start_spark

PARTITIONS, MEMBERS = 8, 2
#: T1, and CPU time for each kilobyte; records of this size.
T1_SECONDS, CPU_SECONDS, BYTES = 0.092, 0.004, 1024
#: What two such consumers can do is 20.8/s.
RATE_PER_SECOND = 14.5
HEALTHY_SECONDS, GOAL_SECONDS, WATCHED_SECONDS = 150.0, 120.0, 180.0
_HOT_SHARE, _BIGGER, _MORE_CPU, _SLOWER = 0.9, 16, 16.0, 4.0
_QUOTA_BYTES_PER_SECOND = 6_000
_HELD_SECONDS = 20.0


@dataclass
class Group:
    """A group with its topic, consumers and producer, and what is done to it."""

    name: str
    expected: ChangeKind | None = None
    fault: Callable[["Stage", "Group"], None] = lambda _stage, _group: None
    hot_share: float = 1 / PARTITIONS
    record_bytes: int = BYTES
    cpu_seconds: float = CPU_SECONDS
    members: list["subprocess.Popen[bytes]"] = field(default_factory=list)


@dataclass
class Named:
    """What was named of a group."""

    group: str
    expected: ChangeKind | None
    #: Every kind that was named, in order, and the latest sentence.
    kinds: list[ChangeKind] = field(default_factory=list)
    sentence: str = ""
    #: When the expected kind was named first, counted from the fault.
    after_seconds: float | None = None

    @property
    def is_right(self) -> bool:
        """Whether nothing was named of a healthy group, and of others the right kind, in time and for good."""
        if self.expected is None:
            return not self.kinds
        return self.after_seconds is not None and self.after_seconds <= GOAL_SECONDS and self.kinds[-1] is self.expected

    def see(self, kind: ChangeKind, sentence: str, after_seconds: float) -> None:
        """A round named this kind."""
        if not self.kinds or self.kinds[-1] is not kind:
            self.kinds.append(kind)
        if kind is self.expected and self.after_seconds is None:
            self.after_seconds = after_seconds
        self.sentence = sentence


class Stage:
    """Broker, database and groups that run together."""

    def __init__(self, broker: KafkaBroker, database: "subprocess.Popen[str]", port: int) -> None:
        self.broker, self._database, self.port = broker, database, port
        self.stop = threading.Event()
        self._producer = Producer({**broker.client_settings(), "linger.ms": 50, "log_level": 2})

    def start(self, group: Group) -> None:
        admin = AdminClient({**self.broker.client_settings()})
        admin.create_topics([NewTopic(group.name, PARTITIONS, 1)])[group.name].result()
        self.deploy(group)
        threading.Thread(target=self._produce, args=(group,), daemon=True).start()

    def deploy(self, group: Group) -> None:
        """Replace the members one after the other."""
        old, group.members = group.members, []
        for number in range(MEMBERS):
            if old:
                old[number].terminate()
                old[number].wait(20)
            group.members.append(self.consumer(group, f"{group.name}-{number}"))
            time.sleep(1.0 if old else 0.0)

    def consumer(self, group: Group, client: str, *more: str) -> "subprocess.Popen[bytes]":
        command = [
            *(sys.executable, "-m", "benchmarks.causes.consumer", "--bootstrap", self.broker.bootstrap),
            *("--topic", group.name, "--group", group.name, "--client", client),
            *("--port", str(self.port), "--cpu", repr(group.cpu_seconds), *more),
        ]
        return subprocess.Popen(dying_with_parent(command), cwd=REPOSITORY)

    def serve(self, group: Group, **how: float) -> None:
        """Change how the database serves a group."""
        assert self._database.stdin is not None
        self._database.stdin.write(json.dumps({"group": group.name, **how}) + "\n")
        self._database.stdin.flush()

    def throttle(self, client: str) -> None:
        """Have the broker slow a client's fetches down, as Kafka's own tool sets it."""
        java = [str(find_java()), "-cp", broker_classpath(), "kafka.admin.ConfigCommand"]
        what = ["--bootstrap-server", self.broker.bootstrap, "--alter", "--entity-type", "clients"]
        quota = ["--entity-name", client, "--add-config", f"consumer_byte_rate={_QUOTA_BYTES_PER_SECOND}"]
        subprocess.run([*java, *what, *quota], check=True, capture_output=True)

    def close(self, groups: Sequence[Group]) -> None:
        self.stop.set()
        for group in groups:
            for member in group.members:
                member.terminate()
        for group in groups:
            for member in group.members:
                with suppress(subprocess.TimeoutExpired):
                    member.wait(20)
        self._producer.flush(10)

    def _produce(self, group: Group) -> None:
        number, began = 0, time.monotonic()
        while not self.stop.is_set():
            number += 1
            hot = (number * 0.618034) % 1.0 < group.hot_share
            partition = 3 if hot else number % PARTITIONS
            self._producer.produce(group.name, b"x" * group.record_bytes, partition=partition)
            self._producer.poll(0)
            self.stop.wait(max(0.0, began + number / RATE_PER_SECOND - time.monotonic()))


def _slower_database(stage: Stage, group: Group) -> None:
    stage.serve(group, latency_seconds=T1_SECONDS * _SLOWER)


def _one_call_at_a_time(stage: Stage, group: Group) -> None:
    stage.serve(group, at_once=1)


def _costlier_code(stage: Stage, group: Group) -> None:
    group.cpu_seconds *= _MORE_CPU
    stage.deploy(group)


def _bigger_records(_stage: Stage, group: Group) -> None:
    group.record_bytes *= _BIGGER


def _hot_key(_stage: Stage, group: Group) -> None:
    group.hot_share = _HOT_SHARE


def _rebalances(stage: Stage, group: Group) -> None:
    while not stage.stop.is_set():
        member = stage.consumer(group, f"{group.name}-passing", "--idle")
        stage.stop.wait(_HELD_SECONDS)
        member.terminate()
        member.wait(20)


def _slow_broker(stage: Stage, group: Group) -> None:
    for number in range(MEMBERS):
        stage.throttle(f"{group.name}-{number}")


#: Groups that run together: those that compute much are no trouble for the others.
BATCHES = (
    (
        Group("database-slower", ChangeKind.WAITING_ROSE, _slower_database),
        Group("database-limited", ChangeKind.WAITING_ROSE, _one_call_at_a_time),
        Group("hot-key", ChangeKind.HOT_PARTITION, _hot_key),
        Group("rebalance-storm", ChangeKind.REBALANCES, _rebalances),
        Group("broker-slow", ChangeKind.FETCHING_SLOWED, _slow_broker),
        Group("healthy"),
    ),
    (Group("cpu-regression", ChangeKind.CPU_ROSE, _costlier_code), Group("healthy-too")),
    (Group("bigger-records", ChangeKind.CPU_ROSE, _bigger_records), Group("healthy-as-well")),
)


def run(batch: Sequence[Group], folder: Path, options: argparse.Namespace) -> list[Named]:
    """Run these groups, and say what was named of each."""
    config = Config.model_validate(
        {
            "data": str(folder),
            "clusters": [
                {
                    "name": "bench",
                    "bootstrap": "127.0.0.1:1",
                    "offsets_topic": True,
                    "interval_seconds": options.interval,
                }
            ],
        }
    )
    context = start_spark(SparkSettings())
    with ExitStack() as opened:
        opened.callback(context.stop)
        stage = opened.enter_context(_stage())
        cluster = config.clusters[0].model_copy(update={"bootstrap": stage.broker.bootstrap})
        assert isinstance(cluster, Cluster)
        config = config.model_copy(update={"clusters": (cluster,)})
        lake = Lake(config.lake_uri)
        lake.create(*ALL_TABLES)
        opened.callback(stage.close, batch)
        for group in batch:
            stage.start(group)
        pipeline = opened.enter_context(opened_pipeline(KafkaSource(cluster), cluster, config, lake))
        # Consumers die with the thread that started them, so threads stay when a fault is done.
        doing = opened.enter_context(ThreadPoolExecutor(len(batch)))
        opened.callback(stage.stop.set)
        named = {group.name: Named(group.name, group.expected) for group in batch}
        began, faulted = time.monotonic(), None
        healthy = HEALTHY_SECONDS if not options.small else 90.0
        while faulted is None or time.monotonic() - faulted < WATCHED_SECONDS:
            at = time.monotonic()
            if faulted is None and at - began >= healthy:
                faulted = at
                for group in batch:
                    doing.submit(group.fault, stage, group)
            pipeline.run()
            tick(context, lake, config)
            for row in lake.read(GROUP_STATUS).to_pylist():
                # That the cause cannot be told names none.
                if row["what_changed"] not in (None, ChangeKind.ALREADY_BEHIND):
                    after = time.monotonic() - faulted if faulted else -1.0
                    kind, sentence = ChangeKind(row["what_changed"]), row["what_changed_sentence"]
                    named[row["group"]].see(kind, sentence, after)
            time.sleep(max(0.0, at + options.interval - time.monotonic()))
    return list(named.values())


@contextmanager
def _stage() -> Iterator[Stage]:
    command = [sys.executable, "-m", "benchmarks.causes.downstream", repr(T1_SECONDS)]
    with (
        KafkaBroker(extra={"group.initial.rebalance.delay.ms": 1000}) as broker,
        subprocess.Popen(
            dying_with_parent(command), cwd=REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as database,
    ):
        assert database.stdout is not None
        try:
            yield Stage(broker, database, int(database.stdout.readline()))
        finally:
            database.kill()


def main() -> int:
    parser = options_parser(__doc__, "the first batch alone, after less of health", has_json=True)
    parser.add_argument("--interval", type=float, default=15.0, help="seconds between two samples (default 15)")
    parser.add_argument("--batch", type=int, action="append", help="only this batch, from 1")
    parser.add_argument("--keep", type=Path, help="keep the lakes in this folder")
    options = parser.parse_args()
    chosen = [1] if options.small else options.batch or range(1, len(BATCHES) + 1)
    results = []
    for number in chosen:
        with tempfile.TemporaryDirectory(prefix="lagwise-causes-") as folder:
            lake = Path(folder) if options.keep is None else options.keep / f"batch-{number}"
            results += run(BATCHES[number - 1], lake, options)
    if options.json:
        print(json.dumps({"at": datetime.now(UTC).isoformat(), "groups": [asdict(r) for r in results]}))
    else:
        for result in results:
            print(_line(result))
    return 0 if all(result.is_right for result in results) or options.small else 1


def _line(named: Named) -> str:
    after = "" if named.after_seconds is None else f" after {named.after_seconds:.0f} s"
    kinds = ", then ".join(named.kinds) or "nothing"
    return f"{'right' if named.is_right else 'WRONG':6}{named.group:18}{kinds}{after} {named.sentence}"


if __name__ == "__main__":
    sys.exit(main())
