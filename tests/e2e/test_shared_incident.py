"""Real members of real groups on one topic are killed: one message about it reaches a real receiver.

Broker, collector, analysis, alerts, database and receiver are real. Made up is one thing: that the cluster has been
watched for a quarter of an hour, before which there are no shared incidents. For that the first sample is written once
more, as of an hour ago.
"""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from lagwise.config import load_config
from lagwise.domain.vocabulary import Status
from lagwise.tables.analysis import GROUP_STATUS
from lagwise.tables.raw import SAMPLES
from lagwise.tables.store import Lake
from lagwise_alerts.operate import queries
from tests.alerts.receiver import Receiver
from tests.e2e import consumers

if TYPE_CHECKING:
    from lagwise_sandbox.broker import KafkaBroker

pytestmark = [pytest.mark.e2e, pytest.mark.broker, pytest.mark.spark, pytest.mark.timeout(1200)]

#: What is awaited is usually there after seconds; the first round of the analysis takes minutes on a slow machine.
_DEADLINE_SECONDS = 600.0
CLUSTER, PREFIX = "shop", "e2e-shared"
ORDERS, PAYMENTS, CLICKS = (f"{PREFIX}.{name}" for name in ("orders", "payments", "clicks"))
#: That so many of ten groups get worse and are just the readers of a topic has a chance of 1 in 210.
KILLED = {f"{PREFIX}-orders-{number}": ORDERS for number in range(4)}
OTHERS = {f"{PREFIX}-other-{number}": topic for number, topic in enumerate([PAYMENTS, CLICKS] * 3)}
#: The rule of Lagwise, but its alert ends soon after the trouble has.
RULES = """
version: 1
rules:
  - {name: stopped, when: {statuses: [stopped]}, severity: page, keep_firing_for: 5s, only_if_seen_active: true}
"""


def until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + _DEADLINE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"still waiting for {what} after {_DEADLINE_SECONDS:.0f} s"
        time.sleep(0.2)


