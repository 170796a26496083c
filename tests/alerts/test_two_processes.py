"""Several alert processes on one database: one works, the others wait; a killed or hanging one is replaced, and nothing
arrives twice."""

import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy import select

from lagwise.operational.lease import HOLD_SECONDS, LEASES
from lagwise.platform import health
from lagwise.platform.errors import DatabaseError
from lagwise_alerts.operate import queries
from lagwise_alerts.outbox.database import lock, open_engine, transaction
from tests.alerts.receiver import Receiver
from tests.alerts.test_kill import SINGLY, environment, lake_at, settings, start
from tests.stopped import go_on, stop

pytestmark = [pytest.mark.process, pytest.mark.timeout(240)]

#: Leases a fifth as long as they are, so that a hanging process is replaced within seconds.
HURRY = 0.2


class Child:
    """An alert process with a state folder of its own."""

    def __init__(self, name: str, tmp_path: Path, database: str, to: Receiver, within: Sequence[str] = ()) -> None:
        self.state = tmp_path / name
        lake, channels = tmp_path / "data", {"ops": to.url}
        self.config = settings(self.state, lake, channels, database, interval_seconds=0.2, grouping=SINGLY)
        self.process = start(self.config, tmp_path, HURRY, within)

    def line(self) -> str:
        beat = health.read(self.state).get("alerts")
        return beat.line if beat and beat.pid == self.process.pid else ""

    def works(self) -> bool:
        return "firing" in self.line()

    def waits_for(self, other: "Child") -> bool:
        return re.match(f"process {other.process.pid} on .* runs the alerts", self.line()) is not None


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'lagwise.db'}"
    found: str = request.getfixturevalue("postgresql")
    return found


@pytest.fixture
def child(tmp_path: Path, database: str) -> Iterator[Callable[[str, Receiver], Child]]:
    made: list[Child] = []

    def make(name: str, to: Receiver) -> Child:
        made.append(Child(name, tmp_path, database, to))
        return made[-1]

    yield make
    for one in made:
        one.process.kill()
        one.process.wait()


def until(holds: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + 90
    while not holds():
        assert time.monotonic() < deadline, f"still waiting: {what}"
        time.sleep(0.05)


def hang(process: subprocess.Popen[bytes], database: str) -> None:
    """Stop a process while it is in no transaction, which would stop everybody."""
    engine = open_engine(database)

    def is_free() -> bool:
        try:
            with transaction(engine) as connection:
                lock(connection)
                connection.execute(select(LEASES).with_for_update())
                return True
        except DatabaseError:
            return False

    try:
        stop(process.pid)
        while not is_free():
            go_on(process.pid)
            until(is_free, "the process to end its transaction")
            stop(process.pid)
    finally:
        engine.dispose()


def test_one_works_and_the_others_wait_their_turn(
    tmp_path: Path, database: str, child: Callable[[str, Receiver], Child]
) -> None:
    writer = lake_at(tmp_path / "data")
    troubled: dict[str, str] = {}

    def delivered() -> int:
        engine = open_engine(database)
        try:
            return queries.counts(engine).delivered
        except DatabaseError:
            return 0  # it has no tables yet, or somebody else writes
        finally:
            engine.dispose()

    def trouble(group: str) -> None:
        """Another group is in trouble; its message arrives, and it is recorded that it has. (A process that is killed
        before that cannot know; then it is sent again, with the same key.)"""
        troubled[group] = "stopped"
        writer.all_well(datetime.now(UTC), troubled)
        until(lambda: delivered() >= len(troubled), f"the message about {group}")

    with Receiver() as to:
        first = child("first", to)
        trouble("a")
        second = child("second", to)
        until(lambda: second.waits_for(first), "the second to wait")
        command = [sys.executable, "-m", "lagwise", "--config", str(first.config), "alert", "--once"]
        refused = subprocess.run(command, capture_output=True, text=True, env=environment(), check=False)
        assert refused.returncode == 1
        assert f"lagwise: process {first.process.pid} on " in refused.stderr
        assert refused.stderr.endswith(" UTC) runs the alerts: stop that one first [already_running]\n")
        trouble("b")

        first.process.kill()  # at once, because it is seen to have ended
        until(second.works, "the second to take over")
        trouble("c")

        third = child("third", to)
        until(lambda: third.waits_for(second), "the third to wait")
        hang(second.process, database)
        until(third.works, "the third to take over")
        trouble("d")
        go_on(second.process.pid)
        until(lambda: second.waits_for(third), "the second to see that it was replaced")
        trouble("e")

        third.process.send_signal(signal.SIGTERM)
        until(second.works, "the second to be given its turn")
        trouble("f")
        assert [one.document["group"] for one in to.got] == list("abcdef")
        assert len({one.key for one in to.got}) == len(to.got)
    log = (tmp_path / "log").read_text()
    assert "Traceback" not in log


#: Starts a process as a container does: it is number 1 of its own system, and its host has the name of the other one's.
#: A kill of this command kills it.
POD = ("unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc", "--kill-child")


def _has_namespaces() -> bool:
    return subprocess.run([*POD, "true"], capture_output=True, check=False).returncode == 0


class Pod(Child):
    """An alert process that is number 1, as in a container."""

    def __init__(self, name: str, tmp_path: Path, database: str, to: Receiver) -> None:
        super().__init__(name, tmp_path, database, to, POD)

    def beat(self) -> health.Beat | None:
        return health.read(self.state).get("alerts")

    def line(self) -> str:
        beat = self.beat()
        return beat.line if beat else ""


@pytest.mark.skipif(not _has_namespaces(), reason="needs namespaces of processes")
def test_of_two_pods_whose_processes_have_the_same_number_and_host_one_works(tmp_path: Path, database: str) -> None:
    writer = lake_at(tmp_path / "data")
    pods: list[Pod] = []
    with Receiver() as to:
        try:
            pods.append(Pod("first", tmp_path, database, to))
            writer.all_well(datetime.now(UTC), {"a": "stopped"})
            until(lambda: len(to.got) == 1, "the message about a")
            pods.append(Pod("second", tmp_path, database, to))
            first, second = pods
            until(lambda: "process 1 on " in second.line(), "the second to wait for the first")
            assert [pod.beat().pid for pod in pods] == [1, 1]  # type: ignore[union-attr]
            waited_at = second.beat().at  # type: ignore[union-attr]
            until(lambda: second.beat().at > waited_at, "the one that waits to show that it lives")  # type: ignore[union-attr]
            assert "process 1 on " in second.line()

            first.process.kill()
            killed_at = time.monotonic()
            writer.all_well(datetime.now(UTC), {"a": "stopped", "b": "stopped"})
            until(lambda: len(to.got) == 2, "the second to take over")
            assert time.monotonic() - killed_at > HURRY * HOLD_SECONDS, "before, the first might still have acted"
            assert [one.document["group"] for one in to.got] == ["a", "b"]
        finally:
            for pod in pods:
                pod.process.kill()
                pod.process.wait()
