"""What ``lagwise replay`` shows of a trace: each group-partition and each group, at every evaluation."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lagwise.domain.group_record import number_columns
from lagwise.domain.loss.records import NOTHING_LOST, Lost
from lagwise.domain.verdicts.columns import NULL, Array, seconds_between
from lagwise.domain.verdicts.loss import LOSS_CAUSES
from lagwise.domain.verdicts.status import HELD, REASONS, STATUSES
from lagwise.domain.vocabulary import Status
from lagwise.traces.csv_files import Row
from lagwise.traces.judged import JudgedGroup, JudgedTrace, judged
from lagwise.traces.trace import Trace
from lagwise_app.replay.trace_events import group_events_of

#: The last keys of a line of ``lagwise replay --json``, in order.
NUMBERS = (
    "lag",
    "lag_seconds",
    "lag_seconds_is_lower_bound",
    "produce_rate_per_second",
    "consume_rate_per_second",
    "seconds_to_catch_up",
    "seconds_to_loss",
    "records_lost",
)
#: When the lag is gone or the objective is missed, with the ends of the confidence interval.
FORECASTS = tuple(f"seconds_to_{what}{end}" for what in ("catch_up", "breach") for end in ("", "_low", "_high"))


@dataclass(frozen=True, slots=True)
class Shown:
    """What was shown of a group-partition (or, without topic and partition, of a group) at one moment of a trace."""

    #: Name of the trace.
    trace: str
    #: The moment, in seconds of the trace.
    time_s: float
    #: Consumer group.
    group: str
    #: Topic of the group-partition; None for the group as a whole.
    topic: str | None
    #: Partition of the topic; None for the group as a whole.
    partition: int | None
    #: Status word.
    status: str
    #: Why it is unknown; None for every other status.
    reason: str | None
    #: Every status that holds, worst first.
    reasons: tuple[str, ...]
    #: The numbers of ``NUMBERS``, by name.
    numbers: Mapping[str, Any]
    #: Why, in one sentence with numbers; only for the group as a whole, and not printed.
    sentence: str | None = None
    #: How the next loss would come; None where none will. Not printed.
    loss_cause: str | None = None
    #: When it will have caught up or miss its objective, by name; not printed.
    forecasts: Mapping[str, Any] = field(default_factory=dict)
    #: What was lost within a day; not printed.
    lost: Lost = NOTHING_LOST

    def as_json(self) -> str:
        """One line of ``lagwise replay --json``."""
        head = {
            "trace": self.trace,
            "time_s": self.time_s,
            "group": self.group,
            "topic": self.topic,
            "partition": self.partition,
            "status": self.status,
            "reason": self.reason,
            "reasons": list(self.reasons),
        }
        return json.dumps(head | dict(self.numbers), ensure_ascii=False)


def shown_of(trace: Trace, times: Sequence[float] | None = None, events: Sequence[Row] | None = None) -> list[Shown]:
    """Everything shown at some times of a trace (by default all of its evaluation times), in order of time, groups
    after their partitions. ``events`` are those of :func:`group_events_of`, where the caller has them."""
    its = judged(trace, group_events_of(trace) if events is None else events, times)
    shown: list[list[Shown]] = [[] for _ in its.times]
    for moment, one in _partitions(trace, its):
        shown[moment].append(one)
    for time_s, its_groups, its_shown in zip(its.times, its.groups, shown, strict=True):
        its_shown += [_group(trace.name, time_s, group, one) for group, one in sorted(its_groups.items())]
    return [one for its_shown in shown for one in its_shown]


def _partitions(trace: Trace, its: JudgedTrace) -> Iterator[tuple[int, Shown]]:
    """What is shown of group-partitions, each with the number of the moment."""
    rows = its.partitions
    named = (("status", STATUSES), ("reason", REASONS), ("loss_cause", LOSS_CAUSES))
    words = [_words(rows[name], of) for name, of in named]
    numbers, forecasts = ([_plain(rows[name]) for name in names] for names in (NUMBERS, FORECASTS))
    ages = [_plain(seconds_between(rows[name], rows["as_of"])) for name in ("first_lost_at", "last_lost_at")]
    lost = zip(_plain(rows["lost_at_least"]), _plain(rows["lost_at_most"]), *ages, strict=True)
    places = zip(*(rows[name].tolist() for name in ("moment", "group", "topic", "partition")), strict=True)
    holds = rows["holds"].T.tolist()
    for (moment, group, topic, partition), held, status, reason, cause, values, to_come, its_lost in zip(
        places, holds, *words, zip(*numbers, strict=True), zip(*forecasts, strict=True), lost, strict=True
    ):
        reasons = tuple(str(word) for word, holds_here in zip(HELD, held, strict=True) if holds_here)
        yield (
            moment,
            Shown(
                trace=trace.name,
                time_s=its.times[moment],
                group=its.group_names[group],
                topic=its.topic_names[topic],
                partition=partition,
                status=str(status),
                reason=reason,
                reasons=reasons if status in reasons else (*reasons, str(status)),
                numbers=dict(zip(NUMBERS, values, strict=True)),
                loss_cause=cause,
                forecasts=dict(zip(FORECASTS, to_come, strict=True)),
                lost=Lost(*its_lost),
            ),
        )


def _words(numbers: Array, words: Sequence[str]) -> list[str | None]:
    return [None if number < 0 else str(words[number]) for number in numbers.tolist()]


def _plain(values: Array) -> list[Any]:
    """The values as Python has them; None for null."""
    is_null = np.isnan(values) if values.dtype == np.float64 else values == NULL
    return [None if null else value for value, null in zip(values.tolist(), is_null.tolist(), strict=True)]


def _group(trace: str, time_s: float, group: str, one: JudgedGroup) -> Shown:
    verdict, numbers = one.verdict, number_columns(one.verdict.numbers)
    counted = (s for s, number in verdict.partitions_by_status.items() if number and s is not Status.GHOST)
    held = sorted(counted, key=lambda status: status.rank)
    return Shown(
        trace=trace,
        time_s=time_s,
        group=group,
        topic=None,
        partition=None,
        status=str(verdict.status),
        reason=str(verdict.reason) if verdict.reason else None,
        reasons=tuple(str(status) for status in held) or (str(verdict.status),),
        numbers={name: numbers[name] for name in NUMBERS},
        sentence=verdict.sentence,
        loss_cause=numbers["loss_cause"],
        forecasts={"to_catch_up": verdict.to_catch_up, "to_breach": verdict.to_breach},
        lost=verdict.lost,
    )
