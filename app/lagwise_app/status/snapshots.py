"""What the lake says of the groups, read again and again, and what has changed in between. Time is an argument."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from lagwise.config import Config
from lagwise.domain.vocabulary import display_rank
from lagwise.platform.errors import LakeError
from lagwise.platform.logs import clean
from lagwise.tables.analysis import GROUP_STATUS
from lagwise.tables.store import Lake
from lagwise_app.status.groups import Key, ShownGroups, StatusFilters
from lagwise_app.terminal import lake_queries

#: How long a change stays marked.
MARKED_FOR = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class StatusChange:
    """A group's status became another one. ``before`` is None of a group that is new, ``after`` of one that is gone."""

    at: datetime
    key: Key
    before: str | None
    after: str | None

    @property
    def is_worse(self) -> bool:
        """Whether it stands higher on the screen than before."""
        return self.after is not None and (self.before is None or display_rank(self.after) < display_rank(self.before))


class ChangeTracker:
    """Compares looks at the statuses of all groups that match."""

    def __init__(self, kept: timedelta) -> None:
        self._kept = kept
        self._before: Mapping[Key, str] | None = None
        self._recent: dict[Key, StatusChange] = {}

    def see(self, statuses: Mapping[Key, str], now: datetime) -> list[StatusChange]:
        """What is different from the look before, in the order of names; nothing at the first look."""
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
        """The last change of each group that changed a short while ago."""
        self._recent = {key: change for key, change in self._recent.items() if now - change.at <= self._kept}
        return dict(self._recent)


@dataclass(frozen=True, slots=True)
class StatusRequest:
    """What is watched, and what of it is shown."""

    lake: Lake
    config: Config
    filters: StatusFilters
    everything: bool = False

    def is_shown(self, change: StatusChange) -> bool:
        """Whether a change is of something that is, or was, asked for."""
        wanted = self.filters.statuses
        return not wanted or change.before in wanted or change.after in wanted


@dataclass(frozen=True, slots=True)
class StatusSnapshot:
    """The lake at ``now``. Where it cannot be read, ``trouble`` says why, and the groups are those of the look before.

    ``changes`` happened since the look before, ``recent`` ones within the last minute.
    """

    now: datetime
    groups: ShownGroups
    fresh: lake_queries.Freshness | None
    changes: list[StatusChange]
    recent: dict[Key, StatusChange]
    trouble: str | None


class SnapshotReader:
    """Successive looks at the lake; groups are read again only if a newer version was written."""

    def __init__(self, watched: StatusRequest) -> None:
        self._watched = watched
        # Of any status: a group that no longer has a wanted status has changed, too.
        self._filters = replace(watched.filters, statuses=frozenset())
        self._version: int | None = None
        self._groups: ShownGroups | None = None
        self._changes = ChangeTracker(MARKED_FOR)

    def look(self, now: datetime) -> StatusSnapshot:
        """How it stands. Raises LakeError if that is not known from a look before either."""
        lake, found = self._watched.lake, list[StatusChange]()
        fresh, trouble = None, None
        try:
            version = lake.version(GROUP_STATUS)
            if self._groups is None or version != self._version:
                self._groups, self._version = ShownGroups.read(lake), version
                found = self._changes.see(self._groups.statuses(self._filters), now)
            fresh = lake_queries.freshness(lake, self._watched.config, now)
        except LakeError as error:
            if self._groups is None:
                raise
            trouble = clean(str(error))
        shown = [change for change in found if self._watched.is_shown(change)]
        recent = {k: change for k, change in self._changes.recent(now).items() if self._watched.is_shown(change)}
        return StatusSnapshot(now, self._groups, fresh, shown, recent, trouble)
