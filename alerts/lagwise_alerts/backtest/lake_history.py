"""The lake's history as conditions, moment by moment.

The lake keeps the status of each group, its lag and the age of its oldest unread record, storms of rebalances, and how
fresh samples and analysis were. It keeps no sentences, findings, capacity, idle members or forecasts. Topics and commit
cadence of a group are taken to be those of now. What else groups may share is in :mod:`.lake_comparison`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from itertools import groupby, pairwise
from typing import Any

import pyarrow as pa

from lagwise.domain.aging import AgePace
from lagwise.domain.group_record import NUMBER_FACTS, GroupNumbers, numbers_of
from lagwise.domain.humanise import count, duration
from lagwise.domain.vocabulary import Status, UnknownReason
from lagwise.tables.analysis import GROUP_HISTORY, GROUP_STATUS, STATUS_CHANGES
from lagwise.tables.membership import REBALANCE_STATS
from lagwise.tables.store import Lake
from lagwise_alerts.backtest.backtest import PastSituation
from lagwise_alerts.backtest.lake_comparison import STATUSES, LakeComparison
from lagwise_alerts.backtest.lake_health import LOOKBACK, PastHealth
from lagwise_alerts.backtest.lazy_traits import LazyTraits
from lagwise_alerts.evaluate.group_facts import STORM_LASTS, Group
from lagwise_alerts.evaluate.observation import (
    SIGNS_OF_LIFE,
    VERDICT_VALID_SECONDS,
    CollectionRow,
    LakeSnapshot,
    observe,
)
from lagwise_alerts.evaluate.unread_ages import LagObjective, UnreadAges, read_cadences, usual_objective
from lagwise_alerts.model import (
    CLUSTER_FINDINGS,
    AlertKind,
    AlertSubject,
    ClusterView,
    Condition,
    GroupCondition,
    Situation,
)
from lagwise_alerts.rules.rule_file import RuleBook

#: The kinds of alerts that a backtest over the lake can raise.
KINDS = CLUSTER_FINDINGS | {AlertKind.GROUP, AlertKind.REBALANCE_STORM, AlertKind.COLLECTION, AlertKind.ANALYSIS}
#: Between two samples the alert process evaluates as well; this often is enough in a backtest.
EVALUATE_EVERY = timedelta(seconds=15)

#: The worst numbers of each group by status. A group that no rule matches even with these is left out.
_WORST = """
select cluster, "group", status, max(lag) as lag, max(lag_seconds) as lag_seconds
from group_history where as_of >= ? and as_of < ? group by all
"""
_COLUMNS = {column.name for column in GROUP_HISTORY.columns}
_NUMBERS = ", ".join(f"{number.column} as {number.name}" for number in NUMBER_FACTS if number.column in _COLUMNS)
_ROWS = f"""
select cluster, "group", as_of, status, {_NUMBERS}
from group_history semi join wanted using (cluster, "group")
where as_of >= ? and as_of < ? order by as_of, cluster, "group"
"""  # noqa: S608 (column names of our own)
_MOMENTS = "select distinct as_of, cluster from group_history where as_of >= ? and as_of < ? order by all"
_CHANGES = """
select cluster, "group", "at", reason from status_changes semi join wanted using (cluster, "group")
where topic is null and "at" < ? order by "at"
"""
_STORMS = """
select cluster, "group", hour, last_at, sentence from rebalance_stats where is_storm and last_at >= ? and hour < ?
order by cluster, "group", hour
"""

_FIRST_JUDGED = "select cluster, min(as_of) as first_at from group_history where as_of >= ? and as_of < ? group by 1"
_TOPICS = 'select cluster, "group", topics from group_status'

_REASONS = {reason.value: reason for reason in UnknownReason}

Topics = Mapping[Group, tuple[str, ...]]
_Change = tuple[datetime, UnknownReason | None]
#: From when to when a storm lasted, and what is said of it.
_Storm = tuple[datetime, datetime, str]


@dataclass(frozen=True, slots=True)
class HistorySpan:
    """A time range of the lake's history."""

    since: datetime
    until: datetime
    analysis_interval_seconds: float
    #: Fingerprints of the groups that were ever active.
    alive: frozenset[str] = frozenset()
    #: Fingerprints of the groups whose commits a mirror writes.
    mirrored: frozenset[str] = frozenset()
    #: The lag objectives of now.
    objective_of: LagObjective = usual_objective


