"""Making the minutes of a longer stretch of time: the first start, an outage of the analysis, a late delivery.

The same minutes as a round makes, by the same code, in slices of time: a minute depends on its own samples and on the
one before, so that no slice needs another. Tasks write the files themselves; their names come back and are committed.
"""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from pyspark import SparkContext

from lagwise.domain.verdicts.samples import gap_seconds
from lagwise.platform.log_events import LogEvent, event
from lagwise.tables.minutes import FIVE_MINUTES, MINUTES, WATERMARK_FIVE_MINUTES, WATERMARK_MINUTES
from lagwise.tables.raw import COMMITS, WATERMARKS
from lagwise.tables.store import Lake
from lagwise_spark.jobs import read, write
from lagwise_spark.jobs.progress import News, five_minutes_of, micros_of, minute_of, whole_hours_until
from lagwise_spark.jobs.read import FinishedSample
from lagwise_spark.jobs.round_inputs import ranges_of
from lagwise_spark.tasks.minutes import Slice, Span, written_minutes
from lagwise_spark.tasks.running import gathered

_LOG = logging.getLogger("lagwise.spark")

#: What is open is made in one round together with its verdicts up to so many rows of `minutes`, or so many minutes;
#: beyond both, it is caught up on first.
ROWS_PER_ROUND = 50_000
MINUTES_PER_ROUND = 5
#: About how many samples of its own a task works on: its Python process takes about 600 bytes for each …
SAMPLES_PER_TASK = 600_000
#: … and how many at most, with those of the gap before them.
MOST_SAMPLES_OF_TASK = 900_000
#: A slice reads the samples of the gap before it, too: shorter ones would read those too often.
SHORTEST_SLICE = timedelta(minutes=5)
#: Tasks of a job, per core: what they wrote is committed, and progress logged, after each job.
TASKS_PER_CORE = 4

_FINE, _COARSE = (MINUTES, WATERMARK_MINUTES), (FIVE_MINUTES, WATERMARK_FIVE_MINUTES)


def catch_up(context: SparkContext, lake: Lake, news: Sequence[News]) -> list[News]:
    """Finish what is open where it is more than a round should make. Returns the news with what is left open."""
    left = []
    for n in news:
        end = minute_of(n.as_of)
        if is_a_round(n):
            left.append(n)
            continue
        finished = _finished_samples(lake, n, end)
        cores = context.defaultParallelism
        slices = list(slices_of(n.open_from, end, n.group_partitions / n.interval_seconds, cores))
        for some in _batches(slices, TASKS_PER_CORE * cores):
            start, until = some[0][0], some[-1][1]
            _LOG.info(
                "%s: catching up, making the minutes from %s to %s",
                n.cluster,
                start,
                until,
                extra=event(LogEvent.CATCHING_UP, cluster=n.cluster),
            )
            _make(context, lake, n, some, finished)
        left.append(replace(n, open_from=end))
    return left


def is_a_round(n: News) -> bool:
    """Whether what is open is no more than a round makes together with its verdicts. Hours that are whole by now must
    have all their minutes before anything is judged."""
    if n.open_from < whole_hours_until(n.as_of):
        return False
    minutes = (n.as_of - n.open_from) / timedelta(minutes=1)
    return minutes <= MINUTES_PER_ROUND or minutes * n.group_partitions <= ROWS_PER_ROUND


def slices_of(
    start: datetime, end: datetime, samples_per_second: float, cores: int
) -> Iterator[tuple[datetime, datetime]]:
    """The time from ``start`` to ``end`` in parts that begin with five minutes, are not too large for a task, and as
    many as there are cores or a multiple, so that none waits for another at the end."""
    seconds = (end - start).total_seconds()
    wanted = cores * max(1, -(-int(seconds * samples_per_second) // (SAMPLES_PER_TASK * cores)))
    length = max(SHORTEST_SLICE, SHORTEST_SLICE * -(-int(seconds) // int(SHORTEST_SLICE.total_seconds() * wanted)))
    while start < end:
        until = min(five_minutes_of(start) + length, end)
        yield start, until
        start = until


def _batches(slices: Sequence[tuple[datetime, datetime]], size: int) -> Iterator[Sequence[tuple[datetime, datetime]]]:
    for first in range(0, len(slices), size):
        yield slices[first : first + size]


def _finished_samples(lake: Lake, n: News, end: datetime) -> list[FinishedSample]:
    """The samples that the minutes up to ``end`` are made of. They are looked up once for all slices: a day of them is
    thousands of files of a row each."""
    start = n.open_from - timedelta(seconds=gap_seconds(n.interval_seconds))
    # What happened during an outage shows between the last sample before it and the first one after it.
    last = read.last_finished_sample(lake, n.cluster, start)
    return [*last, *(s for s in read.finished_samples(lake, start, end) if s.cluster == n.cluster)]


def _make(
    context: SparkContext,
    lake: Lake,
    n: News,
    slices: Sequence[tuple[datetime, datetime]],
    finished: Sequence[FinishedSample],
) -> None:
    """Write the minutes of some slices, and the five minutes that these complete."""
    start, until = slices[0][0], slices[-1][1]
    spans = dict.fromkeys(_FINE, (start, until))
    spans |= {table: (five_minutes_of(start), five_minutes_of(until)) for table in _COARSE}
    pieces = [piece for since, to in slices for piece in _pieces(lake, n, since, to, finished)]
    made = gathered(context, written_minutes, pieces) if pieces else {}
    for table, (since, to) in spans.items():
        # A round may have been cut short, or a late sample have opened them again.
        write.delete_spans(lake, table, {n.cluster: (since, to)})
        if table.name in made:
            lake.add_files(table, made[table.name])


def pieces_of(samples: int, group_partitions: int) -> int:
    """Into how many pieces a slice is cut, with the samples of the gap before it: of a very large cluster even the
    shortest is too much for a task."""
    return max(1, -(-samples * group_partitions // MOST_SAMPLES_OF_TASK))


def _pieces(
    lake: Lake, n: News, start: datetime, until: datetime, finished: Sequence[FinishedSample]
) -> Iterator[Slice]:
    gap = timedelta(seconds=gap_seconds(n.interval_seconds))
    samples = read.around(finished, start - gap, until)
    # Those of the gap alone make no minute.
    if not any(s.finished_at >= start for s in samples):
        return
    raw = {table: read.files_of_finished(lake, table, samples) for table in (COMMITS, WATERMARKS)}
    before = five_minutes_of(start)
    files = read.files_of(lake, dict.fromkeys(_FINE, (before, start)) if before < start else {}, raw)
    span = Span(n.cluster, micros_of(start), micros_of(until), gap.total_seconds())
    for within in ranges_of(lake, [n], pieces_of(len(samples), n.group_partitions)):
        yield Slice(span, files, frozenset(s.sample_id for s in samples), within.of(n.cluster))
