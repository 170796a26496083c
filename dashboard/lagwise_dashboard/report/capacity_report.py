"""The content of the pages Capacity and Plan, and of the files that are made from it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from lagwise.domain.capacity.outlook import Outlook
from lagwise.domain.simulation.what_if import WhatIf
from lagwise.domain.sizing.advice import SizingAdvice
from lagwise.domain.sizing.group_workload import task_slots_of
from lagwise.domain.sizing.ramp_plan import RampStep
from lagwise.domain.sizing.task_slots import TaskSlots
from lagwise_dashboard.queries.base import Row
from lagwise_dashboard.report.scenarios import ComparedScenario


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityReport:
    """Everything that the page shows. Without ``advice``, inputs that it needs are ``missing``."""

    advice: SizingAdvice | None
    missing: tuple[str, ...] = ()
    #: Where each input of the advice is from, by the name of the Workload's field.
    sources: Mapping[str, str] = field(default_factory=dict)
    #: The group's row of the table `capacity`; None is any workload.
    row: Row | None = None
    #: What the settings say of the group's cluster; empty is nothing.
    cluster_note: str = ""
    outlook: Outlook | None = None
    what_if: WhatIf | None = None
    scenarios: tuple[ComparedScenario, ...] = ()
    ramp: tuple[RampStep, ...] = ()
    target_utilisation: float
    now: datetime

    @property
    def slots(self) -> TaskSlots | None:
        """Whether the Flink cluster has the task slots for what is advised; None where it is no job."""
        return task_slots_of(self.row, self.advice)
