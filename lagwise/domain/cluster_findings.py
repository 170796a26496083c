"""Findings about a cluster: what endangers the records and committed offsets of all its groups."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from lagwise.domain.humanise import duration, plural
from lagwise.domain.replicas import ReplicaState
from lagwise.domain.vocabulary import OFFSETS_TOPIC, ROCKETMQ

#: What a row of ``brokers`` is about. A controller is listed where it is the active one and no broker.
BROKER, CONTROLLER = "broker", "controller"
#: Kafka's default of ``offsets.retention.minutes``.
USUAL_OFFSETS_RETENTION_SECONDS = 7 * 86400.0
#: Clocks that are set by a time server differ by milliseconds.
CLOCK_DIFFERS_SECONDS = 10.0
#: A broker that is gone for longer was removed from the cluster.
GONE_FOR_GOOD = timedelta(days=1)


class ClusterFindingKind(StrEnum):
    """Declared in the order of urgency."""

    OFFSETS_AT_RISK = "offsets_at_risk"
    NO_LEADER = "no_leader"
    UNDER_MIN_ISR = "under_min_isr"
    DISK_FULL = "disk_full"
    DISK_TOO_FULL = "disk_too_full"
    BROKER_GONE = "broker_gone"
    NO_MASTER = "no_master"
    DISK_FILLING = "disk_filling"
    UNDER_REPLICATED = "under_replicated"
    CLOCK_DIFFERS = "clock_differs"
    OFFSETS_UNREPLICATED = "offsets_unreplicated"
    MIN_ISR_TOO_HIGH = "min_isr_too_high"
    ONE_RACK = "one_rack"
    OFFSETS_RETENTION = "offsets_retention"


@dataclass(frozen=True, slots=True)
class ClusterFinding:
    """A sentence, and what would help."""

    kind: ClusterFindingKind
    sentence: str
    remedy: str


def cluster_findings(sample: Mapping[str, Any]) -> list[ClusterFinding] | None:
    """What the newest sample of a cluster shows, the most urgent first; None is unknown.

    ``sample`` is a row of ``raw/samples``.
    """
    found = [*_of_brokers(sample["brokers"] or (), sample["finished_at"])]
    if sample["system"] == ROCKETMQ:
        found += _of_errors(sample["errors"] or ())
    elif sample["replicas"] is None:
        return None
    else:
        found += _of_replicas(sample["replicas"])
        found += _of_offsets_topic(sample)
    order = list(ClusterFindingKind)
    return sorted(found, key=lambda finding: order.index(finding.kind))


#: What a state of replicas means for the partitions of watched topics.
_TOPIC_KINDS = {
    ReplicaState.NO_LEADER: ClusterFindingKind.NO_LEADER,
    ReplicaState.UNDER_MIN_ISR: ClusterFindingKind.UNDER_MIN_ISR,
    ReplicaState.MIN_ISR_TOO_HIGH: ClusterFindingKind.MIN_ISR_TOO_HIGH,
    ReplicaState.LAST_REPLICA: ClusterFindingKind.UNDER_REPLICATED,
    ReplicaState.UNDER_REPLICATED: ClusterFindingKind.UNDER_REPLICATED,
    ReplicaState.ONE_RACK: ClusterFindingKind.ONE_RACK,
}
#: And for those of the offsets topic, on which every group depends.
_OFFSETS_KINDS = {
    **_TOPIC_KINDS,
    ReplicaState.NO_LEADER: ClusterFindingKind.OFFSETS_AT_RISK,
    ReplicaState.UNDER_MIN_ISR: ClusterFindingKind.OFFSETS_AT_RISK,
    ReplicaState.LAST_REPLICA: ClusterFindingKind.OFFSETS_AT_RISK,
}
#: What is wrong with partitions, and what follows for watched topics and for the offsets topic.
_WRONG = {
    ReplicaState.NO_LEADER: "no leader",
    ReplicaState.UNDER_MIN_ISR: "fewer in-sync replicas than min.insync.replicas",
    ReplicaState.MIN_ISR_TOO_HIGH: "fewer replicas than min.insync.replicas",
    ReplicaState.LAST_REPLICA: "a single in-sync replica left",
    ReplicaState.UNDER_REPLICATED: "replicas that are not in sync",
    ReplicaState.ONE_RACK: "all replicas in one rack",
}
_TOPIC_FOLLOWS = {
    ReplicaState.NO_LEADER: "Nobody can read or write there.",
    ReplicaState.UNDER_MIN_ISR: "Producers with acks=all are rejected.",
    ReplicaState.MIN_ISR_TOO_HIGH: "Kafka 3.7 and newer accepts writes with fewer copies than that; older brokers "
    "reject producers with acks=all.",
    ReplicaState.LAST_REPLICA: "If its broker fails, nobody can read or write there.",
    ReplicaState.UNDER_REPLICATED: "Fewer brokers may fail than intended.",
    ReplicaState.ONE_RACK: "Without that rack, nobody can read or write there.",
}
_OFFSETS_FOLLOWS = {
    ReplicaState.NO_LEADER: "The groups whose offsets are there can neither commit nor rebalance.",
    ReplicaState.UNDER_MIN_ISR: "The groups whose offsets are there cannot commit: after a restart they read again.",
    ReplicaState.MIN_ISR_TOO_HIGH: "Kafka 3.7 and newer accepts commits with fewer copies than that; older brokers "
    "reject them.",
    ReplicaState.LAST_REPLICA: "If its broker's disk is lost, so are the committed offsets.",
    ReplicaState.UNDER_REPLICATED: "Fewer brokers may fail than intended.",
    ReplicaState.ONE_RACK: "Without that rack, the groups whose offsets are there can neither commit nor rebalance.",
}
_CHECK_LOGS = "The brokers of their replicas are in the cluster: check their logs, disks and network."
_ENOUGH_REPLICAS = "Add replicas with kafka-reassign-partitions, or lower min.insync.replicas."
_OTHER_RACKS = "Move a replica of each to another rack with kafka-reassign-partitions."


def _of_replicas(troubles: Iterable[Mapping[str, Any]]) -> Iterable[ClusterFinding]:
    for trouble in troubles:
        state, partitions = ReplicaState(trouble["state"]), trouble["partitions"]
        is_offsets = trouble["topic"] == OFFSETS_TOPIC
        have = "has" if partitions == 1 else "have"
        where = f"{plural(partitions, 'partition')}" + (f" of {OFFSETS_TOPIC}" if is_offsets else "")
        follows = (_OFFSETS_FOLLOWS if is_offsets else _TOPIC_FOLLOWS)[state]
        yield ClusterFinding(
            (_OFFSETS_KINDS if is_offsets else _TOPIC_KINDS)[state],
            f"{where} {have} {_WRONG[state]} ({trouble['named']}). {follows}",
            _remedy(state, trouble["missing"]),
        )


def _remedy(state: ReplicaState, missing: str) -> str:
    if state is ReplicaState.MIN_ISR_TOO_HIGH:
        return _ENOUGH_REPLICAS
    if state is ReplicaState.ONE_RACK:
        return _OTHER_RACKS
    if not missing:
        return _CHECK_LOGS
    if "," in missing:
        return f"Brokers {missing} are not in the cluster: start them."
    return f"Broker {missing} is not in the cluster: start it."


def _of_offsets_topic(sample: Mapping[str, Any]) -> Iterable[ClusterFinding]:
    """What its settings mean, and those of the broker for it."""
    brokers = sum(one["role"] == BROKER for one in sample["brokers"] or ())
    kept_seconds = sample["offsets_retention_seconds"]
    if sample["offsets_topic_replicas"] == 1:
        several = "Raise its replication factor to 3 with kafka-reassign-partitions."
        yield ClusterFinding(
            ClusterFindingKind.OFFSETS_UNREPLICATED,
            f"{OFFSETS_TOPIC} has one replica: while the broker of a partition is down, the groups whose offsets it "
            "holds can neither commit nor rebalance, and if its disk is lost, so are their committed offsets.",
            several if brokers > 1 else f"Add brokers first. {several}",
        )
    if kept_seconds is not None and kept_seconds < USUAL_OFFSETS_RETENTION_SECONDS:
        kept = duration(kept_seconds)
        yield ClusterFinding(
            ClusterFindingKind.OFFSETS_RETENTION,
            f"The committed offsets of a group that is down for {kept} are deleted (offsets.retention.minutes), also "
            "those of unread records that are still kept.",
            f"Raise offsets.retention.minutes to Kafka's default of 7 days ({10_080:,}) or more.",
        )


def _of_brokers(brokers: Sequence[Mapping[str, Any]], now: datetime) -> Iterable[ClusterFinding]:
    for broker in brokers:
        ahead = broker["clock_ahead_seconds"]
        if broker["gone_at"] is not None and now - broker["gone_at"] < GONE_FOR_GOOD:
            gone = duration(round((now - broker["gone_at"]).total_seconds()))
            yield ClusterFinding(
                ClusterFindingKind.BROKER_GONE,
                f"Broker {broker['name']} has been gone for {gone}: the name servers no longer list it, and its "
                "messages cannot be read.",
                "Start it. If it was removed on purpose, acknowledge this: a day after it left, it no longer counts.",
            )
        if ahead is not None and abs(ahead) >= CLOCK_DIFFERS_SECONDS:
            by = f"{duration(abs(ahead))} {'ahead of' if ahead > 0 else 'behind'}"
            yield ClusterFinding(
                ClusterFindingKind.CLOCK_DIFFERS,
                f"The clock of {broker['role']} {broker['name']} is {by} that of the collector: the ages of records, "
                "and when they and committed offsets will be deleted, are wrong by as much.",
                "Check the time synchronisation (NTP) of both machines.",
            )


_GROW = "Free space or enlarge the disk; a lower fileReservedTime deletes expired messages sooner."
#: Errors of RocketMQ's brokers that are findings, and what to do about them.
_ERRORS: Mapping[str, tuple[ClusterFindingKind, str]] = {
    "disk_full": (ClusterFindingKind.DISK_FULL, _GROW),
    "disk_too_full": (ClusterFindingKind.DISK_TOO_FULL, _GROW),
    "disk_filling": (ClusterFindingKind.DISK_FILLING, _GROW),
    "no_master": (ClusterFindingKind.NO_MASTER, "Start the master, or promote the slave: a slave takes no messages."),
}


def _of_errors(errors: Iterable[Mapping[str, Any]]) -> Iterable[ClusterFinding]:
    """The state of RocketMQ's brokers, which samples report among their errors."""
    for error in errors:
        found = _ERRORS.get(error["kind"])
        # The details of errors are hidden from readers who may not see all groups of the cluster.
        if found is not None and error["example"] is not None:
            others = error["count"] - 1
            more = f" So {'does' if others == 1 else 'do'} {plural(others, 'more broker')}." if others else ""
            yield ClusterFinding(found[0], f"Broker {error['example'].rstrip('.')}.{more}", found[1])


def sentences_of(findings: Iterable[ClusterFinding]) -> str:
    """The findings with their remedies, as one text."""
    return " ".join(f"{one.sentence} {one.remedy}" for one in findings)
