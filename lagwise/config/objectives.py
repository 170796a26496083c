"""How late groups may be: settings that clusters of every system have."""

from lagwise.config.base import Settings
from lagwise.config.name_filter import NameFilter
from lagwise.config.values import Seconds


class LagObjective(Settings):
    """How old unread records of some groups may become."""

    groups: NameFilter
    """Groups it is the objective of."""
    lag_objective_seconds: Seconds
    """Age of the oldest unread record from which one of them that neither grows nor shrinks is `lagging`."""


class WithObjectives(Settings):
    """A cluster whose groups have objectives."""

    lag_objective_seconds: Seconds = 300.0
    """Age of the oldest unread record from which a group that neither grows nor shrinks is `lagging`."""
    lag_objectives: tuple[LagObjective, ...] = ()
    """Groups with an objective of their own; the first entry that names a group counts."""

    def lag_objective_of(self, group: str) -> float:
        """The objective of a group of this cluster, in seconds."""
        own = (o.lag_objective_seconds for o in self.lag_objectives if o.groups.selects(group))
        return next(own, self.lag_objective_seconds)
