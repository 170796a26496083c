"""Which clusters and groups a caller may see."""

from dataclasses import dataclass, field

from lagwise.config.base import NameFilter


@dataclass(frozen=True, slots=True)
class Visibility:
    """A group is visible if its cluster and its name are both selected. By default everything is."""

    clusters: NameFilter = field(default_factory=NameFilter)
    groups: NameFilter = field(default_factory=NameFilter)

    @property
    def is_unlimited(self) -> bool:
        """Whether everything is visible, also what is not about a group."""
        return self == Visibility()

    def shows(self, cluster: str, group: str) -> bool:
        """Whether the caller may see this group."""
        return self.clusters.selects(cluster) and self.groups.selects(group)
