"""What the alerts room speaks of: conditions that come in, alerts that are kept, notifications that go out.

Plain immutable values, no I/O, no clock. All times are UTC and timezone-aware; all durations are seconds.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from functools import lru_cache

from lagwise.domain.findings import FindingKind
from lagwise.domain.group_record import GroupNumbers
from lagwise.domain.vocabulary import Status, UnknownReason


class Severity(StrEnum):
    """How loud an alert is. Declared loudest first: the order is the ranking."""

    PAGE = "page"
    WARN = "warn"
    INFO = "info"

    @property
    def rank(self) -> int:
        """Position from the loudest (0) on."""
        return tuple(Severity).index(self)


class AlertKind(StrEnum):
    """What an alert is about: the status of a consumer group, the monitor itself, or a finding beside a group's status.

    Each kind of finding has alerts of its own: what lasts for days must not keep an outage from being over.
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
    #: Facts beside the status that rules ask for by a key of their own, and that last like findings.
    IDLE_MEMBERS = "idle_members"
    GHOSTS = "ghosts"
    REBALANCE_STORM = "rebalance_storm"
    CAPACITY = "capacity"


class Phase(StrEnum):
    """Where an alert stands. A pending one holds, but not yet for long enough to tell anybody."""

    PENDING = "pending"
    FIRING = "firing"
    RESOLVED = "resolved"


class AlertEvent(StrEnum):
    """What a notification tells about its alert."""

    FIRING = "firing"
    ESCALATED = "escalated"
    #: It still holds: told again after the interval that the rules ask for.
    REPEATED = "repeated"
    RESOLVED = "resolved"


class Resolution(StrEnum):
    """Why an alert ended."""

    RECOVERED = "recovered"
    #: Unknown for so long, and for such a reason, that the trouble that was told is neither there nor known to be over.
    UNKNOWN = "unknown"
    GROUP_GONE = "group_gone"
    RULE_CHANGED = "rule_changed"
    CLUSTER_REMOVED = "cluster_removed"


#: The words that stand in the place of a status where the monitor itself is meant.
STALE = "stale"
FRESH = "fresh"


@dataclass(frozen=True, slots=True, order=True)
class AlertSubject:
    """What an alert is about. ``cluster`` is None for the analysis, ``group`` for it and for the collection."""

    kind: AlertKind
    cluster: str | None = None
    group: str | None = None

    @property
    def fingerprint(self) -> str:
        """Stable name of the subject: 16 hex digits, the same in every process and version."""
        return _fingerprint(self.kind.value, self.cluster, self.group)

    def __str__(self) -> str:
        if self.group is not None:
            found = "" if self.kind is AlertKind.GROUP else f"{self.kind.value} of "
            return f"{found}group {self.group} on {self.cluster}"
        return "the analysis" if self.kind is AlertKind.ANALYSIS else f"the collection from {self.cluster}"


# Asked for every subject in every round, of which there are a dozen per group.
@lru_cache(maxsize=200_000)
def _fingerprint(kind: str, cluster: str | None, group: str | None) -> str:
    text = json.dumps([kind, cluster, group])
    return hashlib.sha256(text.encode("ascii")).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class GroupCondition:
    """What the analysis says of a group, or of one kind of finding beside its status: whether it ``is_found``, and then
    the sentence is the finding's. ``found_count`` is of how many members or partitions, ``found_words`` are the
    verdicts on capacity, where a rule may ask for more than whether there is something. ``topics`` are what it reads.

    ``as_of`` is the sample the verdict rests on; it is believed for ``valid_for_seconds`` after that, and then it says
    nothing. ``seen_active`` is whether the group has ever been seen alive (None: that cannot be told at the moment).
    ``is_getting_older`` is whether its oldest unread record keeps getting older (:mod:`lagwise.domain.aging`).
    """

    subject: AlertSubject
    as_of: datetime
    valid_for_seconds: float
    status: Status
    reason: UnknownReason | None
    since: datetime
    sentence: str
    seen_active: bool | None = True
    numbers: GroupNumbers = field(default_factory=GroupNumbers)
    is_found: bool = False
    found_count: int | None = None
    found_words: frozenset[str] = frozenset()
    topics: tuple[str, ...] = ()
    is_getting_older: bool = False


