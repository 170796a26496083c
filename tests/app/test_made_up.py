"""The samples of the made-up cluster are those that a collector would have taken."""

import subprocess
import sys
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psutil
import pyarrow.compute as pc
import pytest

from lagwise.config import Config, RetentionSettings
from lagwise.domain.vocabulary import EventKind, GroupState
from lagwise.platform.errors import LagwiseError
from lagwise.tables.raw import COMMITS, EVENTS, GROUPS, MEMBERS, SAMPLES, TOPICS, WATERMARKS
from lagwise.tables.service_times import SERVICE_TIMES
from lagwise.tables.store import Lake
from lagwise_app.demo.made_up.cluster import MadeUpCluster, _Generator
from lagwise_app.demo.made_up.past import write_past
from lagwise_app.demo.made_up.samples import PROBED_MINUTES, TABLES, MadeUpSamples
from lagwise_sandbox.made_up.groups import CLUSTER_NAME
from lagwise_sandbox.made_up.groups import GROUPS as MADE_UP_GROUPS
from lagwise_sandbox.made_up.offsets import MINUTES_OF_DAY, PAST_MINUTES

ENDS_AT = datetime(2026, 11, 25, 9, 30, 12, 345_678, tzinfo=UTC)
#: Starts the made-up cluster, prints the process that writes the past, and waits to be killed.
DEMO = """
import sys
import time
from datetime import datetime
from pathlib import Path

import psutil

from lagwise.config import load_config
from lagwise_app.demo.made_up.cluster import MadeUpCluster

with MadeUpCluster(load_config(Path(sys.argv[1])), datetime.fromisoformat(sys.argv[2])):
    while not (started := psutil.Process().children()):
        time.sleep(0.02)
    print(*(process.pid for process in started), flush=True)
    time.sleep(60)
"""
STOPPED = [group for group in MADE_UP_GROUPS if group.is_stopped_sometimes]


@pytest.fixture(scope="module")
def samples() -> MadeUpSamples:
    return MadeUpSamples(ENDS_AT)


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory, samples: MadeUpSamples) -> Lake:
    """The whole past."""
    made = Lake(str(tmp_path_factory.mktemp("made-up") / "lake"))
    write_past(made, samples, RetentionSettings())
    return made


def test_a_sample_alone_is_the_same_as_among_others(samples: MadeUpSamples) -> None:
    first = next(samples.changes()) - 2
    together = list(samples.snapshots(first, first + 5))
    for place, snapshot in enumerate(together):
        (alone,) = samples.snapshots(first + place, first + place + 1)
        assert alone.sample_id == snapshot.sample_id
        for table in TABLES:
            assert alone.rows(table).to_pylist() == snapshot.rows(table).to_pylist(), table.name


def test_each_sample_is_complete_and_reads_commits_first(samples: MadeUpSamples) -> None:
    pairs = sum(group.partitions for group in MADE_UP_GROUPS)
    for snapshot in samples.snapshots(PAST_MINUTES - 2, PAST_MINUTES + 2):
        header = snapshot.header
        assert header["commits_read_at"] < header["watermarks_read_at"]
        assert snapshot.rows(COMMITS)["sampled_at"].unique().to_pylist() == [header["commits_read_at"]]
        ends = {(row["topic"], row["partition"]): row for row in snapshot.rows(WATERMARKS).to_pylist()}
        commits = snapshot.rows(COMMITS).to_pylist()
        assert len(commits) == len(ends) == pairs == header["group_partitions"]
        for row in commits:
            end = ends[row["topic"], row["partition"]]
            assert end["log_start"] < row["committed"] <= end["high_watermark"]
        members = snapshot.rows(MEMBERS).to_pylist()
        assert {row["owner"] for row in commits} == {row["member_id"] for row in members}
        assert sum(row["assigned_partitions"] for row in members) == pairs


def test_a_group_that_is_stopped_has_no_members(samples: MadeUpSamples) -> None:
    number = next(samples.changes())
    names = {group.group for group in STOPPED}
    (snapshot,) = samples.snapshots(number, number + 1)
    states = {row["group"]: (row["state"], row["member_count"]) for row in snapshot.rows(GROUPS).to_pylist()}
    assert {name for name, state in states.items() if state == (GroupState.EMPTY, 0)} == names
    assert not names & set(snapshot.rows(MEMBERS)["group"].to_pylist())
    commits = snapshot.rows(COMMITS).to_pylist()
    assert {row["group"] for row in commits if row["owner"] is None} == names


def test_the_past_has_five_weeks_of_demand_and_of_the_rest_what_is_kept(lake: Lake) -> None:
    taken = lake.read(SAMPLES)["started_at"]
    assert len(taken) == PAST_MINUTES
    assert pc.max(taken).as_py() == ENDS_AT
    assert pc.min(taken).as_py() == ENDS_AT - timedelta(minutes=PAST_MINUTES - 1)
    assert lake.read(WATERMARKS)["sample_id"].unique().to_pylist() == lake.read(SAMPLES)["sample_id"].to_pylist()
    week = 7 * MINUTES_OF_DAY
    for table in (COMMITS, GROUPS, MEMBERS):
        rows = lake.read(table)
        assert len(rows["sample_id"].unique()) == week
        assert set(rows["cluster"].to_pylist()) == {CLUSTER_NAME}
    assert lake.read(TOPICS).num_rows >= 35 * len(MADE_UP_GROUPS), "once a day"


