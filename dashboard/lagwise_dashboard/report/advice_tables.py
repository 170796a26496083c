"""The inputs of sizing, as the page names and shows them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from lagwise.domain import humanise
from lagwise.domain.humanise import per_cent, significant, significant_rate
from lagwise.domain.sizing.figures import Figure
from lagwise.domain.sizing.ramp_plan import RampStep
from lagwise.domain.sizing.triple_search import Binding
from lagwise.domain.sizing.workload import SizeBy, Unit, Workload
from lagwise_dashboard import tables
from lagwise_dashboard.tables import TableColumn


class FormattedValue(NamedTuple):
    """A value as it is shown, and raw."""

    text: str
    raw: object


@dataclass(frozen=True, slots=True)
class InputFormat:
    """How one number of a Workload is shown; ``scale`` turns the unit shown into the Workload's."""

    label: str
    unit: str
    scale: float = 1.0


#: The numbers, by the name of the Workload's field; ``seconds_per_message`` stands for the first three where they are
#: not known apart.
INPUT_FORMATS = {
    "seconds_per_message": InputFormat("Time per message", "ms", 1e-3),
    "t1_seconds": InputFormat("T1, waiting", "ms", 1e-3),
    "t2_seconds": InputFormat("T2, on the CPU", "ms", 1e-3),
    "cores": InputFormat("Cores of a node", "or its CPU limit"),
    "target_utilisation": InputFormat("Target utilisation", "%", 0.01),
    "spare_nodes": InputFormat("Spare nodes", "N+…"),
    "catch_up_seconds": InputFormat("Catch up within", "min", 60.0),
    "restart_seconds": InputFormat("A restart takes", "s"),
    "outage_seconds": InputFormat("An outage takes", "min", 60.0),
    "outage_catch_up_seconds": InputFormat("Catch up with it within", "min", 60.0),
    "share_of_ceiling": InputFormat("Fill a node to", "% of its ceiling", 0.01),
    "lag": InputFormat("Backlog", "messages"),
    "max_threads_per_node": InputFormat("Most threads a node", "threads"),
}
LABELS = {
    "peak_rate_per_second": "Peak",
    "objective_rate_per_second": "Objective takes",
    "objective_seconds": "Lag objective",
    "size_by": "Sized by",
    "partitions": "Partitions",
    "hottest_share": "Hottest partition",
    **{name: shown.label for name, shown in INPUT_FORMATS.items()},
    "concurrency": "Threading model",
    "ordering": "Required order",
}
#: The source of an input that somebody typed.
ENTERED = "entered"
#: What is not asked where members are sized.
_OF_NODES = ("t1_seconds", "t2_seconds", "cores", "share_of_ceiling", "max_threads_per_node", "concurrency", "ordering")


def formatted_inputs(workload: Workload) -> dict[str, FormattedValue]:
    """Every input by its label, in the units of a Workload where it is raw."""
    return {LABELS[name]: value for name, value in _formatted(workload).items()}


def input_columns(workload: Workload, sources: Mapping[str, str]) -> list[TableColumn]:
    """Every input as a table: its label, value and source."""
    inputs = _formatted(workload)
    return [
        tables.text("Input", [LABELS[name] for name in inputs]),
        tables.mixed("Value", [value.raw for value in inputs.values()], [value.text for value in inputs.values()]),
        tables.text("Source", [sources.get(name, "default") for name in inputs]),
    ]


def _formatted(w: Workload) -> dict[str, FormattedValue]:
    hottest = "even" if w.hottest_share is None else f"{100 * w.hottest_share:.3g} %"
    values = {
        "peak_rate_per_second": FormattedValue(f"{significant(w.peak_rate_per_second)}/s", w.peak_rate_per_second),
        **_formatted_objective(w),
        "size_by": FormattedValue(_sized_by(w), str(w.size_by)),
        "partitions": FormattedValue(humanise.count(w.partitions), w.partitions),
        "hottest_share": FormattedValue(hottest, w.hottest_share),
    }
    for name, shown in INPUT_FORMATS.items():
        value = w.t1_seconds if name == "seconds_per_message" else getattr(w, name)
        unit = "" if shown.unit in ("or its CPU limit", "N+…") else f" {shown.unit}"
        values[name] = FormattedValue(f"{float(f'{value / shown.scale:.4g}'):,.12g}{unit}", value)
    values["concurrency"] = FormattedValue(str(w.concurrency), str(w.concurrency))
    values["ordering"] = FormattedValue(str(w.order), str(w.order))
    not_asked: tuple[str, ...] = _OF_NODES if w.by_members else ("seconds_per_message",)
    if w.unit is Unit.SUBTASK:
        not_asked += ("spare_nodes",)
    return {name: value for name, value in values.items() if name not in not_asked}


def _sized_by(w: Workload) -> str:
    """What was asked for, and what decides where that is not possible."""
    if w.size_by is SizeBy.OBJECTIVE and not w.is_by_objective:
        return "peak: what the objective takes is unknown"
    return str(w.size_by)


def entered_inputs(workload: Workload, sources: Mapping[str, str]) -> str:
    """What somebody typed, as in ``Peak 9,000/s, Partitions 24``; empty where all is as it is known."""
    shown = _formatted(workload)
    return ", ".join(f"{LABELS[name]} {shown[name].text}" for name in shown if sources.get(name) == ENTERED)


def _formatted_objective(w: Workload) -> dict[str, FormattedValue]:
    """What the objective takes and which it is, as far as they are known."""
    rate, seconds = w.objective_rate_per_second, w.objective_seconds
    shown = {}
    if rate is not None:
        shown["objective_rate_per_second"] = FormattedValue(f"{significant(rate)}/s", rate)
    if seconds is not None:
        shown["objective_seconds"] = FormattedValue(humanise.precise_duration(seconds), seconds)
    return shown


#: What binds, as it reads in a metric.
BINDS = {
    Binding.CPU: "the cores",
    Binding.WAITING: "waiting",
    Binding.TIME: "time per message",
    Binding.PARTITIONS: "partitions",
    Binding.SKEW: "the hottest partition",
    Binding.ORDERING: "the order",
    Binding.DOWNSTREAM: "the downstream",
    Binding.DEMAND: "only the demand",
}


def figure_columns(figures: Sequence[Figure]) -> list[TableColumn]:
    """Figures as a table: label, value, and how it was computed."""
    return [
        tables.text("Figure", [f.label for f in figures]),
        tables.mixed("Value", [f.value for f in figures], [_figure_text(f.name, f.value) for f in figures]),
        tables.text("Unit", [f.unit for f in figures]),
        tables.text("Computed from", [f.how for f in figures]),
    ]


def _figure_text(name: str, value: float | None) -> str:
    """A figure's value; ``none`` where it is infinite."""
    if value is None:
        return "none"
    return per_cent(value) if name in ("hottest_share", "hottest_key_share") else significant(value)


def ramp_columns(plan: tuple[RampStep, ...]) -> list[TableColumn]:
    """The plan, a row for each step."""
    return [
        tables.count("Threads", [step.expected.threads for step in plan]),
        tables.count(
            "A node should do",
            [step.expected.rate_per_second for step in plan],
            of="per_second",
            formatter=significant_rate,
        ),
        tables.count("Cores busy", [step.expected.core_utilisation for step in plan], of="share", formatter=per_cent),
        tables.count(
            "Gain",
            [step.gain_per_second if i else None for i, step in enumerate(plan)],
            of="per_second",
            formatter=significant_rate,
        ),
        tables.text("When to go back", [step.stop for step in plan], wraps=True),
    ]
