"""`rebalance_stats` from the newest events: few rows, so the driver does it.

An hour of a group is summed up again as long as new rebalances are told of it or of its neighbours (what belongs
together is judged together), and then never again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any

import pyarrow as pa

from lagwise.domain.rebalances.activity import STORM_WINDOW, Hour, RebalanceStats, by_hour, hour_of, stats_of_hour
from lagwise.domain.rebalances.explanation import Setup
from lagwise.domain.rebalances.model import Rebalance
from lagwise.domain.vocabulary import EventSource, RebalanceCause
from lagwise.tables.membership import REBALANCE_STATS
from lagwise.tables.minutes import MINUTES
from lagwise.tables.raw import EVENTS, GROUPS, MEMBERS
from lagwise.tables.store import Lake
from lagwise_spark.jobs import write
from lagwise_spark.jobs.progress import News, latest_from

Row = Mapping[str, Any]
Key = tuple[str, str, datetime]

#: Events that come so late (an outage of the lake, the offsets topic read after a restart), or on the same day, are
#: still summed up.
_LOOK_BACK = timedelta(hours=2)
#: Exposure is looked up for so many rebalances a round; a cluster in uproar must not hold up the verdicts. That of an
#: hour of which not all were looked up is not known.
_MOST_EXPOSURES = 200
_HOUR = timedelta(hours=1)


def sum_up(lake: Lake, news: Sequence[News]) -> int:
    """Write the rows of hours in which something was told since they were last summed up; how many these are."""
    start = hour_of(min(n.as_of for n in news) - _LOOK_BACK).replace(hour=0)
    hours: dict[Key, Hour] = {}
    told: dict[Key, list[Row]] = {}
    # What began before midnight may have gone on after it.
    for group, events in groupby(_events(lake, start - STORM_WINDOW), key=lambda e: (e["cluster"], e["group"])):
        rows = list(events)
        hours |= {(*group, at): hour for at, hour in by_hour(map(rebalance_of, rows)).items() if at >= start}
        for event in rows:
            told.setdefault((*group, hour_of(event["at"])), []).append(event)
    days = (start.date().isoformat(), "9999-12-31")
    known = lake.query("select * exclude day from rebalance_stats", over=[REBALANCE_STATS], days=days)
    before = {(r["cluster"], r["group"], hour_of(r["hour"])): r for r in known.to_pylist()}
    fresh = {key for key in hours if key not in before or before[key]["events"] != len(told[key])}
    if not fresh:
        return 0
    setups = setups_of(lake, news)
    exposures = _exposures(lake, [event for key in fresh for event in told[key]])
    made = {}
    neighbours = {(cluster, group, at + step) for cluster, group, at in fresh for step in (-_HOUR, _HOUR)}
    for key in fresh | (neighbours & hours.keys()):
        stats = stats_of_hour(hours[key], setups.get(key[:2], Setup()))
        reread = _sum(exposures, key[:2], told[key]) if key in fresh else before[key]["reread_records_at_most"]
        made[key] = _row(key, stats, len(told[key]), reread)
    rows = list((before | made).values())
    write.replace_days_since(lake, REBALANCE_STATS, REBALANCE_STATS.from_rows(rows), start.date())
    return len(made)


def _events(lake: Lake, start: datetime) -> list[Row]:
    # Distinct: a collector that was killed between writing and noting it down tells the same events again.
    sql = """
        select distinct on (cluster, "group", "at", generation, cause) * from events
        where kind = 'rebalance' and "at" >= ? and "group" is not null order by cluster, "group", "at"
    """
    days = (start.date().isoformat(), "9999-12-31")
    rows: list[Row] = lake.query(sql, [start], over=[EVENTS], days=days).to_pylist()
    return rows


def rebalance_of(event: Row) -> Rebalance:
    names = [f.name for f in fields(Rebalance) if f.name not in ("cause", "exact", "joined", "left", "failed")]
    return Rebalance(
        cause=RebalanceCause(event["cause"]) if event["cause"] in set(RebalanceCause) else None,
        exact=event["source"] == EventSource.OFFSETS_TOPIC,
        joined=tuple(event["joined"] or ()),
        left=tuple(event["left"] or ()),
        failed=tuple(event["failed"] or ()),
        **{name: event[name] for name in names},
    )


def setups_of(lake: Lake, news: Sequence[News]) -> dict[tuple[str, str], Setup]:
    """How each group of the latest samples is set up."""
    ids = [n.latest_id for n in news]
    start = latest_from(news)
    rows = lake.query(
        """select g.cluster, g."group", any_value(g.type) as type, any_value(g.assignor) as assignor,
                  coalesce(bool_or(m.static_instance_id is not null), false) as has_static_members
           from groups g left join members m using (sample_id, cluster, "group")
           where g.sample_id in (select unnest(?::varchar[])) group by all""",
        [ids],
        over=[GROUPS, MEMBERS],
        since=start,
    ).to_pylist()
    return {(r["cluster"], r["group"]): Setup(r["type"], r["assignor"], r["has_static_members"]) for r in rows}


def _exposures(lake: Lake, events: Sequence[Row]) -> dict[Key, int | None]:
    """Per rebalance how many records can at most have been read and not committed, None where that is not known; those
    that there were too many of are missing.

    Of each partition that changed hands (of every one where it is not told which), what was unread around that time:
    what is read but not committed is part of it. Where the time since the last commit is known, no more than the group
    ever committed of the partition in such a time within the hour before.
    """
    told = sorted(events, key=lambda e: e["at"], reverse=True)[:_MOST_EXPOSURES]
    if not told:
        return {}
    asked = pa.table(
        {
            "cluster": [e["cluster"] for e in told],
            "group": [e["group"] for e in told],
            "at": [e["at"] for e in told],
            "topics": [_pairs(e) for e in told],
            "uncommitted_seconds": pa.array([e["uncommitted_seconds"] for e in told], pa.float64()),
        }
    )
    first = min(e["at"] for e in told) - timedelta(hours=1)
    rows = lake.query(
        """
        with per_partition as (
            select a.cluster, a."group", a."at", a.uncommitted_seconds,
                   max(m.max_lag) filter (m.minute >= a."at" - interval 2 minutes) as unread,
                   max((m.last_committed - m.first_committed) / greatest(1, epoch(m.last_at - m.first_at)))
                       as peak_per_second
            from asked a join minutes m on m.cluster = a.cluster and m."group" = a."group"
             and m.minute <= a."at" and m.minute >= a."at" - interval 1 hour
             and (a.topics is null or list_contains(a.topics, m.topic || '-' || m.partition))
            where m.minute >= ?
            group by a.cluster, a."group", a."at", a.uncommitted_seconds, m.topic, m.partition
        )
        select cluster, "group", "at",
               sum(case when uncommitted_seconds is null or peak_per_second is null then unread
                        else least(unread, ceil(peak_per_second * uncommitted_seconds)) end)::bigint as records
        from per_partition group by all
        """,
        [first],
        over=[MINUTES],
        since=first,
        given={"asked": asked},
    ).to_pylist()
    unknown: dict[Key, int | None] = {(e["cluster"], e["group"], e["at"]): None for e in told}
    return unknown | {(r["cluster"], r["group"], r["at"]): r["records"] for r in rows}


def _pairs(event: Row) -> list[str] | None:
    if event["moved"] is None:
        return None
    return [f"{entry['topic']}-{partition}" for entry in event["moved"] for partition in entry["partitions"]]


def _row(key: Key, stats: RebalanceStats, events: int, reread: int | None) -> dict[str, Any]:
    cluster, group, hour = key
    return {
        "cluster": cluster,
        "group": group,
        "hour": hour,
        "rebalances": stats.rebalances,
        "exact": stats.exact,
        "downtime_seconds": stats.downtime_seconds,
        "downtime_seconds_at_most": stats.downtime_seconds_at_most,
        "partitions_moved": stats.partitions_moved,
        "joined": stats.joined,
        "left": stats.left,
        "churning": list(stats.churning),
        "is_storm": stats.is_storm,
        "cause": stats.finding.cause,
        "sentence": stats.finding.sentence,
        "remedy": stats.finding.remedy,
        "reread_records_at_most": reread,
        "last_at": stats.last_at,
        "events": events,
    }


def _sum(exposures: Mapping[Key, int | None], group: tuple[str, str], events: Sequence[Row]) -> int | None:
    keys = [(*group, event["at"]) for event in events]
    if any(key not in exposures for key in keys):
        return None
    known = [records for key in keys if (records := exposures[key]) is not None]
    return sum(known) if known else None
