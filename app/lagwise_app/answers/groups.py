"""The groups that a caller may see, one of them, and its partitions. Rows have the columns of the lake's tables."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import pyarrow as pa

from lagwise.config.visibility import Visibility
from lagwise.domain.vocabulary import is_quiet
from lagwise.tables.analysis import GROUP_STATUS, PARTITION_STATUS
from lagwise.tables.arrow_values import rows_of
from lagwise.tables.store import Lake
from lagwise_app.answers.kept import KeptResult
from lagwise_app.terminal import lake_queries

Row = dict[str, Any]


class UnknownGroup(LookupError):
    """There is no such group, or the caller may not see it: the message is the same for both."""

    def __init__(self, cluster: str, name: str) -> None:
        super().__init__(f"no group {name!r} is known in cluster {cluster!r}")


def visible_groups(lake: Lake, visibility: Visibility) -> list[Row]:
    """All groups that the caller may see, worst first. Raises LakeError."""
    rows = _GROUPS.of(lake)
    return rows if visibility.is_unlimited else [r for r in rows if visibility.shows(r["cluster"], r["group"])]


def groups_in_trouble(lake: Lake, visibility: Visibility) -> list[Row]:
    """The visible groups that need attention, worst first. Raises LakeError."""
    rows = visible_groups(lake, visibility)
    return [row for row in rows if not is_quiet(row["status"], row["state"], row["reason"])]


def group(lake: Lake, cluster: str, name: str, visibility: Visibility) -> Row:
    """The verdict on one group, its sentence and its numbers. Raises UnknownGroup and LakeError."""
    if visibility.shows(cluster, name):
        for row in _GROUPS.of(lake):
            if (row["cluster"], row["group"]) == (cluster, name):
                return row
    raise UnknownGroup(cluster, name)


def partitions(lake: Lake, cluster: str, name: str, visibility: Visibility) -> list[Row]:
    """The partitions of one group, by topic and partition. Raises UnknownGroup and LakeError."""
    group(lake, cluster, name, visibility)
    return _PARTITIONS.of(lake).of(cluster, name)


def matching(
    rows: Iterable[Row], *, clusters: Sequence[str] = (), statuses: Sequence[str] = (), search: str = ""
) -> list[Row]:
    """The rows in one of the clusters and of one of the statuses, where given.

    ``search`` is part of the group's name, in any case, or a shell pattern (``*``, ``?``) for all of it.
    """
    pattern = search.casefold() if set(search) & set("*?") else f"*{_literal(search.casefold())}*"
    return [
        row
        for row in rows
        if (not clusters or row["cluster"] in clusters)
        and (not statuses or row["status"] in statuses)
        and fnmatchcase(row["group"].casefold(), pattern)
    ]


def _literal(text: str) -> str:
    return text.replace("[", "[[]")


@dataclass(frozen=True, slots=True)
class _Partitions:
    """All rows of ``partition_status`` by cluster, group, topic and partition, and where those of each group are."""

    rows: pa.Table
    places: dict[tuple[str, str], tuple[int, int]]

    def of(self, cluster: str, group: str) -> list[Row]:
        return rows_of(self.rows.slice(*self.places.get((cluster, group), (0, 0))))


def _read_partitions(lake: Lake) -> _Partitions:
    columns = ", ".join(f'"{column}"' for column in lake_queries.PARTITION_COLUMNS)
    question = f'select cluster, "group", {columns} from partition_status order by cluster, "group", topic, partition'  # noqa: S608 (own)
    rows = lake.query(question, over=[PARTITION_STATUS])
    places, start = {}, 0
    for run in rows.group_by(["cluster", "group"], use_threads=False).aggregate([([], "count_all")]).to_pylist():
        places[run["cluster"], run["group"]] = start, run["count_all"]
        start += run["count_all"]
    return _Partitions(rows.drop_columns(["cluster", "group"]), places)


_GROUPS = KeptResult(GROUP_STATUS, lake_queries.groups)
#: A round writes the partitions right before the groups.
_PARTITIONS = KeptResult(PARTITION_STATUS, _read_partitions)
