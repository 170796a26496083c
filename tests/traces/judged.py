"""Traces as the rules of the analysis judge them, in plain values."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from lagwise.domain.groups import GroupVerdict
from lagwise.domain.loss.records import Lost
from lagwise.domain.verdicts.columns import NULL, Array, Columns, seconds_between
from lagwise.domain.verdicts.loss import LOSS_CAUSES
from lagwise.domain.verdicts.status import HELD, REASONS, STATUSES
from lagwise.domain.vocabulary import Status
from lagwise.traces.judged import JudgedTrace
from lagwise.traces.judged import judged as judged_trace
from lagwise.traces.trace import Row, Trace
from lagwise_app.replay.trace_events import group_events_of

#: Numbers of names and of rows say nothing by themselves, and times only by how long ago they were.
_NUMBERS = (
    "group",
    "topic",
    "partition",
    "log",
    "view",
    "moment",
    "client",
    "leader",
    "state",
    "type",
    "error",
    "as_of",
)


class Pair(NamedTuple):
    """A group-partition."""

    group: str
    topic: str
    partition: int


class Evaluation:
    """The verdicts at one moment of a trace."""

    def __init__(self, its: JudgedTrace, moment: int) -> None:
        self._its, self._moment = its, moment
        self.groups: Mapping[str, GroupVerdict] = {name: one.verdict for name, one in its.groups[moment].items()}

    @cached_property
    def partitions(self) -> dict[Pair, SimpleNamespace]:
        """Each group-partition with all that is known of it, and its verdict."""
        its, rows = self._its, self._its.partitions
        chosen = np.flatnonzero(rows["moment"] == self._moment)
        names = zip(*(rows[name][chosen].tolist() for name in ("group", "topic", "partition")), strict=True)
        pairs = [Pair(its.group_names[group], its.topic_names[topic], number) for group, topic, number in names]
        part = {name: column[..., chosen] for name, column in rows.items()}
        return dict(zip(pairs, in_plain_values(part), strict=True))


def judged(
    trace: Trace, samples: Sequence[int] | None = None, events: Sequence[Row] | None = None
) -> Iterator[tuple[float, Evaluation]]:
    """The verdicts at these samples (by their numbers; by default at all), each with its time."""
    times = [trace.sample_times[n] for n in (range(len(trace.sample_times)) if samples is None else samples)]
    its = judged_trace(trace, group_events_of(trace) if events is None else events, times)
    yield from ((time_s, Evaluation(its, moment)) for moment, time_s in enumerate(times))


def trace_of(
    rows: dict[str, list[Row]],
    sample_times: Sequence[float],
    interval_s: float = 15.0,
    offsets_retention_s: float | None = None,
) -> Trace:
    """A trace of these rows of raw tables, judged by the default policy."""
    return Trace(
        name="rows",
        story="",
        sample_interval_s=interval_s,
        evaluate_every_s=interval_s,
        offsets_retention_s=offsets_retention_s,
        lag_objective_s=300.0,
        risk_horizon_s=6 * 3600.0,
        sample_times=tuple(sample_times),
        rows=rows,
        truth=(),
    )


def in_plain_values(rows: Columns) -> list[SimpleNamespace]:
    """Verdicts with the evidence they rest on, one by one; None for null."""
    words = {"status": STATUSES, "reason": REASONS, "loss_cause": LOSS_CAUSES}
    made: dict[str, list[Any]] = {
        name: [None if number < 0 else of[number] for number in rows[name].tolist()] for name, of in words.items()
    }
    made["reasons"] = [
        _reasons(status, held) for status, held in zip(made["status"], rows["holds"].T.tolist(), strict=True)
    ]
    ages = [plain(seconds_between(rows[name], rows["as_of"])) for name in ("first_lost_at", "last_lost_at")]
    lost = zip(rows["lost_at_least"].tolist(), rows["lost_at_most"].tolist(), *ages, strict=True)
    made["lost"] = [Lost(*one) for one in lost]
    made["has_owner"] = (rows["owner"] >= 0).tolist()
    for name, column in rows.items():
        if name not in (*made, *_NUMBERS, "owner", "holds") and not name.endswith(("_at", "_since")):
            made[name] = plain(column)
    return [SimpleNamespace(**dict(zip(made, values, strict=True))) for values in zip(*made.values(), strict=True)]


def _reasons(status: Status, held: Sequence[bool]) -> tuple[Status, ...]:
    reasons = tuple(word for word, holds in zip(HELD, held, strict=True) if holds)
    return reasons if status in reasons else (*reasons, status)


def plain(values: Array) -> list[Any]:
    """The values as Python has them; None for null."""
    is_null = np.isnan(values) if values.dtype == np.float64 else values == NULL
    return [None if null else value for value, null in zip(values.tolist(), is_null.tolist(), strict=True)]
