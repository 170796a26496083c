"""The likely cause of each group's backlog, from the raw tables of the last minutes: the driver does it, for the few
groups that fell behind lately."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any

import pyarrow as pa

from lagwise.domain.group_record import record_of
from lagwise.domain.groups import GroupVerdict
from lagwise.domain.rebalances.explanation import Setup
from lagwise.domain.sizing.downstream import RATE_INPUT
from lagwise.domain.vocabulary import Status
from lagwise.domain.what_changed.backlog import TOLD_WITH, Backlog, backlog_now
from lagwise.domain.what_changed.change import Change
from lagwise.domain.what_changed.choice import LOOK_BACK
from lagwise.domain.what_changed.happenings import of_rebalances, of_topic_events
from lagwise.domain.what_changed.levels import WorkStep
from lagwise.domain.what_changed.measured import RecordsStep, TopicWork, changes_of
from lagwise.tables.analysis import GROUP_STATUS
from lagwise.tables.capacity import CAPACITY
from lagwise.tables.minutes import MINUTES, WATERMARK_MINUTES
from lagwise.tables.raw import COMMITS, WATERMARKS
from lagwise.tables.schema import TEXT, Table
from lagwise.tables.service_times import JOBS, SERVICE_TIMES
from lagwise.tables.store import Lake
from lagwise_spark.jobs.behind import Behind, Group
from lagwise_spark.jobs.first_seen import already_behind_of
from lagwise_spark.jobs.happenings import happenings_of
from lagwise_spark.jobs.leaders import losses_of_leaders, without_leader
from lagwise_spark.jobs.progress import News
from lagwise_spark.jobs.read import labels
from lagwise_spark.jobs.rebalances import rebalance_of, setups_of

Row = Mapping[str, Any]
#: Cluster, group (None where it is about the topic alone) and topic.
TopicKey = tuple[str, str | None, str]
#: So many groups a round, and partitions of them together, at most: those that fell behind last. A cluster in uproar
#: must not hold up the verdicts.
MOST_GROUPS, MOST_PARTITIONS = 50, 10_000
#: Levels before a change are measured over this time.
_BEFORE = timedelta(minutes=10)
#: Raw samples are read of so long before now; what was before is read as minutes, which are a quarter as many rows.
_RAW = timedelta(minutes=3)
#: Steps are as long as this, or as the time between two samples.
_STEP_SECONDS = 15.0

#: Records by partition and step, of the topics or groups that are behind.
_COUNTED = """
    with marks as (
        select cluster, topic, partition, {group} as "group", sampled_at, {offset} as mark
        from {table} semi join behind using ({using}) where sampled_at >= $newest and {offset} is not null
        union select * from older
    ), steps as (
        select *, lag(sampled_at) over its as began, mark - lag(mark) over its as records
        from marks window its as (partition by cluster, topic, "group", partition order by sampled_at)
    ), counted as (
        select * from steps where began is not null and records >= 0
    )
"""
_READ = f"""{_COUNTED}
    select cluster, topic, "group", min(began) as start, max(sampled_at) as "end", sum(records)::bigint as records,
           0 as of_partition
    from counted group by cluster, topic, "group", floor(epoch(sampled_at) / $step) order by "end"
"""  # noqa: S608 (our own text)
#: With those of the partition to which most was written in the last two minutes.
_WRITTEN = f"""{_COUNTED}, hottest as (
        select cluster, topic, arg_max(partition, records) as partition, count(*) as partitions from (
            select cluster, topic, partition, sum(records) as records from counted
            semi join (select cluster, max(sampled_at) as last from counted group by cluster) as newest
                on counted.cluster = newest.cluster and counted.sampled_at > newest.last - interval '2 minutes'
            group by all
        ) group by cluster, topic
    )
    select cluster, topic, "group", min(began) as start, max(sampled_at) as "end", sum(records)::bigint as records,
           coalesce(sum(records) filter (counted.partition = hottest.partition), 0)::bigint as of_partition,
           any_value(hottest.partition) as hottest, any_value(partitions) as partitions
    from counted join hottest using (cluster, topic)
    group by cluster, topic, "group", floor(epoch(sampled_at) / $step) order by "end"
"""  # noqa: S608 (our own text)
_OLDER = """
    select cluster, topic, partition, {group} as "group", last_at as sampled_at, last_{offset} as mark
    from {minutes} semi join behind using ({using})
    where minute >= $since and last_at < $newest and last_{offset} is not null
