"""What is known of a group's work on one topic: measured, seen, forecast, each with where it is from."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from lagwise.domain.capacity.objective_demand import ObjectiveDemand
from lagwise.domain.capacity.observed import ObservedCapacity
from lagwise.domain.capacity.service_level import LevelChange
from lagwise.domain.capacity.verdict import DemandAhead
from lagwise.domain.humanise import precise_duration
from lagwise.domain.sizing.downstream import MEMBERS_INPUT, RATE_INPUT, DownstreamFull


@dataclass(frozen=True, slots=True)
class Input:
    """One number that went in."""

    #: As the table `capacity` names it.
    name: str
    #: In the unit that the name carries.
    value: float
    #: Where it comes from, in words.
    source: str
    #: How many measurements it rests on; None where that has no meaning.
    samples: int | None = None
    #: When it was measured; None where that has no meaning.
    measured_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Skew:
    """The share of the hottest partition in the records of the busy hours, 0 to 1."""

    hottest_share: float
    #: Records of all partitions in these hours: what it rests on.
    records: int
    #: How many hours these are, and the end of the last.
    hours: int
    until: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupServiceTime:
    """What a message costs, as a probe measured it: means, in seconds."""

    #: T1: waiting.
    t1_seconds: float
    #: T2: on the CPU, in the handler.
    t2_seconds: float
    #: Threads that handle messages on one node.
    threads: int
    #: Messages that the means are taken over.
    messages: int
    #: When the newest of them was measured.
    measured_at: datetime
    #: Why T1 is only an upper bound; None is no doubt.
    t1_doubt: str | None = None
    #: What the process computes beside its handlers, to fetch and to commit; None is not known.
    t2_beside_seconds: float | None = None
    #: Since when T1 and T2 are what they are; None where they did not change within the hour.
    t1_change: LevelChange | None = None
    t2_change: LevelChange | None = None

    @property
    def cpu_seconds(self) -> float:
        """What a message costs on the CPU, in the handler and beside it: a core does no more than one over this."""
        return self.t2_seconds + (self.t2_beside_seconds or 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumeTime:
    """How long a thread takes for a message as a whole, as RocketMQ's clients report it."""

    #: The mean.
    seconds_per_message: float
    #: Threads of all members together.
    threads: int
    #: Messages that the mean is taken over.
    messages: int
    #: When the newest of them was measured.
    measured_at: datetime
    #: Whether the messages of a queue are handled one after the other (orderly groups).
    is_ordered: bool = False

    def rate_per_second(self, queues: int) -> float:
        """What all threads can do, messages per second: in order no more of them than queues have any."""
        return (min(self.threads, queues) if self.is_ordered else self.threads) / self.seconds_per_message


#: A vertex that is less busy than this shows too little of what it could do.
LEAST_BUSY_SHARE = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class JobWork:
    """The Flink job that reads for the group: the vertex that bounds it, and what came of its time. Means over the
    last minutes."""

    #: The name of the vertex that bounds the job.
    vertex: str
    #: Its subtasks, which take the place of a group's members: each does its share of the records.
    subtasks: int
    #: Share of their time in which they worked, 0 to 1.
    busy_share: float
    #: Records of the topic that the job read per second meanwhile.
    records_per_second: float
    #: Samples that the means are taken over.
    samples: int
    #: Time of the last of them.
    measured_until: datetime
    #: Task slots of the vertex's slot sharing group, and those of its cluster that no job has; None is not known.
    slots_held: int | None = None
    slots_free: int | None = None

    @property
    def rate_per_second(self) -> float | None:
        """What the job could do if that vertex were busy all the time: the *true processing rate* of DS2 (Kalavri et
        al., OSDI 2018), in records of the topic. None where it is hardly busy."""
        if self.busy_share < LEAST_BUSY_SHARE or self.records_per_second <= 0.0:
            return None
        return self.records_per_second / min(1.0, self.busy_share)


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """What arrives: the peak so far and, where there is a forecast, the one to come."""

    #: The peak of minute rates, messages per second.
    peak_per_second: float
    #: When it was.
    peak_at: datetime
    #: Minutes that it is taken from.
    minutes: int
    #: Hours of history that they come from.
    history_hours: int
    #: Highest minute rate at the horizon; None is no forecast.
    forecast_peak_per_second: float | None = None
    #: How far the forecast reaches; None is no forecast.
    horizon_days: int | None = None
    #: The forecast of busy minutes, in order of time.
    ahead: tuple[DemandAhead, ...] = ()
    #: End of the last hour that the forecast knew.
    as_of: datetime | None = None
    #: What the group's lag objective takes; None is not known.
    objective: ObjectiveDemand | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityInputs:
    """Everything that is known of a group's work on one topic."""

    #: Partitions of the topic.
    partitions: int
    #: Members that own any of its partitions; of a Flink job the subtasks of the vertex that bounds it.
    members: int
    #: The hosts that the members run on.
    nodes: int
    #: The time of the latest sample.
    as_of: datetime
    #: How unevenly the traffic lies on the partitions; None is not known, and taken as even.
    skew: Skew | None = None
    #: Messages that arrive per second, now; None is not known.
    arriving_per_second: float | None = None
    #: Cores of one node; None is not known.
    cores: float | None = None
    #: Where the cores are known from: ``settings`` or ``probe``.
    cores_source: str = "settings"
    #: T1 and T2, as a probe measured them; this and all below are None where not known.
    service: GroupServiceTime | None = None
    #: What the consumers wait for, where their T1 shows that it is full.
    downstream: DownstreamFull | None = None
    #: What was seen under saturation.
    observed: ObservedCapacity | None = None
    #: The vertex that bounds the group's Flink job.
    job: JobWork | None = None
    #: Time per message as RocketMQ's clients report it.
    consume_time: ConsumeTime | None = None
    #: What arrives, and will.
    demand: Demand | None = None


