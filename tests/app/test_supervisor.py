"""The supervisor, with real processes: started again with growing pauses, ended together, never outliving it."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from lagwise.platform.errors import LagwiseError
from lagwise_app.supervisor.state_lock import locked
from lagwise_app.supervisor.supervisor import BackOff, ProcessSpec, ProcessState, ProcessStatus, Supervisor

pytestmark = pytest.mark.process

_DEADLINE_SECONDS = 20.0


def until(condition: Callable[[], bool], what: str) -> None:
    """Poll until the condition holds; fail with ``what`` if it never does."""
    deadline = time.monotonic() + _DEADLINE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"still waiting for {what} after {_DEADLINE_SECONDS:.0f} s"
        time.sleep(0.01)


def gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def python(name: str, script: str) -> ProcessSpec:
    return ProcessSpec(name, (sys.executable, "-c", script), dict(os.environ))


class Clock:
    """Monotonic seconds that pass when told to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def only(supervisor: Supervisor) -> ProcessStatus:
    (status,) = supervisor.statuses()
    return status


def wait_for_state(supervisor: Supervisor, state: ProcessState) -> ProcessStatus:
    def reached() -> bool:
        supervisor.step()
        return only(supervisor).state is state

    until(reached, f"the state {state}")
    return only(supervisor)


def test_a_part_runs_and_shows_its_heartbeat(tmp_path: Path) -> None:
    script = f"""
import time; from pathlib import Path; from lagwise.platform import health
health.Heart(Path({str(tmp_path)!r}), "collector").beat("read 3 groups")
time.sleep(60)
"""
    with Supervisor([python("collector", script)], tmp_path) as supervisor:
        until(lambda: only(supervisor).beat_age_seconds is not None, "the heartbeat")
        status = only(supervisor)
        assert (status.state, status.line, status.restarts) == (ProcessState.RUNNING, "read 3 groups", 0)
        assert status.pid == supervisor.pids()["collector"]
        assert str(status) == "collector: running: read 3 groups"


def test_a_part_without_heartbeats_is_shown_by_its_own_line_until_it_ends(tmp_path: Path) -> None:
    script = "print('one page failed', flush=True); import time; time.sleep(60)"
    spec = ProcessSpec("dashboard", (sys.executable, "-c", script), dict(os.environ), "serves http://here")
    with Supervisor([spec], tmp_path) as supervisor:
        until(lambda: "one page failed" in (tmp_path / "logs" / "dashboard.log").read_text(), "its log")
        assert only(supervisor).line == "serves http://here"
        os.kill(supervisor.pids()["dashboard"], signal.SIGKILL)
        assert wait_for_state(supervisor, ProcessState.WAITING).line == "ended by SIGKILL: one page failed"


def test_a_beat_of_an_earlier_run_is_not_this_run_s(tmp_path: Path) -> None:
    from lagwise.platform import health

    health.Heart(tmp_path, "collector").beat("from the day before")
    with Supervisor([python("collector", "import time; time.sleep(60)")], tmp_path) as supervisor:
        assert only(supervisor).beat_age_seconds is None
        assert only(supervisor).line == ""
        health.Heart(tmp_path, "collector").beat("from another process")  # this one, not the child
        assert only(supervisor).line == ""


def test_a_part_that_ends_is_started_again_with_growing_pauses(tmp_path: Path) -> None:
    clock = Clock()
    crash = python("collector", "print('first line'); print('no\\x1b[2J room left'); raise SystemExit(3)")
    back_off = BackOff(first_seconds=2, max_seconds=5, stable_seconds=60)
    with Supervisor([crash], tmp_path, back_off=back_off, clock=clock) as supervisor:
        for restarts, pause in enumerate([2, 4, 5, 5]):
            status = wait_for_state(supervisor, ProcessState.WAITING)
            assert status.retry_in_seconds == pause
            assert status.restarts == restarts
            assert status.line == "ended with exit code 3: no\\x1b[2J room left"
            assert status.pid is None
            clock.now += pause - 0.5
            supervisor.step()
            assert only(supervisor).state is ProcessState.WAITING
            clock.now += 0.5
            supervisor.step()
            assert only(supervisor).state is ProcessState.RUNNING
            assert only(supervisor).restarts == restarts + 1


def test_a_stable_run_resets_the_pause(tmp_path: Path) -> None:
    clock = Clock()
    gate = tmp_path / "gate"
    script = f"import time, pathlib\nwhile not pathlib.Path({str(gate)!r}).exists(): time.sleep(0.01)"
    back_off = BackOff(first_seconds=1, max_seconds=100, stable_seconds=60)
    with Supervisor([python("x", script)], tmp_path, back_off=back_off, clock=clock) as supervisor:
        gate.touch()
        for pause in (1, 2):
            assert wait_for_state(supervisor, ProcessState.WAITING).retry_in_seconds == pause
            clock.now += pause
            supervisor.step()
        wait_for_state(supervisor, ProcessState.WAITING)
        gate.unlink()
        clock.now += 4
        supervisor.step()
        assert only(supervisor).state is ProcessState.RUNNING
        clock.now += 61
        supervisor.step()
        gate.touch()
        assert wait_for_state(supervisor, ProcessState.WAITING).retry_in_seconds == 1


