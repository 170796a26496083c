"""Detects partitions whose leader moved, was lost or is back: one event per topic and sample, however many partitions.

Made for 100,000 partitions of which no leader changes: columns are compared as a whole.
"""

import logging
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from itertools import groupby
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lagwise.domain.humanise import plural
from lagwise.domain.vocabulary import EventKind
from lagwise.platform.log_events import LogEvent, event
from lagwise_collectors.sample_diff.events import MAX_EVENTS, Event

log = logging.getLogger("lagwise.collectors")

_PLACE = ["topic", "partition"]
_PLAIN = pa.schema([("topic", pa.string()), ("partition", pa.int32()), ("leader", pa.int32())])
#: Events of leaders in one sample: a broker that restarts leads partitions of every topic, and other events need room.
MAX_LEADER_EVENTS = MAX_EVENTS // 2
#: Brokers named in one event; the others are counted.
_MOST_BROKERS = 4
_NO_LEADER = "no leader"


def known_leaders(before: pa.Table | None, watermarks: pa.Table) -> pa.Table:
    """Topic, partition and leader (a node id; null is none) of each partition, from the ``raw/watermarks`` rows of a
    sample.

    A partition without replicas was not described, or belongs to a system without leaders. A topic that could not be
    described keeps the leaders it had ``before``.
    """
    is_described = pc.is_valid(watermarks["replicas"])
    now = watermarks.select(_PLAIN.names).filter(is_described).cast(_PLAIN).combine_chunks()
    if before is None or before.num_rows == 0 or now.num_rows == watermarks.num_rows:
        return now
    unknown = pc.cast(watermarks["topic"].filter(pc.invert(is_described)), pa.string()).unique()
    return pa.concat_tables([now, before.filter(pc.is_in(before["topic"], unknown))]).combine_chunks()


def leader_events(before: pa.Table, now: pa.Table, at: datetime, *, unusable_topics: Collection[str]) -> list[Event]:
    """Events between two tables of :func:`known_leaders`: those of topics that lost a leader first, then by the number
    of partitions. ``unusable_topics`` (deleted, re-created, not readable) are left out: their partitions are others."""
    changed = [row for row in _changed(before, now).to_pylist() if row["topic"] not in unusable_topics]
    if not changed:
        return []
    changed.sort(key=lambda row: (row["topic"], row["partition"]))
    moved = {topic: list(rows) for topic, rows in groupby(changed, key=lambda row: row["topic"])}
    there = now["topic"].filter(pc.is_in(now["topic"], pa.array(list(moved), pa.string())))
    partitions = {count["values"]: count["counts"] for count in there.value_counts().to_pylist()}
    ordered = sorted(moved, key=lambda topic: (_kind(moved[topic]) is not EventKind.LEADERS_LOST, -len(moved[topic])))
    return [_event(topic, moved[topic], partitions[topic], at) for topic in ordered]


def bounded_moves(moves: list[Event], other_events: int, cluster: str) -> list[Event]:
    """The first of the leader events of a sample, as many as fit beside so many others.

    The rest is logged and is no error of the sample: the collector works as it should when a broker of a cluster with
    many topics restarts.
    """
    most = min(MAX_LEADER_EVENTS, max(0, MAX_EVENTS - other_events))
    if len(moves) > most:
        told = "%s: leaders of %s changed at once; %d of them have no event"
        log.info(
            told,
            cluster,
            plural(len(moves), "topic"),
            len(moves) - most,
            extra=event(LogEvent.LEADER_EVENTS_OMITTED, cluster=cluster),
        )
    return moves[:most]


def _changed(before: pa.Table, now: pa.Table) -> pa.Table:
    """Partitions of both tables whose leader differs: topic, partition, before, after."""
    if before.select(_PLACE).equals(now.select(_PLACE)):
        if before["leader"].equals(now["leader"]):
            return now.slice(0, 0)
        both = now.select(_PLACE).append_column("before", before["leader"]).append_column("after", now["leader"])
    else:
        after = now.rename_columns([*_PLACE, "after"])
        both = before.rename_columns([*_PLACE, "before"]).join(after, _PLACE, join_type="inner", use_threads=False)
    is_same = pc.fill_null(pc.equal(both["before"], both["after"]), False)
    had_none_has_none = pc.and_(pc.is_null(both["before"]), pc.is_null(both["after"]))
    return both.filter(pc.invert(pc.or_(is_same, had_none_has_none)))


def _event(topic: str, changed: Sequence[Mapping[str, Any]], partitions: int, at: datetime) -> Event:
    return Event(
        _kind(changed),
        at,
        topic=topic,
        partition=changed[0]["partition"] if len(changed) == 1 else None,
        before=_brokers(row["before"] for row in changed),
        after=_brokers(row["after"] for row in changed),
        cause=f"{len(changed):,} of {plural(partitions, 'partition')}",
    )


def _kind(changed: Sequence[Mapping[str, Any]]) -> EventKind:
    """What matters most of what became of these leaders."""
    if any(row["after"] is None for row in changed):
        return EventKind.LEADERS_LOST
    if any(row["before"] is None for row in changed):
        return EventKind.LEADERS_RESTORED
    return EventKind.LEADERS_MOVED


def _brokers(leaders: Iterable[int | None]) -> str:
    """``broker 1 (20), no leader (4)``: of how many partitions, the most first; a single one without the number."""
    counts = Counter(leaders)
    ordered = sorted(counts, key=lambda node: (-counts[node], node is None, node))
    names = [_NO_LEADER if node is None else f"broker {node}" for node in ordered]
    if len(names) == 1:
        return names[0]
    told = [f"{name} ({counts[node]:,})" for name, node in zip(names, ordered, strict=True)]
    if len(told) <= _MOST_BROKERS:
        return ", ".join(told)
    rest = sum(counts[node] for node in ordered[_MOST_BROKERS:])
    return f"{', '.join(told[:_MOST_BROKERS])}, {len(told) - _MOST_BROKERS} more ({rest:,})"
