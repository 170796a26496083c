"""What the table ``capacity`` knows of a workload: numbers that need no typing in, and where each comes from."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from lagwise.domain.humanise import duration, plural
from lagwise.domain.sizing.advice import SizingAdvice
from lagwise.domain.sizing.downstream import MEMBERS_INPUT, RATE_INPUT, DownstreamFull
from lagwise.domain.sizing.task_slots import TaskSlots, task_slots_for
from lagwise.domain.sizing.workload import Unit, Workload

#: Fields of a Workload that a group's row fills under their own names, as its inputs are called, too.
_SAME = ("t1_seconds", "t2_seconds", "cores", "partitions", "hottest_share")
#: A hottest partition that has hardly more than an even share is none.
_HARDLY_MORE = 1.01
#: Without these a workload cannot be sized; the time per message as a whole stands for the first three.
NEEDED = ("t1_seconds", "t2_seconds", "cores", "peak_rate_per_second", "partitions")
_TAKEN_APART = NEEDED[:3]
#: Where the time per message as a whole is from, by what is known of what the group can do.
_WHOLE_FROM = {
    "saturation": "as seen under saturation",
    "busy_time": "by the busy time of the vertex that bounds the job",
    "consume_rt": "by the consume RT and the threads that the clients report",
}
_CALLED = {
    "t1_seconds": "T1",
    "t2_seconds": "T2",
    "cores": "the cores of a node",
    "peak_rate_per_second": "the peak",
    "partitions": "the number of partitions",
}
#: What an input's samples are.
_SAMPLES = {
    "t1_seconds": "message",
    "t2_seconds": "message",
    "threads_per_node": "message",
    "hottest_share": "record",
    "peak_rate_per_second": "minute",
    "objective_rate_per_second": "minute",
    "planned_objective_per_second": "minute",
    "forecast_peak_per_second": "hour",
    "observed_rate_per_second": "block",
}


def known_values(row: Mapping[str, Any], now: datetime) -> tuple[dict[str, Any], dict[str, str]]:
    """Fields of a Workload that the row knows, as they are planned with, and where each comes from.

    Where only the time per message as a whole is known, it is there as ``seconds_per_message``, and T1 and T2 are not.
    The lag of now is not among them: it is no backlog to plan for, unless somebody says so.
    """
    inputs = {i["name"]: i for i in row["inputs"]}

    def source_of(name: str) -> str:
        return _source(inputs.get(name), now)

    known: dict[str, tuple[Any, str]] = {name: (row[name], source_of(name)) for name in _SAME}
    peaks = {
        "peak_rate_per_second": row["peak_rate_per_second"],
        "forecast_peak_per_second": row["forecast_peak_rate_per_second"],
    }
    highest = max(peaks, key=lambda name: peaks[name] or 0.0)
    known["peak_rate_per_second"] = (peaks[highest] or None, source_of(highest))
    known["objective_rate_per_second"] = (
        row["planned_objective_rate_per_second"],
        source_of("planned_objective_per_second"),
    )
    known["objective_seconds"] = (row["objective_seconds"], "settings")
    if is_by_members(row):
        how = f"{_WHOLE_FROM[row['capacity_source']]}, a {row['unit']} taken as one thread"
        known["seconds_per_message"] = (row["t1_seconds"], how)
        for name in ("t1_seconds", "t2_seconds"):
            # What a probe measured, where it does not report the cores.
            known[name] = (inputs[name]["value"] if name in inputs else None, source_of(name))
    elif row["concurrency"] is not None:
        known |= {name: (row[name], "how the group runs now") for name in ("concurrency", "max_threads_per_node")}
    if row["unit"] != Unit.NODE:  # also where it is not known how long they take, and somebody types that in
        known["unit"] = (Unit(row["unit"]), "what reads for the group")
    known = {name: one for name, one in known.items() if one[0] is not None}
    return as_planned({name: value for name, (value, _) in known.items()}), {n: how for n, (_, how) in known.items()}


def is_by_members(row: Mapping[str, Any]) -> bool:
    """Whether the row knows the time per message of a member (or subtask) as a whole, and not T1 and T2 apart."""
    return row["unit"] != Unit.NODE and row["max_threads_per_node"] is not None


class RunningNodes(NamedTuple):
    """What runs; None is not known."""

    nodes: int | None
    threads_per_node: int | None


def running_of(row: Mapping[str, Any] | None) -> RunningNodes:
    """Where only the time per message of a member is known, a member is taken as a node of one thread, as in the
    advice."""
    if row is None:
        return RunningNodes(None, None)
    if is_by_members(row):
        return RunningNodes(row["members"] or None, 1)
    return RunningNodes(row["nodes"] or None, row["threads_per_node"])


def task_slots_of(row: Mapping[str, Any] | None, advice: SizingAdvice | None) -> TaskSlots | None:
    """The task slots for what is advised to a group of a Flink job; None of any other."""
    return None if row is None else task_slots_for(advice, row["slots_held"], row["slots_free"])


def downstream_of(row: Mapping[str, Any] | None) -> DownstreamFull | None:
    """That the downstream of a group is full, as its inputs say; None where they do not."""
    inputs = {i["name"]: i for i in row["inputs"]} if row is not None else {}
    rate, members = inputs.get(RATE_INPUT), inputs.get(MEMBERS_INPUT)
    if rate is None or members is None:
        return None
    return DownstreamFull(
        rate_per_second=rate["value"],
        evidence=rate["source"],
        members=int(members["value"]),
        messages=rate["samples"],
        measured_at=rate["measured_at"],
    )


def as_planned(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values as exact as they are known, which is as they are shown: the same wherever it is planned with them."""
    made = {name: _exact(value, 4) if name in _TIMES else value for name, value in values.items()}
    for name in ("peak_rate_per_second", "objective_rate_per_second"):
        if (rate := made.get(name)) is not None:
            made[name] = _as_shown(rate)
    share = made.get("hottest_share")
    if share is not None:
        even = 1.0 / made["partitions"] if made.get("partitions") else 1.0
        made["hottest_share"] = None if share < _HARDLY_MORE * even else _exact(share, 3)
    return made


