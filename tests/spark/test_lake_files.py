"""Tasks read their own part of the lake's files, and of large files not more than that."""

import random
from datetime import UTC, datetime, timedelta
from itertools import chain, pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lagwise.tables import written_files
from lagwise.tables.minutes import WATERMARK_MINUTES
from lagwise_spark.tasks.lake_files import KeyRange, LakeFiles
from lagwise_spark.tasks.row_groups import RowGroup, RowGroups

Key = tuple[str, str, int]
MINUTE = datetime(2026, 3, 1, 12, tzinfo=UTC)
#: Names whose order by bytes is that by code points, and not that of a language.
TOPICS = ("Zeta", "a", "a.b", "é", "\U0001f511")


def keys_of(chance: random.Random, count: int) -> list[Key]:
    return [(chance.choice(["east", "west"]), chance.choice(TOPICS), chance.randrange(40)) for _ in range(count)]


def written(lake: Path, keys: list[Key]) -> LakeFiles:
    """The files of rows with these keys, of one minute."""
    rows = WATERMARK_MINUTES.from_rows(
        {
            **{field.name: 0 for field in WATERMARK_MINUTES.without_day if field.type == pa.int64()},
            "cluster": cluster,
            "topic": topic,
            "partition": partition,
            "minute": MINUTE,
            "first_at": MINUTE + timedelta(seconds=number % 60),
            "last_at": MINUTE + timedelta(seconds=number % 60),
            "points": [],
        }
        for number, (cluster, topic, partition) in enumerate(keys)
    )
    Path(lake, WATERMARK_MINUTES.path).mkdir(parents=True)
    made = LakeFiles(str(lake), {}).write(WATERMARK_MINUTES, rows)
    paths = [f"{lake}/{WATERMARK_MINUTES.path}/{path}" for path in made["path"].to_pylist()]
    return LakeFiles(str(lake), {}, {WATERMARK_MINUTES.name: paths})


def read(files: LakeFiles, within: KeyRange) -> list[Key]:
    rows = files.rows(WATERMARK_MINUTES, ["minute"], within).to_pylist()
    return sorted((row["cluster"], row["topic"], row["partition"]) for row in rows)


def reads_of(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The row groups that are read from files from now on."""
    noted: list[int] = []
    read_one = RowGroups.read

    def note(groups: RowGroups, group: int) -> RowGroup:
        noted.append(group)
        return read_one(groups, group)

    monkeypatch.setattr(RowGroups, "read", note)
    return noted


@pytest.fixture
def small_row_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ROWS_PER_GROUP", "LOGS_PER_GROUP"):
        monkeypatch.setattr(written_files, name, 16)


@pytest.mark.usefixtures("small_row_groups")
def test_every_row_belongs_to_one_range(tmp_path: Path) -> None:
    chance = random.Random(23)
    for number in range(20):
        keys = keys_of(chance, 300)
        files = written(tmp_path / str(number), keys)
        cuts = sorted({*keys_of(chance, 3), *chance.sample(keys, 3)})
        bounds: list[Key | None] = [None, *cuts, None]
        parts = [read(files, KeyRange(a, b)) for a, b in pairwise(bounds)]
        assert list(chain.from_iterable(parts)) == sorted(keys)
        for (a, b), part in zip(pairwise(cuts), parts[1:-1], strict=True):
            assert part == sorted(key for key in keys if a <= key < b)


@pytest.mark.usefixtures("small_row_groups")
def test_row_groups_of_others_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = keys_of(random.Random(5), 320)
    [path] = written(tmp_path, keys).paths[WATERMARK_MINUTES.name]
    assert pq.read_metadata(path).num_row_groups >= 20
    read_groups = reads_of(monkeypatch)
    read(LakeFiles(str(tmp_path), {}, {WATERMARK_MINUTES.name: [path]}), KeyRange(("east", "a", 0), ("east", "a", 20)))
    with pq.ParquetFile(path) as file:
        of_groups = [file.read_row_group(group).to_pylist() for group in range(file.num_row_groups)]
    holding = [
        number
        for number, rows in enumerate(of_groups)
        if any(("east", "a", 0) <= (row["cluster"], row["topic"], row["partition"]) < ("east", "a", 20) for row in rows)
    ]
    assert 0 < len(holding) < 10
    # And those in which another topic begins, or the other cluster: statistics tell of each column by itself.
    assert set(holding) <= set(read_groups)
    assert len(read_groups) <= len(holding) + 2
    read_groups.clear()
    assert read(LakeFiles(str(tmp_path), {}, {WATERMARK_MINUTES.name: [path]}), KeyRange(("zz", "", 0))) == []
    assert read_groups == []
