"""The demo's load does what its stories say: seen through the AdminClient, without any of the product's verdicts."""

import itertools
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from lagwise.platform.errors import MissingRequirement
from lagwise.platform.java import find_java
from lagwise_sandbox.broker import KafkaBroker
from lagwise_sandbox.scenarios import SCENARIOS, STALLS_AFTER_SECONDS, TOPIC, TOPICS
from lagwise_sandbox.workloads import DemoWorkload

pytestmark = [pytest.mark.broker, pytest.mark.timeout(240)]

LOSING = "recommendations"
_STEP_SECONDS = 2.5
_AT_LEAST_SECONDS = 92.0
_AT_MOST_SECONDS = 115.0


@dataclass(frozen=True)
class Seen:
    """One group at one moment: per partition of its topics the committed offset (None is never) and the watermarks."""

    at: float
    state: str
    type: str
    owned: tuple[int, ...]
    owned_topics: frozenset[str]
    committed: dict[tuple[str, int], int | None]
    log_start: dict[tuple[str, int], int]
    end: dict[tuple[str, int], int]

    def lag(self, topic: str) -> int:
        return sum(self.end[key] - (offset or 0) for key, offset in self.committed.items() if key[0] == topic)

    def lost(self) -> int:
        return sum(max(0, self.log_start[key] - (offset or 0)) for key, offset in self.committed.items())


History = dict[str, list[Seen]]


def _watermarks(admin: AdminClient, spec: Any) -> dict[tuple[str, int], int]:
    asked = {TopicPartition(t.name, p): spec for t in TOPICS for p in range(t.partitions)}
    return {(k.topic, k.partition): f.result(20).offset for k, f in admin.list_offsets(asked).items()}


def _look(admin: AdminClient, started: float) -> dict[str, Seen]:
    groups = [s.group for s in SCENARIOS]
    described = {name: f.result(20) for name, f in admin.describe_consumer_groups(groups).items()}
    committed = {}
    for scenario in SCENARIOS:
        names = [name for name in (scenario.topic, scenario.left_topic) if name]
        asked = [TopicPartition(name, p) for name in names for p in range(TOPIC[name].partitions)]
        question = [ConsumerGroupTopicPartitions(scenario.group, asked)]
        (answer,) = admin.list_consumer_group_offsets(question).values()
        committed[scenario.group] = {
            (tp.topic, tp.partition): tp.offset if tp.offset >= 0 else None for tp in answer.result(20).topic_partitions
        }
    log_start, end = _watermarks(admin, OffsetSpec.earliest()), _watermarks(admin, OffsetSpec.latest())
    at = time.monotonic() - started
    seen = {}
    for scenario in SCENARIOS:
        group = described[scenario.group]
        owned = [m.assignment.topic_partitions if m.assignment else [] for m in group.members]
        seen[scenario.group] = Seen(
            at,
            group.state.name,
            group.type.name,
            tuple(sorted(len(partitions) for partitions in owned)),
            frozenset(tp.topic for tp in itertools.chain(*owned)),
            committed[scenario.group],
            log_start,
            end,
        )
    return seen


@dataclass(frozen=True)
class Played:
    """A whole run: what was seen, what was left behind, how long the end took."""

    history: History
    left_behind: list[str]
    stop_seconds: float
    log: str


def _processes_of(bootstrap: str) -> list[str]:
    found = []
    for process in psutil.process_iter():
        try:
            line = process.cmdline()
        except psutil.Error:
            continue
        if bootstrap in line and "lagwise_sandbox.workloads" in line:
            found.append(" ".join(line))
    return found


