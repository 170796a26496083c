"""From what was read to what is the case at a moment: pure, so that "how old is too old" is decided in one place."""

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field, replace
from datetime import datetime

from lagwise.domain.findings import FindingKind
from lagwise.domain.group_record import GroupRecord
from lagwise.domain.humanise import duration, plural
from lagwise.domain.staleness import STALE_INTERVALS
from lagwise.domain.vocabulary import Status, UnknownReason
from lagwise_alerts.evaluate.group_facts import STORM_LASTS, CapacityRow, Group, capacity_sentence
from lagwise_alerts.model import (
    AlertKind,
    AlertSubject,
    ClusterView,
    Condition,
    FreshnessCondition,
    GroupCondition,
    Situation,
)

#: What is added to the sentence of a group whose oldest unread record keeps getting older …
GETTING_OLDER = " No trend in its lag is certain, but the oldest unread record keeps getting older."
#: … where its status does not say which way it is going.
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
    #: Its oldest unread record keeps getting older (:mod:`lagwise.domain.aging`).
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
    """How the collection from one cluster is doing, and how far the analysis has followed.

    ``newest_at`` is the end of the newest sample that read anything at all, ``judged_until`` that of the newest one
    the analysis has read, ``unread_since`` when the oldest one that it has not read was written.
    """

    cluster: str
    newest_at: datetime | None
    interval_seconds: float
    errors: tuple[str, ...]
    judged_until: datetime | None
    unread_since: datetime | None


@dataclass(frozen=True, slots=True)
class LakeSnapshot:
    """What the lake holds for the alerts.

    ``groups_are_current`` is whether ``groups`` is all there is now, so that a group missing there is really missing.
    ``active_before`` are groups (cluster, group) that the history shows alive, None while the history has not been
    read. ``storms`` are the latest storm of rebalances of groups that had one: when it last rebalanced, and a sentence.
    ``analysis_unreadable_since`` is since when the analysis' tables cannot be read, ``trouble`` what went wrong.
    """

    groups: tuple[GroupRow, ...] = ()
    groups_are_current: bool = True
    collections: Mapping[str, CollectionRow] | None = None
    active_before: frozenset[tuple[str, str]] | None = None
    storms: Mapping[Group, tuple[datetime, str]] = field(default_factory=dict)
    capacity: Mapping[Group, tuple[CapacityRow, ...]] = field(default_factory=dict)
    analysis_unreadable_since: datetime | None = None
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
        record = row.record
        if record.cluster in views:
            group = _group(row, views[record.cluster], _seen_active(row, snapshot, active))
            conditions += [group, *_findings(record, group), *_group_facts(record, group, snapshot)]
    trouble = "".join(f" Trouble: {line.rstrip('.')}." for line in snapshot.trouble)
    conditions += [_collection(name, rows.get(name), watching_since, now, trouble) for name in watched]
    waiting = [row.unread_since for row in (rows.get(name) for name in watched) if row and row.unread_since]
    if snapshot.analysis_unreadable_since is not None:
        waiting.append(snapshot.analysis_unreadable_since)
    conditions.append(_analysis(waiting, analysis_interval_seconds, watching_since, now, trouble))
    return Situation(tuple(conditions), views)


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


def _findings(record: GroupRecord, group: GroupCondition) -> list[GroupCondition]:
    """Of each kind, also of those that are not found: their alerts end."""
    sentences: dict[FindingKind, str] = {}
    for finding in record.findings:
        before = sentences.get(finding.kind)
        sentences[finding.kind] = finding.sentence if before is None else f"{before} {finding.sentence}"
    return [
        replace(
            group,
            subject=AlertSubject(AlertKind(kind.value), record.cluster, record.group),
            since=record.as_of,
            sentence=sentences.get(kind, record.sentence),
            is_found=kind in sentences,
        )
        for kind in FindingKind
    ]


def _group_facts(record: GroupRecord, group: GroupCondition, snapshot: LakeSnapshot) -> Iterator[GroupCondition]:
    """Facts that last, as findings do, and that rules may ask for by a key of their own."""

    def one(kind: AlertKind, count: int, sentence: str, words: Iterable[str] = ()) -> GroupCondition:
        return replace(
            group,
            subject=AlertSubject(kind, record.cluster, record.group),
            since=record.as_of,
            sentence=sentence if count else record.sentence,
            is_found=count > 0,
            found_count=count,
            found_words=frozenset(words),
        )

    # While it is rebalanced, nobody owns anything: that says nothing of how many will own nothing afterwards.
    idle = 0 if record.reason is UnknownReason.REBALANCING else record.idle_members or 0
    members = record.numbers.members
    of = "" if members is None else f" of {members}"
    yield one(AlertKind.IDLE_MEMBERS, idle, f"{idle}{of} members own no partition, so that they do nothing.")
    ghosts = record.partitions_by_status.get(Status.GHOST, 0)
    yield one(
        AlertKind.GHOSTS, ghosts, f"Commits are left on {plural(ghosts, 'partition')} of topics that it reads no more."
    )
    key = (record.cluster, record.group)
    last_at, sentence = snapshot.storms.get(key, (None, ""))
    yield one(AlertKind.REBALANCE_STORM, int(last_at is not None and record.as_of - last_at < STORM_LASTS), sentence)
    capacity = snapshot.capacity.get(key, ())
    yield one(
        AlertKind.CAPACITY, len(capacity), capacity_sentence(capacity), (verdict.value for verdict, _, _ in capacity)
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
