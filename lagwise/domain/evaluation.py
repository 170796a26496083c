"""From everything that was ever sampled to the verdicts at one moment: the whole definition, in plain Python.

Spark computes the same from minute buckets, and the contract test holds the two together; where they differ, this is
right. It goes by the book and not by the clock: every evaluation reads the history from its beginning.

Rows are those of the raw tables (``lagwise.tables.raw``) as plain mappings, keyed by the name of the table; only the
columns that verdicts rest on are looked at, and their order does not matter.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from lagwise.domain import lag as lags
from lagwise.domain.causes import STANDING, Place
from lagwise.domain.commit_cadence import cadence_of, usual_pause_of
from lagwise.domain.evidence import Evidence, Policy
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
from lagwise.domain.log_history import (
    Clock,
    earlier_log_start,
    is_deleted_by_request,
    logs_of,
    retention_of,
    sampled_at,
)
from lagwise.domain.loss.race import Unread, rate_while_behind, seconds_to_overtaking, unread_of
from lagwise.domain.loss.retention import jumps_of, longest_kept_seconds
from lagwise.domain.ownership import GroupFacts, Row, Rows, group_facts, seconds_to_expiry
from lagwise.domain.status import judge
from lagwise.domain.time_lag import (
    Age,
    Log,
    age_of,
    ends_of,
    log_start_rate_of,
    produced_per_second,
    steady_rate_per_second,
)
from lagwise.domain.verdict_rollup import Judged, Pair, parts_of

#: What a sample has of a commit only where the collector may read records.
_LOOKED_UP = ("next_record", "committed_at")


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
        partitions[pair] = Judged(
            evidence, judge(evidence, moment.policy_of(pair.group)), clients.get((pair.group, owner))
        )
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
    unread: list[Unread] = []
    if lag == 0:
        age = Age(0.0, False)
    elif lag and committed is not None and log_start is not None:
        position = lags.position(lags.reads_from(committed, next_record), log_start)
        age = age_of(position, log, now)
        unread = unread_of(position, age, log, now) if age is not None else []
    standstill = standstill_of(
        movement,
        lag,
        age.seconds if age is not None else None,
        now,
        age_is_lower_bound=age is not None and age.is_lower_bound,
    )
    limits = retention_of(topic)
    reads = pace.consume_rate_per_second or 0.0
    if age is not None:
        reads = rate_while_behind(reads, pace.span_seconds, age.seconds)
    longest_kept = longest_kept_seconds(limits.seconds, limits.segment_seconds)
    produced = produced_per_second(pace, log, now)
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
        drained_seconds=whole_micros(now - movement.drained_at) if movement.drained_at is not None else None,
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
        produce_rate_per_second=produced,
        steady_produce_rate_per_second=steady_rate_per_second(produced, pace, log, now),
        consume_rate_per_second=pace.consume_rate_per_second,
        overtaken_seconds=seconds_to_overtaking(unread, reads, limits.seconds),
        overtaken_at_latest_seconds=seconds_to_overtaking(unread, reads, longest_kept),
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
        checkpoint_age_seconds=whole_micros(now - facts.checkpointed_at) if facts.checkpointed_at is not None else None,
        checkpoint_interval_seconds=facts.checkpoint_interval_seconds,
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


def _pair(row: Row) -> Pair:
    return Pair(row["group"], row["topic"], row["partition"])


def client_of(member: Row) -> str | None:
    """A member by its client and host, as sentences name it; None where the client is not known."""
    if member["client_id"] is None:
        return None
    return f"client {member['client_id']}" + ("" if member["host"] is None else f" on host {member['host']}")
