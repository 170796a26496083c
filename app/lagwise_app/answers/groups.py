"""The groups that a caller may see, one of them, and its partitions. Rows have the columns of the lake's tables."""

from typing import Any

from lagwise.config.visibility import Visibility
from lagwise.domain.vocabulary import is_quiet
from lagwise.tables.store import Lake
from lagwise_app.terminal import lake_queries

Row = dict[str, Any]


class UnknownGroup(LookupError):
    """There is no such group, or the caller may not see it: the message is the same for both."""


def groups_in_trouble(lake: Lake, visibility: Visibility) -> list[Row]:
    """The visible groups that need attention, worst first. Raises LakeError."""
    return [row for row in _visible(lake, visibility) if not is_quiet(row["status"], row["state"], row["reason"])]


def group(lake: Lake, cluster: str, name: str, visibility: Visibility) -> Row:
    """The verdict on one group, its sentence and its numbers. Raises UnknownGroup and LakeError."""
    for row in _visible(lake, visibility):
        if (row["cluster"], row["group"]) == (cluster, name):
            return row
    raise UnknownGroup(f"no group {name!r} is known in cluster {cluster!r}")


def partitions(lake: Lake, cluster: str, name: str, visibility: Visibility) -> list[Row]:
    """The partitions of one group, by topic and partition. Raises UnknownGroup and LakeError."""
    group(lake, cluster, name, visibility)
    return lake_queries.partitions(lake, name, cluster)


def _visible(lake: Lake, visibility: Visibility) -> list[Row]:
    return [row for row in lake_queries.groups(lake) if visibility.shows(row["cluster"], row["group"])]
