"""`throughput` and `observed_capacity`: once an hour, when another one is whole; after an outage, some in each round.

Spark looks for saturated minutes, of which there are few or none where consumers keep up; minutes are read only of
topics and hours that had a backlog at all. The driver cuts them into blocks, keeps these by the hour, and estimates
from a week of them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lagwise.domain.capacity.observed import Floor, observed_capacity
from lagwise.domain.capacity.observed_text import capacity_sentence, load_test
from lagwise.domain.capacity.saturation import Block, SaturatedMinute, blocks_of, is_uneasy
from lagwise.domain.vocabulary import EventKind
from lagwise.tables.capacity import OBSERVED_CAPACITY, THROUGHPUT
from lagwise.tables.minutes import FIVE_MINUTES, MINUTES
from lagwise.tables.raw import EVENTS, MEMBERS
from lagwise.tables.store import Lake
from lagwise_spark.columns import GROUP, GROUP_PARTITION, hour_of
from lagwise_spark.frames import empty, frame, materialised
from lagwise_spark.jobs import read, write
from lagwise_spark.jobs.progress import News, minute_of
from lagwise_spark.jobs.progress import hour_of as whole_hour_of
from lagwise_spark.jobs.read import FinishedSample
from lagwise_spark.transforms.saturation import (
    GROUP_TOPIC,
    habits,
    hourly_throughput,
    judged,
    owners,
    promising,
    saturated,
    with_backlog,
)

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
#: Groups and members whose saturated minutes the driver takes of a stretch: those with most of them. There are more
#: only where half a large cluster lags.
MOST_READERS = 5_000
#: Group-partitions and hours of which all tasks can be told everything; beyond that, minutes are brought to them.
ROWS_TO_EVERYWHERE = 200_000
#: Consumers that commit this much of what they do on one topic are judged by it.
ALONE = 0.95
_HOUR = timedelta(hours=1)


def may_wait(news: Sequence[News], made_minutes: int) -> bool:
    """Whether a round leaves observing to the next ones, because it has made so many minutes already."""
    return made_minutes > LONGEST_ROUND_MINUTES and all(
        n.hours_from - n.observed_from <= LONGEST_UNOBSERVED for n in news
    )


def observe(session: SparkSession, lake: Lake, news: Sequence[News]) -> list[News]:
    """Bring both tables up to date with hours that are finished and not observed yet, of each cluster an hour, or
    up to :data:`ROWS_AT_A_TIME`. Returns the news with what is left to later rounds."""
    left = []
    for n in news:
        start = max(n.observed_from, n.hours_from - EVIDENCE)
        hours = min(24, max(1, ROWS_AT_A_TIME // (60 * max(1, n.group_partitions))))
        end = min(n.hours_from, start + hours * _HOUR)
        if start < end:
            _write(lake, n.cluster, start, end, _throughput(session, lake, n, start, end))
        left.append(replace(n, observed_from=max(start, end)))
    if left != list(news):
        estimates = list(_estimates(lake, left))
        lake.replace(OBSERVED_CAPACITY, OBSERVED_CAPACITY.from_rows(estimates))
    return left


def _throughput(session: SparkSession, lake: Lake, news: News, start: datetime, end: datetime) -> list[Row]:
    """Rows of `throughput` of a cluster's hours in [start, end)."""
    coarse = read.within(session, read.stretch(session, lake, FIVE_MINUTES, start, end), news.cluster, start, end)
    known = materialised(habits(coarse))
    rows = hourly_throughput(coarse, known).toArrow().to_pylist()
    # Rows of `samples` are a file each, and thousands in a day.
    samples = [
        s for s in read.finished_samples(lake, start, end) if s.cluster == news.cluster and start <= s.started_at < end
    ]
    blocks = _blocks(session, lake, news, start, end, known, samples)
    counts = _members_by_hour(lake, samples, start)
    made: dict[tuple[Reader, datetime], Row] = {((*_group_topic(row), None), row["hour"]): row for row in rows}
    for (reader, hour), found in blocks.items():
        cluster, group, topic, member = reader
        whole = made.get(((cluster, group, topic, None), hour), {})
        named = {"cluster": cluster, "group": group, "topic": topic, "member": member, "hour": hour}
        row = whole if member is None else {**named, "share_of_group": whole.get("share_of_group")}
        made[reader, hour] = {**named, **row, "blocks": [_block_row(b) for b in found]}
    return [
        {"blocks": [], "members": counts.get((*reader[:3], hour)) if reader[3] is None else None, **row}
        for (reader, hour), row in made.items()
    ]