def test_what_probes_measured_is_read_from_the_commits(lake: Lake) -> None:
    (group,) = (group for group in MADE_UP_GROUPS if group.probed)
    assert group.probed is not None
    rows = lake.read(SERVICE_TIMES).to_pylist()
    assert len(rows) == PROBED_MINUTES * group.members
    assert {(row["group"], row["topic"], row["source"]) for row in rows} == {(group.group, group.topic, "probe")}
    for column, usual in (("t1_seconds", group.probed.t1_seconds), ("t2_seconds", group.probed.t2_seconds)):
        assert pytest.approx(usual, rel=0.01) == sum(row[column] for row in rows) / len(rows)
    assert {(row["threads"], row["cores"], row["t1_doubt"]) for row in rows} == {
        (group.probed.threads, group.probed.cores, None)
    }


def test_stops_and_starts_are_events(lake: Lake) -> None:
    rows = lake.read(EVENTS).to_pylist()
    for group in STOPPED:
        its = [row for row in rows if row["group"] == group.group]
        states = [(r["before"], r["after"]) for r in its if r["kind"] == EventKind.STATE_CHANGED]
        assert sorted(set(states)) == [(GroupState.EMPTY, GroupState.STABLE), (GroupState.STABLE, GroupState.EMPTY)]
        assert len(states) == 2 * 3 * 5, "three times a week"
        assert sum(r["kind"] == EventKind.REBALANCE for r in its) == len(states)
    assert {row["group"] for row in rows} == {group.group for group in STOPPED}


def test_the_next_samples_follow_one_another_and_are_never_early(samples: MadeUpSamples) -> None:
    source = _Generator(samples, PAST_MINUTES)
    assert 60.0 < source.wait_seconds(ENDS_AT) < 61.0
    started = [source.collect().header["started_at"] for _ in range(3)]
    assert started == [ENDS_AT + timedelta(minutes=minute) for minute in (1, 2, 3)]
    assert source.wait_seconds(ENDS_AT + timedelta(minutes=10)) < -300.0, "what is overdue is due at once"


def test_a_past_that_cannot_be_made_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    config = Config(data=str(tmp_path / "file" / "data"))
    said = r"^writing five weeks of made-up samples failed: .*; --no-past leaves them out$"
    with MadeUpCluster(config, ENDS_AT) as cluster, pytest.raises(LagwiseError, match=said):
        cluster.await_judged(lambda line: None)


def test_a_process_that_fails_ends_the_past_with_its_last_words(tmp_path: Path) -> None:
    cluster = MadeUpCluster(Config(data=str(tmp_path)), ENDS_AT)
    with pytest.raises(
        LagwiseError, match=r"no_such_module ended with 1: .*No module named no_such_module.*made-up.log"
    ):
        cluster._run_process(["no_such_module"], tmp_path / "settings.yaml")


def test_that_it_takes_no_more_samples_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(source: _Generator) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(_Generator, "collect", fail)
    monkeypatch.setattr(MadeUpCluster, "_run_process", lambda *_: None)  # the past does not matter here
    with MadeUpCluster(Config(data=str(tmp_path)), datetime(2020, 1, 1, tzinfo=UTC)) as cluster:
        cluster._thread.join(30.0)
        with pytest.raises(LagwiseError, match=r"^taking made-up samples failed: a bug; --no-past leaves them out$"):
            cluster.check()


def _children() -> set[psutil.Process]:
    return set(psutil.Process().children(recursive=True))


def _run(processes: Iterable[psutil.Process]) -> list[psutil.Process]:
    """Those that still run."""
    return [one for one in processes if one.is_running() and one.status() != psutil.STATUS_ZOMBIE]


@pytest.mark.process
def test_leaving_it_ends_what_it_has_started(tmp_path: Path) -> None:
    before = _children()
    with MadeUpCluster(Config(data=str(tmp_path)), ENDS_AT) as cluster:
        while not (started := _children() - before) and not cluster._judged.wait(0.05):
            continue
        assert started
        assert _run(started), "it writes five weeks of samples"
    cluster.check()
    assert _run(started | (_children() - before)) == []


@pytest.mark.process
def test_what_it_has_started_dies_with_the_demo(tmp_path: Path) -> None:
    config = tmp_path / "lagwise.yaml"
    config.write_text(f"data: {tmp_path}\n")
    command = [sys.executable, "-c", DEMO, str(config), ENDS_AT.isoformat()]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as demo:
        assert demo.stdout is not None
        (started,) = (psutil.Process(int(pid)) for pid in demo.stdout.readline().split())
        demo.kill()
    psutil.wait_procs([started], timeout=3.0)  # writing five weeks takes longer
    assert _run([started]) == []
