"""What every model of the settings is made of."""

from pydantic import BaseModel, ConfigDict


class Settings(BaseModel):
    """Unknown keys are refused, nothing changes once it is read, and what stands below a key describes it."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)
