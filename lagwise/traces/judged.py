"""A trace, judged by the rules of the analysis at every moment at which it is to be judged."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from lagwise.domain.groups import GroupVerdict, verdict_of
from lagwise.domain.verdicts.buckets import hours_of, of_samples
from lagwise.domain.verdicts.columns import NULL, Array, Columns, taken
from lagwise.domain.verdicts.evidence import Known, evidence_of, no_previous
from lagwise.domain.verdicts.logs import logs_of_samples, seen_logs
from lagwise.domain.verdicts.ownership import group_facts, is_assigned
from lagwise.domain.verdicts.rollup import RollupNames, parts_of, places_of
from lagwise.domain.verdicts.samples import gap_seconds, known_samples
from lagwise.domain.verdicts.series import judged_in_series
from lagwise.domain.verdicts.windows import pace_of, whole_hours, whole_hours_until
from lagwise.traces.csv_files import Row
from lagwise.traces.trace import Trace, moment
from lagwise.traces.trace_columns import TraceColumns, columns_of, micros_of

#: A trend is judged only over a window at least this long, as by default in the settings.
MINIMUM_SPAN_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class JudgedGroup:
    """A group at a moment: its verdict, and what the sample says of it (None: not shown, or not known)."""

    verdict: GroupVerdict
    state: str | None
    type: str | None
    idle_members: int


@dataclass(frozen=True)
class JudgedTrace:
    """The verdicts on a trace.

    Attributes:
        times: the evaluation times, in seconds of the trace.
        partitions: evidence and verdicts together, one row per group-partition and moment, in order of these: the
            columns of :func:`lagwise.domain.verdicts.evidence.evidence_of` and of
            :func:`lagwise.domain.verdicts.status.judge`, and moment (the number of the time), group, topic (numbers of
            names) and partition.
        groups: at each of the times, by name.
    """

    times: Sequence[float]
    partitions: Columns
    group_names: Sequence[str]
    topic_names: Sequence[str]
    groups: Sequence[Mapping[str, JudgedGroup]]


def judged(trace: Trace, events: Sequence[Row], times: Sequence[float] | None = None) -> JudgedTrace:
    """Judge a trace at some times (in seconds of the trace; by default all of its evaluation times). ``events`` are
    those that a collector would have recorded."""
    times = trace.evaluation_times if times is None else times
    rows = columns_of(trace, events)
    samples = np.array([trace.sample_at(time_s) for time_s in times], np.int64)
    as_of = np.array([micros_of(moment(trace.sample_times[sample])) for sample in samples], np.int64)
    history = _History.of(trace, rows)
    moments, pair = history.cases(samples, as_of)
    now, pairs = as_of[moments], taken(rows.pairs, pair)
    log = seen_logs(logs_of_samples(history.watermarks), pairs["log"], now)
    interval = np.full(len(pair), trace.sample_interval_s)
    pace_cases = {"pair": pair, "as_of": now, "recreated_at": log.recreated_at, "interval_seconds": interval}

    group_count = len(rows.groups.names)
    every = np.arange(len(times) * group_count)
    views = {
        "group": every % group_count,
        "as_of": as_of[every // group_count],
        "sample": samples[every // group_count],
    }
    facts, view = group_facts(rows.membership, views), moments * group_count + pairs["group"]
    on_topic, on_any = is_assigned(
        rows.membership.assigned, {"sample": samples[moments], "group": pairs["group"], "topic": pairs["topic"]}
    )
    evidence = evidence_of(
        Known(
            policy=_policy(trace, rows, pairs["group"], now),
            commits=history.commits_at(pair, samples[moments]),
            ends=history.ends_at(pairs["log"], samples[moments]),
            pace=pace_of(history.buckets, _days(history.buckets, pace_cases), pace_cases),
            log=log,
            facts=taken(facts, view),
            topic_is_assigned=on_topic & facts["is_there"][view],
            group_is_assigned=on_any & facts["is_there"][view],
            limits=_limits_at(rows.limits, pairs["topic"], now),
            previous=no_previous(len(pair)),
        )
    )
    names, client = _clients(rows, samples[moments], pairs["group"], evidence["owner"])
    partitions = {
        **judged_in_series(evidence, pair, moments, view),
        **pairs,
        "commits_seen": evidence["moves"],
        "lag_slope_per_second": evidence["slope"],
        "moment": moments,
        "view": view,
        "client": client,
    }
    groups: list[dict[str, JudgedGroup]] = [{} for _ in times]
    rollup_names = RollupNames(rows.topics.names, names, rows.members.names)
    for at, group, one in _groups(trace, rows, partitions, facts, rollup_names):
        groups[at][group] = one
    return JudgedTrace(times, partitions, rows.groups.names, rows.topics.names, groups)


@dataclass(frozen=True)
class _History:
    """What the samples of a trace show: a bucket for each whose lag is known, readable watermarks in order of log and
    time, and the rows by sample (-1: none)."""

    rows: TraceColumns
    buckets: Columns
    watermarks: Columns
    row_of_commit: Array
    row_of_end: Array

    @classmethod
    def of(cls, trace: Trace, rows: TraceColumns) -> "_History":
        commits, ends, count = rows.commits, rows.watermarks, len(trace.sample_times)
        row_of_end = np.full((rows.logs, count), -1)
        row_of_end[ends["log"], ends["sample"]] = np.arange(len(ends["log"]))
        row_of_commit = np.full((len(rows.pairs["log"]), count), -1)
        row_of_commit[commits["pair"], commits["sample"]] = np.arange(len(commits["pair"]))
        in_order = taken(commits, np.lexsort((commits["at"], commits["pair"])))
        end_of = row_of_end[rows.pairs["log"][in_order["pair"]], in_order["sample"]]
        known = known_samples(in_order, ends, end_of)
        buckets = of_samples(known, np.full(len(known["at"]), gap_seconds(trace.sample_interval_s)))
        readable = taken(ends, (ends["high_watermark"] != NULL) & (ends["log_start"] != NULL))
        readable = taken(readable, np.lexsort((readable["at"], readable["log"])))
        return cls(rows, buckets, readable, row_of_commit, row_of_end)

    def cases(self, samples: Array, as_of: Array) -> tuple[Array, Array]:
        """Moments and pairs: each group-partition that is committed to or owned then, or was ever seen committed."""
        first = np.full(len(self.row_of_commit), np.iinfo(np.int64).max)
        np.minimum.at(first, self.buckets["pair"], self.buckets["first_at"])
        moments, pair = np.nonzero((self.row_of_commit[:, samples] >= 0).T | (first[None, :] <= as_of[:, None]))
        return moments, pair

    def commits_at(self, pair: Array, sample: Array) -> dict[str, Array]:
        row = self.row_of_commit[pair, sample]
        times = _at(self.rows.commits, ("committed", "next_record", "committed_at"), row, NULL)
        return times | _at(self.rows.commits, ("owner",), row, -1)

    def ends_at(self, log: Array, sample: Array) -> dict[str, Array]:
        row = self.row_of_end[log, sample]
        ends = _at(self.rows.watermarks, ("log_start", "high_watermark", "last_stable", "leader"), row, NULL)
        return ends | {"has_row": row >= 0}


def _at(rows: Columns, names: Sequence[str], row: Array, null: int) -> dict[str, Array]:
    """The rows of these numbers; null where that is -1."""
    return {name: np.where(row >= 0, np.append(rows[name], null)[row], null) for name in names}


def _days(buckets: Columns, cases: Columns) -> dict[str, Array]:
    """The whole hours of each case's day: worked out once for all cases of an hour."""
    keys = np.stack([cases["pair"], whole_hours_until(cases["as_of"]), cases["recreated_at"]])
    those, number = np.unique(keys, axis=1, return_inverse=True)
    wanted = {"pair": those[0], "until": those[1], "recreated_at": those[2]}
    return taken(whole_hours(hours_of(buckets), wanted), number.ravel())


