"""The scenes, and how one is really played."""

import contextlib
import itertools
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

from benchmarks.common import REPOSITORY
from lagwise.domain.simulation.scenario import Interruption, Scenario, Traffic
from lagwise.platform.die_with_parent import dying_with_parent

SAMPLE_SECONDS = 0.5
#: A crash is noticed after this.
SESSION_TIMEOUT_SECONDS = 6.0
_SETTLE_SECONDS = 60.0
_PRODUCE_EVERY_SECONDS = 0.02
#: A Python process with a consumer takes so long to get to work.
_START_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Seen:
    """The group at one time, seconds from the start of the scene."""

    at_seconds: float
    lag: int
    #: Age of the oldest record that is not committed.
    lag_seconds: float


@dataclass(frozen=True, slots=True)
class Scene:
    """A question, and how its interruption is done: ``how`` is given the nodes and returns when it is over."""

    scenario: Scenario
    #: When something happens for the first time.
    begins_seconds: float
    session_timeout_seconds: float = 45.0
    #: What happens to the nodes: (when, to which, what), in order of time.
    acts: tuple[tuple[float, int, str], ...] = ()


#: 40 records a second and thread; two nodes of two threads read eight partitions.
_COMMON = Scenario(
    traffic=Traffic.constant(80.0, 80.0),
    t1_seconds=0.024,
    t2_seconds=0.001,
    cores=2.0,
    nodes=2,
    threads_per_node=2,
    partitions=8,
)
SCENES = {
    # All consumers stand still for 15 s, no member is removed: a pause of the machines, or of what they call.
    "pause": Scene(
        replace(_COMMON, interruption=Interruption(at_seconds=10.0, seconds=15.0, reassigned_after_seconds=None)),
        begins_seconds=10.0,
        acts=((10.0, 0, "freeze"), (10.0, 1, "freeze"), (25.0, 0, "thaw"), (25.0, 1, "thaw")),
    ),
    # One of two nodes is killed; the other is given its partitions after the session timeout.
    "crash": Scene(
        replace(
            _COMMON,
            traffic=Traffic.constant(60.0, 80.0),
            interruption=Interruption(
                at_seconds=10.0, seconds=600.0, nodes=1, reassigned_after_seconds=SESSION_TIMEOUT_SECONDS
            ),
        ),
        begins_seconds=10.0,
        session_timeout_seconds=SESSION_TIMEOUT_SECONDS,
        acts=((10.0, 0, "kill"),),
    ),
    # For 15 s come more records than can be read, four in ten of them in one partition.
    "rush": Scene(
        replace(_COMMON, traffic=Traffic(((0.0, 50.0), (10.0, 150.0), (25.0, 50.0)), 100.0), hottest_share=0.4),
        begins_seconds=10.0,
    ),
    # Both nodes are restarted, one after the other; the other one reads meanwhile, and cannot quite keep up.
    "deploy": Scene(
        replace(
            _COMMON,
            traffic=Traffic.constant(100.0, 80.0),
            interruption=Interruption(at_seconds=10.0, seconds=12.0, rolling=True, reassigned_after_seconds=0.0),
        ),
        begins_seconds=10.0,
        acts=(
            *((10.0, 0, "end"), (22.0 - _START_SECONDS, 0, "start")),
            *((22.0, 1, "end"), (34.0 - _START_SECONDS, 1, "start")),
        ),
    ),
}


class _Stream:
    """Records at the rate of a traffic, in the scenario's shares; before the scene begins, at its first rate."""

    def __init__(self, bootstrap: str, topic: str, scenario: Scenario) -> None:
        self._producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5, "log_level": 0})
        self._topic, self._traffic = topic, scenario.traffic
        #: When each record of a partition was written, by the monotonic clock.
        self.written: list[list[float]] = [[] for _ in range(scenario.partitions)]
        self._turns = turns(scenario.falling_shares)
        self._stop = threading.Event()
        self._began: float | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def begin(self, at: float) -> None:
        """The scene's time starts now."""
        self._began = at

    def close(self) -> None:
        self._stop.set()
        self._thread.join()
        self._producer.flush(10.0)

    def _run(self) -> None:
        last, due = time.monotonic(), 0.0
        while not self._stop.wait(_PRODUCE_EVERY_SECONDS):
            now = time.monotonic()
            rate = self._traffic.rate_at(0.0 if self._began is None else max(0.0, now - self._began))
            due += rate * (now - last)
            last = now
            for _ in range(int(due)):
                partition = next(self._turns)
                self._producer.produce(self._topic, b"a record", partition=partition)
                self.written[partition].append(now)
            due -= int(due)
            self._producer.poll(0)


def turns(shares: Sequence[float]) -> Iterator[int]:
    """Partitions in turn, each as often as its share says."""
    due = [0.0] * len(shares)
    while True:
        due = [had + share for had, share in zip(due, shares, strict=True)]
        partition = max(range(len(shares)), key=due.__getitem__)
        due[partition] -= 1.0
        yield partition


