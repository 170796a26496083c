"""A real broker: it comes up, it serves, and nothing of it stays."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from lagwise.platform.errors import LagwiseError
from lagwise.platform.java import find_java
from lagwise_sandbox import server_properties
from lagwise_sandbox.broker import KafkaBroker, main

pytestmark = pytest.mark.broker


@pytest.fixture(scope="module", autouse=True)
def _java() -> None:
    try:
        find_java()
    except LagwiseError as missing:
        pytest.skip(str(missing))


def _await(condition: Callable[[], bool], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def _gone(pid: int) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    return True


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _round_trip(settings: dict[str, str], topic: str, group: str) -> list[bytes]:
    """Create a topic, write three records, read them as a group, commit."""
    admin = AdminClient(settings)
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(20)
    producer = Producer(settings)
    for value in (b"a", b"b", b"c"):
        producer.produce(topic, value)
    assert producer.flush(20) == 0
    consumer = Consumer({**settings, "group.id": group, "auto.offset.reset": "earliest", "enable.auto.commit": False})
    consumer.subscribe([topic])
    read: list[bytes] = []
    try:
        assert _await(lambda: len(_take(consumer, read)) == 3, 30)
        consumer.commit(asynchronous=False)
    finally:
        consumer.close()
    return read


def _take(consumer: Consumer, read: list[bytes]) -> list[bytes]:
    message = consumer.poll(0.5)
    if message is not None and message.error() is None:
        read.append(message.value())
    return read


def test_serves_and_leaves_no_process_and_no_data() -> None:
    with KafkaBroker() as broker:
        pid, data = broker.pid, broker.log_file.parent
        assert pid is not None
        assert broker.bootstrap.startswith("127.0.0.1:")
        # Warm: the first question about a group needs no patience.
        assert "__consumer_offsets" in AdminClient(broker.client_settings()).list_topics(timeout=10).topics
        assert _round_trip(broker.client_settings(), "orders", "billing") == [b"a", b"b", b"c"]
        broker.stop()
        broker.stop()
        assert broker.pid is None
    assert _gone(pid)
    assert not data.exists()


def test_the_given_port_is_used_and_a_kill_loses_nothing(tmp_path: Path) -> None:
    port = _free_port()
    broker = KafkaBroker(port, data=tmp_path / "data")
    try:
        broker.start()
        assert broker.bootstrap == f"127.0.0.1:{port}"
        _round_trip(broker.client_settings(), "payments", "fraud-check")
        broker.kill()
        assert not broker.alive()
        broker.start()
        assert broker.bootstrap == f"127.0.0.1:{port}"
        assert "payments" in AdminClient(broker.client_settings()).list_topics(timeout=10).topics
    finally:
        broker.stop()
    assert (tmp_path / "data" / "logs").is_dir()


def test_a_broker_that_cannot_start_says_why_and_where_its_log_is(tmp_path: Path) -> None:
    broker = KafkaBroker(data=tmp_path, extra={"num.io.threads": 0})
    with pytest.raises(LagwiseError, match=r"num\.io\.threads") as refused:
        broker.start()
    assert str(tmp_path / "broker.log") in str(refused.value)
    assert "\n" not in str(refused.value)
    assert not broker.alive()


def test_a_port_that_is_taken_is_named() -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        broker = KafkaBroker(port)
        try:
            with pytest.raises(LagwiseError, match=f"port {port} on 127.0.0.1 .*choose another"):
                broker.start()
        finally:
            broker.stop()


def test_it_outlives_the_thread_that_started_it() -> None:
    broker = KafkaBroker()
    try:
        starter = threading.Thread(target=broker.start)
        starter.start()
        starter.join(60)
        assert not starter.is_alive()
        assert AdminClient(broker.client_settings()).list_topics(timeout=10).brokers
        assert broker.alive()
    finally:
        broker.stop()


def test_secured_refuses_a_wrong_password_and_what_is_not_granted(secured_broker: KafkaBroker) -> None:
    admin = AdminClient(secured_broker.client_settings())
    admin.create_topics([NewTopic("guarded", 1, 1)])["guarded"].result(20)
    assert _await(lambda: "guarded" in admin.list_topics(timeout=10).topics, 10)

    monitor = AdminClient(secured_broker.client_settings(server_properties.MONITOR))
    assert "guarded" not in monitor.list_topics(timeout=10).topics
    with pytest.raises(KafkaException) as refused:
        monitor.create_topics([NewTopic("mine", 1, 1)])["mine"].result(20)
    assert refused.value.args[0].code() == KafkaError.TOPIC_AUTHORIZATION_FAILED

    errors: list[KafkaError] = []
    wrong = {
        "bootstrap.servers": secured_broker.bootstrap,
        **server_properties.librdkafka_login(server_properties.MONITOR, "wrong"),
    }
    stranger = AdminClient({**wrong, "log_level": 0, "error_cb": errors.append})
    with pytest.raises(KafkaException):
        stranger.list_topics(timeout=2)
    assert _await(
        lambda: stranger.poll(0.1) is not None and any(e.code() == KafkaError._AUTHENTICATION for e in errors), 10
    )


@pytest.fixture
def command() -> Iterator[subprocess.Popen[str]]:
    """``python -m lagwise_sandbox.broker`` as a process."""
    with subprocess.Popen(
        [sys.executable, "-m", "lagwise_sandbox.broker"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
    ) as process:
        yield process
        process.kill()


def _ready(command: subprocess.Popen[str]) -> tuple[str, int, Path]:
    """Its address, the id of its JVM and where that keeps its data, once it says that it is ready."""
    assert command.stdout is not None
    line = command.stdout.readline()
    assert line.startswith("BOOTSTRAP 127.0.0.1:")
    (jvm,) = psutil.Process(command.pid).children()
    return line.split()[1], jvm.pid, Path(jvm.cmdline()[-1]).parent


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_command_prints_its_address_and_ends_cleanly_on_a_signal(
    command: subprocess.Popen[str], number: signal.Signals
) -> None:
    bootstrap, jvm, data = _ready(command)
    assert AdminClient({"bootstrap.servers": bootstrap, "log_level": 0}).list_topics(timeout=10).brokers
    command.send_signal(number)
    assert command.wait(10) == 0
    assert _gone(jvm)
    assert not data.exists()


def test_a_signal_during_the_start_ends_it_too(command: subprocess.Popen[str]) -> None:
    assert command.stderr is not None
    assert "starting" in command.stderr.readline()
    assert _await(lambda: len(psutil.Process(command.pid).children()) > 0, 10)
    command.send_signal(signal.SIGTERM)
    assert command.wait(10) == 0
    assert command.stdout is not None
    assert command.stdout.read() == ""


def test_a_killed_command_takes_its_broker_with_it(command: subprocess.Popen[str]) -> None:
    _, jvm, data = _ready(command)
    command.kill()
    assert _await(lambda: _gone(jvm), 5)
    # Nobody was left to remove it.
    assert data.name.startswith("lagwise-broker-")
    subprocess.run(["rm", "-r", str(data)], check=True)


def test_the_command_refuses_a_taken_port_with_one_line(capfd: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        with pytest.raises(LagwiseError, match="choose another"):
            main(holder.getsockname()[1])
    assert "BOOTSTRAP" not in capfd.readouterr().out
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
