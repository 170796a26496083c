"""Lag objectives: how far behind groups may be. Clusters of every system have these settings."""

from lagwise.config.base import Settings
from lagwise.config.name_filter import NameFilter
from lagwise.config.values import Seconds


class LagObjective(Settings):
    """The lag objective of some groups."""

    groups: NameFilter
    """Groups that have this objective."""
    lag_objective_seconds: Seconds
    """A group whose lag neither grows nor shrinks is `lagging` once its oldest unread record is older than this."""


class WithObjectives(Settings):
    """A cluster whose groups have objectives."""

    lag_objective_seconds: Seconds = 300.0
    """A group whose lag neither grows nor shrinks is `lagging` once its oldest unread record is older than this."""
    lag_objectives: tuple[LagObjective, ...] = ()
    """Groups with an objective of their own. The first entry that selects a group applies."""

    def lag_objective_of(self, group: str) -> float:
        """The objective of a group of this cluster, in seconds."""
        own = (o.lag_objective_seconds for o in self.lag_objectives if o.groups.selects(group))
        return next(own, self.lag_objective_seconds)
