"""Random histories, judged at moments from the first sample on, for the properties of the rules."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from types import SimpleNamespace
from typing import Any

from lagwise.domain.groups import GroupVerdict
from lagwise.traces.trace import Row, Trace
from lagwise_app.replay.trace_events import events_of
from tests.contract.differences import same
from tests.contract.histories import history
from tests.traces.judged import Evaluation, Pair, judged

#: Enough for every status to come up; `test_the_histories_are_rich_enough_to_prove_anything` watches over it.
SEEDS = range(30)
#: A history is judged at about so many moments from its first sample on.
MOMENTS = 9

#: What is said of a group-partition.
VERDICT = (
    "status", "reason", "reasons", "lag", "lag_seconds", "lag_seconds_is_lower_bound", "consume_rate_per_second",
    "seconds_to_catch_up", "seconds_to_breach", "seconds_to_loss", "seconds_to_loss_is_upper_bound",
    "seconds_to_loss_at_latest", "loss_cause", "records_lost", "lost", "rewound_records", "transaction_seconds",
)  # fmt: skip


@dataclass(frozen=True)
class History:
    """A trace with its events, and what the rules say of it at some of its samples."""

    trace: Trace
    samples: Sequence[int]
    evaluations: Sequence[Evaluation]

    def __str__(self) -> str:
        return self.trace.name

    def judged_again(self, trace: Trace) -> list[Evaluation]:
        """What the rules say of another trace at the same samples."""
        return [one for _, one in judged(trace, self.samples, trace.rows["events"])]

    def changed(self, change: Callable[[str, Row], Row]) -> Trace:
        """The trace with its rows changed; the change is given the table's name too."""
        rows = {table: [change(table, row) for row in its_rows] for table, its_rows in self.trace.rows.items()}
        return replace(self.trace, rows=rows)


@cache
def histories() -> tuple[History, ...]:
    return tuple(_history(seed) for seed in SEEDS)


def _history(seed: int) -> History:
    trace = history(seed)
    trace = replace(trace, rows={**trace.rows, "events": events_of(trace)})
    last = len(trace.sample_times) - 1
    samples = sorted({round(last * n / MOMENTS) for n in range(MOMENTS + 1)})
    return History(trace, samples, [one for _, one in judged(trace, samples, trace.rows["events"])])


def partitions() -> Iterator[tuple[str, History, SimpleNamespace]]:
    for one in histories():
        for sample, evaluation in zip(one.samples, one.evaluations, strict=True):
            for pair, row in evaluation.partitions.items():
                yield f"{one} at sample {sample}: {pair}", one, row


def groups() -> Iterator[tuple[str, list[SimpleNamespace], GroupVerdict]]:
    """Each group with its partitions."""
    for one in histories():
        for sample, evaluation in zip(one.samples, one.evaluations, strict=True):
            for name, verdict in evaluation.groups.items():
                its = [row for pair, row in evaluation.partitions.items() if pair.group == name]
                yield f"{one} at sample {sample}: {name}", its, verdict


def differences(found: Evaluation, expected: Evaluation, names: Sequence[str] = ()) -> list[str]:
    """In words, in what two evaluations differ: in these columns of partitions (by default in all), and of groups in
    what the verdict on them says."""
    assert found.partitions.keys() == expected.partitions.keys()
    rows = [(pair, row, expected.partitions[pair]) for pair, row in found.partitions.items()]
    return [
        f"{pair}: {name} {getattr(row, name)} instead of {getattr(other, name)}"
        for pair, row, other in rows
        for name in names or vars(row)
        if not same(getattr(row, name), getattr(other, name))
    ] + group_differences(found.groups, expected.groups)


def group_differences(found: Any, expected: Any) -> list[str]:
    words = [{name: (v.status, v.reason, v.partitions_by_status, v.sentence) for name, v in of.items()}
             for of in (found, expected)]  # fmt: skip
    return [] if words[0] == words[1] else [f"{words[0]} instead of {words[1]}"]


def verdicts(evaluation: Evaluation) -> dict[Pair, dict[str, Any]]:
    return {pair: {name: getattr(row, name) for name in VERDICT} for pair, row in evaluation.partitions.items()}
