"""Why a group has its status, in one sentence with numbers: what a page, a webhook and a terminal show.

Names in it (topics, clients, hosts) are as the cluster reports them; whoever shows the sentence escapes it.
"""

from collections.abc import Callable, Sequence

from lagwise.domain.causes import Cause, Scope
from lagwise.domain.forecast import Forecast
from lagwise.domain.humanise import ago, count, duration, in_brackets, plural, rate
from lagwise.domain.no_reader import why_nobody_reads
from lagwise.domain.partition_rollup import PartitionsInStatus, first_loss, last_catch_up, soonest_breach, total
from lagwise.domain.subject import Subject, worst_of
from lagwise.domain.vocabulary import LossCause, Status, UnknownReason

#: What waits is told of a group that keeps pace from so many records, or such an age, on.
_MANY_RECORDS = 10_000
_LONG_SECONDS = 60.0

_COORDINATOR_CHANGES = "its coordinator is changing; the next sample usually succeeds"
#: Why a group could not be read and what to do, by the kind that collectors give the error. A kind that is not here is
#: shown as it is.
_GROUP_ERRORS = {
    "group_not_authorized": "the collector's account may not see it; grant the account Describe on the group, or leave "
    "the group out by groups.exclude",
    "topic_not_authorized": "the collector's account may not see one of its topics; grant the account Describe on them",
    "timeout": "its coordinator did not answer in time; if that lasts, see whether the brokers are well",
    "unreachable": "its coordinator cannot be reached; see whether the brokers run",
    "coordinator_moved": _COORDINATOR_CHANGES,
    "coordinator_loading": _COORDINATOR_CHANGES,
    "coordinator_not_available": _COORDINATOR_CHANGES,
    "elsewhere_timeout": "where its offsets are kept did not answer in time; see how that is, or raise the "
    "timeout_seconds of the source in external_offsets",
    "elsewhere_unreachable": "where its offsets are kept cannot be reached; see whether that runs",
    "elsewhere_refused": "the collector is not let in where its offsets are kept; check the secret and the rights of "
    "the source in external_offsets",
    "elsewhere_missing": "where its offsets are kept there is nothing any more; check the source in external_offsets",
    "elsewhere_malformed": "what is found where its offsets are kept cannot be understood",
}


def explain(
    status: Status,
    reason: UnknownReason | None,
    parts: Sequence[PartitionsInStatus],
    *,
    members: int | None,
    idle_members: int,
    state: str | None = None,
    group_type: str | None = None,
    error: str | None = None,
    cause: Cause | None = None,
    lag_objective_seconds: float | None = None,
) -> str:
    """The sentence about a group whose partitions are ``parts`` and whose status follows from them, and from the
    ``error`` (its kind) if there was one that kept the group from being read. ``cause`` is what the partitions of this
    status have in common, ``lag_objective_seconds`` how old unread records may be, where that is known."""
    counted = [p for p in parts if p.status is not Status.GHOST]
    ours = [p for p in counted if p.status is status and p.reason is reason]
    who = Subject(ours, sum(p.partitions for p in counted), frozenset(t for p in counted for t in p.topics))
    others = [p for p in counted if p not in ours]
    why_nobody = why_nobody_reads(who, others, members, state, group_type)

    def nobody_reads(those: Subject) -> str:
        # The cause is that of all of them.
        return _standstill(those, why_nobody, cause if those.number == who.number else None)

    match status:
        case Status.LOSING_DATA:
            return f"{_losing_data(who)}{nobody_reads(who)}{_held_back(who)}."
        case Status.AT_RISK:
            return _at_risk(who, nobody_reads)
        case Status.STOPPED:
            return f"{_standing(who)}; {why_nobody}{_held_back(who)}."
        case Status.STALLED:
            return f"{_standing(who)}; {_owners(who, cause)}{_held_back(who)}."
        case Status.REWOUND:
            return _rewound(who)
        case Status.FALLING_BEHIND:
            return f"{_falling_behind(who, lag_objective_seconds)}{_common(who, cause)}{_held_back(who)}."
        case Status.LAGGING:
            return (
                f"{who.start} {who.verb('stays', 'stay')} behind: {who.records}, the oldest for {who.age}"
                f"{_level(who)}{_common(who, cause)}{_held_back(who)}."
            )
        case Status.CATCHING_UP:
            return _catching_up(who)
        case Status.OK:
            return f"Keeps pace on {who.name}{_yet(who)}{_idle(idle_members, members or 0)}."
        case Status.GHOST | Status.UNKNOWN:
            return _unknown(who, reason or UnknownReason.NO_COMMIT, error)


def _level(who: Subject) -> str:
    """Where lag goes that is seen to go nowhere: of a group that reads every few hours, there is no telling."""
    if total(p.lag_slope_per_second for p in who.parts) is None:
        return "; whether that grows cannot be told of a group that reads so seldom"
    return ", and that neither grows nor shrinks"


