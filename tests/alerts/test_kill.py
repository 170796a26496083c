"""Killed with SIGKILL at every point of a round, and at random instants: nothing decided is lost or doubled."""

import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml
from sqlalchemy import Engine

from lagwise.tables import ALL_TABLES
from lagwise.tables.store import Lake
from lagwise_alerts.operate import queries
from lagwise_alerts.outbox.database import open_engine
from tests.alerts.receiver import Answer, Got, Receiver
from tests.alerts.support import LakeWriter, at, write_yaml

pytestmark = pytest.mark.process

ROOT = Path(__file__).parents[2]
CHILD = Path(__file__).with_name("kill_child.py")

#: The defaults' severities without their patience: what matters here is how often things happen. For the same reason
#: nothing counts as flapping, whose end would be told half an hour later.
IMPATIENT = """
flapping: null
rules:
  - {name: losing_data, when: {statuses: [losing_data]}, severity: page, keep_firing_for: 0s}
  - {name: stopped, when: {statuses: [stopped]}, severity: page, keep_firing_for: 0s}
  - {name: falling_behind, when: {statuses: [falling_behind]}, severity: warn, keep_firing_for: 0s}
"""


SINGLY: dict[str, object] = {"max_messages": None}
TOGETHER: dict[str, object] = {"max_messages": 2, "interval_seconds": 0.3}


def settings(folder: Path, lake: Path, channels: dict[str, str], database: str | None = None, **alerts: object) -> Path:
    """A settings file for one process."""
    folder.mkdir(parents=True, exist_ok=True)
    tree = {
        "data": str(lake),
        "state_dir": str(folder),
        "database": database,
        "clusters": [{"name": "kafka", "bootstrap": "127.0.0.1:9"}],
        "alerts": {
            "rules_file": str(write_yaml(folder / "rules.yaml", IMPATIENT)),
            "channels": [{"name": name, "url": url} for name, url in channels.items()],
            **alerts,
        },
    }
    return write_yaml(folder / f"{lake.name}.yaml", yaml.safe_dump(tree))


def lake_at(folder: Path) -> LakeWriter:
    lake = Lake(str(folder / "lake"))
    lake.create(*ALL_TABLES)
    return LakeWriter(lake)


def environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()}
    return kept | {"PYTHONPATH": os.pathsep.join(sys.path)}


