"""Samples over a network that is slow, silent, resetting or gone: each costs its own sample, and the next good one is
whole."""

import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from lagwise.tables.raw import COMMITS, WATERMARKS
from lagwise_collectors.kafka.source import KafkaSource
from lagwise_collectors.protocol import Snapshot
from lagwise_collectors.reader_process.isolated_source import IsolatedSource
from lagwise_sandbox.broker import KafkaBroker
from lagwise_sandbox.server_process import free_ports
from tests.collectors.kafka import BY_LIBRDKAFKA, Lab, eventually, rows
from tests.collectors.unreliable_network import UnreliableNetwork, Weather, unreliable_network

pytestmark = pytest.mark.broker

_TIMEOUT_SECONDS = 2.0
_PARTITIONS = 200


@pytest.fixture(scope="module")
def reached(
    broker: KafkaBroker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Lab, UnreliableNetwork, str]]:
    """A broker of these tests' own, the network to it, and its address beyond (the shared broker is asked for, so that
    what it skips for is skipped here too)."""
    near, far = free_ports(0), free_ports(0)
    extra = {
        "listeners": f"CLIENT://127.0.0.1:{near.client},CONTROLLER://127.0.0.1:{near.controller},"
        f"FAR://127.0.0.1:{far.client}",
        "advertised.listeners": f"CLIENT://127.0.0.1:{near.client},FAR://127.0.0.1:{far.controller}",
        "controller.quorum.voters": f"1@127.0.0.1:{near.controller}",
        "listener.security.protocol.map": "CLIENT:PLAINTEXT,CONTROLLER:PLAINTEXT,FAR:PLAINTEXT",
    }
    folder: Path = tmp_path_factory.mktemp("broker")
    with (
        KafkaBroker(near.client, data=folder, extra=extra) as own,
        unreliable_network(far.controller, far.client) as network,
    ):
        lab = Lab(own.client_settings())
        topic, group = lab.topic(partitions=_PARTITIONS), lab.name("reader")
        lab.produce(topic, dict.fromkeys(range(_PARTITIONS), 2))
        lab.commit(group, topic, dict.fromkeys(range(_PARTITIONS), 1))
        yield lab, network, f"127.0.0.1:{far.controller}"


@pytest.fixture(params=["own requests", "librdkafka"])
def source(request: pytest.FixtureRequest, reached: tuple[Lab, UnreliableNetwork, str]) -> Iterator[IsolatedSource]:
    lab, network, address = reached
    network.change(Weather.FINE)
    settings = BY_LIBRDKAFKA if request.param == "librdkafka" else {}
    cluster = lab.cluster(bootstrap=address, timeout_seconds=_TIMEOUT_SECONDS, **settings)
    made = IsolatedSource(cluster)
    yield made
    network.change(Weather.FINE)
    made.close()


def is_whole(snapshot: Snapshot) -> bool:
    commits, ends = rows(snapshot, COMMITS), rows(snapshot, WATERMARKS)
    return (
        snapshot.errors == {}
        and {row["committed"] for row in commits} == {1}
        and {row["high_watermark"] for row in ends} == {2}
        and len(commits) == len(ends) == _PARTITIONS
    )


def test_a_slow_network_costs_time_only(source: IsolatedSource, reached: tuple[Lab, UnreliableNetwork, str]) -> None:
    eventually(lambda: is_whole(source.collect()), seconds=60)
    reached[1].change(Weather.SLOW)
    assert is_whole(source.collect())


@pytest.mark.parametrize("weather", [Weather.SILENT, Weather.RESETTING, Weather.REFUSING])
def test_a_network_that_fails_costs_its_own_samples(
    source: IsolatedSource, reached: tuple[Lab, UnreliableNetwork, str], weather: Weather
) -> None:
    _, network, _ = reached
    eventually(lambda: is_whole(source.collect()), seconds=60)
    network.change(weather)
    began = time.monotonic()
    failed = source.collect()
    took = time.monotonic() - began
    assert failed.errors, "a sample that could not be read says so"
    # What was read is true; nothing is made up for what was not.
    assert {row["committed"] for row in rows(failed, COMMITS)} <= {1, None}
    assert {row["high_watermark"] for row in rows(failed, WATERMARKS)} <= {2, None}
    assert took < 10 * _TIMEOUT_SECONDS
    assert network.resets > 0 or weather is not Weather.RESETTING
    network.change(Weather.FINE)
    eventually(lambda: is_whole(source.collect()), seconds=60)


def test_it_fails_at_any_instant(reached: tuple[Lab, UnreliableNetwork, str]) -> None:
    """Resets after any number of bytes of an answer: what a sample says is true, or missing."""
    lab, network, address = reached
    cluster = lab.cluster(bootstrap=address, timeout_seconds=_TIMEOUT_SECONDS)
    try:
        with closing(KafkaSource(cluster)) as source:
            for length in (0, 1, 3, 4, 5, 8, 30, 120, 900, 2500):
                network.RESET_AFTER_BYTES = length
                network.change(Weather.RESETTING)
                failed = source.collect()
                assert {row["committed"] for row in rows(failed, COMMITS)} <= {1, None}, length
                assert {row["high_watermark"] for row in rows(failed, WATERMARKS)} <= {2, None}, length
                network.change(Weather.FINE)
                eventually(lambda: is_whole(source.collect()), seconds=60)
    finally:
        network.change(Weather.FINE)
        del network.RESET_AFTER_BYTES
