"""What all settings have in common."""

from pydantic import BaseModel, ConfigDict


class Settings(BaseModel):
    """A section of the settings. Unknown keys are rejected, and values do not change once read.

    The docstring below a key documents it. Only ``scripts/reference.py`` reads these docstrings: with pydantic's
    ``use_attribute_docstrings``, every command would parse the source of every class when it starts. Validators are
    built at their first use for the same reason.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)
