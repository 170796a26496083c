"""The OpenAPI document of the API, made from the questions and the models of their answers."""

import re
from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from lagwise import __version__
from lagwise_app.server.api.problems import MEDIA_TYPE, Problem
from lagwise_app.server.api.questions import Question

_REFUSALS = {
    "400": "A parameter is wrong or missing.",
    "401": "The token is missing or wrong.",
    "403": "The token may not ask for this.",
    "404": "There is no such group, or the token may not see it, or nothing is known of what is asked.",
    "429": "Too many requests. `Retry-After` says when to ask again.",
    "503": "Lake or database cannot be read, or not in time.",
}


def document(questions: Iterable[Question], prefix: str) -> dict[str, Any]:
    """The document, for addresses below this prefix."""
    questions = list(questions)
    models: list[type[BaseModel]] = [Problem, *(question.answer for question in questions)]
    _, schemas = models_json_schema(
        [(model, "serialization") for model in models], ref_template="#/components/schemas/{model}"
    )
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Lagwise",
            "version": __version__,
            "description": "What Lagwise knows of consumer groups. Read-only. Times are UTC; null is unknown, never 0.",
        },
        "servers": [{"url": prefix}],
        "security": [{"token": []}, {}],
        "paths": {question.path: {"get": _operation(question)} for question in questions},
        "components": {
            "schemas": schemas["$defs"],
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(question: Question) -> dict[str, Any]:
    names = re.findall(r"{(\w+)}", question.path)
    refusals = {
        status: _response(meaning, MEDIA_TYPE, Problem)
        for status, meaning in _REFUSALS.items()
        if status != "404" or names
    }
    return {
        "operationId": question.name,
        "summary": question.summary,
        "parameters": [
            *({"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in names),
            *_query_parameters(question.query),
        ],
        "responses": {"200": _response(question.answer.__doc__ or "", "application/json", question.answer), **refusals},
    }


def _query_parameters(query: type[BaseModel]) -> list[dict[str, Any]]:
    schema = query.model_json_schema()
    required, definitions = schema.get("required", ()), schema.get("$defs", {})
    return [
        {
            "name": name,
            "in": "query",
            "required": name in required,
            "description": one.pop("description", ""),
            "schema": _without_references(one, definitions),
        }
        for name, one in schema.get("properties", {}).items()
    ]


def _without_references(schema: Any, definitions: dict[str, Any]) -> Any:
    """The same with the words of an enumeration in place: parameters share no components."""
    if isinstance(schema, list):
        return [_without_references(one, definitions) for one in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return definitions[schema["$ref"].rsplit("/", 1)[-1]]
    return {key: _without_references(value, definitions) for key, value in schema.items()}


def _response(meaning: str, media_type: str, model: type[BaseModel]) -> dict[str, Any]:
    reference = {"$ref": f"#/components/schemas/{model.__name__}"}
    return {"description": meaning, "content": {media_type: {"schema": reference}}}
