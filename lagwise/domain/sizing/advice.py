"""The answer to "how many threads, nodes and partitions?": the triple or why there is none, and where it comes from."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from lagwise.domain.sizing.advice_text import is_unit_doubtful, verdict
from lagwise.domain.sizing.changes import Change, changes
from lagwise.domain.sizing.downstream import DownstreamFull
from lagwise.domain.sizing.figures import Figure, demand_figures, figures_of
from lagwise.domain.sizing.formulas import (
    knee_threads,
    straight_line_rate_per_second,
)
from lagwise.domain.sizing.node_throughput import NodeThroughput
from lagwise.domain.sizing.ranges import MAX_THREADS
from lagwise.domain.sizing.triple_search import (
    Binding,
    Triple,
    find_triple,
    node_at,
    thread_limit,
    threads_that_fill_a_node,
    what_binds,
)
from lagwise.domain.sizing.workload import Workload


@dataclass(frozen=True, slots=True)
class NodePoint:
    """One node at one number of threads: what the straight lines promise and what it really does."""

    #: Why this point is shown: ``one thread``, ``the formula's knee``, ``advised``.
    label: str
    #: What the formula's straight lines give.
    straight_line_rate_per_second: float
    #: What the machine-repairman model gives.
    node: NodeThroughput


@dataclass(frozen=True, slots=True)
class SizingAdvice:
    """What is advised for a workload."""

    #: The question.
    workload: Workload
    #: The answer; None where there is none, then ``verdict`` says why.
    triple: Triple | None
    #: What limits the answer.
    binds: Binding
    #: The answer in words.
    verdict: str
    #: Changes that give an answer or save nodes, the cheapest first.
    changes: tuple[Change, ...]
    #: One node with one thread, at the formula's knee, and with the advised threads; empty where members are sized.
    points: tuple[NodePoint, ...]
    #: The numbers behind the verdict, each with how it is computed.
    figures: tuple[Figure, ...]
    #: Why nothing more is advised; None where the downstream is not known to be full.
    downstream: DownstreamFull | None = None

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
        """Threads of a node in the figures: those advised, or where there is no answer those it would get."""
        return self.triple.threads_per_node if self.triple else thread_limit(self.workload)

    def as_document(self, sources: Mapping[str, str] | None = None) -> dict[str, object]:
        """The advice as plain values for JSON. ``sources`` says where an input comes from, by its name.

        Infinite values (the knee where T2 is 0) are null.
        """
        known = sources or {}
        return {
            "feasible": self.triple is not None,
            "triple": asdict(self.triple) if self.triple else None,
            "binds": self.binds.value,
            "verdict": self.verdict,
            "changes": [
                {"kind": c.kind.value, "sentence": c.sentence, "cost": c.cost, "triple": asdict(c.triple)}
                for c in self.changes
            ],
            "inputs": {
                name: {"value": value, "source": known.get(name, "given")}
                for name, value in inputs_of(self.workload).items()
            },
            "figures": {f.name: {"value": f.value, "unit": f.unit, "how": f.how} for f in self.figures},
            "node": [_point_document(point) for point in self.points],
            "downstream_full": asdict(self.downstream) if self.downstream else None,
        }


def inputs_of(workload: Workload) -> dict[str, Any]:
    """What is asked, by name. Where members are sized, T1, T2 and cores are not known (None), but the time per message
    is."""
    values = {f.name: getattr(workload, f.name) for f in fields(workload)}
    if not workload.by_members:
        return values
    not_known = dict.fromkeys(("t1_seconds", "t2_seconds", "cores"))
    return {"seconds_per_message": workload.t1_seconds, **values, **not_known}


def advise(workload: Workload, downstream: DownstreamFull | None = None) -> SizingAdvice:
    """Answer one question to sizing. Where the downstream is full, nothing is advised: T1 is what the threads that run
    make of it, so every number that rests on T1 would only ask for more of them."""
    if downstream is not None:
        return SizingAdvice(
            workload=workload,
            triple=None,
            binds=Binding.DOWNSTREAM,
            verdict=downstream.verdict(workload.required_rate_per_second),
            changes=(),
            points=(),
            figures=tuple(demand_figures(workload)),
            downstream=downstream,
        )
    triple = find_triple(workload)
    binding = what_binds(workload, triple)
    return SizingAdvice(
        workload=workload,
        triple=triple,
        binds=binding,
        verdict=verdict(workload, triple, binding),
        changes=() if is_unit_doubtful(workload) else changes(workload, triple, binding),
        points=_points(workload, triple),
        figures=tuple(figures_of(workload, triple)),
    )


def _points(workload: Workload, triple: Triple | None) -> tuple[NodePoint, ...]:
    if workload.by_members:
        return ()
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