@pytest.fixture
def fork() -> Iterator[Callable[..., str]]:
    """Does a round in a process of its own that kills itself at a point; 0 is never."""
    process = subprocess.Popen(
        [sys.executable, str(CHILD), "forks"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment(),
        cwd=ROOT,
    )

    def run(config: Path, now: datetime, point: int, makes_tables: bool) -> str:
        assert process.stdin is not None
        assert process.stdout is not None
        command = {"config": str(config), "now": now.isoformat(), "point": point, "makes_tables": makes_tables}
        process.stdin.write(json.dumps(command) + "\n")
        process.stdin.flush()
        return process.stdout.readline().strip()

    yield run
    process.communicate(timeout=30)


def documents(got: list[Got]) -> list[dict[str, Any]]:
    """The events that arrived, in the order of their first arrival; a summary is what is in it."""
    firsts: dict[str, dict[str, Any]] = {}
    for one in sorted(got, key=lambda one: one.at):
        for document in one.document.get("alerts", [one.document]):
            firsts.setdefault(document["idempotency_key"], document)
    return list(firsts.values())


def first_arrivals(got: list[Got]) -> list[tuple[str, str]]:
    """(group, event) of each event in the order of its first arrival."""
    return [(document["group"], document["event"]) for document in documents(got)]


@pytest.mark.parametrize("grouping", [SINGLY, TOGETHER], ids=["singly", "together"])
def test_killed_at_every_third_point_of_two_rounds(
    tmp_path: Path, fork: Callable[..., str], grouping: dict[str, object]
) -> None:
    """Each message has four points: a third of them meets every kind of point."""
    _kill_in_two_rounds(tmp_path, fork, grouping, every=3)


@pytest.mark.long
@pytest.mark.parametrize("grouping", [SINGLY, TOGETHER], ids=["singly", "together"])
def test_killed_at_every_point_of_two_rounds(
    tmp_path: Path, fork: Callable[..., str], grouping: dict[str, object]
) -> None:
    _kill_in_two_rounds(tmp_path, fork, grouping, every=1)


def _kill_in_two_rounds(tmp_path: Path, fork: Callable[..., str], grouping: dict[str, object], *, every: int) -> None:
    """The first round lets groups fire, the second escalates, resolves, loses a group and fires another.

    That tables are being made is no matter of grouping: once is enough."""
    tables = grouping is SINGLY
    before, after = lake_at(tmp_path / "before"), lake_at(tmp_path / "after")
    before.all_well(
        at(0),
        {"recovers": "stopped", "deleted": "stopped", "worse": "stopped", "louder": "falling_behind", "well": "ok"},
    )
    after.all_well(
        at(600),
        {"recovers": "ok", "worse": "losing_data", "louder": "stopped", "well": "ok", "new": "stopped"},
    )
    expected = Counter(
        [
            ("recovers", "firing"),
            ("recovers", "resolved"),
            ("deleted", "firing"),
            ("deleted", "resolved"),
            ("worse", "firing"),
            ("worse", "escalated"),
            ("louder", "firing"),
            ("louder", "escalated"),
            ("new", "firing"),
        ]
    )
    point = 1 - every
    killed = 0
    with Receiver() as to:
        while True:
            point += every
            to.got.clear()
            folder = tmp_path / f"point{point}"
            first = settings(folder, tmp_path / "before", {"ops": to.url}, grouping=grouping)
            second = settings(folder, tmp_path / "after", {"ops": to.url}, grouping=grouping)
            outcomes = [
                fork(first, at(5), point, tables),
                fork(first, at(10), 0, tables),
                fork(second, at(605), point, tables),
                fork(second, at(610), 0, tables),
            ]
            assert outcomes[1] == outcomes[3] == "done"
            assert {outcomes[0], outcomes[2]} <= {"killed", "done"}
            killed += outcomes.count("killed")

            engine = open_engine(f"sqlite:///{folder / 'lagwise.db'}")
            rows = list(reversed(queries.deliveries(engine)))
            decided = _decided(engine)
            still_open = {alert.subject.group for alert in queries.open_alerts(engine)}
            engine.dispose()
            assert still_open == {"worse", "louder", "new"}, point
            assert {row.state for row in rows} == {"delivered"}, point
            assert set(to.keys) == {row.idempotency_key for row in rows}, point
            arrived = first_arrivals(to.got)
            assert Counter(arrived) == expected, point
            assert [document["idempotency_key"] for document in documents(to.got)] == decided, "in order"
            assert list(dict.fromkeys(to.keys)) == [row.idempotency_key for row in rows], "in order"
            assert len(to.got) - len(rows) <= outcomes.count("killed"), "at most one message twice per kill"
            assert _keys_of_many_bodies(to.got) == {}, "the same key is the same message"
            if "killed" not in outcomes:
                break
    # Each message has four points: two around the sending, the marking, and its commit; a summary six more before.
    assert killed >= (36 if grouping is SINGLY else 16) // every


@pytest.mark.timeout(240)
def test_killed_at_random_instants(tmp_path: Path) -> None:
    _kill_at_random(tmp_path, seed=20261121, steps=6, groups=30, kills_per_step=2, grouping=SINGLY)


@pytest.mark.timeout(240)
def test_killed_at_random_instants_on_postgresql(tmp_path: Path, postgresql: str) -> None:
    """The server undoes what the process had not committed, and lets go of its locks."""
    _kill_at_random(tmp_path, seed=20261123, steps=4, groups=30, kills_per_step=2, grouping=SINGLY, database=postgresql)


@pytest.mark.timeout(240)
def test_killed_at_random_instants_while_it_summarises(tmp_path: Path) -> None:
    _kill_at_random(tmp_path, seed=20261122, steps=6, groups=30, kills_per_step=2, grouping=TOGETHER)


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_killed_two_hundred_times(tmp_path: Path) -> None:
    _kill_at_random(tmp_path, seed=3, steps=40, groups=40, kills_per_step=5, grouping=SINGLY)


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_killed_two_hundred_times_while_it_summarises(tmp_path: Path) -> None:
    _kill_at_random(tmp_path, seed=4, steps=40, groups=40, kills_per_step=5, grouping=TOGETHER)


def _kill_at_random(
    tmp_path: Path,
    *,
    seed: int,
    steps: int,
    groups: int,
    kills_per_step: int,
    grouping: dict[str, object],
    database: str | None = None,
) -> None:
    """The real process, its real threads and clock; a receiver that fails, hangs up and is slow, and one that works."""
    random = Random(seed)
    writer = lake_at(tmp_path / "data")
    statuses = {f"g{i:02}": "ok" for i in range(groups)}
    expected: Counter[tuple[str, str]] = Counter()
    notified: dict[str, set[str]] = {group: set() for group in statuses}
    with Receiver() as good, Receiver() as bad:
        bad.answers.extend(random.choice(MOODS) for _ in range(100 * steps * groups))
        config = settings(
            tmp_path / "state",
            tmp_path / "data",
            {"good": good.url, "bad": bad.url},
            database,
            interval_seconds=0.05,
            grouping=grouping,
        )
        engine = open_engine(database or f"sqlite:///{tmp_path / 'state' / 'lagwise.db'}")
        child = start(config, tmp_path)
        try:
            for _ in range(steps):
                moment = datetime.now(UTC)
                for group in statuses:
                    was, now = statuses[group], random.choice(["ok", "stopped", "losing_data"])
                    event = _event(was, now, notified[group])
                    if event:
                        expected[group, event] += 1
                    statuses[group] = now
                writer.all_well(moment, statuses)
                for _ in range(kills_per_step):
                    time.sleep(random.uniform(0.0, 0.4))
                    child.kill()
                    child.wait()
                    child = start(config, tmp_path)
                    time.sleep(random.choice([0.0, random.uniform(0.5, 2.5)]))
                troubled = {group for group, status in statuses.items() if status != "ok"}
                _until(lambda troubled=troubled: _as_shown(engine, statuses) and _open(engine) == troubled, child)
            _until(lambda: not queries.deliveries(engine, state="queued"), child)
        finally:
            child.kill()
            child.wait()
        rows = queries.deliveries(engine, limit=100_000)
        decided = {name: _decided(engine, name) for name in ("good", "bad")}
        engine.dispose()
    assert {row.state for row in rows} == {"delivered"}
    for to, name in ((good, "good"), (bad, "bad")):
        assert [document["idempotency_key"] for document in documents(to.got)] == decided[name], "in order"
        assert _keys_of_many_bodies(to.got) == {}, "the same key is the same message"
        assert Counter(first_arrivals(to.got)) == expected
    assert any(row.event == "summary" for row in rows) is (grouping is TOGETHER)


MOODS = [Answer()] * 40 + [Answer(503), Answer(drop=True), Answer(delay_seconds=0.1), Answer(delay_seconds=0.1)]


def _event(was: str, now: str, notified: set[str]) -> str | None:
    """What is to be told of a change; ``told`` are the statuses that were told in this incident."""
    if was == now:
        return None
    if now == "ok":
        notified.clear()
        return "resolved"
    # From losing_data to stopped is better, which is not told; and the way back is told once per incident.
    news = was == "ok" or (now == "losing_data" and now not in notified)
    notified.add(now)
    return ("firing" if was == "ok" else "escalated") if news else None


def _keys_of_many_bodies(got: list[Got]) -> dict[str, set[bytes]]:
    """Also of an event that came by itself and in a summary."""
    bodies: dict[str, set[bytes]] = {}
    for one in got:
        bodies.setdefault(one.key, set()).add(one.body)
        for document in one.document.get("alerts", [one.document]):
            bodies.setdefault(f"event {document['idempotency_key']}", set()).add(json.dumps(document).encode())
    return {key: several for key, several in bodies.items() if len(several) > 1}


def _decided(engine: Engine, channel: str = "ops") -> list[str]:
    """The keys of all events, however they went out, in the order in which they were decided."""
    states = [None, "summarised"]
    rows = [row for state in states for row in queries.deliveries(engine, state=state, channel=channel, limit=100_000)]
    return [row.idempotency_key for row in sorted(rows, key=lambda row: row.id) if row.event != "summary"]


def _open(engine: Engine) -> set[str]:
    return {alert.subject.group or "" for alert in queries.open_alerts(engine)}


def _as_shown(engine: Engine, statuses: dict[str, str]) -> bool:
    """Whether the round that saw these statuses has been kept: a better status is taken over silently."""
    return all(statuses[alert.subject.group or ""] == alert.status for alert in queries.open_alerts(engine))


def start(
    config: Path, tmp_path: Path, lease_times: float = 1.0, within: Sequence[str] = ()
) -> subprocess.Popen[bytes]:
    """The alert process; its leases last so many times what they do. ``within`` is a command that starts it."""
    command = [*within, sys.executable, str(CHILD), "forever", str(config), str(lease_times)]
    with (tmp_path / "log").open("ab") as log:
        return subprocess.Popen(command, stdout=log, stderr=log, env=environment(), cwd=ROOT)


def _until(
    holds: Callable[[], bool], child: subprocess.Popen[bytes], within: timedelta = timedelta(seconds=90)
) -> None:
    deadline = time.monotonic() + within.total_seconds()
    while not holds():
        assert child.poll() is None, "the process ended by itself"
        assert time.monotonic() < deadline, "did not come to hold in time"
        time.sleep(0.05)
