"""From everything that is known of a group's work on a topic to its capacity verdict and the advice.

What a number is, where it comes from, from how many observations and how old it is stays together
(:class:`Input`), so that nothing is advised without showing what it rests on.
"""

from dataclasses import dataclass, replace
from datetime import timedelta
from enum import StrEnum
from typing import Any, NamedTuple

from lagwise.domain.capacity.inputs import CapacityInputs, Input, inputs_of
from lagwise.domain.capacity.objective_demand import PlannedLoad
from lagwise.domain.capacity.observed_text import load_test_of
from lagwise.domain.capacity.verdict import (
    CanDo,
    CapacityJudgement,
    CapacityVerdict,
    SetUp,
    judge_capacity,
)
from lagwise.domain.sizing.advice import SizingAdvice, advise
from lagwise.domain.sizing.formulas import busiest_share
from lagwise.domain.sizing.group_workload import as_planned, workload_from
from lagwise.domain.sizing.ranges import OutOfRange
from lagwise.domain.sizing.task_slots import TaskSlots, task_slots_for
from lagwise.domain.sizing.triple_search import capacity_per_second, node_at
from lagwise.domain.sizing.workload import (
    DEFAULT_TARGET_UTILISATION,
    Concurrency,
    SizeBy,
    Unit,
    Workload,
)

#: How far below the model a node may really be (docs/sizing.md: measured within 6 %, and a little optimistic).
MODEL_ERROR = 0.1
#: How far from the times that its engine reports a job or a group may really be, to either side: subtasks are
#: not equally busy and consume RT grows while threads compete, but both hold waits for cores that others took.
ENGINE_ERROR = 0.2
#: A vertex that is busy for a smaller share of the time, or was sampled less often, leaves more to doubt.
TRUSTED_BUSY_SHARE, TRUSTED_SAMPLES = 0.3, 10
#: A probe's means of fewer messages are a beginning.
TRUSTED_MESSAGES = 1_000
#: Older measurements are of another version of the consumer, perhaps.
FRESH = timedelta(days=1)
#: A forecast from less history has not seen every day of the week twice.
TRUSTED_HISTORY_HOURS = 14 * 24


class NumberSource(StrEnum):
    """What it is known from what the running set-up can do."""

    #: What it did while it had a backlog.
    SATURATION = "saturation"
    #: Worked out from the busy time of a Flink job's busiest vertex, and what it did meanwhile.
    BUSY_TIME = "busy_time"
    #: Worked out from how long a thread takes for a message, as RocketMQ's clients report it, and their threads.
    CONSUME_RT = "consume_rt"
    #: Worked out from T1 and T2, which a probe measured, and the cores.
    PROBE = "probe"
    #: Only a lower bound: what it did while it had no backlog.
    THROUGHPUT = "throughput"
    NONE = "none"


