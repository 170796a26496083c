"""The choice of names by patterns."""

import re

from pydantic import field_validator

from lagwise.config.base import Settings


class NameFilter(Settings):
    """Which groups (or clusters) are meant: regular expressions on the whole name."""

    include: tuple[str, ...] = (".*",)
    """Meant is whose whole name one of these matches …"""
    exclude: tuple[str, ...] = ()
    """… and none of these."""

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
        """Whether what has this name is meant."""
        # DOTALL: names are strangers' input, and one with a line break in it must not slip through `.*`.
        included = any(re.fullmatch(pattern, name, re.DOTALL) for pattern in self.include)
        return included and not any(re.fullmatch(pattern, name, re.DOTALL) for pattern in self.exclude)
