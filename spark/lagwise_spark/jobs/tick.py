"""One round of the analysis: read what is new, finish minutes, judge, write. Idempotent: a round that was cut short is
simply done again by the next one."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial

import psutil
import pyarrow as pa
from pyspark import SparkContext

from lagwise.config import Config
from lagwise.domain.verdicts.windows import WINDOWS_SECONDS
from lagwise.tables.analysis import GROUP_STATUS, PARTITION_STATUS, STATUS_CHANGES
from lagwise.tables.minutes import FIVE_MINUTES, MINUTES, WATERMARK_FIVE_MINUTES, WATERMARK_MINUTES
from lagwise.tables.rounds import TICKS
from lagwise.tables.store import Lake
from lagwise_spark.jobs import read, write
from lagwise_spark.jobs.assignments import assign
from lagwise_spark.jobs.catch_up import catch_up
from lagwise_spark.jobs.far_behind import older_history
from lagwise_spark.jobs.findings import findings_of
from lagwise_spark.jobs.groups_of_round import verdicts_on_groups
from lagwise_spark.jobs.hours import finish_hours
from lagwise_spark.jobs.observed import may_wait, observe
from lagwise_spark.jobs.past_history import judge_past
from lagwise_spark.jobs.progress import (
    News,
    five_minutes_of,
    latest_from,
    minute_of,
    read_news,
    read_progress,
)
from lagwise_spark.jobs.rebalances import sum_up
from lagwise_spark.jobs.round_inputs import files_of_round, groups_now, ranges_of_round, round_inputs, samples_of_round
from lagwise_spark.jobs.standings import standings
from lagwise_spark.jobs.turns_of_round import in_their_turns
from lagwise_spark.jobs.what_changed import backlogs_of
from lagwise_spark.tasks.judging import judged_range
from lagwise_spark.tasks.running import gathered


@dataclass(frozen=True, slots=True)
class TickCost:
    """What a round cost, and what it did. ``cpu_seconds`` are those of this process, its JVM and the
    JVM's Python workers.

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


def tick(context: SparkContext, lake: Lake, config: Config) -> TickCost | None:
    """Do one round; None where nothing has been collected yet. Raises LakeError where the lake cannot be used."""
    with lake.unchanging():
        return _tick(context, lake, config)


def _tick(context: SparkContext, lake: Lake, config: Config) -> TickCost | None:
    started_at, wall, cpu = datetime.now(UTC), time.monotonic(), _cpu_seconds()
    news = read_news(lake, read_progress(lake))
    if not news:
        return None
    before = news
    news = catch_up(context, lake, news)
    caught_up = sum((n.open_from - b.open_from) // timedelta(minutes=1) for n, b in zip(news, before, strict=True))
    own_objectives = _own_objectives(lake, news, config)
    # Of the hours that are whole by now, all minutes have been written.
    news = finish_hours(context, lake, news)
    stood = standings(lake)
    for n, b in zip(news, before, strict=True):
        if n.open_from > b.open_from:
            stood = judge_past(context, lake, config, n, b.open_from, own_objectives, stood)
    seen = groups_now(lake, news)
    older = older_history(lake, news, config.lake.retention.minute_stats_days, latest_from(news))
    samples = samples_of_round(lake, news)
    inputs = round_inputs(lake, config, news, samples, seen, own_objectives, older)
    work = partial(judged_range, inputs, files_of_round(lake, news, samples))
    cores = context.defaultParallelism
    made = gathered(context, work, ranges_of_round(lake, news, cores))
    finished = _finish_minutes(lake, news, made)
    rows, files = in_their_turns(lake, made)
    objectives = {moment.cluster: moment.lag_objective_seconds for moment in inputs.moments}
    verdicts = verdicts_on_groups(
        rows,
        seen,
        lambda group: own_objectives.get(group, objectives.get(group[0])),
        partial(read.labels, lake, news),
    )
    sum_up(lake, news)
    assign(lake, news)
    findings = findings_of(lake, news)
    backlogs = backlogs_of(lake, verdicts, news)
    changes = write.partition_changes(rows, lake)
    # The two right after one another: who reads in between sees a group that is a round behind its partitions.
    lake.replace_files(PARTITION_STATUS, files)
    changes += write.groups(lake, verdicts, findings, backlogs, news, stood)
    # Last, because nobody waits for it: verdicts do not go by it.
    if not may_wait(news, caught_up):
        news = observe(context, lake, news)
    judged = rows.num_rows
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


def _own_objectives(lake: Lake, news: Sequence[News], config: Config) -> dict[tuple[str, str], float]:
    """The lag objectives of groups that have one of their own: of those that are there, or were in the round before."""
    clusters = {c.name: c for c in config.clusters if c.lag_objectives}
    if not clusters:
        return {}
    there = read.recent_groups(lake, news, WINDOWS_SECONDS[0]).select(["cluster", "group"]).to_pylist()
    before = lake.read(GROUP_STATUS).select(["cluster", "group"]).to_pylist()
    groups = {(row["cluster"], row["group"]) for row in (*there, *before) if row["cluster"] in clusters}
    return {(cluster, group): clusters[cluster].lag_objective_of(group) for cluster, group in groups}


def _finish_minutes(lake: Lake, news: Sequence[News], made: Mapping[str, pa.Table]) -> int:
    """Write those minutes that no later sample will change: all before the latest sample's own. Where that completes
    five minutes, write these too. Returns how many minutes were written, over all clusters."""
    spans = {n.cluster: (n.open_from, minute_of(n.as_of)) for n in news if minute_of(n.as_of) > n.open_from}
    if not spans:
        return 0
    fives = {cluster: (five_minutes_of(start), five_minutes_of(end)) for cluster, (start, end) in spans.items()}
    for table, its in (
        (MINUTES, spans),
        (WATERMARK_MINUTES, spans),
        (FIVE_MINUTES, fives),
        (WATERMARK_FIVE_MINUTES, fives),
    ):
        if table.name in made:
            write.replace_spans(lake, table, its, made[table.name])
    return sum((end - start) // timedelta(minutes=1) for start, end in spans.values())


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
