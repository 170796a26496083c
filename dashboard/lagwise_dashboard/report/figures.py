"""The figures of the advice as they read."""

from lagwise.domain.sizing.search import Binding
from lagwise.domain.sizing.words import say_number, say_share

#: What binds, as it reads in a metric.
BINDS = {
    Binding.CPU: "the cores",
    Binding.WAITING: "waiting",
    Binding.TIME: "time per message",
    Binding.PARTITIONS: "partitions",
    Binding.SKEW: "the hottest partition",
    Binding.ORDERING: "the order",
    Binding.DEMAND: "only the demand",
}


def say_value(name: str, value: float | None) -> str:
    """A figure's value; ``none`` where it is infinite."""
    if value is None:
        return "none"
    return say_share(value) if name in ("hottest_share", "hottest_key_share") else say_number(value)
