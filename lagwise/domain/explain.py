"""Why a group has its status, in one sentence with numbers: what a page, a webhook and a terminal show.

Names in it (topics, clients, hosts) are as the cluster reports them; whoever shows the sentence escapes it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from lagwise.domain.humanise import count, duration, plural, rate
from lagwise.domain.parts import PartitionsInStatus, total
from lagwise.domain.vocabulary import Status, UnknownReason

#: More owners than this are not named.
_MOST_OWNERS = 2


@dataclass(frozen=True, slots=True)
class _Subject:
    """Those partitions that have the group's status, ready to be spoken of."""

    parts: Sequence[PartitionsInStatus]
    of: int

    @property
    def number(self) -> int:
        return sum(p.partitions for p in self.parts)

    @property
    def name(self) -> str:
        """``3 of 12 partitions``, ``all 12 partitions``, ``1 of 12 partitions (orders-3)``, ``the only partition``."""
        if self.of == 1:
            return "the only partition"
        if self.number == self.of:
            return f"all {self.of} partitions"
        which = f" ({_worst(self.parts)})" if self.number == 1 else ""
        return f"{self.number} of {self.of} partitions{which}"

    @property
    def start(self) -> str:
        """The name at the start of a sentence."""
        return self.name[0].upper() + self.name[1:]

    def verb(self, one: str, many: str) -> str:
        return one if self.number == 1 else many

    @property
    def records(self) -> str:
        """``41.2 k records wait``."""
        lag = total(p.lag for p in self.parts) or 0
        return "1 record waits" if lag == 1 else f"{count(lag)} records wait"

    @property
    def age(self) -> str:
        """How old the oldest unread record is."""
        known = [(p.lag_seconds, p.lag_seconds_is_lower_bound) for p in self.parts if p.lag_seconds is not None]
        seconds, is_bound = max(known, default=(None, False))
        return duration(seconds, lower_bound=is_bound)

    @property
    def unmoved(self) -> str:
        return duration(max((p.unmoved_seconds for p in self.parts if p.unmoved_seconds is not None), default=None))

    @property
    def owners(self) -> str:
        """``its owner is client billing-2 on host 10.0.0.7``."""
        owners = sorted({owner for p in self.parts for owner in p.owners})
        whose = self.verb("its", "their")
        if len(owners) == 1:
            return f"{whose} owner is {owners[0]}"
        if 1 < len(owners) <= _MOST_OWNERS:
            return f"{whose} owners are {' and '.join(owners)}"
        return f"{self.verb('a member owns', 'members own')} {self.verb('it', 'them')}"


def explain(
    status: Status,
    reason: UnknownReason | None,
    parts: Sequence[PartitionsInStatus],
    *,
    members: int | None,
    idle_members: int,
) -> str:
    """The sentence about a group whose partitions are ``parts`` and whose status follows from them."""
    counted = [p for p in parts if p.status is not Status.GHOST]
    ours = [p for p in counted if p.status is status and p.reason is reason]
    who = _Subject(ours, sum(p.partitions for p in counted))
    match status:
        case Status.LOSING_DATA:
            return _losing_data(who)
        case Status.AT_RISK:
            return _at_risk(who)
        case Status.STOPPED:
            cause = f"no member owns {who.verb('it', 'them')}" if members else "the group has no members"
            return f"{_standing(who)}; {cause}."
        case Status.STALLED:
            return f"{_standing(who)}; {who.owners}."
        case Status.REWOUND:
            return (
                f"The committed offset of {who.name} went back and is not yet past where it was; "
                f"{who.records} to be read, for the first time or again."
            )
        case Status.FALLING_BEHIND:
            return _falling_behind(who)
        case Status.LAGGING:
            return (
                f"{who.start} {who.verb('stays', 'stay')} behind: {who.records}, the oldest for {who.age}, "
                "and that neither grows nor shrinks."
            )
        case Status.CATCHING_UP:
            return _catching_up(who)
        case Status.OK:
            return f"Keeps pace on {who.name}{_idle(idle_members, members or 0)}."
        case Status.GHOST | Status.UNKNOWN:
            return _unknown(who, reason or UnknownReason.NO_COMMIT)


def _standing(who: _Subject) -> str:
    return f"{who.start} {who.verb('has', 'have')} committed nothing for {who.unmoved} while {who.records}"


def _losing_data(who: _Subject) -> str:
    lost = sum(p.records_lost for p in who.parts)
    others = who.number - 1
    where = _worst(who.parts) + (f" and {plural(others, 'more partition')}" if others else "")
    rest = f"{who.records}, the oldest for {who.age}" if total(p.lag for p in who.parts) else "nothing else waits"
    was = "record was" if lost == 1 else "records were"
    return f"{count(lost)} {was} deleted before this group read {'it' if lost == 1 else 'them'} ({where}); {rest}."


def _at_risk(who: _Subject) -> str:
    soonest = min((p.seconds_to_loss for p in who.parts if p.seconds_to_loss is not None), default=None)
    when = f"in {duration(soonest)}" if soonest else "at any moment"
    if not total(p.lag for p in who.parts):
        return f"The committed offsets of {who.name} expire {when}, because the group has no members."
    return f"{who.start} will lose unread records {when} at today's rates; {who.records}, the oldest for {who.age}."


def _falling_behind(who: _Subject) -> str:
    produced = total(p.produce_rate_per_second for p in who.parts)
    consumed = total(p.consume_rate_per_second for p in who.parts)
    growth = total(p.lag_slope_per_second for p in who.parts)
    return (
        f"Lag on {who.name} grows by {rate(growth)} records/s ({rate(produced)} written, {rate(consumed)} read per "
        f"second); {who.records}, the oldest for {who.age}."
    )


def _catching_up(who: _Subject) -> str:
    longest = max((p.seconds_to_catch_up for p in who.parts if p.seconds_to_catch_up is not None), default=None)
    until = f", until about {duration(longest)} from now at today's rates" if longest is not None else ""
    return f"Catching up on {who.name}: {who.records}{until}."


def _idle(idle_members: int, members: int) -> str:
    if not idle_members:
        return ""
    return f"; {idle_members} of {plural(members, 'member')} {'has' if idle_members == 1 else 'have'} nothing to do"


def _unknown(who: _Subject, reason: UnknownReason) -> str:
    match reason:
        case UnknownReason.UNREADABLE:
            return f"{who.start} could not be read; the collector's health page says why."
        case UnknownReason.EXPIRED:
            return f"The committed offsets of {who.name} are gone: they expired, or somebody deleted them."
        case UnknownReason.NO_COMMIT:
            where = f" on {who.name}" if who.number else ""
            return f"Nothing was ever committed{where}, so nobody can tell how far this group is."
        case UnknownReason.RECREATED:
            return f"The topic of {who.name} was deleted and created again, and nothing is committed on the new one."
        case UnknownReason.OUT_OF_RANGE:
            return (
                f"The committed offset of {who.name} lies beyond the end of the log: the log was cut off, "
                "or the commit was meant for another."
            )
        case UnknownReason.NOT_COMMITTING:
            return f"{who.start} {who.verb('is', 'are')} read by an engine that does not commit to the broker."
        case UnknownReason.REBALANCING:
            return f"The group keeps rebalancing, so it is not settled who reads {who.name}."
        case UnknownReason.TOO_FEW_SAMPLES:
            return f"There are too few samples of {who.name} yet to tell where the lag is going."


def _worst(parts: Sequence[PartitionsInStatus]) -> str:
    worst = max(parts, key=lambda p: (p.records_lost, p.lag_seconds or 0.0))
    return f"{worst.worst_topic}-{worst.worst_partition}"
