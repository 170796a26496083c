"""A trace as conditions, moment by moment: judged by the plain definition, which needs no Spark."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime

from lagwise.domain.aging import AgePace
from lagwise.domain.evaluation import Evaluation, Moment, evaluate
from lagwise.domain.evidence import Policy
from lagwise.domain.findings import loss_findings
from lagwise.domain.groups import record_of_verdict
from lagwise.domain.ownership import GroupFacts, group_facts
from lagwise.traces.trace import Row, Trace, moment, sample_id
from lagwise_alerts.backtest.backtest import CATCHING_UP, LOSS_AHEAD, PastSituation
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
    rows = {**trace.rows, "events": events}
    policy = Policy(trace.sample_interval_s, trace.lag_objective_s, trace.risk_horizon_s)
    groups: tuple[GroupRow, ...] = ()
    alive: set[str] = set()
    ages = UnreadAges()
    judged = -1
    for time_s in trace.evaluation_times:
        now, index = moment(time_s), trace.sample_at(time_s)
        as_of = moment(trace.sample_times[index])
        if index != judged:
            judged = index
            at = Moment(sample_id(index), as_of, policy, trace.offsets_retention_s, trace.lag_objectives_s)
            facts = group_facts(rows, at.sample_id, as_of)
            evaluation = evaluate(rows, at)
            interval = max(trace.sample_interval_s, trace.evaluate_every_s)
            groups = tuple(
                replace(row, is_getting_older=ages.see(row.key, as_of, row.record.numbers, pace))
                for row in _rows_at(evaluation, facts, groups, as_of, cluster)
                for pace in [_pace(evaluation, at, row.record.group, interval)]
            )
            alive.update(row.subject.fingerprint for row in groups if row.is_active)
        observed = observe(
            LakeSnapshot(
                groups=groups,
                collections={cluster: CollectionRow(cluster, as_of, trace.sample_interval_s, (), as_of, None)},
                active_before=frozenset(),
            ),
            clusters=(cluster,),
            analysis_interval_seconds=trace.evaluate_every_s,
            active=alive,
            watching_since=None,
            now=now,
        )
        yield PastSituation(now, observed)


def _rows_at(
    evaluation: Evaluation, facts: dict[str, GroupFacts], before: Sequence[GroupRow], as_of: datetime, cluster: str
) -> Iterator[GroupRow]:
    previous = {row.record.group: row.record for row in before}
    for group, verdict in evaluation.groups.items():
        fact = facts.get(group, GroupFacts())
        its = previous.get(group)
        record = record_of_verdict(
            verdict,
            cluster=cluster,
            group=group,
            as_of=as_of,
            since=its.since if its is not None and its.status is verdict.status else as_of,
            state=fact.state,
            group_type=fact.type,
            idle_members=fact.idle_members,
            findings=loss_findings(verdict.lost, as_of, records_lost=verdict.numbers.records_lost or 0),
        )
        yield GroupRow(record)


def _pace(evaluation: Evaluation, at: Moment, group: str, interval_seconds: float) -> AgePace:
    """What is usual for a group: how often it commits where something is unread."""
    cadences = (
        judged.evidence.commit_cadence_seconds or 0.0
        for pair, judged in evaluation.partitions.items()
        if pair.group == group and judged.verdict.lag and judged.evidence.lag_seconds
    )
    return AgePace(at.policy_of(group).lag_objective_seconds, interval_seconds, max(cadences, default=None))