def _t2_from(service: GroupServiceTime) -> str:
    changed = _changed(service.t2_change, service.measured_at)
    if not service.t2_beside_seconds:
        return f"probe{changed}"
    handler, beside = (precise_duration(s) for s in (service.t2_seconds, service.t2_beside_seconds))
    return f"probe: {handler} in the handler{changed} and {beside} elsewhere in the process"


def _changed(change: LevelChange | None, measured_at: datetime) -> str:
    if change is None:
        return ""
    day = "" if change.at.date() == measured_at.date() else f"{change.at:%Y-%m-%d} "
    return f" ({precise_duration(change.before_seconds)} until {day}{change.at:%H:%M} UTC)"


def inputs_of(known: CapacityInputs) -> Sequence[Input]:
    """Every number that goes in, with its source, sample size and age."""
    now = known.as_of
    found = [
        Input("partitions", known.partitions, "topic", measured_at=now),
        Input("members", known.members, _members_from(known), measured_at=now),
        Input("nodes", known.nodes, "hosts of the members in the latest sample", measured_at=now),
    ]
    if known.skew is not None:
        k = known.skew
        how = f"records by partition, in the {k.hours} busiest hours of a week"
        found.append(Input("hottest_share", k.hottest_share, how, k.records, k.until))
    if known.cores is not None:
        by_probe = known.service if known.cores_source == "probe" else None
        measured_at = by_probe.measured_at if by_probe else None
        found.append(Input("cores", known.cores, known.cores_source, measured_at=measured_at))
    if known.service is not None:
        s = known.service
        doubt = f"; T1 is an upper bound: it holds waits for {s.t1_doubt}" if s.t1_doubt else ""
        t1_from = f"probe{_changed(s.t1_change, s.measured_at)}{doubt.replace('_', ' ')}"
        found += [
            Input("t1_seconds", s.t1_seconds, t1_from, s.messages, s.measured_at),
            Input("t2_seconds", s.cpu_seconds, _t2_from(s), s.messages, s.measured_at),
            Input("threads_per_node", float(s.threads), "probe", s.messages, s.measured_at),
        ]
    if known.downstream is not None:
        f = known.downstream
        found += [
            Input(RATE_INPUT, f.rate_per_second, f.evidence, f.messages, f.measured_at),
            Input(MEMBERS_INPUT, f.members, "probe", measured_at=f.measured_at),
        ]
    if known.job is not None:
        j = known.job
        found += [
            Input("busy_share", j.busy_share, f"busy time of the vertex {j.vertex}", j.samples, j.measured_until),
            Input("records_per_second", j.records_per_second, "committed offsets", measured_at=now),
        ]
        if j.slots_held is not None:
            how = f"subtasks of the most parallel vertex that shares slots with {j.vertex}"
            found.append(Input("slots_held", j.slots_held, how, measured_at=j.measured_until))
        if j.slots_free is not None:
            found.append(
                Input("slots_free", j.slots_free, "overview of its Flink cluster", measured_at=j.measured_until)
            )
    if known.consume_time is not None:
        c = known.consume_time
        found += [
            Input("seconds_per_message", c.seconds_per_message, "consume RT", c.messages, c.measured_at),
            Input("threads", c.threads, "thread pools of all members", measured_at=c.measured_at),
        ]
    if known.observed is not None:
        o = known.observed
        if o.rate_per_second is not None:
            how = "saturation, in proportion to the members" if o.is_scaled else "saturation"
            until = None if o.until is None else datetime.fromtimestamp(o.until, UTC)
            found.append(Input("observed_rate_per_second", o.rate_per_second, how, o.blocks, until))
        elif o.at_least_per_second is not None:
            found.append(Input("at_least_per_second", o.at_least_per_second, "best five minutes"))
    if known.demand is not None:
        d = known.demand
        found.append(Input("peak_rate_per_second", d.peak_per_second, "history of minutes", d.minutes, d.peak_at))
        if d.forecast_peak_per_second is not None:
            how = f"forecast, {d.horizon_days} days ahead"
            found.append(Input("forecast_peak_per_second", d.forecast_peak_per_second, how, d.history_hours, d.as_of))
        if (takes := d.objective) is not None:
            until = takes.recorded.until
            found += [
                Input(
                    "objective_rate_per_second", takes.recorded.rate_per_second, takes.evidence, takes.minutes, until
                ),
                Input(
                    "planned_objective_per_second",
                    takes.planned_per_second,
                    takes.planned_evidence,
                    takes.minutes,
                    until,
                ),
            ]
    return found


def _members_from(known: CapacityInputs) -> str:
    return "latest sample" if known.job is None else f"subtasks of the vertex {known.job.vertex} of its Flink job"
