"""What is wrong with settings, for whoever wrote them: the key, its variable, what is allowed, what is there."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from lagwise.config.source import variable_of
from lagwise.logs import clean
from lagwise.secrets import is_secret_key

#: Below these keys a value may be, or hold, a secret that was written where a reference belongs: never repeated.
_NEVER_REPEATED = frozenset({"librdkafka", "storage_options", "url", "database", "conf", "authorization"})
_LONGEST_REPEATED = 40
#: pydantic's words, and ours: a person writes YAML, and knows of lists and not of tuples.
_WORDS = (
    (r"^Value error, ", ""),
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
)


def describe(error: ValidationError, root: type[BaseModel], environment: Mapping[str, str] | None = None) -> str:
    """One line per problem: the key's path, what is allowed, and what is there instead.

    ``root`` is the model that was validated. A key that came from a variable of ``environment`` is named by it.
    """
    lines = []
    for problem in error.errors(include_url=False):
        location, model = _place(problem["loc"], root)
        if problem["type"] == "union_tag_invalid":
            location = (*location, "type")
        path = clean(".".join(str(step) for step in location)) or "settings"
        variable = _variable(location, environment or {})
        if problem["type"] == "extra_forbidden":
            said = f"there is no such setting; known here: {', '.join(sorted(_keys(model)))}"
        elif problem["type"] == "union_tag_invalid":
            said = f"must be one of {problem['ctx']['expected_tags']}, not {clean(repr(problem['ctx']['tag']))}"
        else:
            said = _in_words(problem["msg"]) + _instead(problem["type"], location, problem["input"])
        lines.append(f"  {path}{f' ({variable})' if variable else ''}: {said}")
    return "\n".join(lines)


def _in_words(message: str) -> str:
    for pattern, words in _WORDS:
        message = re.sub(pattern, words, message)
    return message[0].lower() + message[1:]


def _instead(kind: str, location: tuple[int | str, ...], value: Any) -> str:
    """``, not 'lots'``: the value, where it is short, explains something, and cannot be a secret."""
    names = [str(step) for step in location]
    if kind in ("value_error", "missing") or not isinstance(value, str | int | float):
        return ""
    if any(name in _NEVER_REPEATED or is_secret_key(name) for name in names):
        return ""
    shown = clean(repr(value))
    return f", not {shown}" if len(shown) <= _LONGEST_REPEATED else ""


def _variable(location: tuple[int | str, ...], environment: Mapping[str, str]) -> str | None:
    """The variable that set the key, the map or list it is in, or something below it."""
    if not location:
        return None
    names = [variable_of(location[:length]) for length in range(len(location), 0, -1)]
    names += [name for name in sorted(environment) if name.startswith(f"{names[0]}__")]
    return next((name for name in names if name in environment), None)


def _place(location: tuple[int | str, ...], root: type[BaseModel]) -> tuple[tuple[int | str, ...], type[BaseModel]]:
    """A location as it is in the file, and the model that its last key belongs to.

    pydantic puts the ``type`` of a setting that may be of several into the location, behind the position in the list.
    """
    steps: list[int | str] = []
    models: tuple[type[BaseModel], ...] = (root,)
    owner = root
    for step in location:
        chosen = tuple(model for model in models if len(models) > 1 and tag_of(model) == step)
        if chosen:
            models = chosen
            continue
        steps.append(step)
        if isinstance(step, int) or len(models) != 1:
            continue
        owner = models[0]
        field = next((f for name, f in owner.model_fields.items() if step in (name, f.alias)), None)
        models = tuple(models_in(field.annotation)) if field else ()
    return tuple(steps), owner


def tag_of(model: type[BaseModel]) -> str | None:
    """The ``type`` that selects a model among several."""
    field = model.model_fields.get("type")
    return str(get_args(field.annotation)[0]) if field and get_args(field.annotation) else None


def models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    """Every model that an annotation names: itself, in a list, or one of several."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from models_in(argument)


def _keys(model: type[BaseModel]) -> list[str]:
    """The keys of a model, as they are written in the file."""
    return [field.alias or name for name, field in model.model_fields.items()]
