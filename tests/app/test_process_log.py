"""Logs of processes stay small, their last line is harmless, and a disk that refuses them loses as little as can be."""

import resource
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lagwise.platform.errors import LagwiseError
from lagwise_app.supervisor.process_log import ROTATED_FILES, ProcessLog


def log(folder: Path) -> ProcessLog:
    return ProcessLog(folder, "x", max_bytes=100)


@contextmanager
def full_disk() -> Iterator[None]:
    """A limit on the size of files refuses what is written, of root too, and by descriptors that are open already."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_new_run_appends_to_a_small_file(tmp_path: Path) -> None:
    for line in (b"one\n", b"two\n"):
        made = log(tmp_path)
        made.open()
        made.write(line)
        made.close()
    assert made.path.read_text() == "one\ntwo\n"


def test_a_large_file_is_set_aside_and_few_are_kept(tmp_path: Path) -> None:
    made = log(tmp_path)
    for number in range(6):
        made.write(f"{number}".encode() * 101)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["x.log", *(f"x.log.{n + 1}" for n in range(ROTATED_FILES))]
    files = [made.path, *(made.path.with_name(f"x.log.{n + 1}") for n in range(ROTATED_FILES))]
    assert [file.read_text()[0] for file in files] == ["5", "4", "3", "2"]
    made.close()


def test_a_large_file_that_cannot_be_set_aside_is_emptied(tmp_path: Path) -> None:
    made = log(tmp_path)
    made.write(b"a" * 101)
    (tmp_path / "x.log.1").mkdir()
    (tmp_path / "x.log.2").write_text("in the way of the folder")
    made.write(b"b")
    assert made.path.read_bytes() == b"b"
    made.close()


def test_the_last_line_is_this_run_s_and_harmless(tmp_path: Path) -> None:
    made = log(tmp_path)
    assert made.last_line() == ""
    made.write(b"before\n")
    assert made.last_line() == "before"
    made.start_run()
    assert made.last_line() == ""
    made.write(b"first\nlost http://u:pw@h\x1b[2J\n\n   \n")
    assert made.last_line() == "lost http://u:[redacted]@h\\x1b[2J"
    made.write(b"\xff\xfe broken\n")
    assert made.last_line().endswith("broken")
    made.close()


def test_a_folder_that_cannot_be_written_at_the_start_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(LagwiseError, match=r"cannot write the log .*/x\.log: "):
        ProcessLog(tmp_path / "file" / "logs", "x").open()


def test_what_a_full_disk_refuses_is_written_when_there_is_room(tmp_path: Path) -> None:
    made = ProcessLog(tmp_path, "x")
    made.write(b"before\n")
    assert made.error is None
    with full_disk():
        made.write(b"one\n")
        made.write(b"two\n")
        made.retry()
        assert made.error == "File too large"
        assert made.last_line() == "two"
    made.retry()
    assert made.error is None
    assert made.path.read_text() == "before\none\ntwo\n"
    made.close()


def test_a_folder_that_is_moved_away_and_comes_back_has_everything(tmp_path: Path) -> None:
    folder, aside = tmp_path / "logs", tmp_path / "aside"
    made = ProcessLog(folder, "x")
    made.write(b"before\n")
    folder.rename(aside)
    folder.write_text("somebody else's")
    made.write(b"meanwhile\n")
    assert made.error is not None
    folder.unlink()
    aside.rename(folder)
    made.write(b"after\n")
    assert made.error is None
    assert made.path.read_text() == "before\nmeanwhile\nafter\n"
    made.close()


def test_a_removed_file_is_created_again(tmp_path: Path) -> None:
    made = ProcessLog(tmp_path / "logs", "x")
    made.write(b"before\n")
    shutil.rmtree(tmp_path / "logs")
    made.write(b"after\n")
    assert made.path.read_text() == "after\n"
    made.close()


def test_only_the_newest_output_waits_in_memory(tmp_path: Path) -> None:
    made = ProcessLog(tmp_path, "x", max_pending_bytes=1000)
    with full_disk():
        for number in range(1000):
            made.write(f"line {number}\n".encode())
    made.retry()
    first, *lines = made.path.read_text().splitlines()
    assert first == "[the log could not be written for some time: earlier output is lost]"
    assert lines[-1] == "line 999"
    assert 80 < len(lines) < 120
    assert all(line.startswith("line ") for line in lines)
    made.close()
