"""Classic groups: each record is the complete group as of one generation, written at the end of a rebalance.

No record has the start of a rebalance, so ``duration_seconds`` is null. The time without a commit on the moved
partitions (``uncommitted_seconds``) is an upper bound.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from lagwise.domain.vocabulary import RebalanceCause
from lagwise_collectors.offsets_topic.rebalance_cause import (
    CommitsOn,
    Members,
    TrackedMember,
    key_of,
    label_of,
    membership_change,
    partition_moves,
    widths_of,
)
from lagwise_collectors.offsets_topic.rebalance_events import TrackedRebalance
from lagwise_collectors.offsets_topic.records import ClassicGroup


@dataclass(frozen=True, slots=True)
class ClassicView:
    """A group as of its last record."""

    generation: int
    at_ms: int
    members: Members
    #: The most partitions that were ever assigned of each topic. In a cooperative rebalance some have no owner for a
    #: generation.
    widths: Mapping[str, int]


def view_of(record: ClassicGroup, at_ms: int, before: ClassicView | None) -> ClassicView:
    """The group as of this record."""
    members = {
        key_of(m.member_id, m.instance_id): TrackedMember(
            m.member_id, label_of(m.client_id, m.host), m.topics, m.owned, m.session_ms, m.poll_ms
        )
        for m in record.members
    }
    # A topic without subscribers is forgotten: it may come back with fewer partitions.
    wanted = {topic for member in members.values() for topic in member.topics}
    widths = {topic: width for topic, width in (before.widths if before else {}).items() if topic in wanted}
    for topic, width in widths_of(m.owned for m in members.values()).items():
        widths[topic] = max(widths.get(topic, 0), width)
    return ClassicView(record.generation, at_ms, members, widths)


def rebalance(group: str, before: ClassicView | None, now: ClassicView, commits: CommitsOn) -> TrackedRebalance | None:
    """The rebalance between two records; None where there was none.

    ``before`` is None for a group that did not exist. A group whose members are unknown was not rebalanced.
    """
    old: Members = before.members if before is not None else {}
    since_ms = before.at_ms if before is not None else now.at_ms
    if not old and not now.members:
        return None
    grown = before is not None and bool(old) and _grown(before, now)
    # After the last member is gone, the coordinator does not wait, so the time is exact.
    change = membership_change(
        old, now.members, since_ms=since_ms, at_ms=now.at_ms, commits=commits, exact=not now.members, grown=grown
    )
    if before is not None and before.generation == now.generation:
        if change.cause is None and old == now.members:
            return None  # written again, as after a change of the coordinator's format
    elif change.cause is RebalanceCause.GROUP_APPEARED and before is not None and before.generation > 0:
        # It had members before, though not just now: a new group's first record is generation 0, without members.
        change = replace(change, cause=RebalanceCause.MEMBER_JOINED)
    elif change.cause is None:
        change = replace(change, cause=RebalanceCause.REJOINED)
    return TrackedRebalance(
        group=group,
        at_ms=now.at_ms,
        generation=now.generation,
        before=None if before is None else before.generation,
        change=change,
        members=len(now.members),
        moves=partition_moves(old, now.members, at_ms=now.at_ms, commits=commits),
    )


def _grown(before: ClassicView, now: ClassicView) -> bool:
    """A topic that was subscribed to before is wider now."""
    wanted = {topic for member in before.members.values() for topic in member.topics}
    return any(width > before.widths.get(topic, 0) for topic, width in now.widths.items() if topic in wanted)
