"""The values of the alerts room: conditions come in, alerts are stored, notifications go out.

Plain immutable values, no I/O, no clock. All times are UTC and timezone-aware; all durations are seconds.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum

from lagwise.domain.correlation import GroupKey, GroupTraits
from lagwise.domain.group_record import GroupNumbers
from lagwise.domain.vocabulary import Status, UnknownReason
from lagwise_alerts.subject import CLUSTER_FINDINGS as CLUSTER_FINDINGS
from lagwise_alerts.subject import AlertKind as AlertKind
from lagwise_alerts.subject import AlertSubject as AlertSubject


class Severity(StrEnum):
    """How loud an alert is, the loudest first: the order is the ranking."""

    PAGE = "page"
    WARN = "warn"
    INFO = "info"

    @property
    def rank(self) -> int:
        """Position from the loudest (0) on."""
        return tuple(Severity).index(self)


class AlertState(StrEnum):
    """The state of an alert. A pending alert matches, but not yet for as long as its rule asks."""

    PENDING = "pending"
    FIRING = "firing"
    RESOLVED = "resolved"


class AlertEvent(StrEnum):
    """What a notification reports of its alert."""

    FIRING = "firing"
    ESCALATED = "escalated"
    #: It still fires: reported again after the interval in the rules.
    REPEATED = "repeated"
    RESOLVED = "resolved"


class Resolution(StrEnum):
    """Why an alert ended."""

    RECOVERED = "recovered"
    #: The group has been unknown for so long, and for such a reason, that the trouble may be over or not.
    UNKNOWN = "unknown"
    GROUP_GONE = "group_gone"
    RULE_CHANGED = "rule_changed"
    CLUSTER_REMOVED = "cluster_removed"


#: Statuses of the monitor itself.
STALE = "stale"
FRESH = "fresh"
#: Statuses of a cluster.
DEGRADED = "degraded"
HEALTHY = "healthy"


@dataclass(frozen=True, slots=True)
class GroupCondition:
    """The status of a group, or one kind of finding on it."""

    subject: AlertSubject
    #: Time of the sample that the verdict rests on.
    as_of: datetime
    #: The verdict counts for this long after ``as_of``.
    valid_for_seconds: float
    #: Status of the group, also where the subject is a finding.
    status: Status
    #: Why the status is unknown; None where it is known.
    reason: UnknownReason | None
    #: When the group got its status; for a finding, the time of the sample.
    since: datetime
    #: The sentence on the finding where there is one, else the sentence on the status.
    sentence: str
    #: Whether the group has ever been seen active; None where the history could not be read.
    seen_active: bool | None = True
    numbers: GroupNumbers = field(default_factory=GroupNumbers)
    #: Whether the group has the finding that the subject names.
    is_found: bool = False
    #: How many members or partitions the finding is about; None where it has no such number.
    found_count: int | None = None
    #: The verdicts on the group's capacity, where the subject is its capacity.
    found_words: frozenset[str] = frozenset()
    #: The topics that the group reads.
    topics: tuple[str, ...] = ()
    #: Whether its oldest unread record is late and keeps getting older (:mod:`lagwise.domain.aging`).
    is_getting_older: bool = False

    def finding(
        self, kind: AlertKind, sentence: str | None, *, count: int | None = None, words: Iterable[str] = ()
    ) -> "GroupCondition":
        """A finding on the group. ``sentence`` None: there is none, so that an alert on it ends."""
        return replace(
            self,
            subject=AlertSubject(kind, self.subject.cluster, self.subject.group),
            since=self.as_of,
            sentence=self.sentence if sentence is None else sentence,
            is_found=sentence is not None,
            found_count=count,
            found_words=frozenset(words),
        )


@dataclass(frozen=True, slots=True)
class FreshnessCondition:
    """How fresh the data of a collector or of the analysis is."""

    subject: AlertSubject
    as_of: datetime
    #: None is never: then the age counts from ``watching_since``.
    newest_at: datetime | None
    #: An age that is normal at the intervals in use.
    floor_seconds: float
    #: Start of the alert process. Stale data raises no alert before the process has run for as long as data may be old:
    #: what was down together with it gets the time to start.
    watching_since: datetime | None
    sentence: str


@dataclass(frozen=True, slots=True)
class ClusterCondition:
    """One kind of finding on a cluster, by its newest sample."""

    subject: AlertSubject
    #: Time of the sample.
    as_of: datetime
    #: It counts for this long after ``as_of``.
    valid_for_seconds: float
    #: The findings of this kind and what would help; empty where there is none.
    sentence: str
    #: Whether the cluster has the finding; None is unknown.
    is_found: bool | None


Condition = GroupCondition | FreshnessCondition | ClusterCondition


@dataclass(frozen=True, slots=True)
class ClusterView:
    """How far the verdicts on a cluster's groups reach. A group without a verdict is gone, if there were no errors."""

    judged_until: datetime | None
    valid_for_seconds: float
    without_errors: bool
    #: Time of the oldest recent sample; None is unknown.
    watched_since: datetime | None = None


