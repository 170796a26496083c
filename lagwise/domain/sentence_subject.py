"""The partitions that a sentence about a group names."""

from collections.abc import Sequence
from dataclasses import dataclass

from lagwise.domain.humanise import count, duration
from lagwise.domain.partition_rollup import PartitionsInStatus, total

#: More owners than this are not named.
_MOST_OWNERS = 2
#: More topics than this are not named.
_MOST_TOPICS = 2


@dataclass(frozen=True, slots=True)
class Subject:
    """The partitions that have the group's status, as a sentence names them."""

    parts: Sequence[PartitionsInStatus]
    #: Partitions of the group, ghosts left out.
    of: int
    #: All topics of the group.
    topics: frozenset[str] = frozenset()

    @property
    def number(self) -> int:
        return sum(p.partitions for p in self.parts)

    @property
    def name(self) -> str:
        """``3 of 12 partitions``, ``all 12 partitions``, ``both partitions``, ``1 of 12 partitions (orders-3)``, ``the
        only partition``; ``3 of 12 partitions (orders)`` in a group that reads other topics, too."""
        if self.of == 1:
            return f"the only {self.noun}"
        if self.number == self.of:
            return f"both {self.noun}s" if self.of == 2 else f"all {self.of} {self.noun}s"
        which = f" ({worst_of(self.parts)})" if self.number == 1 else self._topics
        return f"{self.number} of {self.of} {self.noun}s{which}"

    @property
    def noun(self) -> str:
        """What the system calls a partition: one that has names for them calls them queues (RocketMQ)."""
        return "queue" if any(p.worst_label is not None for p in self.parts) else "partition"

    @property
    def _topics(self) -> str:
        """Whose partitions they are, in brackets, where that sets them apart and can be said in few names."""
        theirs = sorted({topic for p in self.parts for topic in p.topics})
        if not theirs or len(theirs) > _MOST_TOPICS or len(theirs) == len(self.topics):
            return ""
        return f" ({' and '.join(theirs)})"

    @property
    def start(self) -> str:
        """The name at the start of a sentence."""
        return self.name[0].upper() + self.name[1:]

    def verb(self, one: str, many: str) -> str:
        return one if self.number == 1 else many

    @property
    def records(self) -> str:
        """``41,234 records wait``."""
        return "1 record waits" if self.lag == 1 else f"{count(self.lag)} records wait"

    @property
    def lag(self) -> int:
        return total(p.lag for p in self.parts) or 0

    @property
    def waiting(self) -> str:
        """``41,234 records wait, oldest 3 min 20 s``."""
        known = [(p.lag_seconds, p.lag_seconds_is_lower_bound) for p in self.parts if p.lag_seconds is not None]
        seconds, is_bound = max(known, default=(None, False))
        age = "of unknown age" if is_bound and not seconds else duration(seconds, lower_bound=is_bound)
        return f"{self.records}, oldest {age}"

    @property
    def none(self) -> str:
        """The name after "no commits on": ``any of 12 partitions``, ``either partition``, or the name as it is."""
        if self.number != self.of or self.of == 1:
            return self.name
        return f"either {self.noun}" if self.of == 2 else f"any of {self.of} {self.noun}s"

    @property
    def unmoved(self) -> str:
        """For how long nothing was committed; of several partitions at least one has it so long."""
        longest = max((p.unmoved_seconds for p in self.parts if p.unmoved_seconds is not None), default=None)
        return f" for {'' if self.number == 1 else 'up to '}{duration(longest)}"

    @property
    def owners(self) -> str:
        """``its owner is client billing-2 on host 10.0.0.7``."""
        owners = sorted({owner for p in self.parts for owner in p.owners})
        whose = self.verb("its", "their")
        members = max((p.owning_members for p in self.parts), default=0)
        if len(owners) == 1 and members > 1:
            return f"{whose} owners are {members} members called {owners[0]}"
        if len(owners) == 1:
            return f"{whose} owner is {owners[0]}"
        if 1 < len(owners) <= _MOST_OWNERS:
            return f"{whose} owners are {' and '.join(owners)}"
        return f"{self.verb('a member owns', 'members own')} {self.verb('it', 'them')}"


def worst_of(parts: Sequence[PartitionsInStatus]) -> str:
    """``orders-3``, or ``orders broker-a q3``: the one that lost most, or waits for longest."""
    worst = max(parts, key=lambda p: (p.records_lost, p.lag_seconds or 0.0))
    if worst.worst_label is not None:
        return f"{worst.worst_topic} {worst.worst_label}"
    return f"{worst.worst_topic}-{worst.worst_partition}"
