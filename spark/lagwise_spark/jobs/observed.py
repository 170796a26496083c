"""`throughput` and `observed_capacity`: once an hour, when another one is whole; after an outage, some in each round.

Tasks look for saturated minutes, of which there are few or none where consumers keep up. The driver cuts them into
blocks, keeps these by the hour, and estimates from a week of them.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark import SparkContext

from lagwise.domain.capacity.observed import Floor, observed_capacity
from lagwise.domain.capacity.observed_text import capacity_sentence, load_test
from lagwise.domain.capacity.saturation import Block, SaturatedMinute, blocks_of, is_uneasy
from lagwise.domain.vocabulary import EventKind
from lagwise.tables.capacity import OBSERVED_CAPACITY, THROUGHPUT
from lagwise.tables.minutes import FIVE_MINUTES, MINUTES
from lagwise.tables.raw import EVENTS, MEMBERS
from lagwise.tables.store import Lake
from lagwise_spark.jobs import read, write
from lagwise_spark.jobs.progress import News, hour_of, latest_from, micros_of, minute_of
from lagwise_spark.jobs.read import FinishedSample
from lagwise_spark.jobs.round_inputs import ranges_of_round
from lagwise_spark.tasks.observing import OF_READER, SATURATED_MINUTES, HourSpan, observed_hours, of_most
from lagwise_spark.tasks.running import gathered

Row = Mapping[str, Any]
#: Cluster, group, topic, and member (None is the whole group).
Reader = tuple[str, str, str, str | None]

#: So far back observations tell of what consumers can do now.
EVIDENCE = timedelta(days=7)
#: Rows of `minutes` that a round may have to look through, or an hour's: verdicts do not wait for more hours than that.
ROWS_AT_A_TIME = 3_000_000
#: A round that made more minutes has taken its time: the next ones observe, …
LONGEST_ROUND_MINUTES = 120
#: … but not where that would be for longer than this, as where all rounds are such ones (once a day, by cron).
LONGEST_UNOBSERVED = timedelta(days=2)
#: Consumers that commit this much of what they do on one topic are judged by it.
ALONE = 0.95
_HOUR = timedelta(hours=1)


def may_wait(news: Sequence[News], made_minutes: int) -> bool:
    """Whether a round leaves observing to the next ones, because it has made so many minutes already."""
    return made_minutes > LONGEST_ROUND_MINUTES and all(
        n.hours_from - n.observed_from <= LONGEST_UNOBSERVED for n in news
    )


def observe(context: SparkContext, lake: Lake, news: Sequence[News]) -> list[News]:
    """Bring both tables up to date with hours that are finished and not observed yet, of each cluster an hour, or
    up to :data:`ROWS_AT_A_TIME`. Returns the news with what is left to later rounds."""
    left = []
    for n in news:
        start = max(n.observed_from, n.hours_from - EVIDENCE)
        hours = max(1, ROWS_AT_A_TIME // (60 * max(1, n.group_partitions)))
        end = min(n.hours_from, start + hours * _HOUR)
        if start < end:
            write.replace_spans(lake, THROUGHPUT, {n.cluster: (start, end)}, _throughput(context, lake, n, start, end))
        left.append(replace(n, observed_from=max(start, end)))
    if left != list(news):
        estimates = list(_estimates(lake, left))
        lake.replace(OBSERVED_CAPACITY, OBSERVED_CAPACITY.from_rows(estimates))
    return left


def _throughput(context: SparkContext, lake: Lake, news: News, start: datetime, end: datetime) -> pa.Table:
    """Rows of `throughput` of a cluster's hours in [start, end)."""
    # Rows of `samples` are a file each, and thousands in a day.
    samples = [
        s for s in read.finished_samples(lake, start, end) if s.cluster == news.cluster and start <= s.started_at < end
    ]
    found = _observed(context, lake, news, start, end, samples)
    blocks = _blocks(found.get(SATURATED_MINUTES), _unrest(lake, news, start, end))
    counts = _members_by_hour(lake, samples, start)
    rows = found[THROUGHPUT.name].to_pylist()
    of_group: Counter[tuple[str, datetime]] = Counter()
    for row in rows:
        of_group[row["group"], row["hour"]] += row["records"]
    made: dict[tuple[Reader, datetime], Row] = {}
    for row in rows:
        share = row["records"] / of_group[row["group"], row["hour"]]
        made[(*_group_topic(row), None), row["hour"]] = row | {"share_of_group": share}
    for (reader, hour), its in blocks.items():
        whole = made.get(((*reader[:3], None), hour), {})
        row = whole if reader[3] is None else {"share_of_group": whole.get("share_of_group")}
        made[reader, hour] = {**row, "blocks": [_block_row(b) for b in its]}
    return THROUGHPUT.from_rows(
        {
            "blocks": [],
            "members": counts.get((*reader[:3], hour)) if reader[3] is None else None,
            **row,
            **dict(zip(OF_READER, reader, strict=True)),
            "hour": hour,
        }
        for (reader, hour), row in made.items()
    )


