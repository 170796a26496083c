"""The message of a notification: the document ``lagwise.alert.v1``, which every channel gets.

Its JSON Schema is ``lagwise.alert.v1.schema.json`` in this folder. Within a version, fields are added, never removed,
and none changes its meaning.
"""

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from lagwise.config import AnyCluster, Config
from lagwise.domain.correlation import ThingKind
from lagwise.domain.group_record import GroupNumbers, sent_numbers
from lagwise.domain.humanise import count, duration, plural
from lagwise.domain.vocabulary import LossCause, Status
from lagwise.links import first_commands, pages, parameters
from lagwise.platform.timestamps import timestamp
from lagwise_alerts.model import (
    CLUSTER_FINDINGS,
    FRESH,
    STALE,
    AlertEvent,
    AlertKind,
    AlertSubject,
    Notification,
    Resolution,
    SharedIncident,
)
from lagwise_alerts.rules.owners import TEAM

SCHEMA = "lagwise.alert.v1"
#: A message names as many members of a shared incident.
_MOST_MEMBERS = 100


def render(notification: Notification, config: Config) -> str:
    """The document as JSON, in ASCII: the bytes that are sent and signed, the same at every attempt."""
    return json.dumps(document(notification, config), ensure_ascii=True, allow_nan=False)


def document(notification: Notification, config: Config) -> dict[str, Any]:
    """The document as a tree. Times are RFC 3339 in UTC, durations seconds, lag records; null is unknown."""
    alert = notification.alert
    subject = alert.subject
    numbers = notification.numbers
    worst = (
        None if numbers.worst_topic is None else {"topic": numbers.worst_topic, "partition": numbers.worst_partition}
    )
    return {
        "schema": SCHEMA,
        "event": notification.event.value,
        "severity": notification.severity.value,
        "summary": summary(notification),
        "kind": subject.kind.value,
        "cluster": subject.cluster,
        "group": subject.group,
        "team": alert.labels.get(TEAM),
        "labels": dict(alert.labels),
        "status": notification.status,
        "reason": notification.reason,
        "previous_status": notification.previous_status,
        "previous_severity": notification.previous_severity.value if notification.previous_severity else None,
        "sentence": notification.sentence,
        "outlook": _outlook(notification.event, numbers),
        "rule": alert.rule,
        "resolution": alert.resolution.value if alert.resolution and alert.resolved_at else None,
        "since": _time(alert.since),
        "started_at": _time(alert.started_at),
        "fired_at": _time(alert.fired_at),
        "ended_at": _time(alert.resolved_at),
        "decided_at": _time(notification.decided_at),
        "flapping": alert.flapping,
        "times_begun": max(1, len(alert.recent_starts)),
        **sent_numbers(numbers),
        "worst_partition": worst,
        "shared_incident": shared_incident_document(notification.shared_incident),
        "first_command": _first_command(notification, config.clusters),
        "dashboard_url": dashboard_link(subject, config.alerts.dashboard_url),
        "fingerprint": alert.fingerprint,
        "incident_id": alert.incident_id,
        "sequence": alert.sequence,
        "idempotency_key": notification.idempotency_key,
    }


def shared_incident_document(shared: SharedIncident | None) -> dict[str, Any] | None:
    """The shared incident that the alert is, or is part of."""
    if shared is None:
        return None
    alert = shared.alert
    return {
        "id": alert.incident_id,
        "sentence": alert.sentence,
        "shared_by": [
            {"kind": thing.kind.value, "name": thing.name, "cluster": thing.cluster} for thing in alert.subject.things
        ],
        "groups": len(shared.members),
        "members": [
            {
                "cluster": member.subject.cluster,
                "group": member.subject.group,
                "status": member.status,
                "severity": member.severity.value,
                "incident_id": member.incident_id,
            }
            for member in shared.members[:_MOST_MEMBERS]
        ],
    }


def _first_command(notification: Notification, clusters: Sequence[AnyCluster]) -> str:
    """The command to run first, ready to paste."""
    subject = notification.alert.subject
    if subject.kind is AlertKind.SHARED_INCIDENT:
        return "lagwise alert list"
    if subject.group is None:
        return "lagwise doctor"
    return first_commands.first_command(
        subject.cluster,
        subject.group,
        clusters,
        status=notification.status,
        reason=notification.reason,
        loss_cause=notification.numbers.loss_cause,
        topic=notification.numbers.worst_topic,
        transaction_seconds=notification.numbers.transaction_seconds,
        stands_still=notification.numbers.stands_still,
    )


def dashboard_link(subject: AlertSubject, dashboard_url: str) -> str:
    """The page of the dashboard on a subject."""
    if subject.kind is AlertKind.SHARED_INCIDENT:
        return pages.link(pages.ALERTS, base=dashboard_url)
    if subject.group is None:
        return pages.link(pages.HEALTH, base=dashboard_url)
    return pages.link(
        pages.GROUP, {parameters.CLUSTER: subject.cluster, parameters.GROUP: subject.group}, base=dashboard_url
    )


