"""A rebalance as the records show it, and as an event. In the former, topics may be ids and times are in ms."""

from dataclasses import dataclass
from datetime import UTC, datetime

from lagwise.domain.vocabulary import EventKind, EventSource
from lagwise_collectors.offsets_topic.rebalance_cause import MembershipChange, PartitionMoves
from lagwise_collectors.offsets_topic.records import OwnedPartitions
from lagwise_collectors.sample_diff.events import Event


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackedRebalance:
    """One rebalance of a group."""

    group: str
    at_ms: int
    #: Generation, or epoch of a KIP-848 group.
    generation: int
    #: The generation before it that was seen; more than one lower where some were never seen.
    before: int | None
    change: MembershipChange
    members: int
    moves: PartitionMoves | None
    duration_ms: int | None = None


def rebalance_event(rebalance: TrackedRebalance, topics: dict[str, str]) -> Event:
    """The event of a rebalance; ``topics`` are names by id."""
    change, moves = rebalance.change, rebalance.moves
    return Event(
        EventKind.REBALANCE,
        moment(rebalance.at_ms),
        rebalance.group,
        before=None if rebalance.before is None else str(rebalance.before),
        after=str(rebalance.generation),
        generation=rebalance.generation,
        source=EventSource.OFFSETS_TOPIC,
        cause=change.cause,
        joined=change.joined,
        left=change.left,
        failed=change.failed,
        members=rebalance.members,
        partitions_moved=None if moves is None else moves.count,
        moved=None if moves is None else _by_topic(moves.revoked, topics),
        duration_seconds=_seconds(rebalance.duration_ms),
        silent_seconds=_seconds(change.silent_ms),
        uncommitted_seconds=None if moves is None else _seconds(moves.uncommitted_ms),
        session_timeout_seconds=_seconds(change.session_ms),
        poll_interval_seconds=_seconds(change.poll_ms),
    )


def moment(ms: int) -> datetime:
    """A time of Kafka's. One that no calendar can hold (in a malformed record) becomes 1970."""
    try:
        return datetime.fromtimestamp(ms / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return datetime.fromtimestamp(0, UTC)


def _seconds(ms: int | None) -> float | None:
    return None if ms is None else ms / 1000


def _by_topic(owned: OwnedPartitions, topics: dict[str, str]) -> list[tuple[str, list[int]]]:
    found: dict[str, list[int]] = {}
    for topic, partition in owned:
        found.setdefault(topics.get(topic, topic), []).append(partition)
    return sorted(found.items())