def situations(lake: Lake, span: HistorySpan, book: RuleBook) -> Iterator[PastSituation]:
    """Every moment at which something new was known, and those in between at which nothing was. Raises LakeError."""
    health = PastHealth(lake, span.since, span.until)
    rows = lake.query(_TOPICS, over=[GROUP_STATUS]).to_pylist()
    topics: Topics = {(row["cluster"], row["group"]): tuple(row["topics"] or ()) for row in rows}
    wanted = _wanted(lake, span, book, topics)
    storms = _storms(lake, span)
    ages, cadences = UnreadAges(), read_cadences(lake)
    judged = groupby(_conditions(lake, span, wanted, topics), key=lambda c: (c.as_of, str(c.subject.cluster)))
    following = next(judged, None)
    showing: dict[str, list[Condition]] = {}
    # A cluster is taken to be watched since it was first judged, as far back as the alerts look.
    begun = first_judged(lake, span.since - LOOKBACK, span.until)
    judged_at: dict[str, datetime] = {}
    comparison = LakeComparison(lake, span.since, span.until, wanted, topics)
    for now, cluster in _moments(lake, span, health.begins_at):
        collections = health.at(now)
        monitor = _monitor(now, collections, span.analysis_interval_seconds)
        if cluster is not None:
            showing[cluster] = []
            judged_at[cluster] = now
            if following is not None and following[0] == (now, cluster):
                view = monitor.clusters.get(cluster)
                valid = VERDICT_VALID_SECONDS if view is None else view.valid_for_seconds
                sampled = collections[cluster].interval_seconds if cluster in collections else 0.0
                interval = max(sampled, span.analysis_interval_seconds)
                for condition in following[1]:
                    group = (cluster, str(condition.subject.group))
                    pace = AgePace(span.objective_of(group), interval, cadences.get(group))
                    is_getting_older = ages.see(group, condition.as_of, condition.numbers, pace)
                    condition = replace(condition, valid_for_seconds=valid, is_getting_older=is_getting_older)
                    showing[cluster] += _with_storm(condition, storms)
                following = next(judged, None)
        groups = (condition for its in showing.values() for condition in its)
        views = _views(monitor, judged_at, begun)
        longest = max((row.interval_seconds for row in collections.values()), default=0.0)
        traits = LazyTraits(partial(comparison.traits, now, longest))
        others = partial(comparison.others, dict(judged_at), views)
        yield PastSituation(now, Situation((*monitor.conditions, *groups), views, traits, others))


def first_judged(lake: Lake, since: datetime, until: datetime) -> dict[str, datetime]:
    """The first moment of a time range at which each cluster was judged. Raises LakeError."""
    rows = lake.query(_FIRST_JUDGED, [since, until], over=[GROUP_HISTORY], since=since).to_pylist()
    return {row["cluster"]: row["first_at"] for row in rows}


def _views(
    monitor: Situation, judged_at: Mapping[str, datetime], begun: Mapping[str, datetime]
) -> dict[str, ClusterView]:
    """The watched clusters. Samples are deleted long before the history is: where there are none, the history says how
    far the verdicts reach."""
    of_history = {
        cluster: ClusterView(at, VERDICT_VALID_SECONDS, without_errors=True) for cluster, at in judged_at.items()
    }
    views = {**of_history, **monitor.clusters}
    return {cluster: replace(view, watched_since=begun.get(cluster)) for cluster, view in views.items()}


def _monitor(now: datetime, collections: Mapping[str, CollectionRow], analysis_interval_seconds: float) -> Situation:
    """The freshness of collections and analysis at a moment."""
    return observe(
        LakeSnapshot(collections=collections),
        clusters=(),
        analysis_interval_seconds=analysis_interval_seconds,
        active=set(),
        watching_since=None,
        now=now,
    )


def _wanted(lake: Lake, span: HistorySpan, book: RuleBook, topics: Topics) -> pa.Table:
    """The groups that a rule may match."""
    found = set()
    for row in lake.query(_WORST, [span.since, span.until], over=[GROUP_HISTORY], since=span.since).to_pylist():
        subject = AlertSubject(AlertKind.GROUP, row["cluster"], row["group"])
        labels, reads = book.labels_of(subject), topics.get((row["cluster"], row["group"]), ())
        for rule in book.rules:
            when = rule.when
            might = (
                (not when.statuses or row["status"] in when.statuses)
                and (when.lag_above is None or (row["lag"] or 0) > when.lag_above)
                and (when.lag_seconds_above is None or (row["lag_seconds"] or 0) > when.lag_seconds_above)
            )
            asks_for_groups = not when.kinds.isdisjoint((AlertKind.GROUP, AlertKind.REBALANCE_STORM))
            if might and asks_for_groups and rule.applies_to(subject, labels, reads):
                found.add((row["cluster"], row["group"]))
    schema = pa.schema([("cluster", pa.string()), ("group", pa.string())])
    return pa.Table.from_pylist([{"cluster": cluster, "group": group} for cluster, group in sorted(found)], schema)


