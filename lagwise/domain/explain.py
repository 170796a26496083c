"""Why a group has its status, in one sentence with numbers: what a page, a webhook and a terminal show.

Names in it (topics, clients, hosts) are as the cluster reports them; whoever shows the sentence escapes it.
"""

from collections.abc import Sequence
from typing import NamedTuple

from lagwise.domain.causes import Cause, Scope
from lagwise.domain.humanise import ago, count, duration, in_brackets, lower_first, plural, rate
from lagwise.domain.lag_forecast import Forecast
from lagwise.domain.partition_rollup import PartitionsInStatus, first_loss, last_catch_up, soonest_breach, total
from lagwise.domain.sentence_subject import Subject, worst_of
from lagwise.domain.verdicts.status import STALLED_AFTER_SECONDS
from lagwise.domain.vocabulary import REBALANCING_STATES, RUNNING, SIMPLE, Engine, LossCause, Status, UnknownReason

#: The sentence of an `ok` group mentions its unread records from this many, or from this age, on.
_MANY_RECORDS = 10_000
_LONG_SECONDS = 60.0

_COORDINATOR_CHANGES = "its coordinator is changing; the next sample usually succeeds"
#: Why a group could not be read and what to do, by the kind that collectors give the error. A kind that is not here is
#: shown as it is.
_GROUP_ERRORS = {
    "group_not_authorized": "the collector's account is not authorized; grant it Describe on the group, or exclude the "
    "group with groups.exclude",
    "topic_not_authorized": "the collector's account is not authorized for one of its topics; grant it Describe there",
    "timeout": "its coordinator did not answer in time; if that lasts, check the brokers",
    "unreachable": "its coordinator cannot be reached; check that the brokers run",
    "coordinator_moved": _COORDINATOR_CHANGES,
    "coordinator_loading": _COORDINATOR_CHANGES,
    "coordinator_not_available": _COORDINATOR_CHANGES,
    "external_offsets_timeout": "the store of its offsets did not answer in time; check it, or raise timeout_seconds "
    "of the source in external_offsets",
    "external_offsets_unreachable": "the store of its offsets cannot be reached; check that it runs",
    "external_offsets_refused": "the store of its offsets rejected the collector; check the secret and the permissions "
    "of the source in external_offsets",
    "external_offsets_missing": "the store of its offsets does not exist any more; check the source in "
    "external_offsets",
    "external_offsets_malformed": "the offsets in its store cannot be parsed",
}
#: Why commits stopped, by who keeps the offsets, where no member of the group would commit them.
_COMMITS_STOPPED = {
    SIMPLE: "Offsets are committed from outside, by a job, a tool or a mirror, and those commits have stopped",
    Engine.SPARK: "The query has completed no batch, and its checkpoint does not show whether the query runs",
    Engine.SQL: "Offsets are kept in a database, and nothing writes them any more",
    Engine.FILES: "Offsets are kept in files, and nothing writes them any more",
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
    """The sentence about a group whose status follows from its partitions (``parts``).

    ``error`` is the kind of the error that kept the group from being read, ``cause`` what the partitions of this status
    have in common, ``lag_objective_seconds`` the age that unread records may reach; None where not known.
    """
    counted = [p for p in parts if p.status is not Status.GHOST]
    ours = [p for p in counted if p.status is status and p.reason is reason]
    who = Subject(ours, sum(p.partitions for p in counted), frozenset(t for p in counted for t in p.topics))
    others = [p for p in counted if p not in ours]
    not_read = NotRead(others, members, state, group_type, cause)

    match status:
        case Status.LOSING_DATA:
            return f"{_losing_data(who)}{_no_progress(who, who, not_read)}{_held_back(who)}."
        case Status.AT_RISK:
            return _at_risk(who, not_read)
        case Status.STOPPED:
            return f"{_stopped(who, not_read)}{_held_back(who)}."
        case Status.STALLED:
            return f"{_stalled(who)}. {_owners(who, cause)}{_held_back(who)}."
        case Status.REWOUND:
            return _rewound(who)
        case Status.FALLING_BEHIND:
            return f"{_falling_behind(who, lag_objective_seconds)}{_common(who, cause)}{_held_back(who)}."
        case Status.LAGGING:
            return f"{_lagging(who)}{_common(who, cause)}{_held_back(who)}."
        case Status.CATCHING_UP:
            return _catching_up(who)
        case Status.OK:
            return f"Keeps up on {who.name}{_yet(who)}{_idle(idle_members, members or 0)}."
        case Status.GHOST | Status.UNKNOWN:
            known = total(p.lag for p in others if p.status is not Status.UNKNOWN)
            return _unknown(who, reason or UnknownReason.NO_COMMIT, error, known)


class NotRead(NamedTuple):
    """What the reason for partitions without progress is concluded from."""

    #: The group's partitions that have another status.
    others: Sequence[PartitionsInStatus]
    #: None is not known.
    members: int | None
    #: As the coordinator, or Flink, names it.
    state: str | None
    #: What the collector calls the group, or the engine that keeps its offsets.
    group_type: str | None
    #: What the partitions of the group's status have in common.
    cause: Cause | None

    def reason(self, who: Subject, name: str) -> str:
        """Why nothing reads ``who``, which the sentence calls ``name``."""
        if self.group_type == Engine.FLINK:
            if self.state is None:
                return "Flink does not report whether its job runs"
            if self.state == RUNNING:
                return f"Its Flink job does not read {name}"
            return f"Its Flink job does not run ({self.state})"
        if self.group_type in _COMMITS_STOPPED:
            return _COMMITS_STOPPED[self.group_type]
        is_owned = bool(who.parts) and all(p.owners for p in who.parts)
        now = f"; {who.owners} now" if is_owned else ""
        if (is_owned or self.state in REBALANCING_STATES) and any(_is_read(p) for p in self.others):
            # A record that makes every reader crash or hang looks like this, and the rebalances follow from it.
            return f"No owner of {name} makes progress, while the group keeps rebalancing and reads others{now}"
        if self.state in REBALANCING_STATES:
            return f"The group is rebalancing ({self.state}) and does not finish"
        if is_owned:
            return f"The group keeps rebalancing, and its members do not get to read {name}{now}"
        return f"No member owns {name}" if self.members else "No members"


def _is_read(part: PartitionsInStatus) -> bool:
    """Whether the group surely makes progress there: something is read, and nothing is unread for long."""
    is_young = not part.lag_seconds_is_lower_bound and (part.lag_seconds or 0.0) < STALLED_AFTER_SECONDS
    return bool(part.consume_rate_per_second) and is_young


def _stopped(who: Subject, not_read: NotRead) -> str:
    reason = not_read.reason(who, who.name)
    where = "" if reason.find(who.name) >= 0 else f" on {who.none}"
    return f"{reason}. {who.waiting}; no commits{where}{who.unmoved}"


def _stalled(who: Subject) -> str:
    if all(p.lag is None for p in who.parts):
        return (
            f"No checkpoint was ever completed, though several were due: the job that reads {who.name} may still hold "
            "all that it has read"
        )
    # Two times, because they differ: after a quiet hour the last commit is old, and the unread records are young.
    return f"No commits on {who.none}{who.unmoved}; {who.waiting}"


def _lagging(who: Subject) -> str:
    if total(p.lag_slope_per_second for p in who.parts) is None:
        return f"Lag stays on {who.name}: {who.waiting}; the group reads too seldom to show whether that grows"
    return f"Lag on {who.name} neither grows nor shrinks: {who.waiting}"


def _held_back(who: Subject) -> str:
    """The open transaction that hides records from read_committed consumers: the consumers are not to blame."""
    seconds = max((p.transaction_seconds or 0.0 for p in who.parts), default=0.0)
    if not seconds:
        return ""
    records = plural(sum(p.held_back_records for p in who.parts), "record")
    return (
        f". A hanging transaction, open for at least {duration(seconds)}, holds {records} back from read_committed "
        "consumers"
    )


def _no_progress(who: Subject, all_of_status: Subject, not_read: NotRead) -> str:
    """Which of the partitions that lose records, or will, are not read, and why, where one reason holds for all."""
    cause = not_read.cause if who.number == all_of_status.number else None
    stopped, stalled = sum(p.stopped for p in who.parts), sum(p.stalled for p in who.parts)
    if stopped and stopped == who.number:
        return f". {not_read.reason(all_of_status, all_of_status.verb('it', 'them'))}"
    if stalled and stalled == who.number:
        return f". No commits on {who.verb('it', 'any of them')}; {lower_first(_owners(who, cause))}"
    if stopped or stalled:
        return f"; no commits on {stopped + stalled} of them"
    return _common(who, cause)


def _owners(who: Subject, cause: Cause | None) -> str:
    """Who owns the partitions without progress, and how that member does on others: a bad record differs from a member
    that hangs."""
    owners = who.owners
    if cause is not None and cause.scope is Scope.MEMBER and cause.name is not None:
        owners = f"{who.verb('its', 'their')} owner is {cause.name}"
    owners = owners[0].upper() + owners[1:]
    if cause is None:
        return owners
    if cause.scope is Scope.MEMBER:
        return f"{owners}, which makes progress on {who.verb('nothing else', 'no partition')}"
    if cause.scope is Scope.BROKER:
        return f"{owners}. Broker {cause.name} leads all of them, and none of the others"
    if not cause.well:
        return owners
    others = "the other one" if cause.well == 1 else f"the {cause.well} others"
    return f"{owners}, which makes progress on {others}{' it owns' if who.number == 1 else ''}"


def _common(who: Subject, cause: Cause | None) -> str:
    """What sets these partitions apart from the others."""
    if cause is None or cause.name is None:
        return ""
    if cause.scope is Scope.MEMBER:
        return f"; {cause.name} reads {who.verb('it', 'them')} and nothing else"
    return f"; broker {cause.name} leads all of them, and none of the others"


def _losing_data(who: Subject) -> str:
    lost = sum(p.records_lost for p in who.parts)
    others = who.number - 1
    where = worst_of(who.parts) + (f" and {plural(others, f'more {who.noun}')}" if others else "")
    rest = who.waiting if who.lag else "no other records wait"
    was = "record was" if lost == 1 else "records were"
    return f"{count(lost)} {was} deleted before this group read {'it' if lost == 1 else 'them'} ({where}); {rest}"


def _rewound(who: Subject) -> str:
    back = sum(p.rewound_records for p in who.parts)
    since = min((p.rewound_seconds for p in who.parts if p.rewound_seconds is not None), default=None)
    by = f" by {plural(back, 'record')} {ago(since)}" if back and since is not None else ""
    return (
        f"The committed offset of {who.name} went back{by} and has not passed its earlier position yet; {who.records} "
        "to be read, for the first time or again."
    )


def _at_risk(who: Subject, not_read: NotRead) -> str:
    """The nearest loss, and the partitions that it threatens. Those that another kind of loss threatens are not named:
    it is further off."""
    all_of_status = who
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
        return f"{who.start} {loses}; {who.waiting}{_no_progress(who, all_of_status, not_read)}{_held_back(who)}."
    expire = f"The committed offsets of {who.name} expire {when}, because the group has no members"
    if not who.lag:
        return f"{expire}."
    return (
        f"{expire}. A consumer that starts later begins where auto.offset.reset says, and may skip unread records: "
        f"{who.waiting}."
    )


def _falling_behind(who: Subject, lag_objective_seconds: float | None) -> str:
    produced = total(p.produce_rate_per_second for p in who.parts)
    consumed = total(p.consume_rate_per_second for p in who.parts)
    growth = total(p.lag_slope_per_second for p in who.parts)
    breach = soonest_breach(p.to_breach for p in who.parts)
    return (
        f"Lag on {who.name} grows by {rate(growth)} records/s ({rate(produced)} written, {rate(consumed)} read per "
        f"second); {who.waiting}{_until(breach, lag_objective_seconds)}"
    )


def _until(breach: Forecast | None, lag_objective_seconds: float | None) -> str:
    if breach is None:
        return ""
    of = "" if lag_objective_seconds is None else f" of {duration(lag_objective_seconds)}"
    when = f"{duration(breach.seconds)}{in_brackets(breach.low, breach.high)}"
    return f". It misses the objective{of} in about {when}"


def _catching_up(who: Subject) -> str:
    last = last_catch_up(p.to_catch_up for p in who.parts)
    until = ""
    losses = [p.seconds_to_loss for p in who.parts if p.seconds_to_loss and p.loss_cause is LossCause.DELETION]
    if last is not None and losses and min(losses) < last.seconds:
        until = f", but some will be lost in {duration(min(losses))} at the earliest, at today's rates"
    elif last is not None:
        ends = in_brackets(last.low, last.high)
        until = f"; done in about {duration(last.seconds)} at today's rates{ends}"
    return f"Catching up on {who.name}: {who.records}{until}."


def _yet(who: Subject) -> str:
    """The unread records of a group that keeps up, where they are many or old."""
    is_old = any((p.lag_seconds or 0.0) >= _LONG_SECONDS for p in who.parts)
    return f"; {who.waiting}" if who.lag >= _MANY_RECORDS or (who.lag and is_old) else ""


def _idle(idle_members: int, members: int) -> str:
    if not idle_members:
        return ""
    return f"; {idle_members} of {plural(members, 'member')} {'is' if idle_members == 1 else 'are'} idle"


def _unknown(who: Subject, reason: UnknownReason, error: str | None, known_lag: int | None) -> str:
    """``known_lag`` is the lag that the group is shown with: it leaves out the partitions of this sentence."""
    left_out = "" if known_lag is None else f"; the group's lag of {count(known_lag)} leaves these out"
    match reason:
        case UnknownReason.UNREADABLE if error is not None:
            what = _GROUP_ERRORS.get(error, f"{error}; the collector's health page says more")
            return f"The group could not be read: {what}."
        case UnknownReason.UNREADABLE:
            was = who.verb("its topic was", "their topics were")
            return f"{who.start} could not be read, or {was} deleted; the collector's health page says which."
        case UnknownReason.EXPIRED:
            return f"The committed offsets of {who.name} are gone: they expired, or they or the topic were deleted."
        case UnknownReason.NO_COMMIT:
            where = f" on {who.name}" if who.number else ""
            written = total(p.produce_rate_per_second for p in who.parts)
            while_written = f", while {rate(written)} records/s are written there" if written else ""
            return f"Nothing was ever committed{where}{while_written}: the position of this group is unknown."
        case UnknownReason.RECREATED:
            return f"The topic of {who.name} was deleted and created again; nothing was committed on the new one."
        case UnknownReason.OUT_OF_RANGE:
            return (
                f"The committed offset of {who.name} lies beyond the end of the log: the log was truncated, or the "
                "commit belongs to another log."
            )
        case UnknownReason.NOT_COMMITTING:
            return (
                f"{who.start} {who.verb('is', 'are')} read by a job that does not commit to the broker and makes no "
                "checkpoints: its position is unknown."
            )
        case UnknownReason.REBALANCING:
            waiting = f"; {who.waiting}{left_out}" if who.lag else ""
            return f"The group keeps rebalancing, and the owners of {who.name} are not settled{waiting}."
        case UnknownReason.TOO_FEW_SAMPLES:
            waiting = f"; {who.records}{left_out}" if who.lag else ""
            return f"Too few samples of {who.name} yet to show whether the lag grows{waiting}."
        case UnknownReason.NO_TOPICS:
            return (
                "Reads no topic: its members use the group to divide other work, as Kafka Connect's workers divide "
                "connectors. It has no lag."
            )
