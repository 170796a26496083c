"""Committed offsets that went back, skipped records, or are gone: between two samples, and as events.

Cheap for 100,000 group-partitions of which few changed.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime
from itertools import groupby
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from lagwise.domain.loss.skips import FROM_LOG_START
from lagwise.domain.vocabulary import EventKind, EventSource
from lagwise_collectors.sample_diff.events import Event
from lagwise_collectors.sample_diff.offset_skips import OffsetSkip

KEYS = ["group", "topic", "partition"]
_PLAIN = pa.schema(
    [("group", pa.string()), ("topic", pa.string()), ("partition", pa.int32()), ("committed", pa.int64())]
)
#: Up to this many partitions of a group and topic get an event each; more become one event.
_ONE_BY_ONE = 10


class CommitChange(NamedTuple):
    """A committed offset that went back, skipped records, or is gone."""

    kind: EventKind
    at: datetime
    group: str
    topic: str
    partition: int
    before: int
    #: None: it is gone.
    after: int | None = None
    #: Why it is gone, or from where it skipped; None where that is unknown, or needs no mention.
    cause: str | None = None


def change_events(changes: Iterable[CommitChange], source: EventSource = EventSource.SAMPLES) -> Iterator[Event]:
    """The events of changes. Many of one kind, group, topic and time become one event."""
    for (at, group, topic, kind, _), same in groupby(
        sorted(changes, key=lambda change: (*_event_key(change), change.partition)), key=_event_key
    ):
        those = list(same)
        if len(those) <= _ONE_BY_ONE:
            for c in those:
                after = None if c.after is None else str(c.after)
                yield Event(
                    kind, at, group, topic, c.partition, before=str(c.before), after=after, cause=c.cause, source=source
                )
            continue
        records = sum(abs(c.before - c.after) for c in those if c.after is not None)
        in_all = [] if kind is EventKind.OFFSETS_GONE else [f"{records} records in all"]
        causes = " and ".join(sorted({c.cause for c in those if c.cause is not None}))
        cause = ", ".join([f"{len(those)} partitions", *in_all, *filter(None, [causes])])
        yield Event(kind, at, group, topic, cause=cause, source=source)


def _event_key(change: CommitChange) -> tuple[datetime, str, str, EventKind, str]:
    """Changes with the same key can become one event. Skips from the log start stay apart from other skips."""
    start = change.cause if change.kind is EventKind.COMMIT_SKIPPED else None
    return change.at, change.group, change.topic, change.kind, start or ""


def plain_commits(commits: pa.Table) -> pa.Table:
    """Key and committed offset of ``raw/commits`` rows, in plain types."""
    return commits.select(_PLAIN.names).cast(_PLAIN).combine_chunks()


def commit_events(
    before: pa.Table, now: pa.Table, at: datetime, *, readable: Collection[str], unusable_topics: Collection[str]
) -> Iterator[Event]:
    """Rewinds and losses between two plain tables of commits.

    Only ``readable`` groups are compared. ``unusable_topics`` (deleted, re-created, not readable) are left out: the
    topic has an event of its own, which explains what became of the commits.
    """
    changed = _changed(before, now)
    return change_events(
        CommitChange(
            kind=EventKind.OFFSETS_GONE if row["after"] is None else EventKind.COMMIT_REWOUND,
            at=at,
            **row,
        )
        for row in changed.to_pylist()
        if row["group"] in readable and row["topic"] not in unusable_topics
    )


def skip_events(commits: pa.Table, skips: Sequence[OffsetSkip], at: datetime) -> Iterator[Event]:
    """Events of skipped records; ``skips`` name rows of this plain table. Skips from the log start and skips from the
    previous offset become different events."""
    names = commits.select(KEYS).take([skip.row for skip in skips]).to_pylist() if skips else []
    return change_events(
        CommitChange(
            kind=EventKind.COMMIT_SKIPPED,
            at=at,
            **name,
            before=skip.before,
            after=skip.after,
            cause=FROM_LOG_START if skip.from_log_start else None,
        )
        for name, skip in zip(names, skips, strict=True)
    )


def _changed(before: pa.Table, now: pa.Table) -> pa.Table:
    """Pairs whose committed offset went back or away: group, topic, partition, before, after."""
    if before.num_rows == 0:
        both = before.rename_columns([*KEYS, "before"]).append_column("after", before["committed"])
    elif before.select(KEYS).equals(now.select(KEYS)):
        both = now.select(KEYS).append_column("before", before["committed"]).append_column("after", now["committed"])
    else:
        after = now.rename_columns([*KEYS, "after"])
        both = before.rename_columns([*KEYS, "before"]).join(after, KEYS, join_type="left outer", use_threads=False)
    went_back = pc.fill_null(pc.less(both["after"], both["before"]), False)
    went_away = pc.and_(pc.is_valid(both["before"]), pc.is_null(both["after"]))
    return both.filter(pc.or_(went_back, went_away))


def carried_over(before: pa.Table, now: pa.Table, unreadable: Iterable[str]) -> pa.Table:
    """The commits to compare the next sample with. Groups that could not be read now keep their previous ones."""
    names = list(unreadable)
    if not names or before.num_rows == 0:
        return now
    previous = before.filter(pc.is_in(before["group"], pa.array(names, pa.string())))
    return pa.concat_tables([now, previous]).combine_chunks()