def _await(condition: Callable[[], bool], seconds: float, what: str) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        time.sleep(0.05)


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Played]:
    """The load on a broker of its own, watched until the slow group loses data."""
    try:
        find_java()
    except MissingRequirement as missing:
        pytest.skip(str(missing))
    with KafkaBroker() as broker:
        workload = DemoWorkload(broker.bootstrap, tmp_path_factory.mktemp("logs"))
        admin = AdminClient({**broker.client_settings(), "log_level": 0})
        history: History = {s.group: [] for s in SCENARIOS}
        try:
            workload.start()
            _await(lambda: workload.ready() or not workload.alive(), 60, "the load is ready")
            assert workload.alive(), workload.log_file.read_text()
            started = time.monotonic()
            for step in itertools.count(1):
                _await(lambda step=step: time.monotonic() - started >= step * _STEP_SECONDS, 60, "time passes")
                for group, seen in _look(admin, started).items():
                    history[group].append(seen)
                now = time.monotonic() - started
                if now > _AT_MOST_SECONDS or (now > _AT_LEAST_SECONDS and history[LOSING][-1].lost()):
                    break
            assert workload.alive(), workload.log_file.read_text()
        finally:
            stopping = time.monotonic()
            workload.stop()
            stop_seconds = time.monotonic() - stopping
        yield Played(history, _processes_of(broker.bootstrap), stop_seconds, workload.log_file.read_text())


def _settled(played: Played, group: str) -> list[Seen]:
    """What was seen of a group after the first ten seconds."""
    return [seen for seen in played.history[group] if seen.at > 10]


def _between(played: Played, group: str, first: float, last: float = 1e9) -> tuple[Seen, Seen]:
    chosen = [seen for seen in played.history[group] if first <= seen.at <= last]
    return chosen[0], chosen[-1]


def _read(a: Seen, b: Seen, topic: str) -> float:
    """Records committed per second between two looks."""
    moved = sum((offset or 0) - (a.committed[key] or 0) for key, offset in b.committed.items() if key[0] == topic)
    return moved / (b.at - a.at)


@pytest.mark.parametrize("group", [s.group for s in SCENARIOS if s.expected == ("ok",)])
def test_healthy_groups_commit_within_three_seconds_of_what_is_written(played: Played, group: str) -> None:
    scenario = next(s for s in SCENARIOS if s.group == group)
    topic = TOPIC[scenario.topic]
    seen = _settled(played, group)
    assert {s.state for s in seen} == {"STABLE"}
    assert max(s.lag(topic.name) for s in seen) <= 3 * topic.rate_per_second
    assert _read(seen[0], seen[-1], topic.name) == pytest.approx(topic.rate_per_second, rel=0.1)


def test_the_slow_one_falls_behind_on_every_partition_at_half_the_rate(played: Played) -> None:
    a, b = _between(played, "search-indexer", 15)
    assert _read(a, b, "product-changes") == pytest.approx(60, rel=0.1)
    assert (b.lag("product-changes") - a.lag("product-changes")) / (b.at - a.at) == pytest.approx(60, rel=0.15)
    assert all((b.committed[key] or 0) > (offset or 0) for key, offset in a.committed.items())
    assert b.state == "STABLE"


def test_the_stalled_one_is_alive_and_commits_nothing_for_a_minute(played: Played) -> None:
    seen = [s for s in played.history["fraud-check"] if s.at > STALLS_AFTER_SECONDS + 3]
    assert seen[-1].at - seen[0].at > 60
    assert {s.state for s in seen} == {"STABLE"}
    assert {s.owned for s in seen} == {(1, 2)}
    assert all(s.committed == seen[0].committed for s in seen)
    assert min(offset or 0 for offset in seen[0].committed.values()) > 0
    lags = [s.lag("payments") for s in seen]
    assert lags == sorted(lags)
    assert lags[-1] > 50 * 90


def test_the_killed_one_is_empty_with_a_growing_backlog(played: Played) -> None:
    before = played.history["warehouse-sync"][3]
    assert (before.state, before.owned) == ("STABLE", (3,))
    seen = [s for s in played.history["warehouse-sync"] if s.at > 30]
    assert {s.state for s in seen} == {"EMPTY"}
    assert all(s.committed == seen[0].committed for s in seen)
    assert seen[-1].lag("shipments") > 40 * 60


