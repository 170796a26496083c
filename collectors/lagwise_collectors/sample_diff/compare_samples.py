"""Compares a snapshot with what the samples before it have shown: a pure function that returns events.

It takes rows of the raw tables, so it works on a recorded trace as well as on a live source.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from lagwise.tables.raw import COMMITS, GROUPS, MEMBERS, TOPICS, WATERMARKS
from lagwise_collectors.protocol import ErrorTally, Snapshot
from lagwise_collectors.sample_diff import commit_changes
from lagwise_collectors.sample_diff.events import Event, as_rows, bounded
from lagwise_collectors.sample_diff.leader_changes import bounded_moves, known_leaders, leader_events
from lagwise_collectors.sample_diff.offset_skips import ReaderPaces, update_paces
from lagwise_collectors.sample_diff.rebalances import GroupView, group_events
from lagwise_collectors.sample_diff.topic_changes import TopicView, setting_events, topic_events


@dataclass(frozen=True, slots=True)
class PreviousSample:
    """What the samples so far have shown. An empty one is the start: the first sample has no events."""

    groups: Mapping[str, GroupView] = field(default_factory=dict)
    topics: Mapping[str, TopicView] = field(default_factory=dict)
    #: Topic settings by topic and column of ``raw/topics``.
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    #: Key and committed offset of each group-partition; None before the first sample.
    commits: pa.Table | None = None
    paces: ReaderPaces | None = None
    #: Leader of each partition; None before the first sample.
    leaders: pa.Table | None = None


@dataclass(frozen=True, slots=True)
class SampleDiff:
    """The result of a comparison."""

    #: To compare the next sample with.
    latest: PreviousSample
    #: Rows of ``raw/events``.
    rows: pa.Table
    #: Counts the events that were left out because there were too many, those of leaders excepted.
    errors: ErrorTally


def compare_samples(
    previous: PreviousSample, snapshot: Snapshot, *, leave_out: Callable[[Event], bool] = lambda event: False
) -> SampleDiff:
    """Compare a snapshot with the samples before. A snapshot of a cluster that could not be read changes nothing.

    Events to ``leave_out`` are reported by another source.
    """
    groups = snapshot.rows(GROUPS)
    if groups.num_rows == 0 and snapshot.errors:
        return SampleDiff(previous, as_rows([], snapshot.cluster), ErrorTally())
    is_first = previous.commits is None
    events: list[Event] = []
    header = snapshot.header
    seen_at = header["watermarks_read_at"] or header["finished_at"]
    views, group_changes = group_events(previous.groups, groups, snapshot.rows(MEMBERS), seen_at)
    events += [] if is_first else group_changes
    topics = topic_events(previous.topics, snapshot.rows(WATERMARKS), seen_at)
    events += topics.events
    settings, changed = setting_events(previous.settings, snapshot.rows(TOPICS), header["system"])
    events += changed
    commits = commit_changes.plain_commits(snapshot.rows(COMMITS))
    commits_read_at = header["commits_read_at"] or header["finished_at"]
    paces, skips = update_paces(
        previous.paces,
        commits,
        snapshot.rows(WATERMARKS),
        commits_read_at.timestamp(),
        header["interval_seconds"],
        left_out=topics.unusable | _with_gaps(settings),
    )
    events += commit_changes.skip_events(commits, skips, commits_read_at)
    if previous.commits is not None:
        unreadable = snapshot.unreadable_groups
        read = set(groups["group"].to_pylist()) - unreadable
        events += commit_changes.commit_events(
            previous.commits,
            commits,
            commits_read_at,
            readable=read,
            unusable_topics=topics.unusable,
        )
        commits = commit_changes.carried_over(previous.commits, commits, unreadable)
    events = [event for event in events if not leave_out(event)]
    leaders = known_leaders(previous.leaders, snapshot.rows(WATERMARKS))
    if previous.leaders is not None:
        # Last: a broker that restarts moves leaders of every topic.
        moves = leader_events(previous.leaders, leaders, seen_at, unusable_topics=topics.unusable)
        events += bounded_moves(moves, len(events), snapshot.cluster)
    errors = ErrorTally()
    rows = as_rows(bounded(events, errors), snapshot.cluster)
    return SampleDiff(PreviousSample(views, topics.views, settings, commits, paces, leaders), rows, errors)


def _with_gaps(settings: Mapping[str, Mapping[str, Any]]) -> set[str]:
    """Compacted topics: many of their offsets have no record."""
    return {name for name, one in settings.items() if "compact" in one.get("cleanup_policy", "")}
