"""The answer to "how many threads, nodes and partitions?": the triple or why there is none, and where it comes from."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields

from lagwise.domain.humanise import plural
from lagwise.domain.sizing.changes import Change, changes
from lagwise.domain.sizing.formulas import (
    knee_threads,
    node_ceiling_per_second,
    nodes_for_rate,
    straight_line_rate_per_second,
    thread_rate_per_second,
)
from lagwise.domain.sizing.ranges import MAX_THREADS
from lagwise.domain.sizing.repairman import NodeThroughput
from lagwise.domain.sizing.search import (
    Binding,
    Triple,
    find_triple,
    hottest_key_share,
    largest_capacity_per_second,
    largest_peak_per_second,
    node_at,
    thread_limit,
    threads_that_fill_a_node,
    what_binds,
)
from lagwise.domain.sizing.words import say_duration, say_number, say_share, verdict
from lagwise.domain.sizing.workload import Ordering, Workload


@dataclass(frozen=True, slots=True)
class Figure:
    """One number of the advice with what it was made of."""

    name: str
    #: The name as a reader sees it.
    label: str
    #: None where it is infinite.
    value: float | None
    unit: str
    how: str


@dataclass(frozen=True, slots=True)
class NodePoint:
    """One node at one number of threads: what the straight lines promise and what it really does."""

    #: Why this point is shown: ``one thread``, ``the formula's knee``, ``advised``.
    label: str
    straight_line_rate_per_second: float
    node: NodeThroughput


@dataclass(frozen=True, slots=True)
class SizingAdvice:
    """What is advised for a workload."""

    workload: Workload
    #: The answer; None where there is none, then ``verdict`` says why.
    triple: Triple | None
    binds: Binding
    verdict: str
    #: Changes that give an answer or save nodes, the cheapest first.
    changes: tuple[Change, ...]
    #: One node with one thread, at the formula's knee, and with the advised threads.
    points: tuple[NodePoint, ...]
    figures: tuple[Figure, ...]

    @property
    def partitions(self) -> int:
        """Partitions of the topic, as asked."""
        return self.workload.partitions

    @property
    def nodes(self) -> int | None:
        """All nodes, spare ones included; None where there is no answer."""
        return self.triple.nodes if self.triple else None

    @property
    def threads_per_node(self) -> int | None:
        """Threads on each node; None where there is no answer."""
        return self.triple.threads_per_node if self.triple else None

    @property
    def cheapest_change(self) -> str | None:
        """The first change in words; None where none is needed or none helps."""
        return self.changes[0].sentence if self.changes else None

    @property
    def threads(self) -> int:
        """Threads that a node is looked at with: those advised, or where there is no answer those it would get."""
        return self.triple.threads_per_node if self.triple else thread_limit(self.workload)

    def as_document(self, sources: Mapping[str, str] | None = None) -> dict[str, object]:
        """The advice as plain values for JSON. ``sources`` says where an input comes from, by its name.

        Infinite values (the knee where T2 is 0) are null.
        """
        known = sources or {}
        inputs = {f.name: getattr(self.workload, f.name) for f in fields(self.workload)}
        return {
            "feasible": self.triple is not None,
            "triple": asdict(self.triple) if self.triple else None,
            "binds": self.binds.value,
            "verdict": self.verdict,
            "changes": [
                {"kind": c.kind.value, "sentence": c.sentence, "cost": c.cost, "triple": asdict(c.triple)}
                for c in self.changes
            ],
            "inputs": {name: {"value": value, "source": known.get(name, "given")} for name, value in inputs.items()},
            "figures": {f.name: {"value": f.value, "unit": f.unit, "how": f.how} for f in self.figures},
            "node": [_point_document(point) for point in self.points],
        }


def advise(workload: Workload) -> SizingAdvice:
    """Answer one question to sizing."""
    triple = find_triple(workload)
    binding = what_binds(workload, triple)
    return SizingAdvice(
        workload=workload,
        triple=triple,
        binds=binding,
        verdict=verdict(workload, triple, binding),
        changes=changes(workload, triple, binding),
        points=_points(workload, triple),
        figures=tuple(_figures(workload, triple)),
    )


def _points(workload: Workload, triple: Triple | None) -> tuple[NodePoint, ...]:
    labels: dict[int, str] = {}
    knee = knee_threads(workload.cores, workload.t1_seconds, workload.t2_seconds)
    named = [(1, "one thread")]
    if knee <= MAX_THREADS:
        named.append((max(1, math.floor(knee + 0.5)), "the formula's knee"))
    fills = "fills the node" if threads_that_fill_a_node(workload) else "the most a node may have"
    named.append((thread_limit(workload), fills))
    if triple is not None:
        named.append((triple.threads_per_node, "advised"))
    for threads, label in named:
        labels[threads] = f"{labels[threads]}, {label}" if threads in labels else label
    return tuple(
        NodePoint(
            label,
            straight_line_rate_per_second(workload.cores, threads, workload.t1_seconds, workload.t2_seconds),
            node_at(workload, threads),
        )
        for threads, label in sorted(labels.items())
    )


def _point_document(point: NodePoint) -> dict[str, object]:
    return {
        "threads": point.node.threads,
        "label": point.label,
        "straight_line_rate_per_second": point.straight_line_rate_per_second,
        "rate_per_second": point.node.rate_per_second,
        "core_utilisation": point.node.core_utilisation,
        "core_wait_seconds": point.node.core_wait_seconds,
    }


def _figures(w: Workload, triple: Triple | None) -> list[Figure]:
    t1, t2 = say_duration(w.t1_seconds), say_duration(w.t2_seconds)
    cores, peak = say_number(w.cores), say_number(w.peak_rate_per_second)
    catch_up = say_duration(w.catch_up_seconds)
    away, away_seconds, away_catch_up = "restart", say_duration(w.restart_seconds), catch_up
    if w.outage_binds:
        away, away_seconds = "outage", say_duration(w.outage_seconds)
        away_catch_up = say_duration(w.outage_catch_up_seconds)
    limit = thread_limit(w)
    full = node_at(w, limit)
    most = full if triple is None else node_at(w, max(limit, triple.threads_per_node))
    per_second = "messages/s"
    backlog = f" + {say_number(w.lag)} / {catch_up}" if w.lag else ""
    figures = [
        Figure(
            "knee_threads_per_node",
            "threads at the formula's knee",
            _finite(knee_threads(w.cores, w.t1_seconds, w.t2_seconds)),
            "threads",
            f"C · (T1 + T2) / T2 = {cores} · ({t1} + {t2}) / {t2}" if w.t2_seconds else "none: T2 is 0",
        ),
        Figure(
            "threads_that_fill_a_node",
            "threads that fill a node",
            threads_that_fill_a_node(w),
            "threads",
            f"the fewest with which a node does {say_share(w.share_of_ceiling)} of its ceiling C / T2, at most "
            f"{w.max_threads_per_node:,} (M/M/c//N)",
        ),
        Figure(
            "thread_rate_per_second",
            "one thread alone",
            thread_rate_per_second(w.t1_seconds, w.t2_seconds),
            per_second,
            f"1 / (T1 + T2) = 1 / ({t1} + {t2})",
        ),
        Figure(
            "node_ceiling_per_second",
            "a node's ceiling",
            _finite(node_ceiling_per_second(w.cores, w.t2_seconds)),
            per_second,
            f"C / T2 = {cores} / {t2}" if w.t2_seconds else "none: T2 is 0",
        ),
        Figure(
            "node_rate_per_second",
            "a node with these threads",
            full.rate_per_second,
            per_second,
            f"M/M/c//N with N = {limit:,}, T1 = {t1}, T2 = {t2}, c = {cores}",
        ),
        Figure(
            "demand_rate_per_second",
            "demand while catching up",
            w.demand_rate_per_second,
            per_second,
            f"peak · (1 + {away} / {'its ' if w.outage_binds else ''}catch-up){' + lag / catch-up' if w.lag else ''} = "
            f"{peak} · (1 + {away_seconds} / {away_catch_up}){backlog}",
        ),
        Figure(
            "required_rate_per_second",
            "capacity needed",
            w.required_rate_per_second,
            per_second,
            f"demand / target utilisation = {say_number(w.demand_rate_per_second)} / {say_share(w.target_utilisation)}",
        ),
        Figure(
            "nodes_by_cpu",
            "nodes the cores need",
            nodes_for_rate(w.required_rate_per_second, most.rate_per_second),
            "nodes",
            f"required / node = {say_number(w.required_rate_per_second)} / {say_number(most.rate_per_second)}, "
            + (f"a node with the {most.threads:,} threads advised, " if most.threads > limit else "")
            + "rounded up, without spare nodes",
        ),
        Figure(
            "hottest_share",
            "hottest partition",
            w.hottest,
            "of the traffic",
            (
                f"taken as even: 1 / {w.partitions:,} partitions"
                if w.hottest_share is None
                else f"as asked; were all {w.partitions:,} partitions alike, {say_share(1 / w.partitions)}"
            ),
        ),
        Figure(
            "largest_capacity_per_second",
            "most these partitions allow",
            largest_capacity_per_second(w),
            per_second,
            f"what {w.partitions:,} partitions, this skew and this order allow with any number of nodes",
        ),
    ]
    if w.order is Ordering.NONE:
        threads = triple.threads_per_node if triple else limit
        one = say_number(node_at(w, threads).thread_rate_per_second)
        figures.append(
            Figure(
                "hottest_key_share",
                "hottest key, at most",
                hottest_key_share(w, threads),
                "of the traffic",
                "where the pool keeps the order of keys: a thread / required = "
                f"{one} / {say_number(w.required_rate_per_second)}",
            )
        )
    if triple is not None:
        figures += [
            Figure(
                "capacity_per_second",
                "capacity advised",
                triple.capacity_per_second,
                per_second,
                f"{plural(triple.working_nodes, 'node')} of {plural(triple.threads_per_node, 'thread')}, "
                "the spare ones gone",
            ),
            Figure(
                "largest_peak_per_second",
                "peak it is good for",
                largest_peak_per_second(w, triple),
                per_second,
                "the peak at which this answer would be used up, everything else as given",
            ),
        ]
    return figures


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