def _observed(
    context: SparkContext, lake: Lake, news: News, start: datetime, end: datetime, samples: Sequence[FinishedSample]
) -> dict[str, pa.Table]:
    """What the tasks find in a cluster's hours in [start, end)."""
    first: dict[datetime, FinishedSample] = {}
    for sample in samples:
        minute = minute_of(sample.started_at)
        first[minute] = min(first.get(minute, sample), sample, key=lambda s: s.started_at)
    members = read.files_of_finished(lake, MEMBERS, list(first.values())) if first else []
    work = partial(
        observed_hours,
        read.files_of(lake, dict.fromkeys((FIVE_MINUTES, MINUTES), (start, end)), {MEMBERS: members}),
        HourSpan(news.cluster, micros_of(start), micros_of(end)),
        frozenset(sample.sample_id for sample in first.values()),
    )
    cores, hours = context.defaultParallelism, (end - start) // _HOUR
    ranges = ranges_of_round(lake, [news], cores, hours=hours, whole_topics=True)
    return gathered(context, work, [within.of(news.cluster) for within in ranges])


def _blocks(
    minutes: pa.Table | None, unrest: Mapping[str, list[tuple[float, float]]]
) -> dict[tuple[Reader, datetime], list[Block]]:
    """The blocks of each reader and hour that has any."""
    by_hour: dict[tuple[Reader, datetime], list[SaturatedMinute]] = {}
    for row in [] if minutes is None else of_most(minutes).to_pylist():
        cluster, group, topic, member = (row.pop(name) for name in OF_READER)
        minute = SaturatedMinute(**row)
        if not is_uneasy(minute.start, unrest.get(group, ())):
            hour = hour_of(datetime.fromtimestamp(minute.start, UTC))
            by_hour.setdefault(((cluster, group, topic, member), hour), []).append(minute)
    blocks = {key: blocks_of(its) for key, its in by_hour.items()}
    return {key: found for key, found in blocks.items() if found}


def _members_by_hour(
    lake: Lake, samples: Sequence[FinishedSample], start: datetime
) -> dict[tuple[str, str, str, datetime], int]:
    """How many members owned partitions of a topic at the last of these samples, none before ``start``, of each
    hour."""
    last: dict[datetime, FinishedSample] = {}
    for sample in samples:
        hour = hour_of(sample.started_at)
        last[hour] = max(last.get(hour, sample), sample, key=lambda s: s.started_at)
    hours = {sample.sample_id: hour for hour, sample in last.items()}
    counts = _members_of(lake, list(hours), start - _HOUR)
    return {
        (row["cluster"], row["group"], row["topic"], hours[row["sample_id"]]): row["members"]
        for row in counts
        if row["member"] is None
    }


def _members_of(lake: Lake, sample_ids: Sequence[str], since: datetime) -> list[Row]:
    """How many members own partitions of each topic at these samples; by name of member, and null for all of them."""
    rows: list[Row] = lake.query(
        """
        with owned as (
            select sample_id, cluster, "group", member_id, unnest(assignment).topic as topic,
                   coalesce(client_id, '?') || ' (' || coalesce(host, '?') || ')' as member
            from members where sample_id in (select unnest(?::varchar[]))
        )
        select sample_id, cluster, "group", topic, member, count(distinct member_id)::int as members from owned
        group by grouping sets ((sample_id, cluster, "group", topic), (sample_id, cluster, "group", topic, member))
        """,
        [list(sample_ids)],
        over=[MEMBERS],
        since=since,
    ).to_pylist()
    return rows