@contextmanager
def members(broker: "KafkaBroker", reads: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    """One member of each group, in one process."""
    command = [sys.executable, consumers.__file__, broker.bootstrap]
    command += [f"{group}={topic}" for group, topic in reads.items()]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline().strip() == consumers.READY
            yield process
        finally:
            process.kill()


@pytest.fixture
def topics(broker: "KafkaBroker") -> Iterator[None]:
    """Topics of two partitions, to which records are written all the time."""
    from confluent_kafka import Producer
    from confluent_kafka.admin import AdminClient, NewTopic

    names = (ORDERS, PAYMENTS, CLICKS)
    admin = AdminClient(broker.client_settings())
    for future in admin.create_topics([NewTopic(name, num_partitions=2) for name in names]).values():
        future.result()
    producer, stop = Producer(broker.client_settings()), threading.Event()

    def produce() -> None:
        while not stop.wait(0.05):
            for name in names:
                for partition in range(2):
                    producer.produce(name, value=b"a record", partition=partition)
            producer.poll(0)

    thread = threading.Thread(target=produce)
    thread.start()
    yield
    stop.set()
    thread.join()
    producer.flush(10)


class Watched:
    """Collector, analysis and alerts at work, and the receiver of their messages."""

    def __init__(self, broker: "KafkaBroker", folder: Path, receiver: Receiver) -> None:
        self.receiver = receiver
        self.folder = folder
        self.settings = folder / "lagwise.yaml"
        (folder / "rules.yaml").write_text(RULES)
        groups = {"include": [f"{PREFIX}-.*"]}
        tree = {
            "data": str(folder / "data"),
            "clusters": [
                {"name": CLUSTER, "bootstrap": broker.bootstrap, "interval_seconds": 1, "groups": groups},
            ],
            "analysis": {"interval_seconds": 2},
            "alerts": {
                "interval_seconds": 1,
                "rules_file": str(folder / "rules.yaml"),
                "channels": [{"name": "ops", "url": receiver.url}],
            },
        }
        self.settings.write_text(yaml.safe_dump(tree))
        self.lake = Lake(str(folder / "data" / "lake"))
        self._processes: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        kept = {
            k: v for k, v in os.environ.items() if not k.startswith("LAGWISE_") and not k.lower().endswith("_proxy")
        }
        for part in ("collect", "analyze", "alert"):
            command = [sys.executable, "-m", "lagwise", "--config", str(self.settings), part]
            with (self.folder / f"{part}.log").open("wb") as log:
                self._processes.append(subprocess.Popen(command, stdout=log, stderr=log, env=kept))

    def end(self) -> None:
        for process in self._processes:
            process.send_signal(signal.SIGTERM)
        for process in self._processes:
            process.wait(30)

    def are_all(self, groups: dict[str, str], status: Status) -> bool:
        rows = self.lake.read(GROUP_STATUS).to_pylist()
        return {row["group"] for row in rows if row["status"] == status} >= groups.keys()

    def watched_since_an_hour_ago(self) -> None:
        """The oldest sample once more, as if it had been taken an hour ago."""
        first = min(self.lake.read(SAMPLES).to_pylist(), key=lambda row: row["finished_at"])
        times = ("started_at", "commits_read_at", "watermarks_read_at", "finished_at", "written_at")
        earlier = {name: first[name] - timedelta(hours=1) for name in times}
        day = f"{earlier['started_at']:%Y-%m-%d}"
        row = {**first, **earlier, "day": day, "sample_id": f"{first['sample_id']}-before"}
        self.lake.append(SAMPLES, SAMPLES.from_rows([row]))

    def documents(self) -> list[dict[str, Any]]:
        return [got.document for got in self.receiver.wait_for(0)]

    def about(self, kind: str, event: str) -> list[dict[str, Any]]:
        return [one for one in self.documents() if (one["kind"], one["event"]) == (kind, event)]

    def open_alerts(self) -> dict[str, str | None]:
        """The shared incident of each group with an open alert, by group; None where it is in none."""
        engine = queries.connect(load_config(self.settings, environment={}))
        try:
            alerts = queries.open_alerts(engine)
            return {a.subject.group: a.shared_incident for a in alerts if a.subject.group is not None}
        finally:
            engine.dispose()


@pytest.fixture
def watched(broker: "KafkaBroker", tmp_path: Path) -> Iterator[Watched]:
    with Receiver() as receiver:
        its = Watched(broker, tmp_path, receiver)
        try:
            its.start()
            yield its
        finally:
            its.end()


def test_members_killed_on_one_topic_are_one_message_and_one_end(
    broker: "KafkaBroker", topics: None, watched: Watched
) -> None:
    with members(broker, OTHERS), members(broker, KILLED) as killed:
        until(lambda: watched.are_all(KILLED | OTHERS, Status.OK), "all groups to be ok")
        watched.watched_since_an_hour_ago()
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        until(lambda: bool(watched.about("shared_incident", "firing")), "the shared incident")
        (begin,) = watched.about("shared_incident", "firing")
        shared = begin["shared_incident"]
        assert shared["shared_by"] == [{"kind": "topic", "name": ORDERS, "cluster": CLUSTER}]
        assert sorted(one["group"] for one in shared["members"]) == sorted(KILLED)
        assert {one["status"] for one in shared["members"]} == {Status.STOPPED}
        assert begin["summary"] == (
            f"Shared incident on topic {ORDERS} on {CLUSTER}: 4 groups in trouble, the worst stopped"
        )
        assert re.search(r"of the \d groups that are well, none does", shared["sentence"])
        assert watched.open_alerts() == dict.fromkeys(KILLED, shared["id"])
        before = watched.documents()
        # Groups whose verdict came earlier than the evidence were notified by themselves. After it, none is.
        assert before[-1] == begin
        assert {(one["kind"], one["event"]) for one in before[:-1]} <= {("group", "firing")}

        with members(broker, KILLED):
            until(lambda: bool(watched.about("shared_incident", "resolved")), "the end of the shared incident")
            (end,) = watched.about("shared_incident", "resolved")
            assert (end["incident_id"], end["resolution"]) == (shared["id"], "recovered")
            assert watched.open_alerts() == {}
            after = watched.documents()[len(before) :]
            alone = {one["incident_id"] for one in before[:-1]}
            assert {one["incident_id"] for one in after if one["kind"] == "group"} == alone, "ends of what was notified"
            assert {one["event"] for one in after} == {"resolved"}
            assert {one["group"] for one in watched.documents() if one["kind"] == "group"} <= KILLED.keys()
