"""What groups that got worse together share, and the groups that are well do not: a topic, a broker, a host, ….

Twenty groups that get worse within a minute rarely do so independently. But any twenty groups share something, and a
fleet has thousands of topics and hosts to choose from. So a thing is named only if it passes three bars: it covers
nearly all of the troubled groups, at most half as large a share of the well ones has it, and a draw of as many groups
at random would seldom hit so many that have it (:func:`chance_of`, Fisher's exact test, one-sided). That chance is
multiplied by the number of things that could pass at all (Tarone's correction: R. E. Tarone, "A modified Bonferroni
method for discrete data", Biometrics 46, 1990), so that independent troubles pass this test in at most
``HIGHEST_CHANCE`` of the cases. Things that the same groups have are one candidate. Where nothing passes, there is a
second test for a broker, with the same bar, and one for a whole cluster, whose bar is a share of its groups. As long as
each gets worse by itself no more often than every 20 minutes, others reach it by chance in the two minutes before one
of them in at most ``HIGHEST_CHANCE`` of the cases: two more of three with 0.1², and larger clusters need more.
"""

import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

#: Cluster and name of a group.
GroupKey = tuple[str, str]

#: A thing explains the trouble if at least this share of the troubled groups has it.
COVERED_SHARE = 0.8
#: The share of the well groups that has a thing is at most this part of the share of the troubled ones.
HIGHEST_WELL_RATIO = 0.5
#: How often independent troubles may pass one of the two tests.
HIGHEST_CHANCE = 0.01
#: Of equally good explanations as many are named.
_MOST_THINGS = 3


class ThingKind(StrEnum):
    """What groups may share, in the order in which ties are named: what is most likely to be the cause comes first."""

    DOWNSTREAM = "downstream"
    BROKER = "broker"
    HOST = "host"
    TOPIC = "topic"
    CLIENT_ID = "client_id"
    CLUSTER = "cluster"

    @property
    def rank(self) -> int:
        """Position from the likeliest (0) on."""
        return tuple(ThingKind).index(self)


@dataclass(frozen=True, slots=True, order=True)
class SharedThing:
    """A thing that several groups have. ``cluster`` is None where groups of several clusters may share it."""

    kind: ThingKind
    name: str
    cluster: str | None = None

    def __str__(self) -> str:
        return f"{self.kind.value.replace('_', ' ')} {self.name}"


@dataclass(frozen=True, slots=True)
class GroupTraits:
    """What a group may share with others."""

    things: frozenset[SharedThing]
    #: The one broker that leads all of its partitions in trouble, while others lead the rest; None where it is not so.
    only_broker: SharedThing | None = None
    #: The largest share of the group's partitions that one broker leads.
    largest_broker_share: float = 1.0


@dataclass(frozen=True, slots=True)
class Correlation:
    """What the troubled groups share. Several ``things`` explain the trouble equally well."""

    things: tuple[SharedThing, ...]
    #: The troubled groups that have one of the things.
    groups: frozenset[GroupKey]


def find_shared(
    troubled: Mapping[GroupKey, GroupTraits],
    well: Mapping[GroupKey, GroupTraits],
    minimum_groups: int,
    observed: Iterable[GroupKey] = (),
) -> Correlation | None:
    """What sets the groups that got worse together apart from those that are well; None where nothing is certain.

    Of all things that pass the bars, the one that fits best: with the fewest groups that are well and have it, or are
    in trouble and lack it. Where none passes, the cluster, if nearly all of its groups got worse. ``observed`` are all
    groups, also those that are unknown or have been in trouble for longer.
    """
    need = max(minimum_groups, math.ceil(COVERED_SHARE * len(troubled)))
    if len(troubled) < need:
        return None
    carriers = _carriers(troubled, well, need)
    tests = _number_of_tests(list(map(len, carriers)), len(troubled), len(troubled) + len(well))
    misfits = {
        things: len(groups ^ troubled.keys())
        for groups, things in carriers.items()
        if _sets_apart(groups, troubled, well, tests, need)
    }
    best = min(misfits.values(), default=0)
    tied = [thing for things, misfit in misfits.items() if misfit == best for thing in things]
    things = _most_specific(tied)
    if not things or things[0].kind is ThingKind.CLUSTER:
        things = _one_broker(troubled, need) or things or _whole_cluster(troubled, {*well, *observed}, need)
    if not things:
        return None
    return Correlation(things, frozenset(key for key, one in troubled.items() if not one.things.isdisjoint(things)))


