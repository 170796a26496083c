"""What alerts are about: a group, a finding on one, groups that share something, a cluster, or the monitor itself."""

import hashlib
import json
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from lagwise.domain.cluster_findings import ClusterFindingKind
from lagwise.domain.correlation import SharedThing
from lagwise.domain.findings import FindingKind


class AlertKind(StrEnum):
    """What an alert is about: the status of a consumer group, a finding on a group or a cluster, or the monitor itself.

    Each kind of finding has its own alerts: a finding that lasts for days must not keep an outage open.
    """

    GROUP = "group"
    COLLECTION = "collection"
    ANALYSIS = "analysis"
    LOSS = FindingKind.LOSS.value
    SKIPPED = FindingKind.SKIPPED.value
    DEAD_LETTERS = FindingKind.DEAD_LETTERS.value
    UNREAD_RETRIES = FindingKind.UNREAD_RETRIES.value
    LEFT_TOPICS = FindingKind.LEFT_TOPICS.value
    SUBSCRIPTIONS = FindingKind.SUBSCRIPTIONS.value
    JOB = FindingKind.JOB.value
    RETRIES = FindingKind.RETRIES.value
    REBALANCES = FindingKind.REBALANCES.value
    ASSIGNMENT = FindingKind.ASSIGNMENT.value
    #: Findings on a cluster.
    OFFSETS_AT_RISK = ClusterFindingKind.OFFSETS_AT_RISK.value
    NO_LEADER = ClusterFindingKind.NO_LEADER.value
    UNDER_MIN_ISR = ClusterFindingKind.UNDER_MIN_ISR.value
    MIN_ISR_TOO_HIGH = ClusterFindingKind.MIN_ISR_TOO_HIGH.value
    DISK_FULL = ClusterFindingKind.DISK_FULL.value
    DISK_TOO_FULL = ClusterFindingKind.DISK_TOO_FULL.value
    BROKER_GONE = ClusterFindingKind.BROKER_GONE.value
    NO_MASTER = ClusterFindingKind.NO_MASTER.value
    DISK_FILLING = ClusterFindingKind.DISK_FILLING.value
    UNDER_REPLICATED = ClusterFindingKind.UNDER_REPLICATED.value
    CLOCK_DIFFERS = ClusterFindingKind.CLOCK_DIFFERS.value
    OFFSETS_UNREPLICATED = ClusterFindingKind.OFFSETS_UNREPLICATED.value
    ONE_RACK = ClusterFindingKind.ONE_RACK.value
    OFFSETS_RETENTION = ClusterFindingKind.OFFSETS_RETENTION.value
    #: Facts on a group that last like findings, and have a key of their own in the file of rules.
    IDLE_MEMBERS = "idle_members"
    GHOSTS = "ghosts"
    REBALANCE_STORM = "rebalance_storm"
    CAPACITY = "capacity"
    #: Several groups that got worse together and share something (:mod:`lagwise.domain.correlation`).
    SHARED_INCIDENT = "shared_incident"


#: The findings on clusters.
CLUSTER_FINDINGS = frozenset(AlertKind(kind.value) for kind in ClusterFindingKind)


@dataclass(frozen=True, slots=True, order=True)
class AlertSubject:
    """What an alert is about.

    ``cluster`` is None for the analysis, and for a shared incident that may span clusters. ``group`` is None for
    whatever is not about one group.
    """

    kind: AlertKind
    cluster: str | None = None
    group: str | None = None
    #: What the groups of a shared incident share; empty for everything else.
    things: tuple[SharedThing, ...] = ()

    @property
    def fingerprint(self) -> str:
        """Stable name of the subject: 16 hex digits, the same in every process and version."""
        return _fingerprint(self.kind.value, self.cluster, self.group, self.things)

    @property
    def shared_by(self) -> str:
        """What the groups of a shared incident share, in words; empty for everything else."""
        return " and ".join(map(str, self.things))

    def __str__(self) -> str:
        if self.kind is AlertKind.SHARED_INCIDENT:
            return f"shared incident: {self.shared_by}"
        if self.group is not None:
            found = "" if self.kind is AlertKind.GROUP else f"{self.kind.value} of "
            return f"{found}group {self.group} on {self.cluster}"
        if self.kind in CLUSTER_FINDINGS:
            return f"{self.kind.value} of cluster {self.cluster}"
        return "the analysis" if self.kind is AlertKind.ANALYSIS else f"the collection from {self.cluster}"


# Cached: every round asks for a dozen subjects per group.
@lru_cache(maxsize=200_000)
def _fingerprint(kind: str, cluster: str | None, group: str | None, things: tuple[SharedThing, ...]) -> str:
    shared = [[[thing.kind.value, thing.name, thing.cluster] for thing in things]] if things else []
    text = json.dumps([kind, cluster, group, *shared])
    return hashlib.sha256(text.encode("ascii")).hexdigest()[:16]
