"""Selection of names by patterns."""

import re

from pydantic import field_validator

from lagwise.config.base import Settings


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
