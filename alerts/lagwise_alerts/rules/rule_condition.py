"""The condition of a rule (``when``), as it is written in the file of rules."""

from functools import cached_property
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from lagwise.domain.capacity.verdict import CapacityVerdict
from lagwise.domain.cluster_findings import ClusterFindingKind
from lagwise.domain.findings import FindingKind
from lagwise.domain.vocabulary import Status, UnknownReason
from lagwise.platform.durations import parse_duration
from lagwise_alerts.model import AlertKind

Duration = Annotated[float, BeforeValidator(parse_duration)]
_Count = Annotated[int, Field(ge=0)]


class Strict(BaseModel):
    """A part of the file of rules. Unknown keys are rejected."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class RuleCondition(Strict):
    """The condition of a rule. Statuses and numbers of a group may be combined: then all must hold. Every other key
    must be the only one."""

    statuses: tuple[Status, ...] = ()
    """The group has one of these statuses."""
    unknown_reasons: tuple[UnknownReason, ...] = ()
    """For groups that are `unknown`: only for one of these reasons; empty is any reason."""
    unread: bool | None = None
    """For groups with one of the statuses: only with unread records (`true`; an unknown lag counts as unread), or only
    without (`false`); null is both."""
    lag_above: _Count | None = None
    """More records than this are unread, counting the known partitions."""
    lag_seconds_above: Duration | None = None
    """The oldest unread record is older than this."""
    getting_older: Literal[True] | None = None
    """The oldest unread record is older than the group's lag objective and keeps getting older: for longer than the
    objective, and for longer than twice the usual time to a verdict."""
    seconds_to_loss_below: Duration | None = None
    """Unread records will be deleted, or the committed offsets expire, in less than this."""
    seconds_to_catch_up_above: Duration | None = None
    """The group catches up, and needs longer than this."""
    findings: tuple[FindingKind, ...] = ()
    """The group has one of these findings, whatever its status."""
    idle_members_above: _Count | None = None
    """More members than this own no partition while the group is stable."""
    ghosts: Literal[True] | None = None
    """The group has commits on topics that it no longer reads."""
    rebalance_storm: Literal[True] | None = None
    """The same clients make the group rebalance again and again."""
    capacity: tuple[CapacityVerdict, ...] = ()
    """The capacity of the group for one of its topics has one of these verdicts."""
    cluster_findings: tuple[ClusterFindingKind, ...] = ()
    """The brokers or replicas of a cluster have one of these findings."""
    stale: Literal["collection", "analysis"] | None = None
    """No new data has come from the collector of a cluster, or from the analysis, for `older_than`."""
    older_than: Duration | None = None
    """Age at which data is stale; at least three of the intervals at which it is due."""

    @model_validator(mode="after")
    def _one_or_the_other(self) -> "RuleCondition":
        if len(self._asked) != 1:
            raise ValueError(
                "give either statuses, a list of status words, or numbers of a group (lag_above, lag_seconds_above, "
                "getting_older, seconds_to_loss_below, seconds_to_catch_up_above), or both; or one of findings, a list "
                "of kinds, idle_members_above, ghosts, rebalance_storm, capacity, a list of verdicts, "
                "cluster_findings, a list of kinds, and stale: collection or stale: analysis"
            )
        if bool(self.stale) != (self.older_than is not None):
            raise ValueError("stale and older_than go together, as in {stale: collection, older_than: 2m}")
        if self.unknown_reasons and Status.UNKNOWN not in self.statuses:
            raise ValueError("unknown_reasons needs the status unknown among the statuses")
        if self.unread is not None and not self.statuses:
            raise ValueError("unread needs statuses: it selects among the groups with these statuses")
        return self

    @property
    def _asked(self) -> list[frozenset[AlertKind]]:
        """The kinds of alert of each condition that is given; a valid rule has one."""
        asked = (
            (bool(self.statuses) or self.asks_for_numbers, [AlertKind.GROUP]),
            (bool(self.findings), [AlertKind(kind.value) for kind in self.findings]),
            (self.idle_members_above is not None, [AlertKind.IDLE_MEMBERS]),
            (self.ghosts is not None, [AlertKind.GHOSTS]),
            (self.rebalance_storm is not None, [AlertKind.REBALANCE_STORM]),
            (bool(self.capacity), [AlertKind.CAPACITY]),
            (bool(self.cluster_findings), [AlertKind(kind.value) for kind in self.cluster_findings]),
            (self.stale is not None, [AlertKind(self.stale or AlertKind.COLLECTION)]),
        )
        return [frozenset(kinds) for is_asked, kinds in asked if is_asked]

    @property
    def asks_for_numbers(self) -> bool:
        """Whether it has a condition on a number, which may change while the group's status stays the same."""
        numbers = (
            self.lag_above,
            self.lag_seconds_above,
            self.getting_older,
            self.seconds_to_loss_below,
            self.seconds_to_catch_up_above,
        )
        return any(number is not None for number in numbers)

    @cached_property
    def kinds(self) -> frozenset[AlertKind]:
        """The kinds of alert it can raise."""
        return self._asked[0]
