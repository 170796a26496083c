"""The answer of ``lagwise size`` in the terminal: the group, the advice, the forecast, what-if and ramp plan."""

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Column, Table
from rich.text import Text

from lagwise.domain.capacity.outlook import Outlook, provenance
from lagwise.domain.humanise import per_cent, plural, precise_duration, significant
from lagwise.domain.simulation.what_if import outcome_sentence
from lagwise.domain.sizing.advice import SizingAdvice
from lagwise.domain.sizing.advice_text import explain_concurrency
from lagwise.domain.sizing.group_workload import missing_sentence
from lagwise.domain.sizing.ramp_plan import RampStep
from lagwise.domain.sizing.task_slots import TaskSlots
from lagwise.platform.logs import clean
from lagwise_dashboard.report.capacity_report import CapacityReport

_TIMES = ("--per-message", "--t1", "--t2", "--objective")
#: Hidden where the total time per message is given.
_OF_NODES = ("--t1", "--t2", "--cores")
#: The colour of the frame for each verdict.
_COLOURS = {"short": "red", "tight": "yellow", "enough": "green", "oversized": "cyan"}
#: The days of the forecast that are shown, besides the last. The JSON has all of them.
_DAYS = (0, 7, 14, 30, 60)


def size_page(report: CapacityReport, inputs: Mapping[str, tuple[float | None, str]]) -> RenderableType:
    """The group, where there is one, and the report. ``inputs`` are values and sources by option."""
    parts: list[RenderableType] = []
    if report.row is not None:
        parts.append(_group_panel(report.row, inputs))
    if report.advice is None:
        parts.append(Panel(Text(missing_sentence(report.missing)), title="What it takes", title_align="left"))
    else:
        parts += _advice_parts(report.advice, report.slots)
    return Group(*parts, *(Padding(part, (1, 0, 0, 0)) for part in _forecast_parts(report)))


def _advice_parts(advice: SizingAdvice, slots: TaskSlots | None) -> Iterator[RenderableType]:
    """The verdict, then the numbers behind it."""
    yield _advice_panel(advice, slots)
    if advice.points:
        yield Group(_heading("What one node does"), _node_table(advice), Text())
    # With a full downstream no threads are advised, so there is nothing to explain about them.
    how = "" if advice.downstream else explain_concurrency(advice.workload, advice.threads)
    yield Group(_heading("Where the numbers come from"), _figure_table(advice))
    yield Padding(Text(how, style="dim"), (1, 0, 0, 0))


def _group_panel(row: Mapping[str, Any], inputs: Mapping[str, tuple[float | None, str]]) -> RenderableType:
    """Whether the current deployment is enough, and the sources of the inputs."""
    title = Text(f"{clean(row['group'])} on {clean(row['topic'])} ({clean(row['cluster'])}) · {row['verdict']}")
    body = Text(clean(row["sentence"]))
    body.append(f"\nConfidence: {row['confidence']}.", style="dim")
    table = _table(
        "option", Column(justify="right", style="bold"), Column(style="dim", overflow="fold"), show_header=False
    )
    for option, (value, source) in inputs.items():
        if value is not None:
            shown = precise_duration(value) if option in _TIMES else significant(value)
        elif option == "--hottest-share":
            shown = "even"
        elif option in ("--per-message", "--objective") or (
            option in _OF_NODES and inputs["--per-message"][0] is not None
        ):
            continue
        else:
            shown = "?"
        table.add_row(option, shown, source)
    colour = _COLOURS.get(row["verdict"], "white")
    return Group(Panel(body, title=title, title_align="left", border_style=colour), table, Text())


