"""What the records tell, before it becomes rows: topics may still go by their ids here, and times are in ms."""

from dataclasses import dataclass
from datetime import UTC, datetime

from lagwise.domain.vocabulary import EventKind, EventSource
from lagwise_collectors.offsets_topic.rebalance_cause import MembershipChange, Moves
from lagwise_collectors.offsets_topic.records import Owned
from lagwise_collectors.sample_diff.events import Event


@dataclass(frozen=True, slots=True)
class TrackedRebalance:
    """One rebalance of a group. ``before`` and ``generation`` are more than one apart where some were never seen."""

    group: str
    at_ms: int
    generation: int
    before: int | None
    change: MembershipChange
    members: int
    moves: Moves | None
    duration_ms: int | None = None


def rebalance_event(happened: TrackedRebalance, topics: dict[str, str]) -> Event:
    """The event of a rebalance; ``topics`` are names by id."""
    change, moves = happened.change, happened.moves
    return Event(
        EventKind.REBALANCE,
        moment(happened.at_ms),
        happened.group,
        before=None if happened.before is None else str(happened.before),
        after=str(happened.generation),
        generation=happened.generation,
        source=EventSource.OFFSETS_TOPIC,
        cause=change.cause,
        joined=change.joined,
        left=change.left,
        failed=change.failed,
        members=happened.members,
        partitions_moved=None if moves is None else moves.count,
        moved=None if moves is None else _by_topic(moves.taken, topics),
        duration_seconds=_seconds(happened.duration_ms),
        silent_seconds=_seconds(change.silent_ms),
        uncommitted_seconds=None if moves is None else _seconds(moves.uncommitted_ms),
        session_timeout_seconds=_seconds(change.session_ms),
        poll_interval_seconds=_seconds(change.poll_ms),
    )


def moment(ms: int) -> datetime:
    """A time of Kafka's. What no calendar can hold (from garbage) is its beginning."""
    try:
        return datetime.fromtimestamp(ms / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return datetime.fromtimestamp(0, UTC)


def _seconds(ms: int | None) -> float | None:
    return None if ms is None else ms / 1000


def _by_topic(owned: Owned, topics: dict[str, str]) -> list[tuple[str, list[int]]]:
    found: dict[str, list[int]] = {}
    for topic, partition in owned:
        found.setdefault(topics.get(topic, topic), []).append(partition)
    return sorted(found.items())
