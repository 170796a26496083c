"""The expected status of each group against the one that Lagwise shows. Pure: time is an argument."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lagwise.domain.humanise import duration
from lagwise_sandbox.scenarios import DemoScenario

#: Within so long after the start of the workload every group shows its expected status. Before that, another one is no
#: surprise: what goes wrong has to happen first, and to be seen.
SETTLES_WITHIN_SECONDS = 120.0


@dataclass(slots=True)
class ExpectedGroup:
    """One group of the demo. Times are seconds since the start of the workload.

    ``row`` is its latest row of ``group_status`` (None before the first), read at ``elapsed_seconds``.
    ``first_right_seconds`` is when its status was first as expected. ``right_since_seconds`` is since when it has been
    so without a break; None while it is not.
    """

    scenario: DemoScenario
    row: Mapping[str, Any] | None = None
    elapsed_seconds: float = 0.0
    first_right_seconds: float | None = None
    right_since_seconds: float | None = None

    @property
    def agrees(self) -> bool:
        row = self.row
        return row is not None and self.scenario.agrees(row["status"], row["reason"], self.elapsed_seconds)

    @property
    def expected(self) -> tuple[str, ...]:
        """The statuses expected now."""
        return self.scenario.expected_at(self.elapsed_seconds)

    @property
    def expected_words(self) -> str:
        return " or ".join(self.expected)

    @property
    def is_settling(self) -> bool:
        """Whether it is too early for the expected status."""
        return self.elapsed_seconds < SETTLES_WITHIN_SECONDS

    def update(self, row: Mapping[str, Any] | None, elapsed_seconds: float) -> None:
        """Record the row at a moment."""
        self.row, self.elapsed_seconds = row, elapsed_seconds
        if not self.agrees:
            self.right_since_seconds = None
            return
        if self.first_right_seconds is None:
            self.first_right_seconds = elapsed_seconds
        if self.right_since_seconds is None:
            self.right_since_seconds = elapsed_seconds


@dataclass(slots=True)
class ExpectedGroups:
    """The groups of the demo."""

    scenarios: Sequence[DemoScenario]
    groups: list[ExpectedGroup] = field(init=False)

    def __post_init__(self) -> None:
        self.groups = [ExpectedGroup(scenario) for scenario in self.scenarios]

    def update(self, rows: Iterable[Mapping[str, Any]], elapsed_seconds: float) -> None:
        """Record ``group_status`` at a moment."""
        by_name = {row["group"]: row for row in rows}
        for group in self.groups:
            group.update(by_name.get(group.scenario.group), elapsed_seconds)

    @property
    def words(self) -> str:
        """How many have the expected status, and when all should have it."""
        right = f"{sum(group.agrees for group in self.groups)} of {len(self.groups)} groups have the expected status"
        if not self.all_agree and self.groups[0].is_settling:
            right += f", all should within {duration(SETTLES_WITHIN_SECONDS)} of the start"
        return right

    @property
    def all_agree(self) -> bool:
        return all(group.agrees for group in self.groups)