class _Nodes:
    """The processes that read."""

    def __init__(self, command: Callable[[int], list[str]]) -> None:
        self._command = command
        self._running: dict[int, subprocess.Popen[bytes]] = {}

    def act(self, node: int, what: str) -> None:
        if what == "start":
            command = dying_with_parent(self._command(node))
            self._running[node] = subprocess.Popen(command, cwd=REPOSITORY, stdin=subprocess.PIPE)
        elif what == "freeze":
            self._running[node].send_signal(signal.SIGSTOP)
        elif what == "thaw":
            self._running[node].send_signal(signal.SIGCONT)
        elif what == "kill":
            self._running.pop(node).kill()
        else:
            self._end(self._running.pop(node))

    def close(self) -> None:
        for process in self._running.values():
            process.send_signal(signal.SIGCONT)
            process.kill()
            process.wait()

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None
        process.stdin.close()


class _Lag:
    """Lag as the product reads it: committed offsets, then high watermarks."""

    def __init__(self, bootstrap: str, group: str, topic: str, stream: _Stream) -> None:
        self._admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
        self._group, self._topic, self._stream = group, topic, stream
        self._partitions = [TopicPartition(topic, number) for number in range(len(stream.written))]

    def read(self) -> tuple[float, int, float, bool]:
        """(when, lag, age of the oldest unread record, whether all partitions are committed on)."""
        asked = [ConsumerGroupTopicPartitions(self._group, self._partitions)]
        answer = self._admin.list_consumer_group_offsets(asked, request_timeout=10.0)[self._group].result()
        committed = {p.partition: max(0, p.offset) for p in answer.topic_partitions}
        whole = all(p.offset >= 0 for p in answer.topic_partitions)
        now = time.monotonic()
        latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]  # the package types only part of itself
        ends = self._admin.list_offsets(dict.fromkeys(self._partitions, latest), request_timeout=10.0)
        lag, oldest = 0, now
        for place, future in ends.items():
            unread = max(0, future.result().offset - committed[place.partition])
            lag += unread
            if unread:
                oldest = min(oldest, self._stream.written[place.partition][committed[place.partition]])
        return now, lag, now - oldest, whole


def play(bootstrap: str, scene: Scene) -> list[Seen]:
    """Do what the scene says, and look at the lag meanwhile. Raises RuntimeError where the group does not settle."""
    scenario, name = scene.scenario, f"what-if-{time.monotonic_ns()}"
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    admin.create_topics([NewTopic(name, scenario.partitions, 1)])[name].result()

    def command(node: int) -> list[str]:
        return [
            *(sys.executable, "-m", "benchmarks.what_if.member"),
            *("--bootstrap", bootstrap, "--group", name, "--topic", name, "--name", f"node-{node}"),
            *("--threads", str(scenario.threads_per_node)),
            *("--t1", repr(scenario.t1_seconds), "--t2", repr(scenario.t2_seconds)),
            *("--session-timeout", repr(scene.session_timeout_seconds)),
        ]

    stream, nodes = _Stream(bootstrap, name, scenario), _Nodes(command)
    lag = _Lag(bootstrap, name, name, stream)
    with contextlib.ExitStack() as stack:
        for node in range(scenario.nodes):
            nodes.act(node, "start")
        stack.callback(nodes.close)
        stream.start()
        stack.callback(stream.close)
        _settle(lag, scenario.traffic.rate_at(0.0))
        began = time.monotonic()
        stream.begin(began)
        return list(_watch(scene, nodes, lag, began))


def _settle(lag: _Lag, rate_per_second: float) -> None:
    """Wait until everything is read as it comes."""
    deadline, calm = time.monotonic() + _SETTLE_SECONDS, 0
    said = "nothing is read yet"
    while calm < 10:
        try:
            _, unread, _, whole = lag.read()
            said = f"{unread} records are unread"
            calm = calm + 1 if whole and unread < rate_per_second else 0
        except KafkaException as error:  # a topic is known to its leader a moment after it was made
            said, calm = str(error), 0
        if time.monotonic() > deadline:
            raise RuntimeError(f"the consumers do not keep up before anything happens: {said}")
        time.sleep(SAMPLE_SECONDS)


def _watch(scene: Scene, nodes: _Nodes, lag: _Lag, began: float) -> Iterator[Seen]:
    acts = list(scene.acts)
    for number in itertools.count():
        at = number * SAMPLE_SECONDS
        if at > scene.scenario.traffic.seconds:
            return
        while acts and acts[0][0] <= at:
            when, node, what = acts.pop(0)
            time.sleep(max(0.0, began + when - time.monotonic()))
            nodes.act(node, what)
        time.sleep(max(0.0, began + at - time.monotonic()))
        now, unread, age, _ = lag.read()
        yield Seen(now - began, unread, age)
