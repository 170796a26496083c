"""What Lagwise keeps is for its own user: no other account of the machine can read logs, heartbeats or the database."""

import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lagwise.config import Config
from lagwise.platform import health, private_files
from lagwise_alerts.outbox.database import create_tables, open_engine
from lagwise_app.doctor.checks import diagnoses
from lagwise_app.doctor.diagnosis import CheckResult
from lagwise_app.supervisor.effective_settings import write_settings
from lagwise_app.supervisor.process_log import ProcessLog
from lagwise_app.supervisor.state_lock import locked


@pytest.fixture(autouse=True)
def _generous_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def modes(folder: Path) -> dict[str, int]:
    """The mode of a folder (".") and of everything in it."""
    return {str(one.relative_to(folder)): stat.S_IMODE(one.lstat().st_mode) for one in (folder, *folder.rglob("*"))}


def keep_state(state: Path) -> None:
    """What the parts keep, and a log that became too large twice."""
    write_settings(Config(state_dir=state))
    health.Heart(state, health.ALERTS).beat("well")
    log = ProcessLog(state / "logs", "alerts", max_bytes=10)
    for _ in range(3):
        log.write(b"more than ten bytes")
    log.close()
    create_tables(engine := open_engine(f"sqlite:///{state / 'lagwise.db'}"))
    with engine.connect(), locked(state):
        found = modes(state)
    engine.dispose()
    assert {mode for name, mode in found.items() if (state / name).is_dir()} == {0o700}, found
    assert {mode for name, mode in found.items() if not (state / name).is_dir()} == {0o600}, found
    assert {"lagwise.db-journal", "logs/alerts.log.2", "health/alerts.json", "lagwise.lock"} <= found.keys()


def test_state_is_private_whatever_the_umask_says(tmp_path: Path) -> None:
    keep_state(tmp_path / "var" / "state")
    assert modes(tmp_path)["var"] == 0o700


def test_an_empty_folder_is_taken_over_and_one_in_use_keeps_its_own_mode(tmp_path: Path) -> None:
    empty, used = tmp_path / "empty", tmp_path / "used"
    for folder in (empty, used):
        folder.mkdir(mode=0o755)
    (used / "notes.txt").touch(mode=0o644)
    for folder in (empty, used):
        private_files.make_state_folder(folder)
    assert (modes(empty), modes(used)) == ({".": 0o700}, {".": 0o755, "notes.txt": 0o644})


def test_what_an_earlier_lagwise_left_open_is_closed(tmp_path: Path) -> None:
    keep_state(tmp_path)
    for one in tmp_path.rglob("*"):
        if ".log." not in one.name:  # full logs stay as they are, in a folder that is closed
            one.chmod(0o755 if one.is_dir() else 0o644)
    keep_state(tmp_path)


@pytest.mark.process
def test_a_part_closes_the_folder_before_it_fills_it(tmp_path: Path) -> None:
    state = tmp_path / "data"
    ran = subprocess.run(
        [sys.executable, "-m", "lagwise", "alert", "--once", "--data", str(state)],
        env={k: v for k, v in os.environ.items() if not k.startswith("LAGWISE_")},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "Traceback" not in ran.stderr
    found = modes(state)
    assert (found["."], found["lagwise.db"]) == (0o700, 0o600)


def test_the_doctor_says_how_an_open_folder_is_closed(tmp_path: Path) -> None:
    state = tmp_path / "our data"
    state.mkdir(mode=0o750)

    def diagnosis() -> tuple[CheckResult, str | None]:
        [found] = [
            d
            for d in diagnoses(Config(data=str(state), dashboard={"port": 0}), start_spark=False)
            if d.check == "state folder"
        ]
        return found.result, found.advice

    assert diagnosis() == (CheckResult.WARNING, f"chmod 700 '{state}'")
    state.chmod(0o700)
    assert diagnosis() == (CheckResult.OK, None)