@dataclass(frozen=True, slots=True)
class FreshnessCondition:
    """How new the newest data of a collector or of the analysis is.

    ``newest_at`` None is "never"; then age counts from ``watching_since``, the start of the alert process. Staler than
    allowed is not held against anybody before the process has watched for that long itself, because whatever was down
    together with it deserves the time to start. ``floor_seconds`` is an age that is normal at the intervals in use.
    """

    subject: AlertSubject
    as_of: datetime
    newest_at: datetime | None
    floor_seconds: float
    watching_since: datetime | None
    sentence: str


Condition = GroupCondition | FreshnessCondition


@dataclass(frozen=True, slots=True)
class ClusterView:
    """How far the verdicts on a cluster's groups reach: what is missing there is gone, if nothing went wrong."""

    judged_until: datetime | None
    valid_for_seconds: float
    without_errors: bool


@dataclass(frozen=True, slots=True)
class Situation:
    """Everything that is known at one moment. ``clusters`` are those that are watched."""

    conditions: tuple[Condition, ...]
    clusters: Mapping[str, ClusterView]


@dataclass(frozen=True, slots=True)
class Clock:
    """How long a rule has matched a subject, or has not.

    ``seconds`` counts data time in the present mode (``matching`` or not) and stands still while ``held``. An
    ``active`` clock has matched for as long as its rule asks and keeps its alert firing.
    """

    rule: str
    active: bool
    matching: bool
    held: bool
    seconds: float


@dataclass(frozen=True, slots=True)
class Alert:
    """One subject's trouble, from its first sign to its end.

    ``rule``, ``severity``, ``status``, ``reason``, ``since``, ``sentence`` and ``numbers`` are of the worst rule that
    is active, as it last matched. ``told`` names the rules that were notified of, ``peak_severity`` is the loudest of
    them, ``channels`` everybody who was told and must be told of the end, ``told_at`` when that was last. ``labels``
    are those of the group's owner. ``begun_at`` is when it began to be told, and the alerts of this subject before it,
    as far as that counts for whether it is ``flapping``. ``inhibited_by`` is the incident that tells the same trouble,
    so that this alert, or its worsening, was not told.
    """

    fingerprint: str
    incident_id: str
    subject: AlertSubject
    phase: Phase
    rule: str
    severity: Severity
    status: str
    reason: str | None
    since: datetime
    started_at: datetime
    last_as_of: datetime
    sentence: str
    numbers: GroupNumbers
    clocks: tuple[Clock, ...]
    calm: Clock | None
    on_hold: bool = False
    fired_at: datetime | None = None
    resolved_at: datetime | None = None
    resolution: Resolution | None = None
    told: tuple[str, ...] = ()
    peak_severity: Severity | None = None
    channels: tuple[str, ...] = ()
    sequence: int = 0
    labels: Mapping[str, str] = field(default_factory=dict)
    told_at: datetime | None = None
    begun_at: tuple[datetime, ...] = ()
    flapping: bool = False
    inhibited_by: str | None = None


@dataclass(frozen=True, slots=True)
class Notification:
    """Something to tell. ``status`` to ``numbers`` are as of now; ``alert`` is the alert after the event."""

    event: AlertEvent
    decided_at: datetime
    alert: Alert
    status: str | None
    reason: str | None
    severity: Severity
    sentence: str
    numbers: GroupNumbers
    previous_status: str | None
    previous_severity: Severity | None
    channels: tuple[str, ...]

    @property
    def idempotency_key(self) -> str:
        """The same for every attempt to deliver this event, different for every other event."""
        return f"{self.alert.incident_id}-{self.alert.sequence}"


@dataclass(frozen=True, slots=True)
class Decision:
    """What follows from an observation. ``changed`` includes the resolved; ``cancelled`` never became known."""

    changed: tuple[Alert, ...] = ()
    cancelled: tuple[str, ...] = ()
    notifications: tuple[Notification, ...] = ()
