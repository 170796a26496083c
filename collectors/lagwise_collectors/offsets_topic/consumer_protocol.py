"""KIP-848 groups: a record per member and step.

A rebalance begins with the record of a new epoch and ends when every member has its target assignment of that epoch, so
its duration is exact. Where the next epoch begins before that, the rebalance never ended and has no duration.
"""

from dataclasses import dataclass, field, replace

from lagwise.domain.vocabulary import RebalanceCause
from lagwise_collectors.offsets_topic.rebalance_cause import (
    CommitsOn,
    Members,
    MembershipChange,
    TrackedMember,
    key_of,
    label_of,
    membership_change,
    partition_moves,
    widths_of,
)
from lagwise_collectors.offsets_topic.rebalance_events import TrackedRebalance
from lagwise_collectors.offsets_topic.records import CurrentAssignment, GroupMember, OwnedPartitions

#: Epochs of members that left, or (static ones) left for a while, are below this.
_PRESENT = 0
_NEW = -1


@dataclass(slots=True)
class ConsumerGroup:
    """A KIP-848 group. It is fed records in their order; methods return the rebalances that ended."""

    #: Epoch of the group: it rises with every change that starts a rebalance.
    epoch: int = _NEW
    #: Epoch of the newest target assignment; while there are members, a rebalance ends only once it equals ``epoch``.
    target_epoch: int = _NEW
    #: Metadata (subscription, client) by member id.
    members: dict[str, GroupMember] = field(default_factory=dict)
    #: Target assignment by member id: what each member is to own.
    targets: dict[str, OwnedPartitions] = field(default_factory=dict)
    #: Current assignment by member id: what each member owns, and its epoch.
    current: dict[str, CurrentAssignment] = field(default_factory=dict)
    #: Members and what they owned as of the last rebalance that was reported.
    reported: Members = field(default_factory=dict)
    #: Epoch of the last rebalance that was reported; None: none was.
    reported_epoch: int | None = None
    #: Start of the last rebalance that ended: all its members have been alive since, in ms since 1970.
    agreed_ms: int = 0
    #: Partitions of each topic, as far as they are assigned.
    widths: dict[str, int] = field(default_factory=dict)
    #: Start of the rebalance under way, in ms since 1970; None: there is none.
    opened_ms: int | None = None
    #: The change that caused the rebalance under way; None: there is none.
    change: MembershipChange | None = None
    #: The members that share the partitions in the rebalance under way, as of its start.
    sharers: Members = field(default_factory=dict)
    #: The broker's session timeout, from its settings, because no record has it; None: unknown.
    session_ms: int | None = None
    #: The broker's heartbeat interval, from its settings, because no record has it; 0: unknown.
    heartbeat_ms: int = 0

    def put_member(self, group: str, member_id: str, member: GroupMember, at_ms: int) -> TrackedRebalance | None:
        """A member's metadata. A static member that comes back does so under a new id, and without a new epoch."""
        key = key_of(member_id, member.instance_id)
        self.members[member_id] = member
        known = self.reported.get(key)
        if member.instance_id is None or known is None or known.member_id == member_id:
            return None
        label = label_of(member.client_id, member.host)
        self.reported = {**self.reported, key: replace(known, member_id=member_id, label=label)}
        change = MembershipChange(
            RebalanceCause.STATIC_MEMBER_RETURNED, session_ms=self.session_ms, poll_ms=member.poll_ms
        )
        return TrackedRebalance(
            group=group,
            at_ms=at_ms,
            generation=self.epoch,
            before=self.epoch,
            change=change,
            members=len(self.reported),
            moves=None,
        )

    def begin(self, group: str, epoch: int, at_ms: int, commits: CommitsOn) -> TrackedRebalance | None:
        """A new epoch. Returns the rebalance that it overtakes, if there is one."""
        if epoch == self.epoch:
            return None
        overtaken = self._close_rebalance(group, at_ms, commits) if self.opened_ms is not None else None
        self.sharers = self._present()
        self.change = membership_change(
            self.reported,
            self.sharers,
            since_ms=self.agreed_ms,
            at_ms=at_ms,
            commits=commits,
            exact=True,
            early_ms=self.heartbeat_ms,
        )
        if self.reported_epoch is not None and self.change.cause is RebalanceCause.GROUP_APPEARED:
            self.change = replace(self.change, cause=RebalanceCause.MEMBER_JOINED)
        self.epoch, self.opened_ms = epoch, at_ms
        return overtaken

    def end(self, group: str, at_ms: int, commits: CommitsOn) -> TrackedRebalance | None:
        """The rebalance under way, if it has ended: all members have their target assignment."""
        if self.opened_ms is None or (self.target_epoch != self.epoch and self.members):
            return None
        for member_id in self.members:
            now = self.current.get(member_id)
            if now is None or (now.epoch >= _PRESENT and (now.epoch != self.epoch or not now.settled)):
                return None
        return self._close_rebalance(group, at_ms, commits, over=True)

    def _close_rebalance(self, group: str, at_ms: int, commits: CommitsOn, *, over: bool = False) -> TrackedRebalance:
        assert self.change is not None
        assert self.opened_ms is not None
        now = self._present()
        if not over:  # who joined or changed since then belongs to the next rebalance
            now = {key: replace(m, owned=now[key].owned) if key in now else m for key, m in self.sharers.items()}
        widths = widths_of(self.targets.values())
        change = self.change
        if (
            change.cause is None
            and any(widths[topic] > self.widths.get(topic, 0) for topic in widths)
            and self.reported
        ):
            change = replace(change, cause=RebalanceCause.PARTITIONS_ADDED)
        rebalance = TrackedRebalance(
            group=group,
            at_ms=self.opened_ms,
            generation=self.epoch,
            before=self.reported_epoch,
            change=change,
            members=len(now),
            moves=partition_moves(self.reported, now, at_ms=at_ms, commits=commits),
            duration_ms=at_ms - self.opened_ms if over else None,
        )
        self.reported, self.reported_epoch, self.widths = now, self.epoch, widths
        if over:  # only then has every member shown that it is alive
            self.agreed_ms = self.opened_ms
        self.opened_ms, self.change, self.sharers = None, None, {}
        return rebalance

    def settle(self, at_ms: int) -> None:
        """End reading without events: the present members count as reported. The newest epoch began at ``at_ms``."""
        self.reported, self.reported_epoch, self.agreed_ms = self._present(), self.epoch, at_ms
        self.widths = widths_of(self.targets.values())
        self.opened_ms, self.change, self.sharers = None, None, {}

    def _present(self) -> Members:
        found = {}
        for member_id, member in self.members.items():
            current = self.current.get(member_id)
            found[key_of(member_id, member.instance_id)] = TrackedMember(
                member_id,
                label_of(member.client_id, member.host),
                member.topics,
                current.owned if current is not None else (),
                self.session_ms,
                member.poll_ms,
            )
        return found
