"""Rounds of the whole collector: into a real lake, for as long as it runs, one cluster not minding the other."""

import json
import logging
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import psutil
import pytest

from lagwise.config import Cluster, Config
from lagwise.domain.vocabulary import EventKind
from lagwise.platform import health
from lagwise.tables.raw import COMMITS, EVENTS, RAW_TABLES, SAMPLES
from lagwise.tables.store import Lake
from lagwise_collectors.run import collect_forever, collect_once
from lagwise_sandbox.broker import KafkaBroker
from tests.collectors.kafka import BY_LIBRDKAFKA, Lab, eventually
from tests.stopped import stop

pytestmark = pytest.mark.process


@pytest.fixture
def nobody() -> Iterator[Cluster]:
    """A cluster at whose address nothing listens."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield Cluster(name="nobody", bootstrap=f"127.0.0.1:{bound.getsockname()[1]}", timeout_seconds=1.0)


def config_of(tmp_path: Path, *clusters: Cluster) -> Config:
    return Config(data=str(tmp_path / "data"), clusters=clusters)


def samples_of(config: Config) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = Lake(config.lake_uri).read(SAMPLES).sort_by("started_at").to_pylist()
    return found


class Running:
    """collect_forever in a thread."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._stop = threading.Event()
        self._thread = threading.Thread(target=collect_forever, args=(config, self._stop, config.state))

    def __enter__(self) -> "Running":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(30)
        assert not self._thread.is_alive()

    def line(self) -> str:
        beat = health.read(self._config.state).get(health.COLLECTOR)
        return beat.line if beat else ""


