"""Whose turn it is, with a database that answers and with one that does not; and what is said of it."""

import logging
import re
import threading
import time as time_module
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from sqlalchemy import Engine, select
from sqlalchemy.event import listen

from lagwise.operational import lease as lease_module
from lagwise.operational.leadership import Leadership, NotLeader, Renewal
from lagwise.operational.lease import HOLD_SECONDS, LEASES, RENEW_SECONDS, TAKE_OVER_SECONDS, Lease, Process
from lagwise.platform.errors import LakeError
from tests.fixtures.postgresql import PostgresServer
from tests.operational.test_lease import Time, process

Open = Callable[[str], Engine]
log = logging.getLogger("lagwise.test")


@dataclass
class Mark:
    """What a lake says of who wrote last."""

    of: int | None = None
    trouble: LakeError | None = None

    def __call__(self) -> int | None:
        if self.trouble is not None:
            raise self.trouble
        return self.of


@dataclass
class Side:
    """One process's turn."""

    engine: Engine
    time: Time
    host: str = "host-a"
    mark: Mark = field(default_factory=Mark)

    def __post_init__(self) -> None:
        self.lease = Lease(self.engine, "analysis", process=process(self.host), clock=self.time.clock())
        self.turn = Leadership(self.lease, "the analysis", log, mark=self.mark)


def logged(caplog: pytest.LogCaptureFixture) -> list[str]:
    lines = [record.getMessage() for record in caplog.records]
    caplog.clear()
    return lines


@pytest.fixture(autouse=True)
def _everything_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "lagwise")


def test_a_process_waits_for_the_holder_and_takes_over_from_it(
    url: str, opened: Open, caplog: pytest.LogCaptureFixture
) -> None:
    time = Time()
    first, second = Side(opened(url), time), Side(opened(url), time, "host-b")
    lost: list[str] = []
    first.turn.lost = lambda: lost.append("first")
    first.turn.ask()
    second.turn.ask()
    second.turn.ask()
    assert first.turn.why_not() is None
    first.turn.check()
    reason = f"process 7 on host-a (since {first.lease._now():%Y-%m-%d %H:%M:%S} UTC) runs the analysis"
    assert second.turn.why_not() == reason
    with pytest.raises(NotLeader, match=re.escape(reason)):
        second.turn.check()
    (waits,) = logged(caplog)
    assert waits == f"{reason}; this process is on standby"

    time.seconds += TAKE_OVER_SECONDS  # the first one hangs
    second.turn.ask()
    assert second.turn.why_not() is None
    assert logged(caplog) == ["this process now runs the analysis"]
    assert lost == []
    why = str(first.turn.why_not())  # it comes back, and asks
    assert why.startswith("process 7 on host-b")
    assert why.endswith("runs the analysis")
    assert lost == ["first"]
    assert len(logged(caplog)) == 1


@pytest.mark.process
def test_without_the_server_the_leader_continues_and_no_other_starts(
    postgresql: str, postgres_server: PostgresServer, opened: Open, caplog: pytest.LogCaptureFixture
) -> None:
    time = Time()
    mark = Mark(of=1)  # of a holder before
    first, second = (Side(opened(postgresql), time, host, mark) for host in ("host-a", "host-b"))
    fresh = Side(opened(postgresql), time, "host-c", mark)
    first.turn.ask()
    second.turn.ask()
    logged(caplog)
    name = first.engine.url.database
    postgres_server.execute(
        f"alter database {name} allow_connections false",
        f"select pg_terminate_backend(pid) from pg_stat_activity where datname = '{name}'",
    )
    sides = (first, second, fresh)
    for side in sides:
        side.turn.ask()
    lines = logged(caplog)
    assert len(lines) == 2, lines  # the holder has nothing to say yet: its lease holds
    for _ in range(20):
        time.seconds += RENEW_SECONDS
        for side in sides:
            side.turn.ask()
    assert first.turn.why_not() is None
    why = str(second.turn.why_not())
    assert why.startswith("process 7 on host-a")
    assert why.endswith("runs the analysis")
    assert str(fresh.turn.why_not()).startswith("whether another process runs the analysis is unknown: cannot use")
    (line,) = logged(caplog)
    assert line.endswith("whether another process runs the analysis is unknown, and this one goes on")

    assert first.lease.hold_id is not None
    mark.of = first.lease.hold_id
    assert first.turn.why_not() is None
    mark.trouble = LakeError("the lake is away, too")
    assert first.turn.why_not() == "the lake is away, too"
    mark.of, mark.trouble = 12345, None  # one that could ask the database has taken over
    assert str(first.turn.why_not()).startswith("according to the lake, another process has taken over the analysis")

    postgres_server.execute(f"alter database {name} allow_connections true")
    for side in sides:
        side.turn.ask()
    assert [side.turn.why_not() is None for side in sides] == [True, False, False]
    again = "the operational database is reachable again"
    assert logged(caplog).count(again) == 3