def test_the_one_that_catches_up_is_steady_and_needs_hours(played: Played) -> None:
    a, b = _between(played, "invoice-archiver", 8)
    assert _read(a, b, "invoices") == pytest.approx(20, rel=0.1)
    gained = (a.lag("invoices") - b.lag("invoices")) / (b.at - a.at)
    assert gained == pytest.approx(10, rel=0.15)
    assert b.at + b.lag("invoices") / gained > 4 * 3600
    seen = [s for s in played.history["invoice-archiver"] if s.at > 8]
    steps = [_read(x, y, "invoices") for x, y in itertools.pairwise(seen[::4])]
    assert min(steps) > 13
    assert max(steps) < 27


def test_members_beyond_the_partitions_have_nothing_to_do(played: Played) -> None:
    assert {s.owned for s in _settled(played, "email-sender")} == {(0, 0, 1, 1)}


def test_the_flapping_one_is_seen_rebalancing_most_of_the_time_and_keeps_up(played: Played) -> None:
    seen = _settled(played, "stock-cache")
    rebalancing = sum(s.state in ("PREPARING_REBALANCING", "COMPLETING_REBALANCING") for s in seen)
    assert rebalancing >= len(seen) / 2
    # Twenty records a second, and nobody reads for at most eight seconds.
    assert max(s.lag("stock-levels") for s in seen) < 20 * 12
    assert _read(seen[0], seen[-1], "stock-levels") == pytest.approx(20, rel=0.2)


def test_the_new_protocols_group_is_one(played: Played) -> None:
    seen = _settled(played, "ledger")
    assert {(s.type, s.owned) for s in seen} == {("CONSUMER", (2, 2))}
    assert {s.type for s in _settled(played, "billing")} == {"CLASSIC"}


def test_the_one_that_never_commits_owns_its_partitions(played: Played) -> None:
    for seen in _settled(played, "live-dashboard"):
        assert (seen.state, seen.owned) == ("STABLE", (3,))
        assert set(seen.committed.values()) == {None}


def test_retention_deletes_what_the_slow_one_did_not_read(played: Played) -> None:
    history = played.history[LOSING]
    assert all(s.lost() == 0 for s in history if s.at < 55)
    assert history[-1].lost() > 0
    first_loss = next(s.at for s in history if s.lost())
    assert first_loss < 95
    # Once lost it stays lost: the demo's verdict must not flicker.
    assert all(s.lost() > 0 for s in history if s.at >= first_loss)
    assert history[-1].state == "STABLE"


def test_the_one_that_moved_left_a_commit_behind(played: Played) -> None:
    seen = _settled(played, "loyalty-points")
    for s in seen:
        assert (s.state, s.owned_topics) == ("STABLE", {"orders"})
        assert {o for key, o in s.committed.items() if key[0] == "orders-legacy"} == {100}
        assert s.lag("orders-legacy") == 200


def test_it_ends_quickly_and_completely(played: Played) -> None:
    assert played.stop_seconds < 6
    assert played.left_behind == []
    assert "Traceback" not in played.log


def test_it_ends_with_its_parent(broker: KafkaBroker, tmp_path: Path) -> None:
    code = (
        "import sys, time; from pathlib import Path; from lagwise_sandbox.workloads import DemoWorkload\n"
        f"w = DemoWorkload({broker.bootstrap!r}, Path({str(tmp_path)!r})); w.start()\n"
        "while not w.ready(): time.sleep(0.1)\n"
        "print('ready', flush=True); time.sleep(600)"
    )
    path = os.pathsep.join(p for p in sys.path if p)
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": path}
    ) as parent:
        try:
            assert parent.stdout is not None
            assert parent.stdout.readline() == "ready\n"
            # The load itself, and the one in it that is going to be killed.
            _await(lambda: len(_processes_of(broker.bootstrap)) == 2, 10, "both processes run")
        finally:
            parent.kill()
    _await(lambda: not _processes_of(broker.bootstrap), 15, "the load ends")
