"""What several sections of the settings share: the base class, name filters, and what clusters of any system have."""

import re
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from lagwise.config.values import IN_SECONDS, Patterns, Seconds


class Settings(BaseModel):
    """A section of the settings. Unknown keys are rejected, and values do not change once read.

    The docstring below a key documents it. Only ``scripts/reference.py`` reads these docstrings: with pydantic's
    ``use_attribute_docstrings``, every command would parse the source of every class when it starts. Validators are
    built at their first use for the same reason.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class Entry(Settings):
    """One of several of its kind. What names it comes first, then what it must have, such as its address, and then the
    rest, also where a base class declares the rest: in this order it is shown, and its errors are reported."""

    @classmethod
    def __pydantic_init_subclass__(cls, **_options: Any) -> None:
        fields = cls.__pydantic_fields__
        in_order = sorted(fields, key=lambda name: (name not in _KINDS, name != "name", not fields[name].is_required()))
        cls.__pydantic_fields__ = {name: fields[name] for name in in_order}


#: Keys that tell entries of different kinds apart.
_KINDS = ("system", "type")


class NameFilter(Settings):
    """Selects groups or clusters by regular expressions that match the whole name."""

    include: Patterns = (".*",)
    """Regular expressions; a name is selected if one of them matches it completely."""
    exclude: Patterns = ()
    """Regular expressions; a name that one of them matches completely is not selected, whatever `include` says."""

    def selects(self, name: str) -> bool:
        """Whether the name is selected."""
        # DOTALL: names are untrusted input, and one with a line break must still match `.*`.
        included = any(re.fullmatch(pattern, name, re.DOTALL) for pattern in self.include)
        return included and not any(re.fullmatch(pattern, name, re.DOTALL) for pattern in self.exclude)


class LagObjective(Settings):
    """The lag objective of some groups."""

    groups: NameFilter
    """Groups that have this objective."""
    lag_objective_seconds: Seconds
    """A group whose lag neither grows nor shrinks is `lagging` once its oldest unread record is older than this."""


DEFAULT_LAG_OBJECTIVE_SECONDS = 300.0


class WatchedCluster(Entry):
    """Settings of every cluster, whatever its system."""

    groups: NameFilter = NameFilter()
    """Groups to watch."""
    interval_seconds: Annotated[float, Field(ge=1, le=3600), IN_SECONDS] = 15.0
    """How often the cluster is sampled."""
    timeout_seconds: Annotated[float, Field(ge=1, le=300), IN_SECONDS] = 10.0
    """How long one request to the cluster may take."""
    lag_objective_seconds: Seconds = DEFAULT_LAG_OBJECTIVE_SECONDS
    """A group whose lag neither grows nor shrinks is `lagging` once its oldest unread record is older than this."""
    lag_objectives: tuple[LagObjective, ...] = ()
    """Groups with an objective of their own. The first entry that selects a group applies."""

    def lag_objective_of(self, group: str) -> float:
        """The objective of a group of this cluster, in seconds."""
        own = (o.lag_objective_seconds for o in self.lag_objectives if o.groups.selects(group))
        return next(own, self.lag_objective_seconds)
