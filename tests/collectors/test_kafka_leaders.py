"""Leaders on a real cluster of two brokers, of which one fails and comes back."""

import base64
import uuid
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from confluent_kafka import ElectionType, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import NewTopic

from lagwise.domain.cluster_findings import cluster_findings
from lagwise.domain.vocabulary import EventKind
from lagwise.tables.raw import WATERMARKS
from lagwise_collectors.kafka.requests.group_members import KafkaGroup
from lagwise_collectors.kafka.requests.topic_columns import KafkaTopic
from lagwise_collectors.kafka.source import KafkaSource
from lagwise_collectors.kafka_protocol.client import ProtocolClient
from lagwise_collectors.kafka_protocol.committed_offsets import read_commits
from lagwise_collectors.kafka_protocol.topics import describe_topics
from lagwise_collectors.kafka_protocol.watermarks import read_watermarks
from lagwise_collectors.protocol import ErrorTally, Snapshot
from lagwise_collectors.sample_diff.compare_samples import PreviousSample, compare_samples
from lagwise_sandbox.broker import KafkaBroker
from lagwise_sandbox.server_process import free_ports
from tests.collectors.kafka import Lab, eventually, rows

pytestmark = [pytest.mark.broker, pytest.mark.thorough]

#: The controller notices at once that a broker is gone.
_QUICK = {"broker.session.timeout.ms": 3000, "broker.heartbeat.interval.ms": 500}


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[KafkaBroker, KafkaBroker]]:
    """Broker 1, which is the controller too, and broker 2, in a rack each."""
    tmp_path = tmp_path_factory.mktemp("brokers")
    own, other = free_ports(0), free_ports(0)
    voters = {"controller.quorum.voters": f"1@127.0.0.1:{own.controller}"}
    listeners = f"CLIENT://127.0.0.1:{own.client},CONTROLLER://127.0.0.1:{own.controller}"
    its = {"listeners": listeners, "broker.rack": "a"}
    one = KafkaBroker(own.client, data=tmp_path / "1", extra={**_QUICK, **voters, **its})
    with one:
        _format(tmp_path / "2", like=tmp_path / "1")
        its = {"process.roles": "broker", "listeners": f"CLIENT://127.0.0.1:{other.client}", "broker.rack": "b"}
        with KafkaBroker(other.client, data=tmp_path / "2", extra={**_QUICK, **voters, **its, "node.id": 2}) as two:
            yield one, two


def _format(folder: Path, *, like: Path) -> None:
    """Make the folder one of broker 2 in the cluster of another broker's folder."""
    lines = (like / "logs" / "meta.properties").read_text(encoding="utf-8").splitlines()
    cluster = next(line for line in lines if line.startswith("cluster.id="))
    directory = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    (folder / "logs").mkdir(parents=True)
    text = f"version=1\n{cluster}\nnode.id=2\ndirectory.id={directory}\n"
    (folder / "logs" / "meta.properties").write_text(text, encoding="utf-8")


def leaders(snapshot: Snapshot, topic: str) -> list[int | None]:
    its = {row["partition"]: row["leader"] for row in rows(snapshot, WATERMARKS) if row["topic"] == topic}
    return [its[number] for number in sorted(its)]


def test_a_broker_fails_and_comes_back(brokers: tuple[KafkaBroker, KafkaBroker]) -> None:
    one, two = brokers
    lab = Lab(one.client_settings())
    moves, stays = lab.name("moves"), lab.name("stays")
    assigned = {moves: [[2, 1], [2, 1], [1, 2]], stays: [[2], [1], [2]]}
    new = [NewTopic(name, len(replicas), replica_assignment=replicas) for name, replicas in assigned.items()]
    for created in lab.admin.create_topics(new).values():
        created.result(20)
    for topic in assigned:
        eventually(lambda topic=topic: lab.commit(lab.name("g"), topic, {1: 0}) is None)
    source, known = KafkaSource(lab.cluster()), PreviousSample()

    def events_until(of_moves: list[int | None], of_stays: list[int | None]) -> list[tuple[object, ...]]:
        """The events of the samples until these are the leaders."""
        nonlocal known
        found: list[tuple[object, ...]] = []

        def is_so() -> bool:
            nonlocal known
            snapshot = source.collect()
            compared = compare_samples(known, snapshot)
            known = compared.latest
            found.extend(
                (e["topic"], e["kind"], e["before"], e["after"], e["cause"]) for e in compared.rows.to_pylist()
            )
            return (leaders(snapshot, moves), leaders(snapshot, stays)) == (of_moves, of_stays)

        eventually(is_so)
        return found

    events_until([2, 2, 1], [2, 1, 2])
    assert events_until([2, 2, 1], [2, 1, 2]) == [], "a leader that stays is no event"
    two.kill()
    assert sorted(events_until([1, 1, 1], [None, 1, None])) == [
        (moves, EventKind.LEADERS_MOVED, "broker 2", "broker 1", "2 of 3 partitions"),
        (stays, EventKind.LEADERS_LOST, "broker 2", "no leader", "2 of 3 partitions"),
    ]
    two.start()
    assert events_until([1, 1, 1], [2, 1, 2]) == [
        (stays, EventKind.LEADERS_RESTORED, "no leader", "broker 2", "2 of 3 partitions"),
    ]
    eventually(lambda: all(len(row["isr"]) == len(row["replicas"]) for row in rows(source.collect(), WATERMARKS)))
    lab.admin.elect_leaders(ElectionType.PREFERRED, [TopicPartition(moves, number) for number in (0, 1)]).result(20)
    assert events_until([2, 2, 1], [2, 1, 2]) == [
        (moves, EventKind.LEADERS_MOVED, "broker 1", "broker 2", "2 of 3 partitions"),
    ]
    source.close()


