"""A group as of one round of the analysis: its verdict, and the list of its partitions or members where it is shown.

They are in two tables, which the analysis writes one right after the other. A page that read in between would show the
sentence of one round with the figures of another.
"""

from dataclasses import dataclass
from datetime import datetime
from time import sleep

from lagwise.links import parameters
from lagwise_dashboard import address
from lagwise_dashboard.cache import ask
from lagwise_dashboard.pages.group import tabs
from lagwise_dashboard.queries import group as queries
from lagwise_dashboard.queries.base import Row
from lagwise_dashboard.queries.listing import ListPage
from lagwise_dashboard.widgets import list_view

#: The second table follows within this time, unless the analysis ends in between.
_ATTEMPTS, _PAUSE_SECONDS = 8, 0.25


@dataclass(frozen=True, slots=True)
class GroupSnapshot:
    """The group's row of `group_status`, the partitions or the members if their tab is shown, all partitions that lose
    something (the soonest first), and the row of :func:`queries.group.unknown`."""

    group: Row
    partitions: ListPage[Row] | None
    members: ListPage[Row] | None
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
        rows = (self.group, *(self.partitions or ()), *(self.members or ()), *self.losing, self.unknown)
        return {row["as_of"] for row in rows if row["as_of"] is not None}


def read(cluster: str, group: str, tab: str) -> GroupSnapshot | None:
    """The newest verdict on a group whose rows are all of one round, with the list of the tab as the address asks for
    it; None if there is no such group."""
    for attempt in range(_ATTEMPTS):
        if attempt:
            sleep(_PAUSE_SECONDS)
        row = ask(queries.verdict, cluster, group)
        if row is None:
            return None
        result = GroupSnapshot(
            row,
            _partitions(cluster, group) if tab == tabs.PARTITIONS else None,
            _members(row) if tab == tabs.MEMBERS else None,
            [] if row["seconds_to_loss"] is None else ask(queries.losing, cluster, group, row["loss_cause"]),
            ask(queries.unknown, cluster, group),
        )
        if len(result.moments) == 1:
            break
    return result


def _partitions(cluster: str, group: str) -> ListPage[Row]:
    return ask(
        queries.partitions,
        cluster,
        group,
        list_view.query(parameters.PARTITION_LIST),
        address.get(parameters.PARTITION_STATUS),
        bool(address.get(parameters.WITH_LAG)),
    )


def _members(row: Row) -> ListPage[Row]:
    query = list_view.query(parameters.MEMBER_LIST)
    return ask(queries.members, row["cluster"], row["group"], row["as_of"], query)
