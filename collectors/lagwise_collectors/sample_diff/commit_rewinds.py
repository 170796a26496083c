"""Detects committed offsets that went back (rewinds), or are gone, between two samples; and events of skips.

Cheap for 100,000 group-partitions of which few changed.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import groupby
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lagwise.domain.loss.skips import FROM_LOG_START
from lagwise.domain.vocabulary import EventKind
from lagwise_collectors.sample_diff.events import Event
from lagwise_collectors.sample_diff.offset_skips import OffsetSkip

KEYS = ["group", "topic", "partition"]
_PLAIN = pa.schema(
    [("group", pa.string()), ("topic", pa.string()), ("partition", pa.int32()), ("committed", pa.int64())]
)
#: Up to this many partitions of a group and topic get an event each; more become one event.
_ONE_BY_ONE = 10


def plain_commits(commits: pa.Table) -> pa.Table:
    """Key and committed offset of ``raw/commits`` rows, in plain types."""
    return commits.select(_PLAIN.names).cast(_PLAIN).combine_chunks()


def commit_events(
    before: pa.Table, now: pa.Table, at: datetime, *, readable: Collection[str], unusable_topics: Collection[str]
) -> list[Event]:
    """Rewinds and losses between two plain tables of commits.

    Only ``readable`` groups are compared. ``unusable_topics`` (deleted, re-created, not readable) are left out: the
    topic has an event of its own, which explains what became of the commits.
    """
    if before.num_rows == 0:
        return []
    changed = _changed(before, now)
    if changed.num_rows == 0:
        return []
    rows = [row for row in changed.to_pylist() if row["group"] in readable and row["topic"] not in unusable_topics]
    rows.sort(key=lambda row: (row["group"], row["topic"], row["partition"]))
    events: list[Event] = []
    for (group, topic), same in groupby(rows, key=lambda row: (row["group"], row["topic"])):
        together = list(same)
        rewound = [row for row in together if row["after"] is not None]
        gone = [row for row in together if row["after"] is None]
        events += _events(EventKind.COMMIT_REWOUND, group, topic, rewound, at)
        events += _events(EventKind.OFFSETS_GONE, group, topic, gone, at)
    return events


def skip_events(commits: pa.Table, skips: Sequence[OffsetSkip], at: datetime) -> list[Event]:
    """Events of skipped records; ``skips`` name rows of this plain table. Skips from the log start and skips from the
    previous offset become different events."""
    if not skips:
        return []
    names = commits.select(KEYS).take([skip.row for skip in skips]).to_pylist()
    rows = [
        name | {"before": s.before, "after": s.after, "how": FROM_LOG_START if s.from_log_start else ""}
        for name, s in zip(names, skips, strict=True)
    ]
    rows.sort(key=lambda row: (row["group"], row["topic"], row["how"], row["partition"]))
    events: list[Event] = []
    for (group, topic, how), same in groupby(rows, key=lambda row: (row["group"], row["topic"], row["how"])):
        for event in _events(EventKind.COMMIT_SKIPPED, group, topic, list(same), at):
            events.append(replace(event, cause=", ".join(filter(None, (event.cause, how))) or None))
    return events


def _changed(before: pa.Table, now: pa.Table) -> pa.Table:
    """Pairs whose committed offset went back or away: group, topic, partition, before, after."""
    if before.select(KEYS).equals(now.select(KEYS)):
        both = now.select(KEYS).append_column("before", before["committed"]).append_column("after", now["committed"])
    else:
        after = now.rename_columns([*KEYS, "after"])
        both = before.rename_columns([*KEYS, "before"]).join(after, KEYS, join_type="left outer")
    went_back = pc.fill_null(pc.less(both["after"], both["before"]), False)
    went_away = pc.and_(pc.is_valid(both["before"]), pc.is_null(both["after"]))
    return both.filter(pc.or_(went_back, went_away))


def _events(kind: EventKind, group: str, topic: str, rows: list[dict[str, Any]], at: datetime) -> Iterator[Event]:
    if len(rows) <= _ONE_BY_ONE:
        for row in rows:
            after = None if row["after"] is None else str(row["after"])
            yield Event(kind, at, group, topic, row["partition"], before=str(row["before"]), after=after)
        return
    cause = f"{len(rows)} partitions"
    if kind is not EventKind.OFFSETS_GONE:
        cause += f", {sum(abs(row['before'] - row['after']) for row in rows)} records in all"
    yield Event(kind, at, group, topic, cause=cause)


def carried_over(before: pa.Table, now: pa.Table, unreadable: Iterable[str]) -> pa.Table:
    """The commits to compare the next sample with. Groups that could not be read now keep their previous ones."""
    names = list(unreadable)
    if not names or before.num_rows == 0:
        return now
    previous = before.filter(pc.is_in(before["group"], pa.array(names, pa.string())))
    return pa.concat_tables([now, previous]).combine_chunks()
