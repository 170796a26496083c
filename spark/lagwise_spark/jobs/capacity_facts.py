"""What the other tables know of the groups whose capacity is judged."""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from datetime import datetime, timedelta
from typing import Any

from lagwise.config import CapacitySettings
from lagwise.domain.capacity.inputs import CapacityInputs, ConsumeTime, Demand, GroupServiceTime, JobWork
from lagwise.domain.capacity.observed import ObservedCapacity, Undecided
from lagwise.domain.capacity.service_level import MeasuredMinute, newest_level
from lagwise.domain.sizing.downstream import MeasuredWork, downstream_full
from lagwise.domain.sizing.task_slots import free_of
from lagwise.tables.capacity import DEMAND, OBSERVED_CAPACITY
from lagwise.tables.raw import GROUPS
from lagwise.tables.service_times import JOBS, SERVICE_TIMES
from lagwise.tables.store import Lake
from lagwise.tables.topic_facts import NOTHING_AHEAD, TopicAhead, demand_ahead, objective_takes, skew_of
from lagwise_spark.jobs.running_jobs import LOAD_WINDOW

#: A probe's measurements of so long before its newest one are taken together.
_TOGETHER = timedelta(hours=1)
#: Those of so long before its newest one, or twice as long as one takes, tell the processes that run on a host now.
_LATELY_SECONDS = 60.0
_LONGEST = timedelta(days=2)
#: What a process computes beside its handlers is a cost of messages where it computes this much of a core, its threads
#: spend this share of their time on messages, and the measurement is not too short to tell.
_LEAST_CORES_BUSY, _LEAST_THREADS_BUSY, _LEAST_WINDOW_SECONDS = 0.1, 0.25, 5.0
#: A process that measured itself for less of five minutes came or went in them.
_THROUGHOUT_SECONDS = 150.0
#: A job that was not seen for longer does not run any more.
_JOB_SEEN = timedelta(minutes=10)
#: Members are asked once a minute; one that said nothing for longer before the newest answer is not there any more.
_MEMBER_SEEN = timedelta(minutes=3)

