"""What a round's tasks are given: the files to read, and small tables that are the same for all of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lagwise.config import Config
from lagwise.domain.verdicts.changes import COARSE_AFTER_SECONDS
from lagwise.domain.verdicts.columns import NULL, Array, Columns, taken
from lagwise.domain.verdicts.ownership import Membership, Names, group_facts
from lagwise.domain.verdicts.retention import limits_of
from lagwise.domain.verdicts.samples import gap_seconds
from lagwise.domain.verdicts.windows import (
    HOUR_IS_WHOLE_AFTER_SECONDS,
    LOOKBACK_SECONDS,
    WINDOWS_SECONDS,
)
from lagwise.domain.vocabulary import EventKind, GroupState
from lagwise.tables.analysis import PARTITION_STATUS
from lagwise.tables.minutes import DAYS, FIVE_MINUTES, MINUTES, WATERMARK_FIVE_MINUTES, WATERMARK_MINUTES
from lagwise.tables.raw import COMMITS, WATERMARKS
from lagwise.tables.schema import no_rows
from lagwise.tables.store import Lake
from lagwise.tables.written_files import ROWS_PER_GROUP, group_starts
from lagwise_spark.jobs import read
from lagwise_spark.jobs.progress import News, five_minutes_of, latest_from, micros_of
from lagwise_spark.tasks.arrow_columns import Numbering, columns_of, combined, decimals_of, flags_of, numbers_of
from lagwise_spark.tasks.inputs import Moment, RoundInputs
from lagwise_spark.tasks.lake_files import KeyRange, LakeFiles

#: About how many group-partitions a task works on.
PAIRS_PER_TASK = 25_000

#: By so much of it, a range may be larger or smaller than others.
_SHARE_OF_RANGE = 0.25


def fine_from(news: News) -> datetime:
    """Before this time history is read by five minutes: those that verdicts take as one, and that are finished."""
    coarse_from = news.as_of - timedelta(seconds=COARSE_AFTER_SECONDS)
    return five_minutes_of(min(coarse_from, news.open_from))


def moment_of(news: News, config: Config) -> Moment:
    """A cluster's latest sample, and what verdicts on it go by."""
    objective = next((c.lag_objective_seconds for c in config.clusters if c.name == news.cluster), 300.0)
    retention = news.offsets_retention_seconds
    return Moment(
        cluster=news.cluster,
        sample_id=news.latest_id,
        as_of=micros_of(news.as_of),
        interval_seconds=news.interval_seconds,
        gap_seconds=gap_seconds(news.interval_seconds),
        lag_objective_seconds=objective,
        risk_horizon_seconds=config.analysis.risk_horizon_seconds,
        minimum_span_seconds=config.analysis.minimum_span_seconds,
        offsets_retention_seconds=float("nan") if retention is None else retention,
        open_from=micros_of(news.open_from),
        fine_from=micros_of(fine_from(news)),
    )


def samples_of_round(lake: Lake, news: Sequence[News]) -> list[read.FinishedSample]:
    """The samples that open minutes are made of: those of the minutes, and of the gap before."""
    gap = timedelta(seconds=max(gap_seconds(n.interval_seconds) for n in news))
    return read.finished_samples(lake, min(n.open_from for n in news) - gap)


def files_of_round(lake: Lake, news: Sequence[News], samples: Sequence[read.FinishedSample]) -> LakeFiles:
    """The files that hold any of what a round reads."""
    reach = timedelta(seconds=LOOKBACK_SECONDS + HOUR_IS_WHOLE_AFTER_SECONDS)
    begins = min(n.as_of for n in news) - reach
    fine, coarse = min(map(fine_from, news)), max(map(fine_from, news))
    open_from = max(n.open_from for n in news)
    return read.files_of(
        lake,
        {
            MINUTES: (fine, open_from),
            WATERMARK_MINUTES: (fine, open_from),
            FIVE_MINUTES: (begins, coarse),
            WATERMARK_FIVE_MINUTES: (begins, coarse),
        },
        {
            COMMITS: read.files_of_finished(lake, COMMITS, samples),
            WATERMARKS: read.files_of_finished(lake, WATERMARKS, samples),
            DAYS: lake.files(DAYS),
            PARTITION_STATUS: lake.files(PARTITION_STATUS),
        },
        kept=(MINUTES, WATERMARK_MINUTES, FIVE_MINUTES, WATERMARK_FIVE_MINUTES, DAYS),
    )


