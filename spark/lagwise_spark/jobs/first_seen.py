"""Which groups already lagged when Lagwise first saw them: of these nobody can tell what made them lag."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import pyarrow as pa

from lagwise.domain.vocabulary import Status
from lagwise.domain.what_changed.backlog import Backlog, already_behind
from lagwise.tables.analysis import GROUP_STATUS, STATUS_CHANGES
from lagwise.tables.raw import COMMITS, WATERMARKS
from lagwise.tables.schema import TEXT, TIMESTAMP
from lagwise.tables.store import Lake
from lagwise_spark.jobs.behind import Behind, Group
from lagwise_spark.jobs.progress import News

#: Samples are read from so long before the first verdict on a group, or from two intervals before if they are longer.
_BEFORE_VERDICT = timedelta(minutes=5)
#: A group that has been unknown for longer since its first verdict lags for a reason that came later.
_UNKNOWN_FOR = timedelta(minutes=20)

#: Groups that no round has known yet, and since when others have been unknown that are.
_NEW_OR_UNKNOWN = """
    select cluster, "group", since from behind left join group_status using (cluster, "group")
    where status is null or status = $unknown
"""
#: Of groups with the time since which they have been unknown, those whose first verdict that was.
_FIRST_UNKNOWN = """
    select cluster, "group" from status_changes join behind using (cluster, "group")
    where topic is null and "before" is null and status_changes."at" = behind."at"
"""
#: The first sample of each group that is there, and its unread records in it.
_FIRST_SAMPLES = """
    with seen as (
        select cluster, commits."group", sample_id, min(commits.sampled_at) as seen_at,
               sum(greatest(high_watermark - committed, 0))::bigint as lag
        from commits semi join behind using (cluster, "group")
        join watermarks using (cluster, sample_id, topic, partition) group by all
    )
    select cluster, "group", min(seen_at) as first_at, arg_min(lag, seen_at) as lag from seen group by all
"""


def already_behind_of(lake: Lake, began: Sequence[Behind], news: Mapping[str, News]) -> dict[Group, Backlog]:
    """The backlogs, of those that ``began`` in this round without a cause, of groups that lagged in the first sample of
    them and were not known to keep up since; by cluster and group. ``news`` are by cluster. Raises LakeError."""
    first = _first_verdicts(lake, began) if began else {}
    if not first:
        return {}
    earliest = {
        group: at - max(_BEFORE_VERDICT, timedelta(seconds=2 * news[group[0]].interval_seconds))
        for group, at in first.items()
    }
    named = _columns(first)
    found = lake.query(
        _FIRST_SAMPLES, over=[COMMITS, WATERMARKS], since=min(earliest.values()), given={"behind": named}
    )
    result = {}
    backlogs = {one.group: one for one in began}
    for row in found.to_pylist():
        group = (row["cluster"], row["group"])
        interval = timedelta(seconds=news[group[0]].interval_seconds)
        # One that was there from the beginning on may have been seen before.
        if row["lag"] and row["first_at"] > earliest[group] + interval:
            one = backlogs[group]
            result[group] = replace(one.backlog, cause=already_behind(row["first_at"], one.now))
    return result


def _first_verdicts(lake: Lake, began: Sequence[Behind]) -> dict[Group, datetime]:
    """When each of these groups had its first verdict, of those that have been unknown since then, if at all."""
    now = {one.group: one.now for one in began}
    known = lake.query(
        _NEW_OR_UNKNOWN, {"unknown": str(Status.UNKNOWN)}, over=[GROUP_STATUS], given={"behind": _columns(now)}
    )
    first, unknown = {}, {}
    for row in known.to_pylist():
        group = (row["cluster"], row["group"])
        if row["since"] is None:
            first[group] = now[group]
        elif now[group] - row["since"] <= _UNKNOWN_FOR:
            unknown[group] = row["since"]
    if unknown:
        named = _columns(unknown)
        found = lake.query(_FIRST_UNKNOWN, over=[STATUS_CHANGES], since=min(unknown.values()), given={"behind": named})
        for row in found.to_pylist():
            group = (row["cluster"], row["group"])
            first[group] = unknown[group]
    return first


def _columns(moments: Mapping[Group, datetime]) -> pa.Table:
    """Groups with a moment each, as a query is given them."""
    clusters, groups = zip(*moments, strict=True)
    names = {"cluster": pa.array(clusters, TEXT), "group": pa.array(groups, TEXT)}
    return pa.table({**names, "at": pa.array(moments.values(), TIMESTAMP)})
