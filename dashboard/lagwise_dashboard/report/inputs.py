"""The inputs of sizing, as the page names and shows them."""

from collections.abc import Mapping
from dataclasses import dataclass

from lagwise.domain import humanise
from lagwise.domain.sizing.words import say_number
from lagwise.domain.sizing.workload import Unit, Workload
from lagwise_dashboard import tables
from lagwise_dashboard.tables import TableColumn

#: As it is shown, and raw.
Value = tuple[str, object]


@dataclass(frozen=True, slots=True)
class ShownInput:
    """How one number of a Workload is shown; ``scale`` turns the unit shown into the Workload's."""

    label: str
    unit: str
    scale: float = 1.0


#: The numbers, by the name of the Workload's field; ``seconds_per_message`` stands for the first three where they are
#: not known apart.
SHOWN = {
    "seconds_per_message": ShownInput("Time per message", "ms", 1e-3),
    "t1_seconds": ShownInput("T1, waiting", "ms", 1e-3),
    "t2_seconds": ShownInput("T2, on the CPU", "ms", 1e-3),
    "cores": ShownInput("Cores of a node", "or its CPU limit"),
    "target_utilisation": ShownInput("Target utilisation", "%", 0.01),
    "spare_nodes": ShownInput("Spare nodes", "N+…"),
    "catch_up_seconds": ShownInput("Catch up within", "min", 60.0),
    "restart_seconds": ShownInput("A restart takes", "s"),
    "outage_seconds": ShownInput("An outage takes", "min", 60.0),
    "outage_catch_up_seconds": ShownInput("Catch up with it within", "min", 60.0),
    "share_of_ceiling": ShownInput("Fill a node to", "% of its ceiling", 0.01),
    "lag": ShownInput("Backlog", "messages"),
    "max_threads_per_node": ShownInput("Most threads a node", "threads"),
}
LABELS = {
    "peak_rate_per_second": "Peak",
    "partitions": "Partitions",
    "hottest_share": "Hottest partition",
    **{name: shown.label for name, shown in SHOWN.items()},
    "concurrency": "A node's threads",
    "ordering": "Order to keep",
}
#: What is not asked where members are sized.
_OF_NODES = ("t1_seconds", "t2_seconds", "cores", "share_of_ceiling", "max_threads_per_node", "concurrency", "ordering")


def spoken(workload: Workload) -> dict[str, Value]:
    """Every input as it is shown, and its value, by its label."""
    return {LABELS[name]: (said, _raw(workload, name)) for name, said in _values(workload).items()}


def columns(workload: Workload, sources: Mapping[str, str]) -> list[TableColumn]:
    """Every input as a table: what it is, its value, and where it is from."""
    said = _values(workload)
    return [
        tables.text("Asked", [LABELS[name] for name in said]),
        tables.mixed("Value", [_raw(workload, name) for name in said], list(said.values())),
        tables.text("From", [sources.get(name, "default") for name in said]),
    ]


def _raw(w: Workload, name: str) -> object:
    """The value of an input in the units of a Workload."""
    if name in ("concurrency", "ordering"):
        return str(w.concurrency if name == "concurrency" else w.order)
    value: object = getattr(w, "t1_seconds" if name == "seconds_per_message" else name)
    return value


def _values(w: Workload) -> dict[str, str]:
    said = {
        "peak_rate_per_second": f"{say_number(w.peak_rate_per_second)}/s",
        "partitions": humanise.count(w.partitions),
        "hottest_share": "even" if w.hottest_share is None else f"{100 * w.hottest_share:.3g} %",
    }
    for name, shown in SHOWN.items():
        value = w.t1_seconds if name == "seconds_per_message" else getattr(w, name)
        unit = "" if shown.unit in ("or its CPU limit", "N+…") else f" {shown.unit}"
        said[name] = f"{float(f'{value / shown.scale:.4g}'):,.12g}{unit}"
    said |= {"concurrency": str(w.concurrency), "ordering": str(w.order)}
    not_asked: tuple[str, ...] = _OF_NODES if w.by_members else ("seconds_per_message",)
    if w.unit is Unit.SUBTASK:
        not_asked += ("spare_nodes",)
    return {name: value for name, value in said.items() if name not in not_asked}
