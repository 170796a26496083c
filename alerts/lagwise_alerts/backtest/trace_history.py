"""A trace as conditions, moment by moment."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from math import isnan
from typing import Any

from lagwise.domain.aging import AgePace
from lagwise.domain.correlation import GroupKey, GroupTraits, ThingKind
from lagwise.domain.findings import loss_findings
from lagwise.domain.groups import record_of_verdict
from lagwise.tables.raw import MEMBERS
from lagwise.traces.judged import JudgedTrace, judged
from lagwise.traces.trace import Row, Trace, moment
from lagwise_alerts.backtest.backtest import CATCHING_UP, LOSS_AHEAD, PastSituation
from lagwise_alerts.backtest.lazy_traits import LazyTraits
from lagwise_alerts.evaluate.group_traits import MEMBERS_LOOKBACK, traits_by_group
from lagwise_alerts.evaluate.observation import CollectionRow, GroupRow, LakeSnapshot, observe
from lagwise_alerts.evaluate.unread_ages import UnreadAges
from lagwise_alerts.model import AlertKind

#: The kinds of alerts that a backtest over a trace can raise.
KINDS = frozenset({AlertKind.GROUP, AlertKind.LOSS, AlertKind.IDLE_MEMBERS, AlertKind.GHOSTS, AlertKind.COLLECTION})
#: Conditions on numbers that a trace has, by their key in the file of rules.
NUMBERS = frozenset({LOSS_AHEAD, CATCHING_UP})


def situations(trace: Trace, events: Sequence[Row], cluster: str) -> Iterator[PastSituation]:
    """Every moment at which the trace is to be judged. ``events`` are those that a collector would have recorded,
    ``cluster`` is the name of its cluster."""
    its = judged(trace, events)
    cadences = _cadences(its)
    interval = max(trace.sample_interval_s, trace.evaluate_every_s)
    groups: tuple[GroupRow, ...] = ()
    alive: set[str] = set()
    ages = UnreadAges()
    seen = -1
    begins_at = moment(trace.sample_times[0])
    for number, time_s in enumerate(its.times):
        now, sample = moment(time_s), trace.sample_at(time_s)
        as_of = moment(trace.sample_times[sample])
        if sample != seen:
            seen = sample
            groups = tuple(
                replace(row, is_getting_older=ages.see(row.key, as_of, row.record.numbers, pace))
                for row in _rows_at(its, number, groups, as_of, cluster)
                for pace in [_pace(trace, row.record.group, interval, cadences.get((number, row.record.group)))]
            )
            alive.update(row.subject.fingerprint for row in groups if row.is_active)
        observed = observe(
            LakeSnapshot(
                groups=groups,
                collections={
                    cluster: CollectionRow(cluster, as_of, trace.sample_interval_s, (), as_of, None, begins_at)
                },
                active_before=frozenset(),
            ),
            clusters=(cluster,),
            analysis_interval_seconds=trace.evaluate_every_s,
            active=alive,
            watching_since=None,
            now=now,
        )
        traits = LazyTraits(partial(_traits, trace, cluster, now))
        yield PastSituation(now, replace(observed, traits=traits))


def _traits(trace: Trace, cluster: str, now: datetime) -> dict[GroupKey, GroupTraits]:
    """The hosts and client ids of the members of the last half hour. A trace has no brokers."""
    start = now - MEMBERS_LOOKBACK
    found: dict[str, dict[str, Any]] = {}
    for row in trace.rows[MEMBERS.name]:
        if start <= row["sampled_at"] <= now:
            its = found.setdefault(
                row["group"], {"cluster": cluster, "group": row["group"], "hosts": set(), "client_ids": set()}
            )
            its["hosts"] |= {row["host"]} - {None}
            its["client_ids"] |= {row["client_id"]} - {None}
    return traits_by_group((), found.values())


def missing_traits(trace: Trace) -> tuple[ThingKind, ...]:
    """What groups may share that the trace says nothing of."""
    members = trace.rows[MEMBERS.name]
    told = {ThingKind.HOST: "host", ThingKind.CLIENT_ID: "client_id"}
    missing = (kind for kind, name in told.items() if all(row[name] is None for row in members))
    return (ThingKind.BROKER, *missing)


def _rows_at(
    its: JudgedTrace, number: int, before: Sequence[GroupRow], as_of: datetime, cluster: str
) -> Iterator[GroupRow]:
    previous = {row.record.group: row.record for row in before}
    for group, one in its.groups[number].items():
        earlier = previous.get(group)
        is_unchanged = earlier is not None and earlier.status is one.verdict.status
        record = record_of_verdict(
            one.verdict,
            cluster=cluster,
            group=group,
            as_of=as_of,
            since=earlier.since if earlier is not None and is_unchanged else as_of,
            state=one.state,
            group_type=one.type,
            idle_members=one.idle_members,
            findings=loss_findings(one.verdict.lost, as_of, records_lost=one.verdict.numbers.records_lost or 0),
        )
        yield GroupRow(record)


def _cadences(its: JudgedTrace) -> dict[tuple[int, str], float]:
    """How often groups commit where something is unread, by the number of the moment and the group's name."""
    rows = its.partitions
    is_unread = (rows["lag"] > 0) & (rows["lag_seconds"] > 0)
    columns = (rows[name][is_unread].tolist() for name in ("moment", "group", "commit_cadence_seconds"))
    cadences: dict[tuple[int, str], float] = {}
    for number, group, seconds in zip(*columns, strict=True):
        key = number, its.group_names[group]
        cadences[key] = max(cadences.get(key, 0.0), 0.0 if isnan(seconds) else seconds)
    return cadences


def _pace(trace: Trace, group: str, interval_seconds: float, cadence_seconds: float | None) -> AgePace:
    """What is usual for a group."""
    objective = trace.lag_objectives_s.get(group, trace.lag_objective_s)
    return AgePace(objective, interval_seconds, cadence_seconds)
