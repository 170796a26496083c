"""A real broker's ``__consumer_offsets``, followed while real consumers do what consumers do.

All stories are played at once and read by one tail; each test looks at one of them.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import NewPartitions

from lagwise.tables.raw import EVENTS
from lagwise_collectors.offsets_topic.commit_history import CADENCE_TABLE
from lagwise_collectors.protocol import EventSourceState
from lagwise_collectors.reader_process.isolated_source import IsolatedTail
from lagwise_sandbox.broker import KafkaBroker
from tests.collectors.kafka import Lab, eventually

pytestmark = pytest.mark.broker

#: Settings of members that commit often, and are taken for dead soon.
QUICK = {
    "enable.auto.commit": True,
    "auto.commit.interval.ms": 200,
    "session.timeout.ms": 4000,
    "heartbeat.interval.ms": 300,
    "topic.metadata.refresh.interval.ms": 500,
}
NEW = {"group.protocol": "consumer", **{k: v for k, v in QUICK.items() if "commit" in k}}
_CHILD = """
import json, sys
from confluent_kafka import Consumer
settings, topic = json.loads(sys.argv[1])
consumer = Consumer(settings)
consumer.subscribe([topic])
while True:
    consumer.poll(0.1)
"""


@dataclass
class Seen:
    """What the tail reported, and the names of the stories' groups."""

    lab: Lab
    events: list[dict[str, Any]]
    cadence: dict[tuple[str, int], tuple[int, int]]

    def of(self, group: str, kind: str = "rebalance") -> list[dict[str, Any]]:
        return [e for e in self.events if e["group"] == self.lab.name(group) and e["kind"] == kind]


class Follower:
    """A tail in a reader process, and everything it reported."""

    def __init__(self, lab: Lab, state: Path) -> None:
        self._lab = lab
        self.tail = IsolatedTail(lab.cluster(offsets_topic=True), state)
        self.events: list[dict[str, Any]] = []
        self.cadence: dict[tuple[str, int], tuple[int, int]] = {}

    @property
    def gone(self) -> set[str]:
        """The groups that were reported as gone."""
        found = (event["group"] for event in self.events if event["kind"] == "group_gone")
        return {group.removeprefix(f"{self._lab.prefix}-") for group in found}

    def look(self, *, keep: bool = True) -> EventSourceState:
        snapshot, state, errors = self.tail.take({})
        assert not errors, [errors.example(kind) for kind in errors.counts]
        assert snapshot is not None
        self.events += snapshot.rows(EVENTS).to_pylist()
        if CADENCE_TABLE in snapshot.tables:
            for row in snapshot.tables[CADENCE_TABLE].to_pylist():
                before = self.cadence.get((row["group"], row["partition"]), (0, 0))[1]
                count = row["commits_since"] or 0
                self.cadence[row["group"], row["partition"]] = row["committed_at"], before + count
        if keep:
            self.tail.acknowledge()
        return state


@contextlib.contextmanager
def pumping(lab: Lab, *topics: str) -> Iterator[None]:
    """A record for every partition several times a second, so that there is something to commit."""
    stop = threading.Event()

    def pump() -> None:
        producer = Producer(lab.settings)
        while not stop.wait(0.1):
            for topic in topics:
                for partition in range(4):
                    producer.produce(topic, b"x", partition=partition)
            producer.poll(0)
        producer.flush(10)

    thread = threading.Thread(target=pump)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def child(lab: Lab, group: str, topic: str, **settings: Any) -> subprocess.Popen[bytes]:
    given = {**lab.settings, "group.id": lab.name(group), "auto.offset.reset": "earliest", **settings}
    return subprocess.Popen([sys.executable, "-c", _CHILD, json.dumps([given, topic])], stderr=subprocess.DEVNULL)


