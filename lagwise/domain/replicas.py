"""How the replicas of partitions stand: which partitions are without a leader, or close to it."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

#: So many partitions are named.
_MOST_NAMED = 3


class ReplicaState(StrEnum):
    """What is wrong with a partition's replicas, declared from the worst on: a partition counts for the first that
    applies."""

    NO_LEADER = "no_leader"
    #: Fewer replicas are in sync than ``min.insync.replicas``, or than there are where that is lower: brokers from
    #: Kafka 3.7 on compare with the lower one.
    UNDER_MIN_ISR = "under_min_isr"
    #: Of several replicas a single one is in sync.
    LAST_REPLICA = "last_replica"
    UNDER_REPLICATED = "under_replicated"
    #: All are in sync, but ``min.insync.replicas`` is higher than the number of replicas: it can never be met.
    MIN_ISR_TOO_HIGH = "min_isr_too_high"
    #: All replicas are in one rack, of several that the cluster has.
    ONE_RACK = "one_rack"


class Replicas(NamedTuple):
    """The replicas of one partition, by the ids of their brokers. ``leader`` is None while there is none."""

    partition: int
    leader: int | None
    replicas: Sequence[int]
    in_sync: Sequence[int]


@dataclass(slots=True)
class ReplicaTrouble:
    """Partitions that are in the same state."""

    state: ReplicaState
    partitions: int = 0
    #: The first of them.
    named: str = ""
    #: Brokers that have replicas of them and are not in the cluster, by id; empty where all are there.
    missing: str = ""


class ReplicaTally:
    """Counts partitions by what is wrong with their replicas. ``racks`` are those of the brokers that are in the
    cluster, None where a broker has none."""

    def __init__(self, racks: Mapping[int, str | None]) -> None:
        self._racks = racks
        #: Whether partitions that lack nothing count as well: all of their replicas may be in one rack.
        self.has_racks = len({rack for rack in racks.values() if rack is not None}) > 1
        self._found: dict[ReplicaState, ReplicaTrouble] = {}
        self._missing: dict[ReplicaState, set[int]] = {}

    def add(self, topic: str, partitions: Iterable[Replicas], min_in_sync: int | None) -> None:
        """Count the partitions of a topic. ``min_in_sync`` is its ``min.insync.replicas``, None where not known."""
        least = min_in_sync or 0
        for one in partitions:
            has, in_sync = len(one.replicas), len(one.in_sync)
            # Nearly all partitions are well, and there are many.
            if one.leader is not None and in_sync >= has and in_sync >= least and not self.has_racks:
                continue
            state = self._state(one, has, in_sync, least)
            if state is not None:
                self._count(state, f"{topic}-{one.partition}", one.replicas)

    def troubles(self) -> list[ReplicaTrouble]:
        """What was found, the worst first."""
        for state, missing in self._missing.items():
            self._found[state].missing = ", ".join(map(str, sorted(missing)))
        for trouble in self._found.values():
            more = trouble.partitions - _MOST_NAMED
            trouble.named += f" and {more:,} more" if more > 0 else ""
        order = list(ReplicaState)
        return sorted(self._found.values(), key=lambda trouble: order.index(trouble.state))

    def _state(self, one: Replicas, has: int, in_sync: int, least: int) -> ReplicaState | None:
        if one.leader is None:
            return ReplicaState.NO_LEADER
        if in_sync < min(least, has):
            return ReplicaState.UNDER_MIN_ISR
        if in_sync < has:
            return ReplicaState.LAST_REPLICA if in_sync == 1 else ReplicaState.UNDER_REPLICATED
        if has < least:
            return ReplicaState.MIN_ISR_TOO_HIGH
        return ReplicaState.ONE_RACK if self.has_racks and self._in_one_rack(one.replicas) else None

    def _in_one_rack(self, replicas: Collection[int]) -> bool:
        racks = {self._racks.get(broker) for broker in replicas}
        return len(replicas) > 1 and len(racks) == 1 and None not in racks

    def _count(self, state: ReplicaState, name: str, replicas: Iterable[int]) -> None:
        trouble = self._found.setdefault(state, ReplicaTrouble(state))
        trouble.partitions += 1
        if trouble.partitions <= _MOST_NAMED:
            trouble.named += f", {name}" if trouble.named else name
        self._missing.setdefault(state, set()).update(set(replicas) - self._racks.keys())
