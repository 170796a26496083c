"""Snapshots of the groups in the lake, and the changes between them. Time is an argument."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from lagwise.config import Config
from lagwise.domain.vocabulary import display_rank
from lagwise.platform.errors import LakeError
from lagwise.platform.logs import clean
from lagwise.tables.analysis import GROUP_STATUS
from lagwise.tables.store import Lake
from lagwise_app.status.groups import Key, Row, StatusFilters, read_groups
from lagwise_app.terminal import lake_queries

#: How long a change stays marked.
MARKED_FOR = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class StatusChange:
    """A change of a group's status. ``before`` is None for a new group, ``after`` for one that is gone."""

    at: datetime
    key: Key
    before: str | None
    after: str | None

    @property
    def is_worse(self) -> bool:
        """Whether the new status ranks higher on the screen."""
        return self.after is not None and (self.before is None or display_rank(self.after) < display_rank(self.before))


class ChangeTracker:
    """Compares successive statuses of all groups that match, and remembers the changes for a while."""

    def __init__(self) -> None:
        self._before: Mapping[Key, str] | None = None
        self._recent: dict[Key, StatusChange] = {}

    def update(self, statuses: Mapping[Key, str], now: datetime) -> list[StatusChange]:
        """The changes since the last call, in the order of names; none at the first call."""
        before, self._before = self._before, dict(statuses)
        if before is None:
            return []
        found = [
            StatusChange(now, key, before.get(key), statuses.get(key))
            for key in sorted({*before, *statuses})
            if before.get(key) != statuses.get(key)
        ]
        self._recent |= {change.key: change for change in found}
        return found

    def recent(self, now: datetime) -> dict[Key, StatusChange]:
        """The last change of each group that changed within MARKED_FOR."""
        self._recent = {key: change for key, change in self._recent.items() if now - change.at <= MARKED_FOR}
        return dict(self._recent)


@dataclass(frozen=True, slots=True)
class StatusRequest:
    """The lake to read, and the groups to show. ``everything`` includes those that need no attention."""

    lake: Lake
    config: Config
    filters: StatusFilters
    everything: bool = False

    def is_shown(self, change: StatusChange) -> bool:
        """Whether the old or the new status is one of the requested statuses."""
        wanted = self.filters.statuses
        return not wanted or change.before in wanted or change.after in wanted


@dataclass(frozen=True, slots=True)
class StatusSnapshot:
    """The state of the lake at ``now``.

    Where the lake cannot be read, ``error`` says why, and the groups are those of the previous read. ``changes``
    happened since the previous read, ``recent`` ones within the last minute.
    """

    now: datetime
    groups: Mapping[Key, Row]
    fresh: lake_queries.LakeFreshness | None
    changes: list[StatusChange]
    recent: dict[Key, StatusChange]
    error: str | None


class SnapshotReader:
    """Reads the lake again and again. Reads the groups only where their table has a newer version."""

    def __init__(self, request: StatusRequest) -> None:
        self._request = request
        # All statuses: a group that has just lost a requested status has changed too.
        self._filters = replace(request.filters, statuses=frozenset())
        self._version: int | None = None
        self._groups: dict[Key, Row] | None = None
        self._changes = ChangeTracker()

    def read(self, now: datetime) -> StatusSnapshot:
        """The state at ``now``. Raises LakeError where the lake cannot be read and no earlier read succeeded."""
        lake, found = self._request.lake, list[StatusChange]()
        fresh, message = None, None
        try:
            # The time that the data is said to be of is that of the groups beside it.
            with lake.unchanging():
                version = lake.version(GROUP_STATUS)
                if self._groups is None or version != self._version:
                    self._groups, self._version = read_groups(lake), version
                    statuses = {key: row["status"] for key, row in self._groups.items() if self._filters.match(row)}
                    found = self._changes.update(statuses, now)
                fresh = lake_queries.freshness(lake, self._request.config, now, self._filters.clusters)
        except LakeError as error:
            if self._groups is None:
                raise
            message = clean(str(error))
        shown = [change for change in found if self._request.is_shown(change)]
        recent = {k: change for k, change in self._changes.recent(now).items() if self._request.is_shown(change)}
        return StatusSnapshot(now, self._groups, fresh, shown, recent, message)
