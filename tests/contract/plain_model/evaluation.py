"""From everything that was ever sampled to the verdicts at one moment, in plain Python.

It goes by the book and not by the clock: every evaluation reads the history from its beginning, one group-partition at
a time. ``test_rules_agree.py`` holds the rules on columns to it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from itertools import pairwise

from lagwise.domain.causes import STANDING, Place
from lagwise.domain.groups import verdict_of
from lagwise.domain.loss.records import of_partitions
from lagwise.domain.partition_rollup import PartitionsInStatus, last_catch_up, soonest_breach, total
from lagwise.domain.vocabulary import LossCause, Status, UnknownReason
from lagwise.traces.trace_columns import client_of
from tests.contract.plain_model.commit_cadence import absence_of, cadence_of, usual_pause_of
from tests.contract.plain_model.history import (
    Clock,
    Observation,
    clock_from,
    gap_of,
    highest_lag_since,
    is_held_back,
    movement_of,
    pace_of,
    standstill_of,
    whole_micros,
)
from tests.contract.plain_model.logs import (
    Age,
    Log,
    age_of,
    earlier_log_start,
    is_deleted_by_request,
    jumps_of,
    log_start_rate_of,
    logs_of,
    produced_per_second,
    retention_of,
    steady_rate_per_second,
    unread_of,
)
from tests.contract.plain_model.losses import longest_kept_seconds, rate_while_behind, seconds_to_overtaking
from tests.contract.plain_model.ownership import GroupFacts, group_facts, seconds_to_expiry
from tests.contract.plain_model.records import Evaluation, Evidence, Judged, Pair, Policy, Row, Rows, Verdict
from tests.contract.plain_model.status import awaits_turn, judge


@dataclass(frozen=True, slots=True)
class Moment:
    """The sample that is judged, and what verdicts go by. ``lag_objectives_seconds`` are those of groups that have one
    of their own."""

    sample_id: str
    as_of: datetime
    policy: Policy = field(default_factory=Policy)
    offsets_retention_seconds: float | None = None
    lag_objectives_seconds: Mapping[str, float] = field(default_factory=dict)

    def policy_of(self, group: str) -> Policy:
        """What verdicts on a group go by."""
        own = self.lag_objectives_seconds.get(group)
        return self.policy if own is None else replace(self.policy, lag_objective_seconds=own)


def evaluate(rows: Rows, moment: Moment, before: Evaluation | None = None) -> Evaluation:
    """Judge every group-partition that is committed to or owned now, or was ever seen committed; ``before`` are the
    verdicts of the moment before.

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
    topics = {r["topic"]: r for r in sorted(rows.get("topics", ()), key=_sampled_at) if r["sampled_at"] <= now}
    clients = {
        (r["group"], r["member_id"]): client_of(r)
        for r in rows.get("members", ())
        if r["sample_id"] == moment.sample_id
    }
    evidence = {
        pair: _evidence(
            moment,
            pair,
            latest.get(pair),
            ends.get((pair.topic, pair.partition)),
            observations.get(pair, []),
            logs.get((pair.topic, pair.partition), Log()),
            topics.get(pair.topic),
            facts.get(pair.group, GroupFacts()),
            before.partitions.get(pair) if before else None,
        )
        for pair in sorted({*latest, *observations})
    }
    partitions = {}
    for pair, e in evidence.items():
        policy = moment.policy_of(pair.group)
        of_owner = [other for of, other in evidence.items() if (of.group, other.owner) == (pair.group, e.owner)]
        known = replace(e, awaits_turn=e.owner is not None and awaits_turn(e, of_owner, policy))
        partitions[pair] = Judged(known, judge(known, policy), clients.get((pair.group, e.owner or "")))
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
            lag_objective_seconds=moment.policy_of(group).lag_objective_seconds,
        )
    return Evaluation(partitions, groups)


def _places(partitions: Mapping[Pair, Judged], ends: Mapping[tuple[str, int], Row]) -> list[Place]:
    """Each partition with its owner and its leader."""
    return [
        Place(
            judged.verdict.status,
            judged.evidence.owner,
            ends.get((pair.topic, pair.partition), {}).get("leader"),
            1,
            judged.owner,
            stands=not STANDING.isdisjoint(judged.verdict.reasons),
        )
        for pair, judged in partitions.items()
    ]


