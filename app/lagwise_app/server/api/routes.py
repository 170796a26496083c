"""The routes of the API."""

import json
import re
from typing import get_origin

from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from lagwise_app.answers.context import Context
from lagwise_app.answers.forecasts import CapacityUnknown
from lagwise_app.answers.groups import UnknownGroup
from lagwise_app.server.access import Caller
from lagwise_app.server.api.openapi import document
from lagwise_app.server.api.problems import in_a_sentence, problem
from lagwise_app.server.api.questions import QUESTIONS, Parameters, Question
from lagwise_app.server.gate import Gate, Handler
from lagwise_app.server.refusal import Refusal
from lagwise_app.size.bad_question import BadQuestion

PREFIX = "/api/v1"


def api_routes(gate: Gate, context: Context) -> list[Route]:
    """All routes of the API, with its OpenAPI document."""
    described = json.dumps(document(QUESTIONS, PREFIX)).encode()

    async def openapi(_: Request, __: Caller) -> Response:
        return Response(described, media_type="application/json")

    routes = [gate.route(PREFIX + _pattern(one.path), _asked(one, context), problem) for one in QUESTIONS]
    return [*routes, gate.route(f"{PREFIX}/openapi.json", openapi, problem)]


def _pattern(path: str) -> str:
    return re.sub(r"{(\w+)}", r"{\1:name}", path)


def _asked(question: Question, context: Context) -> Handler:
    def answer(request: Request, caller: Caller) -> Response:
        try:
            query = _query(question.query, request)
            found = question.ask(context, caller, request.path_params, query)
        except (UnknownGroup, CapacityUnknown) as error:
            raise Refusal(404, str(error)) from None
        except BadQuestion as error:
            raise Refusal(400, str(error)) from None
        return Response(found.model_dump_json(), media_type="application/json")

    return answer


def _query(model: type[Parameters], request: Request) -> Parameters:
    """The parameters of the query. Raises Refusal."""
    sent = request.query_params
    values: dict[str, object] = {}
    for name in dict.fromkeys(sent.keys()):
        field, given = model.model_fields.get(name), sent.getlist(name)
        is_list = field is not None and get_origin(field.annotation) is list
        if len(given) > 1 and not is_list:
            raise Refusal(400, f"{name} is given twice")
        values[name] = given if is_list else given[0]
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise Refusal(400, in_a_sentence(error)) from None