def _held_back(who: Subject) -> str:
    """The transaction that keeps readers of committed records from reading, where one hangs: they are not to blame."""
    seconds = max((p.transaction_seconds or 0.0 for p in who.parts), default=0.0)
    if not seconds:
        return ""
    records = sum(p.held_back_records for p in who.parts)
    are = "is" if records == 1 else "are"
    return (
        f"; {count(records)} of them {are} held back from readers of committed records by a transaction that hangs, "
        f"open for at least {duration(seconds)}"
    )


def _standstill(who: Subject, why_nobody: str, cause: Cause | None) -> str:
    """Who does not read what is or will be lost, and why, where that is so of all of it."""
    stopped, stalled = sum(p.stopped for p in who.parts), sum(p.stalled for p in who.parts)
    if stopped and stopped == who.number:
        return f"; {why_nobody}"
    if stalled and stalled == who.number:
        return f"; {who.verb('it stands', 'they stand')} still, and {_owners(who, cause)}"
    if stopped or stalled:
        return f"; {stopped + stalled} of them {'stands' if stopped + stalled == 1 else 'stand'} still"
    return _common(who, cause)


def _owners(who: Subject, cause: Cause | None) -> str:
    """Whose what stands still is, and how that member does otherwise."""
    owners = who.owners
    if cause is not None and cause.scope is Scope.MEMBER and cause.name is not None:
        owners = f"{who.verb('its', 'their')} owner is {cause.name}"
    return f"{owners}{_beside(who, cause)}"


def _beside(who: Subject, cause: Cause | None) -> str:
    """How the owner of what stands still does otherwise: one bad record is another matter than a member that hangs."""
    if cause is None:
        return ""
    match cause.scope:
        case Scope.MEMBER:
            return ", which gets on with nothing else" if who.number == 1 else ", which gets on with none of its own"
        case Scope.BROKER:
            return f"; broker {cause.name} leads them all, and none of the others"
    if not cause.well:
        return ""
    others = "the other one" if cause.well == 1 else f"the {cause.well} others"
    return f", which gets on with {others} it owns" if who.number == 1 else f", which gets on with {others}"


def _common(who: Subject, cause: Cause | None) -> str:
    """What the partitions have in common and the others have not."""
    if cause is None or cause.name is None:
        return ""
    if cause.scope is Scope.MEMBER:
        return f"; {cause.name} reads {who.verb('it', 'them')} and nothing else"
    return f"; broker {cause.name} leads them all, and none of the others"


def _standing(who: Subject) -> str:
    if all(p.lag is None for p in who.parts):
        return (
            f"{who.start} {who.verb('is', 'are')} read by a job that has never completed a checkpoint, though several "
            "were due: all that it has read may still wait inside it"
        )
    # Two times, because they differ: after a quiet hour the offset has not moved for long, and the records are young.
    waits = f"the oldest of {count(who.lag)} unread records" if who.lag != 1 else "the only unread record"
    stands = f"{who.start} {who.verb('has', 'have')} committed nothing{who.unmoved}"
    return f"{stands}, and {waits} has waited {who.age}"


def _losing_data(who: Subject) -> str:
    lost = sum(p.records_lost for p in who.parts)
    others = who.number - 1
    where = worst_of(who.parts) + (f" and {plural(others, f'more {who.noun}')}" if others else "")
    rest = f"{who.records}, the oldest for {who.age}" if who.lag else "nothing else waits"
    was = "record was" if lost == 1 else "records were"
    return f"{count(lost)} {was} deleted before this group read {'it' if lost == 1 else 'them'} ({where}); {rest}"


def _rewound(who: Subject) -> str:
    back = sum(p.rewound_records for p in who.parts)
    since = min((p.rewound_seconds for p in who.parts if p.rewound_seconds is not None), default=None)
    by = f" by {plural(back, 'record')}, {ago(since)}," if back and since is not None else ""
    return (
        f"The committed offset of {who.name} went back{by} and is not yet past where it was; {who.records} to be read, "
        "for the first time or again."
    )