def _moments(lake: Lake, span: HistorySpan, begins_at: datetime | None) -> Iterator[tuple[datetime, str | None]]:
    """When a cluster was judged, with its name; in between, and after, moments without one."""
    rows = lake.query(_MOMENTS, [span.since, span.until], over=[GROUP_HISTORY], since=span.since).to_pylist()
    judged = [(row["as_of"], row["cluster"]) for row in rows]
    starts = [at for at in (begins_at, judged[0][0] if judged else None) if at is not None]
    if not starts:
        return
    start = max(span.since, min(starts))
    for (before, _), (at, cluster) in pairwise([(start, None), *judged, (span.until, None)]):
        for number in range(1, int((at - before) / EVALUATE_EVERY)):
            yield before + number * EVALUATE_EVERY, None
        yield at, cluster


def _conditions(lake: Lake, span: HistorySpan, wanted: pa.Table, topics: Topics) -> Iterator[GroupCondition]:
    given = {"wanted": wanted}
    values = [span.since, span.until]
    rows = lake.query(_ROWS, values, over=[GROUP_HISTORY], since=span.since, given=given)
    changes: dict[Group, list[_Change]] = {}
    for row in lake.query(_CHANGES, [span.until], over=[STATUS_CHANGES], given=given).to_pylist():
        change = (row["at"], _REASONS.get(row["reason"]))
        changes.setdefault((row["cluster"], row["group"]), []).append(change)
    latest: dict[Group, _Change] = {}
    alive: set[str] = set(span.alive)
    for batch in rows.to_batches(max_chunksize=10_000):
        for row in batch.to_pylist():
            key = (row["cluster"], row["group"])
            as_of = row["as_of"]
            ahead = changes.get(key, [])
            while ahead and ahead[0][0] <= as_of:
                latest[key] = ahead.pop(0)
            condition = _condition(row, as_of, latest.get(key, (as_of, None)), alive, span.mirrored)
            yield replace(condition, topics=topics.get(key, ()))


def _condition(
    row: Mapping[str, Any], as_of: datetime, change: _Change, alive: set[str], mirrored: frozenset[str]
) -> GroupCondition:
    subject = AlertSubject(AlertKind.GROUP, row["cluster"], row["group"])
    status, numbers = STATUSES.get(row["status"], Status.UNKNOWN), numbers_of(row)
    if status in SIGNS_OF_LIFE or numbers.consume_rate_per_second:
        alive.add(subject.fingerprint)
    since, reason = change
    return GroupCondition(
        subject=subject,
        as_of=as_of,
        valid_for_seconds=0.0,  # as its collection has it at the time
        status=status,
        reason=reason if status is Status.UNKNOWN else None,
        since=since,
        sentence=_sentence(status, numbers),
        seen_active=subject.fingerprint in alive and subject.fingerprint not in mirrored,
        numbers=numbers,
    )


def _sentence(status: Status, numbers: GroupNumbers) -> str:
    """The history keeps no sentences."""
    unread = "how much is unread is not known"
    if numbers.lag_records is not None:
        unread = f"{count(numbers.lag_records)} records unread"
        if numbers.lag_seconds is not None:
            age = duration(numbers.lag_seconds, lower_bound=bool(numbers.lag_seconds_is_lower_bound))
            unread += f", the oldest for {age}"
    return f"{status.value.replace('_', ' ')}; {unread}."


def _storms(lake: Lake, span: HistorySpan) -> dict[Group, list[_Storm]]:
    """Of the rebalances of an hour only the last one's time is kept: a storm is taken to begin a quarter of an hour
    before it, and to last from hour to hour."""
    start = span.since - STORM_LASTS
    rows = lake.query(_STORMS, [start, span.until], over=[REBALANCE_STATS]).to_pylist()
    found: dict[Group, list[_Storm]] = {}
    before: dict[Group, datetime] = {}
    for row in rows:
        key, hour, last_at = (row["cluster"], row["group"]), row["hour"], row["last_at"]
        its = found.setdefault(key, [])
        goes_on = key in before and hour - before[key] == timedelta(hours=1)
        begins = its.pop()[0] if goes_on else max(hour, last_at - STORM_LASTS)
        its.append((begins, last_at + STORM_LASTS, row["sentence"]))
        before[key] = hour
    return found


def _with_storm(group: GroupCondition, storms: Mapping[Group, list[_Storm]]) -> Iterator[GroupCondition]:
    """A group's condition, and that of its storms if it ever had one."""
    yield group
    its = storms.get((str(group.subject.cluster), str(group.subject.group)))
    if its is not None:
        sentence = next((said for begins, ends, said in its if begins <= group.as_of < ends), None)
        yield group.finding(AlertKind.REBALANCE_STORM, sentence)