_TIMES = (*_TAKEN_APART, "seconds_per_message")


def missing_of(values: Mapping[str, Any]) -> tuple[str, ...]:
    """What has to be known and is not, of NEEDED."""
    is_whole = values.get("seconds_per_message") is not None
    return tuple(n for n in NEEDED if values.get(n) is None and not (is_whole and n in _TAKEN_APART))


def missing_sentence(missing: Sequence[str]) -> str:
    """That there is no advice, what would have to be known for it, and where that can come from."""
    unknown = [_CALLED[name] for name in NEEDED if name in missing]
    listed = " and ".join([", ".join(unknown[:-1]), unknown[-1]] if len(unknown) > 1 else unknown)
    how = "Type in what is not known"
    if any(name in missing for name in _TAKEN_APART):
        how += (
            ", let a consumer measure T1 and T2 with the probe, which reports the cores, too (where it does not: "
            "analysis.capacity.nodes in the settings), or let the group show under a load test what it can do"
        )
    return f"No advice: {listed} {'is' if len(unknown) == 1 else 'are'} not known, and no number is made up. {how}."


def workload_from(values: Mapping[str, Any]) -> Workload:
    """The question that values ask of which none is missing: about nodes and threads where T1, T2 and the cores are
    known, else about members. Raises OutOfRange."""
    asked = {name: value for name, value in values.items() if name != "seconds_per_message"}
    if all(values.get(name) is not None for name in _TAKEN_APART):
        return Workload(**asked | {"unit": Unit.NODE})
    asked = {name: value for name, value in asked.items() if name not in (*_TAKEN_APART, "max_threads_per_node")}
    return Workload.of_members(values["seconds_per_message"], **asked)


def _exact(value: float, digits: int) -> float:
    return float(f"{value:.{digits}g}")


def _as_shown(rate: float) -> float:
    """As :func:`lagwise.domain.humanise.significant` writes it: a page, its advice and the command that it offers have
    one number and not two. What that leaves out is less than half a per cent, which no peak is known to."""
    return _exact(rate, 3) if rate < 100.0 else float(f"{rate:.0f}")


def _source(given: Mapping[str, Any] | None, now: datetime) -> str:
    if given is None:
        return "measured"
    text = str(given["source"])
    if given["samples"] is not None:
        text += f", from {plural(given['samples'], _SAMPLES.get(given['name'], 'sample'))}"
    if given["measured_at"] is not None:
        text += f", {duration((now - given['measured_at']).total_seconds())} ago"
    return text
