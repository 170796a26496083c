"""From everything that was ever sampled to the verdicts at one moment: the whole definition, in plain Python.

Spark computes the same from minute buckets, and the contract test holds the two together; where they differ, this is
right. It goes by the book and not by the clock: every evaluation reads the history from its beginning.

Rows are those of the raw tables (``lagwise.tables.raw``) as plain mappings, keyed by the name of the table; only the
columns that verdicts rest on are looked at, and their order does not matter.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import NamedTuple

from lagwise.domain import lag as lags
from lagwise.domain.causes import Place
from lagwise.domain.groups import GroupVerdict, verdict_of
from lagwise.domain.history import (
    Observation,
    clock_from,
    gap_seconds,
    movement_of,
    pace_of,
    standstill_of,
    whole_micros,
)
from lagwise.domain.lost import of_partitions
from lagwise.domain.ownership import GroupFacts, Row, Rows, group_facts, seconds_to_expiry
from lagwise.domain.parts import PartitionsInStatus, last_catch_up, soonest_breach, total
from lagwise.domain.retention import jumps_of
from lagwise.domain.rhythm import cadence_of, usual_pause_of
from lagwise.domain.sampled import (
    Clock,
    earlier_log_start,
    is_deleted_by_request,
    logs_of,
    retention_of,
    sampled_at,
)
from lagwise.domain.status import Evidence, Policy, Verdict, judge
from lagwise.domain.time_lag import (
    Age,
    Log,
    age_of,
    ends_of,
    log_start_rate_of,
    produced_per_second,
)
from lagwise.domain.vocabulary import LossCause, Status, UnknownReason

#: What a sample has of a commit only where the collector may read records.
_LOOKED_UP = ("next_record", "committed_at")


class Pair(NamedTuple):
    """A group-partition."""

    group: str
    topic: str
    partition: int


@dataclass(frozen=True, slots=True)
class Moment:
    """The sample that is judged, and what verdicts go by."""

    sample_id: str
    as_of: datetime
    policy: Policy = field(default_factory=Policy)
    offsets_retention_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Judged:
    """One group-partition: what is known of it, what follows, and its owner as "client … on host …"."""

    evidence: Evidence
    verdict: Verdict
    owner: str | None


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Every verdict at one moment."""

    partitions: Mapping[Pair, Judged]
    groups: Mapping[str, GroupVerdict]


def evaluate(rows: Rows, moment: Moment) -> Evaluation:
    """Judge every group-partition that is committed to or owned now, or was ever seen committed.

    Rows later than the moment are not looked at.
    """
    now = moment.as_of
    commits = [r for r in rows.get("commits", ()) if r["sampled_at"] <= now]
    watermarks = [r for r in rows.get("watermarks", ()) if r["sampled_at"] <= now]
    facts = group_facts(rows, moment.sample_id, moment.as_of)
    clock = clock_from(now)
    logs = logs_of(watermarks, clock)
    observations = _observations(commits, watermarks, clock)
    latest = {_pair(r): r for r in commits if r["sample_id"] == moment.sample_id}
    ends = {(r["topic"], r["partition"]): r for r in watermarks if r["sample_id"] == moment.sample_id}
    topics = {r["topic"]: r for r in sorted(rows.get("topics", ()), key=sampled_at) if r["sampled_at"] <= now}
    clients = {
        (r["group"], r["member_id"]): client_of(r)
        for r in rows.get("members", ())
        if r["sample_id"] == moment.sample_id
    }
    partitions = {}
    seen = [pair for pair, its in observations.items() if any(o.lag is not None for o in its)]
    for pair in sorted({*latest, *seen}):
        owner = latest.get(pair, {}).get("owner")
        evidence = _evidence(
            moment,
            pair,
            commit=latest.get(pair),
            end=ends.get((pair.topic, pair.partition)),
            observations=observations.get(pair, []),
            log=logs.get((pair.topic, pair.partition), Log(())),
            topic=topics.get(pair.topic),
            facts=facts.get(pair.group, GroupFacts()),
        )
        partitions[pair] = Judged(evidence, judge(evidence, moment.policy), clients.get((pair.group, owner)))
    groups = {}
    for group in sorted({*facts, *(pair.group for pair in partitions)}):
        fact = facts.get(group, GroupFacts())
        its = {pair: judged for pair, judged in partitions.items() if pair.group == group}
        groups[group] = verdict_of(
            parts_of(its),
            members=fact.members,
            idle_members=fact.idle_members,
            state=fact.state,
            group_type=fact.type,
            error=fact.error,
            places=_places(its, ends),
        )
    return Evaluation(partitions, groups)


def parts_of(partitions: Mapping[Pair, Judged]) -> list[PartitionsInStatus]:
    """A group's partitions, summed up by status, reason and cause of the nearest loss."""
    together: dict[tuple[Status, UnknownReason | None, LossCause | None], list[tuple[Pair, Judged]]] = {}
    for pair, judged in sorted(partitions.items()):
        verdict = judged.verdict
        together.setdefault((verdict.status, verdict.reason, verdict.loss_cause), []).append((pair, judged))
    return [_part(*key, those) for key, those in together.items()]


