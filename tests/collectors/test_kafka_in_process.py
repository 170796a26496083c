"""A cluster that is read in the collector's own process: when it is, and when a reader process takes over."""

import dataclasses
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psutil
import pytest
from confluent_kafka import Producer

from lagwise.config import Cluster
from lagwise.tables.raw import COMMITS
from lagwise_collectors import kafka_in_process
from lagwise_collectors.kafka_in_process import KafkaInProcess
from lagwise_collectors.kafka_protocol import watermarks
from lagwise_collectors.protocol import Snapshot
from lagwise_collectors.reader_process.kill_on_hang import ReaderAbandoned
from lagwise_sandbox.broker import KafkaBroker
from tests.collectors.kafka import BY_LIBRDKAFKA, Lab, eventually, rows
from tests.stopped import go_on, stop

pytestmark = pytest.mark.broker


@pytest.fixture
def lab(broker: KafkaBroker) -> Lab:
    lab = Lab(broker.client_settings())
    lab.commit(lab.name("reader"), lab.topic(), {0: 0, 1: 0})
    return lab


@pytest.fixture
def opened() -> Iterator[list[KafkaInProcess]]:
    """Sources that are closed in the end."""
    sources: list[KafkaInProcess] = []
    yield sources
    for source in sources:
        source.close()


def made(opened: list[KafkaInProcess], cluster: Cluster) -> KafkaInProcess:
    opened.append(KafkaInProcess(cluster))
    return opened[-1]


def complete(snapshot: Snapshot) -> bool:
    header = snapshot.header
    counts = (header["groups"], header["group_partitions"], header["partitions"])
    return snapshot.errors == {} and counts == (1, 2, 3)


def test_nothing_but_our_own_requests_takes_the_sample(lab: Lab, opened: list[KafkaInProcess]) -> None:
    threads = threading.active_count()
    native_threads = psutil.Process().num_threads()
    source = made(opened, lab.cluster())
    for _ in range(3):
        snapshot = source.collect()
        assert complete(snapshot)
        assert snapshot.header["cpu_seconds"] < snapshot.header["wall_seconds"]
    assert source.pids == []
    assert (threading.active_count(), psutil.Process().num_threads()) == (threads, native_threads)


def test_what_only_librdkafka_knows_is_read_in_a_reader_process(lab: Lab, opened: list[KafkaInProcess]) -> None:
    source = made(opened, lab.cluster(**BY_LIBRDKAFKA))
    assert complete(source.collect())
    [pid] = source.pids
    assert complete(source.collect())
    assert source.pids == [pid]
    source.close()
    assert source.pids == []


def test_a_request_that_is_refused_moves_the_cluster_to_a_reader_process_for_a_while(
    lab: Lab, opened: list[KafkaInProcess], monkeypatch: pytest.MonkeyPatch
) -> None:
    source = made(opened, lab.cluster())
    assert complete(source.collect())
    with monkeypatch.context() as patched:
        api = watermarks.LIST_OFFSETS
        patched.setattr(watermarks, "LIST_OFFSETS", dataclasses.replace(api, lowest=98, highest=99))
        assert complete(source.collect())
    assert len(source.pids) == 1
    assert complete(source.collect())
    assert len(source.pids) == 1, "not tried again in every sample"
    source._try_again_at = 0.0
    assert complete(source.collect())
    assert source.pids == []


def test_a_cluster_that_was_down_at_the_start_comes_back_to_this_process(
    lab: Lab, opened: list[KafkaInProcess], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka_in_process, "TRY_AGAIN_SECONDS", 0.0)
    source = made(opened, lab.cluster(bootstrap="127.0.0.1:9", timeout_seconds=1.0))
    assert source.collect().errors.keys() == {"unreachable"}
    assert len(source.pids) == 1
    source._source._cluster = lab.cluster()  # as after the broker has started
    assert complete(source.collect())
    assert source.pids == []


def test_next_records_are_looked_up_in_a_reader_process_that_starts_when_there_are_some(
    lab: Lab, opened: list[KafkaInProcess]
) -> None:
    """The commit of an empty transaction leaves a marker, which no consumer ever reads."""
    topic = lab.topic("marked", 1)
    producer = Producer({**lab.settings, "transactional.id": lab.name("tx")})
    producer.init_transactions(20)
    producer.begin_transaction()
    producer.produce(topic, b"x", partition=0)
    producer.commit_transaction(20)
    source = made(opened, lab.cluster())
    assert complete(source.collect())
    lab.commit(lab.name("transactional"), topic, {0: 1})

    def next_record() -> int | None:
        found = [row["next_record"] for row in rows(source.collect(), COMMITS) if row["topic"] == topic]
        return found[0] if found else None

    assert eventually(next_record) == 2
    [pid] = source.pids
    psutil.Process(pid).kill()
    psutil.wait_procs([psutil.Process(pid)] if psutil.pid_exists(pid) else [], timeout=30)
    assert next_record() == 2, "what is known stays known"


def test_a_sample_under_way_ends_when_the_source_is_abandoned(broker: KafkaBroker, tmp_path: Path) -> None:
    """Its broker hangs. (The shared one is asked for, so that what it skips for is skipped here too.)"""
    outcome: list[BaseException] = []

    def collect() -> None:
        try:
            source.collect()
        except BaseException as error:
            outcome.append(error)

    with KafkaBroker(data=tmp_path / "broker") as own:
        lab = Lab(own.client_settings())
        lab.commit(lab.name("reader"), lab.topic(), {0: 0, 1: 0})
        with closing(KafkaInProcess(lab.cluster(timeout_seconds=120.0))) as source:
            assert complete(source.collect())
            assert source._source._session is not None
            client = source._source._session.own.client
            assert own.pid is not None
            assert client is not None
            before = client._sample_ends_at
            stop(own.pid)
            try:
                thread = threading.Thread(target=collect)
                thread.start()
                eventually(lambda: client._sample_ends_at > before)
                source.abandon()
                thread.join(30)
                assert not thread.is_alive()
            finally:
                go_on(own.pid)
    assert [type(error) for error in outcome] == [ReaderAbandoned]
