"""Findings beside a group's status, from small tables: the driver does it."""

from collections.abc import Mapping, Sequence
from datetime import UTC, timedelta
from typing import Any

from lagwise.domain.findings import (
    GROWTH_SECONDS,
    Finding,
    FindingKind,
    LeftTopic,
    SideTopic,
    Skip,
    in_order,
    left_topic_findings,
    side_topic_findings,
    skip_findings,
)
from lagwise.domain.loss.skips import FROM_LOG_START
from lagwise.domain.subscription_findings import Subscription, subscription_findings
from lagwise.domain.vocabulary import BROADCASTING, ROCKETMQ, EventKind, TopicRole
from lagwise.tables.analysis import PARTITION_STATUS
from lagwise.tables.membership import ASSIGNMENTS, REBALANCE_STATS
from lagwise.tables.minutes import WATERMARK_MINUTES
from lagwise.tables.raw import EVENTS, GROUPS, TOPICS, WATERMARKS
from lagwise.tables.store import Lake
from lagwise_spark.jobs.progress import News, latest_from
from lagwise_spark.jobs.read import labels
from lagwise_spark.jobs.running_jobs import of_jobs

Group = tuple[str, str]

#: A skip is told for so long.
SKIP_TOLD_FOR = timedelta(hours=24)
#: Causes of rebalances that somebody has to do something about; a deployment or scaling is none.
_TROUBLE = ("slow_processing", "failing_members", "storm", "churn")


def findings_of(lake: Lake, news: Sequence[News]) -> dict[Group, list[Finding]]:
    """Findings by cluster and group, the most urgent first."""
    found: dict[Group, list[Finding]] = {}
    for some in (
        _of_skips(lake, news),
        _of_side_topics(lake, news),
        _of_left_topics(lake, news),
        _of_subscriptions(lake, news),
        of_jobs(lake, news),
        _of_rebalances(lake, news),
        _of_assignments(lake),
    ):
        for group, findings in some.items():
            found.setdefault(group, []).extend(findings)
    return {group: in_order(findings) for group, findings in found.items()}


def _of_skips(lake: Lake, news: Sequence[News]) -> dict[Group, list[Finding]]:
    """What was skipped within a day. An event of many partitions says in its cause how many, and of how many records.
    Distinct: a collector that was killed between writing and noting it down tells the same events again."""
    start = min(n.as_of for n in news) - SKIP_TOLD_FOR
    rows = lake.query(
        """
        select distinct cluster, "group", "at", topic, partition, try_cast("before" as bigint) as "before",
               try_cast("after" as bigint) as "after",
               coalesce(try_cast(regexp_extract(cause, '^(\\d+) partitions', 1) as bigint), 1) as partitions,
               coalesce(try_cast("after" as bigint) - try_cast("before" as bigint),
                        try_cast(regexp_extract(cause, '(\\d+) records in all', 1) as bigint), 0) as records,
               coalesce(ends_with(cause, ?), false) as from_log_start
        from events where kind = ? and "at" >= ?
        """,
        [FROM_LOG_START, str(EventKind.COMMIT_SKIPPED), start],
        over=[EVENTS],
        since=start,
    ).to_pylist()
    found: dict[Group, list[Skip]] = {}
    for row in rows:
        group = row.pop("cluster"), row.pop("group")
        found.setdefault(group, []).append(Skip(**row))
    of = {n.cluster: n for n in news}
    named = [(c, s.topic, s.partition) for (c, _), skips in found.items() for s in skips if s.partition is not None]
    called = labels(lake, news, named)
    found = {
        group: [s._replace(label=called.get((group[0], s.topic, s.partition or 0))) for s in skips]
        for group, skips in found.items()
    }
    return {
        group: skip_findings(skips, its.as_of, its.system)
        for group, skips in found.items()
        if (its := of.get(group[0])) is not None
    }


def _of_rebalances(lake: Lake, news: Sequence[News]) -> dict[Group, list[Finding]]:
    start = min(n.as_of for n in news) - timedelta(hours=1)
    rows = lake.query(
        """select cluster, "group", arg_max(sentence, hour) as sentence, arg_max(remedy, hour) as remedy
           from rebalance_stats where last_at >= ? and (is_storm or list_contains(?::varchar[], cause)) group by all""",
        [start, list(_TROUBLE)],
        over=[REBALANCE_STATS],
        days=(start.date().isoformat(), "9999-12-31"),
    ).to_pylist()
    return {(r["cluster"], r["group"]): [Finding(FindingKind.REBALANCES, r["sentence"], r["remedy"])] for r in rows}


def _of_assignments(lake: Lake) -> dict[Group, list[Finding]]:
    rows = lake.query(
        'select cluster, "group", sentences from assignments where len(sentences) > 0', over=[ASSIGNMENTS]
    ).to_pylist()
    return {
        (row["cluster"], row["group"]): [Finding(FindingKind.ASSIGNMENT, text) for text in row["sentences"]]
        for row in rows
    }


