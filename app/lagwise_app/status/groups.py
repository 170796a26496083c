"""Which groups the terminal shows: those in trouble, worst first, with a count of the others."""

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Any

import pyarrow as pa

from lagwise.domain.vocabulary import is_quiet
from lagwise.tables.analysis import GROUP_STATUS
from lagwise.tables.arrow_values import values_of
from lagwise.tables.store import Lake
from lagwise_app.terminal.lake_queries import worst_first

#: Cluster and group.
Key = tuple[str, str]

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

    def match(self, cluster: str, group: str, status: str) -> bool:
        """Whether a group matches all filters."""
        return (
            (not self.statuses or status in self.statuses)
            and (not self.clusters or cluster in self.clusters)
            and (not self.patterns or any(fnmatchcase(group, pattern) for pattern in self.patterns))
            and (self.owned is None or self.owned(cluster, group))
        )


class ShownGroups:
    """All groups in ``group_status``."""

    def __init__(self, table: pa.Table) -> None:
        columns = dict(zip(table.column_names, table.columns, strict=True))
        self._columns = columns
        named = zip(values_of(columns["cluster"]), values_of(columns["group"]), strict=True)
        self._at: dict[Key, int] = {key: at for at, key in enumerate(named)}
        self._statuses: list[str] = values_of(columns["status"])
        self._states: list[str | None] = values_of(columns["state"])

    @staticmethod
    def read(lake: Lake) -> "ShownGroups":
        """Those of the newest version of ``group_status``. Raises LakeError."""
        found = lake.select(_COLUMNS, GROUP_STATUS)
        return ShownGroups(pa.Table.from_batches([], GROUP_STATUS.arrow) if found is None else found)

    def __len__(self) -> int:
        return len(self._at)

    def __contains__(self, key: Key) -> bool:
        return key in self._at

    @property
    def clusters(self) -> set[str]:
        """Names of their clusters."""
        return {cluster for cluster, _ in self._at}

    def statuses(self, filters: StatusFilters) -> dict[Key, str]:
        """The status of each that matches."""
        return {key: self._statuses[at] for key, at in self._at.items() if filters.match(*key, self._statuses[at])}

    def is_quiet(self, key: Key) -> bool:
        """Whether it needs no attention."""
        return is_quiet(self._statuses[self._at[key]], self._states[self._at[key]])

    def row(self, key: Key) -> dict[str, Any]:
        """What is shown of it."""
        at = self._at[key]
        return {name: values[at] for name, values in self._values.items()}

    @cached_property
    def _values(self) -> dict[str, list[Any]]:
        return {name: values_of(column) for name, column in self._columns.items()}


@dataclass(frozen=True, slots=True)
class Overview:
    """What is shown: ``rows``, worst first, of which ``wanted`` are asked for and the others have just changed.

    Of ``matching`` groups (``total`` in all) those ``hidden`` (by status) need no attention.
    """

    rows: list[dict[str, Any]]
    wanted: int
    hidden: Mapping[str, int]
    matching: int
    total: int


def overview(groups: ShownGroups, filters: StatusFilters, *, everything: bool, also: Collection[Key] = ()) -> Overview:
    """The groups that match. Those that need no attention are only counted, unless ``everything`` or their status is
    asked for. Those ``also`` named are shown in any case, if they still exist."""
    statuses = groups.statuses(filters)
    everything = everything or bool(filters.statuses)
    wanted = {key for key in statuses if everything or not groups.is_quiet(key)}
    shown = wanted | {key for key in also if key in groups}
    hidden = Counter(status for key, status in statuses.items() if key not in shown)
    rows = sorted((groups.row(key) for key in shown), key=worst_first)
    return Overview(rows, len(wanted), hidden, len(statuses), len(groups))
