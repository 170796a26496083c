"""Owners of groups: they give labels to alerts and pages, and choose channels."""

from collections.abc import Iterable, Mapping
from typing import Annotated

from pydantic import Field, model_validator

from lagwise.config import NameFilter
from lagwise.config.values import Name
from lagwise_alerts.rules.rule_condition import Strict

_Value = Annotated[str, Field(min_length=1, max_length=200)]
#: The label that a team becomes.
TEAM = "team"


class Owner(Strict):
    """The owner of some groups. The first entry that matches a group counts."""

    groups: NameFilter = NameFilter()
    """Groups that it owns: regular expressions on the whole name."""
    clusters: NameFilter = NameFilter()
    """Clusters of these groups: regular expressions on the whole name."""
    team: _Value | None = None
    """Name of the team; alerts carry it as the label `team`."""
    labels: dict[Name, _Value] = Field(default_factory=dict)
    """More labels for the alerts of these groups. Rules may select by them."""
    channels: tuple[str, ...] | None = None
    """Channels to notify of these groups, for rules that name no channels; null is all."""
    downstream: _Value | None = None
    """What these groups depend on and Lagwise cannot see, such as a database: groups with the same one that get worse
    together are one shared incident."""

    @model_validator(mode="after")
    def _says_something(self) -> "Owner":
        if self.team is None and not self.labels and self.channels is None and self.downstream is None:
            raise ValueError("an owner needs a team, labels, channels or a downstream")
        if TEAM in self.labels:
            raise ValueError("team is a key of its own, not a label: {team: payments, labels: {…}}")
        return self

    def owns(self, cluster: str, group: str) -> bool:
        """Whether it owns a group."""
        return self.groups.selects(group) and self.clusters.selects(cluster)

    @property
    def all_labels(self) -> Mapping[str, str]:
        """The labels, including the team."""
        return {**({} if self.team is None else {TEAM: self.team}), **self.labels}


def owner_of(owners: Iterable[Owner], cluster: str, group: str) -> Owner | None:
    """The owner of a group, None if it has none: the first entry that matches."""
    return next((owner for owner in owners if owner.owns(cluster, group)), None)
