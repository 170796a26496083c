"""Run the real analysis over traces, at every moment at which they are to be judged, in one Spark job per trace.

Each evaluation becomes a cluster of its own that holds the samples up to that moment: the transforms then need not
know that they are replaying.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lagwise.domain.history import gap_seconds
from lagwise.tables.analysis import PARTITION_STATUS
from lagwise.tables.raw import COMMITS, EVENTS, GROUPS, MEMBERS, TOPICS, WATERMARKS
from lagwise.tables.schema import Table
from lagwise.traces import Trace, moment, sample_id
from lagwise_spark.frames import contexts_frame, empty, frame
from lagwise_spark.group_rows import group_verdicts
from lagwise_spark.transforms.buckets import commit_minutes, watermark_minutes, with_lag
from lagwise_spark.transforms.groups import partitions_by_status
from lagwise_spark.transforms.pipeline import Inputs, statuses

Row = Mapping[str, Any]

#: The keys of a line of ``lagwise replay --json``, in order (DESIGN §8).
_NUMBERS = (
    "lag",
    "lag_seconds",
    "lag_seconds_is_lower_bound",
    "produce_rate_per_second",
    "consume_rate_per_second",
    "seconds_to_catch_up",
    "seconds_to_loss",
    "records_lost",
)


@dataclass(frozen=True, slots=True)
class Shown:
    """What was shown of a group-partition (or, without topic and partition, of a group) at one moment of a trace."""

    trace: str
    time_s: float
    group: str
    topic: str | None
    partition: int | None
    status: str
    reason: str | None
    reasons: tuple[str, ...]
    numbers: Mapping[str, Any]

    def as_json(self) -> str:
        head = {
            "trace": self.trace,
            "time_s": self.time_s,
            "group": self.group,
            "topic": self.topic,
            "partition": self.partition,
            "status": self.status,
            "reason": self.reason,
            "reasons": list(self.reasons),
        }
        return json.dumps(head | dict(self.numbers))


def replay(
    session: SparkSession, trace: Trace, events: Iterable[Row], *, minimum_span_seconds: float = 60.0
) -> Iterator[Shown]:
    """Everything shown at the trace's evaluation times, in order of time.

    ``events`` are the rows of `events` that a collector would have written (see
    :func:`lagwise.domain.differences.differences`), with ``index``, the position of their sample.
    """
    evaluations = [(at, trace.sample_at(at)) for at in trace.evaluation_times]
    contexts = [
        {
            "cluster": _cluster(number),
            "sample_id": sample_id(index),
            "as_of": moment(trace.sample_times[index]),
            "interval_seconds": trace.sample_interval_s,
            "gap_seconds": gap_seconds(trace.sample_interval_s),
            "lag_objective_seconds": trace.lag_objective_s,
            "risk_horizon_seconds": trace.risk_horizon_s,
            "minimum_span_seconds": minimum_span_seconds,
            "offsets_retention_seconds": trace.offsets_retention_s,
        }
        for number, (_, index) in enumerate(evaluations)
    ]
    result = statuses(_inputs(session, trace, list(events), contexts))
    partitions = result.partitions.toArrow().to_pylist()
    by_status = partitions_by_status(result.partitions).toArrow().to_pylist()
    verdicts = group_verdicts(by_status, result.groups.toArrow().to_pylist())
    of_evaluation: dict[str, list[Shown]] = {_cluster(n): [] for n in range(len(evaluations))}
    times = {_cluster(n): at for n, (at, _) in enumerate(evaluations)}
    for row in sorted(partitions, key=lambda r: (r["group"], r["topic"], r["partition"])):
        of_evaluation[row["cluster"]].append(
            Shown(
                trace.name,
                times[row["cluster"]],
                row["group"],
                row["topic"],
                row["partition"],
                row["status"],
                row["reason"],
                tuple(row["reasons"]),
                {name: row[name] for name in _NUMBERS},
            )
        )
    for (cluster, group), (_, verdict) in sorted(verdicts.items()):
        held = sorted(
            {s for s, n in verdict.partitions_by_status.items() if n and s not in ("ghost",)}, key=lambda s: s.rank
        )
        of_evaluation[cluster].append(
            Shown(
                trace.name,
                times[cluster],
                group,
                None,
                None,
                str(verdict.status),
                str(verdict.reason) if verdict.reason else None,
                tuple(str(s) for s in held) or (str(verdict.status),),
                {name: getattr(verdict, name) for name in _NUMBERS},
            )
        )
    for shown in of_evaluation.values():
        yield from shown


def _cluster(number: int) -> str:
    return f"{number:08d}"


def _inputs(session: SparkSession, trace: Trace, events: Sequence[Row], contexts: Sequence[Row]) -> Inputs:
    context_rows = contexts_frame(session, contexts)
    known_until = F.broadcast(context_rows.select("cluster", F.col("as_of").alias("known_until")))
    latest = F.broadcast(context_rows.select("cluster", "sample_id"))

    def raw(table: Table, rows: Sequence[Row], clock: str) -> DataFrame:
        """A table's rows up to each evaluation, as the rows of that evaluation's own cluster."""
        schema = pa.schema([f for f in table.arrow if f.name not in ("cluster", "day")])
        plain = frame(session, pa.Table.from_pylist([{n: r.get(n) for n in schema.names} for r in rows], schema))
        return plain.join(known_until, F.col(clock) <= F.col("known_until")).drop("known_until")

    def of_latest(rows: DataFrame) -> DataFrame:
        return rows.join(latest, ["cluster", "sample_id"], "semi")

    commits = raw(COMMITS, trace.rows["commits"], "sampled_at")
    watermarks = raw(WATERMARKS, trace.rows["watermarks"], "sampled_at")
    return Inputs(
        contexts=context_rows,
        minutes=commit_minutes(with_lag(commits, watermarks), context_rows),
        watermark_minutes=watermark_minutes(watermarks),
        commits=of_latest(commits),
        watermarks=of_latest(watermarks),
        groups=raw(GROUPS, trace.rows["groups"], "sampled_at"),
        members=of_latest(raw(MEMBERS, trace.rows["members"], "sampled_at")),
        events=raw(EVENTS, events, "at"),
        topics=raw(TOPICS, trace.rows["topics"], "sampled_at"),
        previous=empty(session, PARTITION_STATUS),
    )
