"""The figures of the advice as they read."""

from collections.abc import Sequence

from lagwise.domain.sizing.figures import Figure
from lagwise.domain.sizing.search import Binding
from lagwise.domain.sizing.words import say_number, say_share
from lagwise_dashboard import tables
from lagwise_dashboard.tables import TableColumn

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


def columns(figures: Sequence[Figure]) -> list[TableColumn]:
    """Figures as a table: what each is, its value, and what it was made of."""
    return [
        tables.text("Figure", [f.label for f in figures]),
        tables.mixed("Value", [f.value for f in figures], [_say(f.name, f.value) for f in figures]),
        tables.text("Unit", [f.unit for f in figures]),
        tables.text("Made of", [f.how for f in figures]),
    ]


def _say(name: str, value: float | None) -> str:
    """A figure's value; ``none`` where it is infinite."""
    if value is None:
        return "none"
    return say_share(value) if name in ("hottest_share", "hottest_key_share") else say_number(value)
