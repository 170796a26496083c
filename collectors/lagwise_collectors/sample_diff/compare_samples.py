"""What happened between two samples: a pure function of what was known and what a new snapshot shows.

It takes rows of the raw tables, so it works as well on a recorded trace as on a live source.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from lagwise.tables.raw import COMMITS, GROUPS, MEMBERS, TOPICS, WATERMARKS
from lagwise_collectors.protocol import Snapshot
from lagwise_collectors.sample_diff import commit_rewinds as commit_changes
from lagwise_collectors.sample_diff.events import MOST_EVENTS, Event, as_rows
from lagwise_collectors.sample_diff.offset_skips import Readers, readers_now
from lagwise_collectors.sample_diff.rebalances import GroupView, group_events
from lagwise_collectors.sample_diff.topic_changes import TopicView, setting_events, topic_events


@dataclass(frozen=True, slots=True)
class PreviousSample:
    """What the samples so far have shown. Start with an empty one; it gives no events for the first sample."""

    groups: Mapping[str, GroupView] = field(default_factory=dict)
    topics: Mapping[str, TopicView] = field(default_factory=dict)
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    commits: pa.Table | None = None
    readers: Readers | None = None


@dataclass(frozen=True, slots=True)
class Differences:
    """What is known now, the rows of ``raw/events``, and how many events were left out for being too many."""

    known: PreviousSample
    rows: pa.Table
    dropped: int = 0


def differences(
    known: PreviousSample, snapshot: Snapshot, *, leave_out: Callable[[Event], bool] = lambda event: False
) -> Differences:
    """Compare a snapshot with what was known. A snapshot of a cluster that could not be read changes nothing.

    Events to ``leave_out`` are known from elsewhere.
    """
    groups = snapshot.rows(GROUPS)
    if groups.num_rows == 0 and snapshot.errors:
        return Differences(known, as_rows([], snapshot.cluster))
    first = known.commits is None
    events: list[Event] = []
    header = snapshot.header
    seen_at = header["watermarks_read_at"] or header["finished_at"]
    views, happened = group_events(known.groups, groups, snapshot.rows(MEMBERS), seen_at)
    events += [] if first else happened
    topics = topic_events(known.topics, snapshot.rows(WATERMARKS), seen_at)
    events += topics.events
    settings, changed = setting_events(known.settings, snapshot.rows(TOPICS), header["system"])
    events += changed
    commits = commit_changes.plain(snapshot.rows(COMMITS))
    commits_read_at = header["commits_read_at"] or header["finished_at"]
    readers, skips = readers_now(
        known.readers,
        commits,
        snapshot.rows(WATERMARKS),
        commits_read_at.timestamp(),
        header["interval_seconds"],
        left_out=topics.strange | _with_gaps(settings),
    )
    events += commit_changes.skip_events(commits, skips, commits_read_at)
    if known.commits is not None:
        unreadable = _with_error(groups)
        read = set(groups["group"].to_pylist()) - unreadable
        events += commit_changes.commit_events(
            known.commits,
            commits,
            commits_read_at,
            readable=read,
            strange_topics=topics.strange,
        )
        commits = commit_changes.carried_over(known.commits, commits, unreadable)
    events = [event for event in events if not leave_out(event)]
    told, dropped = events[:MOST_EVENTS], len(events[MOST_EVENTS:])
    return Differences(
        PreviousSample(views, topics.views, settings, commits, readers), as_rows(told, snapshot.cluster), dropped
    )


def _with_gaps(settings: Mapping[str, Mapping[str, Any]]) -> set[str]:
    """Topics whose offsets are not all records, by far: those that are compacted."""
    return {name for name, its in settings.items() if "compact" in its.get("cleanup_policy", "")}


def _with_error(groups: pa.Table) -> set[str]:
    rows = groups.select(["group", "error"]).to_pylist()
    return {row["group"] for row in rows if row["error"] is not None}
