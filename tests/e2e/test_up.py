"""`lagwise up` against a real broker: it watches, heals itself, ends in time, and leaves nothing behind."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest
import yaml
from mcp.client.streamable_http import streamable_http_client

from lagwise.tables import ALL_TABLES
from lagwise.tables.analysis import GROUP_STATUS
from lagwise.tables.raw import SAMPLES
from lagwise.tables.store import Lake
from lagwise_app.supervisor.effective_settings import free_port
from tests.app.test_mcp import asked, told

if TYPE_CHECKING:
    from lagwise_sandbox.broker import KafkaBroker

pytestmark = [pytest.mark.e2e, pytest.mark.broker, pytest.mark.spark, pytest.mark.timeout(1200)]

#: What is awaited is usually there after seconds; the first round of the analysis takes minutes on a slow machine.
_DEADLINE_SECONDS = 600.0
GROUP, TOPIC = "e2e-up", "e2e-up-topic"


def until(condition: Callable[[], bool], what: str, seconds: float = _DEADLINE_SECONDS) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"still waiting for {what} after {seconds:.0f} s"
        time.sleep(0.2)


def gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


@pytest.fixture(scope="module")
def backlog(broker: "KafkaBroker") -> int:
    """Records that a group has not read: it committed 40 of 100. Returns how many are left."""
    from confluent_kafka import Consumer, Producer, TopicPartition
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient(broker.client_settings())
    admin.create_topics([NewTopic(TOPIC, num_partitions=1)])[TOPIC].result()
    producer = Producer(broker.client_settings())
    for number in range(100):
        producer.produce(TOPIC, value=str(number), partition=0)
    producer.flush()
    consumer = Consumer(broker.client_settings() | {"group.id": GROUP})
    consumer.commit(offsets=[TopicPartition(TOPIC, 0, 40)], asynchronous=False)
    consumer.close()
    return 60


class Up:
    """A running `lagwise up` without browser, its output, and its processes."""

    def __init__(self, broker: "KafkaBroker", folder: Path) -> None:
        self.data = folder / "data"
        self.settings = folder / "lagwise.yaml"
        port = free_port()
        self.assistants = f"http://127.0.0.1:{port}/mcp"
        settings = {
            "data": str(self.data),
            "clusters": [{"name": "shop", "bootstrap": broker.bootstrap, "interval_seconds": 1}],
            "analysis": {"interval_seconds": 2},
            "dashboard": {"port": 0},
            "mcp": {"port": port},
        }
        self.settings.write_text(yaml.safe_dump(settings))
        self.output = (folder / "output").open("w+")
        self.process = self.start()

    def start(self) -> subprocess.Popen[str]:
        return subprocess.Popen(self.command("up"), stdout=self.output, stderr=self.output, text=True, env=_env())

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "lagwise", "--config", str(self.settings), *arguments]

    def ask(self, *arguments: str) -> Any:
        ran = subprocess.run(self.command(*arguments), capture_output=True, text=True, env=_env(), check=False)
        not_yet = r"no group .* has been analysed|no analysis has written to it yet"
        assert ran.returncode == 0 or re.search(not_yet, ran.stderr), ran.stderr
        return json.loads(ran.stdout) if ran.returncode == 0 else None

    def said(self) -> str:
        self.output.flush()
        return Path(self.output.name).read_text()

    def family(self) -> list[psutil.Process]:
        return psutil.Process(self.process.pid).children(recursive=True)

    def commands(self) -> dict[psutil.Process, list[str]]:
        """What each of the family runs; what ends just now runs nothing."""
        found = {}
        for process in self.family():
            with contextlib.suppress(psutil.NoSuchProcess):
                found[process] = process.cmdline()
        return found

    def log(self, part: str) -> str:
        return (self.data / "logs" / f"{part}.log").read_text()

    def part(self, verb: str) -> psutil.Process | None:
        """The process of a part, while it runs and is what it will be."""
        found = [process for process, command in self.commands().items() if command[-3:] == ["-m", "lagwise", verb]]
        return found[0] if found else None

    def judged(self) -> bool:
        """Whether the analysis has judged the group, looked up here: commands would take the CPU that it needs."""
        return GROUP in Lake(str(self.data / "lake")).read(GROUP_STATUS)["group"].to_pylist()

    def await_samples(self, what: str) -> None:
        """Until the collector has written more samples, and ``lagwise status`` knows of them."""
        before, lake = self.newest_sample(), Lake(str(self.data / "lake"))
        count = lake.read(SAMPLES).num_rows
        until(lambda: lake.read(SAMPLES).num_rows > count, what)
        assert self.newest_sample() > before

    def newest_sample(self) -> str:
        taken_at: str = self.ask("status", "--json")["freshness"]["clusters"][0]["sampled_at"]
        return taken_at

    def lag(self) -> int | None:
        answer = self.ask("lag", GROUP, "--json")
        return None if answer is None else answer["partitions"][0]["lag"]


def _env() -> dict[str, str]:
    return {k: v for k, v in os.environ.items() if not k.startswith("LAGWISE_")} | {"PYTHONUNBUFFERED": "1"}


@pytest.fixture
def up(broker: "KafkaBroker", tmp_path: Path) -> Iterator[Up]:
    running = Up(broker, tmp_path)
    yield running
    if running.process.poll() is None:
        running.process.kill()
        running.process.wait()
    running.output.close()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process that its parent died")
def test_it_heals_itself_leaves_nothing_behind_when_killed_and_ends_in_time(up: Up, backlog: int) -> None:
    until(up.judged, "the first verdict")
    assert up.lag() == backlog, up.said()

    until(lambda: "mcp: running: answers " in up.said(), "the server of assistants")
    (trouble,) = asked(streamable_http_client(up.assistants), ("groups_in_trouble", {"search": GROUP}))
    assert sum(told(trouble)["groups_by_status"].values()) == 1
    assert subprocess.run(up.command("health", "mcp"), capture_output=True, env=_env(), check=False).returncode == 0

    refused = subprocess.run(up.command("up"), capture_output=True, text=True, env=_env(), check=False)
    assert refused.returncode == 1
    assert f"Lagwise already runs on {up.data}: process {up.process.pid} on " in refused.stderr
    assert refused.stderr.count("\n") == 1

    names = [" ".join(command) for command in up.commands().values()]
    for part in ("lagwise collect", "lagwise analyze", "lagwise alert", "lagwise mcp --http", "lagwise dashboard"):
        assert any(part in name for name in names), part
    assert any("java" in name for name in names)

    (collector,) = [process for process, command in up.commands().items() if command[-1:] == ["collect"]]
    collector.kill()
    until(lambda: "collector: waiting to restart in 1 s: ended by SIGKILL" in up.said(), "the death to be told")
    until(lambda: "collector: running, restarted 1×" in up.said(), "the restart")
    up.await_samples("new samples")

    family = up.family()
    assert any("java" in process.name() for process in family)
    up.process.kill()
    up.process.wait()
    until(lambda: all(gone(process.pid) for process in family), "every process to be gone", seconds=20)

    up.process = up.start()
    up.await_samples("samples of the next run")
    assert up.lag() == backlog

    family = up.family()
    began = time.monotonic()
    up.process.send_signal(signal.SIGTERM)
    assert up.process.wait(15) == 0, up.said()
    assert time.monotonic() - began < 10
    assert [process for process in family if not gone(process.pid)] == []
    lake = Lake(str(up.data / "lake"))
    assert all(lake.open(table) is not None for table in ALL_TABLES)
    assert "Traceback" not in up.said()


@contextlib.contextmanager
def full_disk(*processes: psutil.Process) -> Iterator[None]:
    """No process of these, nor what they start meanwhile, can write to a file: through open descriptors neither."""
    _, hard = psutil.Process().rlimit(psutil.RLIMIT_FSIZE)
    for process in processes:
        process.rlimit(psutil.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        for process in processes:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.rlimit(psutil.RLIMIT_FSIZE, (hard, hard))


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux sets the limits of another process")
def test_a_full_disk_ends_no_process_and_is_logged_once(up: Up, backlog: int) -> None:
    until(up.judged, "the first verdict")
    assert up.lag() == backlog, up.said()
    lake = Lake(str(up.data / "lake"))
    pids = {verb: part.pid for verb in ("collect", "analyze", "alert") if (part := up.part(verb))}
    before = lake.read(SAMPLES).num_rows
    lines = {
        "collector": ("health/collector.json: File too large", "samples are kept in memory and delivered later"),
        "analysis": ("health/analysis.json: File too large", "the round failed and is tried again"),
        "alerts": ("health/alerts.json: File too large", "nothing is decided until it works"),
    }
    with full_disk(*up.family()):
        for part, said in lines.items():
            for line in said:
                until(lambda part=part, line=line: line in up.log(part), f"{part} to say: {line}")  # type: ignore[misc]  # defaults bind the loop variables
    until(lambda: "rounds succeed again" in up.log("analysis"), "the analysis to go on")
    until(lambda: "the database works again" in up.log("alerts"), "the alerts to go on")
    until(lambda: lake.read(SAMPLES).num_rows > before + 2, "samples")
    for part, said in lines.items():
        log = up.log(part)
        assert [log.count(line) for line in said] == [1, 1], log
        assert log.count(f"health/{part}.json can be written again") == 1, log
        assert "panicked" not in log
    assert {verb: part.pid for verb, part in ((verb, up.part(verb)) for verb in pids) if part} == pids

    # A part that ends meanwhile is started again, and the log has what it says when there is room.
    myself, collector = psutil.Process(up.process.pid), up.part("collect")
    assert collector is not None
    with full_disk(myself):
        collector.kill()
        collector.wait()  # it is a moment until the process that was killed is gone
        until(lambda: (part := up.part("collect")) is not None and part.pid != collector.pid, "the collector's restart")
        restarted = up.part("collect")
        assert restarted is not None
        until(lambda: bool(restarted.net_connections()), "it to reach the broker: it has logged something by then")
    with full_disk(restarted, *restarted.children()):
        until(lambda: up.log("collector").count("health/collector.json: File too large") == 2, "its log")
        until(lambda: up.log("collector").count("samples are kept in memory and delivered later") == 2, "its log")
    until(lambda: up.log("collector").count("the lake can be written again") == 2, "its samples")
    said = up.said()
    assert said.count("logs cannot be written (") == said.count("logs can be written again") == 1, said
    assert up.process.poll() is None
    up.process.send_signal(signal.SIGINT)
    assert up.process.wait(15) == 0, up.said()
