"""What is wrong with settings, for whoever wrote them: the key, its variable, what is allowed, what is there."""

import re
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ValidationError

from lagwise.config.source import variable_of
from lagwise.logs import clean
from lagwise.secrets import is_secret_key

#: Below these keys a value may be, or hold, a secret that was written where a reference belongs: never repeated.
_NEVER_REPEATED = frozenset({"librdkafka", "storage_options", "url", "database", "conf"})
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
        location = problem["loc"]
        path = clean(".".join(str(step) for step in location)) or "settings"
        variable = _variable(location, environment or {})
        if problem["type"] == "extra_forbidden":
            said = f"there is no such setting; known here: {', '.join(sorted(_keys_at(location[:-1], root)))}"
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


def _keys_at(location: tuple[int | str, ...], root: type[BaseModel]) -> list[str]:
    """The keys, as they are written in the file, of the model that stands at a location of the tree."""
    model = root
    for step in location:
        if isinstance(step, int):
            continue
        annotation = next(f for n, f in model.model_fields.items() if step in (n, f.alias)).annotation
        candidates = [annotation, *getattr(annotation, "__args__", ())]
        model = next(c for c in candidates if isinstance(c, type) and issubclass(c, BaseModel))
    return [field.alias or name for name, field in model.model_fields.items()]
