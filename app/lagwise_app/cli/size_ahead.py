"""What the advice leads to, in the terminal: what will arrive, what if nothing is read, and how to get there."""

from collections.abc import Iterator
from datetime import timedelta

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from lagwise.domain.capacity.outlook import Outlook, provenance
from lagwise.domain.simulation.what_if import say_outcome
from lagwise.domain.sizing.ramp_plan import RampStep
from lagwise.domain.sizing.words import say_number, say_share
from lagwise.platform.logs import clean
from lagwise_app.cli.size_answer import SizingAnswer

#: Of the forecast so many days ahead are shown, and its last one; all of them are in the JSON.
_DAYS = (0, 7, 14, 30, 60)


def ahead(answer: SizingAnswer) -> Iterator[RenderableType]:
    """The parts that there are."""
    if answer.outlook is not None:
        said = Text(clean(provenance(answer.outlook, answer.now)), style="dim")
        points = [_days(answer.outlook)] if answer.outlook.days else []
        yield Group(Text("What will arrive", style="bold"), *points, said)
    if answer.what_if is not None:
        lines = [Text(f"{label}. {say_outcome(outcome)}") for label, outcome in answer.what_if.outcomes]
        question = Text(f"{answer.what_if.question} At peak all the time.", style="dim")
        yield Group(Text("What if", style="bold"), question, *lines)
    if answer.ramp:
        yield Group(Text("How to get there, one node first", style="bold"), _steps(answer.ramp))


def _days(outlook: Outlook) -> Table:
    first, last = outlook.days[0], outlook.days[-1]
    wanted = [first.at + timedelta(days=number) for number in _DAYS]
    shown = [next((day for day in outlook.days if day.at >= at), last) for at in wanted]
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0))
    for heading in ("day", "busiest minute", "90 %: from", "to"):
        table.add_column(heading, justify="left" if heading == "day" else "right")
    for day in dict.fromkeys([*shown, last]):
        table.add_row(f"{day.at:%Y-%m-%d}", *(f"{say_number(rate)}/s" for rate in (day.peak, day.low, day.high)))
    return table


def _steps(ramp: tuple[RampStep, ...]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0))
    for heading in ("threads", "a node should do", "cores busy"):
        table.add_column(heading, justify="right")
    table.add_column("when to go back", overflow="fold")
    for step in ramp:
        node = step.expected
        table.add_row(
            f"{node.threads:,}", f"{say_number(node.rate_per_second)}/s", say_share(node.core_utilisation), step.stop
        )
    return table