def _blocks(
    session: SparkSession,
    lake: Lake,
    news: News,
    start: datetime,
    end: datetime,
    known: DataFrame,
    samples: Sequence[FinishedSample],
) -> dict[tuple[Reader, datetime], list[Block]]:
    """The blocks of each reader and hour that has any."""
    lagging = with_backlog(known).toArrow()
    if lagging.num_rows == 0:
        return {}
    groups = F.broadcast(frame(session, lagging.group_by(list(GROUP)).aggregate([])))
    members = _members(session, lake, news.cluster, samples).join(groups, list(GROUP), "semi")
    owned = materialised(known.join(owners(members), [*GROUP_PARTITION, "hour"], "left"))
    if news.group_partitions * ((end - start) / _HOUR) <= ROWS_TO_EVERYWHERE:
        owned = F.broadcast(owned)

    def minutes_of(hours: pa.Table) -> DataFrame:
        """Those of these groups, topics and hours."""
        rows = read.within(session, read.stretch(session, lake, MINUTES, start, end), news.cluster, start, end)
        rows = rows.withColumn("hour", hour_of(F.col("minute")))
        return rows.join(F.broadcast(frame(session, hours)), [*GROUP_TOPIC, "hour"], "semi").drop("hour")

    # Twice, because the second pass has to bring the minutes of a partition together, and the first finds that hardly
    # any are worth it.
    left = promising(judged(minutes_of(lagging), owned)).toArrow()
    if left.num_rows == 0:
        return {}
    found = materialised(saturated(judged(minutes_of(left), owned)))
    taken = (found if found.count() <= 60 * MOST_READERS else _most(found)).toArrow().to_pylist()
    unrest = _unrest(lake, news, start, end)
    by_hour: dict[tuple[Reader, datetime], list[SaturatedMinute]] = {}
    for row in taken:
        if not is_uneasy(row["minute"].timestamp(), unrest.get(row["group"], ())):
            reader = (*_group_topic(row), row["member"])
            by_hour.setdefault((reader, whole_hour_of(row["minute"])), []).append(_saturated_minute(row))
    blocks = {key: blocks_of(minutes) for key, minutes in by_hour.items()}
    return {key: found for key, found in blocks.items() if found}


def _most(found: DataFrame) -> DataFrame:
    """Of the readers with most saturated minutes."""
    key = [*GROUP_TOPIC, "member"]
    most = found.groupBy(*key).agg(F.count("*").alias("n")).orderBy(F.desc("n"), *key).limit(MOST_READERS)
    return found.join(F.broadcast(most), [found[name].eqNullSafe(most[name]) for name in key], "semi")


def _members(session: SparkSession, lake: Lake, cluster: str, samples: Sequence[FinishedSample]) -> DataFrame:
    """Rows of raw `members` of the first of these samples in each minute."""
    first: dict[datetime, FinishedSample] = {}
    for sample in samples:
        minute = minute_of(sample.started_at)
        first[minute] = min(first.get(minute, sample), sample, key=lambda s: s.started_at)
    if not first:
        return empty(session, MEMBERS).drop("day")
    return read.of_finished(session, lake, MEMBERS, cluster, list(first.values()))


def _members_by_hour(
    lake: Lake, samples: Sequence[FinishedSample], start: datetime
) -> dict[tuple[str, str, str, datetime], int]:
    """How many members owned partitions of a topic at the last of these samples, none before ``start``, of each
    hour."""
    last: dict[datetime, FinishedSample] = {}
    for sample in samples:
        hour = whole_hour_of(sample.started_at)
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


def _write(lake: Lake, cluster: str, start: datetime, end: datetime, rows: Sequence[Row]) -> None:
    """Replace a cluster's hours in [start, end)."""
    first = start.astimezone(UTC).date()
    there = lake.query(
        "select * exclude day from throughput", over=[THROUGHPUT], days=(first.isoformat(), "9999-12-31")
    ).to_pylist()
    kept = [row for row in there if row["cluster"] != cluster or not start <= row["hour"] < end]
    if len(kept) == len(there):
        lake.append(THROUGHPUT, THROUGHPUT.from_rows(rows))
    else:
        write.replace_days_since(lake, THROUGHPUT, THROUGHPUT.from_rows([*kept, *rows]), first)


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
    latest = _members_of(lake, [n.latest_id for n in news], min(n.as_of for n in news) - read.LONGEST_SAMPLE)
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
        **{name: row[name] for name in (*GROUP_TOPIC, "member")},
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


def _saturated_minute(row: Row) -> SaturatedMinute:
    return SaturatedMinute(
        start=row["minute"].timestamp(),
        moved_at=row["moved_at"].timestamp() if row["moved_at"] else None,
        committed=row["committed"],
        lag=row["lag"],
        cadence_seconds=row["cadence_seconds"],
        members=row["members"] or None,
        partitions=(row["partitions"], row["signature"]),
    )


def _block_row(block: Block) -> dict[str, Any]:
    times = {"start": _time(block.start), "end": _time(block.end)}
    return {**times, "records": round(block.records), "members": block.members}


def _group_topic(row: Row) -> tuple[str, str, str]:
    return row["cluster"], row["group"], row["topic"]


def _time(seconds: float | None) -> datetime | None:
    return datetime.fromtimestamp(seconds, UTC) if seconds is not None else None
