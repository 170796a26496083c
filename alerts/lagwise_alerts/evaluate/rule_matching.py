"""Whether a condition matches a rule: yes, no, or unknown."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import NamedTuple

from lagwise.domain.staleness import DataAge
from lagwise.domain.vocabulary import Status, UnknownReason
from lagwise_alerts.evaluate.rule_timers import TimerVerdict
from lagwise_alerts.model import AlertKind, ClusterCondition, Condition, FreshnessCondition, GroupCondition
from lagwise_alerts.rules.rule_condition import RuleCondition
from lagwise_alerts.rules.rule_file import Rule

#: Reasons for "unknown" that are facts about the offsets and last. All others mean that Lagwise lacks data.
_LASTING_REASONS = frozenset(
    {
        UnknownReason.EXPIRED,
        UnknownReason.NO_COMMIT,
        UnknownReason.RECREATED,
        UnknownReason.OUT_OF_RANGE,
        UnknownReason.NOT_COMMITTING,
        UnknownReason.NO_TOPICS,
    }
)
#: A group that has been unknown for this long, for a lasting reason, no longer keeps its former alert.
UNKNOWN_FOR_GOOD_SECONDS = 3600.0


class RuleMatch(NamedTuple):
    """Whether a condition matches a rule, and since when that has been so."""

    rule: Rule
    verdict: TimerVerdict
    since: datetime


def match_rule(
    rule: Rule,
    condition: Condition,
    now: datetime,
    known_in_trouble: int | None = None,
    labels: Mapping[str, str] = MappingProxyType({}),
) -> RuleMatch:
    """Whether a condition matches a rule.

    An outdated status, or an "unknown" that may hide trouble, is HOLD: neither trouble nor its end. Only a rule on the
    status ``unknown``, or on a number that is known nevertheless, can match an unknown group. ``known_in_trouble`` is
    how many partitions were known when the open alert last matched; None where that is unknown, or there is no alert.
    ``labels`` are those of the group's owner.
    """
    if isinstance(condition, FreshnessCondition):
        return RuleMatch(rule, *_judge_freshness(rule, condition, now))
    if isinstance(condition, ClusterCondition):
        return RuleMatch(rule, _judge_cluster(rule, condition, now), condition.as_of)
    verdict = _judge_group(rule, condition, now, known_in_trouble, labels)
    # An unknown status does not prove that the group was healthy since then, nor does a status prove its numbers: only
    # this sample counts.
    is_unknown_calm = verdict is TimerVerdict.CLEAR and condition.status is Status.UNKNOWN
    counts_from_sample = is_unknown_calm or rule.when.asks_for_numbers
    return RuleMatch(rule, verdict, condition.as_of if counts_from_sample else condition.since)


def is_as_known(condition: GroupCondition, known_in_trouble: int | None) -> bool:
    """Whether as many partitions are known as during the trouble: then those that were in trouble are among them.

    The known partitions of an unknown group are healthy. So the group has recovered as far as it ever was known: the
    unknown partitions were unknown during the trouble, too.
    """
    return known_in_trouble is not None and (condition.numbers.known_partitions or 0) >= known_in_trouble


def is_too_old(condition: Condition, now: datetime) -> bool:
    """Whether the sample behind the state of a group or cluster is too old for it to count."""
    if isinstance(condition, FreshnessCondition):
        return False
    return (now - condition.as_of).total_seconds() > condition.valid_for_seconds


def _judge_cluster(rule: Rule, condition: ClusterCondition, now: datetime) -> TimerVerdict:
    if condition.subject.kind not in rule.when.kinds or not rule.clusters.selects(condition.subject.cluster or ""):
        return TimerVerdict.CLEAR
    if condition.is_found is None or is_too_old(condition, now):
        return TimerVerdict.HOLD
    return TimerVerdict.MATCH if condition.is_found else TimerVerdict.CLEAR


def _judge_group(
    rule: Rule, condition: GroupCondition, now: datetime, known_in_trouble: int | None, labels: Mapping[str, str]
) -> TimerVerdict:
    if rule.when.stale or rule.when.cluster_findings:
        return TimerVerdict.CLEAR
    if is_too_old(condition, now):
        return TimerVerdict.HOLD
    if rule.applies_to(condition.subject, labels, condition.topics) and condition_matches(rule.when, condition):
        if not rule.only_if_seen_active or condition.seen_active:
            return TimerVerdict.MATCH
        return TimerVerdict.HOLD if condition.seen_active is None else TimerVerdict.CLEAR
    return TimerVerdict.HOLD if _may_hide_trouble(condition, known_in_trouble) else TimerVerdict.CLEAR


def _may_hide_trouble(condition: GroupCondition, known_in_trouble: int | None) -> bool:
    if condition.status is not Status.UNKNOWN or is_as_known(condition, known_in_trouble):
        return False
    lasted_seconds = (condition.as_of - condition.since).total_seconds()
    return condition.reason not in _LASTING_REASONS or lasted_seconds < UNKNOWN_FOR_GOOD_SECONDS


def condition_matches(when: RuleCondition, condition: GroupCondition) -> bool:
    """Whether the condition of a rule is met, whatever the scope of the rule."""
    if condition.subject.kind not in when.kinds:
        return False
    match condition.subject.kind:
        case AlertKind.GROUP:
            return _has_status(when, condition) and _has_numbers(when, condition)
        case AlertKind.IDLE_MEMBERS:
            return condition.is_found and _is_above(condition.found_count, when.idle_members_above)
        case AlertKind.CAPACITY:
            return condition.is_found and not condition.found_words.isdisjoint(when.capacity)
        case _:
            return condition.is_found


def _has_status(when: RuleCondition, condition: GroupCondition) -> bool:
    if not when.statuses:
        return True
    reasons = when.unknown_reasons
    has_unread = condition.numbers.lag_records != 0
    return (
        condition.status in when.statuses
        and (condition.status is not Status.UNKNOWN or not reasons or condition.reason in reasons)
        and when.unread in (None, has_unread)
    )


def _has_numbers(when: RuleCondition, condition: GroupCondition) -> bool:
    """Whether every number in the condition is known and meets it."""
    numbers = condition.numbers
    return (
        _is_above(numbers.lag_records, when.lag_above)
        and _is_above(numbers.lag_seconds, when.lag_seconds_above)
        and (when.getting_older is None or condition.is_getting_older)
        and _is_above(numbers.seconds_to_catch_up, when.seconds_to_catch_up_above)
        and (
            when.seconds_to_loss_below is None
            or (numbers.seconds_to_loss is not None and numbers.seconds_to_loss < when.seconds_to_loss_below)
        )
    )


def _is_above(number: float | None, limit: float | None) -> bool:
    return limit is None or (number is not None and number > limit)


def _judge_freshness(rule: Rule, condition: FreshnessCondition, now: datetime) -> tuple[TimerVerdict, datetime]:
    known_from = condition.newest_at or condition.watching_since
    concerns = rule.when.stale == condition.subject.kind.value and (
        condition.subject.cluster is None or rule.clusters.selects(condition.subject.cluster)
    )
    if not concerns or rule.when.older_than is None:
        return TimerVerdict.CLEAR, known_from or now
    if known_from is None:
        return TimerVerdict.MATCH, now
    allowed_seconds = max(rule.when.older_than, condition.floor_seconds)
    if not DataAge(known_from, now, allowed_seconds).is_stale:
        return TimerVerdict.CLEAR, known_from
    if condition.watching_since is not None and not DataAge(condition.watching_since, now, allowed_seconds).is_stale:
        return TimerVerdict.HOLD, known_from
    return TimerVerdict.MATCH, known_from + timedelta(seconds=allowed_seconds)
