"""A group that is behind, as the likely cause is looked for, and when it is."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from lagwise.domain.vocabulary import Status
from lagwise.domain.what_changed.backlog import Backlog
from lagwise.domain.what_changed.happenings import Leaderless

#: Cluster and group.
Group = tuple[str, str]
#: Groups are looked at in each round for so long after they fell behind, and then once a minute.
_EACH_ROUND_FOR = timedelta(seconds=150)


@dataclass(frozen=True, slots=True)
class Behind:
    """A group that fell behind lately, what it reads, and how it is at ``now``."""

    group: Group
    topics: tuple[str, ...]
    partitions: int
    status: Status
    backlog: Backlog
    now: datetime
    #: Those of its topics with partitions that have no leader, where the group is unknown for that.
    leaderless: tuple[Leaderless, ...] = ()

    def is_due(self, interval_seconds: float) -> bool:
        """Whether to look at it in a round that comes so long after the one before."""
        age = self.now - self.backlog.since
        before = age - timedelta(seconds=interval_seconds)
        minute = timedelta(minutes=1)
        return not self.backlog.is_decided(self.now) and (age <= _EACH_ROUND_FOR or age // minute != before // minute)
