"""Shared incidents: groups that get worse together and share something are notified as one."""

from typing import Annotated

from pydantic import Field

from lagwise_alerts.rules.rule_condition import Duration, Strict


class SharedIncidents(Strict):
    """When several alerts are one shared incident."""

    within: Duration = 120.0
    """The groups must have got worse within this time of each other, in the time of the data."""
    groups: Annotated[int, Field(ge=3)] = 3
    """The fewest groups that are compared; few groups need strong evidence."""
    join_within: Duration = 900.0
    """A group that shares the same thing joins if it gets worse within this time after those that were evidence."""