@dataclass(frozen=True, slots=True)
class Situation:
    """All conditions at one moment, the watched clusters, and what groups may share besides topics and clusters."""

    conditions: tuple[Condition, ...]
    clusters: Mapping[str, ClusterView]
    traits: Mapping[GroupKey, GroupTraits] = field(default_factory=dict)
    #: Further groups, which no rule can match: groups that got worse are compared with them, too. Asked for only then.
    others: Callable[[], tuple[GroupCondition, ...]] = tuple


@dataclass(frozen=True, slots=True)
class RuleTimer:
    """How long a rule has matched a subject, or has not."""

    rule: str
    #: The rule has matched for as long as it asks: it keeps its alert firing.
    active: bool
    #: Whether ``seconds`` counts the time with a match, or the time without one.
    matching: bool
    #: The timer stands still, because the newest observation does not show whether the rule matches.
    held: bool
    #: Time of the data, not of the wall clock.
    seconds: float


@dataclass(frozen=True, slots=True)
class Alert:
    """One subject's trouble, from its first sign to its end (an incident).

    ``status``, ``reason``, ``since``, ``sentence`` and ``numbers`` are those of when ``rule`` last matched.
    """

    #: Stable name of the subject (:attr:`AlertSubject.fingerprint`): all its incidents have it.
    fingerprint: str
    #: Name of this incident: the fingerprint and the time at which the alert began.
    incident_id: str
    subject: AlertSubject
    state: AlertState
    #: Name of the worst active rule; of the worst matching one while the alert is pending.
    rule: str
    #: Severity of ``rule``.
    severity: Severity
    #: Status of the group, also where the alert is about a finding; ``stale`` of a collection or the analysis,
    #: ``degraded`` of a cluster.
    status: str
    #: Why the status is unknown; None where it is known.
    reason: str | None
    #: When the group got ``status``, the finding was first seen, or the newest data came.
    since: datetime
    #: When a rule first matched and the alert became pending, by the wall clock.
    started_at: datetime
    #: Time of the newest data that was evaluated.
    last_as_of: datetime
    #: The sentence on the finding where there is one, else the sentence on the status.
    sentence: str
    numbers: GroupNumbers
    #: Timers of the rules that match, or matched lately.
    rule_timers: tuple[RuleTimer, ...]
    #: How long no rule has matched.
    clear_timer: RuleTimer | None
    #: The newest data is stale or unknown: the alert stays as it was.
    on_hold: bool = False
    #: When it began to fire, or its first notification was no longer withheld; None while it is pending.
    fired_at: datetime | None = None
    #: When it ended, by the wall clock; None while it is open.
    resolved_at: datetime | None = None
    #: Why it ended; None while it is open. Of an open shared incident, the worst end of a member so far.
    resolution: Resolution | None = None
    #: Names of the rules that were notified.
    notified_rules: tuple[str, ...] = ()
    #: The loudest severity that was notified.
    peak_severity: Severity | None = None
    #: Every channel that was notified, and so must be notified of the end.
    channels: tuple[str, ...] = ()
    #: How many notifications there were.
    sequence: int = 0
    #: Labels of the group's owner.
    labels: Mapping[str, str] = field(default_factory=dict)
    #: When the latest notification was decided on.
    notified_at: datetime | None = None
    #: When alerts of this subject lately began to fire, this one included; counted to detect flapping.
    recent_starts: tuple[datetime, ...] = ()
    #: Whether it comes and goes so often that it ends only after a long time without trouble. Once set, it stays set.
    flapping: bool = False
    #: The incident that already reports the same trouble, so that this alert, or its worsening, was not notified.
    inhibited_by: str | None = None
    #: Since when the rule has held that it last began to fire for, or got worse for, in the time of the data; of a
    #: shared incident that of the last group that was evidence for it.
    worsened_at: datetime | None = None
    #: The shared incident that it is part of, which is notified instead of it.
    shared_incident: str | None = None