def _unrest(lake: Lake, news: News, start: datetime, end: datetime) -> dict[str, list[tuple[float, float]]]:
    """When each group was rebalanced. Of one that was seen by comparing samples, it is known to have been between
    two."""
    rows = lake.query(
        """select distinct "group", "at", duration_seconds from events
           where cluster = ? and kind = ? and "at" >= ? and "at" < ? and "group" is not null""",
        [news.cluster, str(EventKind.REBALANCE), start - _HOUR, end + _HOUR],
        over=[EVENTS],
        since=start - _HOUR,
    ).to_pylist()
    found: dict[str, list[tuple[float, float]]] = {}
    for row in rows:
        at = row["at"].timestamp()
        took = max(row["duration_seconds"] or 0.0, news.interval_seconds)
        found.setdefault(row["group"], []).append((at - took, at))
    return found


def _estimates(lake: Lake, news: Sequence[News]) -> Iterator[Row]:
    """Rows of `observed_capacity`."""
    as_of = {n.cluster: n.as_of for n in news}
    start = min(n.hours_from for n in news) - EVIDENCE
    seen = lake.query(
        """
        select cluster, "group", topic, member, flatten(list(blocks)) as blocks,
               list({'at': best_at, 'rate': best_rate_per_second, 'members': members})
                   filter (best_at is not null) as floors,
               arg_max(share_of_group, hour) as share, arg_max(records, hour) as records
        from throughput where hour >= ? group by all
        """,
        [start],
        over=[THROUGHPUT],
        since=start,
    ).to_pylist()
    latest = _members_of(lake, [n.latest_id for n in news], latest_from(news))
    now = {(*_group_topic(row), row["member"]): row["members"] for row in latest}
    for row in seen:
        reader = (*_group_topic(row), row["member"])
        if row["cluster"] not in as_of or (row["member"] is not None and reader not in now):
            continue  # a member that is gone
        yield _estimate(row, as_of[row["cluster"]], now.get(reader))


def _estimate(row: Row, as_of: datetime, members: int | None) -> dict[str, Any]:
    found = observed_capacity(
        [Block(b["start"].timestamp(), b["end"].timestamp(), b["records"], b["members"]) for b in row["blocks"]],
        [Floor(f["at"].timestamp(), f["rate"], f["members"]) for f in row["floors"] or ()],
        members=members,
        is_shared=(row["share"] or 0.0) < ALONE,
    )
    return {
        **{name: row[name] for name in OF_READER},
        "as_of": as_of,
        "rate_per_second": found.rate_per_second,
        "rate_low_per_second": found.low,
        "rate_high_per_second": found.high,
        "reason": str(found.reason) if found.reason else None,
        "sentence": capacity_sentence(found),
        "load_test": load_test(found, row["records"] / 3600.0 if row["records"] else None),
        "saturated_seconds": found.saturated_seconds,
        "blocks": found.blocks,
        "episodes": found.episodes,
        "at_least_per_second": found.at_least_per_second,
        "members": found.members,
        "is_scaled": found.is_scaled,
        "seconds_per_message": found.seconds_per_message,
        "measured_from": _time(found.from_),
        "measured_until": _time(found.until),
        "changed_at": _time(found.changed_at),
        "changed_from_per_second": found.changed_from_per_second,
        "missing_seconds": found.missing_seconds,
    }


def _block_row(block: Block) -> dict[str, Any]:
    times = {"start": _time(block.start), "end": _time(block.end)}
    return {**times, "records": round(block.records), "members": block.members}


def _group_topic(row: Row) -> tuple[str, str, str]:
    return row["cluster"], row["group"], row["topic"]


def _time(seconds: float | None) -> datetime | None:
    return datetime.fromtimestamp(seconds, UTC) if seconds is not None else None
