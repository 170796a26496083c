"""What sizing starts with before anything is typed: what is known of a group, or an example."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from lagwise.domain import humanise
from lagwise.domain.sizing.group_workload import as_planned, known_values
from lagwise_dashboard import context
from lagwise_dashboard.widgets.sizing.choose_group import LOAD_SPAN, SelectedGroup

#: What is calculated with without a group, and only then.
_EXAMPLE: dict[str, Any] = {
    "t1_seconds": 0.012,
    "t2_seconds": 0.003,
    "cores": 4.0,
    "peak_rate_per_second": 1_000.0,
    "partitions": 24,
}


@dataclass(frozen=True, slots=True)
class StartingValues:
    """Values of a Workload by name, and where each is from."""

    values: Mapping[str, Any]
    sources: Mapping[str, str]
    #: Behind a value in an empty field.
    source_phrase: str
    #: Whether there is no group, and so nothing that was recorded.
    is_example: bool = False

    @classmethod
    def of(cls, selected: SelectedGroup, now: datetime) -> "StartingValues":
        """The verdict's numbers, which are the topic's, as `lagwise size` starts with them; without a verdict the load
        of all that the group reads, and without a group an example."""
        if not selected.is_known:
            return cls(*_with_target(_EXAMPLE, dict.fromkeys(_EXAMPLE, "an example")), "as an example", is_example=True)
        values: Mapping[str, Any] = {}
        sources: Mapping[str, str] = {}
        if selected.row is not None:
            values, sources = known_values(selected.row, now)
        elif (load := selected.load) is not None:
            known = {"peak_rate_per_second": load.peak_rate_per_second, "partitions": load.partitions or None}
            values = as_planned({name: value for name, value in known.items() if value is not None})
            sources = dict.fromkeys(values, f"its load of the last {humanise.duration(LOAD_SPAN.total_seconds())}")
        return cls(*_with_target(values, sources), "from the group")


def _with_target(values: Mapping[str, Any], sources: Mapping[str, str]) -> tuple[dict[str, Any], dict[str, str]]:
    """The same with the target utilisation of the settings."""
    target = context.config().analysis.capacity.target_utilisation
    return {**values, "target_utilisation": target}, {**sources, "target_utilisation": "settings"}
