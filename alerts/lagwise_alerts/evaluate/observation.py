"""From rows of the lake to the conditions at a moment. Pure: how old is too old is decided here and only here."""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import datetime

from lagwise.domain.cluster_findings import ClusterFinding, ClusterFindingKind, sentences_of
from lagwise.domain.correlation import GroupTraits
from lagwise.domain.findings import FindingKind
from lagwise.domain.group_record import GroupRecord
from lagwise.domain.humanise import duration, plural
from lagwise.domain.staleness import STALE_INTERVALS
from lagwise.domain.vocabulary import Status, UnknownReason
from lagwise_alerts.evaluate.group_facts import STORM_LASTS, CapacityFinding, Group, Storm, capacity_sentence
from lagwise_alerts.model import (
    AlertKind,
    AlertSubject,
    ClusterCondition,
    ClusterView,
    Condition,
    FreshnessCondition,
    GroupCondition,
    Situation,
)

#: Added to the sentence of a group whose oldest unread record keeps getting older, where its status has no trend.
GETTING_OLDER = " No trend in its lag is certain, but the oldest unread record keeps getting older."
#: Statuses that do not say whether the lag grows.
_WITHOUT_TREND = frozenset({Status.UNKNOWN, Status.LAGGING})
#: A group's verdict is believed for this long after the sample it rests on, or longer where the intervals are longer.
VERDICT_VALID_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class GroupRow:
    """A group as the analysis has it, and what the alerts add to that."""

    record: GroupRecord
    #: It never was more than a name for commits from outside, and a real group of that name is in another cluster: a
    #: mirror (MirrorMaker 2) copies that one's offsets.
    is_mirrored: bool = False
    #: Its oldest unread record is late and keeps getting older (:mod:`lagwise.domain.aging`).
    is_getting_older: bool = False

    @property
    def key(self) -> Group:
        """Its cluster and its name."""
        return self.record.cluster, self.record.group

    @property
    def subject(self) -> AlertSubject:
        """The group, as alerts name it."""
        return AlertSubject(AlertKind.GROUP, self.record.cluster, self.record.group)

    @property
    def is_active(self) -> bool:
        """Whether this is a sign of life: members, a commit that moved, or nothing left unread.

        ``lagging`` and ``falling_behind`` are not: an abandoned group on a busy topic shows them, too.
        """
        record = self.record
        return record.status in SIGNS_OF_LIFE or bool(record.numbers.members) or bool(record.commits_seen)


#: Statuses that only a group which works, or worked while it was watched, can have.
SIGNS_OF_LIFE = frozenset({Status.OK, Status.CATCHING_UP, Status.STALLED, Status.REWOUND})


@dataclass(frozen=True, slots=True)
class CollectionRow:
    """How fresh the samples of one cluster are, and how far the analysis has read them."""

    cluster: str
    #: End of the newest sample that read anything at all.
    newest_at: datetime | None
    #: Between two samples.
    interval_seconds: float
    #: Those of the newest sample, one line each.
    errors: tuple[str, ...]
    #: End of the newest sample that the analysis has read.
    judged_until: datetime | None
    #: When the oldest sample that the analysis has not read was written.
    unread_since: datetime | None
    #: End of the oldest sample of the last days that read anything at all.
    oldest_at: datetime | None = None
    #: Findings on the cluster by the sample that ended at ``newest_at``; None is unknown.
    findings: Sequence[ClusterFinding] | None = None


