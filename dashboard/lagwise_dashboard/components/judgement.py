"""What one round of the analysis says about a group: its verdict, its partitions and how its members do.

They are in two tables, which the analysis writes one right after the other. A page that reads in between would show a
sentence beside the figures of another moment.
"""

from dataclasses import dataclass
from datetime import datetime
from time import sleep

from lagwise_dashboard.cache import ask
from lagwise_dashboard.queries import group as queries
from lagwise_dashboard.queries.base import Row

#: The second table follows within this time, unless the analysis ends in between.
_LOOKS, _PAUSE_SECONDS = 8, 0.25


@dataclass(frozen=True, slots=True)
class Judgement:
    """The group's row of `group_status`, its partitions (worst first) and its members' sums by member id."""

    group: Row
    partitions: list[Row]
    members: dict[str, Row]

    @property
    def moments(self) -> set[datetime]:
        """The moments that the rows speak of: one, unless the analysis ended between its two tables."""
        return {row["as_of"] for row in (self.group, *self.partitions, *self.members.values())}


def read(cluster: str, group: str) -> Judgement | None:
    """The newest judgement of a group whose parts are of one moment; None if there is no such group."""
    for look in range(_LOOKS):
        if look:
            sleep(_PAUSE_SECONDS)
        row = ask(queries.verdict, cluster, group)
        if row is None:
            return None
        found = Judgement(row, ask(queries.partitions, cluster, group), ask(queries.standings, cluster, group))
        if len(found.moments) == 1:
            break
    return found
