"""Where the trouble of a group sits: in one partition, with one member, behind one broker, or in the group as a whole.

Ten stalled partitions are one problem where one member owns them. Found here is what the trouble has in common,
as far as it sets the partitions in trouble apart from those that are well.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from lagwise.domain.vocabulary import Status

#: Statuses in which nothing is read.
STANDING = frozenset({Status.STOPPED, Status.STALLED})
#: Statuses that somebody has to do something about.
TROUBLE = frozenset(
    {
        Status.LOSING_DATA,
        Status.AT_RISK,
        Status.STOPPED,
        Status.STALLED,
        Status.REWOUND,
        Status.FALLING_BEHIND,
        Status.LAGGING,
    }
)


class Scope(StrEnum):
    """What the partitions in trouble have in common."""

    PARTITION = "partition"
    MEMBER = "member"
    BROKER = "broker"
    GROUP = "group"


@dataclass(frozen=True, slots=True)
class Place:
    """How many partitions of a group have a status, by their owner and their leader."""

    status: Status
    #: The member's id; None is no member.
    owner: str | None
    #: A node id; None is not known.
    leader: int | None
    partitions: int
    #: How the owner is called ("client … on host …"), which several members may be.
    name: str | None = None
    #: Whether they are stopped or stalled, even if under a worse status.
    stands: bool = False


@dataclass(frozen=True, slots=True)
class Cause:
    """What the partitions in trouble have in common."""

    scope: Scope
    #: The member ("client … on host …", with its id where others are called the same) or the broker's node id; None for
    #: a group or a partition.
    name: str | None = None
    #: How many partitions the same member owns and gets on with, besides those in trouble.
    well: int = 0


def cause_of(status: Status, places: Iterable[Place]) -> Cause | None:
    """What the partitions of this status have in common; None where the status is no trouble, or nothing is known.

    The member comes before the broker: where one member's partitions are just those of one broker, the member is what
    can be checked, and restarted, first.
    """
    counted = [p for p in places if p.status is not Status.GHOST]
    ours = [p for p in counted if p.status is status]
    rest = [p for p in counted if p.status is not status]
    number = sum(p.partitions for p in ours)
    if status not in TROUBLE or not number:
        return None
    owners = {p.owner for p in ours}
    leaders = {p.leader for p in ours}
    well = 0
    owner = next(iter(owners))
    if len(owners) == 1 and owner is not None:
        well = sum(p.partitions for p in rest if p.owner == owner and not p.stands)
        if not well and any(p.owner not in (owner, None) for p in rest):
            return Cause(Scope.MEMBER, _name_of(owner, counted))
    if number == 1:
        return Cause(Scope.PARTITION, well=well)
    if len(leaders) == 1 and None not in leaders and None not in owners:
        (leader,) = leaders
        if rest and all(p.leader is not None and p.leader != leader for p in rest):
            return Cause(Scope.BROKER, str(leader))
    return Cause(Scope.GROUP, well=well)


def _name_of(owner: str, places: Iterable[Place]) -> str:
    """What a member is called, with its id where that is not the only one of the name: processes on one host often
    share the default client id."""
    called = {(p.owner, p.name) for p in places if p.owner is not None}
    name = next((name for member, name in called if member == owner and name is not None), None)
    if name is None:
        return owner
    is_shared = any(other == name for member, other in called if member != owner)
    return f"{name} (member {owner})" if is_shared else name
