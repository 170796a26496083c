"""How far the analysis has got, and what has been collected since."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc

from lagwise.domain.verdicts.windows import HOUR_IS_WHOLE_AFTER_SECONDS
from lagwise.tables.raw import SAMPLES
from lagwise.tables.rounds import TICKS
from lagwise.tables.schema import TIMESTAMP
from lagwise.tables.store import Lake

#: A part of a sample may be dated this far outside of it: a clock may be set back meanwhile.
MISDATED = timedelta(minutes=1)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the analysis of a cluster has got."""

    #: Newest ``written_at`` of the samples that have been read.
    read_until: datetime
    #: Minutes before this one are final.
    finished_until: datetime
    #: Hours before this one are final.
    hours_until: datetime
    #: Throughput has been observed up to this hour.
    observed_until: datetime


@dataclass(frozen=True, slots=True)
class News:
    """What a cluster's samples ask of the next round: which sample to judge, and which rollups to make (again)."""

    #: Name of the cluster in the configuration.
    cluster: str
    #: What the cluster runs, as in `samples`: kafka or rocketmq.
    system: str
    #: Id of the cluster's latest sample, which is the one that is judged.
    latest_id: str
    #: Time of the latest sample: when it had read both commits and watermarks.
    as_of: datetime
    #: No row of the latest sample is dated before this.
    latest_from: datetime
    #: Time between two samples, as of the latest one.
    interval_seconds: float
    #: Number of group-partitions in the latest sample.
    group_partitions: int
    #: How long the brokers keep the commits of a group without members; None where unknown.
    offsets_retention_seconds: float | None
    #: Number of samples that no round has read yet.
    new_samples: int
    #: Newest ``written_at`` of all samples: what the next round continues from.
    read_until: datetime
    #: Start of the first UTC minute whose row has to be made (again).
    open_from: datetime
    #: Start of the first UTC hour whose row has to be made (again).
    hours_from: datetime
    #: Start of the first UTC hour for which throughput has to be observed (again).
    observed_from: datetime


def latest_from(news: Sequence[News]) -> datetime:
    """No row of the latest sample of any of these clusters is dated before this."""
    return min(n.latest_from for n in news)


def micros_of(at: datetime) -> int:
    """A time in microseconds since the epoch."""
    return (at - _EPOCH) // timedelta(microseconds=1)


def minute_of(at: datetime) -> datetime:
    """Start of the UTC minute."""
    return at.astimezone(UTC).replace(second=0, microsecond=0)


def five_minutes_of(at: datetime) -> datetime:
    """Start of the five UTC minutes."""
    minute = minute_of(at)
    return minute - timedelta(minutes=minute.minute % 5)


def hour_of(at: datetime) -> datetime:
    """Start of the UTC hour."""
    return minute_of(at).replace(minute=0)


def whole_hours_until(as_of: datetime) -> datetime:
    """End of the last whole hour: :func:`lagwise.domain.verdicts.windows.whole_hours_until`."""
    return hour_of(as_of - timedelta(seconds=HOUR_IS_WHOLE_AFTER_SECONDS))


def read_progress(lake: Lake) -> dict[str, Progress]:
    """Progress by cluster, from the newest finished tick; empty before the first."""
    day = lake.newest_day(TICKS)
    if day is None:
        return {}
    rows = lake.read(TICKS, since=datetime.fromisoformat(day).replace(tzinfo=UTC))
    if rows.num_rows == 0:
        return {}
    newest = rows["progress"][pc.index(rows["finished_at"], pc.max(rows["finished_at"])).as_py()].as_py()
    return {p.pop("cluster"): Progress(**p) for p in newest}


def read_news(lake: Lake, progress: dict[str, Progress]) -> list[News]:
    """One row per cluster that has a readable sample.

    A sample delivered late (out of the collector's spool) is new although older ones have been judged: minutes are
    made again from its own minute on.
    """
    oldest = min((p.read_until for p in progress.values()), default=None)
    known = pa.table(
        {
            "cluster": pa.array(list(progress), pa.string()),
            "read_until": pa.array([p.read_until for p in progress.values()], TIMESTAMP),
        }
    )
    rows = lake.query(
        """
        select cluster, system, sample_id, greatest(commits_read_at, watermarks_read_at) as as_of, started_at,
               commits_read_at, watermarks_read_at, written_at, interval_seconds, group_partitions,
               offsets_retention_seconds
        from samples left join known using (cluster)
        where commits_read_at is not null and watermarks_read_at is not null
        qualify read_until is null or written_at > read_until
             or row_number() over (partition by cluster order by as_of desc) = 1
             or row_number() over (partition by cluster order by written_at desc) = 1
        order by cluster, as_of
        """,
        over=[SAMPLES],
        # Spooled samples lie on the day they were taken, which retention bounds.
        since=None if oldest is None else oldest - timedelta(days=2),
        given={"known": known},
    )
    return [
        _news_of(str(cluster), rows.filter(pc.equal(rows["cluster"], cluster)), progress.get(str(cluster)))
        for cluster in sorted(set(rows["cluster"].to_pylist()))
    ]


def _news_of(cluster: str, rows: pa.Table, known: Progress | None) -> News:
    samples = rows.to_pylist()
    latest = samples[-1]
    new = [s for s in samples if known is None or s["written_at"] > known.read_until]
    oldest_new = min((s["commits_read_at"] for s in new), default=latest["commits_read_at"])
    open_from = minute_of(oldest_new)
    hours_from = hour_of(open_from)
    return News(
        cluster=cluster,
        system=latest["system"],
        latest_id=latest["sample_id"],
        as_of=latest["as_of"],
        latest_from=min(latest[at] for at in ("started_at", "commits_read_at", "watermarks_read_at")) - MISDATED,
        interval_seconds=latest["interval_seconds"],
        group_partitions=latest["group_partitions"],
        offsets_retention_seconds=latest["offsets_retention_seconds"],
        new_samples=len(new),
        read_until=max(s["written_at"] for s in samples),
        open_from=open_from if known is None else min(open_from, known.finished_until),
        hours_from=hours_from if known is None else min(hours_from, known.hours_until),
        observed_from=hours_from if known is None else min(hours_from, known.observed_until),
    )
