"""Files that are replaced as a whole, and files that a part can do without."""

import logging
import stat
from pathlib import Path

import pytest

from lagwise.platform.files import BestEffortFile, replace_file, replacing

log = logging.getLogger("lagwise.test")


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_is_replaced_and_can_be_read_by_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "new" / "state"
    replace_file(path, b"old")
    replace_file(path, b"new", durable=True)
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert names(path.parent) == ["state"]


def test_whatever_fails_leaves_the_old_content_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "state"
    replace_file(path, b"old")
    with pytest.raises(TypeError), replacing(path) as file:
        file.writelines([b"half", None])  # type: ignore[list-item]  # the write that fails
    assert path.read_bytes() == b"old"
    path.unlink()
    path.mkdir()
    with pytest.raises(IsADirectoryError):
        replace_file(path, b"new")
    assert names(tmp_path) == ["state"]


def test_a_failing_write_is_logged_once_and_so_is_its_recovery(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "lagwise")
    folder = tmp_path / "state"
    folder.write_text("somebody else's")
    kept = BestEffortFile(folder / "x.json", log, "it is known anew after a restart")
    assert [kept.write(b"1"), kept.write(b"2")] == [False, False]
    folder.unlink()
    assert [kept.write(b"3"), kept.write(b"4")] == [True, True]
    assert [(r.levelname, r.getMessage()) for r in caplog.records] == [
        ("WARNING", f"cannot write {kept.path}: Not a directory; it is known anew after a restart"),
        ("INFO", f"{kept.path} can be written again"),
    ]
    assert kept.path.read_bytes() == b"4"
