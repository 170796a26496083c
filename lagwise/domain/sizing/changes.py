"""What could be changed where a workload cannot be carried, or only with more nodes than its cores need.

Every change is tried: it is offered only if the same search, asked again, finds an answer that is better, by so
much that it is worth the change.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import chain
from math import floor, inf, log10, sqrt

from lagwise.domain.humanise import per_cent, plural, precise_duration
from lagwise.domain.sizing.formulas import meets
from lagwise.domain.sizing.ranges import MIN_SERVICE_SECONDS, check_count
from lagwise.domain.sizing.triple_search import Binding, Triple, find_triple, node_at, nodes_by_cpu, thread_limit
from lagwise.domain.sizing.workload import MAX_PARTITIONS, Concurrency, Ordering, Workload

#: Adding partitions is one command, but it cannot be taken back, moves keys to other partitions, and costs the brokers
#: and every rebalance. Up to this factor it is offered before changes to the consumers' code, beyond it after them.
_CHEAP_PARTITION_GROWTH = 4
#: A change that saves less is not worth it: so large a share of the nodes, and so many of them.
_LEAST_SAVED_SHARE, _LEAST_SAVED = 0.1, 2
#: Batches may make a message cheaper by hundreds of times. More is not offered: the time is a mistake.
_MOST_SPEED_UP = 1_000.0
#: Shares of the capacity that the demand may use; beyond the last one, queues grow long at the smallest surprise.
_HIGHER_UTILISATIONS = (0.75, 0.8, 0.85, 0.9)
_LONGER_CATCH_UPS_SECONDS = tuple(hours * 3_600.0 for hours in (1, 2, 4, 8, 12, 24, 48, 72, 168))


class ChangeKind(StrEnum):
    """What is changed."""

    CATCH_UP = "catch_up"
    PARTITIONS = "partitions"
    SPREAD = "spread"
    POOL = "pool"
    ORDERING = "ordering"
    FASTER = "faster"
    UTILISATION = "utilisation"


@dataclass(frozen=True, slots=True)
class Change:
    """One change, the workload after it, and the answer that exists then."""

    kind: ChangeKind
    sentence: str
    workload: Workload
    triple: Triple
    #: What else it costs, in words; None where that is nothing but the work.
    cost: str | None = None


def changes(workload: Workload, triple: Triple | None, binding: Binding) -> tuple[Change, ...]:
    """Changes that give an answer, or one with fewer nodes, the cheapest first; empty where none is needed."""
    if triple is not None and binding not in (Binding.PARTITIONS, Binding.SKEW):
        return ()
    found: list[Change] = []
    candidates = _candidates(workload)
    if triple is None:
        candidates = chain(_longer_catch_up(workload), candidates, _faster(workload), _less_slack(workload))
    for kind, sentence, changed in candidates:
        then = find_triple(changed)
        if then is not None and _is_worth_it(triple, then) and not _is_needless(kind, then, found):
            more = changed.partitions > workload.partitions
            cost = partition_cost_sentence(workload.partitions, changed.partitions) if more else None
            found.append(Change(kind, f"{sentence}: then {_answer(changed, then)}.", changed, then, cost))
    return tuple(found)


def _is_worth_it(before: Triple | None, then: Triple) -> bool:
    """Whether there was no answer, or this one saves enough."""
    if before is None:
        return True
    return before.nodes - then.nodes >= max(_LEAST_SAVED, _LEAST_SAVED_SHARE * before.nodes)


def _is_needless(kind: ChangeKind, then: Triple, cheaper: list[Change]) -> bool:
    """Whether a cheaper change of the partitions or of how the traffic is spread over them gives as good an answer:
    partitions that were added cannot be taken away."""
    if kind is not ChangeKind.PARTITIONS:
        return False
    alike = (ChangeKind.PARTITIONS, ChangeKind.SPREAD)
    return any(one.kind in alike and one.triple.nodes <= then.nodes for one in cheaper)


def _candidates(workload: Workload) -> Iterator[tuple[ChangeKind, str, Workload]]:
    more = _more_partitions(workload)
    yield from _better_spread(workload)
    if more is not None and more.partitions <= _CHEAP_PARTITION_GROWTH * workload.partitions:
        yield ChangeKind.PARTITIONS, _raise_text(workload, more), more
    if workload.order is Ordering.GLOBAL:
        looser = replace(workload, ordering=Ordering.PARTITION)
        yield ChangeKind.ORDERING, "If order within each partition is enough, give up the global order", looser
    # Somebody who asked for the order of a partition is not offered to lose it.
    elif (
        workload.order is Ordering.PARTITION and workload.ordering is not Ordering.PARTITION and not workload.by_members
    ):
        pool = replace(workload, concurrency=Concurrency.POOL, ordering=Ordering.NONE)
        sentence = (
            "If the order within a partition does not matter (or only that of a key), let one consumer per node hand "
            "its messages to a pool of threads"
        )
        yield ChangeKind.POOL, sentence, pool
    if more is not None and more.partitions > _CHEAP_PARTITION_GROWTH * workload.partitions:
        yield ChangeKind.PARTITIONS, _raise_text(workload, more), more
    if more is not None and workload.hottest_share is not None:
        both = replace(more, hottest_share=None)
        yield (
            ChangeKind.PARTITIONS,
            f"{_raise_text(workload, more)}, and spread the keys evenly over them",
            both,
        )


def _longer_catch_up(workload: Workload) -> Iterator[tuple[ChangeKind, str, Workload]]:
    """Time costs nothing; but it helps only where the backlog, not the peak, is what is too much."""
    for seconds in _LONGER_CATCH_UPS_SECONDS:
        before = workload.outage_catch_up_seconds if workload.outage_binds else workload.catch_up_seconds
        if seconds <= before:
            continue
        after_outage = max(seconds, workload.outage_catch_up_seconds)
        patient = replace(workload, catch_up_seconds=seconds, outage_catch_up_seconds=after_outage)
        if find_triple(patient) is not None:
            sentence = f"Allow {precise_duration(seconds)} instead of {precise_duration(before)} to catch up"
            yield ChangeKind.CATCH_UP, sentence, patient
            return


def _more_partitions(workload: Workload) -> Workload | None:
    """The next number of partitions that the nodes the cores need, or their threads, hold equally many of.

    A hottest share that was given stays as it is: a partition that is hot for one key's sake stays hot.
    """
    if workload.order is Ordering.GLOBAL:
        return None
    nodes = nodes_by_cpu(workload)
    readers = nodes
    if workload.order is Ordering.PARTITION:
        required = workload.required_rate_per_second
        threads = thread_limit(workload)
        while threads > 1 and meets(nodes * node_at(workload, threads - 1).rate_per_second, required):
            threads -= 1
        readers = nodes * threads
    wanted = readers * (workload.partitions // readers + 1)
    if wanted > MAX_PARTITIONS:
        return None
    return replace(workload, partitions=wanted)


def _raise_text(before: Workload, after: Workload) -> str:
    return f"Raise the topic from {before.partitions:,} to {plural(after.partitions, 'partition')}"


def _better_spread(workload: Workload) -> Iterator[tuple[ChangeKind, str, Workload]]:
    """The largest hottest share that costs no more nodes than an even spread would."""
    if workload.hottest_share is None or workload.order is Ordering.GLOBAL:
        return
    even = find_triple(replace(workload, hottest_share=None))
    if even is None:
        return
    lowest = 1.0 / workload.partitions

    def spread(share: float) -> Workload:
        return replace(workload, hottest_share=max(lowest, share))

    share = _round_down(_largest(lowest, workload.hottest, lambda h: _nodes(spread(h)) <= even.nodes))
    how = f"at most {per_cent(share)}" if share > lowest else f"an even {per_cent(lowest)}"
    hot = per_cent(workload.hottest)
    sentence = f"Choose keys that spread the hottest partition, from {hot} of the traffic to {how}"
    yield ChangeKind.SPREAD, sentence, spread(share)


def _faster(workload: Workload) -> Iterator[tuple[ChangeKind, str, Workload]]:
    """The longest time per message, T1 and T2 shortened alike, that needs no more nodes than the cores do now."""
    before = workload.t1_seconds + workload.t2_seconds
    shares = (workload.t1_seconds / before, workload.t2_seconds / before)
    shortest = max(MIN_SERVICE_SECONDS / share for share in shares if share > 0.0)
    allowed = nodes_by_cpu(workload) + workload.spare_nodes

    def taking(seconds: float) -> Workload:
        t1, t2 = (max(seconds, shortest) * share for share in shares)
        return replace(workload, t1_seconds=t1, t2_seconds=t2)

    after = _round_down(_largest(shortest, before, lambda seconds: _nodes(taking(seconds)) <= allowed))
    if after * _MOST_SPEED_UP < before:
        return
    of_what = "" if workload.by_members else " (T1 + T2)"
    sentence = (
        f"Bring the time per message{of_what} down from {precise_duration(before)} to at most "
        f"{precise_duration(after)}, by batches, a cache, or leaving work out"
    )
    yield ChangeKind.FASTER, sentence, taking(after)


def _less_slack(workload: Workload) -> Iterator[tuple[ChangeKind, str, Workload]]:
    """The least of the higher shares of the capacity that the demand may use, by which there is an answer. The last
    resort: what it costs is the slack for what was not foreseen."""
    before = workload.target_utilisation
    for share in _HIGHER_UTILISATIONS:
        fuller = replace(workload, target_utilisation=share)
        if share > before and find_triple(fuller) is not None:
            sentence = (
                f"Let the demand use {per_cent(share)} of the capacity instead of {per_cent(before)}, with less slack"
            )
            yield ChangeKind.UTILISATION, sentence, fuller
            return


def _nodes(workload: Workload) -> float:
    triple = find_triple(workload)
    return triple.nodes if triple else inf


def _largest(low: float, high: float, holds: Callable[[float], bool]) -> float:
    """The largest value in [low, high] up to which ``holds`` holds, by halving on a logarithmic scale; else ``low``."""
    for _ in range(30):
        middle = sqrt(low * high)
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def _answer(workload: Workload, triple: Triple) -> str:
    spare = f" (of them {triple.spare_nodes} spare)" if triple.spare_nodes else ""
    threads = "" if workload.by_members else f" with {plural(triple.threads_per_node, 'thread')} each"
    return f"{plural(triple.nodes, workload.unit)}{spare}{threads} carry it"


def _round_down(value: float, digits: int = 3) -> float:
    """Rounded down to a few significant digits, so that what is said is still true."""
    if value <= 0.0:
        return 0.0
    scale = 10.0 ** (digits - 1 - floor(log10(value)))
    return floor(value * scale) / scale


#: A new partition has one segment. Per replica a segment is an open file and two memory maps, of its offset and its
#: time index (Kafka's documentation, "OS", on ``vm.max_map_count``). Measured on Kafka 4.3: 10,000 partitions of one
#: segment hold 10,200 files open.
_MAPS_OF_A_SEGMENT = 2


def partition_cost_sentence(before: int, after: int) -> str:
    """The consequences of raising a topic from ``before`` partitions to more, in two or three sentences."""
    check_count("before", before, 1, 10_000_000)
    check_count("after", after, before + 1, 10_000_000)
    more = after - before
    return (
        f"It costs: for each replica at least {plural(more, 'open file')} and {_MAPS_OF_A_SEGMENT * more:,} memory "
        f"maps more on the brokers, {plural(more, 'partition')} more to replicate and to elect leaders for when a "
        "broker fails, and more to hand over in every rebalance. Keys move to other partitions, so a key's order "
        "breaks unless all is read before the change. It cannot be undone."
    )
