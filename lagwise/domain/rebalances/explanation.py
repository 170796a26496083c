"""The likely cause of a group's rebalances in words, the evidence for it, and the remedy that this evidence supports.

What the remedies rest on: a static member (``group.instance.id``, KIP-345) that is back within its session timeout is
not rebalanced at all; cooperative-sticky (KIP-429) takes only those partitions from their owners that change hands;
the consumer protocol of KIP-848 lets the others read on meanwhile. ``heartbeat.interval.ms`` should be a third of
``session.timeout.ms`` at most, as Kafka's documentation of it says.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from lagwise.domain.humanise import duration, plural
from lagwise.domain.rebalances.clients import client_of, departed, is_everybody, rounds_of
from lagwise.domain.rebalances.model import Rebalance
from lagwise.domain.vocabulary import RebalanceCause

#: Assignors that take every partition from everybody at every rebalance (the eager protocol).
EAGER_ASSIGNORS = frozenset({"range", "roundrobin", "sticky"})
#: A session timeout of less than this is shorter than some garbage collections.
SHORT_SESSION_SECONDS = 30.0
#: More rounds than these in an hour are no deployments.
_DEPLOYMENTS_OF_AN_HOUR = (2, 3)
#: More members than these are not named.
_MOST_NAMES = 3
#: The group removed a member.
_FAILURES = (RebalanceCause.POLL_INTERVAL_EXCEEDED, RebalanceCause.MEMBER_FAILED)


@dataclass(frozen=True, slots=True)
class Setup:
    """How a group is set up."""

    #: ``classic`` or ``consumer`` (KIP-848); None where not known.
    type: str | None = None
    #: As the group names it; None where not known.
    assignor: str | None = None
    #: Whether members have a group.instance.id (KIP-345).
    has_static_members: bool = False


@dataclass(frozen=True, slots=True)
class RebalanceExplanation:
    """Why a group rebalanced within an hour."""

    #: In a word.
    cause: str
    #: The cause with its evidence.
    sentence: str
    #: What would help; None where nothing needs to be done.
    remedy: str | None = None


#: Of an hour at whose end something began that did not end in it.
CONTINUED = RebalanceExplanation(
    "continued", "What began at the end of this hour went on in the next one, and is explained there."
)


def explain_rebalances(
    rebalances: Sequence[Rebalance],
    setup: Setup,
    *,
    churning: Sequence[str],
    brief_stays: Sequence[timedelta],
    is_storm: bool,
) -> RebalanceExplanation:
    """The likeliest cause, what it is concluded from, and what would help; the rebalances in order of time.

    It is the one that explains most of the departures; members that failed are mentioned in addition.
    """
    failing = [r for r in rebalances if r.cause in _FAILURES]
    others = [r for r in rebalances if r.left and r.cause not in _FAILURES]
    if failing and len(failing) >= len(others):
        return _failing(rebalances, failing, setup)
    found = _coming_and_going(rebalances, setup, churning=churning, brief_stays=brief_stays, is_storm=is_storm)
    return replace(found, sentence=f"{found.sentence}{_also_removed(failing)}")


def _failing(rebalances: Sequence[Rebalance], failing: Sequence[Rebalance], setup: Setup) -> RebalanceExplanation:
    """Why members were removed from the group."""
    slow = [r for r in failing if r.cause is RebalanceCause.POLL_INTERVAL_EXCEEDED]
    silent = [r for r in failing if r.cause is RebalanceCause.MEMBER_FAILED]
    if len(slow) >= len(silent):
        return _slow_processing(slow)
    fell = Counter(label for r in silent for label in departed(r))
    came = Counter(client_of(label) for r in rebalances for label in r.joined)
    went = Counter(client_of(label) for label in fell.elements())
    once = max(fell.values(), default=0) == 1 and all(r in silent for r in rebalances if r.left)
    if once and came == went and fell.total() > 1 and is_everybody(fell.total(), rebalances):
        return _silent_deployment(rebalances, silent, fell.total(), setup)
    timeout = _longest(r.session_timeout_seconds for r in silent)
    if once and not came and setup.has_static_members and (timeout or 0.0) >= SHORT_SESSION_SECONDS:
        return _retired(silent, fell.total())
    return _failures(silent)


def _coming_and_going(
    rebalances: Sequence[Rebalance],
    setup: Setup,
    *,
    churning: Sequence[str],
    brief_stays: Sequence[timedelta],
    is_storm: bool,
) -> RebalanceExplanation:
    """Why members came and went, where most went by themselves or none did."""
    causes = Counter(r.cause for r in rebalances if r.cause is not None)
    began = _began(rebalances[0])
    if began and not any(r.left for r in rebalances):
        return _start(rebalances)
    came = Counter(client_of(name) for r in rebalances[began:] for name in r.joined)
    went = Counter(client_of(name) for r in rebalances for name in r.left)
    if churning and came == went and not is_storm and (rounds := rounds_of(rebalances)) in _DEPLOYMENTS_OF_AN_HOUR:
        return _deployment(rebalances, went, setup, rounds)
    if churning:
        return _churn(rebalances, churning, setup, is_storm=is_storm)
    if is_storm and len(brief_stays) > 1:
        return _passing_through(rebalances, brief_stays, setup)
    if went and came == went:
        return _deployment(rebalances, went, setup)
    if came.total() != went.total():
        return _scaling(rebalances, came.total() - went.total(), setup)
    if came:
        return RebalanceExplanation(
            "replacement", f"{plural(came.total(), 'new member')} replaced {came.total()} that left."
        )
    for cause, sentence in (
        (RebalanceCause.PARTITIONS_ADDED, "A topic that the group reads got more partitions."),
        (RebalanceCause.SUBSCRIPTION_CHANGED, "Members changed their subscriptions."),
        (RebalanceCause.STATIC_MEMBER_RETURNED, "Static members came back and kept their partitions."),
    ):
        if causes[cause]:
            return RebalanceExplanation(str(cause), sentence)
    return _rejoins(rebalances, is_storm=is_storm)


def _slow_processing(those: Sequence[Rebalance]) -> RebalanceExplanation:
    silence = _longest(r.silent_seconds for r in those)
    limit = _longest(r.poll_interval_seconds for r in those)
    evidence = f"{_times(len(those))}, a member was removed for not polling"
    if silence is not None:
        evidence += f", after it had committed nothing for {duration(silence)}"
    if limit is not None:
        evidence += f"; its max.poll.interval.ms is {duration(limit)}"
    return RebalanceExplanation(
        "slow_processing",
        f"Processing the records of one poll took longer than max.poll.interval.ms: {evidence}{_in_brackets(those)}.",
        "Return fewer records per poll (max.poll.records), or allow more time (max.poll.interval.ms); then find what "
        "takes so long.",
    )


def _failures(those: Sequence[Rebalance]) -> RebalanceExplanation:
    silence = _longest(r.silent_seconds for r in those)
    timeout = _longest(r.session_timeout_seconds for r in those)
    evidence = f"{_times(len(those))}, a member sent no heartbeat within its session.timeout.ms"
    if timeout is not None:
        evidence += f" of {duration(timeout)}"
    if silence is not None:
        evidence += f"; it had committed nothing for {duration(silence)}"
    remedy = "Check those hosts for crashes, out-of-memory kills and long garbage collections."
    if timeout is not None and timeout < SHORT_SESSION_SECONDS:
        remedy += f" A session.timeout.ms of {duration(timeout)} is short: 45 s is Kafka's default."
    if timeout is not None:
        remedy += f" heartbeat.interval.ms should be {duration(timeout / 3)} at most, a third of it."
    return RebalanceExplanation("failing_members", f"Members crashed or hung: {evidence}{_in_brackets(those)}.", remedy)


def _churn(
    rebalances: Sequence[Rebalance], churning: Sequence[str], setup: Setup, *, is_storm: bool
) -> RebalanceExplanation:
    departures = Counter(name for r in rebalances for name in r.left)
    leave_by_themselves = all(r.cause is RebalanceCause.MEMBER_LEFT for r in rebalances if set(r.left) & set(churning))
    how = "leave by themselves and come back" if leave_by_themselves else "come and go"
    remedy = (
        "Find what restarts them (an autoscaler, a failing health check, an orchestrator that moves them)."
        if leave_by_themselves
        else "Check the logs of those clients for why they end."
    )
    return RebalanceExplanation(
        "storm" if is_storm else "churn",
        f"The same clients {how}: {_named([(name, departures[name]) for name in churning])}.",
        f"{remedy}{_milder(setup)}",
    )


def _passing_through(rebalances: Sequence[Rebalance], stays: Sequence[timedelta], setup: Setup) -> RebalanceExplanation:
    took = rebalances[-1].at - rebalances[0].at
    usual = sorted(stays)[len(stays) // 2]
    return RebalanceExplanation(
        "storm",
        f"{len(rebalances)} rebalances within {duration(took.total_seconds())}: {len(stays)} members joined and "
        f"left again, usually after {duration(usual.total_seconds())}.",
        "Find out why they end so soon after their start: a crash, a failing health check, a lack of memory, an "
        f"autoscaler.{_milder(setup)}",
    )


def _deployment(
    rebalances: Sequence[Rebalance], went: Counter[str], setup: Setup, rounds: int = 1
) -> RebalanceExplanation:
    members = went.total() // rounds
    if members == 1:
        return _restart(rebalances, setup)
    as_in = "a rolling deployment" if rounds == 1 else f"{rounds} rolling deployments"
    return RebalanceExplanation(
        "deployment",
        f"{plural(members, 'member')} left and came back {_times(rounds)} each{_within(rebalances)}, as in {as_in}"
        f"{_cause_unseen(rebalances)}.",
        _milder(setup).strip() or None,
    )


def _restart(rebalances: Sequence[Rebalance], setup: Setup) -> RebalanceExplanation:
    who = _in_brackets([r for r in rebalances if r.left])
    sentence = f"1 member left and came back{_within(rebalances)}{who}{_cause_unseen(rebalances)}."
    return RebalanceExplanation("restart", sentence, _milder(setup).strip() or None)


def _gone(rebalances: Sequence[Rebalance], fewer: int, after: int | None) -> RebalanceExplanation:
    """Members that are not there any more, of which some may have crashed."""
    rest = {None: "", 0: ", and none is left", 1: ", and 1 is left"}
    them, hosts = ("it", "its host") if fewer == 1 else ("them", "their hosts")
    left = rest.get(after, f", and {after} are left")
    return RebalanceExplanation(
        "gone",
        f"{plural(fewer, 'member is', 'members are')} gone{_in_brackets([r for r in rebalances if r.left])}{left}"
        f"{_cause_unseen(rebalances)}.",
        f"If nobody stopped {them}, check {hosts} for crashes and out-of-memory kills.",
    )


def _silent_deployment(
    rebalances: Sequence[Rebalance], silent: Sequence[Rebalance], members: int, setup: Setup
) -> RebalanceExplanation:
    return RebalanceExplanation(
        "deployment",
        f"{plural(members, 'member')} fell silent and came back once each{_within(rebalances)}, as in a rolling "
        "deployment of clients that do not leave the group when they close (Kafka Streams does not by default).",
        "If nobody deployed then, check those hosts for crashes. Nothing reads the partitions of such a member "
        f"until {_session_timeout(silent)} is over, unless it leaves the group when it closes.{_milder(setup)}",
    )


def _retired(silent: Sequence[Rebalance], members: int) -> RebalanceExplanation:
    return RebalanceExplanation(
        "scaling",
        f"{plural(members, 'member')} did not come back within {_session_timeout(silent)}{_in_brackets(silent)}: "
        "static members do not leave by themselves, so this is how one is retired.",
        "If nobody retired it, check its host for a crash, an out-of-memory kill or a failed restart.",
    )


def _began(first: Rebalance) -> bool:
    """Whether the group had no members before."""
    had_none = first.members is not None and first.members == len(first.joined) > 0
    return not first.left and (first.cause is RebalanceCause.GROUP_APPEARED or had_none)


def _start(rebalances: Sequence[Rebalance]) -> RebalanceExplanation:
    came = plural(sum(len(r.joined) for r in rebalances), "member")
    return RebalanceExplanation("start", f"The group started: {came} joined, and there were none before.")


def _scaling(rebalances: Sequence[Rebalance], difference: int, setup: Setup) -> RebalanceExplanation:
    after = next((r.members for r in reversed(rebalances) if r.members is not None), None)
    if difference < 0 and any(r.cause is RebalanceCause.MEMBER_GONE for r in rebalances):
        return _gone(rebalances, -difference, after)
    to = f" to {after}" if after is not None else ""
    what = "more" if difference > 0 else "fewer"
    return RebalanceExplanation(
        "scaling",
        f"The group was scaled{to}: {plural(abs(difference), 'member')} {what} than before.",
        _milder(setup).strip() or None if len(rebalances) > 1 else None,
    )


def _rejoins(rebalances: Sequence[Rebalance], *, is_storm: bool) -> RebalanceExplanation:
    sentence = f"The same members rejoined{'' if len(rebalances) == 1 else f' {_times(len(rebalances))}'}"
    if all(r.cause is RebalanceCause.REJOINED for r in rebalances):
        return RebalanceExplanation(
            "storm" if is_storm else "rejoins", f"{sentence}, as the leader or a client requested."
        )
    return RebalanceExplanation(
        "storm" if is_storm else "unknown", "Partitions changed owners; nothing observed shows why."
    )


def _milder(setup: Setup) -> str:
    """What makes a restart cost less, of what the group does not do yet."""
    advice = []
    if not setup.has_static_members:
        advice.append("with static membership (group.instance.id) a member that is back soon causes no rebalance")
    if setup.type == "classic" and setup.assignor in EAGER_ASSIGNORS:
        advice.append(
            f"cooperative-sticky instead of {setup.assignor}, or the consumer protocol of KIP-848, lets the others "
            "keep reading"
        )
    return f" To make it cheaper: {'; '.join(advice)}." if advice else ""


def _also_removed(failing: Sequence[Rebalance]) -> str:
    """Members that failed, where another cause explains most departures."""
    if not failing:
        return ""
    members = sum(max(1, len(departed(r))) for r in failing)
    return f" In addition, {plural(members, 'member was', 'members were')} removed for silence{_in_brackets(failing)}."


def _within(rebalances: Sequence[Rebalance]) -> str:
    """``within 4 min``, with a space before it: from the first of them to the last."""
    took = rebalances[-1].at - rebalances[0].at
    return f" within {duration(took.total_seconds())}" if took else ""


def _session_timeout(silent: Sequence[Rebalance]) -> str:
    """``its session.timeout.ms of 45 s``."""
    timeout = _longest(r.session_timeout_seconds for r in silent)
    return "its session timeout" if timeout is None else f"its session.timeout.ms of {duration(timeout)}"


def _longest(seconds: Iterable[float | None]) -> float | None:
    """In seconds; None where none is known."""
    return max((s for s in seconds if s is not None), default=None)


def _in_brackets(those: Sequence[Rebalance]) -> str:
    """The clients that went, in brackets, the worst first."""
    names = Counter(name for r in those for name in (r.failed or r.left))
    return f" ({_named(sorted(names.items(), key=lambda n: (-n[1], n[0])))})" if names else ""


def _named(clients: Sequence[tuple[str, int]]) -> str:
    """The first few of them, each with how often where that is more than once."""
    shown = ", ".join(name if times == 1 else f"{name} {_times(times)}" for name, times in clients[:_MOST_NAMES])
    return f"{shown} and {len(clients) - _MOST_NAMES} more" if len(clients) > _MOST_NAMES else shown


def _times(number: int) -> str:
    """``once``, ``twice``, ``3 times``."""
    return {1: "once", 2: "twice"}.get(number, f"{number} times")


def _cause_unseen(rebalances: Sequence[Rebalance]) -> str:
    """That samples do not show why members are gone."""
    if not any(r.cause is RebalanceCause.MEMBER_GONE for r in rebalances):
        return ""
    who = "it" if sum(len(r.left) for r in rebalances) == 1 else "they"
    return f"; samples do not show whether {who} left or crashed"
