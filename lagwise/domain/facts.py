"""Facts: fields of a record that say what they mean, in which unit, and whether receivers of messages are sent them."""

from dataclasses import dataclass
from types import UnionType
from typing import Annotated, Any, NamedTuple, get_args, get_origin, get_type_hints


@dataclass(frozen=True, slots=True)
class Fact:
    """What a field says besides its name and its Python type."""

    #: In the table ``group_status``, as half a sentence.
    meaning: str
    #: ``records``, ``seconds``, ``records/s``, ``partitions``, ``members`` or ``commits``; None for what is no amount.
    unit: str | None = None
    #: In the message, as a sentence; None where receivers are not sent the field by itself.
    sent: str | None = None
    #: The smallest value there can be; None where there is no such bound.
    minimum: int | None = None
    #: Its name in the table, where that is another one.
    column: str | None = None
    #: Whether it is in the table; what is not follows from another column.
    is_stored: bool = True
    #: Whether the table always has it, though the type says None for alerts that are not about a group.
    is_required: bool = False


class FactField(NamedTuple):
    """A declared fact: ``type`` is its Python type without the None that ``is_optional`` stands for."""

    name: str
    type: Any
    is_optional: bool
    fact: Fact

    @property
    def column(self) -> str:
        """Its name in ``group_status``."""
        return self.fact.column or self.name


def facts_of(declared: type) -> tuple[FactField, ...]:
    """The facts that a record declares, in order."""
    found = []
    for name, hint in get_type_hints(declared, include_extras=True).items():
        if get_origin(hint) is Annotated:
            kind, fact = get_args(hint)
            is_optional = get_origin(kind) is UnionType
            if is_optional:
                [kind] = [one for one in get_args(kind) if one is not type(None)]
            found.append(FactField(name, kind, is_optional, fact))
    return tuple(found)