#: The busiest vertex of each group's newest job, over its last minutes.
_JOBS = """
    with newest as (
        select cluster, "group", arg_max(job_id, sampled_at) as job_id, max(sampled_at) as last,
               -- the newest that are known: a look may have been told none
               arg_max(slots_total, sampled_at) as slots_total, arg_max(slots_free, sampled_at) as slots_free
        from jobs where sampled_at >= ? group by all
    ), seen as (
        select j.cluster, j."group", j.sampled_at, n.slots_total, n.slots_free, unnest(j.vertices) as vertex
        from jobs j join newest n using (cluster, "group", job_id) where j.sampled_at > n.last - to_seconds(?)
    ), vertices as (
        select cluster, "group", slots_total, slots_free, vertex.name as vertex,
               arg_max(vertex.parallelism, sampled_at) as subtasks,
               arg_max(vertex.slots_held, sampled_at) as slots_held,
               avg(vertex.busy_share) as busy_share, count(vertex.busy_share) as samples,
               max(sampled_at) as measured_until
        from seen group by all
    )
    select * from vertices where busy_share is not null
    qualify row_number() over (partition by cluster, "group" order by busy_share desc, vertex) = 1
"""
#: What RocketMQ's members told of the last hour; their threads, and how they consume, by the last minutes.
_CONSUME_TIMES = """
    with told as (
        select distinct cluster, "group", topic, member_id, measured_at, seconds_per_message, messages, threads
        from service_times where sampled_at >= ? and seconds_per_message is not null and threads is not null
    ), newest as (
        select *, max(measured_at) over (partition by cluster, "group", topic) as last from told
    ), members as (
        select cluster, "group", topic, member_id, arg_max(threads, measured_at) as threads
        from newest where measured_at > last - to_seconds(?) group by all
    ), pools as (
        select cluster, "group", topic, sum(threads)::int as threads from members group by all
    ), kinds as (
        select cluster, "group", arg_max(type, sampled_at) as type from groups where sampled_at >= ? group by all
    )
    select n.cluster, n."group", n.topic, sum(seconds_per_message * messages) / sum(messages) as seconds_per_message,
           sum(messages)::bigint as messages, max(measured_at) as measured_at, any_value(p.threads) as threads,
           coalesce(any_value(k.type) = 'orderly', false) as is_ordered
    from newest n join pools p using (cluster, "group", topic) left join kinds k using (cluster, "group")
    -- members of a broadcasting group handle every message each: together they do no more than one
    where k.type is distinct from 'broadcasting' group by n.cluster, n."group", n.topic
"""
_SERVICE = """
    with told as (
        select distinct cluster, "group", topic, coalesce(host, '') as host, coalesce(member_id, '') as member,
               measured_at, t1_seconds, t2_seconds, messages, threads, cores, coalesce(window_seconds, 0) as seconds,
               t1_doubt, process_cpu_seconds - t2_seconds as beside, messages / nullif(window_seconds, 0) as rate,
               process_cpu_seconds * messages / nullif(window_seconds, 0) as cores_busy,
               (t1_seconds + t2_seconds) * messages / nullif(window_seconds * threads, 0) as threads_busy
        from service_times where sampled_at >= $since and t2_seconds is not null
    ), newest as (
        select *, max(measured_at) over (partition by cluster, "group", topic) as last,
               max(measured_at) over (partition by cluster, "group", topic, host) as last_of_host,
               max(seconds) over (partition by cluster, "group", topic, host) as longest
        from told
    ), together as (
        select * from newest where measured_at >= last - to_seconds($together)
    ), busiest as (
        -- a process also computes while there are no messages, so a message's cost is taken from busy windows
        select *, coalesce(cores_busy >= $cores and threads_busy >= $threads and seconds >= $window
                           and rate >= 0.5 * max(rate) filter (seconds >= $window) over (
                               partition by cluster, "group", topic, host, member), false) as is_busy
        from together
    ), minutes as (
        select cluster, "group", topic, time_bucket(interval '1 minute', measured_at) as minute,
               sum(messages)::bigint as messages, sum(t1_seconds * messages) / sum(messages) as t1_seconds,
               sum(t2_seconds * messages) / sum(messages) as t2_seconds, max(t1_doubt) as t1_doubt
        from together group by all
    ), in_order as (
        select cluster, "group", topic, list({'minute': minute, 'messages': messages, 't1_seconds': t1_seconds,
                                              't2_seconds': t2_seconds, 't1_doubt': t1_doubt}
                                             order by minute) as minutes
        from minutes group by all
    ), processes as (
        -- what a process told lately; whatever has told longer ago may have been another one's before a rebalance
        select cluster, "group", topic, host, member, arg_max(threads, measured_at) as threads, max(cores) as cores
        from together where measured_at > last_of_host - to_seconds(greatest($lately, 2 * longest)) group by all
    ), hosts as (
        select cluster, "group", topic, sum(threads) as threads, max(cores) as cores from processes
        group by cluster, "group", topic, host
    ), nodes as (
        select cluster, "group", topic, round(avg(threads))::int as threads, avg(cores) as cores from hosts group by all
    )
    select cluster, "group", topic, any_value(o.minutes) as minutes, max(measured_at) as measured_at,
           any_value(n.threads) as threads, any_value(n.cores) as cores,
           case when bool_or(is_busy) then greatest(0, sum(beside * messages) filter (is_busy)
                                                       / sum(messages) filter (is_busy)) end as t2_beside_seconds
    from busiest join nodes n using (cluster, "group", topic) join in_order o using (cluster, "group", topic)
    group by cluster, "group", topic
"""
#: What the consumers measured with each number of threads, lately: five minutes in which nobody came or went, and what
#: was counted as waiting was nothing else. Of each number of threads its newest hour.
_WORK = """
    with told as (
        select distinct cluster, "group", topic, coalesce(host, '') as host, coalesce(member_id, '') as member,
               measured_at, t1_seconds, t1_seconds + t2_seconds + run_queue_seconds as seconds, messages, threads,
               window_seconds, time_bucket(interval '5 minutes', measured_at) as bucket
        from service_times
        where sampled_at >= ? and t2_seconds is not null and run_queue_seconds is not null and t1_doubt is null
          and threads is not null and window_seconds > 0
    ), processes as (
        select cluster, "group", topic, bucket, max(threads) as threads, sum(messages) as messages,
               sum(messages) / sum(window_seconds) as rate, sum(t1_seconds * messages) as waited,
               sum(seconds * messages) as took, max(measured_at) as measured_at,
               date_diff('second', min(measured_at), max(measured_at)) + arg_min(window_seconds, measured_at) as span
        from told group by cluster, "group", topic, bucket, host, member
    ), buckets as (
        select cluster, "group", topic, bucket, sum(threads)::int as threads, count(*)::int as members,
               sum(messages) as messages, sum(rate) as rate, sum(waited) as waited, sum(took) as took,
               max(measured_at) as measured_at
        from processes group by cluster, "group", topic, bucket having min(span) >= ?
    ), newest as (
        select *, max(measured_at) over (partition by cluster, "group", topic, threads) as last from buckets
    )
    select cluster, "group", topic, threads, max(members) as members, sum(waited) / sum(messages) as t1_seconds,
           sum(took) / sum(messages) as seconds_per_message, avg(rate) as rate_per_second,
           sum(messages)::bigint as messages, max(measured_at) as measured_at
    from newest where measured_at >= last - to_seconds(?) group by cluster, "group", topic, threads
    having count(*) >= 2
"""