def test_what_a_lost_broker_endangers(brokers: tuple[KafkaBroker, KafkaBroker]) -> None:
    one, two = brokers
    lab = Lab(one.client_settings())
    alone, both = lab.name("alone"), lab.name("both")
    new = [
        NewTopic(alone, 1, replica_assignment=[[2]]),
        NewTopic(both, 1, replica_assignment=[[1, 2]], config={"min.insync.replicas": "2"}),
    ]
    for created in lab.admin.create_topics(new).values():
        created.result(20)
    for topic in (alone, both):
        eventually(lambda topic=topic: lab.commit(lab.name("g"), topic, {0: 0}) is None)
    with closing(KafkaSource(lab.cluster())) as source:

        def found() -> dict[str, tuple[str, str]]:
            findings = cluster_findings(source.collect().header) or ()
            return {finding.kind.value: (finding.sentence, finding.remedy) for finding in findings}

        # The offsets topic is older than the second broker.
        eventually(lambda: found().keys() == {"offsets_unreplicated"})
        header = source.collect().header
        assert [(broker["name"], broker["rack"]) for broker in header["brokers"]] == [("1", "a"), ("2", "b")]
        two.kill()
        start_it = "Broker 2 is not in the cluster: start it."
        both_kinds = ("no_leader", "under_min_isr")
        # A sample may see the broker just before it has gone, and the partitions just after.
        lost = eventually(lambda: (f := found()) and all(f.get(k, ("", ""))[1] == start_it for k in both_kinds) and f)
        no_leader = f"1 partition has no leader ({alone}-0). Nobody can read or write there."
        assert lost["no_leader"] == (no_leader, start_it)
        assert lost["under_min_isr"] == (
            f"1 partition has fewer in-sync replicas than min.insync.replicas ({both}-0). "
            "Producers with acks=all are rejected.",
            start_it,
        )
        answers: list[KafkaError | None] = []
        producer = Producer({**lab.settings, "acks": "all", "retries": 0})
        producer.produce(both, b"rejected", partition=0, on_delivery=lambda error, _: answers.append(error))
        producer.flush(20)
        assert [answer and answer.code() for answer in answers] == [KafkaError.NOT_ENOUGH_REPLICAS], "as it says"
        two.start()
        eventually(lambda: found().keys() == {"offsets_unreplicated"})


def test_a_coordinator_that_has_moved_is_asked_where_it_is_now(brokers: tuple[KafkaBroker, KafkaBroker]) -> None:
    """The other broker is asked for each group, as after all coordinators have moved, and says so."""
    lab = Lab(brokers[0].client_settings())
    topic = lab.topic(partitions=1)
    names = [lab.name(f"g{number}") for number in range(10)]
    for number, name in enumerate(names):
        lab.commit(name, topic, {0: number})
    with closing(ProtocolClient(lab.cluster())) as client:

        def offsets() -> list[int]:
            errors = ErrorTally()
            commits = read_commits(client, [KafkaGroup(name) for name in names], errors, lambda: datetime.now(UTC))
            assert not errors
            return [int(offset) for offset in commits.numbers("committed", np.int64)]

        eventually(lambda: client.read_brokers(client.deadline()) == [1, 2])
        assert offsets() == list(range(10))
        before = dict(client._coordinators)
        client._coordinators.update({name: 3 - node for name, node in before.items()})
        assert offsets() == list(range(10))
        assert client._coordinators == before


def test_a_leader_that_has_moved_since_the_topic_was_described_costs_nothing(
    brokers: tuple[KafkaBroker, KafkaBroker],
) -> None:
    """Each partition's replica that is not the leader is asked, and says so; and a broker that is not there."""
    lab = Lab(brokers[0].client_settings())
    topic = lab.name("topic")
    new = NewTopic(topic, 4, replica_assignment=[[1, 2], [2, 1], [1, 2], [2, 1]])
    lab.admin.create_topics([new])[topic].result(20)
    eventually(lambda: lab.produce(topic, {number: number + 1 for number in range(4)}) is None)
    with closing(ProtocolClient(lab.cluster())) as client:

        def described() -> KafkaTopic | None:
            found = describe_topics(client, [topic], ErrorTally())[topic]
            return found if found.leader.tolist() == [1, 2, 1, 2] else None

        now = eventually(described)
        for leaders in ([2, 1, 2, 1], [1, 2, 2, 9]):
            before, errors = replace(now, leader=np.array(leaders, np.int32)), ErrorTally()
            marks = read_watermarks(client, {topic: before}, {}, errors, lambda: datetime.now(UTC))
            assert not errors
            assert marks.high_watermark.tolist() == marks.last_stable.tolist() == [1, 2, 3, 4]
            assert (marks.log_start.tolist(), marks.leader.tolist()) == ([0] * 4, [1, 2, 1, 2])
            assert marks.read_at is not None
