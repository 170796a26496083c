"""A group's capacity on one topic, in words: its numbers, and the inputs that they rest on."""

from datetime import UTC, datetime

from lagwise.domain import humanise
from lagwise.domain.capacity.outlook import Outlook, provenance
from lagwise.domain.capacity.verdict import CapacityVerdict
from lagwise.domain.humanise import per_cent, precise_duration, significant
from lagwise.domain.sizing.downstream import MEMBERS_INPUT, RATE_INPUT
from lagwise.domain.sizing.workload import SizeBy, Unit, nodes_and_threads
from lagwise_dashboard import tables
from lagwise_dashboard.queries.base import Row
from lagwise_dashboard.report.advice_tables import LABELS
from lagwise_dashboard.tables import TableColumn

#: Where the capacity of a group is known from.
SOURCES = {
    "saturation": "seen while it had a backlog",
    "busy_time": "worked out from how busy its Flink job is",
    "consume_rt": "worked out from how long its threads take for a message",
    "probe": "worked out from T1, T2 and the cores",
    "throughput": "a lower bound: what it did without a backlog",
    "none": "nothing is known of it",
}
_INPUTS = LABELS | {
    "members": "Members",
    "nodes": "Nodes",
    "threads_per_node": "Threads per node",
    RATE_INPUT: "Downstream is full at",
    MEMBERS_INPUT: "Members that fill it",
    "busy_share": "Busy share",
    "records_per_second": "Reads now",
    "slots_held": "Task slots held",
    "slots_free": "Task slots free",
    "seconds_per_message": "Time per message",
    "threads": "Threads",
    "observed_rate_per_second": "Seen under saturation",
    "at_least_per_second": "Does at least",
    "forecast_peak_per_second": "Forecast peak",
    "objective_rate_per_second": "Objective takes so far",
    "planned_objective_per_second": "Objective takes at the horizon",
}


def can_do(row: Row) -> str:
    """``1,200/s``, ``1,100 to 1,300/s``, ``≥ 900/s``, or a dash."""
    low, high = row["capacity_low_per_second"], row["capacity_high_per_second"]
    if low is None:
        return humanise.DASH
    if high is None:
        return f"≥ {significant(low)}/s"
    lowest, highest = significant(low), significant(high)
    return f"{lowest}/s" if lowest == highest else f"{lowest} to {highest}/s"


def enough_until(row: Row) -> str:
    """The day, ``beyond the forecast``, that it is over, or a dash where nothing can be said."""
    if row["verdict"] == CapacityVerdict.SHORT:
        return "already too small"
    if row["is_exceeded"]:
        return "slack already used"
    if row["enough_until"] is not None:
        return f"{row['enough_until'].astimezone(UTC):%Y-%m-%d}"
    is_ahead = row["forecast_demand_per_second"] is not None
    lasts = row["verdict"] in (CapacityVerdict.ENOUGH, CapacityVerdict.OVERSIZED)
    return "beyond the forecast" if is_ahead and lasts else humanise.DASH


def advised_change(row: Row) -> str | None:
    """What should run instead: ``3 nodes of 21 threads``, or without such an answer what would help; None where nothing
    is to be changed, or nothing is known."""
    if row["verdict"] in (CapacityVerdict.ENOUGH, CapacityVerdict.UNDECIDED):
        return None
    if row["advised_nodes"] is None:
        change: str | None = row["change"]
        return change
    return nodes_and_threads(Unit(row["unit"]), row["advised_nodes"], row["advised_threads_per_node"])


def running(row: Row) -> str:
    """What runs: ``6 nodes of 4 threads``, ``4 members``."""
    unit = Unit(row["unit"])
    if unit is Unit.NODE:
        return nodes_and_threads(unit, row["nodes"], row["threads_per_node"])
    return nodes_and_threads(unit, row["members"], None)


def objective_label(row: Row) -> str:
    """``Objective (5 min)``: the heading of what it takes."""
    seconds = row["objective_seconds"]
    return "Objective" if seconds is None else f"Objective ({precise_duration(seconds)})"


def forecast_note(row: Row, outlook: Outlook, now: datetime) -> str:
    """Where the forecast that is drawn comes from."""
    return provenance(outlook, now, SizeBy(row["size_by"]))


def per_second(rate: float | None) -> str:
    """A rate with its unit; a dash where it is not known."""
    return humanise.DASH if rate is None else f"{significant(rate)}/s"


def inputs(row: Row, now: datetime) -> list[TableColumn]:
    """Every number that went in as a table: what it is, its value, where from, from how many samples, how old."""
    result = row["inputs"]
    return [
        tables.text("Input", [_INPUTS.get(one["name"], one["name"]) for one in result]),
        tables.mixed("Value", [one["value"] for one in result], [_value(one["name"], one["value"]) for one in result]),
        tables.text("Source", [one["source"] for one in result]),
        tables.count("Samples", [one["samples"] for one in result]).with_help(
            "Messages, minutes, hours or blocks, as the source counts."
        ),
        tables.duration("Age", [tables.elapsed_seconds(one["measured_at"], now) for one in result]).with_help(
            "Of a peak: since it was."
        ),
    ]


def _value(name: str, value: float) -> str:
    if name in ("hottest_share", "busy_share"):
        return per_cent(value)
    if name in ("t1_seconds", "t2_seconds", "seconds_per_message"):
        return precise_duration(value)
    return f"{significant(value)}/s" if name.endswith("_per_second") else significant(value)
