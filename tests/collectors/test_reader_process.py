"""The reader process: it may crash, hang, be abandoned, or lose its parent. Real processes, real signals."""

import fcntl
import os
import signal
import socket
import subprocess
import sys
import termios
import threading
from array import array
from collections.abc import Callable, Iterator

import psutil
import pytest

from lagwise.config import Cluster
from lagwise_collectors.protocol import Snapshot
from lagwise_collectors.reader_process.isolated_source import IsolatedSource
from lagwise_collectors.reader_process.kill_on_hang import ReaderAbandoned
from tests.collectors.kafka import eventually
from tests.stopped import go_on, stop

pytestmark = pytest.mark.process


@pytest.fixture
def unreachable() -> Iterator[Cluster]:
    """A cluster of which nothing is known but that its address refuses connections: good enough to ask a reader."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))  # bound but not listening
        yield Cluster(bootstrap=f"127.0.0.1:{bound.getsockname()[1]}", timeout_seconds=1.0)


@pytest.fixture
def make(unreachable: Cluster) -> Iterator[Callable[[], IsolatedSource]]:
    made: list[IsolatedSource] = []

    def make() -> IsolatedSource:
        made.append(IsolatedSource(unreachable))
        return made[-1]

    yield make
    for source in made:
        source.close()


def gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def started(source: IsolatedSource) -> int:
    """The reader's process id, after a first sample."""
    assert source.collect().errors == {"unreachable": 1}
    assert source.pid is not None
    return source.pid


def asked_in_background(source: IsolatedSource) -> tuple[threading.Thread, list[Snapshot | BaseException]]:
    """Ask a stopped reader for a sample, and wait until the request is in its pipe."""
    outcome: list[Snapshot | BaseException] = []

    def collect() -> None:
        try:
            outcome.append(source.collect())
        except BaseException as error:
            outcome.append(error)

    assert source._process is not None
    assert source._process.stdin is not None
    pipe, unread_bytes = source._process.stdin.fileno(), array("i", [0])
    thread = threading.Thread(target=collect)
    thread.start()
    eventually(lambda: fcntl.ioctl(pipe, termios.FIONREAD, unread_bytes) == 0 and unread_bytes[0])
    return thread, outcome


def test_one_reader_serves_sample_after_sample(make: Callable[[], IsolatedSource]) -> None:
    source = make()
    pid = started(source)
    assert source.collect().errors == {"unreachable": 1}
    assert source.pid == pid
    source.close()
    assert gone(pid)
    source.close()


def test_a_reader_that_died_between_samples_is_replaced(make: Callable[[], IsolatedSource]) -> None:
    source = make()
    pid = started(source)
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: source.pid is None)
    assert source.collect().errors == {"unreachable": 1}
    assert source.pid not in (None, pid)


def test_a_crash_in_a_sample_is_counted_and_the_sample_tried_again(make: Callable[[], IsolatedSource]) -> None:
    source = make()
    pid = started(source)
    stop(pid)
    thread, outcome = asked_in_background(source)
    os.kill(pid, signal.SIGSEGV)  # delivered when it goes on
    go_on(pid)
    thread.join(60)
    [snapshot] = outcome
    assert isinstance(snapshot, Snapshot)
    assert snapshot.errors == {"unreachable": 1, "reader_crashed": 1}
    [crash] = [e["example"] for e in snapshot.header["errors"] if e["kind"] == "reader_crashed"]
    assert "SIGSEGV" in crash


def test_a_reader_that_cannot_even_start_is_an_error_of_the_sample(
    make: Callable[[], IsolatedSource], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/nonexistent/python")
    source = make()
    try:
        snapshot = source.collect()
    finally:
        monkeypatch.undo()
    assert snapshot.errors == {"reader_crashed": 2}
    assert source.collect().errors == {"unreachable": 1}


def test_a_reader_that_hangs_is_ended_and_replaced(make: Callable[[], IsolatedSource]) -> None:
    source = make()
    pid = started(source)
    source._hang_seconds = 2.0  # only now: to start may take longer than that on a busy machine
    stop(pid)
    snapshot = source.collect()
    assert snapshot.errors == {"reader_hung": 1}
    assert "2 s" in snapshot.header["errors"][0]["example"]
    assert gone(pid)
    source._hang_seconds = 60.0
    assert source.collect().errors == {"unreachable": 1}


def test_whoever_waits_for_an_abandoned_reader_is_released(make: Callable[[], IsolatedSource]) -> None:
    source = make()
    pid = started(source)
    stop(pid)
    thread, outcome = asked_in_background(source)
    source.abandon()
    thread.join(30)
    assert [type(error) for error in outcome] == [ReaderAbandoned]
    eventually(lambda: gone(pid))
    with pytest.raises(ReaderAbandoned):
        source.collect()


def test_no_reader_outlives_its_parent(unreachable: Cluster) -> None:
    program = (
        "from lagwise.config import Cluster\n"
        "from lagwise_collectors.reader_process.isolated_source import IsolatedSource\n"
        f"source = IsolatedSource(Cluster(bootstrap={unreachable.bootstrap!r}, timeout_seconds=1))\n"
        "source.collect()\n"
        "print(source.pid, flush=True)\n"
        "input()\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, text=True
    ) as parent:
        assert parent.stdout is not None
        reader = int(parent.stdout.readline())
        assert not gone(reader)
        stop(reader)  # so that it could not end by itself
        parent.kill()
    eventually(lambda: gone(reader))


def test_a_ctrl_c_in_the_terminal_is_not_for_the_reader(make: Callable[[], IsolatedSource]) -> None:
    source = make()
    pid = started(source)
    os.kill(pid, signal.SIGINT)
    assert source.collect().errors == {"unreachable": 1}
    assert source.pid == pid


def test_the_reader_loads_neither_the_lake_nor_duckdb(unreachable: Cluster) -> None:
    """Memory: a reader is started for each cluster."""
    program = (
        "import sys, lagwise_collectors.reader_process.child_main, lagwise_collectors.kafka.source\n"
        "print([name for name in ('duckdb', 'deltalake', 'sqlalchemy', 'pyspark') if name in sys.modules])"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    ran = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"
