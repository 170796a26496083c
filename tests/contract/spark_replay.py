"""Run Spark's transforms over traces, at every moment at which they are to be judged, many moments to a Spark job.

Each evaluation becomes a cluster of its own, whose latest sample is the one that was the newest at that moment: the
transforms then need not know that they are replaying. What does not depend on the moment (the steps from sample to
sample, the minutes before the last) is made once per trace.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from lagwise.domain.group_record import number_columns
from lagwise.domain.history import WINDOWS_SECONDS, gap_seconds
from lagwise.domain.loss.records import Lost
from lagwise.domain.vocabulary import Status
from lagwise.tables.analysis import PARTITION_STATUS
from lagwise.tables.raw import COMMITS, EVENTS, GROUPS, MEMBERS, TOPICS, WATERMARKS
from lagwise.tables.schema import TIMESTAMP, Table
from lagwise.traces.trace import Trace, moment, sample_id
from lagwise_app.replay.shown import FORECASTS, NUMBERS, Shown
from lagwise_app.replay.trace_events import events_of
from lagwise_spark.columns import minute_of, seconds_between
from lagwise_spark.frames import contexts_frame, empty, frame, freed_afterwards, materialised, objectives_frame
from lagwise_spark.group_verdicts import group_verdicts
from lagwise_spark.transforms import buckets
from lagwise_spark.transforms.coarser import hours
from lagwise_spark.transforms.day import whole_hours
from lagwise_spark.transforms.groups import partitions_by_status, places
from lagwise_spark.transforms.pipeline import Inputs, statuses
from lagwise_spark.transforms.time_lag import resets
from lagwise_spark.tuning import tune

Row = Mapping[str, Any]

#: What one Spark job may hold: rows of minutes, each once per evaluation that sees it.
MOST_MINUTES = 1_000_000

#: From how many minutes on a job is as large as a pair makes a round of the live analysis (measured: 86,000 minutes
#: take 16 CPU seconds interpreted and 12 compiled).
MINUTES_PER_PAIR = 2


@dataclass(frozen=True, slots=True)
class Recording:
    """A trace, and the rows of `events` that a collector would have written while it happened."""

    trace: Trace
    events: Sequence[Row]


@dataclass(frozen=True, slots=True)
class _Evaluation:
    """One moment of one recording, as a cluster. Clusters sort as they were made."""

    cluster: str
    source: str
    time_s: float
    index: int
    trace: Trace


def shown_of(session: SparkSession, traces: Sequence[Trace]) -> Iterator[list[Shown]]:
    """What Spark shows of each trace, in order of time, groups after their partitions."""
    return replay(session, [Recording(trace, events_of(trace)) for trace in traces])


def replay(
    session: SparkSession,
    recordings: Sequence[Recording],
    *,
    minimum_span_seconds: float = 60.0,
) -> Iterator[list[Shown]]:
    """For each recording everything shown at its evaluation times, in order of time, groups after their partitions."""
    for batch in _batches(recordings):
        # Each evaluation reads the minutes before it again: it is they that take the time, not the pairs.
        tune(session, sum(_minutes(recording.trace) for recording in batch) // MINUTES_PER_PAIR, {})
        yield from _replay(session, batch, minimum_span_seconds)


def _batches(recordings: Sequence[Recording]) -> Iterator[list[Recording]]:
    batch: list[Recording] = []
    minutes = 0
    for recording in recordings:
        its_minutes = _minutes(recording.trace)
        if batch and minutes + its_minutes > MOST_MINUTES:
            yield batch
            batch, minutes = [], 0
        batch.append(recording)
        minutes += its_minutes
    if batch:
        yield batch


def _minutes(trace: Trace) -> int:
    """About how many rows of minutes the evaluations of a trace see together."""
    pairs = {(r["group"], r["topic"], r["partition"]) for r in trace.rows["commits"]}
    span = trace.sample_times[-1] - trace.sample_times[0]
    return round(len(pairs) * len(trace.evaluation_times) * (span / 60 / 2 + 1))


def _replay(
    session: SparkSession, recordings: Sequence[Recording], minimum_span_seconds: float
) -> Iterator[list[Shown]]:
    evaluations = [
        _Evaluation(f"{source:06d}-{number:08d}", f"{source:06d}", at, recording.trace.sample_at(at), recording.trace)
        for source, recording in enumerate(recordings)
        for number, at in enumerate(recording.trace.evaluation_times)
    ]
    with freed_afterwards(session):
        result = statuses(_inputs(session, recordings, evaluations, minimum_span_seconds))
        partitions = result.partitions.toArrow().to_pylist()
        by_status = partitions_by_status(result.partitions).toArrow().to_pylist()
        where = places(result.partitions).toArrow().to_pylist()
        facts = result.groups.toArrow().to_pylist()
    contexts = [_context(e, minimum_span_seconds) for e in evaluations]
    verdicts = group_verdicts(by_status, facts, where, contexts, _own_objectives(evaluations))
    shown: dict[str, list[Shown]] = {e.cluster: [] for e in evaluations}
    of_cluster = {e.cluster: e for e in evaluations}
    for row in sorted(partitions, key=lambda r: (r["group"], r["topic"], r["partition"])):
        at = of_cluster[row["cluster"]]
        shown[at.cluster].append(
            Shown(
                trace=at.trace.name,
                time_s=at.time_s,
                group=row["group"],
                topic=row["topic"],
                partition=row["partition"],
                status=row["status"],
                reason=row["reason"],
                reasons=tuple(row["reasons"]),
                numbers={name: row[name] for name in NUMBERS},
                loss_cause=row["loss_cause"],
                forecasts={name: row[name] for name in FORECASTS},
                lost=_lost(row),
            )
        )
    for (cluster, group), (_, verdict) in sorted(verdicts.items()):
        numbers = number_columns(verdict.numbers)
        at = of_cluster[cluster]
        held = sorted(
            (s for s, n in verdict.partitions_by_status.items() if n and s is not Status.GHOST), key=lambda s: s.rank
        )
        shown[cluster].append(
            Shown(
                trace=at.trace.name,
                time_s=at.time_s,
                group=group,
                topic=None,
                partition=None,
                status=str(verdict.status),
                reason=str(verdict.reason) if verdict.reason else None,
                reasons=tuple(str(s) for s in held) or (str(verdict.status),),
                numbers={name: numbers[name] for name in NUMBERS},
                sentence=verdict.sentence,
                loss_cause=numbers["loss_cause"],
                forecasts={"to_catch_up": verdict.to_catch_up, "to_breach": verdict.to_breach},
                lost=verdict.lost,
            )
        )
    for _, its_evaluations in groupby(evaluations, key=lambda e: e.source):
        yield [one for evaluation in its_evaluations for one in shown[evaluation.cluster]]


def _lost(row: Row) -> Lost:
    ages = (_age(row, "first_lost_at"), _age(row, "last_lost_at"))
    return Lost(row["lost_at_least"], row["lost_at_most"], *ages)


def _age(row: Row, name: str) -> float | None:
    return None if row[name] is None else (row["as_of"] - row[name]).total_seconds()


def _context(evaluation: _Evaluation, minimum_span_seconds: float) -> Row:
    trace = evaluation.trace
    return {
        "cluster": evaluation.cluster,
        "sample_id": sample_id(evaluation.index),
        "as_of": moment(trace.sample_times[evaluation.index]),
        "interval_seconds": trace.sample_interval_s,
        "gap_seconds": gap_seconds(trace.sample_interval_s),
        "lag_objective_seconds": trace.lag_objective_s,
        "risk_horizon_seconds": trace.risk_horizon_s,
        "minimum_span_seconds": minimum_span_seconds,
        "offsets_retention_seconds": trace.offsets_retention_s,
    }


def _inputs(
    session: SparkSession,
    recordings: Sequence[Recording],
    evaluations: Sequence[_Evaluation],
    minimum_span_seconds: float,
) -> Inputs:
    contexts = contexts_frame(session, [_context(e, minimum_span_seconds) for e in evaluations])
    gaps = {e.source: gap_seconds(e.trace.sample_interval_s) for e in evaluations}
    sources = contexts_frame(session, [{"cluster": source, "gap_seconds": gap} for source, gap in gaps.items()])
    moments = F.broadcast(_moments(session, evaluations))

    def raw(table: Table, rows_of: Sequence[Sequence[Row]]) -> DataFrame:
        """A raw table's rows of all recordings, each recording a cluster."""
        rows = ({**row, "cluster": f"{source:06d}"} for source, rows in enumerate(rows_of) for row in rows)
        return frame(session, table.from_rows(rows))

    def seen(rows: DataFrame, when: Column) -> DataFrame:
        """Each row once for every evaluation that sees it, as a row of that evaluation's cluster."""
        joined = rows.withColumnRenamed("cluster", "recording").join(moments, "recording").where(when)
        return joined.select(F.col("evaluation").alias("cluster"), *[c for c in rows.columns if c != "cluster"])

    def minutes(samples: DataFrame, made_by: Any) -> DataFrame:
        """Minutes at every evaluation: those before its own are whole, its own holds the samples so far."""
        own = minute_of(F.col("seen_as_of"))
        before = seen(materialised(made_by(samples)), F.col("minute") < own)
        so_far = (F.col("minute") == own) & (F.col("sampled_at") <= F.col("seen_as_of"))
        return before.unionByName(made_by(seen(samples, so_far)))

    traces = [recording.trace.rows for recording in recordings]
    commits = raw(COMMITS, [rows["commits"] for rows in traces])
    watermarks = raw(WATERMARKS, [rows["watermarks"] for rows in traces])
    is_latest = F.col("sample_id") == F.col("seen_sample_id")
    age = seconds_between(F.col("sampled_at"), F.col("seen_as_of"))
    steps = materialised(buckets.commit_steps(buckets.with_lag(commits, watermarks), sources))
    changes = materialised(buckets.watermark_changes(watermarks))
    of_pairs = materialised(minutes(steps, buckets.minutes_of_steps))
    of_ends = materialised(minutes(changes, buckets.minutes_of_watermarks))
    return Inputs(
        contexts=contexts,
        minutes=of_pairs,
        days=whole_hours(hours(of_pairs), resets(of_ends), contexts),
        watermark_minutes=of_ends,
        commits=seen(commits, is_latest),
        watermarks=seen(watermarks, is_latest),
        groups=seen(raw(GROUPS, [rows["groups"] for rows in traces]), (age >= 0) & (age < WINDOWS_SECONDS[0])),
        members=seen(raw(MEMBERS, [rows["members"] for rows in traces]), is_latest),
        events=seen(raw(EVENTS, [recording.events for recording in recordings]), F.col("at") <= F.col("seen_as_of")),
        topics=seen(raw(TOPICS, [rows["topics"] for rows in traces]), F.col("sampled_at") <= F.col("seen_as_of")),
        previous=empty(session, PARTITION_STATUS),
        objectives=objectives_frame(session, _own_objectives(evaluations)),
    )


def _own_objectives(evaluations: Sequence[_Evaluation]) -> dict[tuple[str, str], float]:
    return {(e.cluster, group): s for e in evaluations for group, s in e.trace.lag_objectives_s.items()}


def _moments(session: SparkSession, evaluations: Sequence[_Evaluation]) -> DataFrame:
    schema = pa.schema(
        {"recording": pa.string(), "evaluation": pa.string(), "seen_sample_id": pa.string(), "seen_as_of": TIMESTAMP}
    )
    rows = [
        {
            "recording": e.source,
            "evaluation": e.cluster,
            "seen_sample_id": sample_id(e.index),
            "seen_as_of": moment(e.trace.sample_times[e.index]),
        }
        for e in evaluations
    ]
    return frame(session, pa.Table.from_pylist(rows, schema))