Row = Mapping[str, Any]
Key = tuple[str, str, str]
#: The lag objective of a group, in seconds, by its cluster and name.
ObjectiveOf = Callable[[str, str], float]


def key_of(row: Row) -> Key:
    """What a row is about: cluster, group and topic."""
    return row["cluster"], row["group"], row["topic"]


class Facts:
    """The rows of the other tables, by what they are about."""

    def __init__(
        self,
        lake: Lake,
        settings: CapacitySettings,
        now: datetime,
        topics: Collection[tuple[str, str]],
        objective_of: ObjectiveOf,
    ) -> None:
        self._settings = settings
        self._objective_of = objective_of
        self._skew = skew_of(lake, topics, now)
        since = now - _LONGEST
        service = lake.query(
            _SERVICE,
            {
                "since": since,
                "together": _TOGETHER.total_seconds(),
                "lately": _LATELY_SECONDS,
                "cores": _LEAST_CORES_BUSY,
                "threads": _LEAST_THREADS_BUSY,
                "window": _LEAST_WINDOW_SECONDS,
            },
            over=[SERVICE_TIMES],
            since=since,
        )
        self._service = {key_of(r): r for r in service.to_pylist()}
        work = lake.query(
            _WORK, [since, _THROUGHOUT_SECONDS, _TOGETHER.total_seconds()], over=[SERVICE_TIMES], since=since
        )
        self._work: defaultdict[Key, list[MeasuredWork]] = defaultdict(list)
        for row in work.to_pylist():
            self._work[key_of(row)].append(_measured_work(row))
        jobs = lake.query(_JOBS, [now - _JOB_SEEN, LOAD_WINDOW.total_seconds()], over=[JOBS], since=now - _JOB_SEEN)
        times = lake.query(
            _CONSUME_TIMES,
            [now - _TOGETHER, _MEMBER_SEEN.total_seconds(), now - _TOGETHER],
            over=[SERVICE_TIMES, GROUPS],
            since=now - _TOGETHER,
        )
        self._times = {key_of(r): r for r in times.to_pylist()}
        self._jobs = {(r["cluster"], r["group"]): r for r in jobs.to_pylist()}
        observed = lake.query("select * from observed_capacity where member is null", over=[OBSERVED_CAPACITY])
        self._observed = {key_of(r): r for r in observed.to_pylist()}
        self._demand = {(r["cluster"], r["topic"]): r for r in lake.read(DEMAND).to_pylist()}
        self._ahead = demand_ahead(lake, now)

    def known(self, reader: Row) -> CapacityInputs:
        key, topic = key_of(reader), (reader["cluster"], reader["topic"])
        service, observed, demand = self._service.get(key), self._observed.get(key), self._demand.get(topic)
        time = self._times.get(key)
        job = self._jobs.get((reader["cluster"], reader["group"]))
        told = self._settings.cores_of(reader["group"])
        cores, source = (told, "settings") if told is not None else (service and service["cores"], "probe")
        return CapacityInputs(
            partitions=reader["partitions"],
            members=reader["members"] if job is None else job["subtasks"],
            nodes=reader["nodes"],
            as_of=reader["as_of"],
            skew=self._skew.get(topic),
            arriving_per_second=reader["rate"],
            cores=cores,
            cores_source=source,
            service=None if service is None else _service_time(service),
            downstream=downstream_full(self._work.get(key, ())),
            observed=None if observed is None else _observed(observed),
            job=None if job is None else _job(job, reader),
            consume_time=None if time is None else _consume_time(time),
            demand=None
            if demand is None
            else _demand(
                demand,
                self._ahead.get(topic, NOTHING_AHEAD),
                self._objective_of(reader["cluster"], reader["group"]),
            ),
        )


