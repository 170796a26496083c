"""A lease is one process's at a time: whatever clocks say, however long something takes, whoever dies or hangs."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import pytest
from sqlalchemy import Connection, Engine, event, select

from lagwise.operational import engine as engine_module
from lagwise.operational import lease as lease_module
from lagwise.operational.engine import transaction
from lagwise.operational.lease import (
    HOLD_SECONDS,
    LEASES,
    RENEW_SECONDS,
    TAKE_OVER_SECONDS,
    Lease,
    NotHeld,
    Process,
)
from lagwise.platform.errors import DatabaseError

Open = Callable[[str], Engine]
NOW = datetime(2026, 11, 21, 3, 14, 15, tzinfo=UTC)


class Time:
    """Passes when told to. Each process has a clock of its own, which began anywhere."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def clock(self, ahead: float = 0.0) -> Callable[[], float]:
        return lambda: self.seconds + ahead


def process(host: str, pid: int = 7) -> Process:
    """A process on a machine that is not this one."""
    return Process(host, pid, machine=f"boot of {host}", started=1)


def lease(engine: Engine, time: Time, host: str = "host-a", *, ahead: float = 0.0) -> Lease:
    now = NOW + timedelta(seconds=ahead)
    return Lease(engine, "analysis", process=process(host), clock=time.clock(ahead), now=lambda: now)


