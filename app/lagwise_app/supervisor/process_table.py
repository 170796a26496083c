"""The supervised parts as a table for a terminal."""

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from lagwise.domain.humanise import duration
from lagwise_app.supervisor.supervisor import ProcessState, ProcessStatus
from lagwise_app.terminal.words import in_one_line, plain


def parts_table(statuses: Sequence[ProcessStatus]) -> Table:
    """The supervised processes, one line each."""
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column()
    for part in statuses:
        word = str(part.state) if part.retry_in_seconds is None else f"restarts in {part.retry_in_seconds:.0f} s"
        if part.restarts:
            word += f", {part.restarts}× restarted"
        style = "green" if part.state is ProcessState.RUNNING else "bold red"
        age = "" if part.beat_age_seconds is None else f" ({duration(part.beat_age_seconds)} ago)"
        table.add_row(
            plain(part.name),
            Text(word, style=style),
            in_one_line(plain(part.line or "starting").append(age, style="dim")),
        )
    return table
