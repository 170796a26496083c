"""What happened in groups: rebalances, changes of state, groups that are gone."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

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
    """Who is in a group, and who owns what. Members go by their static instance id where they have one: a static
    member that restarts gets a new member id and is still the same."""

    labels: Mapping[str, str]
    owners: Mapping[tuple[str, int], str]


@dataclass(frozen=True, slots=True)
class GroupView:
    """A group as it was when it could last be read.

    ``told`` is the membership as of the last rebalance that was told (joins and leaves are counted from there),
    ``settled`` the one of the last settled sample (moves are counted from there: while a group rebalances nobody owns
    anything), ``unsettled_since`` the first sample of the rebalance that is under way.
    """

    state: str
    told: Membership
    settled: Membership
    unsettled_since: datetime | None = None


_NOBODY = Membership({}, {})


def group_events(
    known: Mapping[str, GroupView], groups: pa.Table, members: pa.Table, seen_at: datetime
) -> tuple[dict[str, GroupView], list[Event]]:
    """The new views of all groups, and what happened since the old ones.

    A group that could not be read keeps its old view; one that has no row any more is gone, as seen at ``seen_at``.
    """
    memberships = _memberships(members)
    views: dict[str, GroupView] = {}
    events: list[Event] = []
    for row in groups.select(["group", "sampled_at", "state", "error", "type", "source"]).to_pylist():
        name, at, state = row["group"], row["sampled_at"], row["state"]
        before = known.get(name)
        if row["error"] is not None or state in _NO_STATE:
            if before is not None:
                views[name] = before
            continue
        # A job that is started anew is another owner, and no rebalance: there is no group protocol. Members of a
        # broadcasting group are members, wherever it is told how far they are.
        has_members = row["source"] is None or row["type"] == BROADCASTING
        now = memberships.get(name, _NOBODY) if has_members else _NOBODY
        if before is None:
            views[name] = GroupView(state, now, now, at if state in _UNSETTLED else None)
            if now.labels:
                joined = sorted(now.labels.values())
                events.append(
                    Event(EventKind.REBALANCE, at, name, cause=RebalanceCause.GROUP_APPEARED, joined=joined, left=[])
                )
            continue
        views[name], happened = _compare(name, before, state, now, at)
        events += happened
    gone = [name for name in known if name not in views]
    events += [Event(EventKind.GROUP_GONE, seen_at, name, before=known[name].state) for name in gone]
    return views, events


def _compare(name: str, before: GroupView, state: str, now: Membership, at: datetime) -> tuple[GroupView, list[Event]]:
    events = []
    if state != before.state:
        events.append(Event(EventKind.STATE_CHANGED, at, name, before=before.state, after=state))
    joined = sorted(label for key, label in now.labels.items() if key not in before.told.labels)
    left = sorted(label for key, label in before.told.labels.items() if key not in now.labels)
    if state in _UNSETTLED:
        if before.unsettled_since is None:
            return replace(before, state=state, unsettled_since=at), events
        if joined or left:
            # Still, or again: a group whose members come and go without end never settles, but it is seen.
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
            return replace(before, state=state, told=now), events
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
    """What two samples tell of the cause: who came and who went, not why."""
    if left:
        return RebalanceCause.MEMBER_GONE
    return RebalanceCause.MEMBER_JOINED if joined else None


def _moved(before: Mapping[tuple[str, int], str], now: Mapping[tuple[str, int], str]) -> int:
    """Partitions whose owner is another one now, or that gained or lost one."""
    return sum(before.get(tp) != now.get(tp) for tp in before.keys() | now.keys())


def _memberships(members: pa.Table) -> dict[str, Membership]:
    found: dict[str, tuple[dict[str, str], dict[tuple[str, int], str]]] = {}
    columns = ["group", "member_id", "client_id", "host", "static_instance_id", "assignment"]
    for row in members.select(columns).to_pylist():
        labels, owners = found.setdefault(row["group"], ({}, {}))
        static = row["static_instance_id"]
        key = f"static {static}" if static else f"member {row['member_id']}"
        labels[key] = f"{row['client_id']} ({row['host']})"
        # RocketMQ's clients take on their group's own retries some time after they began: nobody gave anything up.
        owners.update((pair, key) for pair in _pairs(row["assignment"]) if not pair[0].startswith(ROCKETMQ_RETRY))
    return {name: Membership(labels, owners) for name, (labels, owners) in found.items()}


def _pairs(assignment: list[dict[str, object]]) -> Iterator[tuple[str, int]]:
    for entry in assignment:
        topic, partitions = entry["topic"], entry["partitions"]
        assert isinstance(topic, str)
        assert isinstance(partitions, list)
        for partition in partitions:
            yield topic, partition