def chance_of(hits: int, drawn: int, marked: int, total: int) -> float:
    """How likely a random draw of ``drawn`` out of ``total`` groups has at least ``hits`` of the ``marked`` ones.

    The upper tail of the hypergeometric distribution, between 0 and 1.
    """
    whole = _log_choose(total, drawn)
    first = max(hits, drawn + marked - total, 0)
    terms = (
        math.exp(_log_choose(marked, k) + _log_choose(total - marked, drawn - k) - whole)
        for k in range(first, min(drawn, marked) + 1)
    )
    return min(1.0, math.fsum(terms))


def _log_choose(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def _carriers(
    troubled: Mapping[GroupKey, GroupTraits], well: Mapping[GroupKey, GroupTraits], need: int
) -> dict[frozenset[GroupKey], tuple[SharedThing, ...]]:
    """The things by the groups that have them. Left out is what too few groups have to explain the trouble."""
    groups_of: dict[SharedThing, set[GroupKey]] = defaultdict(set)
    for key, traits in (*troubled.items(), *well.items()):
        for thing in traits.things:
            groups_of[thing].add(key)
    found: dict[frozenset[GroupKey], list[SharedThing]] = defaultdict(list)
    for thing, groups in groups_of.items():
        if len(groups) >= need:
            found[frozenset(groups)].append(thing)
    return {groups: tuple(sorted(things)) for groups, things in found.items()}


def _number_of_tests(sizes: Sequence[int], drawn: int, total: int) -> int:
    """By how much the chance of each candidate is multiplied (Tarone): the smallest number k such that at most k
    candidates could have a chance of ``HIGHEST_CHANCE / k`` or less, if all that have them were in trouble.

    ``sizes`` say how many groups have each candidate.
    """
    least = sorted(chance_of(min(size, drawn), drawn, size, total) for size in sizes)
    enough = (k for k in range(1, len(least)) if bisect_right(least, HIGHEST_CHANCE / k) <= k)
    return next(enough, max(1, len(least)))


def _sets_apart(
    groups: frozenset[GroupKey],
    troubled: Mapping[GroupKey, GroupTraits],
    well: Mapping[GroupKey, GroupTraits],
    tests: int,
    need: int,
) -> bool:
    hits = len(groups & troubled.keys())
    if hits < need or not well:
        return False
    well_share = (len(groups) - hits) / len(well)
    if well_share > HIGHEST_WELL_RATIO * hits / len(troubled):
        return False
    return chance_of(hits, len(troubled), len(groups), len(troubled) + len(well)) * tests <= HIGHEST_CHANCE


def _most_specific(things: Iterable[SharedThing]) -> tuple[SharedThing, ...]:
    """The first few in the order of their kinds. Every group has a cluster: it is named only where nothing else is."""
    ordered = sorted(things, key=lambda thing: (thing.kind.rank, thing))
    narrower = [thing for thing in ordered if thing.kind is not ThingKind.CLUSTER]
    return tuple((narrower or ordered)[:_MOST_THINGS])


def _whole_cluster(
    troubled: Mapping[GroupKey, GroupTraits], others: set[GroupKey], need: int
) -> tuple[SharedThing, ...]:
    """The cluster of nearly all troubled groups, if nearly all groups of it got worse."""
    for cluster in sorted({cluster for cluster, _ in troubled}):
        worse = sum(one == cluster for one, _ in troubled)
        rest = sum(key[0] == cluster for key in others - troubled.keys())
        if worse >= max(need, COVERED_SHARE * (worse + rest)):
            return (SharedThing(ThingKind.CLUSTER, cluster, cluster),)
    return ()


def _one_broker(troubled: Mapping[GroupKey, GroupTraits], need: int) -> tuple[SharedThing, ...]:
    """The broker that leads just the partitions in trouble of nearly all troubled groups.

    All groups of a cluster may have partitions on each broker, so that those that are well do not tell brokers apart.
    But each troubled group has partitions of other brokers, which are well. If the trouble of each sat on one of its
    brokers at random, so many groups would agree on any broker with at most the chance computed here: the first may
    have any, every other has it with its largest share at most, and the groups that agree may be any of all.
    """
    shares: dict[SharedThing, list[float]] = defaultdict(list)
    for traits in troubled.values():
        if traits.only_broker is not None:
            shares[traits.only_broker].append(traits.largest_broker_share)
    for broker, its in shares.items():
        chance = math.comb(len(troubled), len(its)) * math.prod(sorted(its)[:-1])
        if len(its) >= need and chance <= HIGHEST_CHANCE:
            return (broker,)
    return ()