_STATUS_WORDS = {
    "losing_data": "losing data",
    "at_risk": "at risk of losing data",
    "falling_behind": "falling behind",
    "catching_up": "catching up",
    STALE: "late",
    FRESH: "up to date",
}
_FINDING_WORDS = {
    AlertKind.LOSS: "records were deleted before they were read",
    AlertKind.SKIPPED: "records were skipped",
    AlertKind.DEAD_LETTERS: "records became dead letters",
    AlertKind.UNREAD_RETRIES: "no consumer reads its retry topic",
    AlertKind.SUBSCRIPTIONS: "its members have different subscriptions",
    AlertKind.JOB: "its job has a problem",
    AlertKind.LEFT_TOPICS: "it stopped reading a topic",
    AlertKind.RETRIES: "records are waiting for a retry",
    AlertKind.REBALANCES: "it rebalances too often",
    AlertKind.ASSIGNMENT: "its partitions are assigned unevenly",
    AlertKind.IDLE_MEMBERS: "it has idle members",
    AlertKind.GHOSTS: "it has commits on topics that it no longer reads",
    AlertKind.REBALANCE_STORM: "it is in a rebalance storm",
    AlertKind.CAPACITY: "its capacity needs attention",
    AlertKind.OFFSETS_AT_RISK: "committed offsets are at risk",
    AlertKind.NO_LEADER: "partitions have no leader",
    AlertKind.UNDER_MIN_ISR: "partitions have too few in-sync replicas",
    AlertKind.MIN_ISR_TOO_HIGH: "partitions have fewer replicas than min.insync.replicas",
    AlertKind.DISK_FULL: "a broker's disk is full",
    AlertKind.DISK_TOO_FULL: "a broker's disk is so full that unread messages may be deleted",
    AlertKind.BROKER_GONE: "a broker is gone",
    AlertKind.NO_MASTER: "a broker has no master",
    AlertKind.DISK_FILLING: "a broker's disk is filling up",
    AlertKind.UNDER_REPLICATED: "partitions have replicas that are not in sync",
    AlertKind.CLOCK_DIFFERS: "a broker's clock differs",
    AlertKind.OFFSETS_UNREPLICATED: "committed offsets have a single replica",
    AlertKind.ONE_RACK: "partitions have all replicas in one rack",
    AlertKind.OFFSETS_RETENTION: "committed offsets are kept for a short time",
}


def _words(status: str | None) -> str:
    return _STATUS_WORDS.get(status or "", (status or "unknown").replace("_", " "))


def summary(notification: Notification) -> str:
    """One line for a subject line, a chat title, a pager."""
    alert = notification.alert
    if not alert.flapping or notification.event is AlertEvent.RESOLVED:
        return _what(notification)
    return f"{_what(notification)} (flapping: it began {len(alert.recent_starts)} times)"


def _what(notification: Notification) -> str:
    subject = notification.alert.subject
    if subject.kind is AlertKind.SHARED_INCIDENT:
        return _what_is_shared(notification)
    if subject.group is not None:
        who = f"Group {subject.group} on {subject.cluster}"
    elif subject.kind in CLUSTER_FINDINGS:
        who = f"Cluster {subject.cluster}"
    else:
        who = f"The collection from {subject.cluster}" if subject.kind is AlertKind.COLLECTION else "The analysis"
    if subject.kind in _FINDING_WORDS and notification.status is not None:
        over = {AlertEvent.RESOLVED: "over: ", AlertEvent.REPEATED: "still: "}.get(notification.event, "")
        return f"{who}: {over}{_FINDING_WORDS[subject.kind]}"
    if notification.event is not AlertEvent.RESOLVED:
        if notification.status == Status.AT_RISK and notification.numbers.lag_records == 0:
            return f"{who} will lose its committed offsets; it has read everything"
        still = "still " if notification.event is AlertEvent.REPEATED else ""
        return f"{who} is {still}{_words(notification.status)}"
    ended = f"{who} is no longer {_words(notification.previous_status)}"
    if notification.status is None:
        return f"{who}: alert ended ({_words(notification.alert.resolution)})"
    return f"{ended}, now {_words(notification.status)}"


def _what_is_shared(notification: Notification) -> str:
    alert, shared = notification.alert, notification.shared_incident
    subject = alert.subject
    is_cluster = any(thing.kind is ThingKind.CLUSTER for thing in subject.things)
    where = "" if subject.cluster is None or is_cluster else f" on {subject.cluster}"
    what = f"Shared incident on {subject.shared_by}{where}"
    if notification.event is AlertEvent.RESOLVED and alert.resolution not in (None, Resolution.RECOVERED):
        return f"{what}: alerts ended, not all by recovery ({_words(alert.resolution)})"
    if notification.event is AlertEvent.RESOLVED or shared is None:
        return f"{what} is over"
    still = "still " if notification.event is AlertEvent.REPEATED else ""
    worst = "" if len(shared.members) == 1 else "the worst "
    groups = plural(len(shared.members), "group")
    return f"{what}: {groups} in trouble, {worst}{still}{_words(notification.status)}"


def _outlook(event: AlertEvent, numbers: GroupNumbers) -> str | None:
    """What has happened or will happen, and when; None where neither is known."""
    parts = []
    if event is not AlertEvent.RESOLVED and numbers.records_lost:
        parts.append(f"{count(numbers.records_lost)} records were deleted before they were read.")
    if event is not AlertEvent.RESOLVED and numbers.seconds_to_loss is not None:
        parts.append(_next_loss(numbers.seconds_to_loss, numbers))
    if numbers.seconds_to_catch_up is not None:
        parts.append(f"Caught up in about {duration(round(numbers.seconds_to_catch_up))}.")
    return " ".join(parts) or None


def _next_loss(seconds: float, numbers: GroupNumbers) -> str:
    when = duration(round(seconds))
    if numbers.loss_cause == LossCause.EXPIRY:
        return f"The committed offsets will expire {f'in about {when}' if seconds > 0 else 'at any moment'}."
    if seconds > 0 and numbers.seconds_to_loss_is_upper_bound:
        return f"Unread records may be deleted at any moment, and are past the retention in about {when}."
    if seconds > 0:
        return f"Unread records will be deleted in {when} at the earliest."
    if numbers.records_lost:
        return "Unread records are being deleted now."
    return "Unread records may be deleted at any moment."


def _time(at: datetime | None) -> str | None:
    return None if at is None else timestamp(at)