def _places(partitions: Mapping[Pair, Judged], ends: Mapping[tuple[str, int], Row]) -> list[Place]:
    """Each partition with its owner and its leader."""
    return [
        Place(judged.verdict.status, judged.owner, ends.get((pair.topic, pair.partition), {}).get("leader"), 1)
        for pair, judged in partitions.items()
    ]


def shown_age(judged: Judged) -> tuple[float | None, bool]:
    """``lag_seconds`` as it is shown, and whether it is a lower bound: not told where the lag is not known."""
    if judged.verdict.lag is None:
        return None, False
    if judged.verdict.lag == 0:
        return 0.0, False
    return judged.evidence.lag_seconds, judged.evidence.lag_seconds_is_lower_bound


def _evidence(
    moment: Moment,
    pair: Pair,
    *,
    commit: Row | None,
    end: Row | None,
    observations: Sequence[Observation],
    log: Log,
    topic: Row | None,
    facts: GroupFacts,
) -> Evidence:
    clock = clock_from(moment.as_of)
    now, interval = clock(moment.as_of), moment.policy.interval_seconds
    gap = gap_seconds(interval)
    committed = commit["committed"] if commit is not None else None
    log_start, high_watermark, last_stable = (
        end.get(name) if end is not None else None for name in ("log_start", "high_watermark", "last_stable")
    )
    next_record, committed_at = (commit.get(name) if commit is not None else None for name in _LOOKED_UP)
    lag = Observation(now, committed, log_start, high_watermark, last_stable, next_record=next_record).lag
    movement = movement_of(observations, now, gap, recreated_at=log.recreated_at)
    last_stable_age = age_of(last_stable, log, now) if last_stable is not None else None
    last_stable_seconds = last_stable_age.seconds if last_stable_age is not None else None
    if lag is not None and lags.is_held_back(committed, high_watermark, last_stable, last_stable_seconds):
        lag = Observation(now, committed, log_start, high_watermark, next_record=next_record).lag
        # That nothing could be read is no sign of life.
        movement = replace(movement, drained_at=None)
    committed_since = movement.moved_at if movement.moved_at is not None else now
    usual_pause = usual_pause_of(observations, now, interval, recreated_at=log.recreated_at)
    pace = pace_of(
        observations,
        now,
        movement,
        interval_seconds=interval,
        gap=gap,
        recreated_at=log.recreated_at,
        usual_pause_seconds=usual_pause,
    )
    age: Age | None = None
    if lag == 0:
        age = Age(0.0, False)
    elif lag and committed is not None and log_start is not None:
        age = age_of(lags.position(lags.reads_from(committed, next_record), log_start), log, now)
    standstill = standstill_of(
        movement,
        lag,
        age.seconds if age is not None else None,
        now,
        age_is_lower_bound=age is not None and age.is_lower_bound,
    )
    limits = retention_of(topic)
    has_ends = log_start is not None and high_watermark is not None
    return Evidence(
        # That nothing is committed is believed only of a partition that could be read, or is not watched any more: the
        # commits on a topic that the collector may not describe are hidden by Kafka as if there were none.
        readable=facts.error is None and (has_ends or (committed is None and end is None)),
        committed=committed,
        next_record=next_record,
        ever_committed=movement.moved_at is not None,
        recreated=log.recreated_at is not None and committed_since < log.recreated_at,
        log_start=log_start,
        high_watermark=high_watermark,
        last_stable=last_stable,
        last_stable_seconds=last_stable_seconds,
        samples=pace.samples,
        span_seconds=pace.span_seconds,
        lag_seconds=age.seconds if age is not None else None,
        lag_seconds_is_lower_bound=age is not None and age.is_lower_bound,
        unmoved_seconds=whole_micros(now - committed_since),
        standstill_seconds=standstill,
        commits_seen=movement.moves,
        commit_cadence_seconds=cadence_of(movement.moves, movement.backlog_seconds, standstill, usual_pause),
        rewound_from=movement.rewound_from,
        rewound_records=movement.rewound_records,
        rewound_seconds=whole_micros(now - movement.rewound_at) if movement.rewound_at is not None else None,
        lost_lately=movement.lost_lately,
        lost_of_day=movement.lost_of_day,
        deleted_by_request=is_deleted_by_request(topic, log, now),
        earlier_log_start=earlier_log_start(log, now),
        trend_is_measurable=pace.is_measurable,
        trend=pace.trend,
        longer=pace.longer,
        produce_rate_per_second=produced_per_second(pace, log, now),
        consume_rate_per_second=pace.consume_rate_per_second,
        log_start_jumps=jumps_of(ends_of(log, now)),
        log_start_rate_per_second=log_start_rate_of(log, now),
        state=facts.state,
        type=facts.type,
        owner=commit["owner"] if commit is not None else None,
        topic_is_assigned=pair.topic in facts.assigned_topics,
        group_is_assigned=bool(facts.assigned_topics),
        rebalancing_now=facts.rebalancing_now,
        samples_of_unrest=facts.samples_of_unrest,
        group_samples=facts.samples,
        retention_seconds=limits.seconds,
        retention_is_by_size=limits.is_by_size,
        segment_seconds=limits.segment_seconds,
        seconds_to_expiry=seconds_to_expiry(
            facts,
            committed_since,
            now,
            moment.offsets_retention_seconds,
            committed_at=clock(committed_at) if committed_at is not None else None,
        ),
    )


