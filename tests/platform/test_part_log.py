"""Logs of parts stay small and their last line is harmless."""

import os
from pathlib import Path

import pytest

from lagwise.errors import LagwiseError
from lagwise.part_log import KEPT, PartLog


def log(folder: Path) -> PartLog:
    return PartLog(folder, "x", most_bytes=100)


def write(made: PartLog, text: str) -> None:
    with made.open() as file:
        file.write(text.encode())


def test_a_new_run_appends_to_a_small_file(tmp_path: Path) -> None:
    made = log(tmp_path)
    write(made, "one\n")
    write(made, "two\n")
    assert made.path.read_text() == "one\ntwo\n"


def test_a_new_run_sets_a_large_file_aside_and_few_are_kept(tmp_path: Path) -> None:
    made = log(tmp_path)
    for number in range(6):
        write(made, f"{number}" * 101)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["x.log", *(f"x.log.{n + 1}" for n in range(KEPT))]
    assert [made.path.read_text()[0], *(made.path.with_name(f"x.log.{n + 1}").read_text()[0] for n in range(KEPT))] == [
        "5",
        "4",
        "3",
        "2",
    ]


def test_a_file_that_grows_while_the_process_writes_is_emptied_under_it(tmp_path: Path) -> None:
    made = log(tmp_path)
    with made.open() as file:
        descriptor = os.dup(file.fileno())  # as the child process has it
        os.write(descriptor, b"a" * 101)
        made.limit()
        os.write(descriptor, b"b\n")
        made.limit()
        os.close(descriptor)
    assert made.path.read_bytes() == b"b\n"
    assert made.path.with_name("x.log.1").read_bytes() == b"a" * 101


def test_the_last_line_is_this_run_s_and_harmless(tmp_path: Path) -> None:
    made = log(tmp_path)
    assert made.last_line() == ""
    write(made, "before\n")
    assert made.last_line() == "before"
    made.open()
    assert made.last_line() == ""
    made.close()
    write(made, "first\nlost http://u:pw@h\x1b[2J\n\n   \n")
    assert made.last_line() == "lost http://u:[redacted]@h\\x1b[2J"


def test_bytes_that_are_no_text_are_still_a_line(tmp_path: Path) -> None:
    made = log(tmp_path)
    with made.open() as file:
        file.write(b"\xff\xfe broken\n")
    assert made.last_line().endswith("broken")


def test_a_folder_that_cannot_be_written_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(LagwiseError, match="cannot write the log"):
        PartLog(tmp_path / "file" / "logs", "x").open()
