"""The rows of a trace as columns (:mod:`lagwise.domain.verdicts.columns`)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np

from lagwise.domain.verdicts.columns import MICROS, NULL, Array, Columns, taken
from lagwise.domain.verdicts.ownership import Membership, Names
from lagwise.domain.verdicts.retention import limits_of
from lagwise.domain.vocabulary import EventKind, GroupState
from lagwise.traces.csv_files import Row
from lagwise.traces.trace import Trace

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(seconds=1) / MICROS


class NameNumbers:
    """Numbers in the place of names, in the order of the names; -1 is null."""

    def __init__(self, names: Iterable[str | None]) -> None:
        self.names: list[str] = sorted({name for name in names if name is not None})
        self._numbers: dict[str | None, int] = {name: number for number, name in enumerate(self.names)} | {None: -1}

    def of(self, rows: Iterable[Row], column: str) -> Array:
        """The numbers of the names in a column."""
        return np.array([self._numbers[row.get(column)] for row in rows], np.int64)


@dataclass(frozen=True)
class TraceColumns:
    """A trace as columns. ``pairs`` has group, topic, partition and log of each group-partition, whose numbers stand in
    ``commits``; ``watermarks`` have the number of the log. A sample's number is its place in the trace."""

    groups: NameNumbers
    topics: NameNumbers
    members: NameNumbers
    pairs: Columns
    logs: int
    #: sample, pair, at, committed, next_record, committed_at, owner.
    commits: Columns
    #: sample, log, at, topic_id, log_start, high_watermark, last_stable, leader.
    watermarks: Columns
    #: topic, at, and the limits of a row of the topic's settings, in order of time.
    limits: Columns
    membership: Membership
    #: What sentences call a member ("client … on host …"), by sample, group and member; None where that is not known.
    clients: dict[tuple[int, int, int], str | None]


def columns_of(trace: Trace, events: Sequence[Row]) -> TraceColumns:
    """The trace, with the events that a collector would have recorded meanwhile."""
    rows = trace.rows
    commits, watermarks, members = rows["commits"], rows["watermarks"], rows["members"]
    assigned = [{**row, **part} for row in members for part in row["assignment"]]
    groups = NameNumbers(row["group"] for table in (commits, rows["groups"], members, events) for row in table)
    topics = NameNumbers(row["topic"] for table in (commits, watermarks, rows["topics"], assigned) for row in table)
    member_ids = NameNumbers([*(row["member_id"] for row in members), *(row["owner"] for row in commits)])
    places = [(topics.of(table, "topic"), _numbers(table, "partition")) for table in (commits, watermarks)]
    of_commits, of_watermarks = (np.stack(place) for place in places)
    logs, log = np.unique(np.concatenate([of_commits, of_watermarks], axis=1), axis=1, return_inverse=True)
    log = log.ravel()
    keys = np.stack([groups.of(commits, "group"), log[: len(commits)]])
    pairs, pair = np.unique(keys, axis=1, return_inverse=True)
    return TraceColumns(
        groups=groups,
        topics=topics,
        members=member_ids,
        pairs={"group": pairs[0], "log": pairs[1], "topic": logs[0][pairs[1]], "partition": logs[1][pairs[1]]},
        logs=logs.shape[1],
        commits={
            "sample": _samples(commits),
            "pair": pair.ravel(),
            "at": _times(commits, "sampled_at"),
            "committed": _numbers(commits, "committed"),
            "next_record": _numbers(commits, "next_record"),
            "committed_at": _times(commits, "committed_at"),
            "owner": member_ids.of(commits, "owner"),
        },
        watermarks={
            "sample": _samples(watermarks),
            "log": log[len(commits) :],
            "at": _times(watermarks, "sampled_at"),
            "topic_id": NameNumbers(row.get("topic_id") for row in watermarks).of(watermarks, "topic_id"),
            **{name: _numbers(watermarks, name) for name in ("log_start", "high_watermark", "last_stable", "leader")},
        },
        limits=_limits(rows["topics"], topics),
        membership=_membership(rows["groups"], members, assigned, events, groups, topics),
        clients=_clients(members, groups, member_ids),
    )


