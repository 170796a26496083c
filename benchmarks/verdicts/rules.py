"""What each rule says of a trace at every evaluation."""

from collections.abc import Mapping
from typing import Protocol

from benchmarks.verdicts.burrow import Burrow
from benchmarks.verdicts.lag_exporter import LagExporter
from benchmarks.verdicts.seen import Sample, samples_of, word_of
from benchmarks.verdicts.threshold import Threshold
from lagwise.domain.vocabulary import Status
from lagwise.traces.trace import Trace
from tests.traces import noise
from tests.traces.judged import DAY_LOOKED_AT_S, LOOKED_AT_S, judged

LAGWISE = "Lagwise"
#: A status and the reason of an unknown one, by time, group, topic and partition (both None for the group).
Statuses = Mapping[tuple[float, str, str | None, int | None], tuple[str, str | None]]


class Rule(Protocol):
    """A rule is shown the samples in order, and asked about groups in between."""

    name: str

    def see(self, sample: Sample) -> None: ...
    def says(self, group: str) -> str: ...


def baselines(trace: Trace) -> list[Rule]:
    """The rules that Lagwise is compared with, each from its beginning."""
    return [
        Burrow(),
        LagExporter(trace.lag_objective_s, trace.sample_interval_s),
        Threshold(1_000),
        Threshold(10_000),
    ]


def said_by(rule: Rule, trace: Trace) -> dict[tuple[float, str], str]:
    """What a rule says of every group at every evaluation: after the newest sample at that time."""
    groups = sorted({truth.group for truth in trace.truth})
    said = {}
    samples = samples_of(trace)
    shown = -1
    for at in trace.evaluation_times:
        while shown < trace.sample_at(at):
            rule.see(next(samples))
            shown += 1
        said |= {(at, group): rule.says(group) for group in groups}
    return said


def statuses_of(trace: Trace) -> Statuses:
    """Lagwise's statuses at every evaluation, by its definition in plain Python."""
    times = trace.evaluation_times
    statuses = {}
    # Nobody in the day of noise commits as rarely as to need the day.
    looked_at_s = LOOKED_AT_S if trace.name == noise.NAME else DAY_LOOKED_AT_S
    evaluations = judged(trace, [trace.sample_at(at) for at in times], looked_at_s)
    for at, (_, evaluation) in zip(times, evaluations, strict=True):
        for pair, one in evaluation.partitions.items():
            statuses[at, *pair] = str(one.verdict.status), _text(one.verdict.reason)
        for group, verdict in evaluation.groups.items():
            statuses[at, group, None, None] = str(verdict.status), _text(verdict.reason)
    return statuses


def said_by_lagwise(trace: Trace, statuses: Statuses) -> dict[tuple[float, str], str]:
    """Lagwise's statuses of groups as words. A group that is not shown is not known."""
    groups = sorted({truth.group for truth in trace.truth})
    nothing = (str(Status.UNKNOWN), None)
    return {
        (at, group): word_of(Status(statuses.get((at, group, None, None), nothing)[0]))
        for at in trace.evaluation_times
        for group in groups
    }


def exactly_right(trace: Trace, statuses: Statuses) -> float:
    """The share of the truth (every row of it, partitions too) that Lagwise's statuses meet."""
    met = []
    for truth in trace.truth:
        key = (truth.group, None if truth.partition is None else truth.topic, truth.partition)
        for at in trace.evaluation_times:
            if truth.from_s - 1e-6 <= at <= truth.to_s + 1e-6:
                shown = statuses.get((at, *key))
                met.append(shown is not None and truth.is_met_by(*shown))
    return sum(met) / len(met)


def _text(reason: object) -> str | None:
    return None if reason is None else str(reason)