def _observations(commits: Sequence[Row], watermarks: Sequence[Row], clock: Clock) -> dict[Pair, list[Observation]]:
    ends = {(r["sample_id"], r["topic"], r["partition"]): r for r in watermarks}
    observations: dict[Pair, list[Observation]] = {}
    for row in sorted(commits, key=sampled_at):
        end = ends.get((row["sample_id"], row["topic"], row["partition"]), {})
        observation = Observation(
            clock(row["sampled_at"]),
            row["committed"],
            end.get("log_start"),
            end.get("high_watermark"),
            end.get("last_stable"),
            end.get("topic_id"),
            row.get("next_record"),
        )
        observations.setdefault(_pair(row), []).append(observation)
    return observations


def _part(
    status: Status, reason: UnknownReason | None, loss_cause: LossCause | None, those: Sequence[tuple[Pair, Judged]]
) -> PartitionsInStatus:
    evidence = [j.evidence for _, j in those]
    verdicts = [j.verdict for _, j in those]
    ages = [shown_age(j) for _, j in those]
    rewound = [j.evidence for _, j in those if Status.REWOUND in j.verdict.reasons]
    losses = [v for v in verdicts if v.seconds_to_loss is not None]
    nearest = min(losses, key=_loss_order, default=None)
    # The oldest unread record; among equals the lowest partition, then the last topic by name.
    worst = max(those, key=lambda one: (shown_age(one[1])[0] or 0.0, -one[0].partition, one[0].topic))[0]
    return PartitionsInStatus(
        status=status,
        reason=reason,
        partitions=len(those),
        lag=total(v.lag for v in verdicts),
        lag_seconds=max((age for age, _ in ages if age is not None), default=None),
        lag_seconds_is_lower_bound=max((age or 0.0, bound) for age, bound in ages)[1],
        unmoved_seconds=max(e.unmoved_seconds for e in evidence),
        produce_rate_per_second=total(e.produce_rate_per_second for e in evidence),
        consume_rate_per_second=total(v.consume_rate_per_second for v in verdicts),
        commits_seen=sum(e.commits_seen for e in evidence),
        lag_slope_per_second=total(e.trend.slope for e in evidence if e.trend is not None),
        to_catch_up=last_catch_up(v.to_catch_up for v in verdicts),
        to_breach=soonest_breach(v.to_breach for v in verdicts),
        seconds_to_loss=nearest.seconds_to_loss if nearest else None,
        seconds_to_loss_is_upper_bound=bool(nearest and nearest.seconds_to_loss_is_upper_bound),
        seconds_to_loss_at_latest=nearest.seconds_to_loss_at_latest if nearest else None,
        loss_cause=loss_cause,
        records_lost=sum(v.records_lost for v in verdicts),
        rewound_records=sum(e.rewound_records for e in rewound),
        rewound_seconds=min((e.rewound_seconds for e in rewound if e.rewound_seconds is not None), default=None),
        lost=of_partitions(v.lost for v in verdicts),
        worst_topic=worst.topic,
        worst_partition=worst.partition,
        topics=frozenset(pair.topic for pair, _ in those),
        transaction_seconds=max((v.transaction_seconds or 0.0 for v in verdicts), default=0.0) or None,
        held_back_records=sum(
            (e.high_watermark or 0) - (e.last_stable or 0)
            for e, v in zip(evidence, verdicts, strict=True)
            if v.transaction_seconds is not None
        ),
        owners=frozenset(j.owner for _, j in those if j.owner is not None),
    )


def _loss_order(verdict: Verdict) -> tuple[float, bool, float]:
    """Of two losses at the same moment the one that will not come sooner comes first, then the one with no limit."""
    at_latest = verdict.seconds_to_loss_at_latest
    return (
        verdict.seconds_to_loss or 0.0,
        verdict.seconds_to_loss_is_upper_bound,
        -1.0 if at_latest is None else at_latest,
    )


def _pair(row: Row) -> Pair:
    return Pair(row["group"], row["topic"], row["partition"])


def client_of(member: Row) -> str | None:
    """A member by its client and host, as sentences name it; None where the client is not known."""
    if member["client_id"] is None:
        return None
    return f"client {member['client_id']}" + ("" if member["host"] is None else f" on host {member['host']}")
