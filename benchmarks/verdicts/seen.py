"""A trace as a rule sees it: sample by sample, what was read of every partition of every group."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from lagwise.domain.vocabulary import Status
from lagwise.traces.trace import Trace, moment

#: Statuses that need attention.
TROUBLE = frozenset(
    {
        Status.LOSING_DATA,
        Status.AT_RISK,
        Status.STOPPED,
        Status.STALLED,
        Status.REWOUND,
        Status.FALLING_BEHIND,
        Status.LAGGING,
    }
)

#: What a rule can say of a group.
ALARM, QUIET, UNKNOWN = "alarm", "quiet", "unknown"


def word_of(status: Status) -> str:
    """What a status of Lagwise comes down to: an alarm or none, or that it cannot be known."""
    return ALARM if status in TROUBLE else UNKNOWN if status is Status.UNKNOWN else QUIET


class Pair(NamedTuple):
    """A group-partition."""

    group: str
    topic: str
    partition: int


@dataclass(frozen=True, slots=True)
class Reading:
    """What one sample shows of a group-partition; None where it could not be read or there is none."""

    committed: int | None
    high_watermark: int | None
    is_owned: bool


@dataclass(frozen=True, slots=True)
class Sample:
    """One sample: its time in seconds, and every group-partition that is committed to or owned."""

    at: float
    readings: Mapping[Pair, Reading]

    @property
    def groups(self) -> set[str]:
        return {pair.group for pair in self.readings}


def samples_of(trace: Trace) -> Iterator[Sample]:
    """The samples of a trace in order of their time."""
    ends = {(row["sampled_at"], row["topic"], row["partition"]): row for row in trace.rows["watermarks"]}
    readings: dict[object, dict[Pair, Reading]] = {}
    for row in trace.rows["commits"]:
        end = ends.get((row["sampled_at"], row["topic"], row["partition"]), {})
        pair = Pair(row["group"], row["topic"], row["partition"])
        reading = Reading(row["committed"], end.get("high_watermark"), row["owner"] is not None)
        readings.setdefault(row["sampled_at"], {})[pair] = reading
    for at in trace.sample_times:
        yield Sample(at, readings.get(moment(at), {}))
