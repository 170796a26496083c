"""The answer of ``lagwise size`` in the terminal: the group, the advice, the forecast, what-if and ramp plan."""

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from lagwise.domain.capacity.outlook import Outlook, provenance
from lagwise.domain.humanise import per_cent, plural, precise_duration, significant
from lagwise.domain.simulation.what_if import outcome_sentence
from lagwise.domain.sizing.advice import SizingAdvice
from lagwise.domain.sizing.advice_text import explain_concurrency
from lagwise.domain.sizing.ramp_plan import RampStep
from lagwise.domain.sizing.task_slots import TaskSlots
from lagwise.platform.logs import clean
from lagwise_app.size.answer import SizingAnswer


def size_page(answer: SizingAnswer, inputs: Mapping[str, tuple[float | None, str]]) -> RenderableType:
    """The group, where there is one, and the answer. ``inputs`` are values and sources by option."""
    parts: list[RenderableType] = []
    if answer.row is not None:
        parts.append(_group_panel(answer.row, inputs))
    if answer.advice is None:
        parts.append(Panel(Text(answer.verdict), title="What it takes", title_align="left"))
    else:
        parts.append(report(answer.advice, answer.slots))
    return Group(*parts, *(Padding(part, (1, 0, 0, 0)) for part in _forecast_parts(answer)))


def report(advice: SizingAdvice, slots: TaskSlots | None = None) -> RenderableType:
    """The verdict, then the numbers behind it."""
    nodes = (_heading("What one node does"), _node_table(advice), Text()) if advice.points else ()
    # With a full downstream no threads are advised, so there is nothing to explain about them.
    how = "" if advice.downstream else explain_concurrency(advice.workload, advice.threads)
    return Group(
        _advice_panel(advice, slots),
        *nodes,
        _heading("Where the numbers come from"),
        _figure_table(advice),
        Padding(Text(how, style="dim"), (1, 0, 0, 0)),
    )


_TIMES = ("--per-message", "--t1", "--t2")
#: Hidden where the total time per message is given.
_OF_NODES = ("--t1", "--t2", "--cores")
#: The colour of the frame for each verdict.
_COLOURS = {"short": "red", "tight": "yellow", "enough": "green", "oversized": "cyan"}


def _group_panel(row: Mapping[str, Any], inputs: Mapping[str, tuple[float | None, str]]) -> RenderableType:
    """Whether the current deployment is enough, and the sources of the inputs."""
    title = Text(f"{clean(row['group'])} on {clean(row['topic'])} · {row['verdict']}")
    body = Text(clean(row["sentence"]))
    body.append(f"\nConfidence: {row['confidence']}.", style="dim")
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), show_header=False)
    table.add_column()
    table.add_column(justify="right", style="bold")
    table.add_column(style="dim", overflow="fold")
    for option, (value, source) in inputs.items():
        if value is not None:
            shown = precise_duration(value) if option in _TIMES else significant(value)
        elif option == "--hottest-share":
            shown = "even"
        elif option == "--per-message" or (option in _OF_NODES and inputs["--per-message"][0] is not None):
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
            f"No answer on {plural(advice.workload.partitions, 'partition')} · what binds: {advice.binds.value}"
        )
        return Panel(body, title=title, title_align="left", border_style="red")
    of_members = advice.workload.by_members
    threads = "" if of_members else f"{plural(triple.threads_per_node, 'thread')} a node · "
    title = Text(
        f"{plural(triple.partitions, 'partition')} · {plural(triple.nodes, advice.workload.unit)} · "
        f"{threads}what binds: {advice.binds.value}"
    )
    return Panel(body, title=title, title_align="left", border_style="green")


def _heading(text: str) -> Text:
    return Text(text, style="bold")


def _node_table(advice: SizingAdvice) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0))
    table.add_column("threads", justify="right")
    table.add_column("", overflow="fold")
    table.add_column("straight lines", justify="right")
    table.add_column("really", justify="right", style="bold")
    table.add_column("cores busy", justify="right")
    table.add_column("a message waits for a core", justify="right")
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
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), show_header=False)
    table.add_column()
    table.add_column(justify="right", style="bold")
    table.add_column()
    table.add_column(style="dim", overflow="fold")
    for figure in advice.figures:
        value = "none" if figure.value is None else significant(figure.value)
        unit = figure.unit
        if figure.unit == "of the traffic" and figure.value is not None:
            value = per_cent(figure.value)
        table.add_row(figure.label, value, unit, figure.how)
    return table


#: The days of the forecast that are shown, besides the last. The JSON has all of them.
_DAYS = (0, 7, 14, 30, 60)


def _forecast_parts(answer: SizingAnswer) -> Iterator[RenderableType]:
    """The sections after the advice."""
    if answer.outlook is not None:
        said = Text(clean(provenance(answer.outlook, answer.now)), style="dim")
        points = [_forecast_table(answer.outlook)] if answer.outlook.days else []
        yield Group(Text("What will arrive", style="bold"), *points, said)
    if answer.what_if is not None:
        lines = [Text(f"{label}. {outcome_sentence(outcome)}") for label, outcome in answer.what_if.outcomes]
        question = Text(f"{answer.what_if.question} At peak throughout.", style="dim")
        yield Group(Text("What if", style="bold"), question, *lines)
    if answer.ramp:
        yield Group(Text("How to get there, one node first", style="bold"), _ramp_table(answer.ramp))


def _forecast_table(outlook: Outlook) -> Table:
    first, last = outlook.days[0], outlook.days[-1]
    wanted = [first.at + timedelta(days=number) for number in _DAYS]
    shown = [next((day for day in outlook.days if day.at >= at), last) for at in wanted]
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0))
    for heading in ("day", "busiest minute", "90 %: from", "to"):
        table.add_column(heading, justify="left" if heading == "day" else "right")
    for day in dict.fromkeys([*shown, last]):
        table.add_row(f"{day.at:%Y-%m-%d}", *(f"{significant(rate)}/s" for rate in (day.peak, day.low, day.high)))
    return table


def _ramp_table(ramp: tuple[RampStep, ...]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0))
    for heading in ("threads", "expected per node", "cores busy"):
        table.add_column(heading, justify="right")
    table.add_column("roll back when", overflow="fold")
    for step in ramp:
        node = step.expected
        table.add_row(
            f"{node.threads:,}", f"{significant(node.rate_per_second)}/s", per_cent(node.core_utilisation), step.stop
        )
    return table
