"""How row groups of data files are cut and joined."""

import pyarrow as pa
import pytest

from lagwise.tables.written_files import joined_groups


@pytest.mark.parametrize(
    ("sizes", "joined"),
    [
        ([], []),
        ([0], [0]),
        ([4, 6, 1], [10, 1]),
        ([10, 10], [10, 10]),
        ([1, 12, 1], [1, 12, 1]),
        ([3, 3, 3, 3], [9, 3]),
    ],
)
def test_small_groups_are_joined_and_large_ones_are_left_alone(sizes: list[int], joined: list[int]) -> None:
    first, groups = 0, []
    for size in sizes:
        groups.append(
            pa.table({"number": list(range(first, first + size))}, schema=pa.schema([("number", pa.int64())]))
        )
        first += size
    made = list(joined_groups(groups, 10))
    assert [part.num_rows for part in made] == joined
    assert [number for part in made for number in part["number"].to_pylist()] == list(range(first))
