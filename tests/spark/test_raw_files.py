"""Raw samples read from data files without a JVM."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lagwise.tables.raw import COMMITS
from lagwise.tables.repair import repairing
from lagwise.tables.store import Lake
from lagwise_spark.transforms.raw_files import Files, batches
from tests.app.judged import append, row
from tests.tables.test_repair import cut, rot


@pytest.mark.parametrize("damage", [Path.unlink, cut, rot])
def test_a_damaged_file_is_named_so_that_it_can_be_quarantined(lake: Lake, damage: Callable[[Path], Any]) -> None:
    at = datetime(2026, 3, 3, 12, tzinfo=UTC)
    for name in "ab":
        append(lake, COMMITS, row(COMMITS, cluster="c", sample_id=name, sampled_at=at, committed=5))
    damage(Path(lake.files(COMMITS)[0]))

    def read() -> int:
        paths = tuple((file, ("sample_id", "committed")) for file in lake.files(COMMITS))
        columns = {"sample_id": pa.string(), "committed": pa.int64()}
        return sum(batch.num_rows for batch in batches(Files(paths, "c", frozenset("ab"), columns)))

    with pytest.raises(OSError, match=Path(lake.files(COMMITS)[0]).name):
        read()
    assert repairing(lake, read) == 1
