"""Describes invalid settings: the key, its variable, what is allowed, and the value found."""

import re
from collections.abc import Mapping
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from lagwise.config.secrecy import secret_part_of
from lagwise.config.source import variable_of
from lagwise.platform.logs import clean
from lagwise.platform.secrets import is_secret_key

_LONGEST_REPEATED = 40
#: Kinds of errors whose value is not repeated: keys or a list were expected, so the value may be anything.
_OF_STRUCTURE = frozenset({"missing", "value_error", "model_type", "model_attributes_type", "dict_type", "tuple_type"})
#: Keys that distinguish the models of a union.
_TAGS = ("system", "type")
#: Pydantic's messages and what is shown instead: whoever writes YAML knows lists, not tuples.
_WORDS = (
    (r"^Field required$", "is required"),
    (r"^Input should be a valid tuple$", "must be a list"),
    (r"^Input should be a valid dictionary.*$", "must have keys and values"),
    (r"^Input should be a valid integer\b.*$", "must be a whole number"),
    (r"^Input should be a valid number\b.*$", "must be a number"),
    (r"^Input should be a valid string$", "must be a text"),
    (r"^Input should be a valid boolean\b.*$", "must be true or false"),
    (r"^Input should be True$", "must be true or left out"),
    (r"^Input is not a valid path.*$", "must be a path"),
    (r"^Input should be ", "must be "),
    (r"^Unable to extract tag using discriminator 'type'$", "type is required"),
)


def describe(error: ValidationError, root: type[BaseModel], environment: Mapping[str, str] | None = None) -> str:
    """One line per problem: the key's path, what is allowed, and what is there instead.

    ``root`` is the model that was validated. A key that came from a variable of ``environment`` is named by it.
    """
    lines = []
    for problem in error.errors(include_url=False):
        location = problem["loc"]
        written = _as_written(location, root)
        if problem["type"] == "union_tag_invalid":
            written = (*written, "type")
        path = clean(".".join(str(step) for step in written)) or "settings"
        variable = _variable(written, environment or {})
        if problem["type"] == "extra_forbidden":
            message = f"there is no such setting; known here: {', '.join(sorted(_keys_at(location[:-1], root)))}"
        elif problem["type"] == "union_tag_invalid":
            message = f"must be one of {problem['ctx']['expected_tags']}, not {clean(repr(problem['ctx']['tag']))}"
        else:
            message = _in_words(problem["msg"]) + _instead(problem["type"], written, problem["input"], root)
        lines.append(f"  {path}{f' ({variable})' if variable else ''}: {message}")
    return "\n".join(lines)


def _in_words(message: str) -> str:
    own = message.removeprefix("Value error, ")
    if own != message:  # which may begin with a name that has capitals
        return own
    for pattern, words in _WORDS:
        message = re.sub(pattern, words, message)
    return message[0].lower() + message[1:]


def _instead(kind: str, written: tuple[int | str, ...], value: Any, root: type[BaseModel]) -> str:
    """``, not 'lots'``: the value, if it is short, helps the reader, and cannot be a secret."""
    if kind in _OF_STRUCTURE or not isinstance(value, str | int | float) or _may_hold_a_secret(written, root):
        return ""
    shown = clean(repr(value))
    return f", not {shown}" if len(shown) <= _LONGEST_REPEATED else ""


def _may_hold_a_secret(written: tuple[int | str, ...], root: type[BaseModel]) -> bool:
    models = [root]
    for step in (step for step in written if isinstance(step, str)):
        fields = _fields(models, step)
        if is_secret_key(step) or any(secret_part_of(field) for field in fields):
            return True
        models = [below for field in fields for below in models_of(field.annotation)]
    return False


def _variable(location: tuple[int | str, ...], environment: Mapping[str, str]) -> str | None:
    """The variable that set the key, the map or list it is in, or something below it."""
    if not location:
        return None
    names = [variable_of(location[:length]) for length in range(len(location), 0, -1)]
    names += [name for name in sorted(environment) if name.startswith(f"{names[0]}__")]
    return next((name for name in names if name in environment), None)


def _keys_at(location: tuple[int | str, ...], root: type[BaseModel]) -> list[str]:
    """The keys, as written in the file, of the model at a location of the tree."""
    models = [root]
    for step in location:
        if isinstance(step, str):
            models = _below(models, step) or [m for m in models if tag_of(m) == step]
    return [field.alias or name for name, field in models[0].model_fields.items()]


def _below(models: list[type[BaseModel]], key: str) -> list[type[BaseModel]]:
    """The models that a key may hold; none if these models do not have the key (the tag of a union is not a key)."""
    fields = _fields(models, key)
    return models_of(fields[0].annotation) if fields else []


def _fields(models: list[type[BaseModel]], key: str) -> list[FieldInfo]:
    """The settings that these models declare under a key, as written in the file."""
    return [field for model in models for name, field in model.model_fields.items() if key in (name, field.alias)]


def models_of(annotation: Any) -> list[type[BaseModel]]:
    """The models that a setting of this type can hold: several where a tag distinguishes them."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for argument in get_args(annotation) for model in models_of(argument)]


def tag_of(model: type[BaseModel]) -> str | None:
    """The ``system`` or ``type`` that distinguishes a model in a union; None for a model that is in none."""
    tags = [get_args(model.model_fields[name].annotation) for name in _TAGS if name in model.model_fields]
    return str(tags[0][0]) if tags and tags[0] else None


def _as_written(location: tuple[int | str, ...], root: type[BaseModel]) -> tuple[int | str, ...]:
    """A location without the tags of unions, which pydantic adds to it."""
    written: list[int | str] = []
    models = [root]
    for step in location:
        below = _below(models, step) if isinstance(step, str) else models
        if isinstance(step, str) and not below and any(tag_of(m) == step for m in models) and len(models) > 1:
            models = [m for m in models if tag_of(m) == step]
            continue
        written.append(step)
        models = below
    return tuple(written)
