"""The policy of an autoscaler, in the query of the address that it asks."""

from collections.abc import Mapping
from urllib.parse import parse_qsl

from lagwise.domain.capacity.scaling import ScalingPolicy
from lagwise.domain.sizing.ranges import OutOfRange

#: The parameters of the query, each with its field of the policy and whether it is a whole number.
PARAMETERS: Mapping[str, tuple[str, bool]] = {
    "min": ("min_replicas", True),
    "max": ("max_replicas", True),
    "utilisation": ("target_utilisation", False),
    "slack": ("slack", False),
    "catch_up_seconds": ("catch_up_seconds", False),
    "up_after_seconds": ("up_after_seconds", False),
    "down_after_seconds": ("down_after_seconds", False),
}


class BadRequest(ValueError):
    """The query is invalid. The message says why."""


def policy_of(query: str) -> ScalingPolicy:
    """The policy in the query of an address. Raises BadRequest naming the parameter."""
    values: dict[str, float] = {}
    for name, text in parse_qsl(query, keep_blank_values=True):
        if name not in PARAMETERS:
            raise BadRequest(f"unknown parameter {name!r}; known parameters: {', '.join(PARAMETERS)}")
        field, is_whole = PARAMETERS[name]
        if field in values:
            raise BadRequest(f"{name} is given twice")
        try:
            values[field] = int(text) if is_whole else float(text)
        except ValueError:
            raise BadRequest(f"{name} must be a {'whole ' if is_whole else ''}number, not {text!r}") from None
    names = {field: name for name, (field, _) in PARAMETERS.items()}
    try:
        return ScalingPolicy(**values)  # type: ignore[arg-type]  # whole numbers were made so above
    except OutOfRange as error:
        named = names.get(error.argument, error.argument)
        raise BadRequest(f"{named} must be {error.allowed}, not {error.value!r}") from None