def test_an_unusable_local_database_file_is_not_waited_for(
    tmp_path: Path, opened: Open, caplog: pytest.LogCaptureFixture
) -> None:
    """No other machine could ask it, and no process of this one can."""
    time, folder = Time(), tmp_path / "state"
    folder.write_text("somebody else's")
    side = Side(opened(f"sqlite:///{folder / 'lagwise.db'}"), time)
    side.turn.ask()
    assert str(side.turn.why_not()).startswith("whether another process runs the analysis is unknown: cannot make")
    for _ in range(10):
        time.seconds += RENEW_SECONDS
        side.turn.ask()
        assert (side.turn.why_not() is None) == (time.seconds >= HOLD_SECONDS)
    assert [line.rpartition(", ")[2] for line in logged(caplog)] == ["and this one waits", "and this one goes on"]
    folder.unlink()
    side.turn.ask()
    assert side.lease.holds()


def test_something_done_once_is_refused_where_the_holder_lives(url: str, opened: Open) -> None:
    first = Lease(opened(url), "analysis")
    first.ask()
    second = Leadership(Lease(opened(url), "analysis"), "the analysis", log)
    me = Process.of_this()
    with (
        pytest.raises(
            NotLeader, match=rf"process {me.pid} on {me.host} \(since .* UTC\) runs the analysis: stop that one first"
        ),
        second.taken(),
    ):
        raise AssertionError("not reached")
    first.give_back()
    with Leadership(Lease(opened(url), "analysis"), "the analysis", log).taken() as turn:
        assert turn.why_not() is None
        first.ask()
        assert not first.holds()
    first.ask()
    assert first.holds()


def test_the_leases_of_a_process_are_renewed_together(url: str, opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease_module, "RENEW_SECONDS", 0.02)
    engine, renewal, commits = opened(url), Renewal(), []
    scopes = [f"collector {name}" for name in ("c", "a", "b")]
    turns = [Leadership(Lease(engine, scope), f"the {scope}", log, renewal=renewal) for scope in scopes]

    def renewals() -> list[int]:
        with engine.connect() as connection:
            rows = connection.execute(select(LEASES.c.renewals).where(LEASES.c.hold_id.is_not(None)))
            return sorted(rows.scalars().all())

    def renewed(count: int) -> bool:
        return bool(renewals()) and renewals()[0] >= count

    for turn in turns:
        turn.start()
    listen(engine, "commit", commits.append)
    until(lambda: renewed(5))
    turns[0].stop()
    done = renewals()
    assert len(done) == 2  # one is given back
    assert done[0] == done[1] or done[1] - done[0] <= 1  # started one after the other
    assert len(commits) <= done[1] + 2  # and not three times as many
    until(lambda: renewed(done[1] + 3))
    assert [turn.why_not() for turn in turns[1:]] == [None, None]
    for turn in turns[1:]:
        turn.stop()
    assert renewals() == []
    assert not any(thread.name == "leases" for thread in threading.enumerate())


def until(condition: Callable[[], bool]) -> None:
    deadline = time_module.monotonic() + 60
    while not condition():
        assert time_module.monotonic() < deadline
        time_module.sleep(0.01)
