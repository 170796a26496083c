"""How to get from the threads that run to those that are advised, as a table."""

from lagwise.domain.sizing.ramp_plan import RampStep
from lagwise.domain.sizing.words import say_rate, say_share
from lagwise_dashboard import tables
from lagwise_dashboard.tables import TableColumn


def columns(plan: tuple[RampStep, ...]) -> list[TableColumn]:
    """The plan, a row for each step."""
    return [
        tables.count("Threads", [step.expected.threads for step in plan]),
        tables.count(
            "A node should do", [step.expected.rate_per_second for step in plan], of="per_second", say=say_rate
        ),
        tables.count("Cores busy", [step.expected.core_utilisation for step in plan], of="share", say=say_share),
        tables.count(
            "Gain", [step.gain_per_second if i else None for i, step in enumerate(plan)], of="per_second", say=say_rate
        ),
        tables.text("When to go back", [step.stop for step in plan], wraps=True),
    ]
