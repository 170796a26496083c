"""The assignors by the name that Kafka gives them."""

from collections.abc import Callable, Mapping, Sequence

from lagwise.domain.assignment.model import AssignorResult, Member
from lagwise.domain.assignment.range_and_round_robin import range_assignment, round_robin_assignment
from lagwise.domain.assignment.sticky import cooperative_sticky_assignment, sticky_assignment

Assignor = Callable[[Sequence[Member], Mapping[str, int]], AssignorResult]

#: Those of Kafka's consumers; as ``partition.assignment.strategy`` and the group's description name them.
ASSIGNORS: dict[str, Assignor] = {
    "range": range_assignment,
    "roundrobin": round_robin_assignment,
    "sticky": sticky_assignment,
    "cooperative-sticky": cooperative_sticky_assignment,
}
