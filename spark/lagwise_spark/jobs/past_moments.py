"""The moments at which the past of a cluster is judged, and the slices in which that is done."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from lagwise.tables.raw import SAMPLES
from lagwise.tables.store import Lake
from lagwise_spark.jobs.progress import News, micros_of
from lagwise_spark.jobs.round_inputs import SampleMoment

#: How far apart moments are, by how long ago they are at most: as far as the points of a chart over that time are.
_TIERS = (
    (timedelta(hours=2), timedelta(minutes=1)),
    (timedelta(days=1), timedelta(minutes=5)),
    (timedelta(days=8), timedelta(minutes=15)),
    (timedelta.max, timedelta(hours=1)),
)
#: The distances that there are. Where there would be more than so many verdicts on partitions, all moments are as much
#: further apart as it takes: the time that the past costs has a bound, however long it is.
_DISTANCES = tuple(timedelta(minutes=m) for m in (1, 5, 15, 60, 180, 360, 720, 1440))
VERDICTS_AT_MOST = 300_000
#: About how many minutes of group-partitions a task reads …
ROWS_PER_TASK = 500_000
#: … and how many of these rows lie before its first moment: a quarter of an hour, and by five what is before that.
_ROWS_BEFORE = 30
#: A slice judges the moments of so long before its first one, too. Where moments are further apart, there is none.
_REMEMBERS = timedelta(hours=1)

Moments = list[tuple[SampleMoment, timedelta]]


def moments_of(lake: Lake, n: News, start: datetime, until: datetime) -> Moments:
    """The last sample of each stretch of a length that depends on its age, with that length. It is the last one of its
    minute: then it ends with what minutes hold."""
    rows = lake.query(
        """
        select sample_id, greatest(commits_read_at, watermarks_read_at) as as_of from samples
        where cluster = ? and commits_read_at is not null and watermarks_read_at is not null and commits_read_at >= ?
        qualify row_number() over (partition by date_trunc('minute', as_of) order by as_of desc) = 1 and as_of < ?
        order by as_of
        """,
        [n.cluster, start, until],
        over=[SAMPLES],
        since=start - timedelta(hours=1),
        until=until,
    )
    ids, times = rows["sample_id"].to_pylist(), rows["as_of"].to_pylist()
    for coarser in range(len(_DISTANCES)):
        last: dict[tuple[timedelta, int], tuple[str, datetime]] = {}
        for sample_id, as_of in zip(ids, times, strict=True):
            distance = _distance(until - as_of, coarser)
            last[distance, micros_of(as_of) // (distance // timedelta(microseconds=1))] = sample_id, as_of
        if len(last) * n.group_partitions <= VERDICTS_AT_MOST:
            break
    return [(SampleMoment(n.cluster, sample_id, as_of), key[0]) for key, (sample_id, as_of) in last.items()]


def _distance(age: timedelta, coarser: int) -> timedelta:
    distance = next(distance for oldest, distance in _TIERS if age <= oldest)
    return _DISTANCES[min(_DISTANCES.index(distance) + coarser, len(_DISTANCES) - 1)]


@dataclass(frozen=True)
class MomentsAtOnce:
    """Moments in order of time, of which the first ones are only remembered; ``pieces`` is into how many ranges of
    partitions they are cut, ``is_last`` whether no others follow."""

    moments: Sequence[SampleMoment]
    shown_from: datetime
    pieces: int
    is_last: bool


def slices_of(moments: Moments, group_partitions: int, cores: int) -> Iterator[MomentsAtOnce]:
    first = 0
    while first < len(moments):
        distance = moments[first][1]
        stop = next((i for i in range(first, len(moments)) if moments[i][1] != distance), len(moments))
        minutes = max(1, ROWS_PER_TASK // max(1, group_partitions)) - _ROWS_BEFORE
        remembered = _REMEMBERS // distance
        most = max(1, int(minutes * timedelta(minutes=1) / distance) - remembered)
        size = min(most, -(-(stop - first) // cores))
        for begin in range(first, stop, size):
            end = min(begin + size, stop)
            its = [m for m, _ in moments[max(0, begin - remembered) : end]]
            span = (its[-1].as_of - its[0].as_of) / timedelta(minutes=1) + _ROWS_BEFORE
            pieces = max(1, round(span * group_partitions / ROWS_PER_TASK))
            yield MomentsAtOnce(its, moments[begin][0].as_of, pieces, end == len(moments))
        first = stop