@dataclass(frozen=True, slots=True)
class LakeSnapshot:
    """What the lake holds for the alerts."""

    groups: tuple[GroupRow, ...] = ()
    #: Whether ``groups`` are all groups there are now, so that a missing one does not exist.
    groups_are_current: bool = True
    collections: Mapping[str, CollectionRow] | None = None
    #: Groups that were active at some time in the history; None while the history has not been read.
    active_before: frozenset[Group] | None = None
    #: The latest storm of rebalances of each group that had one.
    storms: Mapping[Group, Storm] = field(default_factory=dict)
    #: The verdicts on the capacity of each group, the worst first.
    capacity: Mapping[Group, tuple[CapacityFinding, ...]] = field(default_factory=dict)
    #: What groups may share besides topics and clusters; read only while several groups have lately got worse.
    traits: Mapping[Group, GroupTraits] = field(default_factory=dict)
    #: Since when the tables of the analysis cannot be read.
    analysis_unreadable_since: datetime | None = None
    #: What cannot be read, and why: one line each.
    trouble: tuple[str, ...] = ()


def observe(
    snapshot: LakeSnapshot,
    *,
    clusters: Iterable[str],
    analysis_interval_seconds: float,
    active: Set[str],
    watching_since: datetime | None,
    now: datetime,
) -> Situation:
    """The conditions of all groups, collections and the analysis.

    ``clusters`` are those in the settings (none given: those in the lake), ``active`` the fingerprints of groups that
    were seen alive by this process or an earlier one.
    """
    rows = snapshot.collections or {}
    watched = sorted(clusters) or sorted(rows)
    views = {name: _view(rows.get(name), analysis_interval_seconds, snapshot.groups_are_current) for name in watched}
    conditions: list[Condition] = []
    for row in snapshot.groups:
        if row.record.cluster in views:
            group = _group(row, views[row.record.cluster], _seen_active(row, snapshot, active))
            conditions += [group, *_findings(row, group, snapshot)]
    trouble = "".join(f" Trouble: {line.rstrip('.')}." for line in snapshot.trouble)
    conditions += [_collection(name, rows.get(name), watching_since, now, trouble) for name in watched]
    for name in watched:
        conditions += _cluster_findings(name, rows.get(name), views[name].valid_for_seconds)
    waiting = [row.unread_since for row in (rows.get(name) for name in watched) if row and row.unread_since]
    if snapshot.analysis_unreadable_since is not None:
        waiting.append(snapshot.analysis_unreadable_since)
    conditions.append(_analysis(waiting, analysis_interval_seconds, watching_since, now, trouble))
    return Situation(tuple(conditions), views, snapshot.traits)


def _group(row: GroupRow, view: ClusterView, seen_active: bool | None) -> GroupCondition:
    record = row.record
    is_worth_saying = row.is_getting_older and record.status in _WITHOUT_TREND
    return GroupCondition(
        subject=row.subject,
        as_of=record.as_of,
        valid_for_seconds=view.valid_for_seconds,
        status=record.status,
        reason=record.reason,
        since=record.since,
        sentence=record.sentence + (GETTING_OLDER if is_worth_saying else ""),
        seen_active=seen_active,
        numbers=record.numbers,
        topics=record.topics,
        is_getting_older=row.is_getting_older,
    )


def _findings(row: GroupRow, group: GroupCondition, snapshot: LakeSnapshot) -> Iterator[GroupCondition]:
    """One condition of each kind, also of those that the group does not have: their alerts end."""
    record = row.record
    as_stated = replace(group, sentence=record.sentence)
    for kind in FindingKind:
        sentences = [finding.sentence for finding in record.findings if finding.kind is kind]
        yield as_stated.finding(AlertKind(kind.value), " ".join(sentences) if sentences else None)
    # No member owns a partition during a rebalance: that does not say how many will own none afterwards.
    idle = 0 if record.reason is UnknownReason.REBALANCING else record.idle_members or 0
    of = "" if record.numbers.members is None else f" of {record.numbers.members}"
    idle_sentence = f"{idle}{of} members own no partition, so that they do nothing."
    yield as_stated.finding(AlertKind.IDLE_MEMBERS, idle_sentence if idle else None, count=idle)
    ghosts = record.partitions_by_status.get(Status.GHOST, 0)
    ghosts_sentence = f"Commits are left on {plural(ghosts, 'partition')} of topics that it reads no more."
    yield as_stated.finding(AlertKind.GHOSTS, ghosts_sentence if ghosts else None, count=ghosts)
    storm = snapshot.storms.get(row.key)
    is_storm = storm is not None and record.as_of - storm.last_at < STORM_LASTS
    yield as_stated.finding(AlertKind.REBALANCE_STORM, storm.sentence if storm and is_storm else None)
    capacity = snapshot.capacity.get(row.key, ())
    yield as_stated.finding(
        AlertKind.CAPACITY,
        capacity_sentence(capacity) if capacity else None,
        words=(verdict.verdict.value for verdict in capacity),
    )


