"""Which groups the terminal shows: those in trouble, worst first, with a count of the others."""

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from lagwise.domain.vocabulary import is_quiet
from lagwise.tables.analysis import GROUP_STATUS
from lagwise.tables.arrow_values import rows_of
from lagwise.tables.store import Lake
from lagwise_app.terminal.lake_queries import worst_first

#: Cluster and group.
Key = tuple[str, str]
Row = Mapping[str, Any]

_COLUMNS = """
    select cluster, "group", status, state, reason, lag, lag_seconds, lag_seconds_is_lower_bound, sentence
    from group_status
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusFilters:
    """Which groups to show. A filter that is empty or None matches everything.

    ``patterns`` are shell patterns (``*``, ``?``) for the whole name of a group; one must match. ``owned`` returns for
    a cluster and a group whether one of the requested teams owns it.
    """

    statuses: frozenset[str] = frozenset()
    clusters: frozenset[str] = frozenset()
    patterns: tuple[str, ...] = ()
    owned: Callable[[str, str], bool] | None = None

    @property
    def are_set(self) -> bool:
        return bool(self.statuses or self.clusters or self.patterns or self.owned)

    def match(self, row: Row) -> bool:
        """Whether a group matches all filters."""
        cluster, group = row["cluster"], row["group"]
        return (
            (not self.statuses or row["status"] in self.statuses)
            and (not self.clusters or cluster in self.clusters)
            and (not self.patterns or any(fnmatchcase(group, pattern) for pattern in self.patterns))
            and (self.owned is None or self.owned(cluster, group))
        )


def read_groups(lake: Lake) -> dict[Key, Row]:
    """The rows of the newest version of ``group_status``. Raises LakeError."""
    found = lake.select(_COLUMNS, GROUP_STATUS)
    return {} if found is None else {(row["cluster"], row["group"]): row for row in rows_of(found)}


@dataclass(frozen=True, slots=True)
class Overview:
    """The groups to show, and how many there are."""

    #: Worst first.
    rows: list[Row]
    #: How many of the rows are requested. The others have changed a moment ago.
    wanted: int
    #: Number of matching groups that are not shown, by status: they need no attention.
    hidden: Mapping[str, int]
    #: Number of groups that match the filters.
    matching: int
    total: int


def overview(
    groups: Mapping[Key, Row], filters: StatusFilters, *, everything: bool, also: Collection[Key] = ()
) -> Overview:
    """The groups that match.

    Those that need no attention are only counted, unless ``everything`` or a status is requested. The groups in
    ``also`` are shown in any case, if they still exist.
    """
    matching = {key: row for key, row in groups.items() if filters.match(row)}
    everything = everything or bool(filters.statuses)
    wanted = {
        key for key, row in matching.items() if everything or not is_quiet(row["status"], row["state"], row["reason"])
    }
    shown = wanted | {key for key in also if key in groups}
    hidden = Counter(row["status"] for key, row in matching.items() if key not in shown)
    rows = sorted((groups[key] for key in shown), key=worst_first)
    return Overview(rows, len(wanted), hidden, len(matching), len(groups))