def _evidence(
    moment: Moment,
    pair: Pair,
    commit: Row | None,
    end: Row | None,
    known: Sequence[Observation],
    log: Log,
    topic: Row | None,
    facts: GroupFacts,
    before: Judged | None,
) -> Evidence:
    commit, end, clock = commit or {}, end or {}, clock_from(moment.as_of)
    now, interval = clock(moment.as_of), moment.policy.interval_seconds

    def ago(at: float | None) -> float | None:
        return None if at is None else whole_micros(now - at)

    committed, log_start, high_watermark, last_stable = (
        row.get(name)
        for row, name in ((commit, "committed"), (end, "log_start"), (end, "high_watermark"), (end, "last_stable"))
    )
    sample = Observation(now, committed, log_start, high_watermark, last_stable, next_record=commit.get("next_record"))
    usual_pause = usual_pause_of(known, now, interval, log.recreated_at)
    movement = movement_of(known, now, gap_of(interval), recreated_at=log.recreated_at, usual_pause_seconds=usual_pause)
    last_stable_age = age_of(last_stable, log, now) if last_stable is not None else None
    last_stable_seconds = last_stable_age.seconds if last_stable_age is not None else None
    if sample.lag is not None and is_held_back(committed, high_watermark, last_stable, last_stable_seconds):
        sample = replace(sample, last_stable=None)
        # That nothing could be read is no sign of life.
        movement = replace(movement, drained_at=None)
    committed_since = movement.moved_at if movement.moved_at is not None else now
    pace = pace_of(
        known,
        now,
        movement,
        interval_seconds=interval,
        recreated_at=log.recreated_at,
        usual_pause_seconds=usual_pause,
    )
    limits = retention_of(topic)
    longest_kept = longest_kept_seconds(limits.seconds, limits.segment_seconds)
    age = Age(0.0, False) if sample.lag == 0 else None
    overtaken = partial(seconds_to_overtaking, [], 0.0)
    if sample.lag and log_start is not None:
        position = max(sample.reads_from, log_start)
        age = age_of(position, log, now)
        if age is not None:
            reads = rate_while_behind(pace.consume_rate_per_second or 0.0, pace.span_seconds, age.seconds)
            overtaken = partial(seconds_to_overtaking, unread_of(position, age, log, now), reads)
    is_bound = age is not None and age.is_lower_bound
    standstill = standstill_of(
        movement, sample.lag, age.seconds if age is not None else None, now, age_is_lower_bound=is_bound
    )
    produced = produced_per_second(pace, log, now)
    has_ends = log_start is not None and high_watermark is not None
    return Evidence(
        # That nothing is committed is believed only of a partition that could be read, or is not watched any more: the
        # commits on a topic that the collector may not describe are hidden by Kafka as if there were none.
        readable=facts.error is None and (has_ends or (committed is None and not end)),
        committed=committed,
        next_record=commit.get("next_record"),
        ever_committed=movement.moved_at is not None,
        recreated=log.recreated_at is not None and committed_since < log.recreated_at,
        log_start=log_start,
        high_watermark=high_watermark,
        last_stable=last_stable,
        last_stable_seconds=last_stable_seconds,
        samples=pace.samples,
        span_seconds=pace.span_seconds,
        spacing_seconds=pace.spacing_seconds,
        lag_seconds=age.seconds if age is not None else None,
        lag_seconds_is_lower_bound=is_bound,
        unmoved_seconds=ago(committed_since) or 0.0,
        standstill_seconds=standstill,
        drained_seconds=ago(movement.drained_at),
        moved_seconds=ago(max((b.at for a, b in pairwise(known) if a.committed != b.committed), default=None)),
        absence_seconds=absence_of(known, now, interval),
        commits_seen=movement.moves,
        commit_cadence_seconds=cadence_of(movement, standstill, usual_pause),
        rewound_from=movement.rewound_from,
        rewound_records=movement.rewound_records,
        rewound_seconds=ago(movement.rewound_at),
        lost_lately=movement.lost_lately,
        lost_of_day=movement.lost_of_day,
        deleted_by_request=is_deleted_by_request(topic, log, now),
        earlier_log_start=earlier_log_start(log, now),
        trend_is_measurable=pace.is_measurable,
        trend=pace.trend,
        longer=pace.longer,
        longest=pace.longest,
        earlier=pace.earlier,
        mean_lag=pace.mean_lag,
        longest_mean_lag=pace.longest_mean_lag,
        at_troughs=pace.at_troughs,
        at_recent_troughs=pace.at_recent_troughs,
        trough_drop=pace.trough_drop,
        has_changed=pace.begins_with_change,
        has_resumed=pace.begins_with_change
        and movement.change is not None
        and movement.change.at == movement.change.resumed_at,
        highest_lag_of_window=pace.highest_lag_of_window,
        highest_lag=highest_lag_since(known, movement.change, now),
        produce_rate_per_second=produced,
        steady_produce_rate_per_second=steady_rate_per_second(produced, pace, log, now),
        consume_rate_per_second=pace.consume_rate_per_second,
        overtaken_seconds=overtaken(limits.seconds),
        overtaken_at_latest_seconds=overtaken(longest_kept),
        log_start_jumps=jumps_of(log, now),
        log_start_rate_per_second=log_start_rate_of(log, now),
        state=facts.state,
        type=facts.type,
        owner=commit.get("owner"),
        topic_is_assigned=pair.topic in facts.assigned_topics,
        group_is_assigned=bool(facts.assigned_topics),
        rebalancing_now=facts.rebalancing_now,
        samples_of_unrest=facts.samples_of_unrest,
        group_samples=facts.samples,
        settled_seconds=facts.settled_seconds,
        is_where_it_was=committed is not None and before is not None and before.evidence.committed == committed,
        was_growing=before is not None
        and Status.FALLING_BEHIND in before.verdict.reasons
        and STANDING.isdisjoint(before.verdict.reasons),
        was_lagging=before is not None and Status.LAGGING in before.verdict.reasons,
        was_stopped=before is not None and Status.STOPPED in before.verdict.reasons,
        was_stalled=before is not None and Status.STALLED in before.verdict.reasons,
        retention_seconds=limits.seconds,
        retention_is_by_size=limits.is_by_size,
        segment_seconds=limits.segment_seconds,
        seconds_to_expiry=seconds_to_expiry(
            facts,
            committed_since,
            now,
            moment.offsets_retention_seconds,
            committed_at=None if commit.get("committed_at") is None else clock(commit["committed_at"]),
        ),
        checkpoint_age_seconds=ago(facts.checkpointed_at),
        checkpoint_interval_seconds=facts.checkpoint_interval_seconds,
    )