"""
_OF_TOPIC = {"offset": "high_watermark", "group": "null::varchar", "using": "cluster, topic"}
_OF_GROUP = {"offset": "committed", "group": '"group"', "using": 'cluster, "group", topic'}
_WORK = """
    with told as (
        -- by the collector's clock: those of the consumers may be minutes off
        select cluster, "group", topic, coalesce(host, '') as host, coalesce(member_id, '') as member, measured_at,
               messages, coalesce(t1_seconds, seconds_per_message) as t1_seconds, t2_seconds,
               coalesce(run_queue_seconds, 0) as queued, threads, window_seconds, cores, min(sampled_at) as seen_at
        from service_times semi join behind using (cluster, "group", topic)
        where sampled_at >= $since and messages > 0 and coalesce(t1_seconds, seconds_per_message) is not null
        group by all
    )
    select cluster, "group", topic, time_bucket(to_seconds($step::int), seen_at) as start,
           sum(messages)::bigint as messages, sum(t1_seconds * messages) / sum(messages) as t1_seconds,
           case when bool_and(t2_seconds is not null) then sum(t2_seconds * messages) / sum(messages) end as t2_seconds,
           sum((t1_seconds + t2_seconds + queued) * messages) / sum(threads * window_seconds) as busy_share,
           max(cores) as cores
    from told group by all order by start
"""
#: The work of Flink jobs: the busy time of a record in the vertex that is busiest now.
_JOBS = """
    with seen as (
        select distinct cluster, "group", sampled_at, unnest(vertices) as vertex
        from jobs semi join behind using (cluster, "group") where sampled_at >= $since
    ), busiest as (
        select cluster, "group", arg_max(vertex.name, (vertex.busy_share, sampled_at)) as name
        from seen where vertex.busy_share is not null and sampled_at >= $newest group by all
    )
    select cluster, "group", vertex.name as topic, sampled_at - to_seconds($step::int) as start,
           greatest(1, round(vertex.records_in_per_second * $step))::bigint as messages, null as t2_seconds,
           vertex.busy_share * vertex.parallelism / vertex.records_in_per_second as t1_seconds, null as busy_share,
           null as cores
    from seen join busiest using (cluster, "group")
    where vertex.name = busiest.name and vertex.busy_share > 0 and vertex.records_in_per_second > 0 order by sampled_at