def ranges_of_round(
    lake: Lake, news: Sequence[News], cores: int, *, hours: int = 1, whole_topics: bool = False
) -> list[KeyRange]:
    """Ranges for a job over all group-partitions: as many as there are cores, or a multiple. A group-partition counts
    once for each of the ``hours`` of minutes that are read of it."""
    wanted = -(-sum(n.group_partitions for n in news) * hours // PAIRS_PER_TASK)
    count = 1 if wanted <= 1 else -(-wanted // cores) * cores
    return ranges_of(lake, news, count, whole_topics=whole_topics)


def ranges_of(lake: Lake, news: Sequence[News], count: int, *, whole_topics: bool = False) -> list[KeyRange]:
    """So many ranges, with about the same number of group-partitions each, by those in the latest samples. Fewer where
    ``whole_topics`` may not be cut and one has more than its share."""
    if count <= 1:
        return [KeyRange()]
    rows = lake.query(
        """
        select cluster, topic, partition, count(*) as pairs from commits
        where sample_id in (select unnest(?::varchar[])) group by all order by all
        """,
        [[n.latest_id for n in news]],
        over=[COMMITS],
        since=latest_from(news),
    )
    if rows.num_rows == 0:
        return [KeyRange()]
    pairs = rows["pairs"].to_numpy()
    starts, total = np.cumsum(pairs) - pairs, int(pairs.sum())
    shares = np.arange(1, count) * total / count
    # Best where row groups begin, as others would be read for two ranges; but not far from an equal share.
    groups = _nearest(np.array(group_starts(starts, total, ROWS_PER_GROUP)), shares)
    is_near = np.abs(groups - shares) <= _SHARE_OF_RANGE * total / count
    nearest = np.where(is_near, groups, _nearest(starts, shares))
    at = np.unique(np.searchsorted(starts, nearest[nearest > 0]))
    found = rows.take(at).to_pylist()
    keys = {
        (row["cluster"], row["topic"], 0 if whole_topics else row["partition"]): int(starts[place])
        for row, place in zip(found, at, strict=True)
    }
    bounds = [(None, 0), *keys.items(), (None, total)]
    # The largest first: what is left at the end is soon done.
    ranges = sorted(pairwise(bounds), key=lambda ends: ends[0][1] - ends[1][1])
    return [KeyRange(start, stop) for (start, _), (stop, _) in ranges]


def _nearest(numbers: Array, wanted: Array) -> Array:
    """Of these ascending numbers, the one nearest to each that is wanted."""
    above = np.minimum(np.searchsorted(numbers, wanted), len(numbers) - 1)
    below = np.maximum(above - 1, 0)
    is_below: Array = wanted - numbers[below] <= numbers[above] - wanted
    return np.where(is_below, numbers[below], numbers[above])


@dataclass(frozen=True, slots=True)
class SampleMoment:
    """A sample of a cluster, and the moment that it describes."""

    cluster: str
    sample_id: str
    as_of: datetime


def groups_now(lake: Lake, news: Sequence[News]) -> "GroupsSeen":
    """What the latest samples show."""
    return GroupsSeen(
        read.recent_groups(lake, news, WINDOWS_SECONDS[0]),
        read.latest_members(lake, news),
        read.telling_events(lake, news, WINDOWS_SECONDS[0]),
        [SampleMoment(n.cluster, n.latest_id, n.as_of) for n in news],
    )


class GroupsSeen:
    """What samples show of groups: facts by cluster, group and moment, and who is assigned what.

    ``rows`` are those of `groups` over the shortest window before each of the ``moments``, ``members`` those of their
    samples, and ``events`` those that verdicts go by.
    """

    def __init__(self, rows: pa.Table, members: pa.Table, events: pa.Table, moments: Sequence[SampleMoment]) -> None:
        self._clusters, self._groups = Numbering(), Numbering()
        self._samples = Numbering()
        tables = (rows, members, events)
        for table in tables:
            self._clusters.of(table["cluster"])
            self._groups.of(pc.fill_null(table["group"], ""))
        for one in moments:
            self._clusters.number(one.cluster)
        states, types, errors = Numbering(), Numbering(), Numbering()
        described = {
            "group": self._key(rows),
            "at": numbers_of(rows["sampled_at"]),
            "sample": self._samples.of(rows["sample_id"]),
            "state": states.of(rows["state"]),
            "type": types.of(rows["type"]),
            "error": errors.of(rows["error"]),
            "members": numbers_of(rows["member_count"]),
            "checkpointed_at": numbers_of(rows["checkpointed_at"]),
            "checkpoint_interval_seconds": decimals_of(rows["checkpoint_interval_seconds"]),
        }
        self.members = members
        parts = members["assignment"].combine_chunks() if members.num_rows else None
        owner = np.zeros(0, np.int64)
        topics = pa.array([], pa.string())
        if parts is not None:
            owner = np.repeat(np.arange(len(parts)), parts.value_lengths().to_numpy(zero_copy_only=False))
            topics = parts.flatten().field("topic")
        of_members = members.select(["cluster", "group", "sample_id"])
        self._assigned = of_members.take(pa.array(owner)).append_column("topic", topics)
        membership = Membership(
            names=Names(states.names, types.names, errors.names),
            groups=taken(described, np.lexsort((described["at"], described["group"]))),
            events=_in_order(events, self._key(events)),
            members={
                "sample": self._samples.of(members["sample_id"]),
                "group": self._key(members),
                "partitions": numbers_of(members["assigned_partitions"]),
            },
            assigned={},
        )
        self.names = membership.names
        views, cluster, group, moment = self._views(rows, moments)
        facts = group_facts(membership, views)
        is_there = facts["is_there"]
        self.sample_ids = [moments[n].sample_id for n in moment[is_there]]
        self.columns: Columns = taken(facts, is_there)
        self.clusters = [self._clusters.names[n] for n in cluster[is_there]]
        self.groups = [self._groups.names[n] for n in group[is_there]]

    def _key(self, rows: pa.Table) -> Array:
        numbers = [self._clusters.of(rows["cluster"]), self._groups.of(pc.fill_null(rows["group"], ""))]
        # Room for names to come: the numbers stay what they are.
        return combined(numbers, (1 << 20, 1 << 40))

    def _views(self, rows: pa.Table, moments: Sequence[SampleMoment]) -> tuple[Columns, Array, Array, Array]:
        """Each group at each moment of its cluster, and the numbers of these three."""
        keys = np.unique(self._key(rows))
        of_moments = np.array([self._clusters.number(moment.cluster) for moment in moments], np.int64)
        moment, key = np.nonzero(of_moments[:, None] == (keys >> 40)[None, :])
        sample = np.array([self._samples.number(m.sample_id) for m in moments], np.int64)
        as_of = np.array([micros_of(m.as_of) for m in moments], np.int64)
        views = {"group": keys[key], "as_of": as_of[moment], "sample": sample[moment]}
        return views, keys[key] >> 40, keys[key] & ((1 << 40) - 1), moment

    def row(self, place: int | None) -> dict[str, Any]:
        """What is known of one group, as it is shown; nothing where there is no such place."""
        if place is None:
            return {}
        names = {"state": self.names.states, "type": self.names.types, "error": self.names.errors}
        numbers = {name: int(self.columns[name][place]) for name in (*names, "members", "idle_members")}
        return {name: None if numbers[name] < 0 else of[numbers[name]] for name, of in names.items()} | {
            "members": None if numbers["members"] == NULL else numbers["members"],
            "idle_members": numbers["idle_members"],
        }

    @property
    def facts(self) -> pa.Table:
        """The facts as rows, for the tasks."""
        return pa.table(
            {
                "cluster": pa.array(self.clusters, pa.string()),
                "group": pa.array(self.groups, pa.string()),
                "sample_id": pa.array(self.sample_ids, pa.string()),
                **self.columns,
            }
        )

    @property
    def assigned(self) -> pa.Table:
        """cluster, group, sample_id, topic of which any partition is assigned to a member."""
        return self._assigned


def _in_order(events: pa.Table, group: Array) -> Columns:
    """Events in order of group, time, and the state after a change."""
    after = pc.fill_null(events["after"], "")
    rows = {
        "group": group,
        "at": numbers_of(events["at"]),
        "is_rebalance": flags_of(pc.equal(events["kind"], str(EventKind.REBALANCE))),
        "is_change": flags_of(pc.equal(events["kind"], str(EventKind.STATE_CHANGED))),
        "is_empty": flags_of(pc.equal(after, str(GroupState.EMPTY))),
    }
    rank = pc.rank(after, tiebreaker="dense").to_numpy() if events.num_rows else np.zeros(0)
    return taken(rows, np.lexsort((rank, rows["at"], group)))


def limits_table(topics: pa.Table) -> pa.Table:
    """The limits of each topic, from the newest row of its settings."""
    policy = pc.fill_null(topics["cleanup_policy"], "delete")
    settings = columns_of(topics, topics.schema, ("retention_ms", "retention_bytes", "segment_ms")) | {
        "deletes": flags_of(pc.match_substring(policy, "delete")),
        "compacts": flags_of(pc.match_substring(policy, "compact")),
    }
    return pa.table({"cluster": topics["cluster"], "topic": topics["topic"], **limits_of(settings)})


def objectives_table(own: Mapping[tuple[str, str], float]) -> pa.Table:
    """The lag objectives of groups that have one of their own."""
    return pa.table(
        {
            "cluster": pa.array([cluster for cluster, _ in own], pa.string()),
            "group": pa.array([group for _, group in own], pa.string()),
            "lag_objective_seconds": pa.array(own.values(), pa.float64()),
        }
    )


def round_inputs(
    lake: Lake,
    config: Config,
    news: Sequence[News],
    samples: Sequence[read.FinishedSample],
    groups: GroupsSeen,
    own_objectives: Mapping[tuple[str, str], float],
    older: pa.Table | None,
) -> RoundInputs:
    """The small tables of a round."""
    return RoundInputs(
        moments=[moment_of(n, config) for n in news],
        sample_ids=frozenset(sample.sample_id for sample in samples),
        facts=groups.facts,
        assigned=groups.assigned,
        clients=groups.members.select(["cluster", "group", "member_id", "client_id", "host"]),
        limits=limits_table(read.newest_topics(lake)),
        objectives=objectives_table(own_objectives),
        older=no_rows(WATERMARK_FIVE_MINUTES.without_day) if older is None else older,
    )