@dataclass(frozen=True, slots=True)
class Transition:
    """What an observation makes of one alert, before inhibition and mutes."""

    before: Alert | None
    after: Alert
    #: The event to notify of; None is none.
    event: AlertEvent | None = None
    #: The channels to notify.
    channels: tuple[str, ...] = ()
    #: Whether the alert's rule matches the observation. It may fire without: it waits for the end to last.
    matches_now: bool = False
    #: The observation; None where the subject was not observed.
    condition: Condition | None = None
    #: The alert was pending and never will fire: it is deleted.
    is_cancelled: bool = False

    def without_event(self) -> "Transition":
        """The same without a notification. A worsening is kept as if it were none, so that it can be notified later."""
        if self.before is None or self.event is not AlertEvent.ESCALATED:
            return replace(self, event=None)
        before = self.before
        after = replace(
            self.after,
            rule=before.rule,
            severity=before.severity,
            status=before.status,
            reason=before.reason,
            since=before.since,
            sentence=before.sentence,
            numbers=before.numbers,
            worsened_at=before.worsened_at,
        )
        return replace(self, event=None, after=after)


@dataclass(frozen=True, slots=True)
class SharedIncident:
    """The shared incident that a notification is about, or that its alert is part of."""

    alert: Alert
    #: The alerts in it that fire, the most severe first.
    members: tuple[Alert, ...]


@dataclass(frozen=True, slots=True)
class Notification:
    """What is reported of an alert."""

    event: AlertEvent
    #: Time of the decision to send it, by the wall clock.
    decided_at: datetime
    #: The alert after the event, with this notification on record.
    alert: Alert
    #: The status now; at the end None where the subject no longer exists, or was not observed.
    status: str | None
    #: Why the status is unknown; None where it is known.
    reason: str | None
    #: The severity now; at the end the loudest that was notified.
    severity: Severity
    #: What is wrong now, or how it ended.
    sentence: str
    #: The numbers of the group now; all unknown where it was not observed.
    numbers: GroupNumbers
    #: The status before a worsening or before the end; None at other events.
    previous_status: str | None
    #: The severity before a worsening or before the end; None at other events.
    previous_severity: Severity | None
    #: Names of the channels to send it to.
    channels: tuple[str, ...]
    #: None where its alert is not part of one.
    shared_incident: SharedIncident | None = None

    @property
    def idempotency_key(self) -> str:
        """The same for every attempt to deliver this event, different for every other event."""
        return f"{self.alert.incident_id}-{self.alert.sequence}"


@dataclass(frozen=True, slots=True)
class Decision:
    """What follows from an observation."""

    #: Alerts that are new, changed or resolved.
    changed: tuple[Alert, ...] = ()
    #: Incidents that ended while they were pending, without any notification.
    cancelled: tuple[str, ...] = ()
    notifications: tuple[Notification, ...] = ()
