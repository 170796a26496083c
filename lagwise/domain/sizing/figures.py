"""Every figure of the advice, with what it was made of."""

import math
from dataclasses import dataclass

from lagwise.domain.humanise import per_cent, plural, precise_duration, significant
from lagwise.domain.sizing.formulas import (
    knee_threads,
    node_ceiling_per_second,
    nodes_for_rate,
    thread_rate_per_second,
)
from lagwise.domain.sizing.triple_search import (
    Triple,
    hottest_key_share,
    largest_capacity_per_second,
    largest_planned_rate_per_second,
    node_at,
    thread_limit,
    threads_that_fill_a_node,
)
from lagwise.domain.sizing.workload import Ordering, SizeBy, Workload, nodes_and_threads

_PER_SECOND = "messages/s"
#: Up to which rate an answer is enough, by whether the objective decides.
SUFFICIENT = {False: "sufficient up to a peak of", True: "sufficient while the objective takes"}


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


def rate_figures(w: Workload) -> list[Figure]:
    """The least capacity that keeps the objective beside the highest minute, and which of them is planned with."""
    by_this, instead = "planned with", "for comparison"
    if w.objective_rate_per_second is None:
        if w.size_by is SizeBy.OBJECTIVE:
            by_this = "planned with: what a lag objective takes is unknown"
        return [_rate_figure("peak", "by the highest minute", w.peak_rate_per_second, by_this)]
    return [
        _rate_figure(
            "objective",
            by_objective(w.objective_seconds),
            w.objective_rate_per_second,
            by_this if w.is_by_objective else instead,
        ),
        _rate_figure(
            "peak", "by the highest minute", w.peak_rate_per_second, instead if w.is_by_objective else by_this
        ),
    ]


def by_objective(objective_seconds: float | None) -> str:
    """``by the objective of 5 min``; None is an objective that is not known."""
    of = "" if objective_seconds is None else f" of {precise_duration(objective_seconds)}"
    return f"by the objective{of}"


def _planned(w: Workload) -> str:
    return "objective's rate" if w.is_by_objective else "peak"


def _rate_figure(name: str, label: str, rate_per_second: float, how: str) -> Figure:
    return Figure(f"{name}_rate_per_second", label, rate_per_second, _PER_SECOND, how)


def demand_figures(w: Workload) -> list[Figure]:
    """What must be done, whatever does it."""
    rate, catch_up = significant(w.planned_rate_per_second), precise_duration(w.catch_up_seconds)
    lag = " + lag / catch-up" if w.lag else ""
    away, away_seconds, away_catch_up = "restart", precise_duration(w.restart_seconds), catch_up
    if w.outage_binds:
        away, away_seconds = "outage", precise_duration(w.outage_seconds)
        away_catch_up = precise_duration(w.outage_catch_up_seconds)
    backlog = f" + {significant(w.lag)} / {catch_up}" if w.lag else ""
    return [
        *rate_figures(w),
        Figure(
            "demand_rate_per_second",
            "demand while catching up",
            w.demand_rate_per_second,
            _PER_SECOND,
            f"{_planned(w)} · (1 + {away} / {'its ' if w.outage_binds else ''}catch-up){lag} = "
            f"{rate} · (1 + {away_seconds} / {away_catch_up}){backlog}",
        ),
        Figure(
            "required_rate_per_second",
            "capacity needed",
            w.required_rate_per_second,
            _PER_SECOND,
            f"demand / target utilisation = {significant(w.demand_rate_per_second)} / {per_cent(w.target_utilisation)}",
        ),
    ]


def figures_of(w: Workload, triple: Triple | None) -> list[Figure]:
    """The numbers between what is asked and the answer; those of members where nothing is known of cores."""
    t1, t2 = precise_duration(w.t1_seconds), precise_duration(w.t2_seconds)
    cores = significant(w.cores)
    limit = thread_limit(w)
    full = node_at(w, limit)
    most = full if triple is None else node_at(w, max(limit, triple.threads_per_node))
    of_a_node = [
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
            f"the fewest with which a node does {per_cent(w.share_of_ceiling)} of its ceiling C / T2, at most "
            f"{w.max_threads_per_node:,} (M/M/c//N)",
        ),
        Figure(
            "thread_rate_per_second",
            "one thread alone",
            thread_rate_per_second(w.t1_seconds, w.t2_seconds),
            _PER_SECOND,
            f"1 / (T1 + T2) = 1 / ({t1} + {t2})",
        ),
        Figure(
            "node_ceiling_per_second",
            "a node's ceiling",
            _finite(node_ceiling_per_second(w.cores, w.t2_seconds)),
            _PER_SECOND,
            f"C / T2 = {cores} / {t2}" if w.t2_seconds else "none: T2 is 0",
        ),
        Figure(
            "node_rate_per_second",
            f"a node with {plural(limit, 'thread')}",
            full.rate_per_second,
            _PER_SECOND,
            f"M/M/c//N with N = {limit:,}, T1 = {t1}, T2 = {t2}, c = {cores}",
        ),
    ]
    of_a_member = [
        Figure(
            f"{w.unit}_rate_per_second",
            f"one {w.unit}",
            full.rate_per_second,
            _PER_SECOND,
            f"1 / time per message = 1 / {t1}",
        )
    ]
    unit = w.unit
    figures = [
        *(of_a_member if w.by_members else of_a_node),
        *demand_figures(w),
        Figure(
            f"{w.unit}s_by_time" if w.by_members else "nodes_by_cpu",
            f"{w.unit}s the load needs" if w.by_members else "nodes the cores need",
            nodes_for_rate(w.required_rate_per_second, most.rate_per_second),
            f"{unit}s",
            f"required / {unit} = {significant(w.required_rate_per_second)} / {significant(most.rate_per_second)}, "
            + (f"a node with the {most.threads:,} threads advised, " if most.threads > limit else "")
            + f"rounded up{f', without spare {unit}s' if w.spare_nodes else ''}",
        ),
        Figure(
            "hottest_share",
            "hottest partition",
            w.hottest,
            "of the traffic",
            (
                f"taken as even: 1 / {plural(w.partitions, 'partition')}"
                if w.hottest_share is None
                else f"{per_cent(1 / w.partitions)} if all {plural(w.partitions, 'partition')} were alike"
            ),
        ),
        Figure(
            "largest_capacity_per_second",
            "limit of the partitions",
            largest_capacity_per_second(w),
            _PER_SECOND,
            f"what {plural(w.partitions, 'partition')}, this skew and this order allow with any number of {unit}s",
        ),
    ]
    if w.order is Ordering.NONE:
        threads = triple.threads_per_node if triple else limit
        one = significant(node_at(w, threads).thread_rate_per_second)
        figures.append(
            Figure(
                "hottest_key_share",
                "hottest key, at most",
                hottest_key_share(w, threads),
                "of the traffic",
                "where the pool keeps the order of keys: a thread / required = "
                f"{one} / {significant(w.required_rate_per_second)}",
            )
        )
    if triple is not None:
        figures += [
            Figure(
                "capacity_per_second",
                "capacity advised",
                triple.capacity_per_second,
                _PER_SECOND,
                nodes_and_threads(w.unit, triple.working_nodes, triple.threads_per_node)
                + (", without the spare ones" if triple.spare_nodes else ""),
            ),
            Figure(
                "largest_planned_rate_per_second",
                SUFFICIENT[w.is_by_objective],
                largest_planned_rate_per_second(w, triple),
                _PER_SECOND,
                f"the {_planned(w)} at which this answer would be used up, everything else as given",
            ),
        ]
    return figures


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