def wait_for_members(lab: Lab, group: str, count: int) -> None:
    """Until so many members have partitions, or are at least settled."""

    def settled() -> bool:
        found = lab.admin.describe_consumer_groups([lab.name(group)])[lab.name(group)].result(10)
        return found.state.name == "STABLE" and len(found.members) == count

    eventually(settled)


@pytest.fixture(scope="module")
def seen(broker: KafkaBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seen]:
    lab = Lab(broker.client_settings())
    topic, second, growing = lab.topic(partitions=4), lab.topic("second", 4), lab.topic("growing", 4)
    lab.commit(lab.name("rewound"), topic, {0: 40})
    follower = Follower(lab, tmp_path_factory.mktemp("tail") / "kept.state")
    eventually(lambda: follower.look().is_caught_up)
    with contextlib.ExitStack() as stay, pumping(lab, topic, second, growing):
        for group, settings in {"leaves": QUICK, "fails": QUICK, "stuck": QUICK, "new": NEW}.items():
            stay.enter_context(lab.consumer(lab.name(group), topic, **settings, **{"client.id": "stays"}))
        for group in ("leaves", "fails", "stuck", "new"):
            wait_for_members(lab, group, 1)
        stay.enter_context(lab.consumer(lab.name("grows"), growing, **QUICK, **{"client.id": "stays"}))
        wanderer = Consumer({**lab.settings, "group.id": lab.name("wants"), **QUICK, "client.id": "wanderer"})
        wanderer.subscribe([topic])
        slow = Consumer(
            {**lab.settings, "group.id": lab.name("stuck"), **QUICK, "client.id": "slow", "max.poll.interval.ms": 9000}
        )
        slow.subscribe([topic])
        doomed = [
            child(lab, "fails", topic, **QUICK, **{"client.id": "doomed"}),
            child(lab, "new", topic, **NEW, **{"client.id": "doomed"}),
        ]
        static = {**QUICK, "client.id": "static", "group.instance.id": "node-1"}
        with (
            lab.consumer(lab.name("static"), topic, **static),
            lab.consumer(lab.name("leaves"), topic, **QUICK, **{"client.id": "leaver"}),
        ):
            until = time.monotonic() + 4
            while time.monotonic() < until:
                slow.poll(0.1)
                wanderer.poll(0.1)
            for group, count in {"leaves": 2, "fails": 2, "new": 2, "static": 1, "grows": 1}.items():
                wait_for_members(lab, group, count)
                slow.poll(0.1)
            until = time.monotonic() + 2
            while time.monotonic() < until:
                slow.poll(0.1)
                wanderer.poll(0.1)
            follower.look()
        stay.enter_context(lab.consumer(lab.name("static"), topic, **static))
        for process in doomed:
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
        wanderer.subscribe([topic, second])
        lab.admin.create_partitions([NewPartitions(growing, 6)])[growing].result(20)
        lab.commit(lab.name("rewound"), topic, {0: 7})
        abort(lab, topic)
        until = time.monotonic() + 12
        while time.monotonic() < until:
            wanderer.poll(0.1)
        follower.look()
        wanderer.close()
        slow.close()
    lab.delete_group(lab.name("leaves"))
    lab.delete_group(lab.name("rewound"))
    # What was not kept is read again by the next process.
    eventually(lambda: follower.look(keep=False).is_caught_up and follower.gone >= {"leaves", "rewound"})
    os.kill(follower.tail.pid or 0, signal.SIGKILL)
    eventually(lambda: follower.tail.pid is None)
    count = len(follower.events)
    eventually(lambda: follower.look().is_caught_up)
    # A static member says no goodbye: it times out about now.
    repeated = [event for event in follower.events[count:] if event["group"] != lab.name("static")]
    assert repeated
    assert [event for event in repeated if event not in follower.events[:count]] == []
    del follower.events[count:]
    yield Seen(lab, follower.events, follower.cadence)
    follower.tail.close()


