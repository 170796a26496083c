"""Whose a group is: labels for alerts and pages, and the channels that its owner wants to be told by."""

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
    """Who owns some groups. The first entry that names a group counts."""

    groups: NameFilter = NameFilter()
    """Groups that are owned: regular expressions on the whole name."""
    clusters: NameFilter = NameFilter()
    """Clusters in which they are: regular expressions on the whole name."""
    team: _Value | None = None
    """Who owns them; alerts carry it as the label `team`."""
    labels: dict[Name, _Value] = Field(default_factory=dict)
    """Further labels that their alerts carry, and that rules may ask for."""
    channels: tuple[str, ...] | None = None
    """Names of the channels that are told of them by rules that name none; null is all."""

    @model_validator(mode="after")
    def _says_something(self) -> "Owner":
        if self.team is None and not self.labels and self.channels is None:
            raise ValueError("says nothing of its groups: give team, labels or channels")
        if TEAM in self.labels:
            raise ValueError("the team stands beside the labels, not among them: {team: payments, labels: {…}}")
        return self

    def owns(self, cluster: str, group: str) -> bool:
        """Whether a group is among those that are owned."""
        return self.groups.selects(group) and self.clusters.selects(cluster)

    @property
    def all_labels(self) -> Mapping[str, str]:
        """The labels, the team's among them."""
        return {**({} if self.team is None else {TEAM: self.team}), **self.labels}


def owner_of(owners: Iterable[Owner], cluster: str, group: str) -> Owner | None:
    """The owner of a group, None if it has none: the first entry that matches."""
    return next((owner for owner in owners if owner.owns(cluster, group)), None)
