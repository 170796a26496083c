"""Detects rebalances, changes of state and groups that are gone, from the groups and members of two samples."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import pyarrow as pa

from lagwise.domain.vocabulary import (
    BROADCASTING,
    REBALANCING_STATES,
    ROCKETMQ_RETRY,
    EventKind,
    GroupState,
    RebalanceCause,
)
from lagwise_collectors.sample_diff.events import Event

_NO_STATE = frozenset({None, GroupState.UNKNOWN.value})
_UNSETTLED = frozenset(state.value for state in REBALANCING_STATES)


@dataclass(frozen=True, slots=True)
class Membership:
    """The members of a group, and what they own.

    A member's key is its static instance id where it has one: a static member that restarts gets a new member id and
    is still the same member.
    """

    #: Client id and host, as text, by member key.
    labels: Mapping[str, str]
    #: Member key by topic and partition.
    owners: Mapping[tuple[str, int], str]


@dataclass(frozen=True, slots=True)
class GroupView:
    """A group as it was when it could last be read."""

    state: str
    #: As of the last rebalance that was reported: joins and leaves are counted from there.
    reported: Membership
    #: As of the last stable sample: moves are counted from there, because no partition has an owner during a rebalance.
    settled: Membership
    #: The first sample of the rebalance that is under way.
    unsettled_since: datetime | None = None


_NO_MEMBERS = Membership({}, {})


def group_events(
    previous: Mapping[str, GroupView], groups: pa.Table, members: pa.Table, seen_at: datetime
) -> tuple[dict[str, GroupView], list[Event]]:
    """The new views of all groups, and the events since the previous ones.

    A group that could not be read keeps its view. One that has no row any more is gone; ``seen_at`` dates that event.
    """
    memberships = _memberships(members)
    views: dict[str, GroupView] = {}
    events: list[Event] = []
    for row in groups.select(["group", "sampled_at", "state", "error", "type", "source"]).to_pylist():
        name, at, state = row["group"], row["sampled_at"], row["state"]
        before = previous.get(name)
        if row["error"] is not None or state in _NO_STATE:
            if before is not None:
                views[name] = before
            continue
        # Groups with external offsets have no group protocol: a restarted job is a new owner, but no rebalance.
        # A broadcasting group has real members, wherever its offsets come from.
        has_members = row["source"] is None or row["type"] == BROADCASTING
        now = memberships.get(name, _NO_MEMBERS) if has_members else _NO_MEMBERS
        if before is None:
            views[name] = GroupView(state, now, now, at if state in _UNSETTLED else None)
            if now.labels:
                joined = sorted(now.labels.values())
                events.append(
                    Event(EventKind.REBALANCE, at, name, cause=RebalanceCause.GROUP_APPEARED, joined=joined, left=[])
                )
            continue
        views[name], changes = _compare(name, before, state, now, at)
        events += changes
    gone = [name for name in previous if name not in views]
    events += [Event(EventKind.GROUP_GONE, seen_at, name, before=previous[name].state) for name in gone]
    return views, events


def _compare(name: str, before: GroupView, state: str, now: Membership, at: datetime) -> tuple[GroupView, list[Event]]:
    events = []
    if state != before.state:
        events.append(Event(EventKind.STATE_CHANGED, at, name, before=before.state, after=state))
    joined = sorted(label for key, label in now.labels.items() if key not in before.reported.labels)
    left = sorted(label for key, label in before.reported.labels.items() if key not in now.labels)
    if state in _UNSETTLED:
        if before.unsettled_since is None:
            return replace(before, state=state, unsettled_since=at), events
        if joined or left:
            # A group whose members keep coming and going never settles: report each such change.
            seconds = (at - before.unsettled_since).total_seconds()
            events.append(
                Event(
                    EventKind.REBALANCE,
                    at,
                    name,
                    cause=RebalanceCause.UNFINISHED,
                    joined=joined,
                    left=left,
                    duration_seconds=seconds,
                )
            )
            return replace(before, state=state, reported=now), events
        return replace(before, state=state), events
    if joined or left or before.unsettled_since is not None or now.owners != before.settled.owners:
        since = before.unsettled_since
        events.append(
            Event(
                EventKind.REBALANCE,
                at,
                name,
                cause=_cause(joined, left),
                joined=joined,
                left=left,
                members=len(now.labels),
                partitions_moved=_moved(before.settled.owners, now.owners),
                duration_seconds=None if since is None else (at - since).total_seconds(),
            )
        )
    return GroupView(state, now, now), events


def _cause(joined: list[str], left: list[str]) -> RebalanceCause | None:
    """The cause as far as two samples show it: who joined and who left, not why."""
    if left:
        return RebalanceCause.MEMBER_GONE
    return RebalanceCause.MEMBER_JOINED if joined else None


def _moved(before: Mapping[tuple[str, int], str], now: Mapping[tuple[str, int], str]) -> int:
    """How many partitions have another owner now, including those that gained or lost one."""
    return sum(before.get(tp) != now.get(tp) for tp in before.keys() | now.keys())


def _memberships(members: pa.Table) -> dict[str, Membership]:
    memberships: dict[str, tuple[dict[str, str], dict[tuple[str, int], str]]] = {}
    columns = ["group", "member_id", "client_id", "host", "static_instance_id", "assignment"]
    for row in members.select(columns).to_pylist():
        labels, owners = memberships.setdefault(row["group"], ({}, {}))
        static = row["static_instance_id"]
        key = f"static {static}" if static else f"member {row['member_id']}"
        labels[key] = f"{row['client_id']} ({row['host']})"
        # RocketMQ's clients take over their group's retry topic some time after they started: that is no rebalance.
        owners.update((pair, key) for pair in _pairs(row["assignment"]) if not pair[0].startswith(ROCKETMQ_RETRY))
    return {name: Membership(labels, owners) for name, (labels, owners) in memberships.items()}


def _pairs(assignment: list[dict[str, Any]]) -> Iterator[tuple[str, int]]:
    for entry in assignment:
        for partition in entry["partitions"]:
            yield entry["topic"], partition