def _of_left_topics(lake: Lake, news: Sequence[News]) -> dict[Group, list[Finding]]:
    kept_seconds = {n.cluster: n.offsets_retention_seconds for n in news}
    rows = lake.query(
        """
        select cluster, "group", topic as name, count(*) as partitions,
               sum(greatest(high_watermark - greatest(committed, log_start), 0))::bigint as unread,
               coalesce(sum(produce_rate_per_second), 0) as produce_rate_per_second,
               max(date_diff('second', committed_since, as_of))::double as unmoved_seconds
        from partition_status where status = 'ghost' group by cluster, "group", topic
        """,
        over=[PARTITION_STATUS],
    ).to_pylist()
    found: dict[Group, list[LeftTopic]] = {}
    for row in rows:
        group = row.pop("cluster"), row.pop("group")
        row["unread"], row["unmoved_seconds"] = row["unread"] or 0, row["unmoved_seconds"] or 0.0
        if (kept := kept_seconds.get(group[0])) is not None:
            row["seconds_to_expiry"] = max(0.0, kept - row["unmoved_seconds"])
        found.setdefault(group, []).append(LeftTopic(**row))
    return {group: findings for group, topics in found.items() if (findings := left_topic_findings(topics))}


def _of_subscriptions(lake: Lake, news: Sequence[News]) -> dict[Group, list[Finding]]:
    """What members of RocketMQ's groups subscribe to by each cluster's latest sample."""
    of = {n.cluster: n for n in news if n.system == ROCKETMQ}
    if not of:
        return {}
    start = min(n.as_of for n in of.values()) - timedelta(minutes=5)
    rows = lake.query(
        """
        select sample_id, cluster, "group", subscriptions from groups
        where sampled_at >= ? and subscriptions is not null and "type" <> ?
        """,
        [start, BROADCASTING],  # its members read everything each, whatever the others want
        over=[GROUPS],
        since=start,
    ).to_pylist()
    return {
        (row["cluster"], row["group"]): found
        for row in rows
        if (its := of.get(row["cluster"])) is not None
        and row["sample_id"] == its.latest_id
        and (found := subscription_findings([Subscription(**one) for one in row["subscriptions"]]))
    }


def _of_side_topics(lake: Lake, news: Sequence[News]) -> dict[Group, list[Finding]]:
    sides = lake.query(
        """select * from (
             select cluster, topic, role, main_topic from topics
             qualify row_number() over (partition by cluster, topic order by sampled_at desc) = 1
           ) where role is not null""",
        over=[TOPICS],
    )
    if sides.num_rows == 0:
        return {}
    now = {(row["cluster"], row["topic"]): row for row in _now(lake, news, sides)}
    before = {(row["cluster"], row["topic"]): row for row in _before(lake, news, sides)}
    by_main: dict[tuple[str, str], list[SideTopic]] = {}
    for side in sides.to_pylist():
        key = side["cluster"], side["topic"]
        if key not in now:
            continue  # deleted, or not readable any more
        by_main.setdefault((side["cluster"], side["main_topic"]), []).append(
            _side_topic(side, now[key], before.get(key))
        )
    readers = lake.query(
        """select distinct cluster, "group", topic from partition_status where status <> 'ghost'""",
        over=[PARTITION_STATUS],
    ).to_pylist()
    found: dict[Group, list[SideTopic]] = {}
    for row in readers:
        its = by_main.get((row["cluster"], row["topic"]), [])
        found.setdefault((row["cluster"], row["group"]), []).extend(its)
    told = {group: side_topic_findings(topics) for group, topics in found.items()}
    return {group: findings for group, findings in told.items() if findings}


def _side_topic(side: Mapping[str, Any], now: Mapping[str, Any], before: Mapping[str, Any] | None) -> SideTopic:
    added, within = None, GROWTH_SECONDS
    if before is not None and now["high"] is not None and now["high"] >= before["high"]:
        added = now["high"] - before["high"]
        within = (now["at"].astimezone(UTC) - before["at"].astimezone(UTC)).total_seconds()
    return SideTopic(
        name=side["topic"],
        role=TopicRole(side["role"]),
        records=now["records"],
        added=added,
        added_within_seconds=within,
        readers=now["readers"],
        lag=now["lag"],
    )


def _now(lake: Lake, news: Sequence[News], sides: Any) -> list[dict[str, Any]]:
    """What each of these topics holds at the latest sample, and what waits for its readers."""
    start = latest_from(news)
    rows: list[dict[str, Any]] = lake.query(
        """
        with ends as (
            select cluster, topic, max(sampled_at) as "at", sum(high_watermark)::bigint as high,
                   sum(high_watermark - log_start)::bigint as records
            from watermarks semi join sides using (cluster, topic)
            where sample_id in (select unnest(?::varchar[])) group by all
            having count(*) = count(high_watermark)
        ), waiting as (
            select cluster, topic, count(distinct "group") as readers, sum(lag)::bigint as lag
            from partition_status semi join sides using (cluster, topic) where status <> 'ghost' group by all
        )
        select cluster, topic, "at", high, records, coalesce(readers, 0) as readers, lag
        from ends left join waiting using (cluster, topic)
        """,
        [[n.latest_id for n in news]],
        over=[WATERMARKS, PARTITION_STATUS],
        since=start,
        given={"sides": sides},
    ).to_pylist()
    return rows


def _before(lake: Lake, news: Sequence[News], sides: Any) -> list[dict[str, Any]]:
    """Where each of these topics ended an hour before, or when its history begins."""
    start = min(n.as_of for n in news) - timedelta(seconds=GROWTH_SECONDS)
    rows: list[dict[str, Any]] = lake.query(
        """
        with firsts as (
            select cluster, topic, partition, min(first_at) as "at", arg_min(first_high_watermark, minute) as high
            from watermark_minutes semi join sides using (cluster, topic) where minute >= ? group by all
        )
        select cluster, topic, min("at") as "at", sum(high)::bigint as high
        from firsts group by all
        """,
        [start],
        over=[WATERMARK_MINUTES],
        since=start,
        given={"sides": sides},
    ).to_pylist()
    return rows