def _service_time(row: Row) -> GroupServiceTime:
    level = newest_level([MeasuredMinute(**minute) for minute in row["minutes"]])
    return GroupServiceTime(
        t1_seconds=level.t1_seconds,
        t2_seconds=level.t2_seconds,
        t2_beside_seconds=row["t2_beside_seconds"],
        threads=row["threads"] or 1,
        messages=level.messages,
        t1_change=level.t1_change,
        t2_change=level.t2_change,
        measured_at=row["measured_at"],
        t1_doubt=level.t1_doubt,
    )


def _measured_work(row: Row) -> MeasuredWork:
    names = ("threads", "members", "t1_seconds", "seconds_per_message", "rate_per_second", "messages", "measured_at")
    return MeasuredWork(**{name: row[name] for name in names})


def _consume_time(row: Row) -> ConsumeTime:
    names = ("seconds_per_message", "threads", "messages", "measured_at", "is_ordered")
    return ConsumeTime(**{name: row[name] for name in names})


def _job(row: Row, reader: Row) -> JobWork:
    return JobWork(
        vertex=row["vertex"],
        subtasks=row["subtasks"],
        busy_share=row["busy_share"],
        records_per_second=reader["read_rate"] or 0.0,
        samples=row["samples"],
        measured_until=row["measured_until"],
        slots_held=row["slots_held"],
        slots_free=free_of(row["slots_total"], row["slots_free"]),
    )


def _observed(row: Row) -> ObservedCapacity:
    return ObservedCapacity(
        rate_per_second=row["rate_per_second"],
        low=row["rate_low_per_second"],
        high=row["rate_high_per_second"],
        at_least_per_second=row["at_least_per_second"],
        members=row["members"],
        blocks=row["blocks"],
        until=row["measured_until"].timestamp() if row["measured_until"] else None,
        is_scaled=row["is_scaled"],
        reason=Undecided(row["reason"]) if row["reason"] else None,
        missing_seconds=row["missing_seconds"] or 0.0,
    )


def _demand(row: Row, ahead: TopicAhead, objective_seconds: float) -> Demand:
    return Demand(
        peak_per_second=row["peak_per_second"],
        peak_at=row["peak_at"],
        minutes=row["minutes"],
        history_hours=row["history_hours"],
        forecast_peak_per_second=row["forecast_peak_per_second"],
        horizon_days=row["horizon_days"],
        ahead=ahead.minutes,
        as_of=row["as_of"],
        objective=objective_takes(row, objective_seconds, ahead.hours),
    )