def _command_of(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:  # it has ended, perhaps one of another test's
        return ""


def readers() -> list[psutil.Process]:
    children = psutil.Process().children(recursive=True)
    return [p for p in children if "lagwise_collectors.reader_process.child_main" in _command_of(p)]


@pytest.mark.broker
def test_one_round_reports_its_cost(broker: KafkaBroker, tmp_path: Path, nobody: Cluster) -> None:
    lab = Lab(broker.client_settings())
    topic = lab.topic()
    lab.commit(lab.name("reader"), topic, {0: 0, 1: 0})
    config = config_of(tmp_path, nobody, lab.cluster(name="shop"))
    lost, read = collect_once(config)
    assert (lost.cluster, lost.errors, lost.rows) == ("nobody", {"unreachable": 1}, {"samples": 1})
    assert (read.cluster, read.errors, read.waiting, read.trouble) == ("shop", {}, 0, None)
    assert (read.groups, read.group_partitions, read.partitions) == (1, 2, 3)
    assert read.rows == {"groups": 1, "commits": 2, "watermarks": 3, "topics": 1, "samples": 1}
    assert read.wall_seconds >= read.read_seconds > 0
    assert read.cpu_seconds > 0
    assert json.loads(json.dumps(asdict(read)))["cluster"] == "shop"
    assert {row["cluster"] for row in samples_of(config)} == {"nobody", "shop"}
    assert readers() == []


@pytest.mark.broker
def test_a_round_before_there_is_a_lake_creates_every_raw_table(broker: KafkaBroker, tmp_path: Path) -> None:
    config = config_of(tmp_path, Lab(broker.client_settings()).cluster())
    collect_once(config)
    lake = Lake(config.lake_uri)
    assert all(lake.open(table) is not None for table in RAW_TABLES)


@pytest.mark.broker
def test_rounds_go_on_at_their_interval_and_show_what_happened_between(broker: KafkaBroker, tmp_path: Path) -> None:
    lab = Lab(broker.client_settings())
    topic, group = lab.topic(), lab.name("reader")
    lab.produce(topic, {0: 9})
    lab.commit(group, topic, {0: 9})
    config = config_of(tmp_path, lab.cluster(name="shop", interval_seconds=1.0))
    lake = Lake(config.lake_uri)
    with Running(config) as running:
        line = eventually(running.line)
        assert line.startswith("shop: 1 group, 3 partitions in ")
        assert line.endswith("no errors")
        lab.commit(group, topic, {0: 2})
        [event] = eventually(lambda: lake.read(EVENTS).to_pylist())
        eventually(lambda: len(samples_of(config)) >= 5)
    assert (event["kind"], event["group"], event["topic"]) == (EventKind.COMMIT_REWOUND, group, topic)
    starts = [row["started_at"] for row in samples_of(config)]
    # A busy machine may skip ticks, but none is made up for.
    assert len(starts) <= (starts[-1] - starts[0]).total_seconds() + 2
    committed = lake.read(COMMITS).sort_by("sampled_at")["committed"].to_pylist()
    assert committed == sorted(committed, reverse=True)
    assert set(committed) == {9, 2}
    assert readers() == []


@pytest.fixture
def silent() -> Iterator[Cluster]:
    """A cluster that lets everybody connect and never says anything."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        yield Cluster(name="silent", bootstrap=address, timeout_seconds=60.0, interval_seconds=1.0)


@pytest.mark.broker
def test_a_cluster_that_hangs_costs_only_itself(broker: KafkaBroker, tmp_path: Path, silent: Cluster) -> None:
    lab = Lab(broker.client_settings())
    lab.commit(lab.name("reader"), lab.topic(), {0: 0})
    config = config_of(tmp_path, silent, lab.cluster(name="other", interval_seconds=1.0))
    with Running(config):
        eventually(lambda: len(samples_of(config)) >= 5)
        assert {row["cluster"] for row in samples_of(config)} == {"other"}
        assert readers() == [], "both are read in this process"
        began = time.monotonic()
    assert time.monotonic() - began < 10  # nor does it keep the collector from stopping


@pytest.mark.broker
def test_a_reader_process_that_hangs_costs_only_its_cluster(broker: KafkaBroker, tmp_path: Path) -> None:
    """Settings that only librdkafka knows: both clusters are read in a process of their own."""
    lab = Lab(broker.client_settings())
    lab.commit(lab.name("reader"), lab.topic(), {0: 0})
    clusters = [lab.cluster(name=name, interval_seconds=1.0, **BY_LIBRDKAFKA) for name in ("one", "other")]
    config = config_of(tmp_path, *clusters)

    def counts() -> list[int]:
        names = [row["cluster"] for row in samples_of(config)]
        return sorted(names.count(cluster.name) for cluster in clusters)

    with Running(config):
        eventually(lambda: counts()[0] >= 1)
        victim, _ = readers()
        stop(victim.pid)
        stopped_at = counts()[1]
        eventually(lambda: counts()[1] >= stopped_at + 4)
        assert counts()[0] <= stopped_at + 1
        began = time.monotonic()
    assert time.monotonic() - began < 10  # nor does it keep the collector from stopping
    assert readers() == []


def test_an_unreadable_cluster_is_logged_once_and_tried_less_often(
    tmp_path: Path, nobody: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "lagwise.collectors")
    config = config_of(tmp_path, nobody.model_copy(update={"interval_seconds": 1.0}))
    with Running(config) as running:
        eventually(lambda: len(samples_of(config)) >= 4)
        assert running.line() == "nobody: cannot be read (unreachable); see the log and `lagwise doctor`"
    rows = samples_of(config)
    assert all(row["errors"][0]["kind"] == "unreachable" for row in rows)
    # Three failures in a row: four seconds of rest, less what the start of a sample was late.
    assert (rows[3]["started_at"] - rows[2]["started_at"]).total_seconds() > 2.9
    reported = [r.getMessage() for r in caplog.records if "cannot be read" in r.getMessage()]
    assert len(reported) == 1
    assert reported[0].startswith("nobody: cannot be read, unreachable: ")


def test_stopping_does_not_wait_for_the_next_tick(tmp_path: Path, nobody: Cluster) -> None:
    config = config_of(tmp_path, nobody.model_copy(update={"interval_seconds": 3600.0}))
    with Running(config) as running:
        eventually(running.line)
        began = time.monotonic()
    assert time.monotonic() - began < 5
    assert readers() == []


def test_a_state_folder_that_cannot_be_written_does_not_end_the_collector(
    tmp_path: Path, nobody: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "state").write_text("not a folder")
    config = Config(
        data=str(tmp_path / "data"),
        state_dir=tmp_path / "state",
        clusters=(nobody.model_copy(update={"interval_seconds": 1.0}),),
    )
    with Running(config):
        eventually(lambda: len(samples_of(config)) >= 2)
    said = [record.getMessage() for record in caplog.records]
    for what in ("cannot write the spool", f"cannot write {config.state / 'health' / 'collector.json'}"):
        assert sum(what in line for line in said) == 1, said