def test_one_part_that_crashes_does_not_touch_the_others(tmp_path: Path) -> None:
    specs = [python("steady", "import time; time.sleep(60)"), python("broken", "raise SystemExit(1)")]
    with Supervisor(specs, tmp_path) as supervisor:
        pid = supervisor.pids()["steady"]

        def broken_waits() -> bool:
            supervisor.step()
            return supervisor.statuses()[1].state is ProcessState.WAITING

        until(broken_waits, "the crash to be noticed")
        assert supervisor.statuses()[0].pid == pid
        assert supervisor.statuses()[0].restarts == 0


@contextmanager
def file_size_limit(pids: Iterable[int]) -> Iterator[None]:
    """While it lasts, these processes and what they start cannot write to any file, as if the disk were full."""
    processes = [psutil.Process(pid) for pid in pids]
    before = [process.rlimit(psutil.RLIMIT_FSIZE) for process in processes]
    for process, (_, hard) in zip(processes, before, strict=True):
        process.rlimit(psutil.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        for process, limits in zip(processes, before, strict=True):
            process.rlimit(psutil.RLIMIT_FSIZE, limits)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux sets the limits of another process")
def test_a_state_folder_that_cannot_be_written_ends_nothing(tmp_path: Path) -> None:
    """First its disk is full, then its folders are somebody else's. Parts go on; those that end are started again."""
    script = f"""
import itertools, time; from pathlib import Path; from lagwise.platform import health, logs
logs.configure("ticker")
heart = health.Heart(Path({str(tmp_path)!r}), "ticker")
for number in itertools.count():
    print(f"tick {{number}}\\n", end="", flush=True)  # in one piece: it may be ended between two
    heart.beat(f"tick {{number}}"); time.sleep(0.01)
"""
    specs = [python("ticker", script), python("crashing", "import time; time.sleep(0.1); 1 / 0")]
    clock = Clock()
    folders = [tmp_path / "logs", tmp_path / "health"]
    log = tmp_path / "logs" / "ticker.log"

    def put_in_place() -> None:
        """In one step, as a link: between two, the folder might be made anew."""
        for folder in folders:
            real, link = folder.with_suffix(".real"), folder.with_suffix(".link")
            real.mkdir(exist_ok=True)
            link.symlink_to(real)
            link.replace(folder)

    put_in_place()

    def go_on(supervisor: Supervisor) -> None:
        """Until the one that crashes has been started again twice."""
        enough = supervisor.statuses()[1].restarts + 2

        def reached() -> bool:
            clock.now += 60
            supervisor.step()
            return supervisor.statuses()[1].restarts >= enough

        until(reached, "restarts")

    def logged(supervisor: Supervisor) -> None:
        """Until the heartbeat is another one, and the log has what the ticker said after it."""
        before = supervisor.statuses()[0].line

        def reached() -> bool:
            supervisor.step()
            line = supervisor.statuses()[0].line
            if line == before or not line:
                return False
            return f"tick {int(line.removeprefix('tick ')) + 1}" in log.read_text().splitlines()

        until(reached, "the log")

    def noticed(supervisor: Supervisor) -> None:
        """Until it says that logs can be written again, and nothing else."""
        said: list[str] = []

        def reached() -> bool:
            supervisor.step()
            said.extend(supervisor.take_notices())
            return bool(said)

        until(reached, "the notice")
        assert said == ["logs can be written again"]

    with Supervisor(specs, tmp_path, clock=clock) as supervisor:
        until(log.exists, "the log")
        logged(supervisor)
        assert supervisor.take_notices() == []
        pid = supervisor.pids()["ticker"]

        with file_size_limit([os.getpid(), pid]):
            go_on(supervisor)
            (begun,) = supervisor.take_notices()
        logged(supervisor)
        assert begun.startswith(f"logs cannot be written ({tmp_path / 'logs'}/")
        assert begun.endswith(".log: File too large); output stays in memory until they can")
        noticed(supervisor)

        for folder in folders:
            another = folder.with_suffix(".another")
            another.write_text("somebody else's")
            another.replace(folder)
        go_on(supervisor)
        (begun,) = supervisor.take_notices()
        put_in_place()
        logged(supervisor)
        assert begun.startswith("logs cannot be written (")
        noticed(supervisor)
        assert (supervisor.pids()["ticker"], supervisor.statuses()[0].restarts) == (pid, 0)

    lines = log.read_text().splitlines()
    ticks = [int(line.removeprefix("tick ")) for line in lines if line.startswith("tick ")]
    assert ticks == list(range(len(ticks)))  # not a line is lost
    said = [line.split(" ", 2)[2] for line in lines if not line.startswith("tick ")]
    beat = f"{tmp_path / 'health' / 'ticker.json'}"
    goes_on = "the process continues; its displayed state is stale"
    assert said == [
        f"WARNING lagwise.health: cannot write {beat}: File too large; {goes_on}",
        f"INFO lagwise.health: {beat} can be written again",
        f"WARNING lagwise.health: cannot write {beat}: Not a directory; {goes_on}",
        f"INFO lagwise.health: {beat} can be written again",
    ]


def test_a_program_that_does_not_exist_is_a_crash_with_its_reason(tmp_path: Path) -> None:
    with Supervisor([ProcessSpec("x", ("/nowhere/at/all",), {})], tmp_path) as supervisor:
        assert "cannot run /nowhere/at/all: No such file" in wait_for_state(supervisor, ProcessState.WAITING).line


def test_death_by_signal_is_named(tmp_path: Path) -> None:
    with Supervisor([python("x", "import os; os.kill(os.getpid(), 9)")], tmp_path) as supervisor:
        assert wait_for_state(supervisor, ProcessState.WAITING).line == "ended by SIGKILL"


_FAMILY = """
import signal, subprocess, sys, time
stubborn_sleep = "import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(600)"
grandchild = subprocess.Popen([sys.executable, "-c", stubborn_sleep], start_new_session={own_session})
if {stubborn}: signal.signal(signal.SIGTERM, signal.SIG_IGN)
print(grandchild.pid, flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize("stubborn", [False, True])
@pytest.mark.parametrize("own_session", [False, True])
def test_stop_ends_the_whole_tree_in_time(tmp_path: Path, stubborn: bool, own_session: bool) -> None:
    with Supervisor(
        [
            python("a", _FAMILY.format(stubborn=stubborn, own_session=own_session)),
            python("b", "import time; time.sleep(600)"),
        ],
        tmp_path,
        grace_seconds=1.0,
    ) as supervisor:
        until(lambda: supervisor.statuses()[0].line.isdigit(), "the grandchild")
        grandchild = int(supervisor.statuses()[0].line)
        pids = [*supervisor.pids().values(), grandchild]
        assert not any(gone(pid) for pid in pids)
        began = time.monotonic()
    assert time.monotonic() - began < (5.0 if stubborn else 1.0)
    assert all(gone(pid) for pid in pids)  # at once, not soon: whoever comes next may want their ports and files


def test_what_a_crashed_part_leaves_behind_is_ended(tmp_path: Path) -> None:
    script = """
import subprocess, sys
print(subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]).pid, flush=True)
"""
    with Supervisor([python("x", script)], tmp_path) as supervisor:
        said = wait_for_state(supervisor, ProcessState.WAITING).line
        orphan = int(said.rpartition(": ")[2])
        until(lambda: gone(orphan), "the orphan to be gone")


@pytest.fixture
def supervising_process(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A process that supervises one sleeper, and the sleeper's pid."""
    script = f"""
import os, sys, time
from pathlib import Path
from lagwise_app.supervisor.supervisor import ProcessSpec, Supervisor
with Supervisor([ProcessSpec("x", (sys.executable, "-c", "import time; time.sleep(600)"), dict(os.environ))],
                Path({str(tmp_path)!r})) as s:
    print(s.pids()["x"], flush=True)
    while True:
        s.step(); time.sleep(0.05)
"""
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    child = int(process.stdout.readline())
    yield process, child
    process.kill()
    process.wait()
    process.stdout.close()


