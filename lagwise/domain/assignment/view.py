"""A group's assignment as it is, as each assignor would make it, and as good as it could be."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from lagwise.domain.assignment.assignors import ASSIGNORS
from lagwise.domain.assignment.bound import BoundCause, lower_bound, spread_evenly, useful_members
from lagwise.domain.assignment.model import Member, NotDeterminedError, Partition, all_partitions
from lagwise.domain.assignment.skew import Figures, Rates, figures, hottest, known_rates
from lagwise.domain.assignment.sticky import moved


@dataclass(frozen=True, slots=True)
class Alternative:
    """What an assignor would give the same members, starting from what they own now."""

    #: Its name, as Kafka's clients write it.
    assignor: str
    #: How even its assignment would be.
    figures: Figures
    #: Partitions that would be taken from their present owner.
    partitions_moved: int
    #: How many rebalances the change takes.
    rebalances: int


@dataclass(frozen=True, slots=True)
class AssignmentView:
    """Everything there is to say of a group's assignment. Shares are of the traffic of all its topics' partitions,
    0 to 1; None where a rate is unknown or nothing is produced."""

    #: The assignor it runs, as the coordinator names it.
    assignor: str | None
    #: Partitions of its topics; None where a topic's number of partitions is unknown.
    partitions: int | None
    #: Partitions that no member owns; None where a topic's number of partitions is unknown.
    partitions_without_owner: int | None
    #: How even the present assignment is.
    now: Figures
    #: The partition with most traffic; None where a rate is not known.
    hottest: Partition | None
    #: Its share of the traffic.
    hottest_share: float | None
    #: No assignment to these members brings the busiest member's share below this.
    bound_share: float | None
    #: Why no assignment can beat the bound.
    bound_cause: BoundCause | None
    #: The busiest member's share in the best assignment found: near the bound, whoever makes it.
    attainable_share: float | None
    #: More members than these cannot make the busiest one less busy: the hottest partition is as busy as it.
    useful_members: int | None
    #: By assignor, in the order of ``ASSIGNORS``; left out where its result is not determined.
    alternatives: tuple[Alternative, ...]


def assignment_view(
    members: Sequence[Member],
    partition_counts: Mapping[str, int | None],
    rates: Rates,
    assignor: str | None = None,
    *,
    queues: Collection[Partition] | None = None,
) -> AssignmentView:
    """The view of a group whose members subscribe to these topics. ``rates`` are records written per second.

    Without the number of partitions of every topic only what is owned is known: then there are no alternatives and no
    shares. ``queues`` are all partitions where they are not numbered from 0 (RocketMQ's, of several brokers): they are
    shared out by RocketMQ's own rules, so that no assignor of Kafka is an alternative.
    """
    owned = {partition for member in members for partition in member.owned}
    topics = {topic for member in members for topic in member.topics}
    counts = None if queues is not None else _counts(topics, partition_counts, owned)
    if queues is not None:
        everything: list[Partition] | None = sorted(owned.union(queues))
    else:
        everything = None if counts is None else all_partitions(counts)
    known = None if everything is None else known_rates(everything, rates)
    top = hottest(known)
    now = figures({member.member_id: member.owned for member in members}, known)
    alternatives = _alternatives(members, counts, known)
    bound = attainable = useful = None
    total = sum(known.values()) if known else 0.0
    if known and members and top is not None:
        bound = lower_bound(list(known.values()), len(members))
        useful = useful_members(list(known.values()))
        # Where members subscribe to different topics the bound still holds, but not everybody may read everything.
        if len({member.topics for member in members}) == 1:
            packed = figures(spread_evenly(known, [member.member_id for member in members]), known)
            candidates = [packed, *(alternative.figures for alternative in alternatives)]
            if len(owned) == len(known):
                candidates.append(now)
            attainable = min(c.busiest_share for c in candidates if c.busiest_share is not None)
    return AssignmentView(
        assignor=assignor,
        partitions=None if everything is None else len(everything),
        partitions_without_owner=None if everything is None else len(everything) - len(owned),
        now=now,
        hottest=None if top is None else top[0],
        hottest_share=None if top is None else top[1],
        bound_share=None if bound is None else bound.rate / total,
        bound_cause=None if bound is None else bound.cause,
        attainable_share=attainable,
        useful_members=useful,
        alternatives=alternatives,
    )


def _counts(
    topics: set[str], partition_counts: Mapping[str, int | None], owned: set[Partition]
) -> dict[str, int] | None:
    """Partitions by topic; one that is owned exists, even if the topic was described before it was added."""
    counts = dict.fromkeys(topics, 0)
    for topic in topics:
        count = partition_counts.get(topic)
        if count is None:
            return None
        counts[topic] = count
    for topic, number in owned:
        counts[topic] = max(counts.get(topic, 0), number + 1)
    return counts


def _alternatives(
    members: Sequence[Member], counts: Mapping[str, int] | None, rates: Mapping[Partition, float] | None
) -> tuple[Alternative, ...]:
    if counts is None or not members:
        return ()
    found = []
    for name, assignor in ASSIGNORS.items():
        try:
            outcome = assignor(members, counts)
        except NotDeterminedError:
            continue
        moves = moved(members, outcome.assignment)
        found.append(Alternative(name, figures(outcome.assignment, rates), moves, outcome.rebalances))
    return tuple(found)