def _observations(commits: Sequence[Row], watermarks: Sequence[Row], clock: Clock) -> dict[Pair, list[Observation]]:
    """The samples of each group-partition of which the lag is known, in order of time."""
    ends = {(r["sample_id"], r["topic"], r["partition"]): r for r in watermarks}
    observations: dict[Pair, list[Observation]] = {}
    for row in sorted(commits, key=_sampled_at):
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
        if observation.lag is not None:
            observations.setdefault(_pair(row), []).append(observation)
    return observations


def _pair(row: Row) -> Pair:
    return Pair(row["group"], row["topic"], row["partition"])


def _sampled_at(row: Row) -> datetime:
    at: datetime = row["sampled_at"]
    return at


def parts_of(partitions: Mapping[Pair, Judged]) -> list[PartitionsInStatus]:
    """A group's partitions, summed up by status, reason and cause of the nearest loss."""
    together: dict[tuple[Status, UnknownReason | None, LossCause | None], list[tuple[Pair, Judged]]] = {}
    for pair, judged in sorted(partitions.items()):
        verdict = judged.verdict
        together.setdefault((verdict.status, verdict.reason, verdict.loss_cause), []).append((pair, judged))
    return [_part(*key, those) for key, those in together.items()]


def _part(
    status: Status, reason: UnknownReason | None, loss_cause: LossCause | None, those: Sequence[tuple[Pair, Judged]]
) -> PartitionsInStatus:
    evidence = [j.evidence for _, j in those]
    verdicts = [j.verdict for _, j in those]
    ages = [j.shown_age for _, j in those]
    rewound = [j.evidence for _, j in those if Status.REWOUND in j.verdict.reasons]
    losses = [v for v in verdicts if v.seconds_to_loss is not None]
    nearest = min(losses, key=_loss_order, default=None)
    # The oldest unread record; among equals the lowest partition, then the last topic by name.
    worst = max(those, key=lambda one: (one[1].shown_age[0] or 0.0, -one[0].partition, one[0].topic))[0]
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
        owning_members=len({e.owner for e in evidence} - {None}),
        stopped=sum(Status.STOPPED in v.reasons for v in verdicts),
        stalled=sum(Status.STALLED in v.reasons for v in verdicts),
    )


def _loss_order(verdict: Verdict) -> tuple[float, bool, float]:
    """Of two losses at the same moment the one that will not come sooner comes first, then the one with no limit."""
    at_latest = verdict.seconds_to_loss_at_latest
    return (
        verdict.seconds_to_loss or 0.0,
        verdict.seconds_to_loss_is_upper_bound,
        -1.0 if at_latest is None else at_latest,
    )
