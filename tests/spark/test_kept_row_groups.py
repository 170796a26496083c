"""What a worker has read of files that rounds read again, it does not read again."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from lagwise.tables.minutes import WATERMARK_MINUTES
from lagwise_spark.tasks import lake_files
from lagwise_spark.tasks.kept_row_groups import KeptRowGroups
from lagwise_spark.tasks.lake_files import KeyRange, LakeFiles
from tests.spark.test_lake_files import read, reads_of, written

KEYS = [("east", "a", n) for n in range(40)]
#: A range that begins within a row group, and one that ends there.
LEFT, RIGHT = KeyRange(None, ("east", "a", 20)), KeyRange(("east", "a", 20), None)


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> KeptRowGroups:
    made = KeptRowGroups()
    monkeypatch.setattr(lake_files, "KEPT", made)
    return made


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    return reads_of(monkeypatch)


def keeping(files: LakeFiles) -> LakeFiles:
    return replace(files, kept=frozenset({WATERMARK_MINUTES.name}))


def test_it_is_read_once(tmp_path: Path, kept: KeptRowGroups, reads: list[int]) -> None:
    files = keeping(written(tmp_path, KEYS))
    for _ in range(2):
        assert read(files, LEFT) == KEYS[:20]
        assert read(files, RIGHT) == KEYS[20:]
    assert reads == [0]
    assert kept.bytes > 0


def test_other_tables_are_read_each_time(tmp_path: Path, kept: KeptRowGroups, reads: list[int]) -> None:
    files = written(tmp_path, KEYS)
    assert [read(files, LEFT) for _ in range(2)] == [KEYS[:20]] * 2
    assert reads == [0, 0]
    assert kept.bytes == 0


def test_what_the_table_no_longer_has_is_forgotten(tmp_path: Path, kept: KeptRowGroups) -> None:
    one, other = (keeping(written(tmp_path / name, KEYS)) for name in ("one", "other"))
    both = replace(one, paths={name: [*its, *other.paths[name]] for name, its in one.paths.items()})
    read(both, LEFT)
    of_both = kept.bytes
    read(one, LEFT)
    assert kept.bytes == of_both / 2
    read(replace(one, paths={}), LEFT)
    assert kept.bytes == 0


def test_a_file_that_changes_is_read_again(tmp_path: Path, kept: KeptRowGroups) -> None:
    """Files of a lake do not; one that a disk damages must not go unnoticed because it is kept."""
    files = keeping(written(tmp_path, KEYS))
    [path] = files.paths[WATERMARK_MINUTES.name]
    read(files, LEFT)
    content = Path(path).read_bytes()
    Path(path).write_bytes(content[: len(content) // 2])
    with pytest.raises(OSError, match=r"cannot read .*part-"):
        read(files, LEFT)
    os.remove(path)
    with pytest.raises(OSError, match=r"cannot read .*part-"):
        read(files, LEFT)
    assert kept.bytes == 0


def test_no_more_than_so_much_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reads: list[int]) -> None:
    """What has no room is read each time, and pushes nothing out."""
    files = [keeping(written(tmp_path / str(n), KEYS)) for n in range(3)]
    paths = [path for its in files for path in its.paths[WATERMARK_MINUTES.name]]
    together = replace(files[0], paths={WATERMARK_MINUTES.name: paths})
    every = sorted([*KEYS, *KEYS, *KEYS])
    one = KeptRowGroups()
    monkeypatch.setattr(lake_files, "KEPT", one)
    assert read(together, KeyRange()) == every
    room_for_two = KeptRowGroups(one.bytes * 2 // 3)
    monkeypatch.setattr(lake_files, "KEPT", room_for_two)
    reads.clear()
    for _ in range(3):
        assert read(together, KeyRange()) == every
    assert len(reads) == 3 + 1 + 1
    assert room_for_two.bytes == one.bytes * 2 // 3
