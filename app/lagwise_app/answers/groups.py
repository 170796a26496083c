"""The groups that a caller may see, and one of them. Rows have the columns of the lake's tables."""

import fnmatch
import re
from collections.abc import Iterable, Sequence
from typing import Any

from lagwise.config.visibility import Visibility
from lagwise.domain.vocabulary import is_quiet
from lagwise.tables.analysis import GROUP_STATUS
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
    return [row for key, row in rows.items() if visibility.is_unlimited or visibility.shows(*key)]


def in_trouble(rows: Iterable[Row]) -> list[Row]:
    """Those groups that need attention."""
    return [row for row in rows if not is_quiet(row["status"], row["state"], row["reason"])]


def group(lake: Lake, cluster: str, name: str, visibility: Visibility) -> Row:
    """The verdict on one group, its sentence and its numbers. Raises UnknownGroup and LakeError."""
    row = _GROUPS.of(lake).get((cluster, name))
    if row is None or not visibility.shows(cluster, name):
        raise UnknownGroup(cluster, name)
    return row


def matching(
    rows: Iterable[Row], *, clusters: Sequence[str] = (), statuses: Sequence[str] = (), search: str = ""
) -> list[Row]:
    """The rows in one of the clusters and of one of the statuses, where given.

    ``search`` is part of the group's name, in any case, or a shell pattern (``*``, ``?``) for all of it.
    """
    text = search.casefold()
    pattern = re.compile(fnmatch.translate(text)) if set(text) & set("*?") else None
    return [
        row
        for row in rows
        if (not clusters or row["cluster"] in clusters)
        and (not statuses or row["status"] in statuses)
        and (text in row["group"].casefold() if pattern is None else pattern.match(row["group"].casefold()))
    ]


def _read(lake: Lake) -> dict[tuple[str, str], Row]:
    return {(row["cluster"], row["group"]): row for row in lake_queries.groups(lake)}


_GROUPS = KeptResult(GROUP_STATUS, _read)