def abort(lab: Lab, topic: str) -> None:
    """A transaction that would commit offset 1 for the group ``rewound``, and does not."""
    producer = Producer({**lab.settings, "transactional.id": lab.name("transaction")})
    producer.init_transactions(20)
    producer.begin_transaction()
    with contextlib.closing(Consumer({**lab.settings, "group.id": lab.name("rewound")})) as reader:
        metadata = reader.consumer_group_metadata()
        producer.send_offsets_to_transaction([TopicPartition(topic, 0, 1)], metadata, 20)
    producer.abort_transaction(20)


def causes(events: list[dict[str, Any]]) -> list[str]:
    return [event["cause"] for event in events]


def test_a_member_that_joins_and_leaves(seen: Seen) -> None:
    appeared, joined, left, *_ = seen.of("leaves")
    assert causes([appeared, joined, left]) == ["group_appeared", "member_joined", "member_left"]
    assert [name.split(" ")[0] for name in left["left"]] == ["leaver"]
    assert (left["failed"], left["members"], left["session_timeout_seconds"]) == ([], 1, 4.0)
    assert left["moved"] == [{"topic": seen.lab.name("topic"), "partitions": left["moved"][0]["partitions"]}]
    assert len(left["moved"][0]["partitions"]) >= 2
    generations = [event["generation"] for event in seen.of("leaves")]
    assert generations == sorted(set(generations))


def test_a_member_that_is_killed(seen: Seen) -> None:
    [failed] = [event for event in seen.of("fails") if event["cause"] == "member_failed"]
    assert [name.split(" ")[0] for name in failed["failed"]] == ["doomed"]
    assert 4.0 <= failed["silent_seconds"] < 8.0
    assert failed["uncommitted_seconds"] >= 4.0


def test_a_member_whose_handler_takes_too_long(seen: Seen) -> None:
    [stuck] = [event for event in seen.of("stuck") if "slow" in str(event["left"])]
    assert stuck["cause"] == "poll_interval_exceeded"
    assert (stuck["poll_interval_seconds"], len(stuck["failed"])) == (9.0, 1)


def test_another_subscription(seen: Seen) -> None:
    assert causes(seen.of("wants"))[:2] == ["group_appeared", "subscription_changed"]


def test_more_partitions(seen: Seen) -> None:
    assert causes(seen.of("grows"))[:2] == ["group_appeared", "partitions_added"]


def test_a_static_member_that_comes_back(seen: Seen) -> None:
    assert causes(seen.of("static"))[:2] == ["group_appeared", "static_member_returned"]


def test_a_group_of_the_new_protocol(seen: Seen) -> None:
    appeared, joined, failed, *_ = seen.of("new")
    assert causes([appeared, joined, failed]) == ["group_appeared", "member_joined", "member_failed"]
    assert 0 < joined["duration_seconds"] < 15
    assert (failed["session_timeout_seconds"], failed["failed"][0].split(" ")[0]) == (6.0, "doomed")
    assert failed["moved"][0]["topic"] == seen.lab.name("topic")


def test_a_rewind_and_no_rewind_by_what_was_aborted(seen: Seen) -> None:
    [event] = seen.of("rewound", "commit_rewound")
    assert (event["before"], event["after"], event["source"]) == ("40", "7", "offsets_topic")


def test_groups_that_are_deleted(seen: Seen) -> None:
    for group in ("leaves", "rewound"):
        assert [(e["before"], e["cause"]) for e in seen.of(group, "group_gone")] == [("Empty", "deleted")]
        assert seen.of(group, "offsets_gone") == []


def test_commits_are_counted(seen: Seen) -> None:
    _, count = seen.cadence[seen.lab.name("grows"), 0]
    assert 20 < count < 200  # five a second at most, for some 20 s


def test_reading_leaves_no_trace_on_the_cluster(seen: Seen) -> None:
    groups = seen.lab.admin.list_consumer_groups().result(10).valid
    assert "lagwise-reader" not in [group.group_id for group in groups]
