"""Which clusters and groups a caller may see."""

from dataclasses import dataclass, field

from lagwise.config.base import NameFilter

_ALL = NameFilter()


@dataclass(frozen=True, slots=True)
class Visibility:
    """A group is visible if its cluster and its name are both selected. By default everything is."""

    clusters: NameFilter = field(default_factory=NameFilter)
    groups: NameFilter = field(default_factory=NameFilter)

    @property
    def is_unlimited(self) -> bool:
        """Whether everything is visible, also what is not about a group."""
        return self == Visibility()

    def shows(self, cluster: str | None, group: str | None) -> bool:
        """Whether the caller may see what is about this group; what is about none, or several, is None of them, and is
        for those who see everything."""
        if cluster is None or group is None:
            return self.is_unlimited
        return self.clusters.selects(cluster) and self.groups.selects(group)


@dataclass(frozen=True, slots=True)
class Visibilities:
    """What a member of several teams sees: whatever one of them does. Without any it is nothing."""

    parts: tuple[Visibility, ...] = ()

    @property
    def is_unlimited(self) -> bool:
        """Whether everything is visible, also what is not about a group."""
        return any(part.is_unlimited for part in self.parts)

    def shows(self, cluster: str | None, group: str | None) -> bool:
        """As :meth:`Visibility.shows`."""
        return any(part.shows(cluster, group) for part in self.parts)

    def shows_cluster(self, cluster: str) -> bool:
        """Whether the caller may see that this cluster is watched, and how old its data is."""
        return any(part.clusters.selects(cluster) for part in self.parts)

    def shows_all_of(self, cluster: str) -> bool:
        """Whether the caller may see every group of this cluster, and so what is about none of them."""
        return any(part.clusters.selects(cluster) and part.groups == _ALL for part in self.parts)


EVERYTHING = Visibilities((Visibility(),))
NOTHING = Visibilities()
