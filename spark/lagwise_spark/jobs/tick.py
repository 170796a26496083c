"""One round of the analysis: read what is new, finish minutes, judge, write. Idempotent: a round that was cut short is
simply done again by the next one."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import psutil
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lagwise.config import Config
from lagwise.domain.causes import TROUBLE
from lagwise.domain.history import (
    COARSE_AFTER_SECONDS,
    HOUR_IS_WHOLE_AFTER_SECONDS,
    LOOKBACK_SECONDS,
    WINDOWS_SECONDS,
    gap_seconds,
)
from lagwise.tables.analysis import GROUP_STATUS, PARTITION_STATUS, STATUS_CHANGES
from lagwise.tables.minutes import FIVE_MINUTES, MINUTES, WATERMARK_FIVE_MINUTES, WATERMARK_MINUTES
from lagwise.tables.raw import COMMITS, WATERMARKS
from lagwise.tables.rounds import TICKS
from lagwise.tables.schema import Table
from lagwise.tables.store import Lake
from lagwise_spark.columns import GROUP, seconds_between
from lagwise_spark.frames import contexts_frame, frame, freed_afterwards, objectives_frame
from lagwise_spark.group_verdicts import group_verdicts
from lagwise_spark.jobs import read, write
from lagwise_spark.jobs.assignments import assign
from lagwise_spark.jobs.catch_up import catch_up
from lagwise_spark.jobs.far_behind import older_history
from lagwise_spark.jobs.findings import findings_of
from lagwise_spark.jobs.hours import days, finish_hours
from lagwise_spark.jobs.minutes import OpenMinutes, finish_minutes, open_minutes
from lagwise_spark.jobs.observed import may_wait, observe
from lagwise_spark.jobs.progress import (
    News,
    five_minutes_of,
    minute_of,
    read_news,
    read_progress,
    whole_hours_until,
)
from lagwise_spark.jobs.rebalances import sum_up
from lagwise_spark.transforms.groups import partitions_by_status, places
from lagwise_spark.transforms.pipeline import Inputs, statuses
from lagwise_spark.tuning import tune


@dataclass(frozen=True, slots=True)
class TickCost:
    """What a round cost, and what it did. ``cpu_seconds`` are those of this process and its JVM.

    ``rows`` were written, by table. ``errors`` is empty: a round is done as a whole or raises.
    """

    wall_seconds: float
    cpu_seconds: float
    new_samples: int
    group_partitions: int
    groups: int
    status_changes: int
    minutes_finished: int
    rows: dict[str, int]
    errors: dict[str, int] = field(default_factory=dict)


def tick(session: SparkSession, lake: Lake, config: Config) -> TickCost | None:
    """Do one round; None where nothing has been collected yet. Raises LakeError where the lake cannot be used."""
    started_at, wall, cpu = datetime.now(UTC), time.monotonic(), _cpu_seconds()
    news = read_news(lake, read_progress(lake))
    if not news:
        return None
    before = news
    news = catch_up(session, lake, news, config.analysis.spark.conf)
    caught_up = sum((n.open_from - b.open_from) // timedelta(minutes=1) for n, b in zip(news, before, strict=True))
    policies = [_context(n, config) for n in news]
    own_objectives = _own_objectives(lake, news, config)
    contexts = contexts_frame(session, policies)
    if caught_up:
        # Many hours, while the session is still tuned for many rows; of other clusters the minutes come first.
        ready = [n for n in news if n.open_from >= whole_hours_until(n.as_of)]
        done = {n.cluster: n for n in finish_hours(session, lake, ready, contexts)}
        news = [done.get(n.cluster, n) for n in news]
    tune(session, sum(n.group_partitions for n in news), config.analysis.spark.conf)
    with freed_afterwards(session):
        minutes = open_minutes(session, lake, news, contexts)
        finished = finish_minutes(session, lake, news, minutes)
        news = finish_hours(session, lake, news, contexts)
        result = statuses(_inputs(session, lake, config, news, contexts, minutes, own_objectives))
        by_status = partitions_by_status(result.partitions).toArrow().to_pylist()
        facts = result.groups.toArrow().to_pylist()
        where = _places_of_trouble(session, result.partitions, by_status)
        worst = [(r["cluster"], r["worst"]["topic"], r["worst"]["partition"]) for r in by_status if r["worst"]]
        labels = read.labels(lake, news, worst)
        verdicts = group_verdicts(by_status, facts, where, policies, own_objectives, labels)
        sum_up(lake, news)
        assign(lake, news)
        findings = findings_of(lake, news)
        changes = write.partition_changes(result.partitions, lake)
        # The two right after one another: who reads in between sees a group that is a round behind its partitions.
        write.replace(result.partitions, lake, PARTITION_STATUS)
        changes += write.groups(lake, verdicts, findings, news)
        # Last, because nobody waits for it: verdicts do not go by it.
        if not may_wait(news, caught_up):
            news = observe(session, lake, news)
    judged = sum(row["partitions"] for row in by_status)
    groups = len(verdicts)
    cost = TickCost(
        wall_seconds=round(time.monotonic() - wall, 3),
        cpu_seconds=round(_cpu_seconds() - cpu, 3),
        new_samples=sum(n.new_samples for n in news),
        group_partitions=judged,
        groups=groups,
        status_changes=changes,
        minutes_finished=caught_up + finished,
        rows={PARTITION_STATUS.name: judged, GROUP_STATUS.name: groups, STATUS_CHANGES.name: changes},
    )
    lake.append(TICKS, _tick_row(started_at, cost, news))
    return cost


def _context(news: News, config: Config) -> dict[str, object]:
    objective = next((c.lag_objective_seconds for c in config.clusters if c.name == news.cluster), 300.0)
    return {
        "cluster": news.cluster,
        "sample_id": news.latest_id,
        "as_of": news.as_of,
        "interval_seconds": news.interval_seconds,
        "gap_seconds": gap_seconds(news.interval_seconds),
        "lag_objective_seconds": objective,
        "risk_horizon_seconds": config.analysis.risk_horizon_seconds,
        "minimum_span_seconds": config.analysis.minimum_span_seconds,
        "offsets_retention_seconds": news.offsets_retention_seconds,
        "open_from": news.open_from,
        "fine_from": _fine_from(news),
    }


def _own_objectives(lake: Lake, news: Sequence[News], config: Config) -> dict[tuple[str, str], float]:
    """The lag objectives of groups that have one of their own: of those that are there, or were in the round before."""
    clusters = {c.name: c for c in config.clusters if c.lag_objectives}
    if not clusters:
        return {}
    there = read.recent_groups(lake, news, WINDOWS_SECONDS[0]).select(["cluster", "group"]).to_pylist()
    before = lake.read(GROUP_STATUS).select(["cluster", "group"]).to_pylist()
    groups = {(row["cluster"], row["group"]) for row in (*there, *before) if row["cluster"] in clusters}
    return {(cluster, group): clusters[cluster].lag_objective_of(group) for cluster, group in groups}


def _fine_from(news: News) -> datetime:
    """Before this time history is read by five minutes: those that verdicts take as one, and that are finished."""
    coarse_from = news.as_of - timedelta(seconds=COARSE_AFTER_SECONDS)
    return five_minutes_of(min(coarse_from, news.open_from))


def _inputs(
    session: SparkSession,
    lake: Lake,
    config: Config,
    news: Sequence[News],
    contexts: DataFrame,
    minutes: OpenMinutes,
    own_objectives: Mapping[tuple[str, str], float],
) -> Inputs:
    horizon = min(n.as_of for n in news) - timedelta(seconds=LOOKBACK_SECONDS)
    latest_ids = [n.latest_id for n in news]
    # The rows of a sample are dated a little before `as_of`, which is when its last part was read.
    latest_from = min(n.as_of for n in news) - read.LONGEST_SAMPLE
    fine_from = min(_fine_from(n) for n in news)
    clock = F.broadcast(contexts.select("cluster", "open_from", "fine_from", "as_of"))

    def finished(table: Table, by_five: Table) -> DataFrame:
        fine = read.since(session, lake, table, fine_from).join(clock, "cluster")
        fine = fine.where((F.col("minute") >= F.col("fine_from")) & (F.col("minute") < F.col("open_from")))
        # Beyond the look-back to where `days` ends; older watermarks are read from another table, by the minute.
        coarse = read.since(session, lake, by_five, horizon - timedelta(minutes=10)).join(clock, "cluster")
        reach = LOOKBACK_SECONDS + HOUR_IS_WHOLE_AFTER_SECONDS
        is_recent = seconds_between(F.col("minute"), F.col("as_of")) <= reach
        coarse = coarse.where(is_recent & (F.col("minute") < F.col("fine_from")))
        return fine.unionByName(coarse).drop("open_from", "fine_from", "as_of")

    def of_latest(table: Table) -> DataFrame:
        return read.of_samples(session, lake, table, latest_ids, latest_from)

    watermark_minutes = finished(WATERMARK_MINUTES, WATERMARK_FIVE_MINUTES).unionByName(minutes.watermarks)
    older = older_history(session, lake, news, config.lake.retention.minute_stats_days, latest_from)
    if older is not None:
        watermark_minutes = watermark_minutes.unionByName(older)
    return Inputs(
        contexts=contexts,
        minutes=finished(MINUTES, FIVE_MINUTES).unionByName(minutes.pairs),
        days=days(session, lake),
        watermark_minutes=watermark_minutes,
        commits=of_latest(COMMITS),
        watermarks=of_latest(WATERMARKS),
        groups=frame(session, read.recent_groups(lake, news, WINDOWS_SECONDS[0])),
        members=frame(session, read.latest_members(lake, news)),
        events=frame(session, read.telling_events(lake, news, WINDOWS_SECONDS[0])),
        topics=frame(session, read.newest_topics(lake)),
        previous=session.read.format("delta").load(lake.location(PARTITION_STATUS)),
        objectives=objectives_frame(session, own_objectives),
    )


def _places_of_trouble(
    session: SparkSession, partitions: DataFrame, by_status: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Whose the partitions are and where they lie, of the groups that are in trouble."""
    troubled = {(row["cluster"], row["group"]) for row in by_status if row["status"] in TROUBLE}
    if not troubled:
        return []
    names = pa.Table.from_pylist(
        [{"cluster": cluster, "group": group} for cluster, group in sorted(troubled)],
        schema=pa.schema([pa.field("cluster", pa.string()), pa.field("group", pa.string())]),
    )
    theirs = partitions.join(F.broadcast(frame(session, names)), list(GROUP), "semi")
    rows: list[dict[str, Any]] = places(theirs).toArrow().to_pylist()
    return rows


def _tick_row(started_at: datetime, cost: TickCost, news: Sequence[News]) -> pa.Table:
    row = {
        "started_at": started_at,
        "finished_at": datetime.now(UTC),
        "wall_seconds": cost.wall_seconds,
        "samples": cost.new_samples,
        "group_partitions": cost.group_partitions,
        "progress": [
            {
                "cluster": n.cluster,
                "read_until": n.read_until,
                "finished_until": max(n.open_from, minute_of(n.as_of)),
                "hours_until": n.hours_from,
                "observed_until": n.observed_from,
            }
            for n in news
        ],
    }
    return TICKS.from_rows([row])


def _cpu_seconds() -> float:
    """CPU time of this process and of those it started that still run: the JVM and its workers."""
    me = psutil.Process()
    total = 0.0
    for process in (me, *me.children(recursive=True)):
        try:
            times = process.cpu_times()
        except psutil.Error:
            continue  # it ended between being listed and being asked
        total += times.user + times.system
    return total