"""


def backlogs_of(
    lake: Lake, verdicts: Mapping[Group, tuple[Row, GroupVerdict]], news: Sequence[News]
) -> dict[Group, Backlog]:
    """The groups that are behind, by cluster and group, each with its likely cause. Raises LakeError."""
    of = {n.cluster: n for n in news}
    before = _before(lake)
    were_without = {group for group, backlog in before.items() if backlog.is_without_leader}
    leaderless_of = without_leader(lake, verdicts, were_without, news)
    result, young = {}, []
    for group, (_, verdict) in verdicts.items():
        its = of[group[0]]
        leaderless = leaderless_of.get(group, ())
        waited, interval = verdict.lag_seconds_at_commit, its.interval_seconds
        backlog = backlog_now(
            before.get(group),
            verdict.status,
            waited,
            interval,
            its.as_of,
            reason=verdict.reason,
            has_leaderless=bool(leaderless),
        )
        if backlog is None:
            continue
        result[group] = backlog
        leaderless = leaderless if verdict.status is Status.UNKNOWN else ()
        one = Behind(group, verdict.topics, verdict.partitions, verdict.status, backlog, its.as_of, leaderless)
        # Of a cluster that is not collected any more nothing new is known.
        if its.new_samples and one.is_due(interval):
            young.append(one)
    changes = losses_of_leaders(lake, [one for one in young if one.leaderless])
    for its in news:
        changes |= _changes(lake, [one for one in young if one.group[0] == its.cluster and not one.leaderless], its)
    explained = {
        one.group: one.backlog.explained(changes[one.group], one.status, one.now)
        for one in young
        if one.group in changes
    }
    result |= explained
    unexplained = [one for one in young if one.group not in before and result[one.group].cause is None]
    return result | already_behind_of(lake, unexplained, of)


def _before(lake: Lake) -> dict[Group, Backlog]:
    """The backlogs as of the round before."""
    rows = lake.query("select * from group_status where behind_since is not null", over=[GROUP_STATUS]).to_pylist()
    backlogs = {}
    for record in map(record_of, rows):
        numbers, cause = record.numbers, None
        if numbers.what_changed and numbers.what_changed_sentence and record.what_changed_at and record.behind_since:
            cause = Change(
                kind=numbers.what_changed,
                at=record.what_changed_at,
                sentence=numbers.what_changed_sentence,
                remedy=numbers.what_changed_remedy,
            )
        if record.behind_since:
            backlogs[record.cluster, record.group] = Backlog(record.behind_since, cause)
    return backlogs


def _changes(lake: Lake, behind: Sequence[Behind], its: News) -> dict[Group, list[Change]]:
    """What changed before these groups of a cluster fell behind, by cluster and group."""
    newest = _within_bounds(behind)
    if not newest:
        return {}
    since = min(one.backlog.since for one in newest) - LOOK_BACK
    named = _named(newest)
    begin, raw, step = since - _BEFORE, its.as_of - _RAW, max(_STEP_SECONDS, its.interval_seconds)
    measured: dict[str, object] = {"since": begin, "step": step}
    work = _by(lake.query(_WORK, measured, over=[SERVICE_TIMES], since=begin, given={"behind": named}))

    def records(
        counting: str, table: Table, minutes: Table, names: Mapping[str, str]
    ) -> defaultdict[TopicKey, list[Row]]:
        told: dict[str, object] = {"since": begin, "newest": raw}
        sql = _OLDER.format(minutes=minutes.name, **names)
        older = lake.query(sql, told, over=[minutes], since=begin, given={"behind": named})
        sql, told = counting.format(table=table.name, **names), {"newest": raw, "step": step}
        return _by(lake.query(sql, told, over=[table], since=raw, given={"behind": named, "older": older}))

    of_jobs = {"since": begin, "newest": raw, "step": step}
    jobs = _by(lake.query(_JOBS, of_jobs, over=[JOBS], since=begin, given={"behind": named}))
    written, read = (
        records(_WRITTEN, WATERMARKS, WATERMARK_MINUTES, _OF_TOPIC),
        records(_READ, COMMITS, MINUTES, _OF_GROUP),
    )
    rebalances, events = happenings_of(lake, {one.group for one in newest}, since)
    setups = setups_of(lake, [its]) if rebalances else {}
    full, called = _full_downstreams(lake), _called(lake, its, written)
    found: dict[Group, list[Change]] = {}
    for one in newest:
        began, cluster = one.backlog.since - LOOK_BACK, one.group[0]
        changes = found.setdefault(one.group, [])
        for topic in one.topics:
            key = (*one.group, topic)
            ours = _topic_work(topic, work[key], written[cluster, None, topic], read[key], full.get(key), called)
            changes += changes_of(ours, began, one.now)
            its_events = [e for e in events[cluster, topic] if e.at >= began]
            changes += of_topic_events(its_events, one.backlog.since, one.now)
        for (*group, vertex), steps in jobs.items():
            if tuple(group) == one.group:
                changes += changes_of(_topic_work(f"the vertex {vertex}", steps, (), (), None, {}), began, one.now)
        mine = [rebalance_of(event) for event in rebalances[one.group] if event["at"] >= began]
        changes += of_rebalances(mine, setups.get(one.group, Setup()), one.now)
    return found


def _within_bounds(behind: Sequence[Behind]) -> list[Behind]:
    """As many as a round looks at: those in trouble first, then those that fell behind last; one of any size."""
    ordered = sorted(behind, key=lambda one: one.backlog.since, reverse=True)
    ordered.sort(key=lambda one: one.status not in TOLD_WITH)
    chosen: list[Behind] = []
    partitions = 0
    for one in ordered:
        if len(chosen) < MOST_GROUPS and (not chosen or partitions + one.partitions <= MOST_PARTITIONS):
            chosen.append(one)
            partitions += one.partitions
    return chosen


def _called(lake: Lake, its: News, written: Mapping[TopicKey, Sequence[Row]]) -> dict[tuple[str, int], str]:
    """What people call the partitions to which most was written, by topic and partition."""
    hottest = [(topic, rows[-1]["hottest"]) for (_, _, topic), rows in written.items() if rows]
    names = labels(lake, [its], [(its.cluster, topic, partition) for topic, partition in hottest])
    return {
        (topic, partition): f"{topic} {name}" if name is not None else f"{topic}-{partition}"
        for topic, partition in hottest
        for name in [names.get((its.cluster, topic, partition))]
    }


def _named(behind: Iterable[Behind]) -> pa.Table:
    rows = [(*one.group, topic) for one in behind for topic in one.topics]
    columns = zip(*rows, strict=True) if rows else ((), (), ())
    return pa.table(
        {name: pa.array(values, TEXT) for name, values in zip(("cluster", "group", "topic"), columns, strict=True)}
    )


def _by(found: pa.Table) -> defaultdict[TopicKey, list[Row]]:
    """Rows by cluster, group and topic, in the order that they have."""
    result: defaultdict[TopicKey, list[Row]] = defaultdict(list)
    for row in found.to_pylist():
        result[row["cluster"], row["group"], row["topic"]].append(row)
    return result


def _topic_work(
    topic: str,
    work: Sequence[Row],
    written: Sequence[Row],
    read: Sequence[Row],
    full: float | None,
    called: Mapping[tuple[str, int], str],
) -> TopicWork:
    return TopicWork(
        topic=topic,
        work=[WorkStep(**{name: row[name] for name in WorkStep.__slots__}) for row in work],
        written=_steps(written),
        read=_steps(read),
        hottest=called[topic, written[-1]["hottest"]] if written else "",
        partitions=written[-1]["partitions"] if written else 1,
        cores=work[-1]["cores"] if work else None,
        downstream_rate_per_second=full,
    )


def _steps(rows: Sequence[Row]) -> list[RecordsStep]:
    return [RecordsStep(**{name: row[name] for name in RecordsStep.__slots__}) for row in rows]


def _full_downstreams(lake: Lake) -> dict[tuple[str, str, str], float]:
    """What downstreams do that were found to be full, by cluster, group and topic."""
    rows = lake.query(
        """
        select cluster, "group", topic, input.value as rate
        from (select cluster, "group", topic, unnest(inputs) as input from capacity) where input.name = ?
        """,
        [RATE_INPUT],
        over=[CAPACITY],
    ).to_pylist()
    return {(row["cluster"], row["group"], row["topic"]): row["rate"] for row in rows}