def _seen_active(row: GroupRow, snapshot: LakeSnapshot, active: Set[str]) -> bool | None:
    if row.is_mirrored:  # what moves its commits is the mirror: who reads is in the other cluster, and watched there
        return False
    if row.is_active or row.subject.fingerprint in active:
        return True
    return None if snapshot.active_before is None else row.key in snapshot.active_before


def _view(row: CollectionRow | None, analysis_interval_seconds: float, groups_are_current: bool) -> ClusterView:
    intervals = (row.interval_seconds if row else 0.0) + analysis_interval_seconds
    return ClusterView(
        judged_until=row.judged_until if row and groups_are_current else None,
        valid_for_seconds=max(VERDICT_VALID_SECONDS, STALE_INTERVALS * intervals),
        without_errors=row is not None and not row.errors,
        watched_since=row.oldest_at if row else None,
    )


def _collection(
    name: str, row: CollectionRow | None, watching_since: datetime | None, now: datetime, trouble: str
) -> FreshnessCondition:
    newest = row.newest_at if row else None
    if newest is None:
        sentence = f"No sample of cluster {name} has been read in the last two days, or ever."
    else:
        sentence = (
            f"No sample of cluster {name} has been read for {duration(round((now - newest).total_seconds()))}, "
            f"since {newest:%Y-%m-%d %H:%M:%S} UTC."
        )
    if row and row.errors:
        sentence += f" The latest attempt met {'; '.join(row.errors)}."
    return FreshnessCondition(
        subject=AlertSubject(AlertKind.COLLECTION, name),
        as_of=now,
        newest_at=newest,
        floor_seconds=STALE_INTERVALS * row.interval_seconds if row else 0.0,
        watching_since=watching_since,
        sentence=sentence + " What its groups do is not known meanwhile." + trouble,
    )


def _cluster_findings(name: str, row: CollectionRow | None, valid_for_seconds: float) -> Iterator[ClusterCondition]:
    """One condition of each kind, also of those that the cluster does not have: their alerts end."""
    if row is None or row.newest_at is None:
        return
    for kind in ClusterFindingKind:
        found = [finding for finding in row.findings or () if finding.kind is kind]
        yield ClusterCondition(
            subject=AlertSubject(AlertKind(kind.value), name),
            as_of=row.newest_at,
            valid_for_seconds=valid_for_seconds,
            sentence=sentences_of(found),
            is_found=None if row.findings is None else bool(found),
        )


def _analysis(
    waiting: list[datetime], interval_seconds: float, watching_since: datetime | None, now: datetime, trouble: str
) -> FreshnessCondition:
    """The analysis is late when samples wait for it. Without new samples it is the collection that is late."""
    newest = min(waiting, default=now)
    age = duration(round((now - newest).total_seconds()))
    return FreshnessCondition(
        subject=AlertSubject(AlertKind.ANALYSIS),
        as_of=now,
        newest_at=newest,
        floor_seconds=STALE_INTERVALS * interval_seconds,
        watching_since=watching_since,
        sentence=(
            f"Samples have been waiting for the analysis for {age}, since {newest:%Y-%m-%d %H:%M:%S} UTC. "
            f"Statuses and alerts of groups stay as they are until it catches up.{trouble}"
        ),
    )
