"""The history of groups over a stretch that was caught up on: rows that rounds in time would have written.

Verdicts are made at chosen moments, the closer together the later they are, in slices of time: what a verdict remembers
of the one before it is known again after an hour, which each slice judges in addition.
"""

import logging
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import SparkContext

from lagwise.config import Config
from lagwise.domain.group_record import row_of
from lagwise.domain.groups import record_of_verdict, verdict_of
from lagwise.domain.humanise import plural
from lagwise.domain.verdicts.changes import COARSE_AFTER_SECONDS
from lagwise.domain.verdicts.rollup import parts_of
from lagwise.domain.verdicts.windows import HOURS_OF_DAY, WINDOWS_SECONDS
from lagwise.platform.log_events import LogEvent, event
from lagwise.tables.analysis import GROUP_HISTORY, PARTITION_STATUS, STATUS_CHANGES
from lagwise.tables.minutes import FIVE_MINUTES, HOURS, MINUTES, WATERMARK_FIVE_MINUTES, WATERMARK_MINUTES
from lagwise.tables.raw import COMMITS, EVENTS, GROUPS, MEMBERS, WATERMARKS
from lagwise.tables.schema import TIMESTAMP, no_rows
from lagwise.tables.store import Lake
from lagwise_spark.jobs import read
from lagwise_spark.jobs.far_behind import telling_rows
from lagwise_spark.jobs.groups_of_round import columns_to_roll_up
from lagwise_spark.jobs.past_moments import MomentsAtOnce, moments_of, slices_of
from lagwise_spark.jobs.progress import MISDATED, News, five_minutes_of, hour_of, micros_of, minute_of
from lagwise_spark.jobs.round_inputs import (
    GroupsSeen,
    limits_table,
    moment_of,
    objectives_table,
    ranges_of,
)
from lagwise_spark.jobs.standings import Standings, changes_of
from lagwise_spark.tasks.inputs import RoundInputs
from lagwise_spark.tasks.judging import VERDICTS
from lagwise_spark.tasks.judging_past import REACH, PastSlice, judged_past
from lagwise_spark.tasks.range_rows import OF_PAIR
from lagwise_spark.tasks.running import gathered

_LOG = logging.getLogger("lagwise.spark")

Group = tuple[str, str]


def judge_past(
    context: SparkContext,
    lake: Lake,
    config: Config,
    n: News,
    start: datetime,
    own_objectives: Mapping[Group, float],
    before: Standings,
) -> Standings:
    """Write the history of a cluster's groups, and the changes of status, from ``start`` until the minutes that are
    left to the round. Its minutes and hours have been written. What rounds have written is left as it is.

    Returns how groups stood in the end, where ``before`` is how they stood when the stretch began. How partitions
    stood, `partition_status` says."""
    moments = moments_of(lake, n, _unwritten_from(lake, n.cluster, start), n.open_from)
    if not moments:
        return before
    _LOG.info(
        "%s: judging the past from %s to %s, %s",
        n.cluster,
        moments[0][0].as_of,
        moments[-1][0].as_of,
        plural(len(moments), "moment"),
        extra=event(LogEvent.CATCHING_UP, cluster=n.cluster),
    )
    slices = list(slices_of(moments, n.group_partitions, context.defaultParallelism))
    statuses, last = [], no_rows(PARTITION_STATUS.arrow)
    shown: list[dict[str, Any]] = []
    # As many at once as there are cores: what the driver holds for them has a bound, too.
    for first in range(0, len(slices), context.defaultParallelism):
        some = slices[first : first + context.defaultParallelism]
        pieces: list[PastSlice] = []
        facts: dict[tuple[str, str], dict[str, Any]] = {}
        for its in some:
            seen = _groups_seen(lake, its)
            facts |= {(m, g): seen.row(i) for i, (m, g) in enumerate(zip(seen.sample_ids, seen.groups, strict=True))}
            pieces += list(_pieces(lake, config, n, its, seen, own_objectives))
        found = gathered(context, judged_past, pieces)
        if VERDICTS not in found:
            continue
        statuses.append(found[VERDICTS].select([*OF_PAIR, "as_of", "status", "reason"]))
        last = found.get(PARTITION_STATUS.name, last)
        moment_of_sample = {m.as_of: m.sample_id for its in some for m in its.moments}
        shown += _group_rows(found[VERDICTS], facts, moment_of_sample)
    shown.sort(key=lambda row: (row["as_of"], row["group"]))
    if not shown:
        return before
    partition_changes = _partition_changes(lake, pa.concat_tables(statuses))
    changes, now = changes_of(n.cluster, shown, before)
    # The changes first: what is cut short between the two is done again, and records these twice, never not at all.
    lake.append(STATUS_CHANGES, pa.concat_tables([partition_changes, STATUS_CHANGES.from_rows(changes)]))
    lake.append(GROUP_HISTORY, GROUP_HISTORY.from_rows(shown))
    if last.num_rows:
        # What the round remembers of the one before.
        others = lake.read(PARTITION_STATUS)
        others = others.filter(pc.not_equal(others["cluster"], n.cluster)).select(last.schema.names)
        dated = _since(last, partition_changes, pa.concat_tables(statuses))
        lake.replace(PARTITION_STATUS, pa.concat_tables([others.cast(last.schema), dated]))
    return now