def _advice_panel(advice: SizingAdvice, slots: TaskSlots | None) -> RenderableType:
    body = Text(f"{advice.verdict} {slots.sentence}" if slots else advice.verdict)
    if advice.changes:
        body.append("\n")
        for i, change in enumerate(advice.changes):
            body.append("\nOr: " if i else "\nCheapest change: ", style="bold")
            body.append(change.sentence)
            if change.cost:
                body.append(f" {change.cost}", style="dim")
    triple = advice.triple
    if triple is None:
        title = Text(
            f"No answer on {plural(advice.workload.partitions, 'partition')} · limited by: {advice.binds.value}"
        )
        return Panel(body, title=title, title_align="left", border_style="red")
    of_members = advice.workload.by_members
    threads = "" if of_members else f"{plural(triple.threads_per_node, 'thread')} a node · "
    title = Text(
        f"{plural(triple.partitions, 'partition')} · {plural(triple.nodes, advice.workload.unit)} · "
        f"{threads}limited by: {advice.binds.value}"
    )
    return Panel(body, title=title, title_align="left", border_style="green")


def _heading(text: str) -> Text:
    return Text(text, style="bold")


def _table(*columns: Column | str, show_header: bool = True) -> Table:
    return Table(*columns, box=None, pad_edge=False, padding=(0, 3, 0, 0), show_header=show_header)


def _right(heading: str) -> Column:
    return Column(heading, justify="right")


def _node_table(advice: SizingAdvice) -> Table:
    table = _table(
        _right("threads"),
        Column(overflow="fold"),
        _right("straight lines"),
        Column("what it does", justify="right", style="bold"),
        _right("cores busy"),
        _right("wait for a core"),
    )
    for point in advice.points:
        table.add_row(
            f"{point.node.threads:,}",
            point.label,
            f"{significant(point.straight_line_rate_per_second)}/s",
            f"{significant(point.node.rate_per_second)}/s",
            per_cent(point.node.core_utilisation),
            precise_duration(point.node.core_wait_seconds),
        )
    return table


def _figure_table(advice: SizingAdvice) -> Table:
    value_column = Column(justify="right", style="bold")
    table = _table("figure", value_column, "unit", Column(style="dim", overflow="fold"), show_header=False)
    for figure in advice.figures:
        say = per_cent if figure.unit == "of the traffic" else significant
        table.add_row(figure.label, "none" if figure.value is None else say(figure.value), figure.unit, figure.how)
    return table


def _forecast_parts(report: CapacityReport) -> Iterator[RenderableType]:
    """The sections after the advice."""
    if report.outlook is not None:
        said = Text(clean(provenance(report.outlook, report.now)), style="dim")
        points = [_forecast_table(report.outlook)] if report.outlook.days else []
        yield Group(_heading("What will arrive"), *points, said)
    if report.what_if is not None:
        lines = [Text(f"{label}. {outcome_sentence(outcome)}") for label, outcome in report.what_if.outcomes]
        by_objective = report.advice is not None and report.advice.workload.is_by_objective
        load = "At the objective's rate" if by_objective else "At peak"
        question = Text(f"{report.what_if.question} {load} throughout.", style="dim")
        yield Group(_heading("What if"), question, *lines)
    if report.ramp:
        yield Group(_heading("How to get there, one node first"), _ramp_table(report.ramp))


def _forecast_table(outlook: Outlook) -> Table:
    first, last = outlook.days[0], outlook.days[-1]
    wanted = [first.at + timedelta(days=number) for number in _DAYS]
    shown = [next((day for day in outlook.days if day.at >= at), last) for at in wanted]
    table = _table("day", _right("busiest minute"), _right("90 %: from"), _right("to"))
    for day in dict.fromkeys([*shown, last]):
        table.add_row(f"{day.at:%Y-%m-%d}", *(f"{significant(rate)}/s" for rate in (day.peak, day.low, day.high)))
    return table


def _ramp_table(ramp: tuple[RampStep, ...]) -> Table:
    table = _table(
        _right("threads"), _right("expected per node"), _right("cores busy"), Column("roll back when", overflow="fold")
    )
    for step in ramp:
        node = step.expected
        table.add_row(
            f"{node.threads:,}", f"{significant(node.rate_per_second)}/s", per_cent(node.core_utilisation), step.stop
        )
    return table
