"""What each rule says of a trace at every evaluation."""

from collections.abc import Mapping
from typing import Protocol

from benchmarks.verdicts.burrow import Burrow
from benchmarks.verdicts.lag_exporter import LagExporter
from benchmarks.verdicts.score import Score, score_of
from benchmarks.verdicts.seen import Sample, samples_of, word_of
from benchmarks.verdicts.threshold import Threshold
from lagwise.domain.vocabulary import Status
from lagwise.traces.trace import Trace
from lagwise_app.replay.shown import shown_of

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
    said: dict[tuple[float, str], str] = {}
    samples = samples_of(trace)
    shown = -1
    for at in trace.evaluation_times:
        while shown < trace.sample_at(at):
            rule.see(next(samples))
            shown += 1
        said |= {(at, group): rule.says(group) for group in groups}
    return said


def statuses_of(trace: Trace) -> Statuses:
    """Lagwise's statuses at every evaluation."""
    return {(one.time_s, one.group, one.topic, one.partition): (one.status, one.reason) for one in shown_of(trace)}


def said_by_lagwise(trace: Trace, statuses: Statuses) -> dict[tuple[float, str], str]:
    """Lagwise's statuses of groups as words. A group that is not shown is not known."""
    groups = sorted({truth.group for truth in trace.truth})
    nothing = (str(Status.UNKNOWN), None)
    return {
        (at, group): word_of(Status(statuses.get((at, group, None, None), nothing)[0]))
        for at in trace.evaluation_times
        for group in groups
    }


def words_of_lagwise(trace: Trace, statuses: Statuses) -> dict[tuple[float, str], str]:
    """Lagwise's exact words of groups: the status, and why it is unknown."""
    groups = sorted({truth.group for truth in trace.truth})
    nothing = (str(Status.UNKNOWN), None)
    return {
        (at, group): ":".join(filter(None, statuses.get((at, group, None, None), nothing)))
        for at in trace.evaluation_times
        for group in groups
    }


def score_of_lagwise(trace: Trace, statuses: Statuses) -> Score:
    """Hold Lagwise's statuses of groups against a trace's truth."""
    return score_of(trace, said_by_lagwise(trace, statuses), words_of_lagwise(trace, statuses))


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