@pytest.mark.skipif(sys.platform != "linux", reason="PR_SET_PDEATHSIG is Linux's")
def test_no_part_survives_the_supervisor_s_sigkill(supervising_process: tuple[subprocess.Popen[str], int]) -> None:
    process, child = supervising_process
    until(lambda: "sleep" in " ".join(psutil.Process(child).cmdline()[-1:]), "the starter to have become the sleeper")
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    until(lambda: gone(child), "the process to be gone")


def test_a_state_folder_has_one_lagwise(tmp_path: Path) -> None:
    with locked(tmp_path), pytest.raises(LagwiseError) as caught, locked(tmp_path):
        pass
    holder = f"process {os.getpid()} on {socket.gethostname()}, since "
    assert str(caught.value).startswith(f"Lagwise already runs on {tmp_path}: {holder}20")
    assert str(caught.value).endswith(" UTC. Stop it first, or choose another folder with --data")
    with locked(tmp_path):
        pass


def test_a_lock_of_a_dead_process_is_free(tmp_path: Path) -> None:
    script = f"""
import os
from pathlib import Path
from lagwise_app.supervisor.state_lock import locked
with locked(Path({str(tmp_path)!r})): os.kill(os.getpid(), 9)
"""
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == -signal.SIGKILL
    assert (tmp_path / "lagwise.lock").exists()
    with locked(tmp_path):
        pass


def test_a_state_folder_that_cannot_be_made_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(LagwiseError, match="cannot write to the state folder"), locked(tmp_path / "file" / "state"):
        pass


@pytest.mark.parametrize(("failures", "seconds"), [(1, 1), (2, 2), (3, 4), (6, 32), (7, 60), (50, 60), (100_000, 60)])
def test_back_off(failures: int, seconds: float) -> None:
    assert BackOff().wait_seconds(failures) == seconds
