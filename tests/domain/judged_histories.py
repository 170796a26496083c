"""Random histories with the moments at which they are judged, for the properties of the definition."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from lagwise.domain.evaluation import Evaluation, Moment, evaluate
from lagwise.domain.evidence import Policy
from lagwise.traces.trace import moment, sample_id
from lagwise_app.replay.trace_events import events_of
from tests.contract.histories import history

Row = Mapping[str, Any]
Rows = dict[str, list[Row]]

#: Enough for every status to come up; `test_the_histories_are_rich_enough_to_prove_anything` watches over it.
SEEDS = range(30)
#: A history is judged at about so many moments from its first sample on.
MOMENTS = 9


class Case(NamedTuple):
    """A history at a moment, and what the definition says of it. ``history(seed)`` makes it again."""

    seed: int
    rows: Rows
    at: Moment
    evaluation: Evaluation

    def __str__(self) -> str:
        return f"history({self.seed}) at {self.at.as_of}"


@cache
def cases() -> tuple[Case, ...]:
    return tuple(case for seed in SEEDS for case in _cases(seed))


def _cases(seed: int) -> Iterator[Case]:
    trace = history(seed)
    rows: Rows = {table: list(its_rows) for table, its_rows in trace.rows.items()}
    rows["events"] = list(events_of(trace))
    policy = Policy(trace.sample_interval_s, trace.lag_objective_s, trace.risk_horizon_s)
    last = len(trace.sample_times) - 1
    for index in sorted({round(last * n / MOMENTS) for n in range(MOMENTS + 1)}):
        at = Moment(sample_id(index), moment(trace.sample_times[index]), policy, trace.offsets_retention_s)
        yield Case(seed, rows, at, evaluate(rows, at))


def changed(rows: Mapping[str, Sequence[Row]], change: Callable[[str, Row], Row]) -> Rows:
    """The rows of every table, each changed; the change is given the table's name too."""
    return {table: [change(table, row) for row in its_rows] for table, its_rows in rows.items()}