def _limits_at(limits: Columns, topic: Array, now: Array) -> dict[str, Array]:
    """The limits of each case's topic by its newest settings at the moment; none where there are none."""
    row = np.full(len(topic), -1)
    for number, (of_topic, at) in enumerate(zip(limits["topic"], limits["at"], strict=True)):
        row = np.where((topic == of_topic) & (at <= now), number, row)
    nothing = {"retention_seconds": np.nan, "segment_seconds": np.nan}
    return {
        name: np.where(row >= 0, np.append(limits[name], nothing.get(name, False))[row], nothing.get(name, False))
        for name in ("retention_seconds", "retention_is_known", "retention_is_by_size", "segment_seconds")
    }


def _policy(trace: Trace, rows: TraceColumns, group: Array, now: Array) -> dict[str, Array]:
    objectives = [trace.lag_objectives_s.get(name, trace.lag_objective_s) for name in rows.groups.names]
    retention = np.nan if trace.offsets_retention_s is None else trace.offsets_retention_s
    same = {
        "interval_seconds": trace.sample_interval_s,
        "risk_horizon_seconds": trace.risk_horizon_s,
        "minimum_span_seconds": MINIMUM_SPAN_SECONDS,
        "offsets_retention_seconds": retention,
    }
    return {
        "as_of": now,
        "lag_objective_seconds": np.array(objectives, np.float64)[group],
        **{name: np.full(len(now), value) for name, value in same.items()},
    }


def _clients(rows: TraceColumns, sample: Array, group: Array, owner: Array) -> tuple[list[str], Array]:
    """What owners are called, and the number of each case's."""
    names = sorted({name for name in rows.clients.values() if name is not None})
    number_of = {name: number for number, name in enumerate(names)}
    keys = zip(sample.tolist(), group.tolist(), owner.tolist(), strict=True)
    called = (rows.clients.get(key) for key in keys)
    return names, np.array([-1 if name is None else number_of[name] for name in called], np.int64)


def _groups(
    trace: Trace, rows: TraceColumns, partitions: Columns, facts: Columns, names: RollupNames
) -> Iterator[tuple[int, str, JudgedGroup]]:
    """The verdict on each group that is there, with the number of the moment."""
    parts, known = parts_of(partitions, names), rows.membership.names
    places = places_of(partitions, parts, names)
    for view in sorted({*np.flatnonzero(facts["is_there"]).tolist(), *parts}):
        at, number = divmod(view, len(rows.groups.names))
        group, its = rows.groups.names[number], parts.get(view, [])
        state, type_, error = (
            None if facts[column][view] < 0 else of[facts[column][view]]
            for column, of in (("state", known.states), ("type", known.types), ("error", known.errors))
        )
        members = int(facts["members"][view])
        idle = int(facts["idle_members"][view]) if facts["is_there"][view] else 0
        verdict = verdict_of(
            its,
            members=None if members == NULL else members,
            idle_members=idle,
            state=state,
            group_type=type_,
            error=error,
            places=places.get(view, ()),
            lag_objective_seconds=trace.lag_objectives_s.get(group, trace.lag_objective_s),
        )
        yield at, group, JudgedGroup(verdict, state, type_, idle)