def _partition_changes(lake: Lake, statuses: pa.Table) -> pa.Table:
    """Rows of `status_changes` of partitions: what is seen for the first time is none."""
    found = lake.query(
        """
        select cluster, "group", topic, partition, as_of as "at", "before", status as "after", reason from (
            select *, lag(status) over (partition by "group", topic, partition order by as_of) as "before" from statuses
        ) where "before" <> status order by "at"
        """,
        over=[],
        given={"statuses": statuses},
    )
    schema = STATUS_CHANGES.without_day
    return found.select(schema.names).cast(schema)


def _since(rows: pa.Table, changes: pa.Table, statuses: pa.Table) -> pa.Table:
    """Rows of `partition_status`, each with when its status began: with its last change, or when it was first seen."""
    keys = list(OF_PAIR)
    changed = changes.group_by(keys).aggregate([("at", "max")])
    seen = statuses.group_by(keys).aggregate([("as_of", "min")])
    # Joined by themselves: pyarrow takes no lists along.
    found = rows.select(keys).append_column("row", pa.array(range(rows.num_rows)))
    found = found.join(changed, keys).join(seen, keys).sort_by("row")
    place = rows.schema.get_field_index("since")
    since = pc.coalesce(found["at_max"], found["as_of_min"])
    return rows.set_column(place, rows.schema.field("since"), since.cast(rows.schema.field("since").type))


def _unwritten_from(lake: Lake, cluster: str, start: datetime) -> datetime:
    """From when on there is no history: a late sample opens minutes again that rounds have judged."""
    sql = "select max(as_of) as newest from group_history where cluster = ? and as_of >= ?"
    newest = lake.query(sql, [cluster, start], over=[GROUP_HISTORY], since=start)["newest"][0].as_py()
    return start if newest is None else newest + timedelta(microseconds=1)


def _groups_seen(lake: Lake, its: MomentsAtOnce) -> GroupsSeen:
    first, last = its.moments[0].as_of, its.moments[-1].as_of
    window = timedelta(seconds=WINDOWS_SECONDS[0])
    moments = pa.table(
        {
            "cluster": [m.cluster for m in its.moments],
            "sample_id": [m.sample_id for m in its.moments],
            "as_of": pa.array([m.as_of for m in its.moments], TIMESTAMP),
        }
    )
    rows = lake.query(
        """
        select distinct g.* from groups g join moments m
        on g.cluster = m.cluster and g.sampled_at <= m.as_of and g.sampled_at > m.as_of - to_seconds(?)
        """,
        [WINDOWS_SECONDS[0]],
        over=[GROUPS],
        since=first - window - MISDATED,
        until=last + MISDATED,
        given={"moments": moments},
    )
    members = lake.query(
        "select members.* from members semi join moments using (cluster, sample_id)",
        over=[MEMBERS],
        since=first - window - MISDATED,
        until=last + MISDATED,
        given={"moments": moments},
    )
    # The last change of state before the slice, and all that happened since.
    events = lake.query(
        """
        with its as (
            select distinct * from events
            where cluster = $cluster and kind in ('rebalance', 'state_changed') and "at" <= $last
                and "group" is not null
        )
        select * from its where "at" > $first
        union all
        select * from its where "at" <= $first and kind = 'state_changed'
        qualify row_number() over (partition by "group" order by "at" desc) = 1
        """,
        {"cluster": its.moments[0].cluster, "first": first - window, "last": last},
        over=[EVENTS],
        until=last + MISDATED,
    )
    return GroupsSeen(read.typed(GROUPS, rows), read.typed(MEMBERS, members), read.typed(EVENTS, events), its.moments)


