"""Partitions of a group, for the tests of the sentences about it."""

from typing import Any

from lagwise.domain.partition_rollup import PartitionsInStatus
from lagwise.domain.vocabulary import Status


def part(status: Status, partitions: int = 1, *owners: str, **numbers: Any) -> PartitionsInStatus:
    named = {"reason": None, "worst_topic": "orders", "worst_partition": 3} | numbers
    return PartitionsInStatus(status, partitions=partitions, owners=frozenset(owners), **named)


WELL = part(Status.OK, 9, lag=0, lag_seconds=0.0)
WAITING: dict[str, Any] = {"lag": 41_234, "lag_seconds": 200.0, "unmoved_seconds": 150.0}