def _numbers(rows: Sequence[Row], name: str) -> Array:
    return np.array([NULL if (value := row.get(name)) is None else value for row in rows], np.int64)


def _times(rows: Sequence[Row], name: str) -> Array:
    times = (row.get(name) for row in rows)
    return np.array([NULL if at is None else micros_of(at) for at in times], np.int64)


def micros_of(at: datetime) -> int:
    """A time in microseconds since the epoch."""
    return (at - _EPOCH) // _MICROSECOND


def _samples(rows: Sequence[Row]) -> Array:
    return np.array([int(row["sample_id"]) for row in rows], np.int64)


def _limits(rows: Sequence[Row], topics: NameNumbers) -> dict[str, Array]:
    policies = [row.get("cleanup_policy") or "delete" for row in rows]
    settings = {
        **{name: _numbers(rows, name) for name in ("retention_ms", "retention_bytes", "segment_ms")},
        "deletes": np.array(["delete" in policy for policy in policies], bool),
        "compacts": np.array(["compact" in policy for policy in policies], bool),
    }
    limits = {"topic": topics.of(rows, "topic"), "at": _times(rows, "sampled_at"), **limits_of(settings)}
    return taken(limits, np.argsort(limits["at"], kind="stable"))


def _membership(
    described: Sequence[Row],
    members: Sequence[Row],
    assigned: Sequence[Row],
    events: Sequence[Row],
    groups: NameNumbers,
    topics: NameNumbers,
) -> Membership:
    states, types, errors = (NameNumbers(row.get(name) for row in described) for name in ("state", "type", "error"))
    of_groups = {
        "group": groups.of(described, "group"),
        "at": _times(described, "sampled_at"),
        "sample": _samples(described),
        "state": states.of(described, "state"),
        "type": types.of(described, "type"),
        "error": errors.of(described, "error"),
        "members": _numbers(described, "member_count"),
        "checkpointed_at": _times(described, "checkpointed_at"),
        "checkpoint_interval_seconds": np.array(
            [row.get("checkpoint_interval_seconds") for row in described], np.float64
        ),
    }
    happened = [event for event in events if event["group"] is not None]
    of_events = {
        "group": groups.of(happened, "group"),
        "at": _times(happened, "at"),
        "after": NameNumbers(event["after"] for event in happened).of(happened, "after"),
        "is_rebalance": np.array([event["kind"] == EventKind.REBALANCE for event in happened], bool),
        "is_change": np.array([event["kind"] == EventKind.STATE_CHANGED for event in happened], bool),
        "is_empty": np.array([event["after"] == GroupState.EMPTY for event in happened], bool),
    }
    order = np.lexsort((of_events.pop("after"), of_events["at"], of_events["group"]))
    return Membership(
        names=Names(states.names, types.names, errors.names),
        groups=taken(of_groups, np.lexsort((of_groups["at"], of_groups["group"]))),
        events=taken(of_events, order),
        members={
            "sample": _samples(members),
            "group": groups.of(members, "group"),
            "partitions": _numbers(members, "assigned_partitions"),
        },
        assigned={
            "sample": _samples(assigned),
            "group": groups.of(assigned, "group"),
            "topic": topics.of(assigned, "topic"),
        },
    )


def _clients(
    members: Sequence[Row], groups: NameNumbers, member_ids: NameNumbers
) -> dict[tuple[int, int, int], str | None]:
    columns = (_samples(members), groups.of(members, "group"), member_ids.of(members, "member_id"))
    keys = zip(*(column.tolist() for column in columns), strict=True)
    return {key: client_of(row) for key, row in zip(keys, members, strict=True)}


def client_of(member: Row) -> str | None:
    """A member by its client and host, as sentences name it; None where the client is not known."""
    if member["client_id"] is None:
        return None
    return f"client {member['client_id']}" + (f" on host {member['host']}" if member["host"] is not None else "")