def _pieces(
    lake: Lake, config: Config, n: News, its: MomentsAtOnce, seen: GroupsSeen, own_objectives: Mapping[Group, float]
) -> Iterator[PastSlice]:
    first, last = its.moments[0].as_of, its.moments[-1].as_of
    reach = timedelta(microseconds=REACH)
    raw = {
        table: list(
            dict.fromkeys(
                file
                for m in its.moments
                for file in lake.files(table, since=m.as_of - timedelta(minutes=2), until=m.as_of + MISDATED)
            )
        )
        for table in (COMMITS, WATERMARKS)
    }
    fine_from = five_minutes_of(first - timedelta(seconds=COARSE_AFTER_SECONDS))
    fine, coarse = (fine_from, minute_of(last) + timedelta(minutes=1)), (five_minutes_of(first - reach), fine_from)
    hours = (hour_of(first) - timedelta(hours=HOURS_OF_DAY + 2), hour_of(last))
    files = read.files_of(
        lake,
        {
            MINUTES: fine,
            WATERMARK_MINUTES: fine,
            FIVE_MINUTES: coarse,
            WATERMARK_FIVE_MINUTES: coarse,
            HOURS: hours,
        },
        raw,
    )
    inputs = RoundInputs(
        moments=[moment_of(n, config)],
        sample_ids=frozenset(m.sample_id for m in its.moments),
        facts=seen.facts,
        assigned=seen.assigned,
        clients=no_rows(pa.schema([(name, pa.string()) for name in ("cluster", "group", "member_id")])),
        limits=limits_table(read.newest_topics(lake)),
        objectives=objectives_table(own_objectives),
        older=_older(lake, config, its),
    )
    for within in ranges_of(lake, [n], its.pieces):
        yield PastSlice(
            inputs,
            files,
            tuple(m.sample_id for m in its.moments),
            tuple(micros_of(m.as_of) for m in its.moments),
            micros_of(fine_from),
            micros_of(its.shown_from),
            its.is_last,
            within.of(n.cluster),
        )


def _older(lake: Lake, config: Config, its: MomentsAtOnce) -> pa.Table:
    """The history of the watermarks before the minutes that the slice reads, around what is still to be read there."""
    first, cluster = its.moments[0], its.moments[0].cluster
    begins = first.as_of - timedelta(microseconds=REACH)
    positions = lake.query(
        """
        with ends as (
            select cluster, topic, partition, min(first_high_watermark) as high from watermark_minutes
            where cluster = $cluster and minute >= $begins and minute <= $first group by all
        )
        select distinct c.cluster, topic, partition, greatest(c.committed, c.next_record, w.log_start) as position
        from commits c join watermarks w using (cluster, topic, partition, sample_id)
        join ends using (cluster, topic, partition)
        where c.cluster = $cluster and sample_id in (select unnest($samples))
            and greatest(c.committed, c.next_record, w.log_start) < high
            and coalesce(c.committed, c.next_record) is not null and w.log_start is not null
        """,
        {"cluster": cluster, "begins": begins, "first": first.as_of, "samples": [m.sample_id for m in its.moments]},
        over=[COMMITS, WATERMARKS, WATERMARK_MINUTES],
        since=begins - MISDATED,
        until=its.moments[-1].as_of + MISDATED,
    )
    if positions.num_rows == 0:
        return no_rows(WATERMARK_FIVE_MINUTES.without_day)
    start = begins - timedelta(days=config.lake.retention.minute_stats_days)
    return telling_rows(lake, positions, start, {cluster: begins})


def _group_rows(
    rows: pa.Table, facts: Mapping[tuple[str, str], Mapping[str, Any]], samples: Mapping[datetime, str]
) -> Iterator[dict[str, Any]]:
    """Rows of groups at moments, as of `group_status`."""
    as_of, moment = np.unique(rows["as_of"].cast(pa.int64()).to_numpy(), return_inverse=True)
    times = pa.array(as_of).cast(TIMESTAMP).to_pylist()
    encoded = pc.dictionary_encode(rows["group"].combine_chunks())
    groups = encoded.dictionary.to_pylist()
    columns, names = columns_to_roll_up(rows, moment * len(groups) + encoded.indices.to_numpy())
    cluster = rows["cluster"][0].as_py()
    for view, parts in parts_of(columns, names).items():
        at, group = times[view // len(groups)], groups[view % len(groups)]
        fact = facts.get((samples[at], group), {})
        verdict = verdict_of(
            parts,
            members=fact.get("members"),
            idle_members=fact.get("idle_members") or 0,
            state=fact.get("state"),
            group_type=fact.get("type"),
            error=fact.get("error"),
        )
        record = record_of_verdict(
            verdict,
            cluster=cluster,
            group=group,
            as_of=at,
            since=at,
            state=fact.get("state"),
            group_type=fact.get("type"),
            idle_members=fact.get("idle_members"),
            findings=(),
            backlog=None,
        )
        yield row_of(record)
