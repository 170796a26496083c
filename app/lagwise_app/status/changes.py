"""What changed in the overview from one look to the next. Pure: time is an argument."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from lagwise.domain.vocabulary import display_rank
from lagwise_app.status.groups import Key


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


class StatusChanges:
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