class TestOneHolder:
    def test_the_first_holds_it_and_the_second_learns_the_holder(self, url: str, opened: Open) -> None:
        time = Time()
        first, second = lease(opened(url), time), lease(opened(url), time, "host-b", ahead=-86_400)
        first.ask()
        second.ask()
        assert (first.holds(), first.holder) == (True, None)
        assert (second.holds(), second.hold_id) == (False, None)
        assert str(second.holder) == "process 7 on host-a (since 2026-11-21 03:14:15 UTC)"

    def test_it_is_held_as_long_as_it_is_renewed(self, url: str, opened: Open) -> None:
        time = Time()
        first, second = lease(opened(url), time), lease(opened(url), time, "host-b", ahead=1e6)
        for _ in range(30):
            first.ask()
            second.ask()
            assert (first.holds(), second.holds()) == (True, False)
            time.seconds += RENEW_SECONDS

    def test_scopes_have_nothing_to_do_with_each_other(self, url: str, opened: Open) -> None:
        leases = [Lease(opened(url), scope, process=process("host-a")) for scope in ("alerts", "collector shop")]
        for one in leases:
            one.ask()
        assert all(one.holds() for one in leases)

    def test_of_many_that_ask_at_once_one_gets_it(self, url: str, opened: Open) -> None:
        leases = [Lease(opened(url), "analysis", process=process(f"host-{n}")) for n in range(6)]
        with ThreadPoolExecutor(len(leases)) as pool:
            for done in [pool.submit(one.ask) for one in leases]:
                done.result()
        assert [one.trouble for one in leases] == [None] * len(leases)
        assert sum(one.holds() for one in leases) == 1

    def test_a_commit_of_which_nothing_was_heard_is_this_process_s(
        self, url: str, opened: Open, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        first = lease(opened(url), Time())

        @contextmanager
        def without_answer(engine: Engine) -> Iterator[Connection]:
            with transaction(engine) as connection:
                yield connection
            raise DatabaseError("the answer was lost")

        monkeypatch.setattr(lease_module, "transaction", without_answer)
        first.ask()
        assert not first.holds()
        monkeypatch.undo()
        first.ask()
        assert (first.holds(), first.holder) == (True, None)


class TestTakingOver:
    @pytest.mark.parametrize("ahead", [-3600.0, 0.0, 1e9])
    def test_of_a_holder_that_is_gone_within_a_minute(self, url: str, opened: Open, ahead: float) -> None:
        time = Time()
        first, second = lease(opened(url), time), lease(opened(url), time, "host-b", ahead=ahead)
        first.ask()
        until = 0.0
        while not second.holds():
            second.ask()
            assert not (first.holds() and second.holds())
            if first.holds():
                until = time.seconds
            time.seconds += RENEW_SECONDS
        assert until <= HOLD_SECONDS
        assert TAKE_OVER_SECONDS <= time.seconds < 60
        first.ask()
        assert (first.holds(), first.hold_id) == (False, None)
        assert first.holder is not None
        assert first.holder.process.host == "host-b"

    def test_of_one_that_gave_it_back_at_once(self, url: str, opened: Open) -> None:
        time = Time()
        first, second = lease(opened(url), time), lease(opened(url), time, "host-b")
        first.ask()
        second.ask()
        first.give_back()
        assert not first.holds()
        second.ask()
        assert second.holds()
        first.give_back()  # which is no longer its own
        second.ask()
        assert second.holds()

    def test_of_a_process_of_this_machine_that_has_ended_at_once(self, url: str, opened: Open) -> None:
        me = Process.of_this()
        assert not me.has_ended()
        child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
        started = lease_module._started(child.pid)
        alive = replace(me, pid=child.pid, started=started)
        assert not alive.has_ended()
        assert replace(alive, started=(started or 0) - 1).has_ended()  # the number is another process's by now
        assert not replace(alive, machine="another boot").has_ended()
        Lease(opened(url), "analysis", process=alive).ask()
        second = Lease(opened(url), "analysis", process=me)
        second.ask()
        assert not second.holds()
        child.kill()  # a zombie, as long as nobody asks how it ended
        deadline = datetime.now(UTC) + timedelta(seconds=20)
        while not alive.has_ended():
            assert datetime.now(UTC) < deadline
        second.ask()
        assert second.holds()
        child.communicate()
        assert alive.has_ended()

    def test_of_one_that_hangs_and_comes_back(self, url: str, opened: Open) -> None:
        """The clock has gone on meanwhile, so it knows before it has asked anyone."""
        time = Time()
        hung, second = lease(opened(url), time), lease(opened(url), time, "host-b")
        hung.ask()
        second.ask()
        time.seconds += TAKE_OVER_SECONDS
        second.ask()
        assert (hung.holds(), second.holds()) == (False, True)
        assert not hung.asked_lately()
        with pytest.raises(NotHeld, match="has taken over"), transaction(hung._engine) as connection:
            hung.check(connection)

    @pytest.mark.parametrize("seed", range(3))
    def test_never_two_at_a_time(self, tmp_path: Path, opened: Open, seed: int) -> None:
        """Three processes with clocks of their own that ask at random, or hang, on a database that takes its time,
        sometimes longer than a lease lasts; and while one waits for its answer, the others go on."""
        random, time = Random(seed), Time()
        url = f"sqlite:///{tmp_path / 'lagwise.db'}"
        leases: list[Lease] = []

        def check() -> None:
            assert sum(one.holds() for one in leases) <= 1

        def slow(*_: object) -> None:
            time.seconds += random.choice([0.0, 0.0, 0.0, 0.1, 3.0, 12.0, 40.0])
            check()

        def late(waiting: Lease) -> None:
            """The answer to a commit is on its way."""
            others = [one for one in leases if one is not waiting and not one._lock.locked()]
            for _ in range(random.choice([0, 0, 0, 0, 0, 0, 8])):
                for one in others:
                    time.seconds += RENEW_SECONDS
                    one.ask()
                    check()

        for host in range(3):
            engine = opened(url)
            event.listen(engine, "before_cursor_execute", slow)
            event.listen(engine, "commit", slow)
            made = lease(engine, time, f"host-{host}", ahead=random.uniform(-1e6, 1e6))
            event.listen(engine, "checkin", lambda *_, made=made: late(made))
            leases.append(made)
        holders: list[int] = []
        for _ in range(60):
            time.seconds += random.choice([1.0, RENEW_SECONDS, RENEW_SECONDS, 2 * RENEW_SECONDS])
            check()
            asking = random.choice(leases)
            if random.random() < 0.05:
                asking.give_back()
            else:
                asking.ask()
            check()
            holders += [n for n, one in enumerate(leases) if one.holds() and holders[-1:] != [n]]
        assert len(holders) > 1


class TestFencing:
    def test_nothing_is_kept_of_a_transaction_of_one_that_lost_it(self, url: str, opened: Open) -> None:
        time = Time()
        first, second = lease(opened(url), time), lease(opened(url), time, "host-b")
        first.ask()
        with transaction(first._engine) as connection:
            first.check(connection)
        first.give_back()
        second.ask()
        for one in (first, lease(opened(url), time, "host-c")):
            with pytest.raises(NotHeld), transaction(one._engine) as connection:
                one.check(connection)

    def test_no_takeover_in_the_middle_of_a_transaction(
        self, url: str, opened: Open, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(engine_module, "BUSY_SECONDS", 0.1)
        time = Time()
        first, second = lease(opened(url), time), lease(opened(url), time, "host-b")
        first.ask()
        second.ask()
        time.seconds += TAKE_OVER_SECONDS
        with transaction(first._engine) as connection:
            first.check(connection)
            second.ask()
            assert second.trouble is not None
        second.ask()
        assert (second.trouble, second.holds()) == (None, True)


class TestTrouble:
    def test_a_database_that_cannot_be_asked_for_a_while(self, tmp_path: Path, opened: Open) -> None:
        time, folder = Time(), tmp_path / "state"
        first = lease(opened(f"sqlite:///{folder / 'lagwise.db'}"), time)
        folder.write_text("in the way")
        first.ask()
        assert "cannot make the folder of the database" in str(first.trouble)
        assert not first.holds()
        time.seconds += 8
        assert first.unreachable_seconds() == 8
        folder.unlink()
        first.ask()
        assert (first.trouble, first.unreachable_seconds(), first.holds()) == (None, 0.0, True)
        hold_id = first.hold_id

        with transaction(first._engine) as connection:
            LEASES.drop(connection)
        time.seconds += HOLD_SECONDS - 1
        first.ask()
        assert "no such table" in str(first.trouble)
        assert (first.holds(), first.holds(for_seconds=2)) == (True, False)
        first.ask()  # makes the table again
        assert (first.trouble, first.holds(for_seconds=2), first.hold_id) == (None, True, hold_id)
        with transaction(first._engine, read_only=True) as connection:
            assert connection.scalar(select(LEASES.c.hold_id)) == hold_id
