"""How to get from the threads that run to those that are advised, as the columns of a table."""

from lagwise.domain.sizing.ramp_plan import RampStep
from lagwise.domain.sizing.words import say_number, say_share


def columns(plan: tuple[RampStep, ...]) -> dict[str, list[str]]:
    """The plan as it is shown."""
    return {
        "Threads": [f"{step.expected.threads:,}" for step in plan],
        "A node should do": [f"{say_number(step.expected.rate_per_second)}/s" for step in plan],
        "Cores busy": [say_share(step.expected.core_utilisation) for step in plan],
        "Gain": ["" if i == 0 else f"{say_number(step.gain_per_second)}/s" for i, step in enumerate(plan)],
        "When to go back": [step.stop for step in plan],
    }
