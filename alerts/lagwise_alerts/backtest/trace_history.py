"""What was the case in a trace, moment by moment: judged by the plain definition, which needs no Spark."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime

from lagwise.domain.aging import AgePace
from lagwise.domain.evaluation import Evaluation, Moment, evaluate
from lagwise.domain.evidence import Policy
from lagwise.domain.findings import FindingKind, loss_findings
from lagwise.domain.groups import GroupVerdict
from lagwise.domain.ownership import GroupFacts, group_facts
from lagwise.domain.vocabulary import Status
from lagwise.traces.trace import Row, Trace, moment, sample_id
from lagwise_alerts.backtest.backtest import Scene
from lagwise_alerts.backtest.untestable import CATCHING_UP, LOSS_AHEAD
from lagwise_alerts.evaluate.observation import CollectionRow, GroupRow, LakeSnapshot, observe
from lagwise_alerts.evaluate.unread_ages import UnreadAges
from lagwise_alerts.model import AlertKind, Numbers

#: The kinds of alerts, and numbers beside lag and its age, that can be backtested.
KINDS = frozenset({AlertKind.GROUP, AlertKind.LOSS, AlertKind.IDLE_MEMBERS, AlertKind.GHOSTS, AlertKind.COLLECTION})
NUMBERS = frozenset({LOSS_AHEAD, CATCHING_UP})
_UNKNOWN_OR_GHOST = (Status.UNKNOWN, Status.GHOST)


def scenes(trace: Trace, events: Sequence[Row], cluster: str) -> Iterator[Scene]:
    """Every moment at which the trace is to be judged. ``events`` are what a collector would have told of it,
    ``cluster`` is what its cluster is called."""
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
                replace(row, is_getting_older=ages.see((cluster, row.group), as_of, row.numbers, pace))
                for row in _rows(evaluation, facts, groups, as_of, cluster)
                for pace in [_pace(evaluation, at, row.group, interval)]
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
        yield Scene(now, observed.conditions, observed.clusters)


def _rows(
    evaluation: Evaluation, facts: dict[str, GroupFacts], before: Sequence[GroupRow], as_of: datetime, cluster: str
) -> Iterator[GroupRow]:
    previous = {row.group: row for row in before}
    for group, verdict in evaluation.groups.items():
        fact = facts.get(group, GroupFacts())
        its = previous.get(group)
        found = loss_findings(verdict.lost, as_of, records_lost=verdict.records_lost)
        yield GroupRow(
            cluster=cluster,
            group=group,
            as_of=as_of,
            status=verdict.status,
            reason=verdict.reason,
            since=its.since if its is not None and its.status is verdict.status else as_of,
            sentence=verdict.sentence,
            commits_seen=verdict.commits_seen,
            numbers=_numbers(verdict, fact),
            findings={FindingKind.LOSS: found[0].sentence} if found else {},
            idle_members=fact.idle_members,
            ghost_partitions=verdict.partitions_by_status.get(Status.GHOST, 0),
            topics=tuple(verdict.topics),
        )


def _pace(evaluation: Evaluation, at: Moment, group: str, interval_seconds: float) -> AgePace:
    """What is usual for a group: how often it commits where something is unread."""
    cadences = (
        judged.evidence.commit_cadence_seconds or 0.0
        for pair, judged in evaluation.partitions.items()
        if pair.group == group and judged.verdict.lag and judged.evidence.lag_seconds
    )
    return AgePace(at.policy_of(group).lag_objective_seconds, interval_seconds, max(cadences, default=None))


def _numbers(verdict: GroupVerdict, fact: GroupFacts) -> Numbers:
    counts = verdict.partitions_by_status
    known = sum(number for status, number in counts.items() if status not in _UNKNOWN_OR_GHOST)
    return Numbers(
        lag_records=verdict.lag,
        lag_seconds=verdict.lag_seconds,
        lag_seconds_is_lower_bound=verdict.lag_seconds_is_lower_bound,
        produce_rate_per_second=verdict.produce_rate_per_second,
        consume_rate_per_second=verdict.consume_rate_per_second,
        seconds_to_catch_up=verdict.seconds_to_catch_up,
        seconds_to_loss=verdict.seconds_to_loss,
        seconds_to_loss_is_upper_bound=verdict.seconds_to_loss_is_upper_bound,
        loss_cause=verdict.loss_cause.value if verdict.loss_cause else None,
        records_lost=verdict.records_lost,
        transaction_seconds=verdict.transaction_seconds,
        members=fact.members,
        worst_topic=verdict.worst_topic,
        worst_partition=verdict.worst_partition,
        stands_still=verdict.stands_still,
        known_partitions=known or None,
    )