class Confidence(StrEnum):
    """How much the advice rests on."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Assessment:
    """Verdict and advice."""

    #: Whether what runs is enough.
    judgement: CapacityJudgement
    #: What the number for what it can do comes from.
    source: NumberSource
    #: How far that number can be trusted.
    confidence: Confidence
    #: What all members can do together, messages per second; without ``high`` at least so much.
    can_do: CanDo | None
    #: What one member can do, messages per second; None is not known.
    member_rate_per_second: float | None
    #: What is counted and sized.
    unit: Unit
    #: What sizing was asked; None where not enough is known.
    workload: Workload | None
    #: The answer of sizing; None where it was not asked.
    advice: SizingAdvice | None
    #: Whether a Flink job gets the subtasks that are advised; None of anything else.
    slots: TaskSlots | None
    #: Every number that went in.
    inputs: tuple[Input, ...]
    #: What must be done, today and by the forecast, messages per second.
    load: PlannedLoad

    @property
    def size_by(self) -> SizeBy:
        """What decided: the objective only where it is known what it takes."""
        return SizeBy.PEAK if self.load.objective_seconds is None else SizeBy.OBJECTIVE


def assess(
    known: CapacityInputs,
    target_utilisation: float = DEFAULT_TARGET_UTILISATION,
    size_by: SizeBy = SizeBy.OBJECTIVE,
) -> Assessment:
    """Judge what runs and advise what should. Numbers outside of what sizing takes count as not known."""
    workload = workload_of(known, target_utilisation, size_by)
    advice = advise(workload, known.downstream) if workload is not None else None
    can_do, source = _can_do(known, workload)
    load = _load(known, size_by)
    judgement = judge_capacity(
        can_do,
        load.now_per_second,
        load.ahead,
        target_utilisation=target_utilisation,
        running=_running(known),
        advised=_advised(known, advice),
        load_test=_load_test(known, load, target_utilisation),
        objective_seconds=load.objective_seconds,
    )
    if known.downstream is not None and judgement.verdict in (CapacityVerdict.SHORT, CapacityVerdict.TIGHT):
        judgement = replace(judgement, sentence=f"{judgement.sentence} {known.downstream.sentence}")
    return Assessment(
        judgement=judgement,
        source=source,
        confidence=_confidence(known, source),
        can_do=can_do,
        member_rate_per_second=_member_rate(known, source, workload),
        unit=unit_of(known),
        workload=workload,
        advice=advice,
        slots=task_slots_for(advice, known.job.slots_held, known.job.slots_free) if known.job else None,
        inputs=tuple(inputs_of(known)),
        load=load,
    )


def _load(known: CapacityInputs, size_by: SizeBy) -> PlannedLoad:
    demand = known.demand
    if demand is None:
        return PlannedLoad(None, (), None)
    return PlannedLoad.of(demand.peak_per_second, demand.ahead, demand.objective, size_by)


def _load_test(known: CapacityInputs, load: PlannedLoad, target_utilisation: float) -> str | None:
    seen = known.observed
    if load.now_per_second is None:
        return None  # without a peak there is nothing to decide
    needed = max([load.now_per_second, *(point.mean for point in load.ahead)]) / target_utilisation
    return load_test_of(seen is not None and seen.is_decided, seen, known.arriving_per_second, needed)


def unit_of(known: CapacityInputs) -> Unit:
    """What is counted: nodes where T1, T2 and the cores are known, else members, of a Flink job subtasks."""
    if known.service is not None and known.cores is not None:
        return Unit.NODE
    return Unit.MEMBER if known.job is None else Unit.SUBTASK


def _running(known: CapacityInputs) -> SetUp:
    if (unit := unit_of(known)) is not Unit.NODE or known.service is None:
        return SetUp(known.members, known.partitions, unit=unit)
    return SetUp(known.nodes, known.partitions, known.service.threads)


def _advised(known: CapacityInputs, advice: SizingAdvice | None) -> SetUp | None:
    if advice is None or advice.triple is None:
        return None
    triple = advice.triple
    unit = advice.workload.unit
    return SetUp(triple.nodes, triple.partitions, triple.threads_per_node if unit is Unit.NODE else None, unit)


def workload_of(
    known: CapacityInputs,
    target_utilisation: float = DEFAULT_TARGET_UTILISATION,
    size_by: SizeBy = SizeBy.OBJECTIVE,
) -> Workload | None:
    """The question to sizing. With a probe's T1 and T2 and the cores it is about threads and nodes; with no more than
    the time per message of one member, seen under saturation or by the times that its engine reports, it is about how
    many members (or subtasks) of one thread. None where neither is known, or the demand is not. The lag of now is no
    part of it: it is not the lag at the horizon."""
    if known.demand is None or known.members == 0:
        return None
    values: dict[str, Any] = {
        "peak_rate_per_second": max(known.demand.peak_per_second, known.demand.forecast_peak_per_second or 0.0),
        "partitions": known.partitions,
        "hottest_share": known.skew.hottest_share if known.skew else None,
        "target_utilisation": target_utilisation,
        "size_by": size_by,
    }
    if (takes := known.demand.objective) is not None:
        values["objective_rate_per_second"] = takes.planned_per_second
        values["objective_seconds"] = takes.recorded.objective_seconds
    service, observed = known.service, known.observed
    if service is not None and known.cores is not None:
        pool = service.threads > -(-known.members // max(1, known.nodes))
        values |= {
            "t1_seconds": service.t1_seconds,
            "t2_seconds": service.cpu_seconds,
            "cores": known.cores,
            "concurrency": Concurrency.POOL if pool else Concurrency.CONSUMER_PER_THREAD,
        }
    elif observed is not None and observed.seconds_per_message is not None:
        # A job is one member of its group, however many subtasks it has.
        values["seconds_per_message"] = observed.seconds_per_message * (known.job.subtasks if known.job else 1)
        values["unit"] = unit_of(known)
    elif (by_engine := _by_engine(known)) is not None:
        values["seconds_per_message"] = known.members / by_engine.rate_per_second
        values["unit"] = unit_of(known)
    else:
        return None
    try:
        return workload_from(as_planned(values))
    except OutOfRange:
        return None


def _can_do(known: CapacityInputs, workload: Workload | None) -> tuple[CanDo | None, NumberSource]:
    seen = known.observed
    if seen is not None and seen.rate_per_second is not None:
        low = seen.low if seen.low is not None else seen.rate_per_second
        high = seen.high if seen.high is not None else seen.rate_per_second
        share = _carried_share(known)
        return CanDo(max(0.0, low) * share, max(0.0, high) * share), NumberSource.SATURATION
    if (by_engine := _by_engine(known)) is not None:
        rate = by_engine.rate_per_second
        return CanDo((1.0 - ENGINE_ERROR) * rate, (1.0 + ENGINE_ERROR) * rate), by_engine.source
    at_least = seen.at_least_per_second if seen is not None and seen.at_least_per_second is not None else 0.0
    if known.service is not None and known.cores is not None and workload is not None:
        modelled = capacity_per_second(workload, max(1, known.nodes), known.service.threads)
        if known.downstream is not None:
            modelled = min(modelled, known.downstream.rate_per_second)
        # What it has done it can do, whatever the model says.
        low = max((1.0 - MODEL_ERROR) * modelled, at_least)
        return CanDo(low, max(low, modelled)), NumberSource.PROBE
    return (CanDo(at_least), NumberSource.THROUGHPUT) if at_least > 0.0 else (None, NumberSource.NONE)


class _ByEngine(NamedTuple):
    """What all members can do by the times that their engine reports, messages per second."""

    source: NumberSource
    rate_per_second: float


def _by_engine(known: CapacityInputs) -> _ByEngine | None:
    if not known.members:
        return None
    if known.job is not None and (rate := known.job.rate_per_second) is not None:
        return _ByEngine(NumberSource.BUSY_TIME, rate)
    if known.consume_time is not None:
        return _ByEngine(NumberSource.CONSUME_RT, known.consume_time.rate_per_second(known.partitions))
    return None


def _carried_share(known: CapacityInputs) -> float:
    """What of the members' throughput under saturation, when all of them are busy, they carry of what arrives: there
    the busiest is full first, and the others have time left."""
    if not known.members:
        return 1.0
    hottest = max(1.0 / known.partitions, known.skew.hottest_share if known.skew else 0.0)
    return 1.0 / (known.members * busiest_share(known.partitions, known.members, hottest))


def _member_rate(known: CapacityInputs, source: NumberSource, workload: Workload | None) -> float | None:
    """What one member can do when it is busy all the time, as all are under saturation."""
    match source:
        case NumberSource.SATURATION if known.members and known.observed is not None:
            rate = known.observed.rate_per_second
            return None if rate is None else rate / known.members
        case NumberSource.BUSY_TIME | NumberSource.CONSUME_RT if (by_engine := _by_engine(known)) is not None:
            return by_engine.rate_per_second / known.members
        case NumberSource.PROBE if known.members and workload is not None and known.service is not None:
            node = node_at(workload, known.service.threads).rate_per_second
            return node * max(1, known.nodes) / known.members
        case _:
            return None


def _confidence(known: CapacityInputs, source: NumberSource) -> Confidence:
    """High where what runs was measured lately and enough, and the forecast has seen two weeks; each thing that is
    missing takes a step."""
    if source in (NumberSource.NONE, NumberSource.THROUGHPUT) or known.demand is None:
        return Confidence.NONE
    doubts = 0
    if source is NumberSource.SATURATION and known.observed is not None:
        until = known.observed.until
        is_old = until is None or known.as_of.timestamp() - until > 7 * FRESH.total_seconds()
        doubts += known.observed.is_scaled or is_old
    if source is NumberSource.BUSY_TIME and known.job is not None:
        doubts += known.job.busy_share < TRUSTED_BUSY_SHARE
        doubts += known.job.samples < TRUSTED_SAMPLES
    if source is NumberSource.CONSUME_RT and known.consume_time is not None:
        # Always one: how the time of a message grows with the load is not known.
        doubts += 1 + (known.consume_time.messages < TRUSTED_MESSAGES)
    if source is NumberSource.PROBE and known.service is not None:
        service = known.service
        doubts += service.messages < TRUSTED_MESSAGES or known.as_of - service.measured_at > FRESH
        doubts += service.t1_doubt is not None
    doubts += known.demand.history_hours < TRUSTED_HISTORY_HOURS or known.demand.forecast_peak_per_second is None
    return (Confidence.HIGH, Confidence.MEDIUM, Confidence.LOW, Confidence.LOW)[int(doubts)]
