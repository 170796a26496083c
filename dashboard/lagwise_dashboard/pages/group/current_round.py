"""A group as of one round of the analysis: its verdict, its partitions and its members.

They are in two tables, which the analysis writes one right after the other. A page that read in between would show the
sentence of one round with the figures of another.
"""

from dataclasses import dataclass
from datetime import datetime
from time import sleep

from lagwise.links import parameters
from lagwise_dashboard import address
from lagwise_dashboard.cache import ask
from lagwise_dashboard.queries import group as queries
from lagwise_dashboard.queries.base import Row
from lagwise_dashboard.queries.listing import ListPage
from lagwise_dashboard.widgets import list_view

#: The second table follows within this time, unless the analysis ends in between.
_ATTEMPTS, _PAUSE_SECONDS = 8, 0.25


@dataclass(frozen=True, slots=True)
class GroupSnapshot:
    """The group's row of `group_status`, the partitions and the members that its page lists, all partitions that lose
    something (the soonest first), and the row of :func:`queries.group.unknown`."""

    group: Row
    partitions: ListPage[Row]
    members: ListPage[Row]
    losing: list[Row]
    unknown: Row

    @property
    def unknown_lag(self) -> int | None:
        """The known lag of the partitions whose status is unknown; None where none is known."""
        lag: int | None = self.unknown["lag"]
        return lag

    @property
    def moments(self) -> set[datetime]:
        """The moments that the rows speak of: one, unless the analysis ended between its two tables."""
        rows = (self.group, *self.partitions, *self.members, *self.losing, self.unknown)
        return {row["as_of"] for row in rows if row["as_of"] is not None}


def read(cluster: str, group: str) -> GroupSnapshot | None:
    """The newest verdict on a group whose rows are all of one round, with the lists that the address asks for; None if
    there is no such group."""
    for attempt in range(_ATTEMPTS):
        if attempt:
            sleep(_PAUSE_SECONDS)
        row = ask(queries.verdict, cluster, group)
        if row is None:
            return None
        result = GroupSnapshot(
            row,
            ask(
                queries.partitions,
                cluster,
                group,
                list_view.query(parameters.PARTITION_LIST),
                address.get(parameters.PARTITION_STATUS),
            ),
            ask(queries.members, cluster, group, row["as_of"], list_view.query(parameters.MEMBER_LIST)),
            [] if row["seconds_to_loss"] is None else ask(queries.losing, cluster, group, row["loss_cause"]),
            ask(queries.unknown, cluster, group),
        )
        if len(result.moments) == 1:
            break
    return result
