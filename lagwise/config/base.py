"""What several sections of the settings share: the base class, name filters, and lag objectives."""

import re

from pydantic import BaseModel, ConfigDict, field_validator

from lagwise.config.values import Seconds


class Settings(BaseModel):
    """A section of the settings. Unknown keys are rejected, and values do not change once read.

    The docstring below a key documents it. Only ``scripts/reference.py`` reads these docstrings: with pydantic's
    ``use_attribute_docstrings``, every command would parse the source of every class when it starts. Validators are
    built at their first use for the same reason.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class NameFilter(Settings):
    """Selects groups or clusters by regular expressions that match the whole name."""

    include: tuple[str, ...] = (".*",)
    """Regular expressions; a name is selected if one of them matches it completely."""
    exclude: tuple[str, ...] = ()
    """Regular expressions; a name that one of them matches completely is not selected, whatever `include` says."""

    @field_validator("include", "exclude")
    @classmethod
    def _compiles(cls, patterns: tuple[str, ...]) -> tuple[str, ...]:
        for pattern in patterns:
            try:
                re.compile(pattern)
            except re.error as error:
                raise ValueError(f"{pattern!r} is not a regular expression: {error}") from error
        return patterns

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