def _at_risk(who: Subject, nobody_reads: Callable[[Subject], str]) -> str:
    """The nearest loss, and the partitions that it threatens; those that another kind of loss threatens are not named:
    it is further off."""
    nearest = first_loss(who.parts) or who.parts[0]
    who = Subject([p for p in who.parts if p.loss_cause is nearest.loss_cause], who.of, who.topics)
    when = f"in {duration(nearest.seconds_to_loss)}" if nearest.seconds_to_loss else "at any moment"
    if nearest.loss_cause is not LossCause.EXPIRY:
        # Whole segments are deleted, when all of their records may be: that may take longer.
        last = nearest.seconds_to_loss_at_latest
        until = f" and in {duration(last)} at the latest (whole segments are deleted)" if last else ""
        loses = f"will lose unread records {when} at the earliest{until}, at today's rates"
        if nearest.seconds_to_loss_is_upper_bound:
            will = duration(last or nearest.seconds_to_loss)
            loses = f"may lose unread records at any moment, and will within about {will}"
        elif nearest.seconds_to_loss and nearest.lag_seconds_is_lower_bound:
            loses = f"will lose unread records in about {duration(nearest.seconds_to_loss)}, at today's rates"
        elif not nearest.seconds_to_loss:
            will = f", and will within {duration(last)} (whole segments are deleted)" if last else ""
            loses = f"may lose unread records {when}{will}"
        return f"{who.start} {loses}; {who.records}, the oldest for {who.age}{nobody_reads(who)}{_held_back(who)}."
    expire = f"The committed offsets of {who.name} expire {when}, because the group has no members"
    if not who.lag:
        return f"{expire}."
    return (
        f"{expire}; a consumer that starts after that begins where auto.offset.reset says, which may skip what is "
        f"unread: {who.records}, the oldest for {who.age}."
    )


def _falling_behind(who: Subject, lag_objective_seconds: float | None) -> str:
    produced = total(p.produce_rate_per_second for p in who.parts)
    consumed = total(p.consume_rate_per_second for p in who.parts)
    growth = total(p.lag_slope_per_second for p in who.parts)
    breach = soonest_breach(p.to_breach for p in who.parts)
    return (
        f"Lag on {who.name} grows by {rate(growth)} records/s ({rate(produced)} written, {rate(consumed)} read per "
        f"second); {who.records}, the oldest for {who.age}{_until(breach, lag_objective_seconds)}"
    )


def _until(breach: Forecast | None, lag_objective_seconds: float | None) -> str:
    if breach is None:
        return ""
    of = "" if lag_objective_seconds is None else f" of {duration(lag_objective_seconds)}"
    when = f"{duration(breach.seconds)}{in_brackets(breach.low, breach.high)}"
    return f", which misses the objective{of} in about {when}"


def _catching_up(who: Subject) -> str:
    last = last_catch_up(p.to_catch_up for p in who.parts)
    until = ""
    losses = [p.seconds_to_loss for p in who.parts if p.seconds_to_loss and p.loss_cause is LossCause.DELETION]
    if last is not None and losses and min(losses) < last.seconds:
        until = f", but some will be lost in {duration(min(losses))} at the earliest, at today's rates"
    elif last is not None:
        ends = in_brackets(last.low, last.high)
        until = f", until about {duration(last.seconds)} from now at today's rates{ends}"
    return f"Catching up on {who.name}: {who.records}{until}."


def _yet(who: Subject) -> str:
    """What waits nevertheless, where somebody would ask."""
    is_old = any((p.lag_seconds or 0.0) >= _LONG_SECONDS for p in who.parts)
    return f"; {who.records}, the oldest for {who.age}" if who.lag >= _MANY_RECORDS or (who.lag and is_old) else ""


def _idle(idle_members: int, members: int) -> str:
    if not idle_members:
        return ""
    return f"; {idle_members} of {plural(members, 'member')} {'has' if idle_members == 1 else 'have'} nothing to do"


def _unknown(who: Subject, reason: UnknownReason, error: str | None) -> str:
    match reason:
        case UnknownReason.UNREADABLE if error is not None:
            what = _GROUP_ERRORS.get(error, f"{error}; the collector's health page says more")
            return f"The group could not be read: {what}."
        case UnknownReason.UNREADABLE:
            was = who.verb("its topic was", "their topics were")
            return f"{who.start} could not be read, or {was} deleted; the collector's health page says which."
        case UnknownReason.EXPIRED:
            return f"The committed offsets of {who.name} are gone: they expired, or somebody deleted them or the topic."
        case UnknownReason.NO_COMMIT:
            where = f" on {who.name}" if who.number else ""
            written = total(p.produce_rate_per_second for p in who.parts)
            while_written = f", while {rate(written)} records/s are written there" if written else ""
            return f"Nothing was ever committed{where}{while_written}, so nobody can tell how far this group is."
        case UnknownReason.RECREATED:
            return f"The topic of {who.name} was deleted and created again, and nothing is committed on the new one."
        case UnknownReason.OUT_OF_RANGE:
            return (
                f"The committed offset of {who.name} lies beyond the end of the log: the log was cut off, "
                "or the commit was meant for another."
            )
        case UnknownReason.NOT_COMMITTING:
            return (
                f"{who.start} {who.verb('is', 'are')} read by a job that does not commit to the broker and makes no "
                "checkpoints, so nobody can tell how far it is."
            )
        case UnknownReason.REBALANCING:
            waiting = f": {who.records}, the oldest for {who.age}" if who.lag else ""
            return f"The group keeps rebalancing, so it is not settled who reads {who.name}{waiting}."
        case UnknownReason.TOO_FEW_SAMPLES:
            waiting = f": {who.records}" if who.lag else ""
            return f"There are too few samples of {who.name} yet to tell where the lag is going{waiting}."
